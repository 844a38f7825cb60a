"""How many samples each person gives to a cell or place, and arrays of equal length made of several people's samples.

All of it is public where only values are protected (VALUES ONLY), for it follows from numbers of samples alone.
Rameshwar et al. 2024 (after George et al. 2024): the first min(m_ℓ, m) samples of each person go into arrays of length
m. How many arrays one person is in, f, is how many array means one person can move. `SampleCounts` is about one cell;
`SampledPlaces` about every place of a release at once.
"""

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.field_types import EqualByFields, check_fields, own_array
from hazemap.machine_code.arrays import Bools, Ints
from hazemap.values.cell_slot_counters import CellTimeSlots
from hazemap.values.value_encoding import STEPS
from hazemap.vdaf.compiled_loops import once_compiled


@dataclass(frozen=True, eq=False)
class SampleCounts(EqualByFields):
    """The numbers m_ℓ of samples of the people in one cell, in ascending order of their codes; int64[people], all ≥ 1.

    Privacy model: VALUES ONLY. The caller promises that they are public (Rameshwar et al. 2024): two tables are
    neighbours if the *values* of one person differ, and these numbers do not.

    >>> some = SampleCounts(np.array([3, 1, 10]))
    >>> some.people, some.total, some.most, some.kept(4)
    (3, 14, 10, array([3, 1, 4]))
    """

    counts: Ints

    def __post_init__(self) -> None:
        own_array(self, "counts", np.int64)
        if self.counts.ndim != 1 or not len(self.counts) or self.counts.min() < 1:
            raise InputError("sample counts need at least one person, and at least one sample of each")

    @property
    def people(self) -> int:
        """The number of people."""
        return len(self.counts)

    @cached_property
    def total(self) -> int:
        """Σ m_ℓ."""
        return int(self.counts.sum())

    @cached_property
    def most(self) -> int:
        """The largest number of one person."""
        return int(self.counts.max())

    def kept(self, most: int) -> Ints:
        """min(m_ℓ, most): the samples left of each person if each gives at most `most`."""
        return np.minimum(self.counts, most)

    @cached_property
    def distinct(self) -> tuple[Ints, Ints, Ints]:
        """For each distinct number c, ascending: c, Σ min(m_ℓ, c), and how many people give c or more. O(n log n)."""
        numbers, people = np.unique(self.counts, return_counts=True)
        more = people[::-1].cumsum()[::-1]
        below = np.concatenate([[0], np.cumsum(numbers * people)[:-1]])
        return numbers, below + numbers * more, more


class Arrays(NamedTuple):
    """Where samples go: of person ℓ the first `kept[ℓ]`; of these, the first `split[ℓ]` to array `first[ℓ]`, the others
    to the one after it. `filled` are the samples in each array; all int64.
    """

    kept: Ints
    first: Ints
    split: Ints
    filled: Ints

    @property
    def number(self) -> int:
        """The number of arrays, K̄."""
        return len(self.filled)


class Filling(Enum):
    """The samples of a person that go into the arrays: their first samples (as the paper says), or their mean, as many
    times (as its authors' code does). The mean is of all their samples, so none is lost. Either way it is theirs alone,
    and the
    mean of an array is a mean of values.
    """

    SAMPLES = "samples"
    MEANS = "means"


@dataclass(frozen=True)
class _Arrays:
    """Arrays of at most `most` samples, and which samples of a person fill them."""

    most: int
    filling: Filling = Filling.SAMPLES

    def __post_init__(self) -> None:
        if self.most < 1:
            raise InputError(f"an array must hold at least 1 sample, not {self.most}")


@dataclass(frozen=True)
class BestFit(_Arrays):
    """Each person's first min(m_ℓ, most) samples go, whole, into the fullest array that still has room, else a new one.

    A person is in one array, so f = 1: all samples of theirs that are kept are put there together, and which array it
    is depends on numbers of samples alone, which are public and the same in neighbouring tables (VALUES ONLY).

    >>> BestFit(4).arrays(SampleCounts(np.array([3, 2, 9, 1])))
    Arrays(kept=array([3, 2, 4, 1]), first=array([0, 1, 2, 0]), split=array([3, 2, 4, 1]), filled=array([4, 2, 4]))
    """

    spanned: ClassVar[int] = 1

    def arrays(self, contributions: SampleCounts) -> Arrays:
        """In ascending order of codes; of equally full arrays, into the last that became so. O(people · log m)."""
        kept = contributions.kept(self.most)
        first, filled = once_compiled(_best_fit)(kept, min(self.most, int(kept.sum())))
        return Arrays(kept, first, kept, filled)


@dataclass(frozen=True)
class WrapAround(_Arrays):
    """Arrays are filled one after another; a person whose samples do not fit any more goes on in the next one.

    A person is in two arrays at most, so f = 2: they have min(m_ℓ, most) ≤ most samples one after another, and these
    touch at most two runs of `most` places. Only the last array may not be full.

    >>> WrapAround(4).arrays(SampleCounts(np.array([3, 2, 9, 1])))
    Arrays(kept=array([3, 2, 4, 1]), first=array([0, 0, 1, 2]), split=array([3, 1, 3, 1]), filled=array([4, 4, 2]))
    """

    spanned: ClassVar[int] = 2

    def arrays(self, contributions: SampleCounts) -> Arrays:
        """People in ascending order of their codes. O(people)."""
        kept = contributions.kept(self.most)
        starts = np.cumsum(kept) - kept
        total = int(kept.sum())
        filled = np.full(-(-total // self.most), self.most, dtype=np.int64)
        filled[-1] = total - (len(filled) - 1) * self.most
        return Arrays(kept, starts // self.most, np.minimum(kept, self.most - starts % self.most), filled)


Grouping = BestFit | WrapAround


def alone(contributions: SampleCounts, most: int) -> Arrays:
    """An array for each person, of their first `most` samples.

    >>> alone(SampleCounts(np.array([3, 9])), 4).filled
    array([3, 4])
    """
    kept = contributions.kept(most)
    return Arrays(kept, np.arange(len(kept)), kept, kept)


def array_sums(arrays: Arrays, person: Ints, readings: Ints) -> Ints:
    """The sum of the readings in each array; `person` is each row's place in the order of people. O(rows).

    A person's first rows are those that come first in the table.
    """
    sums: Ints = once_compiled(_add_up)(arrays.kept, arrays.first, arrays.split, arrays.number, person, readings)
    return sums


def _best_fit(kept, most):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Stacks of arrays by the room they have left; a binary heap over rooms knows which stacks are not empty."""
    side = 1
    while side < most + 1:
        side *= 2
    some = np.zeros(2 * side, dtype=np.bool_)
    top, under = np.full(side, -1), np.full(len(kept), -1)
    first, filled = np.empty(len(kept), dtype=np.int64), np.empty(len(kept), dtype=np.int64)
    number = 0
    for person in range(len(kept)):
        node = side + kept[person]
        if not some[node]:  # up, until something lies to the right; node 0 and 1 mean that nothing does
            while node > 1 and (node % 2 == 1 or not some[node + 1]):
                node //= 2
            node = node + 1 if node > 1 else 0
        if node > 1:
            while node < side:  # down, to the least room in it
                node = 2 * node if some[2 * node] else 2 * node + 1
            room = node - side
            array = top[room]
            top[room] = under[array]
            if top[room] < 0:
                some[node] = False
                while node > 1 and not some[node ^ 1]:
                    node //= 2
                    some[node] = False
        else:
            array, room = number, most
            filled[array] = 0
            number += 1
        first[person] = array
        filled[array] += kept[person]
        room -= kept[person]
        if room > 0:
            under[array] = top[room]
            top[room] = array
            node = side + room
            while node > 0 and not some[node]:
                some[node] = True
                node //= 2
    return first, filled[:number]


def _add_up(kept, first, split, number, person, readings):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    seen, sums = np.zeros(len(kept), dtype=np.int64), np.zeros(number, dtype=np.int64)
    for row in range(len(person)):
        who = person[row]
        before = seen[who]
        if before < kept[who]:
            seen[who] = before + 1
            array = first[who]
            if before >= split[who]:
                array += 1
            sums[array] += readings[row]
    return sums


@dataclass(frozen=True, eq=False)
class PublicLocations:
    """Pairs of a person and a place (a cell in a slot), person after person: those of person i are
    `firsts[i]` … `firsts[i + 1]`, in an order that a keyed hash drew, as are
    people themselves; none twice. So nothing here depends on the order of rows, which values may have made.

    Privacy model: VALUES ONLY. There is no value here, so whatever follows from it costs nothing.

    >>> some = PublicLocations(np.array([0, 2, 3]), np.array([4, 0, 4]), np.array([7, 1, 2]), number=5)
    >>> some.people, some.counts, some.weights(3)
    (array([1, 0, 0, 0, 2]), array([2, 1]), array([3, 1, 2]))
    """

    firsts: Ints
    place: NDArray[np.int32]
    records: Ints
    number: int

    def __post_init__(self) -> None:
        if not len(self.place) or self.place.shape != self.records.shape or self.firsts[-1] != len(self.place):
            raise InputError(
                "public locations need at least one pair of a person and a place, and a number of records for each pair"
            )

    @property
    def counts(self) -> Ints:
        """In how many places each person is."""
        return np.diff(self.firsts)

    @property
    def person(self) -> NDArray[np.int32]:
        """The person of each pair, counted from 0."""
        return np.repeat(np.arange(len(self.firsts) - 1, dtype=np.int32), self.counts)

    @cached_property
    def people(self) -> Ints:
        """The number of people in each place; int64[number]."""
        return np.bincount(self.place, minlength=self.number)

    def weights(self, most: int) -> Ints:
        """For how much each pair counts: min(records, most)."""
        return np.minimum(self.records, most)


UNIT = STEPS**2
"""The upper bound of a value in sums of values and of their squares."""

PARTS = 1 << 30
"""The denominator of `astray`, which is rounded up."""


@dataclass(frozen=True, eq=False)
class SampledPlaces(EqualByFields):
    """Numbers of every place, int64[places] each; in a place that is not told all but the first two are 0.

    * `people`, `samples`: who is there, and Σ m_ℓ of their samples (or people again, where each counts once,
      `by_people`).
    * `length`: m. Somebody counts for min(m_ℓ, m) samples, with the mean of *all* their own.
    * `kept`: Σ min(m_ℓ, m) of those who count; `largest`: the most of one of them, Γ*.
    * `arrays`: how many arrays of length m these fill (`tables.sample_grouping.BestFit`), K̄; 0 where none are made.
    * `astray`: the total variation between what a sample weighs in the estimate and 1/Σ m_ℓ, in parts of 2³⁰: what
      counting people for less, and filling arrays unevenly, can move the mean by, as a part of the range of the value.
    * `together`: in how many places that are told anybody counts, K: the release costs K times what a place costs.

    VALUES ONLY: two tables are neighbours if the values of one person differ, so they have one and the same of these.
    """

    tree: CellTimeSlots
    people: Ints
    samples: Ints
    length: Ints
    kept: Ints
    largest: Ints
    arrays: Ints
    astray: Ints
    together: int
    grouped: bool
    by_people: bool
    travels_once: ClassVar[bool] = True  # see `codec`: every question of a run is about the same places

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("people", "samples", "length", "kept", "largest", "arrays", "astray"):
            own_array(self, name, np.int64)
            if getattr(self, name).shape != (self.tree.places,):
                raise InputError("every place needs a number of people and of samples, and how these count")
        if not self.told.size or self.together < 1:
            raise InputError("places per person must be at least 1")
        told = self.told
        if (
            (self.length < 0).any()
            or (self.largest[told] < 1).any()
            or (self.largest[told] > self.length[told]).any()
            or (self.kept[told] < self.largest[told]).any()
            or (self.kept[told] > self.samples[told]).any()
            or (self.grouped and (self.arrays[told] < 1).any())
            or (self.astray < 0).any()
            or (self.astray > PARTS).any()
        ):
            raise InputError(
                "numbers of samples contradict each other: of some samples, 1 or more are kept of somebody"
            )

    @cached_property
    def told(self) -> Ints:
        """The numbers of the published places."""
        return np.flatnonzero(self.length)

    @property
    def whole(self) -> Bools:
        """The published places in which every sample counts for itself; bool[told]."""
        if self.by_people:
            return np.zeros(len(self.told), dtype=np.bool_)
        alike: Bools = self.kept[self.told] == self.samples[self.told]
        return alike


@dataclass(frozen=True, eq=False)
class CountingPairs:
    """The pairs of a person and a place that count, place after place, people in the order of the table's keyed hash.

    `pairs` are their positions in the table; those of the i-th place that is told, whose arrays have `length[i]`, are
    `firsts[i]` … `firsts[i + 1]`.

    >>> where = PublicLocations(np.array([0, 2, 3]), np.array([1, 0, 1]), np.array([7, 1, 2]), number=3)
    >>> some = CountingPairs.of(where, np.array([True, False, True]), np.array([0, 4, 0]), by_people=False)
    >>> some.pairs, some.firsts, some.samples, some.kept
    (array([0, 2]), array([0, 2]), array([7, 2]), array([4, 2]))
    """

    pairs: Ints
    firsts: Ints
    samples: Ints
    kept: Ints
    length: Ints

    @classmethod
    def of(cls, where: PublicLocations, counting: Bools, length: Ints, by_people: bool) -> "CountingPairs":
        """Those of the `counting` pairs, bool[pairs], that are in places with a length."""
        chosen = np.flatnonzero(counting & (length[where.place] > 0))
        place = where.place[chosen].astype(np.int64)
        order = np.argsort(place, kind="stable")  # pairs are person after person already
        pairs, place = chosen[order], place[order]
        samples = np.ones(len(pairs), dtype=np.int64) if by_people else where.records[pairs]
        told = np.flatnonzero(length)
        firsts = np.searchsorted(place, np.append(told, where.number))
        return cls(pairs, firsts.astype(np.int64), samples, np.minimum(samples, length[place]), length[told])

    @cached_property
    def arrays(self) -> "tuple[Arrays, ...]":
        """The people of each array, place after place. O(pairs log m)."""
        found = []
        for start, end, most in zip(
            self.firsts[:-1].tolist(), self.firsts[1:].tolist(), self.length.tolist(), strict=True
        ):
            found.append(BestFit(most).arrays(SampleCounts(self.kept[start:end])))
        return tuple(found)


def sampled_places(
    tree: CellTimeSlots, where: PublicLocations, counting: Bools, length: Ints, *, grouped: bool, by_people: bool
) -> SampledPlaces:
    """Public facts of these places if these pairs count, each for `length` samples at most. O(pairs log m)."""
    asked = np.zeros(tree.places, dtype=np.int64)
    np.add.at(asked, where.place[counting], 1)
    length = np.where(asked > 0, length, 0)
    some = CountingPairs.of(where, counting, length, by_people)
    samples = where.people.copy()
    if not by_people:
        samples[:] = 0
        np.add.at(samples, where.place, where.records)
    told, filled = np.flatnonzero(length), np.zeros((4, tree.places), dtype=np.int64)
    for at, place in enumerate(told.tolist()):
        rows = slice(int(some.firsts[at]), int(some.firsts[at + 1]))
        own, counts = some.samples[rows], some.kept[rows]
        weights, number = counts / counts.sum(), 0
        if grouped:
            groups = some.arrays[at]
            number = groups.number
            weights = counts / (groups.filled[groups.first] * number)
        more = np.maximum(weights - own / samples[place], 0).sum()
        exact = not grouped and counts.sum() == samples[place]
        filled[:, place] = (
            counts.sum(),
            counts.max(),
            number,
            0 if exact else min(int(np.ceil(more * PARTS)) + 1, PARTS),
        )
    counted = np.bincount(where.person[some.pairs])
    most = int(counted.max()) if len(counted) else 0
    kept, largest, arrays, astray = filled
    return SampledPlaces(tree, where.people, samples, length, kept, largest, arrays, astray, most, grouped, by_people)
