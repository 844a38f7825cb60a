from dataclasses import fields, replace
from fractions import Fraction
from hashlib import sha256

import pytest
from hypothesis import given
from tests.federated.protocols.secure_aggregation.people import session
from tests.federated.protocols.secure_aggregation.test_messages import terms

from hazemap.errors import CodecError, HazemapError, InputError
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode, SessionParameters
from hazemap.privacy.distributed_noise import DistributedNoise

TERMS = session(9, degree=6, threshold=4, survivors=7).terms
OTHERS = {
    "mode": Mode.MALICIOUS,
    "task": bytes(32),
    "nonce": bytes(32),
    "clients": 10,
    "degree": 8,
    "threshold": 5,
    "survivors": 8,
    "size": 6,
    "bits": 17,
    "noise": DistributedNoise(Fraction(3), 5),
    "roster": bytes(32),
    "graph": bytes(32),
}


@given(terms())
def test_terms_have_one_encoding(some):
    assert SessionParameters.from_bytes(some.to_bytes()) == some
    assert some.session == sha256(b"hazemap secure sum 1" + some.to_bytes()).digest()


def test_every_parameter_is_in_the_name_of_the_session():
    assert set(OTHERS) == {field.name for field in fields(SessionParameters)}
    others = [
        replace(TERMS, **{name: value} | ({"graph": bytes(32)} if name == "mode" else {}))
        for name, value in OTHERS.items()
    ]
    others += [replace(TERMS, noise=DistributedNoise(Fraction(4), TERMS.noise.parties))]
    assert len({TERMS.session, *(other.session for other in others)}) == len(others) + 1


@pytest.mark.parametrize(
    "change",
    [
        {"task": bytes(31)},
        {"roster": bytes(33)},
        {"clients": 1},
        {"clients": 2**32},
        {"degree": 9},
        {"degree": 5},  # odd, and not everybody
        {"threshold": 0},
        {"threshold": 7},
        {"survivors": 0},
        {"survivors": 10},
        {"size": 0},
        {"bits": 0},
        {"bits": 33},
        {"noise": DistributedNoise(Fraction(3), 8)},
        {"mode": Mode.MALICIOUS},  # which knows no committed graph
    ],
    ids=str,
)
def test_what_cannot_be_a_session_is_refused(change):
    with pytest.raises(InputError):
        replace(TERMS, **change)


def test_terms_written_otherwise_are_refused():
    good = TERMS.to_bytes()
    for bad in (b"", good[:-1], good + b"\0", b"\x03" + good[1:], b"\x00" + good[1:]):
        with pytest.raises(CodecError):
            SessionParameters.from_bytes(bad)
    place = good.index(b"\x01\x03\x01\x01")  # the scale, 3/1
    for scale in (
        b"\x01\x06\x01\x02",
        b"\x02\x00\x03\x01\x01",
        b"\x01\x03\x01\x00",
        b"\x01\x03\x00",
        b"\x01\x00\x01\x01",
    ):
        with pytest.raises(HazemapError) as error:
            SessionParameters.from_bytes(good[:place] + scale + good[place + 4 :])
        assert error.type is CodecError
