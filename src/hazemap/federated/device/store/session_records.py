"""Every session a device was ever asked into: its state while it lasts, its tag for ever.

A stage is answered once. The state with its reply, the charge and the line in the log are written in one
transaction before the reply is sent; `answered` counts, and the statement that writes the next state changes
nothing unless the count is still what it was when the state was read.
"""

import json
from dataclasses import dataclass, field, replace
from datetime import datetime
from sqlite3 import Connection

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
