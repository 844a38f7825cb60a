"""The head of a device's account, which its server keeps for it: how far the account had come, for a store put back.

A device whose file was put back from a copy has forgotten charges, and nothing in the file says so. So with every
message that it has paid for it gives its server the number of its last charge, and the server gives the last one back
with its work. A number that the disk has not reached was charged, and then forgotten: then the whole period counts as
spent. The charge is on the disk before the message leaves, so no crash makes a number larger than the disk's.

The number is sealed in 24 bytes, the same for the same number: with K the device's own secret, and the server's
identity as HKDF's salt, so that heads at two servers have nothing in common,

    tag = derived(K, server, "head tag " ‖ number, 16)
    head = tag ‖ (number ⊕ derived(K, server, "head pad " ‖ tag, 8))

the number in 8 bytes, big-endian. A server can only give back what the device gave it. It may keep back all or some of
that, so this guards against accidents (docs/decisions/0025-a-store-put-back-from-a-copy.md).
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from hmac import compare_digest

from hazemap.federated.device.account.charges import ChargeSums, charge_time, window_start
from hazemap.federated.device.store.encrypted_store import EncryptedStore, StoreWrite
from hazemap.federated.protocols.secure_aggregation.key_agreement import derived
from hazemap.federated.recipes.policy import ShippedPolicy

TAG, NUMBER = 16, 8
HEAD = TAG + NUMBER

KIND = "restored"
"""Of the charge that stands for those which were forgotten."""


@dataclass(frozen=True)
class HeadSeal:
    """What seals and opens the heads of one device at one server, whose identity has 32 bytes.

    >>> seal = HeadSeal(bytes(32), bytes(32))
    >>> seal.sealed(7).hex()
    'c32722298bb3591c57ca2df07db53e1c7c2d745d2d2faaed'
    >>> seal.opened(seal.sealed(7)), HeadSeal(bytes(32), bytes([1] * 32)).opened(seal.sealed(7)), seal.opened(b"")
    (7, None, None)
    """

    key: bytes = field(repr=False)
    server: bytes

    def sealed(self, number: int) -> bytes:
        """The head of an account whose last charge has this number; 0 where there is none."""
        plain = number.to_bytes(NUMBER)
        tag = derived(self.key, self.server, b"head tag " + plain, TAG)
        return tag + self._padded(tag, plain)

    def opened(self, head: bytes) -> int | None:
        """The number in a head; None for anything that was not sealed here."""
        if len(head) != HEAD:
            return None
        number = int.from_bytes(self._padded(head[:TAG], head[TAG:]))
        return number if compare_digest(self.sealed(number), head) else None

    def _padded(self, tag: bytes, text: bytes) -> bytes:
        pad = derived(self.key, self.server, b"head pad " + tag, NUMBER)
        return bytes(one ^ other for one, other in zip(text, pad, strict=True))


def longest_period(policies: Iterable[ShippedPolicy], own: int = 0) -> int:
    """The longest period, in days, for which any budget holds, the person's `own` among them."""
    found = [own]
    for policy in policies:
        found += [policy.days, *(limit.days for limit in policy.limits)]
    return max(found)


@dataclass(frozen=True)
class ForgottenCharges:
    """The charges of one device that stand for those which a store put back from a copy has forgotten."""

    store: EncryptedStore
    device: int

    def last_number(self) -> int:
        """The number of the last charge on the disk."""
        return self.store.next_number("charges", self.device) - 1

    def charge(self, number: int, now: datetime) -> StoreWrite:
        """The statement that charges whatever was forgotten up to this number."""
        plain = {"kind": KIND, "time": charge_time(self.store, self.device, now).isoformat()}
        return self.store.added("charges", self.device, number, json.dumps(plain).encode())

    def any(self) -> bool:
        """Whether there ever was one."""
        return any(each.fields.get("kind") == KIND for each in ChargeSums(self.store, self.device).charges())

    def within(self, days: int, now: datetime) -> bool:
        """Whether there is one of the last `days`."""
        since = window_start(now, days)
        found = ChargeSums(self.store, self.device).charges(since)
        times = [datetime.fromisoformat(each.fields["time"]) for each in found if each.fields.get("kind") == KIND]
        return any(since is None or time > since for time in times)
