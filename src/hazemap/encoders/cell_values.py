"""Sums of values in each cell and slot, over all people, or over who counts there where only values are private."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hazemap.encoders.encoder import Entries
from hazemap.errors import InputError, TableError
from hazemap.field_types import EqualByFields, check_fields, own_array
from hazemap.machine_code.arrays import Ints
from hazemap.tables.contribution_bounding import OwnMeans, Sensitivity
from hazemap.tables.votes import VotesTable
from hazemap.values.cell_slot_counters import CellTimeSlots
from hazemap.values.value_encoding import KnownCountEncoding

if TYPE_CHECKING:
    from hazemap.engines.memory import MemoryTable


@dataclass(frozen=True)
class Values:
    """All counters of all cells and slots, in the order of the tree; bounded contributions of each person.

    A person adds whole numbers, none negative, to the counters of at most `cells` places: in a place w · scale in all,
    w ≤ records. So L1 = cells · records · scale, whatever is measured and whoever is added or removed. In one place the
    squares add up to at most (w · s)² for each group of counters that adds up to w · s (moments, bins): L2² = cells ·
    records² · Σ s². Both are reached.

    >>> from hazemap.cells import Leaves
    >>> from hazemap.temporal.time_slots import Always
    >>> from hazemap.values.value_encoding import ValueEncoding
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> value_encoding = ValueEncoding(0, 65, degree=2, branchings=(16,))
    >>> tree = CellTimeSlots(Leaves.at_level(Quadtree.world(depth=3), 3), Always(), value_encoding)
    >>> values = Values(tree, OwnMeans(4, scale=value_encoding.scale))
    >>> values.size == 64 * 19, values.sensitivity.l1 == 4 * 2 * 2**20, values.sensitivity.l2_squared == 4 * 2 * 2**40
    (True, True, True)
    """

    tree: CellTimeSlots
    bounding: OwnMeans

    def __post_init__(self) -> None:
        check_fields(self)
        if self.bounding.scale != self.tree.value_encoding.scale:
            raise InputError(
                "a record must have as many parts as its value encoding: give the rule scale=value_encoding.scale"
            )

    @property
    def size(self) -> int:
        """All counters."""
        return self.tree.size

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one person can move the sums."""
        cells, records, scales = self.bounding.cells, self.bounding.records, self.tree.value_encoding.scales
        return Sensitivity(self.bounding.sensitivity.l1, cells * records**2 * sum(scale**2 for scale in scales))

    def encode(self, table: "MemoryTable") -> Entries:
        """What each person adds where."""
        person, counter, weight = table.bounded(self.tree, self.bounding)
        return Entries(person, counter.astype(np.int64) - 1, weight)

    def total(self, table: VotesTable) -> NDArray[np.int64]:
        """The exact sums, from the table's votes: O(cells · slots)."""
        votes = table.votes(self.tree, self.bounding)
        sums = np.zeros(self.size, dtype=np.int64)
        sums[votes.cells.astype(np.int64) - 1] = votes.weights
        return sums


@dataclass(frozen=True, eq=False)
class KnownCountValues(EqualByFields):
    """The counters of a known-count encoding in every published place, those with a weight above 0, in the order of
    `tree`.

    VALUES ONLY: two tables are neighbours if the values of one person differ. `people` are in each place, of whom a
    `weight` of Σ min(records, `bounding.records`) counts; nobody counts for more than `most` in all places together,
    nor for more than `squares` in the sum of squares. All these are public, and int64[places] or whole numbers. A
    person of weight w in a place moves its counters by w · l1 of the known-count encoding at most, since w · mean lies
    between the readings of single records; so L1 = most · l1 and L2² = squares · l2². Both are reached, by somebody
    whose values all go from one end of the bounds to the other. The table has to say who counts
    (`tables.person_cell_values.SelectedPersonCellValues`), and it has to fit these numbers: otherwise `TableError`,
    before anything is added up.

    >>> from hazemap.cells import Leaves
    >>> from hazemap.temporal.time_slots import Always
    >>> from hazemap.values.value_encoding import ValueEncoding
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> value_encoding = ValueEncoding(0, 65, degree=2)
    >>> tree = CellTimeSlots(Leaves.at_level(Quadtree.world(depth=1), 1), Always(), value_encoding)
    >>> people, weight = np.array([9, 0, 8, 1]), np.array([7, 0, 8, 0])
    >>> rule = OwnMeans(2, scale=KnownCountEncoding(value_encoding).l1)
    >>> asked = KnownCountValues(tree, rule, people, weight, most=2, squares=2)
    >>> asked.size, asked.sensitivity.l1 == 2 * 2**20, asked.sensitivity.l2_squared == 2 * 2**40
    (4, True, True)
    """

    tree: CellTimeSlots
    bounding: OwnMeans
    people: Ints
    weight: Ints
    most: int
    squares: int

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("people", "weight"):
            own_array(self, name, np.int64)
        if self.people.shape != (self.tree.places,) or self.weight.shape != self.people.shape:
            raise InputError("every place needs a number of people and a weight")
        if self.bounding.scale != self.known_encoding.l1:
            raise InputError(
                "a record must have as many parts as its known-count encoding: give the rule scale=known_encoding.l1"
            )
        cap = self.bounding.cells * self.bounding.records
        if not 1 <= self.most <= cap or not self.most <= self.squares <= self.most * self.bounding.records:
            raise InputError("what somebody weighs in all places is at least 1 and at most places times records")
        if self.weight.min() < 0 or not self.weight.any():
            raise InputError("places per person must be at least 1")

    @property
    def known_encoding(self) -> KnownCountEncoding:
        """What is asked of each place."""
        return KnownCountEncoding(self.tree.value_encoding)

    @cached_property
    def told(self) -> Ints:
        """The numbers of the places that are asked about."""
        return np.flatnonzero(self.weight)

    @property
    def size(self) -> int:
        """The counters of these places."""
        return len(self.told) * self.known_encoding.size

    @property
    def unit(self) -> int:
        """What one person at the upper bound is in the counter of the mean."""
        return self.known_encoding.scales[0]

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one person can move the sums by having other values."""
        return Sensitivity(self.most * self.known_encoding.l1, self.squares * self.known_encoding.l2_squared)

    def encode(self, table: "MemoryTable") -> Entries:
        """`TableError`: whom to count where is known of all people together, not from one person's rows."""
        raise TableError(f"{len(table.person)} rows do not say who counts where: values-only is for a curator")

    def total(self, table: VotesTable) -> Ints:
        """The exact sums. O(pairs)."""
        from hazemap.tables.person_cell_values import SelectedPersonCellValues

        if not isinstance(table, SelectedPersonCellValues):
            raise TableError("values-only is answered from pairs of people and places: tables.person_cell_values")
        weight, most, squares = table.weights()
        same = table.pairs.tree == self.tree and table.records == self.bounding.records
        if not same or not np.array_equal(weight, self.weight) or most > self.most or squares > self.squares:
            raise TableError("other people count in this table than were made public: choose them from this table")
        rank = np.zeros(self.tree.places, dtype=np.int64)
        rank[self.told] = np.arange(len(self.told))
        sums = np.zeros((len(self.told), self.known_encoding.size), dtype=np.int64)
        for place, counters in table.counters():
            np.add.at(sums, rank[place], counters)
        return sums.ravel()
