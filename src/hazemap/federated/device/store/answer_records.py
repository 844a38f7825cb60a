"""What a device has answered: its sessions of secure sums, and its reports to other servers.

A message is answered once. The reply or the report is kept in the transaction that charges it, before it is sent: after
a crash the same bytes are sent again for the charge that stands. When a session is over its state and keys are deleted,
and when a report has arrived, or will never be taken, its bytes: the tag of each stays.
"""

import json
from dataclasses import dataclass, field, replace
from datetime import datetime
from sqlite3 import Connection
from typing import Final

from hazemap.federated.device.store.encrypted_store import EncryptedStore, StoreWrite

GRACE = 86_400
"""Seconds after its end for which a session, or a report that was not taken, is kept: servers are started again."""

MOST_OPEN, LARGEST_OPEN = 64, 1 << 26
"""Sessions that one device keeps open at a time, and their bytes: a server may invite without end, and never go on."""


@dataclass(frozen=True)
class SessionRecord:
    """One session of one device. `state` is the protocol client's, None before its first answer and when it is over.

    `number` is its line in the log; `task` the JSON text that was agreed to; `until` the server's
    word on how long it lasts, at most a few days (seconds since 1970).
    """

    number: int
    answered: int
    task: str
    until: float
    state: bytes = field(repr=False)

    def next(self, state: bytes, until: float) -> "SessionRecord":
        """After one more answer."""
        return replace(self, answered=self.answered + 1, state=state, until=until)


@dataclass(frozen=True)
class SessionRecords:
    """The sessions of one device."""

    store: EncryptedStore
    device: int

    def find(self, session: bytes) -> SessionRecord | None:
        """A session that is going on; None for one that is not known. Ask `over` about the others."""
        tag = self._tag(session)
        found = self.store.read(
            "SELECT answered, sealed FROM sessions WHERE device = ? AND tag = ? AND sealed IS NOT NULL",
            self.device,
            tag,
        )
        return self._record(tag, *found[0]) if found else None

    def full(self) -> str | None:
        """Why no other session can be begun; None where it can."""
        sql = "SELECT count(*), coalesce(sum(length(sealed)), 0) FROM sessions WHERE device = ? AND sealed IS NOT NULL"
        [(number, size)] = self.store.read(sql, self.device)
        if number < MOST_OPEN and size < LARGEST_OPEN:
            return None
        return (
            f"this device keeps {number:,} sessions of {size:,} bytes open, and begins no other: it leaves those to"
            " which no server comes back, a day after their time"
        )

    def over(self, session: bytes) -> bool:
        """Whether a session was answered or refused, and is closed: it is never answered again."""
        tag = self._tag(session)
        return bool(
            self.store.read("SELECT 1 FROM sessions WHERE device = ? AND tag = ? AND sealed IS NULL", self.device, tag)
        )

    def written(self, session: bytes, record: SessionRecord) -> StoreWrite:
        """The statement that keeps a session after an answer."""
        tag = self._tag(session)
        head = json.dumps({"number": record.number, "task": record.task, "until": record.until}).encode()
        plain = len(head).to_bytes(4, "big") + head + record.state
        sealed = self.store.seal("sessions", self.device, tag, plain, expires=record.answered)
        if record.answered == 1:
            return StoreWrite("INSERT INTO sessions VALUES (?, ?, 1, ?)", (self.device, tag, sealed))
        return StoreWrite(
            "UPDATE sessions SET answered = ?, sealed = ? WHERE device = ? AND tag = ? AND answered = ?"
            " AND sealed IS NOT NULL",
            (record.answered, sealed, self.device, tag, record.answered - 1),
        )

    def closed(self, session: bytes) -> StoreWrite:
        """The statement that ends a session, known or not: its state and keys are gone, its tag stays."""
        return _close(self.device, self._tag(session))

    def forsaken(self, now: datetime) -> list[tuple[SessionRecord, StoreWrite]]:
        """The sessions whose server never came back, without their states, and the statements that end them.

        One is read at a time: together they may be large.
        """
        tags = self.store.read("SELECT tag FROM sessions WHERE device = ? AND sealed IS NOT NULL", self.device)
        left = []
        for (tag,) in tags:
            one = "SELECT answered, sealed FROM sessions WHERE device = ? AND tag = ? AND sealed IS NOT NULL"
            for answered, sealed in self.store.read(one, self.device, tag):
                record = self._record(tag, answered, sealed)
                if record.until < now.timestamp():
                    left.append((replace(record, task="", state=b""), _close(self.device, tag)))
        return left

    def _record(self, tag: bytes, answered: int, sealed: bytes) -> SessionRecord:
        plain = self.store.unseal("sessions", self.device, tag, sealed, expires=answered)
        size = int.from_bytes(plain[:4], "big")
        head = json.loads(plain[4 : 4 + size])
        return SessionRecord(head["number"], answered, head["task"], head["until"], plain[4 + size :])

    def _tag(self, session: bytes) -> bytes:
        return self.store.tag(self.device, b"session" + session)


def leave_all(database: Connection, device: int | None = None) -> None:
    """Leave every session of a device, or of all, within a transaction: their states are gone, their tags stay."""
    database.execute("UPDATE sessions SET sealed = NULL WHERE ? IS NULL OR device = ?", (device, device))


def _close(device: int, tag: bytes) -> StoreWrite:
    return StoreWrite(
        "INSERT INTO sessions VALUES (?, ?, 0, NULL) ON CONFLICT DO UPDATE SET sealed = NULL WHERE sealed IS NOT NULL",
        (device, tag),
    )


_NUMBER: Final = 8
_WORDS: Final = 32
_HEAD: Final = 2 * _NUMBER + _WORDS
_SEALED: Final = 28
MOST_KEPT, LARGEST_KEPT = 64, 1 << 26
"""Reports that one device keeps to be sent, and their bytes: a server may announce without end, and take none."""


@dataclass(frozen=True)
class KeptReport:
    """Its line in the log, until when it is kept (seconds since 1970), the digest of the announcement that it answers.

    `parcel` are the bytes to send: none where they have arrived, or are not sent any more.
    """

    number: int
    until: int
    answers: bytes
    parcel: bytes = field(repr=False)


@dataclass(frozen=True)
class ReportRecords:
    """The reports of one device, by the name of their batch."""

    store: EncryptedStore
    device: int

    def find(self, batch: bytes) -> KeptReport | None:
        """The report that was made for a batch; None where none was."""
        tag = self._tag(batch)
        found = self.store.read("SELECT sealed FROM reports WHERE device = ? AND tag = ?", self.device, tag)
        return self._opened(tag, found[0][0]) if found else None

    def full(self) -> str | None:
        """Why no other report can be kept; None where it can."""
        sql = "SELECT count(*), coalesce(sum(length(sealed)), 0) FROM reports WHERE device = ? AND length(sealed) > ?"
        [(number, size)] = self.store.read(sql, self.device, _HEAD + _SEALED)
        if number < MOST_KEPT and size < LARGEST_KEPT:
            return None
        return (
            f"this device keeps {number:,} reports of {size:,} bytes that no server has taken yet, and makes no other:"
            " it leaves them a day after their time"
        )

    def kept(self, batch: bytes, report: KeptReport) -> StoreWrite:
        """The statement that keeps a report; it fails where there is one."""
        tag = self._tag(batch)
        return StoreWrite("INSERT INTO reports VALUES (?, ?, ?)", (self.device, tag, self._closed(tag, report)))

    def emptied(self, batch: bytes, report: KeptReport) -> StoreWrite:
        """The statement that deletes the bytes of a report."""
        return self._emptied(self._tag(batch), report)

    def forsaken(self, now: datetime) -> list[tuple[KeptReport, StoreWrite]]:
        """The reports that no server took in time, and the statements that delete them; one is read at a time."""
        tags = "SELECT tag FROM reports WHERE device = ? AND length(sealed) > ?"
        left = []
        for (tag,) in self.store.read(tags, self.device, _HEAD + _SEALED):
            for (sealed,) in self.store.read(
                "SELECT sealed FROM reports WHERE device = ? AND tag = ?", self.device, tag
            ):
                report = replace(self._opened(tag, sealed), parcel=b"")
                if report.until < now.timestamp():
                    left.append((report, self._emptied(tag, report)))
        return left

    def _emptied(self, tag: bytes, report: KeptReport) -> StoreWrite:
        sealed = self._closed(tag, replace(report, parcel=b""))
        return StoreWrite("UPDATE reports SET sealed = ? WHERE device = ? AND tag = ?", (sealed, self.device, tag))

    def _closed(self, tag: bytes, report: KeptReport) -> bytes:
        numbers = report.number.to_bytes(_NUMBER, "big") + report.until.to_bytes(_NUMBER, "big")
        return self.store.seal("reports", self.device, tag, numbers + report.answers + report.parcel)

    def _opened(self, tag: bytes, sealed: bytes) -> KeptReport:
        plain = self.store.unseal("reports", self.device, tag, sealed)
        number, until = (int.from_bytes(plain[at : at + _NUMBER], "big") for at in (0, _NUMBER))
        return KeptReport(number, until, plain[2 * _NUMBER : _HEAD], plain[_HEAD:])

    def _tag(self, batch: bytes) -> bytes:
        return self.store.tag(self.device, b"report" + batch)
