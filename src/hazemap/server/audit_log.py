"""Who did what: a log that only grows, in which each entry's hash covers the one before it.

Whoever changes, removes or inserts an entry must compute all later hashes anew. So the last hash, noted elsewhere from
time to time, proves everything before it.
"""

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from hazemap.codec import Limits, parsed
from hazemap.errors import CodecError
from hazemap.server.roles import Principal
from hazemap.server.store import CampaignStore, Write, instant

BEGINNING = bytes(32)
"""What the first entry has before it."""
PAGE = 1_000
FIELDS = ("seq", "time", "who", "role", "act", "object", "outcome", "previous")
_LINE = Limits(length=4_096, items=32, work=0, depth=1)
_LAST = "SELECT seq, digest FROM audit_log ORDER BY seq DESC LIMIT 1"
_SOME = "SELECT entry, digest FROM audit_log WHERE seq > ? ORDER BY seq LIMIT ?"
_ADD = "INSERT INTO audit_log (seq, entry, digest) VALUES (?, ?, ?)"


@dataclass(frozen=True)
class LogHead:
    """The last entry of a log that was checked.

    >>> checked([])
    LogHead(entries=0, digest='0000000000000000000000000000000000000000000000000000000000000000')
    """

    entries: int
    digest: str


def checked(lines: Iterable[str]) -> LogHead:
    """Check a log's JSON lines from its beginning; `CodecError` names the first entry that does not follow."""
    number, previous = 0, BEGINNING.hex()
    for number, line in enumerate(lines, 1):
        wrong = f"the audit log is broken at entry {number:,}"
        try:
            fields = parsed(line, _LINE)
            digest = fields.pop("digest")
        except (CodecError, KeyError, TypeError, AttributeError) as error:
            raise CodecError(f"{wrong}: this line is not an entry") from error
        if tuple(fields) != FIELDS or fields["seq"] != number:
            raise CodecError(f"{wrong}: one was removed, added or changed")
        if fields["previous"] != previous or _digest(_text(fields)).hex() != digest:
            raise CodecError(f"{wrong}: it, or one before it, was changed")
        previous = digest
    return LogHead(number, previous)


def _text(fields: dict[str, Any]) -> str:
    """An entry as it is hashed: ASCII, one line, whatever the names in it are."""
    return json.dumps(fields, separators=(",", ":"))


def _digest(text: str) -> bytes:
    return sha256(b"hazemap audit 1" + text.encode()).digest()


class AuditLog:
    """The log of a server's store. Entries are numbered by the event loop and written in their order."""

    def __init__(self, store: CampaignStore) -> None:
        self._store = store
        rows = store.read(_LAST)
        self.entries, self._last = (int(rows[0][0]), bytes(rows[0][1])) if rows else (0, BEGINNING)

    async def record(self, who: Principal, act: str, what: str, outcome: str) -> None:
        """One more entry, on the disk when this returns."""
        self.entries += 1
        values = (self.entries, instant(), who.name, who.role.value, act, what[:200], outcome[:200], self._last.hex())
        text = _text(dict(zip(FIELDS, values, strict=True)))
        self._last = _digest(text)
        await self._store.write(Write(_ADD, (self.entries, text, self._last)))

    @asynccontextmanager
    async def recorded(self, who: Principal, act: str, what: str = "") -> AsyncIterator[None]:
        """Note that something is asked for before it is done, and afterwards what became of it."""
        await self.record(who, act, what, "asked")
        try:
            yield
        except Exception as error:
            await self.record(who, act, what, f"refused: {type(error).__name__}")
            raise
        await self.record(who, act, what, "done")

    def lines(self, after: int) -> list[str]:
        """Up to a thousand entries after this one, as JSON lines."""
        rows = self._store.read(_SOME, after, PAGE)
        return [f'{text[:-1]},"digest":"{bytes(digest).hex()}"}}' for text, digest in rows]
