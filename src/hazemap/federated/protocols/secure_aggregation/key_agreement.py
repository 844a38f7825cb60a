"""Keys that two clients agree on after each has seen the other's public key: X25519 (RFC 7748), then HKDF-SHA256.

Every key is derived (HKDF, Krawczyk 2010, RFC 5869) for one session and one purpose. The shared point is never used as
it is: it goes through HKDF with the session as salt and the purpose and both public keys as info, so that a key belongs
to one session, one purpose and one pair. A public key of low order, which makes the shared point zero whatever the
private key is, is refused (RFC 7748 §6.1).
"""

import os
from collections.abc import Callable
from hashlib import sha256
from hmac import digest
from struct import pack
from typing import NoReturn

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from hazemap.errors import CodecError, InputError, Refused
from hazemap.federated.protocols.secure_aggregation import masks

SESSION = 32
HASH = 32
KEY = 32


def expand(key: bytes, info: bytes, length: int) -> bytes:
    """`length` bytes out of a uniform key; another `info` gives independent bytes (RFC 5869 §2.3)."""
    if not 1 <= length <= 255 * HASH:
        raise InputError(f"a derivation gives 1 … {255 * HASH} bytes, not {length}")
    return HKDFExpand(SHA256(), length, info).derive(key)


def derived(secret: bytes, session: bytes, purpose: bytes, length: int) -> bytes:
    """`length` bytes for one purpose in one session: HKDF(ikm = secret, salt = session, info = "hazemap 1 " ‖ purpose).

    `session` is the 32-byte name of the session. Costs some microseconds.

    >>> derived(bytes(32), bytes(32), b"mask", 16).hex()
    '42cd7a636d729e66c868dce4bcbabecd'
    """
    if len(session) != SESSION:
        raise InputError(f"a session is named by {SESSION} bytes, not {len(session)}")
    return expand(digest(session, secret, "sha256"), b"hazemap 1 " + purpose, length)


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
    lesser first). Both sides get the same bytes: whatever depends on the direction must be in what is done with them
    (`authenticated_encryption.associated`). Refused for a key of low order. Costs one multiplication and some µs.
    """
    point = private.exchanged(public)
    ours = private.public
    return derived(point, session, purpose + (ours + public if ours < public else public + ours), length)


def seed_commitment(session: bytes, position: int, seed: bytes) -> bytes:
    """What a client shows of its self-mask seed: binding, and hiding since the seed is 32 uniform bytes."""
    return sha256(b"hazemap 1 seed" + session + pack(">I", position) + seed).digest()


def self_mask(seed: bytes, session: bytes) -> bytes:
    """The key of the mask that a client adds alone."""
    return derived(seed, session, b"self", masks.KEY)


def pair_mask(private: KeyPair, public: bytes, session: bytes, sharers: bytes) -> bytes:
    """The key of the mask that two clients share: the one of the lower position adds it, the other subtracts it.

    It is one for each list of `sharers` (a bitmap's bits): in vectors that a client masked among several lists no mask
    is met twice.
    """
    return agreed(private, public, session, b"mask" + sha256(sharers).digest(), masks.KEY)


def letter_key(private: KeyPair, public: bytes, session: bytes) -> bytes:
    """The key of the letters between two clients (`authenticated_encryption` makes of it one for each direction)."""
    return agreed(private, public, session, b"letter", 32)
