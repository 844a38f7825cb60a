"""Public facts of places where values alone are protected: which people have how many records where, and what follows.

From whereabouts (VALUES ONLY) follow numbers of people and samples, and weights. The estimators of Rameshwar et al.
2024 take them for granted, cell by cell; here they are for every place of a release at once.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.field_types import EqualByFields, check_fields, own_array
from hazemap.machine_code.arrays import Bools, Ints
from hazemap.tables.sample_grouping import Arrays, BestFit, SampleCounts
from hazemap.values.cell_slot_counters import CellTimeSlots
from hazemap.values.value_encoding import STEPS


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
