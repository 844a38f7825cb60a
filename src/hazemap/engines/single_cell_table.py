"""The rows of one cell: a value each, and the person it belongs to."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Ints
from hazemap.cells import Tree
from hazemap.engines.memory import MemoryTable
from hazemap.errors import TableError
from hazemap.jit import once_compiled
from hazemap.tables.contribution_bounding import Bounding
from hazemap.tables.keyed_hash import SamplingKey
from hazemap.tables.sample_grouping import Filling, Grouping, SampleCounts, alone, array_sums
from hazemap.tables.votes import Votes
from hazemap.values.quantizer import Quantizer

_SPARSE = 8  # codes of people are looked up in a list if their range is at most this many times the rows


@dataclass(frozen=True, eq=False)
class SingleCellSamples:
    """Values (speeds of one hexagon and hour) with the code of the person each is of; a row each, in the table's order.

    Methods of one cell (`hazemap.algorithms.published.user_level_means`) ask it for sums and choices under the VALUES
    ONLY model; `votes` answers whatever counts people in intervals of the value (`values.interval_tree`) under the
    usual one.

    >>> table = SingleCellSamples(np.array([7, 8, 7]), np.array([20.0, 31.0, 22.0]))
    >>> table.contributions.counts, table.means(Quantizer(0, 65, steps=65))
    (array([2, 1]), array([21, 31]))
    """

    person: Ints
    value: NDArray[np.float64]
    key: SamplingKey = 0

    def __post_init__(self) -> None:
        person, value = np.asarray(self.person), np.asarray(self.value)
        if person.ndim != 1 or person.dtype.kind not in "iu" or value.shape != person.shape or not len(person):
            raise TableError("samples are one row or more: a whole number for the person, and a value")
        if value.dtype.kind not in "iuf" or np.isnan(value).any():
            raise TableError("values are numbers; leave out the rows in which they are not (NaN), and say so")
        object.__setattr__(self, "person", person.astype(np.int64, copy=False))
        object.__setattr__(self, "value", value)

    @cached_property
    def people(self) -> Ints:
        """The place of each row's person among all people, by ascending code: O(rows), or O(n log n) for wild codes."""
        low, high = int(self.person.min()), int(self.person.max())
        if high - low >= _SPARSE * len(self.person) + (1 << 16):
            return np.unique(self.person, return_inverse=True)[1].astype(np.int64, copy=False)
        places: Ints = once_compiled(_places)(self.person, low, high)
        return places

    @cached_property
    def contributions(self) -> SampleCounts:
        """How many rows each person has."""
        return SampleCounts(np.bincount(self.people))

    def array_means(self, grouping: Grouping, quantizer: Quantizer) -> Ints:
        """The mean of each array, rounded to whole readings: O(rows)."""
        arrays = grouping.arrays(self.contributions)
        if grouping.filling is Filling.MEANS:
            means, sums = self.means(quantizer), np.zeros(arrays.number, dtype=np.int64)
            np.add.at(sums, arrays.first, means * arrays.split)
            beyond = np.flatnonzero(arrays.kept > arrays.split)
            np.add.at(sums, arrays.first[beyond] + 1, (means * (arrays.kept - arrays.split))[beyond])
            return _rounded(sums, arrays.filled)
        return _rounded(array_sums(arrays, self.people, quantizer.read(self.value)), arrays.filled)

    def means(self, quantizer: Quantizer) -> Ints:
        """The mean of all values of each person, rounded to whole readings: O(rows)."""
        counts = self.contributions
        sums = array_sums(alone(counts, counts.most), self.people, quantizer.read(self.value))
        return _rounded(sums, counts.counts)

    def sum_of_first(self, most: int, quantizer: Quantizer) -> int:
        """The sum of the readings of the first `most` rows of each person: O(rows)."""
        return int(array_sums(alone(self.contributions, most), self.people, quantizer.read(self.value)).sum())

    def votes(self, tree: Tree, bounding: Bounding) -> Votes:
        """The votes of people in intervals of the value: a tree of places knows none of these rows."""
        nowhere = np.full(len(self.person), np.nan)
        columns = {"lon": nowhere, "lat": nowhere, "value": self.value}
        return MemoryTable(self.person, columns, self.key).votes(tree, bounding)


def _rounded(sums: Ints, counts: Ints) -> Ints:
    """Quotients rounded to whole numbers, halves up: of sums of `counts` readings 0 … steps, again 0 … steps."""
    quotients: Ints = (2 * sums + counts) // (2 * counts)
    return quotients


def _places(person, low, high):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    place, found = np.zeros(high - low + 1, dtype=np.int32), np.empty(len(person), dtype=np.int64)
    for row in range(len(person)):
        place[person[row] - low] = 1
    before = 0
    for code in range(len(place)):
        before += place[code]
        place[code] = before - 1
    for row in range(len(person)):
        found[row] = place[person[row] - low]
    return found
