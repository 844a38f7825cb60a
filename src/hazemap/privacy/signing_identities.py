"""Signing keys (Ed25519, RFC 8032) of devices to their peers, and of those who ship policies and export ledgers.

What a key signs begins with the kind of statement, so that no signature serves twice.
"""

import os
from collections.abc import Callable
from typing import NoReturn

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from hazemap.errors import CodecError

KEY = 32
SIGNATURE = 64
_FIELD = 2**255 - 19
_ORDER_8 = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
_SMALL = frozenset((0, 1, _FIELD - 1, _ORDER_8, _FIELD - _ORDER_8))
"""The y of the eight points whose order divides 8, each with either sign of x (RFC 8032 §5.1.2)."""


class Identity:
    """A device's signing key. It shows its public half only and leaves the process only through `to_bytes`.

    >>> identity = Identity.create()
    >>> verified(identity.public, identity.sign(b"message"), b"message")
    True
    """

    __slots__ = ("_private", "public")

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public = private.public_key().public_bytes_raw()

    @classmethod
    def create(cls, random: Callable[[int], bytes] = os.urandom) -> "Identity":
        """A new identity: 32 uniform bytes are an Ed25519 private key (RFC 8032 §5.1.5)."""
        return cls.from_bytes(random(KEY))

    @classmethod
    def from_bytes(cls, private: bytes) -> "Identity":
        """The identity that `to_bytes` wrote; CodecError unless it is 32 bytes."""
        if len(private) != KEY:
            raise CodecError(f"an identity is {KEY} bytes, not {len(private)}")
        return cls(Ed25519PrivateKey.from_private_bytes(private))

    def to_bytes(self) -> bytes:
        """The private key, 32 bytes: SECRET, to be kept where the device's rows are kept."""
        return self._private.private_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        """64 bytes that only this identity can make for this message (deterministic; about 40 µs)."""
        return self._private.sign(message)

    def __repr__(self) -> str:
        return f"<Identity {self.public.hex()[:16]}…>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an identity is not pickled or copied: a signing key leaves its process by to_bytes alone")


def is_sound(public: bytes) -> bool:
    """Whether a public key can stand for one identity: 32 bytes, written in the one way there is, of no small order.

    With a key of small order anybody can sign much of what they like; one in two spellings would be two. Below 1 µs.

    >>> is_sound(Identity.create().public), is_sound(bytes(KEY)), is_sound(bytes([255]) * KEY)
    (True, False, False)
    """
    y = int.from_bytes(public, "little") & (1 << 255) - 1
    return len(public) == KEY and y < _FIELD and y not in _SMALL


def verified(public: bytes, signature: bytes, message: bytes) -> bool:
    """Whether `signature` was made for `message` by the identity `public`; a key that is not sound signs nothing.

    Bytes of a wrong length are just not. Costs about 100 µs.
    """
    if not is_sound(public) or len(signature) != SIGNATURE:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, UnsupportedAlgorithm, ValueError):
        return False
    return True


def policy_statement(digest: bytes) -> bytes:
    """What whoever ships a policy signs: the SHA-256 of its canonical text, under a domain of its own."""
    return b"hazemap policy 1" + digest


def ledger_page_statement(digest: bytes) -> bytes:
    """What whoever exports a page of a ledger signs: the SHA-256 of its text, under a domain of its own."""
    return b"hazemap ledger page 1" + digest
