"""Coins that follow from a secret, so that a device whose store was put back from a copy says nothing new.

Whatever a device draws is a pseudorandom function of its key, of the session or announcement, of what it draws for, and
of its contribution as it is encoded:

    coins = AES-256-CTR under SHA-256 of HKDF-SHA256(ikm = key, salt = session,
                                info = "hazemap 1 coins " ‖ purpose ‖ 0 ‖ SHA-256 of each thing that is bound)

The same state gives the same message, byte by byte. Another contribution has other keys, other masks and other noise:
it never meets those of the first (docs/decisions/0025-a-store-put-back-from-a-copy.md).
"""

import os
from collections.abc import Callable
from hashlib import sha256
from typing import Protocol

from hazemap.federated.protocols.secure_aggregation.key_agreement import derived
from hazemap.privacy.random_stream import Stream

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
