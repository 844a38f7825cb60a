"""The people that one worker keeps: a part of everyone, in as many passes as fit the memory limit.

Rows in `NOWHERE` are kept apart: they count only for people none of whose rows lies in a cell. A rule never sees them,
so it keeps of people with rows in cells what it would keep without them. This module imports numba.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE
from hazemap.engines.streaming import row_buffer
from hazemap.engines.streaming.cell_counter import CellCounter
from hazemap.engines.streaming.person_index import PersonIndex, RowBatch
from hazemap.vdaf.compiled_loops import compiled

MOST_BITS = 16
FULL = 2 / 3
"""A row buffer that is fuller than this after folding is crowded."""

HEADROOM = 9 / 10
"""What a growing row buffer takes of what is affordable: people still to come need room too."""

WORTHWHILE = 5 / 4
"""A crowded row buffer grows by at least this factor, or not at all."""


class GroupBuffer(Protocol):
    """What the people of a group have said so far, in entries of `bytes_each`."""

    size: int

    @property
    def bytes_each(self) -> int:
        """Memory for one entry, while all are put in order."""

    @property
    def capacity(self) -> int:
        """How many entries there is room for."""

    def arrange(self, people: int) -> None:
        """Put all entries in order by the places of so many people, then as the rule needs them."""

    def grow(self, capacity: int) -> None:
        """Make room for this many entries."""

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Drop what everybody else said; the places of the others move up, in order."""

    def strike(self, rows: NDArray[np.uint32]) -> None:
        """Put 0 in the stead of the number of each place that has an entry."""


Buffer = TypeVar("Buffer", bound=GroupBuffer)


class BoundingStep(Protocol[Buffer]):
    """One bounding rule at work on the row buffer of a group."""

    def row_buffer(self) -> Buffer:
        """An empty one, as the rule needs it."""

    def append(
        self, batch: RowBatch, rows: NDArray[np.int64], places: NDArray[np.int64], count: int, row_buffer: Buffer
    ) -> int:
        """Put rows on the row buffer until it is full; how many were read."""

    def fold(self, row_buffer: Buffer) -> None:
        """Leave of a row buffer in order what is still needed."""

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Forget everybody else."""

    def count(self, row_buffer: Buffer, seeds: NDArray[np.uint64], tally: CellCounter) -> None:
        """Count what a folded row buffer says."""

    def elsewhere(self, rows: NDArray[np.uint32]) -> int:
        """The votes of people all of whose rows lie in `NOWHERE`: `rows` of each, 1 or more."""


class Bucket(NamedTuple):
    """The people with these bits in their seeds; it splits into two buckets of one more bit."""

    bits: int
    value: int

    @property
    def measure(self) -> float:
        """The part of all people to expect in it."""
        return 0.5**self.bits

    def halves(self) -> tuple["Bucket", "Bucket"]:
        """The people whose next bit is 0, and the others."""
        return Bucket(self.bits + 1, self.value), Bucket(self.bits + 1, self.value | 1 << self.bits)


EVERYONE, NOBODY = Bucket(0, 0), Bucket(0, -1)


def wanted(seeds: NDArray[np.uint64], groups: Sequence["PersonGroup"]) -> NDArray[np.bool_]:
    """Which of these people some group takes in during this pass (or did a moment ago: buckets only shrink)."""
    buckets = np.array([group.bucket for group in groups], dtype=np.int64)
    return _wanted(seeds, buckets)


class PersonGroup:
    """One of several groups that people are dealt to by their seeds, each with its own worker.

    It starts with all its people. When they need more than `limit` bytes it forgets half of them, who get a
    pass of their own later. Who is in which pass changes nothing about what is kept of them.
    """

    def __init__(
        self,
        index: int,
        groups: int,
        limit: int,
        places: Callable[[], PersonIndex],
        rule: Callable[[], BoundingStep[Any]],
        tally: CellCounter,
    ) -> None:
        self.tally = tally
        self.counted = 0.0
        self._index, self._groups, self._limit = index, groups, limit
        self._new_places, self._new_rule = places, rule
        self._later: list[Bucket] = []
        self._start(EVERYONE)

    @property
    def busy(self) -> bool:
        """Whether another pass over the rows is needed."""
        return self._bucket is not None

    def progress(self, part: float) -> float:
        """How much of the work is done, once this part of the rows is read in this pass."""
        return self.counted + part * (self._bucket.measure if self._bucket else 0)

    @property
    def bucket(self) -> Bucket:
        """The people of this pass; nobody when there is none."""
        return self._bucket or NOBODY

    def read(self, batch: RowBatch) -> None:
        """Take in the rows of this group's people."""
        self._read_outside(batch)
        if self._bucket is None:
            return
        rows = _chosen(batch.seeds, batch.counts, self._index, self._groups, *self._bucket)
        while len(rows):
            bucket = self._bucket
            places = self._places.enter(batch, rows)
            rows = rows[self._rule.append(batch, rows, places, self._places.count, self._row_buffer) :]
            if len(rows) or self._row_buffer.capacity > self._affordable():
                self._make_room()
            if self._bucket != bucket:
                rows = rows[_inside(batch.seeds[rows], *self._bucket)]

    def _read_outside(self, batch: RowBatch) -> None:
        """Count the rows in `NOWHERE` of each of this group's people; who they are is remembered like all others."""
        if self._bucket is None or batch.outside is None:
            return
        rows = _chosen(batch.seeds, batch.outside, self._index, self._groups, *self._bucket)
        if not len(rows):
            return
        places = self._places.enter(batch, rows)
        self._elsewhere.take(places, self._places.count)
        if self._row_buffer.capacity > self._affordable():
            self._make_room()

    def finish(self) -> None:
        """End a pass: count what these people say, and turn to those put off."""
        if self._bucket is None:
            return
        self._fold()
        alone = self._elsewhere.alone(self._row_buffer)
        if len(alone):
            self.tally.add(np.full(1, NOWHERE), np.full(1, self._rule.elsewhere(alone)))
        self._rule.count(self._row_buffer, self._places.take_seeds(), self.tally)
        self.counted += self._bucket.measure
        self._start(self._later.pop() if self._later else None)

    def _start(self, bucket: Bucket | None) -> None:
        self._bucket = bucket
        self._places, self._rule, self._elsewhere = self._new_places(), self._new_rule(), RowsOutsideCells()
        self._row_buffer: GroupBuffer = self._rule.row_buffer()

    def _fold(self) -> None:
        self._row_buffer.arrange(self._places.count)
        self._rule.fold(self._row_buffer)

    def _make_room(self) -> None:
        """Fold the row buffer; where that leaves too much, let it grow, else put half of the people off."""
        self._fold()
        while self._row_buffer.size > FULL * self._row_buffer.capacity:
            capacity = min(4 * self._row_buffer.capacity, int(HEADROOM * self._affordable()))
            if capacity >= WORTHWHILE * self._row_buffer.capacity:
                self._row_buffer.grow(capacity)
                return
            if not self._halved():
                self._row_buffer.grow(2 * self._row_buffer.capacity)
                return
        while self._row_buffer.capacity > self._affordable() and self._halved():
            pass

    def _affordable(self) -> int:
        """How many entries the row buffer may have beside these people; the first few are free."""
        return row_buffer.SMALLEST + (self._limit - self._places.used) // self._row_buffer.bytes_each

    def _halved(self) -> bool:
        """Put half of the people off to a later pass, unless they cannot be told apart any more."""
        if self._bucket is None or self._bucket.bits == MOST_BITS or self._places.count <= 1:
            return False
        self._bucket, later = self._bucket.halves()
        self._later.append(later)
        kept = _inside(self._places.seeds[: self._places.count], *self._bucket)
        self._places.keep(kept)
        self._row_buffer.keep(kept)
        self._rule.keep(kept)
        self._elsewhere.keep(kept)
        return True


# Of a seed, the upper 16 bits choose the group, the next 16 the pass, the lower 32 the row of a table.


@compiled
def _within(seed: np.uint64, bits: int, value: int) -> bool:
    return int(seed >> np.uint64(32)) & ((1 << bits) - 1) == value


@compiled
def _wanted(seeds: NDArray[np.uint64], buckets: NDArray[np.int64]) -> NDArray[np.bool_]:
    wanted = np.empty(seeds.size, dtype=np.bool_)
    for i in range(seeds.size):
        bits, value = buckets[_group(seeds[i], len(buckets))]
        wanted[i] = _within(seeds[i], bits, value)
    return wanted


@compiled
def _group(seed: np.uint64, groups: int) -> int:
    return int(seed >> np.uint64(48)) % groups


@compiled
def _inside(seeds: NDArray[np.uint64], bits: int, value: int) -> NDArray[np.bool_]:
    inside = np.empty(seeds.size, dtype=np.bool_)
    for i in range(seeds.size):
        inside[i] = _within(seeds[i], bits, value)
    return inside


@compiled
def _chosen(
    seeds: NDArray[np.uint64], counts: NDArray[np.bool_], index: int, groups: int, bits: int, value: int
) -> NDArray[np.int64]:
    """The rows that count, of people of this group and bucket."""
    rows = np.empty(seeds.size, dtype=np.int64)
    chosen = 0
    for i in range(seeds.size):
        mine = _group(seeds[i], groups) == index
        rows[chosen] = i
        chosen += counts[i] and mine and _within(seeds[i], bits, value)
    return rows[:chosen]


MOST = np.uint32(2**32 - 1)


class RowsOutsideCells:
    """How many rows in `NOWHERE` each person has, up to 2³² − 1: 4 bytes a person, with room to grow 6."""

    def __init__(self) -> None:
        self._rows = np.zeros(0, dtype=np.uint32)

    def take(self, places: NDArray[np.int64], count: int) -> None:
        """A row more for the people at these of `count` places. O(rows)."""
        self._rows = row_buffer.filled(self._rows, count, 0)
        _take(places, self._rows)

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Forget everybody else."""
        self._rows = self._rows[: len(kept)]
        self._rows = self._rows[kept[: len(self._rows)]]

    def alone(self, row_buffer: GroupBuffer) -> NDArray[np.uint32]:
        """Of all who have rows in `NOWHERE` and nothing on a folded row buffer, how many. O(people + row buffer)."""
        rows = self._rows.copy()
        row_buffer.strike(rows)
        return rows[rows > 0]


@compiled
def _take(places: NDArray[np.int64], rows: NDArray[np.uint32]) -> None:
    for i in range(places.size):
        if rows[places[i]] < MOST:
            rows[places[i]] += np.uint32(1)
