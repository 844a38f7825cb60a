"""A person's own log: every question a device was asked, what it said, what it sent, and what that cost.

A line is written in the transaction that charges, before anything is sent: so it may name bytes that a crash
kept from being sent, never the other way round. It is sealed like the rows, for it says which cells they touch.
"""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from hashlib import sha256
from typing import Any

from hazemap.federated.device.account.charges import ReportRequest
from hazemap.federated.device.account.privacy_account import digits
from hazemap.federated.device.http_client import one_line
from hazemap.federated.device.server_task import ParsedTask
from hazemap.federated.device.store.encrypted_store import EncryptedStore, StoreWrite
from hazemap.federated.recipes.sql_query import LONGEST_SQL
from hazemap.privacy.budget import ReportPrice

KIND = "recipe"


@dataclass(frozen=True)
class RecipeLogEntry:
    """One recipe, as the person may read it.

    `recipe` is its digest, `fields` what its query truly reads, `verdict` what the device did, with its reason;
    `outcome` what became of its session since, and `sent` how many bytes were sent in it.
    `report` is the randomised report, whole, and `shares` the SHA-256 of each part of it that leaves the device: both
    empty where nothing does. What was true of the person's events is in no line.

    >>> entry = RecipeLogEntry(datetime(2026, 3, 1, tzinfo=UTC), "ages", "keyboard", "how old people are", "00" * 32)
    >>> print(entry)
    2026-03-01 00:00:00 UTC  keyboard, recipe ages (how old people are)
        query: none
        reads nothing; nothing charged; refused
    """

    time: datetime
    name: str
    analysis: str
    purpose: str
    recipe: str
    query: str = "none"
    fields: tuple[str, ...] = ()
    verdict: str = "refused"
    local_epsilon: Fraction = Fraction(0)
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    report: bytes = b""
    shares: tuple[str, ...] = ()
    sent: int = 0
    outcome: str = ""

    @classmethod
    def about(cls, request: ReportRequest, name: str, query: str, verdict: str, time: datetime) -> "RecipeLogEntry":
        """The line about a report that a device is asked for, before it is made."""
        return cls(
            time=time,
            name=name,
            analysis=request.analysis,
            purpose=request.purpose,
            recipe=request.recipe.hex(),
            query=query,
            fields=tuple(sorted(map(str, request.fields))),
            verdict=verdict,
            local_epsilon=request.local_epsilon,
        )

    def answered(self, price: ReportPrice, report: bytes, shares: Sequence[bytes]) -> "RecipeLogEntry":
        """With the report that was made, as it was randomised, and what of it leaves the device."""
        digests = tuple(sha256(each).hexdigest() for each in shares)
        return replace(
            self, verdict="answered", epsilon=price.epsilon, delta=price.delta, report=report, shares=digests
        )

    def sending(self, size: int) -> "RecipeLogEntry":
        """After `size` more bytes."""
        return replace(self, sent=self.sent + size)

    def ended(self, outcome: str) -> "RecipeLogEntry":
        """With what became of the session."""
        return replace(self, outcome=outcome)

    def __str__(self) -> str:
        when = self.time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        price = "nothing charged"
        if self.epsilon or self.delta:
            epsilon, delta, local = (float(each) for each in (self.epsilon, self.delta, self.local_epsilon))
            price = f"(ε, δ) = ({epsilon:.6g}, {delta:.3g}) charged, ε₀ = {local:.6g}"
        became = "".join(f"; {each}" for each in (f"{self.sent:,} bytes sent" * bool(self.sent), self.outcome) if each)
        sent = [
            f"    report of {len(self.report):,} bytes, sent as {', '.join(each[:16] + '…' for each in self.shares)}"
        ]
        return "\n".join(
            [
                f"{when}  {self.analysis}, recipe {self.name} ({one_line(self.purpose)})",
                f"    query: {one_line(self.query, LONGEST_SQL)}",
                f"    reads {', '.join(self.fields) or 'nothing'}; {price}; {self.verdict}{became}",
                *(sent if self.shares else []),
            ]
        )

    def to_json(self) -> dict[str, Any]:
        """As it is sealed, and for machines."""
        exact = {name: str(getattr(self, name)) for name in ("local_epsilon", "epsilon", "delta")}
        report = base64.b64encode(self.report).decode()
        lists = {"fields": list(self.fields), "shares": list(self.shares)}
        return {**vars(self), **exact, **lists, "kind": KIND, "time": self.time.isoformat(), "report": report}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "RecipeLogEntry":
        """What `to_json` wrote."""
        exact = {name: Fraction(found[name]) for name in ("local_epsilon", "epsilon", "delta")}
        lists = {name: tuple(found[name]) for name in ("fields", "shares")}
        plain = {name: value for name, value in found.items() if name != "kind"}
        time, report = datetime.fromisoformat(found["time"]), base64.b64decode(found["report"])
        return cls(**{**plain, **exact, **lists, "time": time, "report": report})


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
        price = f"ε = {digits(self.epsilon)} charged" if self.epsilon else "nothing charged"
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

    def added(self, number: int, line: LogEntry | RecipeLogEntry) -> StoreWrite:
        """The statement that writes a new line."""
        return self.store.added("log", self.device, number, _plain(line))

    def changed(self, number: int, line: LogEntry | RecipeLogEntry) -> StoreWrite:
        """The statement that writes what became of a session."""
        sealed = self.store.seal("log", self.device, number, _plain(line))
        return StoreWrite("UPDATE log SET sealed = ? WHERE device = ? AND sequence = ?", (sealed, self.device, number))


def _plain(line: LogEntry | RecipeLogEntry) -> bytes:
    return json.dumps(line.to_json()).encode()


def _line(plain: bytes) -> LogEntry | RecipeLogEntry:
    found = json.loads(plain)
    return RecipeLogEntry.from_json(found) if found.get("kind") == KIND else _entry(found)


def _entry(fields: dict[str, Any]) -> LogEntry:
    exact = {"time": datetime.fromisoformat(fields["time"]), "epsilon": Fraction(fields["epsilon"])}
    return LogEntry(**{**fields, **exact})


DAMAGED = "nothing that can be understood"


def refusal_entry(read: Callable[[], ParsedTask], outcome: str, now: datetime) -> LogEntry | RecipeLogEntry:
    """The line; `read` gives what was asked, or fails in any way, for the message may be why it is refused."""
    try:
        found = read()
        task = found.task
        if (asked := task.recipe) is not None:
            facts = (asked.id, asked.analysis, one_line(asked.purpose), asked.digest, asked.query.text)
            return RecipeLogEntry(now, *facts, verdict=outcome)
        question = found.words
    except Exception:
        return LogEntry(now, "unknown", "unknown", 0, DAMAGED, outcome=outcome)
    return LogEntry(now, one_line(task.campaign), one_line(task.purpose), task.round, question, outcome=outcome)
