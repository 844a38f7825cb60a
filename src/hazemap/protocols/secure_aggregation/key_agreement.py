"""A secret that two clients share after each has seen the other's public key: X25519 (RFC 7748), then HKDF-SHA256.

The shared point is never used as it is: it goes through HKDF with the session as salt and the purpose and both
public keys as info, so that a key belongs to one session, one purpose and one pair. A public key of low order,
which makes the shared point zero whatever the private key is, is refused (RFC 7748 §6.1).
"""

import os
from collections.abc import Callable
from typing import NoReturn

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from hazemap.errors import CodecError, Refused
from hazemap.protocols.secure_aggregation.key_derivation import derived

KEY = 32


class KeyPair:
    """An X25519 key pair of one session. It shows its public half only.

    >>> ours, theirs = KeyPair.create(), KeyPair.create()
    >>> agreed(ours, theirs.public, bytes(32), b"mask", 16) == agreed(theirs, ours.public, bytes(32), b"mask", 16)
    True
    """

    __slots__ = ("_private", "public")

    def __init__(self, private: X25519PrivateKey) -> None:
        self._private = private
        self.public = private.public_key().public_bytes_raw()

    @classmethod
    def create(cls, random: Callable[[int], bytes] = os.urandom) -> "KeyPair":
        """A new key pair: 32 uniform bytes are an X25519 private key (RFC 7748 §5)."""
        return cls.from_bytes(random(KEY))

    @classmethod
    def from_bytes(cls, private: bytes) -> "KeyPair":
        """The pair of this private key; CodecError unless it is 32 bytes. Costs one multiplication, about 30 µs."""
        if len(private) != KEY:
            raise CodecError(f"a private key is {KEY} bytes, not {len(private)}")
        return cls(X25519PrivateKey.from_private_bytes(private))

    def to_bytes(self) -> bytes:
        """The private key, 32 bytes: SECRET."""
        return self._private.private_bytes_raw()

    def exchanged(self, public: bytes) -> bytes:
        """The point shared with `public`: 32 bytes, no key yet (see `agreed`); Refused where it would be zero."""
        if len(public) != KEY:
            raise CodecError(f"a public key is {KEY} bytes, not {len(public)}")
        try:
            return self._private.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError:
            raise Refused("a public key is of low order: the secret shared with it would be known to all") from None

    def __repr__(self) -> str:
        return f"<KeyPair {self.public.hex()[:16]}…>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key pair is not pickled or copied: a private key leaves its process by to_bytes alone")


def agreed(private: KeyPair, public: bytes, session: bytes, purpose: bytes, length: int) -> bytes:
    """`length` bytes that only the owners of two key pairs know, for one purpose in one session.

    HKDF-SHA256(ikm = X25519 shared point, salt = session, info = "hazemap 1 " ‖ purpose ‖ both public keys, the
    lesser first). Both sides get the same bytes: whatever depends on the direction must be in what is done with
    them (`sealing.associated`). Refused for a key of low order. Costs one multiplication and about 4 µs.
    """
    point = private.exchanged(public)
    ours = private.public
    return derived(point, session, purpose + (ours + public if ours < public else public + ours), length)
