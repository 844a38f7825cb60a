"""Hybrid public key encryption against the published vectors of RFC 9180 and of another implementation of DAP."""

import json
from pathlib import Path

import cryptography_vectors
import pytest

from hazemap.vdaf.errors import InputError, Refused
from hazemap.vdaf.hpke import Aead, CipherSuite, HpkeKeyPair, Kdf, Kem

JANUS = Path(__file__).parents[2] / ".." / "shared" / "vectors" / "hpke" / "janus-hpke-test-vectors.json"
BASE_MODE, EXPORT_ONLY = 0, 0xFFFF
SUITE = CipherSuite(Kem.X25519_HKDF_SHA256, Kdf.HKDF_SHA256, Aead.AES_128_GCM)
EVERY = [CipherSuite(kem, kdf, aead) for kem in Kem for kdf in Kdf for aead in Aead]


def suite_of(vector: dict) -> CipherSuite:
    suite = CipherSuite.of(vector["kem_id"], vector["kdf_id"], vector["aead_id"])
    assert suite is not None
    return suite


def unhex(vector: dict, *names: str) -> list[bytes]:
    return [bytes.fromhex(vector[name]) for name in names]


def test_every_vector_of_the_rfc_in_base_mode_is_reached_byte_for_byte():
    with cryptography_vectors.open_vector_file("HPKE/test-vectors.json", "r") as file:
        vectors = [v for v in json.load(file) if v["mode"] == BASE_MODE and v["aead_id"] != EXPORT_ONLY]
    assert len(vectors) == 24 and len({suite_of(v).kem for v in vectors}) == 4
    for vector in vectors:
        suite = suite_of(vector)
        receiver, ephemeral = (HpkeKeyPair.derived(suite.kem, each) for each in unhex(vector, "ikmR", "ikmE"))
        assert [receiver.private, receiver.public] == unhex(vector, "skRm", "pkRm")
        assert [ephemeral.private, ephemeral.public] == unhex(vector, "skEm", "pkEm")
        info, secret = unhex(vector, "info", "shared_secret")
        key, nonce = suite.key_schedule(secret, info)
        assert [key, nonce] == unhex(vector, "key", "base_nonce")
        aad, plain, sealed = unhex(vector["encryptions"][0], "aad", "pt", "ct")
        assert suite.seal(receiver.public, info, aad, plain, bytes.fromhex(vector["ikmE"])) == (
            ephemeral.public,
            sealed,
        )
        assert suite.open(receiver, ephemeral.public, info, aad, sealed) == plain
        for later in vector["encryptions"][1:]:
            aad, plain, sealed, its_nonce = unhex(later, "aad", "pt", "ct", "nonce")
            assert suite.cipher(key).encrypt(its_nonce, plain, aad) == sealed


def test_what_another_implementation_sealed_is_opened():
    if not JANUS.exists():
        pytest.skip("the published vectors in ../shared/vectors are not here")
    for vector in json.loads(JANUS.read_text()):
        suite = suite_of(vector)
        secret, public, enc, info = unhex(vector, "skRm", "pkRm", "enc", "info")
        receiver = HpkeKeyPair(suite.kem, secret)
        assert receiver.public == public
        aad, plain, sealed = unhex(vector["encryptions"][0], "aad", "pt", "ct")
        assert suite.open(receiver, enc, info, aad, sealed) == plain


@pytest.mark.parametrize("kem", Kem)
def test_every_suite_opens_what_it_sealed(kem):
    receiver = HpkeKeyPair.derived(kem, b"r" * 66)
    for suite in (each for each in EVERY if each.kem is kem):
        enc, payload = suite.seal(receiver.public, b"info", b"aad", b"plain", b"e" * 66)
        assert suite.open(receiver, enc, b"info", b"aad", payload) == b"plain"
        assert len(enc) == kem.public_key_bytes and len(payload) == 5 + 16


def test_a_message_opens_with_its_own_key_purpose_and_bond_only():
    receiver, other = (HpkeKeyPair.derived(SUITE.kem, bytes([i]) * 32) for i in range(2))
    enc, payload = SUITE.seal(receiver.public, b"info", b"aad", b"plain", b"e" * 32)
    right = (receiver, enc, b"info", b"aad", payload)
    assert SUITE.open(*right) == b"plain"
    wrong = [
        (other, enc, b"info", b"aad", payload),
        (receiver, other.public, b"info", b"aad", payload),
        (receiver, enc, b"Info", b"aad", payload),
        (receiver, enc, b"info", b"", payload),
        (receiver, enc, b"info", b"aad", payload[:-1]),
        (receiver, enc, b"info", b"aad", b""),
        (receiver, enc, b"info", b"aad", bytes([payload[0] ^ 1]) + payload[1:]),
    ]
    for each in wrong:
        with pytest.raises(Refused):
            SUITE.open(*each)
    with pytest.raises(Refused):
        CipherSuite(SUITE.kem, Kdf.HKDF_SHA512, SUITE.aead).open(*right)


@pytest.mark.parametrize(
    ("kem", "public"),
    [
        (Kem.X25519_HKDF_SHA256, bytes(32)),
        (Kem.X25519_HKDF_SHA256, (1).to_bytes(32, "little")),
        (Kem.X25519_HKDF_SHA256, b"x" * 31),
        (Kem.X448_HKDF_SHA512, bytes(56)),
        (Kem.P256_HKDF_SHA256, b"\x04" + bytes(64)),
        (Kem.P256_HKDF_SHA256, b"\x00" * 65),
        (Kem.P256_HKDF_SHA256, b"\x02" + b"\x01" * 32),
        (Kem.P256_HKDF_SHA256, b""),
    ],
)
def test_a_public_key_of_low_order_off_the_curve_or_of_another_length_is_refused(kem, public):
    suite = CipherSuite(kem, Kdf.HKDF_SHA256, Aead.AES_128_GCM)
    with pytest.raises(Refused):
        suite.seal(public, b"", b"", b"plain", bytes(56))
    with pytest.raises(Refused):
        suite.open(HpkeKeyPair.derived(kem, bytes(56)), public, b"", b"", bytes(40))


def test_keys_and_randomness_of_another_length_or_kem_are_a_mistake():
    pair = HpkeKeyPair.derived(Kem.P256_HKDF_SHA256, bytes(32))
    for wrong in (
        lambda: HpkeKeyPair.derived(Kem.X25519_HKDF_SHA256, bytes(31)),
        lambda: HpkeKeyPair(Kem.P256_HKDF_SHA256, bytes(31)),
        lambda: HpkeKeyPair(Kem.P256_HKDF_SHA256, bytes(32)).public,
        lambda: HpkeKeyPair(Kem.P256_HKDF_SHA256, b"\xff" * 32).public,
        lambda: SUITE.open(pair, bytes(32), b"", b"", bytes(16)),
    ):
        with pytest.raises(InputError):
            wrong()


def test_a_suite_with_an_unknown_algorithm_is_none():
    assert CipherSuite.of(0x20, 1, 1) == SUITE
    assert CipherSuite.of(0x9999, 1, 1) is CipherSuite.of(0x20, 4, 1) is CipherSuite.of(0x20, 1, 0xFFFF) is None


def test_a_private_key_is_not_shown():
    pair = HpkeKeyPair.derived(SUITE.kem, b"secret secret secret secret secr")
    assert pair.private.hex() not in repr(pair) and "private" not in repr(pair)
