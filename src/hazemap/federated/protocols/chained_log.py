"""Logs that only grow, as lines: each entry's hash covers the one before it.

Whoever changes, removes or inserts an entry must compute all later hashes anew. So the last hash, noted elsewhere from
time to time, proves everything before it. Writers keep such a log in a table (`federated.server.roles`); readers check
its lines from the beginning, or go on from a head that they checked before.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from hazemap.codec import Limits, parsed
from hazemap.errors import CodecError

BEGINNING = bytes(32)
"""What the first entry has before it."""
PAGE = 1_000
"""Entries that a reader is given at a time."""


@dataclass(frozen=True)
class LogHead:
    """The last entry of a log that was checked.

    >>> LogHead(0, BEGINNING.hex()) == LogHead()
    True
    """

    entries: int = 0
    digest: str = BEGINNING.hex()


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
        head = LogHead()
        for line in lines:
            head, _ = self.entry(line, head)
        return head

    def entry(self, line: str, head: LogHead) -> tuple[LogHead, dict[str, Any]]:
        """The fields of the entry that follows a head, and the head that it makes; `CodecError` if it does not."""
        number = head.entries + 1
        wrong = f"{self.name} is broken at entry {number:,}"
        try:
            fields = parsed(line, self.line)
            digest = fields.pop("digest")
        except (CodecError, KeyError, TypeError, AttributeError) as error:
            raise CodecError(f"{wrong}: this line is not an entry") from error
        if tuple(fields) != self.fields or type(fields["seq"]) is not int or fields["seq"] != number:
            raise CodecError(f"{wrong}: one was removed, added or changed")
        if fields["previous"] != head.digest or self.digest(self.text(fields)).hex() != digest:
            raise CodecError(f"{wrong}: it, or one before it, was changed")
        return LogHead(number, digest), fields

    def text(self, fields: dict[str, Any]) -> str:
        """An entry as it is hashed: ASCII, one line, whatever the names in it are."""
        return json.dumps(fields, separators=(",", ":"))

    def digest(self, text: str) -> bytes:
        """The hash of an entry."""
        return sha256(self.domain + text.encode()).digest()
