"""Who a device is: its identity, the secret that draws its samples, and the server it answers."""

import json
import os
from dataclasses import dataclass, field, replace

from hazemap.codec import Limits, parsed
from hazemap.device.encrypted_store import EncryptedStore, Write
from hazemap.device.http_client import HttpTransport
from hazemap.errors import CodecError, Refused, Unreachable
from hazemap.protocols.secure_aggregation.signing_identities import Identity, enrolment_statement


@dataclass(frozen=True)
class Enrolment:
    """What a device knows of itself; all of it secret but the server's address.

    `sampling` draws which rows count where there are too many; a device that is not enrolled yet has no `server`.

    >>> Enrolment.create().server is None
    True
    """

    identity: bytes = field(repr=False)
    sampling: bytes = field(repr=False)
    server: str | None = None
    name: str | None = None
    ticket: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)

    @classmethod
    def create(cls) -> "Enrolment":
        """A new identity, enrolled nowhere."""
        return cls(Identity.create().to_bytes(), os.urandom(32))

    def enrolled(self, server: str, token: str, name: str, ticket: str) -> "Enrolment":
        """The same device, known to a server."""
        return replace(self, server=server, token=token, name=name, ticket=ticket)

    def to_bytes(self) -> bytes:
        """As it is sealed."""
        secrets = {"identity": self.identity.hex(), "sampling": self.sampling.hex()}
        return json.dumps({**vars(self), **secrets}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Enrolment":
        """What `to_bytes` wrote."""
        fields = json.loads(data)
        secrets = {name: bytes.fromhex(fields[name]) for name in ("identity", "sampling")}
        return cls(**{**fields, **secrets})


def devices(store: EncryptedStore) -> list[int]:
    """The numbers of all devices of a store."""
    return [device for (device,) in store.read("SELECT device FROM devices ORDER BY device")]


def add(store: EncryptedStore, number: int = 1) -> list[int]:
    """`number` new devices, in one transaction."""
    with store.writing() as database:
        added = []
        for _ in range(number):
            database.execute("INSERT INTO devices (sealed) VALUES (x'')")
            [device] = database.execute("SELECT last_insert_rowid()").fetchone()
            database.execute(*saved(store, device, Enrolment.create()))
            added.append(int(device))
    return added


def saved(store: EncryptedStore, device: int, enrolment: Enrolment) -> Write:
    """The statement that keeps what a device knows of itself."""
    sealed = store.seal("devices", device, 0, enrolment.to_bytes())
    return Write("UPDATE devices SET sealed = ? WHERE device = ?", (sealed, device))


def read(store: EncryptedStore, device: int) -> Enrolment:
    """What a device knows of itself."""
    [(sealed,)] = store.read("SELECT sealed FROM devices WHERE device = ?", device)
    return Enrolment.from_bytes(store.unseal("devices", device, 0, sealed))


WORD = Limits(length=1 << 14, items=16, work=0, depth=1)
"""What a server says to an enrolment."""


async def enrolled(enrolment: Enrolment, http_transport: HttpTransport, server: str, token: str) -> Enrolment:
    """The device as this server knows it, with a ticket; `Refused` where the server does not take it.

    The signature is over `PROOF` ‖ token ‖ identity: nobody enrols an identity whose key they do not hold.
    """
    identity = Identity.from_bytes(enrolment.identity)
    proof = identity.sign(enrolment_statement(token, identity.public))
    content = {"identity": identity.public.hex(), "token": token, "signature": proof.hex()}
    answer = await http_transport.send(
        "POST", "/v1/enrol", content=json.dumps(content).encode(), kind="application/json"
    )
    if answer.status == 403:
        raise Refused("the server does not know this token: ask the operator of the campaign for one")
    if answer.status != 201:
        raise Unreachable(f"the server did not enrol this device (HTTP {answer.status})", answer.wait)
    try:
        fields = parsed(answer.content, WORD)
        name, ticket = fields["device"], fields["ticket"]
    except (CodecError, KeyError, TypeError):
        raise CodecError("the server's word on the enrolment is not written as agreed") from None
    if not isinstance(name, str) or not isinstance(ticket, str):
        raise CodecError("the server's word on the enrolment is not written as agreed")
    if not (ticket.isascii() and ticket.isprintable()) or " " in ticket:
        raise CodecError("the server's ticket is not one word of plain letters")
    return enrolment.enrolled(server, token, name, ticket)
