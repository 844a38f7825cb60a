"""Logs that only grow: each entry's hash covers the one before it.

Whoever changes, removes or inserts an entry must compute all later hashes anew. So the last hash, noted elsewhere from
time to time, proves everything before it.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from hazemap.codec import Limits, parsed
from hazemap.errors import CodecError
from hazemap.server.campaign_store import CampaignStore
from hazemap.service.store import Write

BEGINNING = bytes(32)
"""What the first entry has before it."""
PAGE = 1_000


@dataclass(frozen=True)
class LogHead:
    """The last entry of a log that was checked.

    >>> LogHead(0, BEGINNING.hex()).entries
    0
    """

    entries: int
    digest: str


@dataclass(frozen=True)
class LogFormat:
    """What one kind of log is called, what its hashes begin with, the fields of an entry, and the longest line.

    The first field is the number `seq`, the last one `previous`, the hash of the entry before.

    >>> LogFormat("a log", b"hazemap example 1", ("seq", "what", "previous"), Limits(99, 9, 0, 1)).checked([]).entries
    0
    """

    name: str
    domain: bytes
    fields: tuple[str, ...]
    line: Limits

    def checked(self, lines: Iterable[str]) -> LogHead:
        """Check a log's JSON lines from its beginning; `CodecError` names the first entry that does not follow."""
        number, previous = 0, BEGINNING.hex()
        for number, line in enumerate(lines, 1):
            wrong = f"{self.name} is broken at entry {number:,}"
            try:
                fields = parsed(line, self.line)
                digest = fields.pop("digest")
            except (CodecError, KeyError, TypeError, AttributeError) as error:
                raise CodecError(f"{wrong}: this line is not an entry") from error
            if tuple(fields) != self.fields or fields["seq"] != number:
                raise CodecError(f"{wrong}: one was removed, added or changed")
            if fields["previous"] != previous or self.digest(self.text(fields)).hex() != digest:
                raise CodecError(f"{wrong}: it, or one before it, was changed")
            previous = digest
        return LogHead(number, previous)

    def text(self, fields: dict[str, Any]) -> str:
        """An entry as it is hashed: ASCII, one line, whatever the names in it are."""
        return json.dumps(fields, separators=(",", ":"))

    def digest(self, text: str) -> bytes:
        """The hash of an entry."""
        return sha256(self.domain + text.encode()).digest()


class HashChain:
    """A log in a table (seq, entry, digest) of a server's store, which only it writes to.

    Entries are numbered by the event loop and written in their order.
    """

    def __init__(self, store: CampaignStore, table: str, shape: LogFormat) -> None:
        self._store, self._shape = store, shape
        self._add = f"INSERT INTO {table} (seq, entry, digest) VALUES (?, ?, ?)"  # noqa: S608 - a table of ours
        self._some = f"SELECT entry, digest FROM {table} WHERE seq > ? ORDER BY seq LIMIT ?"  # noqa: S608
        rows = store.read(f"SELECT seq, digest FROM {table} ORDER BY seq DESC LIMIT 1")  # noqa: S608
        self.entries, self._last = (int(rows[0][0]), bytes(rows[0][1])) if rows else (0, BEGINNING)

    async def append(self, *values: Any, also: tuple[Write, ...] = ()) -> None:
        """One more entry, on the disk when this returns, in one transaction with what else is to be written."""
        self.entries += 1
        fields = dict(zip(self._shape.fields, (self.entries, *values, self._last.hex()), strict=True))
        text = self._shape.text(fields)
        self._last = self._shape.digest(text)
        await self._store.write(*also, Write(self._add, (self.entries, text, self._last)))

    def lines(self, after: int) -> list[str]:
        """Up to a thousand entries after this one, as JSON lines."""
        rows = self._store.read(self._some, after, PAGE)
        return [f'{text[:-1]},"digest":"{bytes(digest).hex()}"}}' for text, digest in rows]
