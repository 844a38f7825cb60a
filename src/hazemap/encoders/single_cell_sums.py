"""Sums of the values of one cell: of each person's own, or of the means of arrays made of several people's."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hazemap.encoders.encoder import Entries
from hazemap.engines.memory import MemoryTable
from hazemap.engines.single_cell_samples import Samples
from hazemap.errors import InputError, TableError
from hazemap.tables.contribution_bounding import Sensitivity
from hazemap.tables.sample_arrays import Grouping, SampleCounts
from hazemap.tables.votes import VotesTable
from hazemap.values.quantizer import Quantizer


def samples(table: VotesTable) -> Samples:
    """The table, if it has values of people; `TableError` if it only has places."""
    if not isinstance(table, Samples):
        raise TableError("this question is about values: it needs a table of samples, hazemap.tables.Samples")
    return table


def in_public(table: VotesTable, contributions: SampleCounts) -> Samples:
    """The table, if people give as many samples as was made public of them."""
    found = samples(table)
    if found.contributions != contributions:
        raise TableError("people give other numbers of samples than those declared public: take them from this table")
    return found


@dataclass(frozen=True)
class ValueSums:
    """The sum of the readings of each person's first `most` values: one number.

    A person's readings are at most `most` numbers 0 … steps, so they move the sum by most · steps at the most: if
    their values change (VALUES ONLY), and if they are added or removed.

    >>> ValueSums(Quantizer(0, 65, steps=650), most=417).sensitivity.l1
    271050
    """

    quantizer: Quantizer
    most: int

    def __post_init__(self) -> None:
        if self.most < 1:
            raise InputError(f"of each person 1 value or more is added up, not {self.most}")

    @property
    def size(self) -> int:
        """One sum."""
        return 1

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one person can move it."""
        return Sensitivity(self.most * self.quantizer.steps, (self.most * self.quantizer.steps) ** 2)

    def encode(self, table: MemoryTable) -> Entries:
        """What each person adds, from the column `value` of a table in memory."""
        if "value" not in table.columns:
            raise TableError("values are in a column called value, which this table does not have")
        person, place = np.unique(table.person, return_inverse=True)
        order = np.argsort(place, kind="stable")
        rank = np.arange(len(order)) - np.searchsorted(place[order], place[order])
        kept = order[rank < self.most]
        sums = np.zeros(len(person), dtype=np.int64)
        np.add.at(sums, place[kept], self.quantizer.read(table.columns["value"][kept]))
        return Entries(person, np.zeros(len(person), dtype=np.int64), sums)

    def total(self, table: VotesTable) -> NDArray[np.int64]:
        """The exact sum."""
        return np.array([samples(table).sum_of_first(self.most, self.quantizer)])


@dataclass(frozen=True)
class ArrayMeans:
    """The sum of the means of all arrays, each rounded to a reading and clipped to `low` … `high`: one number.

    VALUES ONLY: the arrays are public, and one person is in f of them (`grouping.spanned`), so they move the sum by
    f · (high − low) at the most. It is no sum over people: a `Measure`, which only a curator can answer.

    >>> some = SampleCounts(np.array([3, 2, 9, 1]))
    >>> from hazemap.tables.sample_arrays import BestFit, WrapAround
    >>> means = ArrayMeans(Quantizer(0, 65, steps=650), some, WrapAround(4), low=100, high=300)
    >>> means.sensitivity.l1
    400
    """

    quantizer: Quantizer
    contributions: SampleCounts
    grouping: Grouping
    low: int
    high: int

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= self.quantizer.steps:
            raise InputError(f"means are clipped to readings between 0 and {self.quantizer.steps}, the lower one first")

    @property
    def size(self) -> int:
        """One sum."""
        return 1

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one person's values can move it."""
        most = self.grouping.spanned * (self.high - self.low)
        return Sensitivity(most, most**2)

    def total(self, table: VotesTable) -> NDArray[np.int64]:
        """The exact sum. O(rows)."""
        means = in_public(table, self.contributions).array_means(self.grouping, self.quantizer)
        return np.array([np.clip(means, self.low, self.high).sum()])
