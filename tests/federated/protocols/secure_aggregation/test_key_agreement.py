"""Agreed keys: X25519 as published, a key for each pair, session and purpose, and none with a point of low order."""

import copy
import logging
import pickle
from hmac import digest
from itertools import product

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from hazemap.errors import CodecError, InputError, Refused
from hazemap.federated.protocols.secure_aggregation.key_agreement import AgreementKeyPair, agreed, derived, expand

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
    alice, bob = AgreementKeyPair.from_bytes(ALICE), AgreementKeyPair.from_bytes(BOB)
    assert (alice.public.hex(), bob.public.hex()) == (ALICE_PUBLIC, BOB_PUBLIC)
    assert alice.exchanged(bob.public).hex() == bob.exchanged(alice.public).hex() == SHARED
    assert AgreementKeyPair.from_bytes(SCALAR).exchanged(POINT).hex() == PRODUCT


def test_the_agreed_key_is_as_specified():
    publics = sorted([bytes.fromhex(ALICE_PUBLIC), bytes.fromhex(BOB_PUBLIC)])
    key = digest(b"s" * 32, bytes.fromhex(SHARED), "sha256")
    expected = expand(key, b"hazemap 1 mask" + publics[0] + publics[1], 16)
    assert agreed(AgreementKeyPair.from_bytes(ALICE), publics[1], b"s" * 32, b"mask", 16) == expected
    assert agreed(AgreementKeyPair.from_bytes(BOB), publics[0], b"s" * 32, b"mask", 16) == expected


def test_pairs_sessions_and_purposes_have_keys_of_their_own():
    pairs = [AgreementKeyPair.create() for _ in range(4)]
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
            agreed(AgreementKeyPair.create(), public, bytes(32), b"mask", 16)


@given(st.binary(max_size=40))
def test_any_bytes_agree_or_are_refused(public):
    ours = AgreementKeyPair.from_bytes(b"\x01" * 32)
    try:
        assert len(agreed(ours, public, bytes(32), b"mask", 16)) == 16
    except (CodecError, Refused):
        assert len(public) != 32 or public in LOW_ORDER


def test_a_key_pair_is_what_its_bytes_say():
    pair = AgreementKeyPair.create()
    assert AgreementKeyPair.from_bytes(pair.to_bytes()).public == pair.public != AgreementKeyPair.create().public
    assert AgreementKeyPair.create(lambda n: b"\x09" * n).to_bytes() == b"\x09" * 32
    with pytest.raises(CodecError):
        AgreementKeyPair.from_bytes(bytes(33))


def test_a_key_pair_shows_no_byte_of_its_key(caplog):
    pair = AgreementKeyPair.create()
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("hazemap.federated.protocols.secure_aggregation").debug(
            "%s %r %s", pair, pair, {"pair": pair}
        )
        with pytest.raises(Refused) as refused:
            pair.exchanged(bytes(32))
    shown = caplog.text + repr(pair) + str(pair) + repr(pair._private) + repr(refused.value)
    assert pair.to_bytes().hex()[:8] not in shown
    assert repr(pair.to_bytes())[2:-1] not in shown


def test_a_key_pair_is_not_pickled_or_copied():
    for how in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            how(AgreementKeyPair.create())


# RFC 5869, appendix A: input keying material, salt, info, pseudorandom key, output keying material
VECTORS = [
    (
        b"\x0b" * 22,
        bytes(range(13)),
        bytes(range(0xF0, 0xFA)),
        "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
    ),
    (
        bytes(range(0x50)),
        bytes(range(0x60, 0xB0)),
        bytes(range(0xB0, 0x100)),
        "06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244",
        "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09da32"
        "75600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87",
    ),
    (
        b"\x0b" * 22,
        b"",
        b"",
        "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04",
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
    ),
]


@pytest.mark.parametrize(("secret", "salt", "info", "key", "output"), VECTORS)
def test_the_published_vectors_of_hkdf_come_out(secret, salt, info, key, output):
    assert digest(salt, secret, "sha256").hex() == key
    assert expand(bytes.fromhex(key), info, len(output) // 2).hex() == output


@given(st.binary(max_size=100), st.binary(min_size=32, max_size=32), st.binary(max_size=100), st.integers(1, 200))
def test_a_derived_key_is_the_librarys_under_our_name(secret, session, purpose, length):
    judge = HKDF(SHA256(), length, session, b"hazemap 1 " + purpose).derive(secret)
    assert derived(secret, session, purpose, length) == judge


def test_a_key_has_at_least_one_byte_and_at_most_what_hkdf_gives():
    assert len(expand(bytes(32), b"", 255 * 32)) == 255 * 32
    for length in (0, -1, 255 * 32 + 1):
        with pytest.raises(InputError):
            expand(bytes(32), b"", length)


def test_a_session_of_another_length_is_no_session():
    with pytest.raises(InputError):
        derived(bytes(32), bytes(31), b"", 16)
