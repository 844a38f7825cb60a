"""Keys that two clients agree on, and coins that follow from a client's own secret: X25519, then HKDF-SHA256.

Every key is derived (HKDF, Krawczyk 2010, RFC 5869) for one session and one purpose. The shared point (RFC 7748) is
never used as it is: it goes through HKDF with the session as salt and the purpose and both public keys as info, so that
a key belongs to one session, one purpose and one pair. A public key of low order, which makes the shared point zero
whatever the private key is, is refused (RFC 7748 §6.1).

Whatever a device draws is a pseudorandom function of its key, of the session or announcement, of what it draws for, and
of its contribution as it is encoded:

    coins = AES-256-CTR under SHA-256 of HKDF-SHA256(ikm = key, salt = session,
                                info = "hazemap 1 coins " ‖ purpose ‖ 0 ‖ SHA-256 of each thing that is bound)

The same state gives the same message, byte by byte: a device whose store was put back from a copy says nothing new.
Another contribution has other keys, other masks and other noise: it never meets those of the first
(docs/decisions/0025-a-store-put-back-from-a-copy.md).
"""

import os
from collections.abc import Callable
from hashlib import sha256
from hmac import digest
from struct import pack
from typing import NoReturn, Protocol

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from hazemap.errors import CodecError, InputError, Refused
from hazemap.federated.protocols.secure_aggregation import masks
from hazemap.privacy.random_stream import Stream

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


class AgreementKeyPair:
    """An X25519 key pair of one session. It shows its public half only.

    >>> ours, theirs = AgreementKeyPair.create(), AgreementKeyPair.create()
    >>> agreed(ours, theirs.public, bytes(32), b"mask", 16) == agreed(theirs, ours.public, bytes(32), b"mask", 16)
    True
    """

    __slots__ = ("_private", "public")

    def __init__(self, private: X25519PrivateKey) -> None:
        self._private = private
        self.public = private.public_key().public_bytes_raw()

    @classmethod
    def create(cls, random: Callable[[int], bytes] = os.urandom) -> "AgreementKeyPair":
        """A new key pair: 32 uniform bytes are an X25519 private key (RFC 7748 §5)."""
        return cls.from_bytes(random(KEY))

    @classmethod
    def from_bytes(cls, private: bytes) -> "AgreementKeyPair":
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
        return f"<AgreementKeyPair {self.public.hex()[:16]}…>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key pair is not pickled or copied: a private key leaves its process by to_bytes alone")


def agreed(private: AgreementKeyPair, public: bytes, session: bytes, purpose: bytes, length: int) -> bytes:
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


def pair_mask(private: AgreementKeyPair, public: bytes, session: bytes, sharers: bytes) -> bytes:
    """The key of the mask that two clients share: the one of the lower position adds it, the other subtracts it.

    It is one for each list of `sharers` (a bitmap's bits): in vectors that a client masked among several lists no mask
    is met twice.
    """
    return agreed(private, public, session, b"mask" + sha256(sharers).digest(), masks.KEY)


def letter_key(private: AgreementKeyPair, public: bytes, session: bytes) -> bytes:
    """The key of the letters between two clients (`authenticated_encryption` makes of it one for each direction)."""
    return agreed(private, public, session, b"letter", 32)


Drawn = Callable[..., Stream]
"""Coins of one session or announcement, by a purpose and all that is bound, or by what is left to be bound."""


class Coins(Protocol):
    """The coins of one device."""

    def __call__(self, session: bytes, purpose: bytes, *bound: bytes) -> Stream:
        """What is drawn in a session of 32 bytes, for a purpose, with all that it has to depend on."""


class DeviceCoins:
    """`key` is the device's own secret, 32 uniform bytes.

    >>> coins = DeviceCoins(bytes(32))
    >>> coins(bytes(32), b"noise", b"a contribution").bytes(8).hex()
    'ee2f7de68b8371b9'
    >>> coins(bytes(32), b"noise", b"another").bytes(8).hex()
    'd3cfda9eedc73d04'
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def from_os(cls) -> "DeviceCoins":
        """Of a key that nobody has again: for people who live as long as their process."""
        return cls(os.urandom(32))

    def __call__(self, session: bytes, purpose: bytes, *bound: bytes) -> Stream:
        """One derivation: some 10 µs."""
        about = b"coins " + purpose + b"\0" + b"".join(sha256(each).digest() for each in bound)
        return Stream.keyed(derived(self._key, session, about, 32))
