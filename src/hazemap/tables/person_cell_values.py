"""What a curator keeps of each person's rows in each place: sums of values, and samples for estimators over samples."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Columns, Tree
from hazemap.errors import TableError
from hazemap.machine_code.arrays import Bools, Ints
from hazemap.tables.contribution_bounding import Bounding
from hazemap.tables.keyed_hash import KeyWords, SamplingKey, numbers, seeds
from hazemap.tables.sample_grouping import UNIT, CountingPairs, PublicLocations, SampledPlaces, sampled_places
from hazemap.tables.votes import Votes
from hazemap.values.cell_slot_counters import CellTimeSlots, ObservedCellSlots
from hazemap.values.value_encoding import KnownCountEncoding

AT_ONCE = 1 << 22
"""Counters of pairs that are in memory at one time."""
DRAWN_AS = "OwnMeans"
"""Places of a person are drawn as that rule draws them."""


@dataclass(frozen=True, eq=False)
class PersonCellValues:
    """Pairs of a person and a place, and Σ marks (`KnownCountEncoding.marks`) of their records, int64[pairs, marks].

    Only a trust model may hold it. `whereabouts` hold no value and are public under VALUES ONLY. A person with a
    million records in one place is one pair: O(pairs), never O(rows).

    >>> from hazemap.temporal.time_slots import Always
    >>> from hazemap.values.value_encoding import ValueEncoding
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> rows = {"lon": np.array([2.0, 2, 3]), "lat": np.array([48.0, 48, 49]), "value": np.array([0.0, 60, 15])}
    >>> places = ObservedCellSlots(Quadtree.world(depth=1), Always(), ValueEncoding(0, 60))
    >>> pairs = PersonCellValues.of_rows(places, np.array([7, 7, 8]), rows, key=0)
    >>> pairs.whereabouts.records, pairs.sums[:, 0] / (1 << 20)
    (array([2, 1]), array([1.  , 0.25]))
    """

    tree: CellTimeSlots
    whereabouts: PublicLocations
    sums: Ints

    @classmethod
    def of_rows(cls, places: ObservedCellSlots, person: Ints, columns: Columns, key: SamplingKey) -> "PersonCellValues":
        """From rows in memory: the plain twin of what an engine does (`engines.streaming.person_cell_sums`)."""
        found = places.rows(columns)
        known = found.cells != NOWHERE
        cells, at = np.unique(found.cells[known], return_inverse=True)
        tree = places.occupied(cells)
        place = at.astype(np.int64) * len(places.slots.names) + found.slots[known]
        words = KeyWords.expanded(key, DRAWN_AS)
        codes, who = np.unique(seeds(person[known].view(np.uint64), words), return_inverse=True)
        both, pair, records = np.unique(
            who.astype(np.int64) * tree.places + place, return_inverse=True, return_counts=True
        )
        marks = KnownCountEncoding(places.value_encoding).marks
        sums = np.zeros((len(both), marks.shape[1]), dtype=np.int64)
        np.add.at(sums, pair, marks[found.readings[known]])
        whose, where = np.divmod(both, tree.places)
        drawn = numbers(codes[whose], where.astype(np.uint64))
        order = np.lexsort((drawn, whose))
        firsts = np.concatenate([[0], np.cumsum(np.bincount(whose))])
        public = PublicLocations(firsts, where[order].astype(np.int32), records[order].astype(np.int64), tree.places)
        return cls(tree, public, sums[order])

    def votes(self, tree: Tree, bounding: Bounding) -> Votes:
        """`TableError`: these pairs answer for values whose numbers of people are public, and for nothing else."""
        raise TableError(
            f"a table of people and places cannot answer questions about {type(tree).__name__} under {bounding}"
        )


@dataclass(frozen=True, eq=False)
class SelectedPersonCellValues:
    """Those pairs that count in a release, bool[pairs], and for how many records at most.

    Which these are was chosen from whereabouts alone, so it is public; the table holds values, so it is not.
    """

    pairs: PersonCellValues
    kept: NDArray[np.bool_]
    records: int

    def counters(self) -> Iterator[tuple[Ints, Ints]]:
        """Places, and the counters of one person each, some hundred thousand pairs at a time."""
        known_encoding, public = KnownCountEncoding(self.pairs.tree.value_encoding), self.pairs.whereabouts
        chosen = np.flatnonzero(self.kept)
        step = max(1, AT_ONCE // known_encoding.size)
        for start in range(0, len(chosen), step):
            some = chosen[start : start + step]
            records = public.records[some]
            shared = known_encoding.shared(self.pairs.sums[some], records, np.minimum(records, self.records))
            yield public.place[some].astype(np.int64), shared

    def weights(self) -> tuple[Ints, int, int]:
        """The weight that counts in each place; the most of a person in all places, and of its squares. O(pairs)."""
        public = self.pairs.whereabouts
        weights = np.where(self.kept, public.weights(self.records), 0)
        place = np.zeros(public.number, dtype=np.int64)
        np.add.at(place, public.place, weights)
        own = np.add.reduceat(weights, public.firsts[:-1])
        return place, int(own.max()), int(np.add.reduceat(weights**2, public.firsts[:-1]).max())

    def votes(self, tree: Tree, bounding: Bounding) -> Votes:
        """`TableError`, as of `PersonCellValues`."""
        return self.pairs.votes(tree, bounding)


@dataclass(frozen=True, eq=False)
class PersonCellSamples:
    """Those of the pairs that count, bool[pairs], each for as many samples as its place's `length` at most.

    Which these are was chosen from whereabouts alone, so it is public; the table holds values, so it is not. Only a
    trust model may hold it. The mean of a person is that of *all* their samples in a place, whatever they count for: so
    it does not depend on the order of rows, and sums of values are enough.
    """

    pairs: PersonCellValues
    counting: Bools
    length: Ints
    grouped: bool
    by_people: bool

    @cached_property
    def places(self) -> SampledPlaces:
        """The public part of it."""
        return sampled_places(
            self.pairs.tree,
            self.pairs.whereabouts,
            self.counting,
            self.length,
            grouped=self.grouped,
            by_people=self.by_people,
        )

    @cached_property
    def rows(self) -> CountingPairs:
        """The pairs that count, place after place."""
        return CountingPairs.of(self.pairs.whereabouts, self.counting, self.places.length, self.by_people)

    def means(self, steps: int) -> Ints:
        """The mean of each pair, 0 … `steps`, rounded, halves up."""
        first, records = self._first, self._records
        whole, rest = np.divmod(first, records)  # 0 … UNIT, so nothing overflows
        low, over = np.divmod(whole * steps, UNIT)
        found: Ints = low + (2 * (over * records + rest * steps) + records * UNIT) // (2 * records * UNIT)
        return found

    def shares(self) -> Ints:
        """The number that each pair adds: min(m_ℓ, m) times their mean, in `UNIT`s, rounded: 0 … kept · UNIT."""
        return _times(self._first, self._records, self.rows.kept)

    def squares(self) -> Ints:
        """The same of squares, as close to the exact number as it can be for somebody whose `shares` these are.

        Between shares²/(kept · UNIT), rounded up, and shares: as of any samples between the bounds (Jensen), whatever
        was rounded. Exact for a person of whom no sample is left out.
        """
        if self.pairs.tree.value_encoding.degree < 2:
            raise TableError("the squares of values were not added up: the value encoding has degree 1")
        shares, kept = self.shares(), self.rows.kept
        square = _times(self.pairs.sums[self.rows.pairs, 1], self._records, kept)
        whole = [
            -(-(share * share) // (number * UNIT)) for share, number in zip(shares.tolist(), kept.tolist(), strict=True)
        ]
        return np.minimum(np.maximum(square, np.array(whole, dtype=np.int64)), shares)

    def votes(self, tree: Tree, bounding: Bounding) -> Votes:
        """`TableError`, as of `PersonCellValues`."""
        return self.pairs.votes(tree, bounding)

    @cached_property
    def _first(self) -> Ints:
        """Σ values of each pair, in `UNIT`s."""
        sums = self.pairs.sums[self.rows.pairs]
        first: Ints = sums[:, 0] if self.pairs.tree.value_encoding.degree == 1 else (sums[:, 0] + sums[:, 1]) // 2
        return first

    @cached_property
    def _records(self) -> Ints:
        return self.pairs.whereabouts.records[self.rows.pairs]


def _times(sums: Ints, records: Ints, times: Ints) -> Ints:
    """Sums · times / records to the nearest whole numbers, halves up: quotient and rest apart never overflow."""
    whole, rest = np.divmod(sums, records)
    found: Ints = times * whole + (2 * times * rest + records) // (2 * records)
    return found
