"""Agreed keys: X25519 as published, a key for each pair, session and purpose, and none with a point of low order."""

import copy
import logging
import pickle
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.errors import CodecError, Refused
from hazemap.protocols.secure_aggregation.key_agreement import KeyPair, agreed
from hazemap.protocols.secure_aggregation.key_derivation import expand, extract

# RFC 7748 §6.1
ALICE = bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
ALICE_PUBLIC = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
BOB = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
BOB_PUBLIC = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
SHARED = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"
# RFC 7748 §5.2
SCALAR = bytes.fromhex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4")
POINT = bytes.fromhex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c")
PRODUCT = "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"

P = 2**255 - 19
EIGHT = [  # x of the points of order 1, 2, 4, 8 on the curve and its twist (Bernstein 2006, "Curve25519", validation)
    0,
    1,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
    P - 1,
]
LOW_ORDER = [x.to_bytes(32, "little") for x in [*EIGHT, P, P + 1]] + [
    (x | 1 << 255).to_bytes(32, "little")
    for x in EIGHT  # the highest bit is ignored
]


def test_the_published_vectors_come_out():
    alice, bob = KeyPair.from_bytes(ALICE), KeyPair.from_bytes(BOB)
    assert (alice.public.hex(), bob.public.hex()) == (ALICE_PUBLIC, BOB_PUBLIC)
    assert alice.exchanged(bob.public).hex() == bob.exchanged(alice.public).hex() == SHARED
    assert KeyPair.from_bytes(SCALAR).exchanged(POINT).hex() == PRODUCT


def test_the_agreed_key_is_as_specified():
    publics = sorted([bytes.fromhex(ALICE_PUBLIC), bytes.fromhex(BOB_PUBLIC)])
    key = extract(b"s" * 32, bytes.fromhex(SHARED))
    expected = expand(key, b"hazemap 1 mask" + publics[0] + publics[1], 16)
    assert agreed(KeyPair.from_bytes(ALICE), publics[1], b"s" * 32, b"mask", 16) == expected
    assert agreed(KeyPair.from_bytes(BOB), publics[0], b"s" * 32, b"mask", 16) == expected


def test_pairs_sessions_and_purposes_have_keys_of_their_own():
    pairs = [KeyPair.create() for _ in range(4)]
    keys = {}
    for (i, ours), (j, theirs) in product(enumerate(pairs), repeat=2):
        for session, purpose in product((b"a" * 32, b"b" * 32), (b"mask", b"seal", b"")):
            key = agreed(ours, theirs.public, session, purpose, 32)
            same = (min(i, j), max(i, j), session, purpose)
            assert keys.setdefault(same, key) == key
    assert len(set(keys.values())) == len(keys) == 10 * 6


@pytest.mark.parametrize("public", LOW_ORDER, ids=lambda public: public.hex()[:8])
def test_a_key_of_low_order_is_refused_whatever_our_own_is(public):
    for _ in range(8):
        with pytest.raises(Refused):
            agreed(KeyPair.create(), public, bytes(32), b"mask", 16)


@given(st.binary(max_size=40))
def test_any_bytes_agree_or_are_refused(public):
    ours = KeyPair.from_bytes(b"\x01" * 32)
    try:
        assert len(agreed(ours, public, bytes(32), b"mask", 16)) == 16
    except (CodecError, Refused):
        assert len(public) != 32 or public in LOW_ORDER


def test_a_key_pair_is_what_its_bytes_say():
    pair = KeyPair.create()
    assert KeyPair.from_bytes(pair.to_bytes()).public == pair.public != KeyPair.create().public
    assert KeyPair.create(lambda n: b"\x09" * n).to_bytes() == b"\x09" * 32
    with pytest.raises(CodecError):
        KeyPair.from_bytes(bytes(33))


def test_a_key_pair_shows_no_byte_of_its_key(caplog):
    pair = KeyPair.create()
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("hazemap.protocols.secure_aggregation").debug("%s %r %s", pair, pair, {"pair": pair})
        with pytest.raises(Refused) as refused:
            pair.exchanged(bytes(32))
    shown = caplog.text + repr(pair) + str(pair) + repr(pair._private) + repr(refused.value)
    assert pair.to_bytes().hex()[:8] not in shown
    assert repr(pair.to_bytes())[2:-1] not in shown


def test_a_key_pair_is_not_pickled_or_copied():
    for how in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            how(KeyPair.create())
