"""A person's own log: every question a device was asked, what it said, and what that cost.

A line is written in the transaction that charges, before anything is sent: so it may name bytes that a crash
kept from being sent, never the other way round. It is sealed like the rows, for it says which cells they touch.
"""

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from hazemap.federated.device.encrypted_store import EncryptedStore, Write
from hazemap.federated.device.printable_text import one_line
from hazemap.federated.device.privacy_account import shown
from hazemap.federated.device.recipe_log_entry import KIND, RecipeLogEntry


@dataclass(frozen=True)
class LogEntry:
    """One session of a campaign, as the person may read it.

    >>> LogEntry(datetime.now(UTC), "commuters", "a map", 1, "how many people").sending(100).sent
    100
    """

    time: datetime
    campaign: str
    purpose: str
    round: int
    question: str
    epsilon: Fraction = Fraction(0)
    sent: int = 0
    outcome: str = "going on"

    def sending(self, size: int) -> "LogEntry":
        """After `size` more bytes."""
        return replace(self, sent=self.sent + size)

    def charged(self, epsilon: Fraction) -> "LogEntry":
        """After a charge."""
        return replace(self, epsilon=self.epsilon + epsilon)

    def ended(self, outcome: str) -> "LogEntry":
        """With what became of it."""
        return replace(self, outcome=outcome)

    def __str__(self) -> str:
        when = self.time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        price = f"ε = {shown(self.epsilon)} charged" if self.epsilon else "nothing charged"
        return (
            f"{when}  {one_line(self.campaign)}, round {self.round} ({one_line(self.purpose)})\n"
            f"    asked: {self.question}\n"
            f"    {price}, {self.sent:,} bytes sent; {self.outcome}"
        )

    def to_json(self) -> dict[str, str | int]:
        """As it is sealed, and for machines."""
        return {**vars(self), "time": self.time.isoformat(), "epsilon": str(self.epsilon)}


@dataclass(frozen=True)
class ActivityLog:
    """The log of one device."""

    store: EncryptedStore
    device: int

    def lines(self) -> list[LogEntry]:
        """Every line about a campaign, the oldest first."""
        return [each for each in self.entries() if isinstance(each, LogEntry)]

    def entries(self) -> list[LogEntry | RecipeLogEntry]:
        """Every line, the oldest first."""
        return [_line(plain) for _, plain in self.store.records("log", self.device)]

    def line(self, number: int) -> LogEntry | RecipeLogEntry:
        """One line."""
        [(sealed,)] = self.store.read("SELECT sealed FROM log WHERE device = ? AND sequence = ?", self.device, number)
        return _line(self.store.unseal("log", self.device, number, sealed))

    def next_number(self) -> int:
        """The number of the next new line."""
        return self.store.next_number("log", self.device)

    def added(self, number: int, line: LogEntry | RecipeLogEntry) -> Write:
        """The statement that writes a new line."""
        return self.store.added("log", self.device, number, _plain(line))

    def changed(self, number: int, line: LogEntry | RecipeLogEntry) -> Write:
        """The statement that writes what became of a session."""
        sealed = self.store.seal("log", self.device, number, _plain(line))
        return Write("UPDATE log SET sealed = ? WHERE device = ? AND sequence = ?", (sealed, self.device, number))


def _plain(line: LogEntry | RecipeLogEntry) -> bytes:
    return json.dumps(line.to_json()).encode()


def _line(plain: bytes) -> LogEntry | RecipeLogEntry:
    found = json.loads(plain)
    return RecipeLogEntry.from_json(found) if found.get("kind") == KIND else _entry(found)


def _entry(fields: dict[str, Any]) -> LogEntry:
    exact = {"time": datetime.fromisoformat(fields["time"]), "epsilon": Fraction(fields["epsilon"])}
    return LogEntry(**{**fields, **exact})
