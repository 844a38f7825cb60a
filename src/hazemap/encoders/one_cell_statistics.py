"""Sums and scores of the values of one cell: of each person's own, or of the means of arrays of several people's.

Scores, and whatever is about arrays, only a curator can compute.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from hazemap.encoders.encoder import Entries
from hazemap.errors import InputError, TableError
from hazemap.machine_code.arrays import Ints
from hazemap.tables.contribution_bounding import Sensitivity
from hazemap.tables.sample_grouping import Grouping, SampleCounts
from hazemap.tables.votes import VotesTable
from hazemap.values.quantizer import Quantizer

if TYPE_CHECKING:
    from hazemap.engines.memory import MemoryTable, SingleCellSamples


def samples(table: VotesTable) -> "SingleCellSamples":
    """The table, if it has values of people; `TableError` if it only has places."""
    from hazemap.engines.memory import SingleCellSamples

    if not isinstance(table, SingleCellSamples):
        raise TableError("this question is about values: it needs a table of samples, hazemap.tables.Samples")
    return table


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
            raise InputError(f"at least 1 value per person must be added up, not {self.most}")

    @property
    def size(self) -> int:
        """One sum."""
        return 1

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one person can move it."""
        return Sensitivity(self.most * self.quantizer.steps, (self.most * self.quantizer.steps) ** 2)

    def encode(self, table: "MemoryTable") -> Entries:
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

    def total(self, table: VotesTable) -> Ints:
        """The exact sum."""
        return np.array([samples(table).sum_of_first(self.most, self.quantizer)])


@dataclass(frozen=True)
class _OfArrays:
    """What is made of the means of arrays of samples: who is in which array is public (VALUES ONLY)."""

    quantizer: Quantizer
    contributions: SampleCounts
    grouping: Grouping

    def _means(self, table: VotesTable) -> Ints:
        """The mean of each array, in readings."""
        found = samples(table)
        if found.contributions != self.contributions:
            raise TableError("people give other numbers of samples than those declared public: take them from it")
        return found.array_means(self.grouping, self.quantizer)


@dataclass(frozen=True)
class ArrayMeans(_OfArrays):
    """The sum of the means of all arrays, each rounded to a reading and clipped to `low` … `high`: one number.

    VALUES ONLY: the arrays are public, and one person is in f of them (`grouping.spanned`), so they move the sum by
    f · (high − low) at the most. It is no sum over people: a `Measure`, which only a curator can answer.

    >>> some = SampleCounts(np.array([3, 2, 9, 1]))
    >>> from hazemap.tables.sample_grouping import BestFit, WrapAround
    >>> means = ArrayMeans(Quantizer(0, 65, steps=650), some, WrapAround(4), low=100, high=300)
    >>> means.sensitivity.l1
    400
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= self.quantizer.steps:
            raise InputError(
                f"means must be clipped to readings between 0 and {self.quantizer.steps}, the lower one first"
            )

    @property
    def size(self) -> int:
        """One sum."""
        return 1

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one person's values can move it."""
        most = self.grouping.spanned * (self.high - self.low)
        return Sensitivity(most, most**2)

    def total(self, table: VotesTable) -> Ints:
        """The exact sum. O(rows)."""
        means = self._means(table)
        return np.array([np.clip(means, self.low, self.high).sum()])


HALF = Fraction(1, 2)


@dataclass(frozen=True)
class ArrayQuantiles(_OfArrays):
    """For each rank, a reading with that part of all array means below it.

    Candidates are the readings 0 … steps; the score of one is −|below − rank · all|, times the denominator of the rank
    so that it is an integer (Smith 2011: an interval between two means is chosen ∝ its width, uniform inside).

    VALUES ONLY: a person moves f means, each across a reading or not; `all` is public. So a score moves by f, times
    the denominator.

    >>> some = SampleCounts(np.array([3, 2, 9, 1]))
    >>> from hazemap.tables.sample_grouping import BestFit
    >>> ranks = Fraction(1, 10), Fraction(9, 10)
    >>> ArrayQuantiles(Quantizer(0, 65), some, BestFit(4), ranks).sensitivity(Fraction(1, 10))
    10
    """

    ranks: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if not self.ranks or not all(0 <= rank <= 1 for rank in self.ranks):
            raise InputError("ranks must be between 0 and 1, such as 1/10 and 9/10")

    @property
    def choices(self) -> int:
        """One reading a rank."""
        return len(self.ranks)

    def sensitivity(self, rank: Fraction) -> int:
        """How far one person's values can move a score."""
        return self.grouping.spanned * rank.denominator

    def scores(self, table: VotesTable, rank: Fraction) -> Ints:
        """The score of every reading, int64[steps + 1]. O(rows + steps)."""
        means = self._means(table)
        below = np.cumsum(np.bincount(means + 1, minlength=self.quantizer.steps + 2))[:-1]
        scores: Ints = -np.abs(rank.denominator * below - rank.numerator * len(means))
        return scores


@dataclass(frozen=True)
class ArrayBins(_OfArrays):
    """One of the bins of `width` readings, from 0 on, that holds a median of the array means (Levy et al. 2021).

    The score of a bin is −max(means left of it, means right of it). VALUES ONLY: a person moves f means, so each of
    the two numbers by f at most, and the score, too.

    >>> some = SampleCounts(np.array([3, 2, 9, 1]))
    >>> from hazemap.tables.sample_grouping import WrapAround
    >>> bins = ArrayBins(Quantizer(0, 65, steps=650), some, WrapAround(4), width=100)
    >>> bins.number, bins.sensitivity(Fraction(1, 2))
    (7, 2)
    """

    width: int
    ranks: ClassVar[tuple[Fraction, ...]] = (HALF,)
    choices: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not 1 <= self.width <= self.quantizer.steps:
            raise InputError(f"bins must be 1 to {self.quantizer.steps} readings wide, not {self.width}")

    @property
    def number(self) -> int:
        """How many bins: the last one may end beyond the quantizer."""
        return self.quantizer.steps // self.width + 1

    def sensitivity(self, rank: Fraction) -> int:  # noqa: ARG002 - of the one rank
        """How far one person's values can move a score."""
        return self.grouping.spanned

    def scores(self, table: VotesTable, rank: Fraction) -> Ints:  # noqa: ARG002 - of the one rank
        """The score of every bin, int64[number]. O(rows + number)."""
        means = self._means(table)
        inside = np.bincount(means // self.width, minlength=self.number)
        upto = np.cumsum(inside)
        scores: Ints = -np.maximum(upto - inside, len(means) - upto)
        return scores


@dataclass(frozen=True)
class RobustMeanScores:
    """The reading t at which people's means x_ℓ, each of weight c_ℓ = min(m_ℓ, most), balance: Huber's M-estimate.

    A person pulls with c_ℓ ψ(x_ℓ − t), where ψ(z) = z clipped to ±reach. Candidates are the readings 0 … steps; the
    score of one is −|Σ_ℓ c_ℓ ψ(x_ℓ − t)|, an integer, 0 where they balance. For a small reach it is the weighted
    median, for a large one the weighted mean.

    VALUES ONLY: weights are public, so new values of one person change their pull by 2 · reach · most at the most.
    Divided by that, the score is how many people would have to change before t balances, up to rounding: the inverse
    sensitivity mechanism (Asi and Duchi 2020).

    >>> RobustMeanScores(Quantizer(0, 65, steps=650), most=100, reach=40).sensitivity(Fraction(1, 2))
    8000
    """

    quantizer: Quantizer
    most: int
    reach: int
    ranks: ClassVar[tuple[Fraction, ...]] = (HALF,)
    choices: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.most < 1 or not 1 <= self.reach <= self.quantizer.steps:
            raise InputError(f"a weight must be at least 1 and a reach 1 to {self.quantizer.steps} readings")

    def sensitivity(self, rank: Fraction) -> int:  # noqa: ARG002 - of the one rank
        """How far one person's values can move a score."""
        return 2 * self.reach * self.most

    def scores(self, table: VotesTable, rank: Fraction) -> Ints:  # noqa: ARG002 - of the one rank
        """The score of every reading, int64[steps + 1]. O(rows + steps)."""
        found, steps, reach = samples(table), self.quantizer.steps, self.reach
        means, weights = found.means(self.quantizer), found.contributions.kept(self.most)
        held = np.zeros(steps + 1, dtype=np.int64)
        np.add.at(held, means, weights)
        upto = np.concatenate([np.zeros(reach, np.int64), np.cumsum(held), np.full(reach, weights.sum())])
        near = upto[2 * reach :] - upto[: steps + 1]  # weight at t − reach + 1 … t + reach
        pull = (weights * np.minimum(means, reach)).sum() - np.concatenate([[0], np.cumsum(near[:-1])])
        scores: Ints = -np.abs(pull)
        return scores
