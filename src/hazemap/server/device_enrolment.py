"""The enrolled devices: each has an identity of its own, and shows a ticket.

A device proves that it holds the private key of its identity, once; then it is known by a ticket, of which only the
hash is stored. Only the enrolment token stands against many identities of one person (sybils): the operator who hands
out tokens vouches that each device is a person.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from hazemap.errors import InputError, Refused
from hazemap.protocols.secure_aggregation.signing_identities import enrolment_statement, verified
from hazemap.server.access_tokens import fresh, kept, same
from hazemap.server.store import CampaignStore, Write, instant

if TYPE_CHECKING:
    from hazemap.server.shard import ShardSeat

_ENROL = (
    "INSERT INTO devices (device, identity, ticket, enrolled) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (device) DO UPDATE SET ticket = excluded.ticket"
)


@dataclass(eq=False)
class Device:
    """An enrolled device as the server knows it: when it was last heard of (monotonic), and where it has a seat."""

    name: str
    identity: bytes
    ticket: bytes
    seen: float = -inf
    seats: "dict[bytes, ShardSeat]" = field(default_factory=dict)

    def heard(self) -> None:
        """It is there."""
        self.seen = monotonic()


class Enrolled:
    """Every device, in memory: a poll asks no database.

    `token` is what a device must know to enrol; with `None` anybody may.
    """

    def __init__(self, store: CampaignStore, token: str | None) -> None:
        self._store, self._token = store, token
        self._by_ticket: dict[bytes, Device] = {}
        self._by_identity: dict[bytes, Device] = {}
        for name, identity, ticket in store.read("SELECT device, identity, ticket FROM devices"):
            self._add(Device(name, bytes(identity), bytes(ticket)))

    def __len__(self) -> int:
        return len(self._by_identity)

    def __iter__(self) -> Iterator[Device]:
        return iter(list(self._by_identity.values()))

    def holder(self, ticket: str) -> Device | None:
        """The device that was given this ticket. O(1)."""
        return self._by_ticket.get(kept(ticket))

    def device(self, identity: bytes) -> Device:
        """The device of an identity that is enrolled."""
        return self._by_identity[identity]

    def recent(self, seconds: float) -> list[Device]:
        """Those heard of in the last `seconds`: O(devices)."""
        since = monotonic() - seconds
        return [device for device in list(self._by_identity.values()) if device.seen >= since]

    async def enrol(self, identity: bytes, token: str, signature: bytes) -> tuple[Device, str]:
        """The device and its new ticket, on the disk when this returns.

        `Refused` for a wrong token or a signature that the identity did not make. An identity that is known is the
        same device as before; its older ticket opens nothing any more.
        """
        if self._token is not None and not same(token, self._token):
            raise Refused("this enrolment token is not the server's: ask the campaign's operator for the right one")
        if len(identity) != 32 or not verified(identity, signature, enrolment_statement(token, identity)):
            raise Refused("the signature does not prove that the device holds the key of its identity")
        ticket = fresh()
        name = named(identity)
        await self._store.write(Write(_ENROL, (name, identity, kept(ticket), instant())))
        device = self._by_identity.get(identity) or Device(name, identity, b"")
        self._by_ticket.pop(device.ticket, None)
        device.ticket = kept(ticket)
        self._add(device)
        return device, ticket

    def _add(self, device: Device) -> None:
        self._by_ticket[device.ticket] = self._by_identity[device.identity] = device


def named(identity: bytes) -> str:
    """What a device is called by people: 64 bits of a hash of its identity.

    >>> named(bytes(32))
    'ee5702d297e516eb'
    """
    if len(identity) != 32:
        raise InputError(f"an identity has 32 bytes, not {len(identity)}")
    return sha256(b"hazemap device" + identity).hexdigest()[:16]
