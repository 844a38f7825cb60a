"""Letters that the server carries and cannot read: ChaCha20-Poly1305 (RFC 8439) from one client to another.

A letter's key is derived from what the two clients agreed on *and* from the letter's address (session, sender,
receiver, stage), so the two directions have different keys. A client answers a stage once; but one whose store was
put back from a copy may be asked again, otherwise, and seal another letter under the same key. So the nonce follows
from what is said (Rogaway and Shrimpton 2006): two letters have the same nonce only where they are the same letter.
"""

from struct import pack

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from hazemap.errors import InputError, Refused
from hazemap.federated.protocols.secure_aggregation.key_agreement import SESSION, expand

KEY = 32
TAG = 16
NONCE = 12
MORE = NONCE + TAG
"""Bytes by which a letter is longer than what it says."""


def associated(session: bytes, sender: int, receiver: int, stage: int) -> bytes:
    """The address of a letter, 41 bytes: session ‖ sender (uint32) ‖ receiver (uint32) ‖ stage (uint8), big-endian.

    >>> len(associated(bytes(32), 1, 2, 3))
    41
    """
    if len(session) != SESSION:
        raise InputError(f"a session is named by {SESSION} bytes, not {len(session)}")
    if not (0 <= sender < 1 << 32 and 0 <= receiver < 1 << 32 and 0 <= stage < 256):
        raise InputError(f"a letter from {sender} to {receiver} at stage {stage} has no address: uint32, uint32, uint8")
    return session + pack(">IIB", sender, receiver, stage)


def seal(key: bytes, associated: bytes, plain: bytes) -> bytes:
    """The letter, nonce ‖ ciphertext ‖ tag, that opens with the same key and the same address only.

    >>> address = associated(bytes(32), 1, 2, 3)
    >>> unseal(bytes(32), address, seal(bytes(32), address, b"hello"))
    b'hello'
    """
    cipher = _cipher(key, associated)
    nonce = expand(key, b"hazemap 1 nonce" + associated + plain, NONCE)
    return nonce + cipher.encrypt(nonce, plain, associated)


def unseal(key: bytes, associated: bytes, sealed: bytes) -> bytes:
    """What was sealed; Refused if the letter was made under another key or address, or changed on its way."""
    cipher = _cipher(key, associated)
    try:
        return cipher.decrypt(sealed[:NONCE], sealed[NONCE:], associated)
    except (InvalidTag, ValueError):
        raise Refused(
            "a sealed letter does not verify: it was changed, or is from or to another, session or stage"
        ) from None


def _cipher(key: bytes, associated: bytes) -> ChaCha20Poly1305:
    if len(key) != KEY:
        raise InputError(f"a letter is sealed under a key of {KEY} bytes, not {len(key)}")
    return ChaCha20Poly1305(expand(key, b"hazemap 1 seal" + associated, KEY))
