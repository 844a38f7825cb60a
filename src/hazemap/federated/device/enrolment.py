"""Who a device is: its identity, the secret that draws its samples, and the server it answers."""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hazemap.codec import Limits, parsed
from hazemap.errors import CodecError, Refused, Unreachable
from hazemap.federated.device.http_client import HttpReply, HttpTransport, one_line
from hazemap.federated.device.store.encrypted_store import EncryptedStore, StoreWrite
from hazemap.federated.protocols.secure_aggregation.enrolment_proof import CHALLENGE, VERSION, Challenge, origin
from hazemap.privacy.signing_identities import KEY, SIGNATURE, Identity


@dataclass(frozen=True)
class Enrolment:
    """What a device knows of itself; all of it secret but the server's address.

    `sampling` draws which rows count where there are too many; a device that is not enrolled yet has no `server`.
    `pinned` is the identity that the server showed when the device first enrolled there, in hexadecimal digits.
    `person` is whose table's rows it was given, where a store holds the devices of many: it never leaves the store.

    >>> Enrolment.create().server is None
    True
    """

    identity: bytes = field(repr=False)
    sampling: bytes = field(repr=False)
    server: str | None = None
    name: str | None = None
    ticket: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    pinned: str | None = None
    person: str | None = field(default=None, repr=False)

    @classmethod
    def create(cls) -> "Enrolment":
        """A new identity, enrolled nowhere."""
        return cls(Identity.create().to_bytes(), os.urandom(32))

    def enrolled(self, server: str, token: str, name: str, ticket: str, pinned: str | None = None) -> "Enrolment":
        """The same device, known to a server."""
        return replace(self, server=server, token=token, name=name, ticket=ticket, pinned=pinned)

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
    return _added(store, [None] * number)


def _added(store: EncryptedStore, people: Sequence[str | None]) -> list[int]:
    with store.writing() as database:
        added = []
        for person in people:
            database.execute("INSERT INTO devices (sealed) VALUES (x'')")
            [device] = database.execute("SELECT last_insert_rowid()").fetchone()
            database.execute(*saved(store, device, replace(Enrolment.create(), person=person)))
            added.append(int(device))
    return added


def saved(store: EncryptedStore, device: int, enrolment: Enrolment) -> StoreWrite:
    """The statement that keeps what a device knows of itself."""
    sealed = store.seal("devices", device, 0, enrolment.to_bytes())
    return StoreWrite("UPDATE devices SET sealed = ? WHERE device = ?", (sealed, device))


def read(store: EncryptedStore, device: int) -> Enrolment:
    """What a device knows of itself."""
    [(sealed,)] = store.read("SELECT sealed FROM devices WHERE device = ?", device)
    return Enrolment.from_bytes(store.unseal("devices", device, 0, sealed))


def devices_of(store: EncryptedStore, people: Iterable[str]) -> dict[str, int]:
    """The device of each person of a table, in one transaction; who has none gets one. O(devices)."""
    known = {person: device for device in devices(store) if (person := read(store, device).person) is not None}
    new = [person for person in people if person not in known]
    return known | dict(zip(new, _added(store, new) if new else (), strict=True))


_TICKET = re.compile("[!-~]{1,4096}")
WORD = Limits(length=1 << 14, items=16, work=0, depth=1)
"""What a server says to an enrolment."""


async def enrolled(
    enrolment: Enrolment, http_transport: HttpTransport, server: str, token: str, moved: bool = False
) -> Enrolment:
    """The device as this server knows it, with a ticket; `Refused` where the server does not take it.

    The device signs the server's challenge, origin and identity, its own, and the token: nobody enrols an identity
    whose key they do not hold, and the proof is worth nothing at another server. A server that was known with another
    identity is refused, unless the person says that it has `moved`.
    """
    identity, at = Identity.from_bytes(enrolment.identity), origin(server)
    challenge = await _challenged(http_transport, at, identity)
    if not challenge.genuine(at, identity.public):
        raise Refused(f"the server's challenge is not signed for {at}: another server may stand between")
    known = enrolment.server is not None and origin(enrolment.server) == at
    if known and enrolment.pinned not in (None, challenge.server.hex()) and not moved:
        raise Refused(
            f"{at} shows another identity than when this device enrolled there first: ask its operator whether its "
            "identity.key was lost, and only then use `hazemap device enrol --new-identity`"
        )
    content = {
        "version": VERSION,
        "identity": identity.public.hex(),
        "origin": at,
        "token": token,
        "challenge": challenge.nonce.hex(),
        "signature": challenge.answered(identity, at, token).hex(),
    }
    answer = await _posted(http_transport, "/v1/enrol", content)
    if answer.status == 403:
        why = _error(answer.content)
        raise Refused(f"the server does not enrol this device: {why or 'ask the operator of the campaign for a code'}")
    if answer.status != 201:
        raise Unreachable(f"the server did not enrol this device (HTTP {answer.status})", answer.wait)
    name, ticket = _texts(answer.content, "device", "ticket")
    if not _TICKET.fullmatch(ticket):
        raise CodecError("the server's ticket is not one word of plain letters")
    return enrolment.enrolled(server, token, one_line(name, 200), ticket, challenge.server.hex())


async def _challenged(http_transport: HttpTransport, at: str, identity: Identity) -> Challenge:
    """What the server wants signed."""
    content = {"version": VERSION, "identity": identity.public.hex(), "origin": at}
    answer = await _posted(http_transport, "/v1/challenge", content)
    if answer.status in (404, 405):
        raise Refused("the server is older than this device, or no hazemap server: ask its operator to update it")
    if answer.status == 421:
        raise Refused(f"the server does not go by the name {at}: {_error(answer.content) or 'ask its operator'}")
    if answer.status != 200:
        raise Unreachable(f"the server gave no challenge (HTTP {answer.status})", answer.wait)
    fields = _texts(answer.content, "server", "challenge", "signature")
    try:
        server, nonce, signature = map(bytes.fromhex, fields)
    except ValueError:
        raise _not_agreed() from None
    if (len(server), len(nonce), len(signature)) != (KEY, CHALLENGE, SIGNATURE):
        raise _not_agreed()
    return Challenge(server, nonce, signature)


async def _posted(http_transport: HttpTransport, path: str, content: Mapping[str, object]) -> HttpReply:
    return await http_transport.send("POST", path, content=json.dumps(content).encode(), kind="application/json")


def _not_agreed() -> CodecError:
    """Made anew each time: an error keeps every traceback that it was raised with."""
    return CodecError("the server's word on the enrolment is not written as agreed")


def _texts(content: bytes, *names: str) -> list[str]:
    """These fields of an answer, each a text."""
    try:
        fields = parsed(content, WORD)
        found = [fields[name] for name in names]
    except (CodecError, KeyError, TypeError):
        raise _not_agreed() from None
    if not all(isinstance(each, str) for each in found):
        raise _not_agreed()
    return found


def _error(content: bytes) -> str:
    """Why a server says no, in one printable line, or nothing."""
    try:
        [words] = _texts(content, "error")
    except CodecError:
        return ""
    return one_line(words, 300)
