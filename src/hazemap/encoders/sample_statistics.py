"""Sums and scores of samples of values, which estimators of means ask a curator: of one cell, or of every place.

Statistics of one cell are about each person's own values, or the means of arrays of several people's. Those of places
ask the same for all places of a release in one question (Rameshwar et al. 2024). VALUES ONLY: two tables are neighbours
if the values of one person differ, in all places where they are. One person's values move each place's number by `UNIT`
at the most, so a question about all of them moves by `together` · `UNIT`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from hazemap.encoders.encoder import Entries
from hazemap.errors import InputError, TableError
from hazemap.field_types import EqualByFields, check_fields, own_array
from hazemap.machine_code.arrays import Ints
from hazemap.tables.contribution_bounding import Sensitivity
from hazemap.tables.sample_grouping import UNIT, Grouping, SampleCounts, SampledPlaces
from hazemap.tables.votes import VotesTable
from hazemap.values.quantizer import Quantizer

if TYPE_CHECKING:
    from hazemap.engines.memory import MemoryTable, SingleCellSamples
    from hazemap.tables.person_cell_values import PersonCellSamples


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


GRID = 1 << 12
"""Means of arrays, and of people where they balance, are read in so many steps between the bounds."""


@dataclass(frozen=True, eq=False)
class _OfPlaces(EqualByFields):
    """What is asked of the places that are told; their number is public, and everything of `places`."""

    places: SampledPlaces
    unit: ClassVar[int] = UNIT

    def __post_init__(self) -> None:
        check_fields(self)

    def _own(self, name: str, least: int, most: int) -> None:
        """Let a field be an array of a whole number for each place that is told, between these."""
        own_array(self, name, np.int64)
        array = getattr(self, name)
        if array.shape != self.places.told.shape or array.min() < least or array.max() > most:
            raise InputError(f"{name} must be a number from {least} to {most} for each place that is told")

    @property
    def size(self) -> int:
        """A number for each of them."""
        return len(self.places.told)

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one person's values can move all of the numbers together: each by `UNIT`, in `together` places."""
        return Sensitivity(self.places.together * UNIT, self.places.together * UNIT**2)

    def _samples(self, table: VotesTable) -> "PersonCellSamples":
        from hazemap.tables.person_cell_values import PersonCellSamples

        if not isinstance(table, PersonCellSamples):
            raise TableError("this question is about samples in places: it needs tables.person_cell_values")
        if table.places != self.places:
            raise TableError("other people count in this table than were made public: choose them from this table")
        return table

    def _array_means(self, table: VotesTable) -> Iterator[Ints]:
        """The means of the arrays of each place, 0 … GRID, rounded."""
        found = self._samples(table)
        rows, means = found.rows, found.means(GRID)
        for at, arrays in enumerate(rows.arrays):
            sums = np.zeros(arrays.number, dtype=np.int64)
            np.add.at(sums, arrays.first, means[rows.firsts[at] : rows.firsts[at + 1]] * arrays.kept)
            yield (2 * sums + arrays.filled) // (2 * arrays.filled)


@dataclass(frozen=True, eq=False)
class PlaceMeans(_OfPlaces):
    """Σ min(m_ℓ, m) · mean of person ℓ, in `UNIT`s and divided by Γ*, rounded down.

    Somebody who counts for c samples moves the sum by c · `UNIT` ≤ Γ* · `UNIT`; and ⌊S/Γ*⌋ moves by `UNIT` at the most
    if S moves by Γ* · `UNIT`, since ⌊x + n⌋ = ⌊x⌋ + n for whole n.
    """

    def total(self, table: VotesTable) -> Ints:
        """The exact sums. O(pairs)."""
        found = self._samples(table)
        return np.add.reduceat(found.shares(), found.rows.firsts[:-1]) // self.places.largest[self.places.told]


@dataclass(frozen=True, eq=False)
class PlaceVariances(_OfPlaces):
    """The variance of all samples that count, as N Σ x² − (Σ x)², N = Σ min(m_ℓ, m), divided by how far one person can
    move it (`reached`), in `UNIT`s, rounded down.

    Rameshwar and Tandon 2024: one person of a part w = Γ*/N of the samples moves the variance by w(1 − w)U², or, from
    w = 1/2 on, by the largest variance that there is: U²/4, or U²/4 · (1 − 1/N²) if N is odd. The last holds where
    every sample counts for itself; where somebody counts for less than all of theirs, U²/4 is reached for odd N, too.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.places.tree.value_encoding.degree < 2:
            raise InputError("a variance needs a value encoding of degree 2")

    @property
    def reached(self) -> list[int]:
        """How far one person can move N Σ x² − (Σ x)² of each place, in units of (U/`UNIT`)², exactly."""
        places, told = self.places, self.places.told
        found = []
        for kept, most, whole in zip(
            places.kept[told].tolist(), places.largest[told].tolist(), places.whole.tolist(), strict=True
        ):
            if kept > 2 * most:
                found.append(most * (kept - most) * UNIT**2)
            else:
                found.append(((kept * kept - (kept % 2 if whole else 0)) * UNIT**2 + 3) // 4)
        return found

    def total(self, table: VotesTable) -> Ints:
        """The exact numbers. O(pairs)."""
        found = self._samples(table)
        starts = found.rows.firsts[:-1]
        first = np.add.reduceat(found.shares(), starts).tolist()
        second = np.add.reduceat(found.squares(), starts).tolist()
        kept = self.places.kept[self.places.told].tolist()
        spread = [n * UNIT * b - a * a for n, a, b in zip(kept, first, second, strict=True)]
        return np.array(
            [each * UNIT // by if by else 0 for each, by in zip(spread, self.reached, strict=True)], dtype=np.int64
        )


@dataclass(frozen=True, eq=False)
class PlaceArrayMeans(_OfPlaces):
    """Σ of the means of a place's arrays, each clipped to `low` … `high` of `GRID` steps; less low, divided by
    high − low, in `UNIT`s, rounded down.

    One person is in one array, so they move the sum of clipped means by high − low at the most.
    """

    low: Ints
    high: Ints

    def __post_init__(self) -> None:
        super().__post_init__()
        self._own("low", 0, GRID - 1)
        self._own("high", 1, GRID)
        if not self.places.grouped or (self.low >= self.high).any():
            raise InputError("means of arrays are clipped to a range, the lower end of which comes first")

    def total(self, table: VotesTable) -> Ints:
        """The exact sums. O(pairs)."""
        ends = zip(self.low.tolist(), self.high.tolist(), self._array_means(table), strict=True)
        return np.array(
            [int((np.clip(means, low, high) - low).sum()) * UNIT // (high - low) for low, high, means in ends],
            dtype=np.int64,
        )


Scored = tuple[Ints, int]
"""The scores of the candidates of one choice, and how far one person's values can move one of them."""


@dataclass(frozen=True, eq=False)
class PlaceChoices(_OfPlaces):
    """Private choices, one or more a place. Whoever counts in K places moves the scores of K times as many."""

    each: ClassVar[int] = 1
    unit: ClassVar[int] = 1

    @property
    def choices(self) -> int:
        """How many candidates are chosen in all."""
        return self.size * self.each

    def scored(self, table: VotesTable) -> Iterator[Scored]:
        """The choices of one place after another."""
        raise NotImplementedError

    @property
    def of_one_person(self) -> int:
        """The scores of so many choices one person can move: what each costs is this part of the price."""
        return self.places.together * self.each


@dataclass(frozen=True, eq=False)
class PlaceQuantiles(PlaceChoices):
    """Of each place a reading with a part `rank` of its arrays' means below it, then one with a part 1 − `rank`.

    Candidates are 0 … GRID + 1, the last above every mean; the score of one is −|below − rank · all|, times the
    denominator of the rank. One person is in one array, so it moves by 1, times the denominator.
    """

    rank: Fraction
    each: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.rank < Fraction(1, 2) or not self.places.grouped:
            raise InputError(
                f"the rank at which means of arrays are clipped is at least 0 and below 1/2, not {self.rank}"
            )

    def scored(self, table: VotesTable) -> Iterator[Scored]:
        """Both choices of one place after another. O(pairs + GRID · places)."""
        for means in self._array_means(table):
            below = np.cumsum(np.bincount(means + 1, minlength=GRID + 2))
            for rank in (self.rank, 1 - self.rank):
                yield -np.abs(rank.denominator * below - rank.numerator * len(means)), rank.denominator


@dataclass(frozen=True, eq=False)
class PlaceBins(PlaceChoices):
    """Of each place one of the bins of `width` readings, from 0 on, that holds a median of its arrays' means.

    The score of a bin is −max(means left of it, means right of it) (Levy et al. 2021): one person moves it by 1.
    """

    width: Ints

    def __post_init__(self) -> None:
        super().__post_init__()
        self._own("width", 1, GRID)
        if not self.places.grouped:
            raise InputError("bins are of means of arrays, and there are none")

    def scored(self, table: VotesTable) -> Iterator[Scored]:
        """The choice of one place after another. O(pairs + GRID · places)."""
        for width, means in zip(self.width.tolist(), self._array_means(table), strict=True):
            inside = np.bincount(means // width, minlength=GRID // width + 1)
            upto = np.cumsum(inside)
            yield -np.maximum(upto - inside, len(means) - upto), 1


@dataclass(frozen=True, eq=False)
class PlaceBalances(PlaceChoices):
    """Of each place the reading t at which people's means balance: Huber's (1964) M-estimate.

    Somebody of mean x pulls with c ψ(x − t), c = min(m_ℓ, m) and ψ clipped to ±`reach` steps; the score of t is −|Σ of
    pulls|. New values of one person change it by 2 · reach · Γ* at the most.
    """

    reach: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.reach <= GRID:
            raise InputError(f"a reach is 1 to {GRID} steps")

    def scored(self, table: VotesTable) -> Iterator[Scored]:
        """The choice of one place after another. O(pairs + GRID · places)."""
        found = self._samples(table)
        rows, means, reach = found.rows, found.means(GRID), self.reach
        most = self.places.largest[self.places.told].tolist()
        for at, largest in enumerate(most):
            some = slice(int(rows.firsts[at]), int(rows.firsts[at + 1]))
            own, weights = means[some], rows.kept[some]
            held = np.zeros(GRID + 1, dtype=np.int64)
            np.add.at(held, own, weights)
            upto = np.concatenate([np.zeros(reach, np.int64), np.cumsum(held), np.full(reach, weights.sum())])
            near = upto[2 * reach :] - upto[: GRID + 1]  # weight at t − reach + 1 … t + reach
            pull = (weights * np.minimum(own, reach)).sum() - np.concatenate([[0], np.cumsum(near[:-1])])
            yield -np.abs(pull), 2 * reach * largest
