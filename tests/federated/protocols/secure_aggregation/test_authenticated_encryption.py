"""Sealed letters: opened by their key at their address, and by nothing else."""

from itertools import product

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from hypothesis import given
from hypothesis import strategies as st

from hazemap.errors import InputError, Refused
from hazemap.federated.protocols.secure_aggregation.authenticated_encryption import associated, seal, unseal
from hazemap.federated.protocols.secure_aggregation.key_agreement import expand

KEY, ADDRESS = b"k" * 32, associated(b"s" * 32, 1, 2, 3)

# RFC 8439 §2.8.2
PLAIN = (
    b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
    b"sunscreen would be it."
)
SEALED = (
    "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b1a71de0a9e06"
    "0b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc3ff4def08e4b7a9de576d265"
    "86cec64b61161ae10b594f09e26a7e902ecbd0600691"
)


def test_the_cipher_is_the_published_one():
    cipher = ChaCha20Poly1305(bytes(range(0x80, 0xA0)))
    nonce, address = bytes.fromhex("070000004041424344454647"), bytes.fromhex("50515253c0c1c2c3c4c5c6c7")
    assert cipher.encrypt(nonce, PLAIN, address).hex() == SEALED


def test_a_letter_is_sealed_as_specified():
    judge = ChaCha20Poly1305(expand(KEY, b"hazemap 1 seal" + ADDRESS, 32))
    nonce = expand(KEY, b"hazemap 1 nonce" + ADDRESS + b"plain", 12)
    assert seal(KEY, ADDRESS, b"plain") == nonce + judge.encrypt(nonce, b"plain", ADDRESS)


def test_two_letters_under_one_key_share_no_nonce():
    """A device whose store was put back may seal another letter: two nonces keep their difference."""
    letters = [seal(KEY, ADDRESS, bytes([number]) * 66) for number in range(64)]
    assert len({letter[:12] for letter in letters}) == 64 and seal(KEY, ADDRESS, bytes(66)) == letters[0]


def test_an_address_is_written_as_specified():
    assert associated(b"s" * 32, 1, 0x10203, 4) == b"s" * 32 + bytes([0, 0, 0, 1, 0, 1, 2, 3, 4])


@given(st.binary(max_size=300), st.binary(min_size=32, max_size=32))
def test_what_is_sealed_is_unsealed_and_twenty_eight_bytes_longer(plain, key):
    sealed = seal(key, ADDRESS, plain)
    assert len(sealed) == len(plain) + 28
    assert unseal(key, ADDRESS, sealed) == plain


@given(st.integers(0, 8 * 94 - 1))
def test_a_letter_with_one_bit_changed_is_refused(bit):
    sealed = bytearray(seal(KEY, ADDRESS, bytes(66)))
    sealed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(Refused):
        unseal(KEY, ADDRESS, bytes(sealed))


@given(st.binary(max_size=100))
def test_a_letter_that_nobody_sealed_is_refused(sealed):
    with pytest.raises(Refused):
        unseal(KEY, ADDRESS, sealed)


def test_a_letter_is_refused_under_another_key_session_sender_receiver_or_stage():
    sealed = seal(KEY, ADDRESS, b"plain")
    with pytest.raises(Refused):
        unseal(b"K" * 32, ADDRESS, sealed)
    for session, sender, receiver, stage in product((b"s" * 32, b"S" * 32), (1, 2), (1, 2), (3, 4)):
        address = associated(session, sender, receiver, stage)
        if address != ADDRESS:
            with pytest.raises(Refused):
                unseal(KEY, address, sealed)


def test_the_two_directions_and_the_stages_share_no_keystream():
    """One agreed key, four letters of zeros: were two under one keystream, their ciphertexts would be equal."""
    letters = [
        seal(KEY, associated(b"s" * 32, *who), bytes(64)) for who in [(1, 2, 3), (2, 1, 3), (1, 2, 4), (3, 2, 3)]
    ]
    assert len({letter[:64] for letter in letters}) == 4


@pytest.mark.parametrize(
    "address", [(bytes(31), 1, 2, 3), (bytes(32), -1, 2, 3), (bytes(32), 1, 2**32, 3), (bytes(32), 1, 2, 256)]
)
def test_an_address_that_does_not_fit_its_fields_is_refused(address):
    with pytest.raises(InputError):
        associated(*address)


def test_a_key_of_another_length_seals_nothing():
    with pytest.raises(InputError):
        seal(bytes(16), ADDRESS, b"")
    with pytest.raises(InputError):
        unseal(bytes(33), ADDRESS, bytes(16))
