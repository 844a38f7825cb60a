"""The enrolled devices: challenges, one-time codes, attestation and tickets.

A device proves that it holds the private key of its identity, by answering a challenge of this very server; then it is
known by a ticket, of which only the hash is stored. Tickets end by the server's clock; a device gets another by proving
its identity again. What stands against many identities of one person (sybils) is how a new one is admitted: codes of
one use, the operator's own attestation, or a token that all share, which is weak.

A challenge is a time, a random number, and a MAC of both with origin and identity under a key of this process, so the
server stores nothing for devices that only ask. What was answered is remembered until it would have ended. An enrolment
code has 100 random bits and is found by its hash: a stolen database does not help to guess one, and the time of an
answer says nothing about it. A key of the database ensures that it is used once.
"""

import asyncio
import logging
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from hmac import compare_digest
from hmac import digest as mac
from importlib import import_module
from math import inf
from time import monotonic
from typing import Any, NamedTuple, Protocol, cast
from urllib.parse import urlsplit

from hazemap.errors import ConversationError, InputError, Refused
from hazemap.federated.protocols.secure_aggregation.enrolment_proof import (
    CHALLENGE,
    Challenge,
    enrolment_statement,
    origin,
)
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.service.access_tokens import fresh, kept, same
from hazemap.federated.service.store import Write, instant
from hazemap.privacy.signing_identities import KEY, Identity, verified

LIFE = 120.0
"""Seconds between a challenge and its answer; only the server's clock counts."""
MOST_ANSWERED = 100_000
"""Answered challenges that are remembered at a time; beyond them nobody enrols for a moment."""
LOCAL = ("localhost", "127.0.0.1", "::1")


class Stale(ConversationError):
    """A challenge that is not, or no longer, this server's: ask for another."""


class OtherServer(ConversationError):
    """A device that means a server of another name."""


def server_identity(secret: str) -> Identity:
    """The server's own identity, from the secret in its folder."""
    return Identity.from_bytes(sha256(b"hazemap server identity 1" + secret.encode()).digest())


@dataclass(eq=False)
class Challenges:
    """Gives challenges out, and takes each answer once.

    `origins` are the server's own names. Without any it serves this machine alone, under each name of it.

    >>> challenges, device = Challenges(Identity.create(), ("https://maps.example",)), Identity.create()
    >>> asked = challenges.given("https://maps.example", device.public)
    >>> answer = asked.answered(device, "https://maps.example", "code")
    >>> challenges.take("https://maps.example", device.public, asked.nonce, "code", answer)
    True
    """

    server: Identity
    origins: Sequence[str] = ()
    clock: Callable[[], float] = monotonic
    _key: bytes = field(default_factory=lambda: os.urandom(32), repr=False)
    _used: OrderedDict[bytes, float] = field(default_factory=OrderedDict)

    def given(self, at: str, identity: bytes) -> Challenge:
        """A challenge for this identity; `OtherServer` where the device sees an origin that is not the server's."""
        if len(identity) != KEY:
            raise InputError(f"an identity has {KEY} bytes, not {len(identity)}")
        self._own(at)
        head = int(self.clock() * 1_000).to_bytes(8, "big") + os.urandom(16)
        return Challenge.signed(self.server, at, identity, head + self._mac(head, at, identity))

    def take(self, at: str, identity: bytes, nonce: bytes, token: str, signature: bytes) -> bool:
        """Whether the identity made this signature; the challenge is used up if it did. `Stale` for an old one."""
        self._own(at)
        if len(identity) != KEY or len(nonce) != CHALLENGE:
            raise Stale("this challenge is not the server's: ask for another")
        now, given = self.clock(), int.from_bytes(nonce[:8], "big") / 1_000
        while self._used and next(iter(self._used.values())) < now:
            self._used.popitem(last=False)
        if not compare_digest(nonce[24:], self._mac(nonce[:24], at, identity)) or not 0 <= now - given + 1 <= LIFE + 1:
            raise Stale("this challenge is not the server's, or it is older than two minutes: ask for another")
        if nonce in self._used:
            raise Stale("this challenge was answered before: ask for another")
        if len(self._used) >= MOST_ANSWERED:
            raise Stale("too many devices enrol at once: ask for another challenge in a minute")
        if not verified(identity, signature, enrolment_statement(at, self.server.public, nonce, identity, token)):
            return False
        self._used[nonce] = now + LIFE + 1
        return True

    def _own(self, at: str) -> None:
        if origin(at) != at:
            raise InputError(f"an origin is written as {origin(at)}; found {at!r:.80}")
        if at in self.origins or (not self.origins and urlsplit(at).hostname in LOCAL):
            return
        names = ", ".join(self.origins) or "a name of its own machine"
        raise OtherServer(f"this server is {names}, not {at}: use that address, or ask its operator to add --url {at}")

    def _mac(self, head: bytes, at: str, identity: bytes) -> bytes:
        return mac(self._key, head + identity + at.encode(), "sha256")[: CHALLENGE - 24]


ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's: no I, L, O or U."""
LETTERS, GROUP = 20, 5
MOST_CODES, LONGEST = 100_000, 3_650
"""Codes made at a time, and days that they last, at most."""

_FIND = (
    "SELECT codes.expires, code_uses.used FROM codes LEFT JOIN code_uses ON code_uses.code = codes.code "
    "WHERE codes.code = ?"
)
_COUNT = "SELECT count(*) FROM codes LEFT JOIN code_uses ON code_uses.code = codes.code WHERE code_uses.code IS NULL"


class CodeInUse(ConversationError):
    """A code that another enrolment is using at this moment."""


def made_up() -> str:
    """A new code.

    >>> len(made_up()), spelled(made_up().lower().replace("-", " ")) is None
    (23, False)
    """
    bits = int.from_bytes(os.urandom(13), "big")
    letters = "".join(ALPHABET[bits >> 5 * at & 31] for at in range(LETTERS))
    return "-".join(letters[at : at + GROUP] for at in range(0, LETTERS, GROUP))


def spelled(text: str) -> str | None:
    """A code as it was made, however it was typed; `None` for what is no code.

    >>> spelled("o1iL7 abcde 00000-zzzzz")
    '01117-ABCDE-00000-ZZZZZ'
    """
    letters = text.upper().replace("-", "").replace(" ", "").translate(str.maketrans("OIL", "011"))
    if len(letters) != LETTERS or not set(letters) <= set(ALPHABET):
        return None
    return "-".join(letters[at : at + GROUP] for at in range(0, LETTERS, GROUP))


class EnrolmentCodes:
    """The codes of a server's store."""

    def __init__(self, store: CampaignStore) -> None:
        self._store = store
        self._claimed: set[bytes] = set()

    async def make(self, number: int, days: int) -> list[str]:
        """New codes, on the disk when this returns: the only time that anybody sees them."""
        if not 1 <= number <= MOST_CODES or not 1 <= days <= LONGEST:
            raise InputError(f"1 to {MOST_CODES:,} codes of 1 to {LONGEST:,} days are made at a time")
        codes = [made_up() for _ in range(number)]
        now = datetime.now(UTC)
        end = instant(now + timedelta(days=days))
        sql = "INSERT INTO codes (code, issued, expires) VALUES (?, ?, ?)"
        await self._store.write(*(Write(sql, (kept(code), instant(now), end)) for code in codes))
        return codes

    async def use(self, text: str, device: str, *writes: Write) -> None:
        """Use a code for a device, together with these writes; `Refused` unless it is good and was never used."""
        code = spelled(text)
        if code is None:
            raise Refused("this is no enrolment code: a code has 20 letters and digits in four groups")
        key = kept(code)
        if key in self._claimed:
            raise CodeInUse("this code is being used at this moment: try again")
        self._claimed.add(key)
        try:
            rows = await asyncio.to_thread(self._store.read, _FIND, key)
            if not rows:
                raise Refused("the server does not know this enrolment code: ask the campaign's operator for one")
            [(expires, used)] = rows
            if used is not None:
                raise Refused("this enrolment code was used before: each serves one device; ask for another")
            if expires <= instant():
                raise Refused(f"this enrolment code ended on {expires}: ask the campaign's operator for another")
            use = Write("INSERT INTO code_uses (code, device, used) VALUES (?, ?, ?)", (key, device, instant()))
            await self._store.write(use, *writes)
        finally:
            self._claimed.discard(key)

    def left(self) -> int:
        """How many were never used, old ones among them."""
        [(number,)] = self._store.read(_COUNT)
        return int(number)


log = logging.getLogger("hazemap.federated.server")

Attestation = Callable[[str, bytes, bytes], bool]
"""The operator's own check, `function(token, identity, nonce)`: the device's token, its public key and the challenge.

It returns whether the device may enrol. A token that can be copied should cover the identity or the nonce.
"""
PATIENCE = 10.0
"""Seconds for an answer."""
_THREADS = ThreadPoolExecutor(8, "attestation")
"""Of its own: a function that hangs keeps nobody waiting but those who want to enrol."""
_NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def attestation(name: str) -> Attestation:
    """The function of a name `module:function`.

    >>> attestation("hmac:nothing")
    Traceback (most recent call last):
    hazemap.errors.InputError: --attestation names a function as module:function; the module hmac has no nothing
    """
    if not _NAME.fullmatch(name):
        raise InputError(f"--attestation names a function as module:function; found {name!r:.80}")
    module, _, function = name.partition(":")
    try:
        found = getattr(import_module(module), function, None)
    except ImportError as error:
        raise InputError(
            f"--attestation names a function as module:function; {module} cannot be imported ({type(error).__name__}): "
            "see that it is installed, or that PYTHONPATH holds its folder"
        ) from error
    if not callable(found):
        raise InputError(f"--attestation names a function as module:function; the module {module} has no {function}")
    return cast("Attestation", found)


async def attest(check: Attestation, token: str, identity: bytes, nonce: bytes) -> None:
    """`Refused` unless the operator's function says exactly True, in time and without an error."""
    try:
        async with asyncio.timeout(PATIENCE):
            said = await asyncio.get_running_loop().run_in_executor(_THREADS, check, token, identity, nonce)
    except Exception as error:
        log.error("the attestation function failed (%s)", type(error).__name__)
        raise Refused("the server could not check this attestation: try again later, or ask its operator") from error
    if said is not True:
        raise Refused("the server does not accept this attestation: ask the campaign's operator")


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
