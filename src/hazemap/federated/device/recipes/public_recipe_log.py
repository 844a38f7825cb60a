"""The server's public log of recipes, as a device reads it before it answers one.

A server that wants to ask one person something else than others must keep it out of the log that everybody reads, or
show this person another log. So a device answers a recipe only if its round is in the log, word for word. It keeps the
last entry that it has seen, sealed: a log that was cut or written anew since is refused, whatever is in it.

The log has no proof that one entry is in it but all entries: a process reads it once from the beginning, and then what
is new. Whether others are shown the same log, a device cannot tell: their owners compare `hazemap study recipes`.
"""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256

from hazemap.errors import CodecError, Unreachable
from hazemap.federated.device.http_client import HttpTransport
from hazemap.federated.device.store.encrypted_store import EncryptedStore, StoreWrite
from hazemap.federated.protocols.chained_log import PAGE, LogHead
from hazemap.federated.recipes.recipe import RECIPE_LOG_FORMAT
from hazemap.federated.trust.device_tasks import Task

MOST_ENTRIES = 1 << 17
"""Entries of a log at most: some 30 MB of a process that reads them."""
WORDS = ("name", "version", "sha256", "study", "round", "people")
"""The fields of an entry that its task must agree with."""
LARGEST_PAGE = PAGE * (RECIPE_LOG_FORMAT.line.length + 1)


@dataclass(eq=False)
class PublicRecipeLog:
    """One server's log, shared by the devices of a process: O(new entries) for each reading, 30 µs each.

    `trouble` is why the last reading found no log that goes on from the one before; None where it did.

    >>> PublicRecipeLog().head
    LogHead(entries=0, digest='0000000000000000000000000000000000000000000000000000000000000000')
    """

    head: LogHead = field(default_factory=LogHead)
    trouble: str | None = None
    _digests: bytearray = field(default_factory=bytearray, repr=False)
    _asked: dict[bytes, bytes] = field(default_factory=dict, repr=False)
    _stopped: set[bytes] = field(default_factory=set, repr=False)
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def read(self, http_transport: HttpTransport, task: Task, seen: LogHead) -> None:
        """Read on to the end; `Unreachable` where there is no answer.

        Nothing is read where this task is known to be in the log, and no other process has `seen` more of it.
        """
        async with self._reading:
            if self.trouble is None and task.digest in self._asked and seen.entries <= self.head.entries:
                return
            self.trouble = None
            try:
                while await self._page(http_transport):
                    await asyncio.sleep(0)
            except CodecError as error:
                self.trouble = f"the server's public log does not go on from the one it showed before: {error}"

    def refusal(self, task: Task, seen: LogHead) -> str | None:
        """Why a device that has `seen` so much of the log does not answer this recipe; None where it does."""
        if reason := self.rewritten(seen):
            return reason
        if _hash(task.campaign) in self._stopped:
            return f"the study {task.campaign!r} was stopped, as the server's public log says"
        found, wanted = self._asked.get(task.digest), _asked_of(task)
        if found is None:
            return "this recipe is not in the server's public log, so nobody else can see what this device is asked"
        return None if found == wanted else "the server's public log says something else of this round than its task"

    def rewritten(self, seen: LogHead) -> str | None:
        """Why this is not the log that a device has `seen` so much of before; None where it is."""
        if self.trouble is None and seen.entries and self._digest(seen.entries) != seen.digest:
            return (
                f"the server's public log of recipes was cut or written anew: entry {seen.entries:,}, which this device"
                " has seen, is another now, or gone"
            )
        return self.trouble

    def take(self, lines: Iterable[str]) -> None:
        """Go on by these lines; `CodecError` at the first that does not follow, which is not taken."""
        for line in lines:
            if self.head.entries >= MOST_ENTRIES:
                raise CodecError(f"it has more than the {MOST_ENTRIES:,} entries that this device reads")
            head, entry = RECIPE_LOG_FORMAT.entry(line, self.head)
            if entry["kind"] == "recipe":
                self._asked.setdefault(_digest_of(entry["task"]), _hash([entry[name] for name in WORDS]))
            elif entry["kind"] == "stop":
                self._stopped.add(_hash(entry["study"]))
            self.head = head
            self._digests += bytes.fromhex(head.digest)

    def _digest(self, number: int) -> str:
        """That of an entry that is known; of number 0, what the first entry has before it."""
        return self._digests[32 * (number - 1) : 32 * number].hex() if number else LogHead().digest

    async def _page(self, http_transport: HttpTransport) -> bool:
        """Whether there was a whole page. It begins with the last entry that is known, which must be there."""
        known = self.head.entries
        answer = await http_transport.send("GET", f"/v1/recipes?after={max(0, known - 1)}")
        if answer.status != 200:
            raise Unreachable(f"the server shows no public log of recipes (HTTP {answer.status})", answer.wait)
        if len(answer.content) > LARGEST_PAGE:
            raise CodecError(f"a page of it has more than {LARGEST_PAGE:,} bytes")
        try:
            lines = answer.content.decode("ascii").split("\n")
        except UnicodeDecodeError:
            raise CodecError("it is not written in ASCII") from None
        lines = [line for line in lines if line]
        if len(lines) > PAGE:
            raise CodecError(f"a page of it has more than {PAGE:,} entries")
        if known:
            before = self._digest(known - 1)
            if not lines:
                raise CodecError(f"entry {known:,} is gone")
            first, _ = RECIPE_LOG_FORMAT.entry(lines[0], LogHead(known - 1, before))
            if first != self.head:
                raise CodecError(f"entry {known:,} is another than before")
        new = lines[1:] if known else lines
        self.take(new)
        return len(lines) == PAGE and bool(new)


def _asked_of(task: Task) -> bytes:
    recipe = task.recipe
    if recipe is None:
        return b""
    return _hash([recipe.id, recipe.version, recipe.digest, task.campaign, task.round, task.cohort.people])


def _hash(words: object) -> bytes:
    """What is kept of words that may be long: 32 bytes."""
    return sha256(json.dumps(words).encode()).digest()


def _digest_of(digits: object) -> bytes:
    """A digest in hexadecimal digits; nothing for anything else, which is no task's."""
    try:
        return bytes.fromhex(digits) if isinstance(digits, str) and len(digits) == 64 else b""
    except ValueError:
        return b""


@dataclass(frozen=True)
class SeenRecipeLog:
    """The last entry of one server's log that a device has seen, on its disk; a server is known by its address.

    `log` is what any device of the process has read of it.
    """

    store: EncryptedStore
    device: int
    server: str
    log: PublicRecipeLog = field(default_factory=PublicRecipeLog)

    def seen(self) -> LogHead:
        """The last entry that was seen; number 0 where none was."""
        tag = self._tag()
        found = self.store.read("SELECT entries, sealed FROM logs WHERE device = ? AND tag = ?", self.device, tag)
        for entries, sealed in found:
            return LogHead(entries, json.loads(self.store.unseal("logs", self.device, tag, sealed, entries)))
        return LogHead()

    def refusal(self, task: Task, seen: LogHead) -> str | None:
        """Why a device that had `seen` so much does not answer a task; None where it does, and for maps."""
        return None if task.recipe is None else self.log.refusal(task, seen)

    def kept(self, seen: LogHead) -> tuple[StoreWrite, ...]:
        """The statement that keeps what was read; none where it does not go on from what was seen, or is the same.

        It fails where another process has seen more meanwhile.
        """
        head = self.log.head
        if self.log.rewritten(seen) or head == self.seen():
            return ()
        tag = self._tag()
        sealed = self.store.seal("logs", self.device, tag, json.dumps(head.digest).encode(), head.entries)
        return (
            StoreWrite(
                "INSERT INTO logs VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET entries = excluded.entries,"
                " sealed = excluded.sealed WHERE entries <= excluded.entries",
                (self.device, tag, head.entries, sealed),
            ),
        )

    def forgotten(self) -> tuple[StoreWrite, ...]:
        """The statement that forgets the log: the device's owner says that it is another server now."""
        if not self.seen().entries:
            return ()
        return (StoreWrite("DELETE FROM logs WHERE device = ? AND tag = ?", (self.device, self._tag())),)

    def _tag(self) -> bytes:
        return self.store.tag(self.device, b"recipe log" + self.server.encode())
