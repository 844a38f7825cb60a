"""The two nouns everything else is built on: a Partition and a Tree of cells.

A cell is one unsigned 64-bit number. Its tree gives it meaning, so arrays of cells travel, sort and
compare without objects. Rows become *base cells* (the cells of the tree's deepest level) once, early;
a tree numbers them so that the base cells inside any cell are one contiguous range, its *span*.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.field_types import EqualByFields
from hazemap.machine_code.hash_index import HashIndex
from hazemap.vdaf.compiled_loops import once_compiled

Cells = NDArray[np.uint64]
Columns = Mapping[str, NDArray[Any]]  # "lon" and "lat" in degrees

NOWHERE = np.uint64(0)
"""The cell of a row that lies in no cell: outside the box, or without a usable coordinate."""


class Tree(Protocol):
    """A domain cut again and again: the children of a cell tile it.

    Laws (tests/laws/test_trees.py): `parent(children(c)) == c`; `parent(cell_at(r, l)) == cell_at(r, l - 1)`;
    the spans of the children tile the span of the parent; no cell is `NOWHERE`.
    """

    @property
    def depth(self) -> int:
        """Levels below the root; base cells are at this level."""

    @property
    def root(self) -> Cells:
        """The cells of level 0, in ascending order (one for a quadtree, several for hexagons)."""

    def children(self, cells: Cells) -> Cells:
        """The children of each cell, in order, in one flat array (hexagons have 7 or 6 of them)."""

    def parent(self, cells: Cells) -> Cells:
        """The parent of each cell (of level 1 or more)."""

    def level(self, cells: Cells) -> NDArray[np.int64]:
        """The level of each cell: 0 for the root."""

    def span(self, cells: Cells) -> tuple[Cells, Cells]:
        """The first and the last number that stand for each cell, both inclusive: O(cells · depth).

        A base cell lies in a cell if its number is in the span. The last number of a child and one is the first
        of the next, also where numbers between are no cells (hexagons); so the ends need not be cells.
        """

    def cell_at(self, columns: Columns, level: int) -> Cells:
        """For each row its cell at this level; `NOWHERE` for a row outside or without coordinates."""

    def area(self, cells: Cells) -> NDArray[np.float64]:
        """Geodesic area of each cell in square metres."""

    def outlines(self, cells: Cells) -> NDArray[Any]:
        """Each cell as a shapely polygon in longitude and latitude (WGS 84)."""

    def names(self, cells: Cells) -> list[str]:
        """How people write each cell: a quadkey, an H3 index."""

    def named(self, names: list[str]) -> Cells:
        """The cells with these names; `InputError` for a name that is not one."""


@runtime_checkable
class NamedByDigits(Protocol):
    """A tree whose names are digits, so that many are read without making a text of each."""

    def named_in(self, lengths: NDArray[np.int64], letters: NDArray[np.uint8]) -> Cells | None:
        """The cells with these names: their lengths, and all letters one after another. None where one is no name."""


@runtime_checkable
class Redrawn(Protocol):
    """A tree drawn over the base cells of another: once those are counted, rows need not be read again.

    A rule that bounds what a person contributes looks at the cells of `base`.
    """

    @property
    def base(self) -> Tree:
        """The other tree."""

    @property
    def leaves(self) -> Cells:
        """The base cells of this tree, in ascending order."""

    def positions(self, base: Cells) -> NDArray[np.int64]:
        """For each base cell of `base`, which of `leaves` holds it; -1 for `NOWHERE`."""


@runtime_checkable
class Growing(Protocol):
    """A tree that is cut while it is asked: cells and spans stay what they are.

    Laws (tests/laws/test_composition.py), for every span of a tree that this one extends: a row whose number was in it
    has its number in it here, and no other row has, except within the stretches of `renumbered`, which no row leaves
    or enters.
    """

    def extends(self, other: object) -> bool:
        """Whether this tree is the other one, with perhaps more cells cut."""

    def renumbered(self, other: Any) -> tuple[Cells, Cells]:
        """First and last number of stretches, ascending, in which rows may have other numbers than in `other`.

        Asked only of a tree that this one extends. Places in such a stretch cannot be told apart.
        """


class Partition(Protocol):
    """Disjoint cells in a fixed order: what a query counts over."""

    @property
    def tree(self) -> Tree:
        """The tree whose base cells are counted."""

    @property
    def size(self) -> int:
        """How many cells."""

    def locate(self, base: Cells) -> NDArray[np.int64]:
        """For each base cell the position of the cell it lies in; -1 for none."""

    def total(self, base: Cells, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """The weight in each cell, given sorted base cells with weights: O(size · log base)."""


def distinct(cells: Cells) -> Cells:
    """Each once, in ascending order, by sorting: NumPy's own way is many times slower for some sets of cells.

    >>> distinct(np.array([5, 4, 5], dtype=np.uint64))
    array([4, 5], dtype=uint64)
    """
    ordered: Cells = cells if (cells[1:] >= cells[:-1]).all() else np.sort(cells)
    first: NDArray[np.bool_] = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)]
    return ordered[first]


def _ascending(cells: Cells) -> bool:
    """Whether each cell is more than the one before it, `NOWHERE` left out, which may be there once."""
    if (cells[1:] > cells[:-1]).all():
        return True
    nowhere = np.flatnonzero(cells == NOWHERE)
    real = np.delete(cells, nowhere)
    return len(nowhere) < 2 and bool((real[1:] > real[:-1]).all())


HASHED = 1 << 18
"""So many cells at most are found by hashing: sooner than by searching, as long as they fit a processor's cache."""

MOST_CELLS = 1 << 25
"""The largest regular grid that is asked for in one query."""


@dataclass(frozen=True, eq=False)
class Leaves(EqualByFields):
    """Cells of one tree, in any order. A base cell belongs to the deepest of them that holds it.

    So a cell that stands together with some of its own descendants owns only what they leave over
    (Bagdasaryan et al. 2022: partial splits, orphans). `NOWHERE` may be one of the cells: it owns the
    rows that lie in none.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> tree = Quadtree.world(depth=2)
    >>> quarters = Leaves(tree, tree.children(tree.root))
    >>> quarters.size, quarters.locate(tree.cell_at({"lon": np.array([2.35]), "lat": np.array([48.85])}, 2))
    (4, array([1]))
    """

    tree: Tree
    cells: Cells

    def __post_init__(self) -> None:
        given = self.cells
        ours = isinstance(given, np.ndarray) and given.dtype == np.uint64 and given.base is None
        cells = given if ours and not given.flags.writeable else np.array(given, dtype=np.uint64)
        if cells.ndim != 1 or not (_ascending(cells) or len(distinct(cells)) == len(cells)):
            raise InputError("the cells of a partition must be a one-dimensional array of distinct cells")
        cells.setflags(write=False)
        object.__setattr__(self, "cells", cells)
        real = self.levels[cells != NOWHERE] if NOWHERE in cells else self.levels
        if real.size and not 0 <= real.min() <= real.max() <= self.tree.depth:
            strange = (real < 0) | (real > self.tree.depth)
            raise InputError(
                f"the cells of a partition have levels 0 to {self.tree.depth}, as their tree has;"
                f" found {int(strange.sum())} cells of other levels"
            )

    def same_cells(self, other: "Leaves") -> bool:
        """Whether these are the cells of the other partition, in perhaps another order."""
        if self.size != other.size:
            return False
        return np.array_equal(self.cells, other.cells) or np.array_equal(np.sort(self.cells), np.sort(other.cells))

    @classmethod
    def at_level(cls, tree: Tree, level: int) -> "Leaves":
        """All cells of one level: a regular grid."""
        if not 0 <= level <= tree.depth:
            raise InputError(f"this tree has levels 0 to {tree.depth}, not {level}")
        cells = tree.root.copy()
        for _ in range(level):
            cells = tree.children(cells)
            if len(cells) > MOST_CELLS:
                raise InputError(f"level {level} has more than {MOST_CELLS:,} cells; ask for a coarser one")
        cells.setflags(write=False)
        grid = object.__new__(cls)
        grid.__dict__["levels"] = np.broadcast_to(np.int64(level), cells.shape)  # known already
        grid.__init__(tree, cells)  # type: ignore[misc]
        return grid

    @property
    def size(self) -> int:
        """How many cells."""
        return len(self.cells)

    @cached_property
    def levels(self) -> NDArray[np.int64]:
        """The level of each cell; -1 for `NOWHERE`."""
        real = self.cells != NOWHERE
        if real.all():
            return self.tree.level(self.cells)
        levels = np.full(self.size, -1, dtype=np.int64)
        levels[real] = self.tree.level(self.cells[real])
        return levels

    def above(self, levels: int) -> "Leaves":
        """The ancestors `levels` up (or at the root), without those inside others: they tile as the cells do."""
        found = self.cells
        for _ in range(min(levels, self.tree.depth)):
            lower = Leaves(self.tree, found).levels > 0
            found = distinct(np.concatenate([found[~lower], self.tree.parent(found[lower])]))
        every = Leaves(self.tree, found)
        return Leaves(self.tree, found[every.holder < 0]) if levels else self

    @cached_property
    def spans(self) -> tuple[Cells, Cells]:
        """First and last number of each (see `Tree.span`), those of nested cells included."""
        real = self.cells != NOWHERE
        if real.all():
            return self.tree.span(self.cells)
        first, last = np.zeros((2, self.size), dtype=np.uint64)
        first[real], last[real] = self.tree.span(self.cells[real])
        return first, last

    @cached_property
    def in_order(self) -> bool:
        """Whether each cell ends before the next one begins, as in a regular grid: then much is known at once."""
        first, last = self.spans
        return bool((last[:-1] < first[1:]).all())

    @cached_property
    def places_in_order(self) -> bool:
        """Whether that is so of all cells but `NOWHERE`, which begins and ends before any other."""
        if self.in_order:
            return True
        real = self.cells != NOWHERE
        if real.all():
            return False
        first, last = (ends[real] for ends in self.spans)
        return bool((last[:-1] < first[1:]).all() and (first[:1] > 0).all())

    @cached_property
    def stretches(self) -> tuple[Cells, Cells]:
        """First and last number of each stretch that these cells cover without a gap: one, if they tile the domain."""
        first, last = self.spans
        if not self.in_order:
            first, last = first[self.order], np.maximum.accumulate(last[self.order])
        gap = first[1:] > last[:-1] + np.uint64(1)
        some = np.ones(min(self.size, 1), dtype=bool)
        return first[np.concatenate([some, gap])], last[np.concatenate([gap, some])]

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Positions by the start of the span, outer cells before the cells in them."""
        if self.in_order:
            return np.arange(self.size)
        if self.places_in_order:
            return np.concatenate([np.flatnonzero(self.cells == NOWHERE), np.flatnonzero(self.cells != NOWHERE)])
        first, last = self.spans
        return np.lexsort((self.levels, ~last, first))  # the level tells a cell from an only child

    @cached_property
    def _finest(self) -> HashIndex | None:
        """Where each cell stands, if all are base cells, so that nothing else lies in them, and not too many."""
        return HashIndex(self.cells) if self.size <= HASHED and (self.levels == self.tree.depth).all() else None

    @cached_property
    def holder(self) -> NDArray[np.int64]:
        """The position of the smallest other cell that contains each cell; -1 for none."""
        if self.places_in_order:
            return np.full(self.size, -1)
        first, last = (ends[self.order] for ends in self.spans)
        # Spans are nested or disjoint. `before[i]` is an earlier cell such that none between them holds i;
        # while it ends before i begins, its own `before` will do: chains of siblings halve in every round.
        before = np.arange(-1, self.size)
        before[-1] = -1  # the last place is also place -1, the end of every chain
        seek = np.arange(self.size)
        while (seek := seek[(before[seek] >= 0) & (last[before[seek]] < first[seek])]).size:
            before[seek] = before[before[seek]]
        holder = np.empty(self.size, dtype=np.int64)
        holder[self.order] = np.append(self.order, -1)[before[:-1]]
        return holder

    @property
    def nested(self) -> bool:
        """Whether some cell lies inside another."""
        return not self.places_in_order and bool((self.holder >= 0).any())

    def own(self, whole: NDArray[Any]) -> NDArray[Any]:
        """What each cell owns, given an additive quantity of each whole cell (an area, a sum)."""
        if self.places_in_order:
            return whole.copy()
        inside = self.holder >= 0
        owned = whole.copy()
        np.subtract.at(owned, self.holder[inside], whole[inside])
        return owned

    @cached_property
    def areas(self) -> NDArray[np.float64]:
        """Square metres that each cell owns; 0 for `NOWHERE` and for a cell that others fill.

        The area of a cell with others inside is that of the largest cells that the others leave free. So it
        is never negative, as a difference could be: hexagons have not quite the area of their children.
        """
        real = self.cells != NOWHERE
        if real.all():
            owned = np.asarray(self.tree.area(self.cells), dtype=np.float64)
        else:
            owned = np.zeros(self.size)
            owned[real] = self.tree.area(self.cells[real])
        if not self.nested:
            return owned
        owned = owned.copy()
        owned[self.holder[self.holder >= 0]] = 0
        # Climb from the nested cells: `taken` are cells with something listed in them, `owner` holds them.
        taken, owner = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
        for level in range(int(self.levels.max(initial=0)), 0, -1):
            nested = (self.levels == level) & (self.holder >= 0)
            taken = np.concatenate([taken, self.cells[nested]])
            owner = np.concatenate([owner, self.holder[nested]])
            around, which = np.unique(self.tree.parent(taken), return_index=True)
            owner = owner[which]
            inside = self.tree.children(around)
            free = inside[~np.isin(inside, taken)]
            np.add.at(owned, owner[np.searchsorted(around, self.tree.parent(free))], self.tree.area(free))
            climb = self.cells[owner] != around
            taken, owner = around[climb], owner[climb]
        return owned

    def total(self, base: Cells, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """The weight in each cell, given sorted base cells with weights: O(size + base) where cells are in order."""
        if self.in_order:
            sums: NDArray[np.int64] = once_compiled(_walk_loop)(*self.spans, base, weights)
            return sums
        cumulative = np.concatenate([[0], np.cumsum(weights)])
        first, last = self.spans
        until, before = np.searchsorted(base, last, "right"), np.searchsorted(base, first, "left")
        owned: NDArray[np.int64] = self.own(cumulative[until] - cumulative[before])
        return owned

    def locate(self, base: Cells) -> NDArray[np.int64]:
        """For each base cell the position of the deepest cell that holds it; -1 for none."""
        if self._finest is not None:
            return self._finest.of(base)
        first, last = self.spans
        # The last place is also place -1, where every search ends: no base cell lies after it.
        last = np.append(last, np.iinfo(np.uint64).max)
        found = np.append(self.order, -1)[np.searchsorted(first[self.order], base, "right") - 1]
        outside = np.flatnonzero(base > last[found])
        while outside.size:  # climb to the cell around; at most `depth` times
            found[outside] = self.holder[found[outside]]
            outside = outside[base[outside] > last[found[outside]]]
        return found


def _walk_loop(first, last, base, weights):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    sums = np.zeros(len(first), dtype=np.int64)
    at = 0
    for cell in range(len(first)):
        while at < len(base) and base[at] < first[cell]:
            at += 1
        while at < len(base) and base[at] <= last[cell]:
            sums[cell] += weights[at]
            at += 1
    return sums


@dataclass(frozen=True)
class WholeDomain:
    """All cells of a tree together, as one number: what a tree with several roots has above them.

    Rows in `NOWHERE` are not among it.

    >>> from hazemap.spatial.bounding_box import Box
    >>> from hazemap.spatial.h3_hexagons import Hexagons
    >>> tree = Hexagons(Box(2.2, 48.8, 2.5, 48.9), 6, 8)
    >>> len(tree.root), WholeDomain(tree).total(tree.children(tree.root)[:3], np.array([5, 2, 1]))
    (19, array([8]))
    """

    tree: Tree

    @property
    def size(self) -> int:
        """One."""
        return 1

    def locate(self, base: Cells) -> NDArray[np.int64]:
        """For each base cell 0; -1 for `NOWHERE`."""
        return np.where(base == NOWHERE, -1, 0)

    def total(self, base: Cells, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """All weight in the tree: O(base)."""
        return np.array([weights[base != NOWHERE].sum()], dtype=np.int64)
