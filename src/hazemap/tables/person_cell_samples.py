"""Samples of each person in each published place, which a curator keeps of rows for estimators over samples."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hazemap.arrays import Bools, Ints
from hazemap.cells import Tree
from hazemap.errors import TableError
from hazemap.tables.contribution_bounding import Bounding
from hazemap.tables.person_cell_values import PersonCellValues
from hazemap.tables.sampled_places import UNIT, CountingPairs, SampledPlaces, sampled_places
from hazemap.tables.votes import Votes


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
