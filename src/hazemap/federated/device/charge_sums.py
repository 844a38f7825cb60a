"""The charges of a device, summed as they grow: what an account looks at instead of every charge it ever made.

Charges of one day that cost the same, of the same campaign or recipe, are one entry with a number of times. Every sum,
greatest value and count of an account is over such entries what it is over the charges themselves: exact. A window
whose edge lies within a day has that day's charges one by one.

The sums are sealed in the store and written with every 64th charge, in its transaction. They follow from the charges up
to a number, and the later ones are read one by one: so after any crash, and whichever of two processes wrote them, a
look gives what the charges give. It reads one record, some charges, and those of a day for each edge.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

from hazemap.federated.device.encrypted_store import EncryptedStore, Write

EVERY: Final = 64
"""Charges that are read one by one before they are summed."""

_OWN: Final = ("time", "session")
"""What charges that cost the same differ in; besides the round, where no schedule counts it."""


class SummedCharge(NamedTuple):
    """A charge as it was sealed, or several without what is their own; the number is that of the last."""

    number: int
    fields: dict[str, Any]
    times: int


class _Day(NamedTuple):
    """The charges of a day, from number `first` to `last`: when the first and the last were, and what they cost."""

    first: int
    last: int
    earliest: datetime
    latest: datetime
    shapes: tuple[tuple[str, int], ...]

    def cut(self, moment: datetime | None) -> bool:
        """Whether a window that begins after this moment has some of the charges, and not all."""
        return moment is not None and self.earliest <= moment < self.latest


@dataclass(frozen=True)
class ChargeSums:
    """The sums of one device: a look costs O(days · kinds of charges), and not O(charges)."""

    store: EncryptedStore
    device: int

    def charges(self, *since: datetime | None) -> list[SummedCharge]:
        """What was charged, the oldest first, so that windows from these moments on may be cut out of it by `time`."""
        through, days = self._kept()
        found: list[SummedCharge] = []
        for day in days:
            if any(day.cut(moment) for moment in since):
                found += self._rows(day.first, day.last)
                continue
            when = {"time": day.earliest.isoformat(), "session": ""}
            found += (
                SummedCharge(day.last, {"round": 0} | json.loads(text) | when, times) for text, times in day.shapes
            )
        return found + list(self._rows(through + 1))

    def writes(self) -> tuple[Write, ...]:
        """The statement that sums what was charged since the last time; none as long as it is little."""
        through, days = self._kept()
        rows = list(self._rows(through + 1))
        if len(rows) < EVERY:
            return ()
        plain = json.dumps([_written(day) for day in _grown(days, rows)]).encode()
        sealed = self.store.seal("sums", self.device, rows[-1].number, plain)
        return (Write("INSERT OR REPLACE INTO sums VALUES (?, ?, ?)", (self.device, rows[-1].number, sealed)),)

    def last(self) -> datetime | None:
        """The time of the last charge: that of none is later (`recipe_charge.dated`)."""
        rows = list(self._rows(self.store.next_number("charges", self.device) - 1))
        return datetime.fromisoformat(rows[-1].fields["time"]) if rows else None

    def _kept(self) -> tuple[int, tuple[_Day, ...]]:
        for through, sealed in self.store.read("SELECT through, sealed FROM sums WHERE device = ?", self.device):
            return through, _read(self.store.unseal("sums", self.device, through, sealed))
        return 0, ()

    def _rows(self, first: int, last: int = 1 << 62) -> Iterator[SummedCharge]:
        sql = "SELECT sequence, sealed FROM charges WHERE device = ? AND sequence BETWEEN ? AND ? ORDER BY sequence"
        for number, sealed in self.store.read(sql, self.device, first, last):
            yield SummedCharge(number, json.loads(self.store.unseal("charges", self.device, number, sealed)), 1)


def _grown(days: tuple[_Day, ...], rows: list[SummedCharge]) -> Iterator[_Day]:
    """The days with more charges: those of one day, one after the other, are together."""
    last: _Day | None = None
    for day in (*days, *(_alone(row) for row in rows)):
        if last is not None and last.latest.date() == day.earliest.date():
            shapes = Counter(dict(last.shapes))
            shapes.update(dict(day.shapes))
            ends = min(last.earliest, day.earliest), max(last.latest, day.latest)
            last = _Day(last.first, day.last, *ends, tuple(shapes.items()))
            continue
        if last is not None:
            yield last
        last = day
    if last is not None:
        yield last


def _alone(row: SummedCharge) -> _Day:
    time = datetime.fromisoformat(row.fields["time"])
    own = _OWN if row.fields.get("schedule") else (*_OWN, "round")
    shape = {name: value for name, value in row.fields.items() if name not in own}
    return _Day(row.number, row.number, time, time, ((json.dumps(shape, sort_keys=True), 1),))


def _written(day: _Day) -> list[Any]:
    return [day.first, day.last, day.earliest.isoformat(), day.latest.isoformat(), day.shapes]


@lru_cache(maxsize=64, typed=True)
def _read(plain: bytes) -> tuple[_Day, ...]:
    found = []
    for first, last, earliest, latest, shapes in json.loads(plain):
        begins, ends = datetime.fromisoformat(earliest), datetime.fromisoformat(latest)
        found.append(_Day(first, last, begins, ends, tuple((text, times) for text, times in shapes)))
    return tuple(found)
