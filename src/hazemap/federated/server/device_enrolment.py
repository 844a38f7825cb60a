"""The enrolled devices: each has an identity of its own, and shows a ticket.

A device proves that it holds the private key of its identity, by answering a challenge of this very server; then it is
known by a ticket, of which only the hash is stored. Tickets end by the server's clock; a device gets another by proving
its identity again. What stands against many identities of one person (sybils) is how a new one is admitted: codes of
one use, the operator's own attestation, or a token that all share, which is weak.
"""

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from math import inf
from time import monotonic
from typing import Any, NamedTuple, Protocol

from hazemap.errors import ConversationError, InputError, Refused
from hazemap.federated.server.attestation import Attestation, attest
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.server.enrolment_codes import EnrolmentCodes, spelled
from hazemap.federated.service.access_tokens import fresh, kept, same
from hazemap.federated.service.store import Write, instant

_ENROL = (
    "INSERT INTO devices (device, identity, ticket, enrolled, expires) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (device) DO UPDATE SET ticket = excluded.ticket, expires = excluded.expires"
)
_HEAD = "UPDATE devices SET head = ? WHERE device = ?"
_REVOKE = "UPDATE devices SET revoked = ?, ticket = ? WHERE device = ?"
_ALL = "SELECT device, enrolled, expires, revoked FROM devices ORDER BY enrolled, device"


@dataclass(frozen=True)
class Admission:
    """Who may enrol: whoever has a code of one use, and besides whoever these let in.

    `token` is one that all devices share: whoever learns it enrols as many devices as they like. `attestation` is the
    operator's own function. `anybody` needs nothing at all. `days` is how long a ticket lasts.

    >>> Admission().token is None
    True
    """

    token: str | None = field(default=None, repr=False)
    attestation: Attestation | None = None
    anybody: bool = False
    days: float = 90


class SeatTask(NamedTuple):
    """What a device must answer: a message of the protocol; with an invitation, the task as well."""

    session: bytes
    stage: int
    task: str | None
    message: bytes
    until: datetime


class Seat(Protocol):
    """A device's place in a sum that runs (`shard.ShardSeat`)."""

    @property
    def longest(self) -> int:
        """Bytes of the longest answer that it may give."""

    def work(self) -> SeatTask | None:
        """What it is asked now, if anything."""

    def load(self, size: int) -> None:
        """So many bytes went to it."""

    async def answer(self, message: bytes, *also: Write) -> None:
        """Its answer to this stage, with what is written in the same transaction."""

    async def decline(self, reason: str) -> None:
        """It takes no part any more, for this reason; `ConversationError` where it has answered this stage."""


@dataclass(eq=False)
class Device:
    """An enrolled device as the server knows it: when it was last heard of (monotonic), and where it has a seat.

    Its ticket ends at `expires` (seconds since 1970); one that is `revoked` is nobody's any more. `head` is the last
    of its account that it has deposited, which it alone can read.
    """

    name: str
    identity: bytes
    ticket: bytes
    expires: float = inf
    revoked: bool = False
    seen: float = -inf
    head: bytes = b""
    seats: dict[bytes, Seat] = field(default_factory=dict)

    def heard(self) -> None:
        """It is there."""
        self.seen = monotonic()

    def deposit(self, head: bytes) -> tuple[Write, ...]:
        """The statement that keeps this head, to be written with what was charged; none where it is kept already."""
        return () if head in (b"", self.head) else (Write(_HEAD, (head, self.name)),)


class EnrolledDevices:
    """Every device, in memory: a poll asks no database."""

    def __init__(self, store: CampaignStore, admission: Admission) -> None:
        self._store, self.admission = store, admission
        self.codes = EnrolmentCodes(store)
        self._by_ticket: dict[bytes, Device] = {}
        self._by_identity: dict[bytes, Device] = {}
        self._revoked = 0
        rows = store.read("SELECT device, identity, ticket, expires, revoked, head FROM devices")
        for name, identity, ticket, expires, revoked, head in rows:
            ends = datetime.fromisoformat(expires).timestamp()
            known = bytes(identity), bytes(ticket), ends, revoked is not None
            device = Device(name, *known, head=bytes(head or b""))
            self._by_identity[device.identity] = device
            if revoked is None:
                self._by_ticket[device.ticket] = device
            else:
                self._revoked += 1

    def __len__(self) -> int:
        return len(self._by_identity) - self._revoked

    def __iter__(self) -> Iterator[Device]:
        return iter([device for device in list(self._by_identity.values()) if not device.revoked])

    def holder(self, ticket: str) -> Device | None:
        """The device that was given this ticket, if it has not ended. O(1)."""
        device = self._by_ticket.get(kept(ticket))
        return device if device is not None and device.expires > _now() else None

    def device(self, identity: bytes) -> Device:
        """The device of an identity that is, or was, enrolled."""
        return self._by_identity[identity]

    def known(self, identity: bytes) -> bool:
        """Whether an identity is, or was, enrolled."""
        return identity in self._by_identity

    def recent(self, seconds: float) -> list[Device]:
        """Those heard of in the last `seconds`: O(devices)."""
        since = monotonic() - seconds
        return [device for device in list(self._by_identity.values()) if device.seen >= since and not device.revoked]

    async def enrol(self, identity: bytes, token: str, nonce: bytes = b"") -> tuple[Device, str]:
        """The device and its new ticket, on the disk when this returns; its proof has been checked.

        `Refused` for an identity that is revoked, or that is new and shows nothing that admits it. An identity that is
        known is the same device as before, and needs no token; its older ticket opens nothing any more.
        """
        name, ticket = named(identity), fresh()
        known = self._by_identity.get(identity)
        if known is not None and known.revoked:
            raise Refused("this device was revoked by the server's operator: it cannot enrol here any more")
        expires = _now() + self.admission.days * 86_400 * (0.9 + 0.1 * int.from_bytes(os.urandom(2), "big") / 65_536)
        now, end = instant(), instant(datetime.fromtimestamp(expires, UTC))
        write = Write(_ENROL, (name, identity, kept(ticket), now, end))
        if known is not None or await self._admitted(identity, token, nonce):
            await self._store.write(write)
        else:
            await self.codes.use(token, name, write)
        device = self._by_identity.setdefault(identity, Device(name, identity, b""))
        if device.revoked:  # while the disk was waited for
            await self._store.write(Write(_REVOKE, (instant(), os.urandom(32), name)))
            raise Refused("this device was revoked by the server's operator: it cannot enrol here any more")
        self._by_ticket.pop(device.ticket, None)
        device.ticket, device.expires = kept(ticket), expires
        self._by_ticket[device.ticket] = device
        return device, ticket

    async def _admitted(self, identity: bytes, token: str, nonce: bytes) -> bool:
        """Whether this needs no code. `Refused` where a code is not what was shown either."""
        admission = self.admission
        if admission.anybody or (admission.token is not None and same(token, admission.token)):
            return True
        if spelled(token) is not None:
            return False
        if admission.attestation is not None:
            await attest(admission.attestation, token, identity, nonce)
            return True
        raise Refused("this is no enrolment code or token of the server's: ask the campaign's operator for one")

    async def revoke(self, name: str) -> None:
        """No ticket of this device opens anything from now on; where it takes part in a sum it counts as dropped."""
        device = next((each for each in self._by_identity.values() if each.name == name), None)
        if device is None:
            raise InputError(f"no device {name!r:.40} is enrolled: `hazemap server devices` lists them")
        if not device.revoked:
            self._by_ticket.pop(device.ticket, None)
            device.revoked, self._revoked = True, self._revoked + 1
        await self._store.write(Write(_REVOKE, (instant(), os.urandom(32), name)))
        for seat in list(device.seats.values()):
            with suppress(ConversationError):  # it has answered this stage, and will not answer the next
                await seat.decline("revoked by the operator")

    async def all(self) -> list[dict[str, Any]]:
        """Every device that was ever enrolled, the oldest first, and seconds since it was heard of."""
        names = ("device", "enrolled", "expires", "revoked")
        rows = [dict(zip(names, row, strict=True)) for row in await asyncio.to_thread(self._store.read, _ALL)]
        seen = {device.name: device.seen for device in list(self._by_identity.values())}
        now = monotonic()
        for row in rows:
            since = now - seen.get(row["device"], -inf)
            row["silent"] = round(since, 1) if since < inf else None
        return rows


def _now() -> float:
    return datetime.now(UTC).timestamp()


def named(identity: bytes) -> str:
    """What a device is called by people: 64 bits of a hash of its identity.

    >>> named(bytes(32))
    'ee5702d297e516eb'
    """
    if len(identity) != 32:
        raise InputError(f"an identity has 32 bytes, not {len(identity)}")
    return sha256(b"hazemap device" + identity).hexdigest()[:16]
