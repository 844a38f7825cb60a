"""Every message has one encoding, and every decoder raises CodecError on all other bytes."""

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hazemap.errors import CodecError
from hazemap.federated.protocols.secure_aggregation.client_bitmap import Bitmap
from hazemap.federated.protocols.secure_aggregation.messages import (
    LETTER,
    MESSAGES,
    Assent,
    Assents,
    Inbox,
    Invitation,
    Keys,
    Masked,
    Neighbours,
    Peer,
    Picks,
    PublicKeys,
    Roll,
    Sealed,
    SecureSumMessage,
    Survivors,
    Unmask,
    decode,
)
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode, SessionParameters
from hazemap.federated.protocols.secure_aggregation.shamir_sharing import SHARE
from hazemap.privacy.distributed_noise import DistributedNoise


def some(length: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=length, max_size=length)


def by_position(items: st.SearchStrategy[bytes]) -> st.SearchStrategy[dict[int, bytes]]:
    return st.dictionaries(st.integers(0, 2**32 - 1), items, max_size=4)


NAMES = some(32)
KEYS = st.integers(0, 2**255 - 20).map(lambda number: number.to_bytes(32, "little"))
SHARES = some(32).map(lambda low: b"\0" + low)
POSITIONS = st.lists(st.integers(0, 2**32 - 1), unique=True, max_size=5).map(sorted).map(tuple)
PATHS = st.lists(some(32), max_size=5).map(tuple)
BITMAPS = st.lists(st.booleans(), max_size=40).map(
    lambda marks: Bitmap.of(len(marks), [i for i, mark in enumerate(marks) if mark])
)
PUBLIC = st.builds(PublicKeys, KEYS, KEYS, some(32), some(64))


@st.composite
def terms(draw) -> SessionParameters:
    clients = draw(st.integers(2, 2**32 - 1))
    mode = draw(st.sampled_from(Mode))
    degree = draw(st.integers(1, clients - 1))
    if mode is Mode.SEMI_HONEST and degree % 2:
        degree = clients - 1
    survivors = draw(st.integers(1, clients))
    scale = Fraction(draw(st.integers(1, 2**50)), draw(st.integers(1, 2**64)))
    return SessionParameters(
        mode,
        draw(some(32)),
        draw(some(32)),
        clients,
        degree,
        threshold=draw(st.integers(1, degree)),
        survivors=survivors,
        size=draw(st.integers(1, 2**32 - 1)),
        bits=draw(st.integers(1, 32)),
        noise=DistributedNoise(scale, draw(st.integers(1, survivors))),
        roster=draw(some(32)),
        graph=bytes(32) if mode is Mode.MALICIOUS else draw(some(32)),
    )


@st.composite
def neighbours(draw) -> Neighbours:
    peers = [Peer(position, draw(some(32)), draw(PATHS), draw(PUBLIC)) for position in draw(POSITIONS)]
    return Neighbours(draw(NAMES), draw(BITMAPS), draw(some(32)), tuple(peers))


@st.composite
def unmasks(draw) -> Unmask:
    seeds, keys = draw(by_position(SHARES)), draw(by_position(SHARES))
    return Unmask(draw(NAMES), seeds, {p: share for p, share in keys.items() if p not in seeds})


ANY = st.one_of(
    st.builds(Invitation, terms(), st.integers(0, 2**32 - 1), PATHS),
    st.builds(Keys, NAMES, PUBLIC),
    st.builds(Roll, NAMES, BITMAPS),
    st.builds(Picks, NAMES, POSITIONS),
    neighbours(),
    st.builds(Sealed, NAMES, by_position(some(LETTER))),
    st.builds(Inbox, NAMES, BITMAPS, by_position(some(LETTER))),
    st.builds(Masked, NAMES, st.binary(max_size=50), some(64)),
    st.builds(Survivors, NAMES, BITMAPS),
    st.builds(Assent, NAMES, some(64)),
    st.builds(Assents, NAMES, by_position(some(64)), by_position(some(64))),
    unmasks(),
)


@given(ANY)
def test_what_is_encoded_is_decoded(message: SecureSumMessage):
    data = message.encode()
    assert decode(data) == message == type(message).decode(data)
    assert decode(data).encode() == data


@given(ANY, st.data())
def test_bytes_cut_off_added_or_changed_are_refused_or_another_message(message: SecureSumMessage, data):
    encoded = message.encode()
    with pytest.raises(CodecError):
        decode(encoded[: data.draw(st.integers(0, len(encoded) - 1))])
    with pytest.raises(CodecError):
        decode(encoded + data.draw(st.binary(min_size=1, max_size=9)))
    place, value = data.draw(st.integers(0, len(encoded) - 1)), data.draw(st.integers(1, 255))
    changed = bytes(b ^ value if i == place else b for i, b in enumerate(encoded))
    try:
        other = decode(changed)
    except CodecError:
        return
    assert other != message and other.encode() == changed


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
@given(data=st.binary(max_size=400))
@example(data=b"")
@example(data=b"\xff" * 300)
def test_a_decoder_raises_codec_error_or_gives_the_one_message_with_these_bytes(kind, data):
    for bytes_ in (data, bytes([1, kind.kind]) + data):
        try:
            message = kind.decode(bytes_)
        except CodecError:
            continue
        assert message.encode() == bytes_


def test_every_message_has_a_number_of_its_own():
    assert [message.kind for message in MESSAGES] == list(range(1, 13))
    assert len({message.__name__ for message in MESSAGES}) == 12


def test_other_versions_and_types_are_refused():
    good = Picks(bytes(32), (1, 2)).encode()
    assert good[:2] == b"\x01\x04"
    for bad in (b"\x00" + good[1:], b"\x02" + good[1:], b"\x01\x00" + good[2:], b"\x01\x0d" + good[2:]):
        with pytest.raises(CodecError, match="no message of version 1"):
            decode(bad)
    with pytest.raises(CodecError, match="expected Roll, not Picks"):
        Roll.decode(good)


@pytest.mark.parametrize(
    "message",
    [
        lambda: Picks(bytes(32), (1, 2)).encode()[:-8] + bytes([0, 0, 0, 2, 0, 0, 0, 2]),
        lambda: Roll(bytes(32), Bitmap.of(9, [8])).encode()[:-1] + b"\x81",
        lambda: Unmask(bytes(32), {1: bytes(SHARE)}, {1: bytes(SHARE)}).encode(),
        lambda: Unmask(bytes(32), {1: b"\xff" * SHARE}, {}).encode(),
        lambda: Keys(bytes(32), PublicKeys(b"\xff" * 32, bytes(32), bytes(32), bytes(64))).encode(),
        lambda: Neighbours(
            bytes(32),
            Bitmap.of(3, []),
            bytes(32),
            tuple(Peer(p, bytes(32), (), PublicKeys(bytes(32), bytes(32), bytes(32), bytes(64))) for p in (2, 2)),
        ).encode(),
    ],
    ids=["picks", "roll", "both shares", "a share beyond the field", "a key beyond the field", "a neighbour twice"],
)
def test_values_written_in_another_way_are_refused(message):
    with pytest.raises(CodecError):
        decode(message())


def test_no_message_shows_a_share_a_vector_or_a_letter():
    secret = b"\0" + b"secret thing" * 2 + bytes(8)
    messages = [Unmask(bytes(32), {1: secret}, {2: secret}), Masked(bytes(32), secret, bytes(64))]
    assert not any("secret thing" in repr(message) for message in messages)
