"""Identities: they sign as RFC 8032 says, nothing a stranger sends makes the check fail loudly, nothing shows a key."""

import copy
import logging
import pickle

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from hazemap.errors import CodecError
from hazemap.privacy.signing_identities import _FIELD, _SMALL, Identity, is_sound, verified

# RFC 8032 §7.1, tests 1 to 3: private key, public key, message, signature
VECTORS = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
        "d25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c"
        "387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659"
        "4a7c15e9716ed28dc027beceea1ec40a",
    ),
]


@pytest.mark.parametrize(("private", "public", "message", "signature"), VECTORS)
def test_the_published_vectors_come_out(private, public, message, signature):
    identity = Identity.from_bytes(bytes.fromhex(private))
    assert identity.public.hex() == public
    assert identity.sign(bytes.fromhex(message)).hex() == signature
    assert verified(identity.public, bytes.fromhex(signature), bytes.fromhex(message))


def test_an_identity_is_what_its_bytes_say():
    identity = Identity.create()
    again = Identity.from_bytes(identity.to_bytes())
    assert (again.public, again.sign(b"m")) == (identity.public, identity.sign(b"m"))
    assert Identity.create().public != identity.public
    assert Identity.create(lambda n: b"\x07" * n).to_bytes() == b"\x07" * 32


def test_a_signature_is_for_one_message_and_one_identity():
    identity, other = Identity.create(), Identity.create()
    signature = identity.sign(b"message")
    assert verified(identity.public, signature, b"message")
    assert not verified(identity.public, signature, b"another")
    assert not verified(other.public, signature, b"message")
    for bit in (0, 255, 256, 511):
        wrong = bytearray(signature)
        wrong[bit // 8] ^= 1 << bit % 8
        assert not verified(identity.public, bytes(wrong), b"message")


def signed_by_anybody(public, signature):
    """A message that a forged signature passes for, by the library alone: one in eight does, at least."""
    key = Ed25519PublicKey.from_public_bytes(public)
    for number in range(200):
        try:
            key.verify(signature, message := b"%d" % number)
        except InvalidSignature:
            continue
        return message
    return pytest.fail("nobody could sign with this key")


def test_a_key_with_which_anybody_can_sign_signs_nothing():
    """The sum of nothing, as R with S = 0, is a signature of each message whose hash is divided by the key's order."""
    forged = b"\x01" + bytes(63)
    for y in _SMALL:
        for sign in (0, 1 << 255):
            public = (y + sign).to_bytes(32, "little")
            assert not is_sound(public)
            if sign and y in (1, _FIELD - 1):  # x = 0 has no sign: libraries differ
                continue
            message = signed_by_anybody(public, forged)
            assert not verified(public, forged, message)
    for other in range(_FIELD, 1 << 255):
        assert not is_sound(other.to_bytes(32, "little")) and not is_sound((other | 1 << 255).to_bytes(32, "little"))
    assert all(is_sound(bytes.fromhex(public)) for _, public, _, _ in VECTORS) and not is_sound(b"\x02" * 31)


@given(st.binary(max_size=70), st.binary(max_size=70), st.binary(max_size=5))
def test_the_check_of_any_bytes_is_false_and_never_an_error(public, signature, message):
    assert verified(public, signature, message) is False
    assert verified(public[:32].ljust(32, b"\xff"), signature[:64].ljust(64, b"\0"), message) is False


@pytest.mark.parametrize("length", [0, 31, 33])
def test_an_identity_of_another_length_is_refused(length):
    with pytest.raises(CodecError):
        Identity.from_bytes(bytes(length))


def test_an_identity_shows_no_byte_of_its_key(caplog):
    identity = Identity.create()
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("hazemap.federated.protocols.secure_aggregation").debug(
            "%s %r %s", identity, identity, [identity]
        )
    shown = caplog.text + repr(identity) + str(identity) + f"{identity}" + repr(identity._private)
    assert identity.to_bytes().hex()[:8] not in shown
    assert repr(identity.to_bytes())[2:-1] not in shown
    assert identity.public.hex()[:16] in shown


def test_an_identity_is_not_pickled_or_copied():
    for how in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            how(Identity.create())
