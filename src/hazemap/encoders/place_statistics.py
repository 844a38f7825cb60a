"""Sums and scores of the samples of every place that is told: what the estimators of user-level means ask a curator.

Rameshwar et al. 2024, for one cell; here for all places of a release in one question. VALUES ONLY: two tables are
neighbours if the values of one person differ, in all places where they are. Each place's number moves by `UNIT` at the
most if one person's values change, whatever the place: so a question about all of them moves by `together` · `UNIT`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from hazemap.errors import InputError, TableError
from hazemap.field_types import EqualByFields, check_fields, own_array
from hazemap.machine_code.arrays import Ints
from hazemap.tables.contribution_bounding import Sensitivity
from hazemap.tables.sampled_places import UNIT, SampledPlaces
from hazemap.tables.votes import VotesTable

if TYPE_CHECKING:
    from hazemap.tables.person_cell_values import PersonCellSamples

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
