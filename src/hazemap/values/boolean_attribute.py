"""A tree whose rows have sides, such as yes and no: how many people are infected, out of how many."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Columns, Leaves, Tree
from hazemap.errors import InputError, TableError
from hazemap.field_types import check_fields
from hazemap.values.marks import MOST_SIDES

MARK = "mark"
"""The column of the side: true or false, 1 or 0; of several marks the number of `values.marks.Marks`."""

YES_OR_NO = 2


@dataclass(frozen=True)
class BinaryAttribute:
    """Another tree with one level more: below each of its base cells are the rows of each side, without a mark or with.

    A cell c of the other tree is 4c here; the two sides of a base cell are 4c + 2 (no) and 4c + 3 (yes). So all
    that counts base cells counts marks as well, under the same bounding rules: a row has one side. A row whose mark is
    neither lies `NOWHERE`. This is the auxiliary bit of Bagdasaryan et al. (2022, appendix B).

    With more than two `sides` (`values.marks.Marks`), 3 to 8, a cell c is c·2^(b + 1), its side i is
    c·2^(b + 1) + 2^b + i; b is how many bits a side needs.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> tree = BinaryAttribute(Quadtree.world(depth=2))
    >>> rows = {"lon": np.array([2.3, 2.3]), "lat": np.array([48.8, 48.8]), "mark": np.array([0, 1])}
    >>> tree.names(tree.cell_at(rows, 3)), tree.depth
    (['12 no', '12 yes'], 3)
    """

    tree: Tree
    sides: int | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.sides is not None and not YES_OR_NO < self.sides <= MOST_SIDES:
            raise InputError(f"rows have two sides, or say 3 to {MOST_SIDES}; found {self.sides}")

    @property
    def number(self) -> int:
        """How many sides there are."""
        return self.sides or YES_OR_NO

    @property
    def shift(self) -> np.uint64:
        """By how many bits a cell of the other tree is moved."""
        return np.uint64(1 + (self.number - 1).bit_length())

    @property
    def first(self) -> np.uint64:
        """The bit that a side has and a cell has not."""
        return np.uint64(1) << (self.shift - np.uint64(1))

    @property
    def depth(self) -> int:
        """One more than the other tree's."""
        return self.tree.depth + 1

    @property
    def root(self) -> Cells:
        """The other tree's."""
        return self.tree.root << self.shift

    def children(self, cells: Cells) -> Cells:
        """The other tree's children; of its base cells, the sides."""
        inner = cells >> self.shift
        base = self.tree.level(inner) == self.tree.depth
        if not base.any():
            return self.tree.children(inner) << self.shift
        if not base.all():
            raise InputError("ask for the children of base cells and of other cells separately")
        sides: Cells = ((inner << self.shift)[:, None] | self.first | np.arange(self.number, dtype=np.uint64)).ravel()
        return sides

    def parent(self, cells: Cells) -> Cells:
        """The base cell of a side; the other tree's parent of any other cell."""
        inner, side = cells >> self.shift, self._is_side(cells)
        found = inner << self.shift
        if not side.all():
            found[~side] = self.tree.parent(inner[~side]) << self.shift
        return found

    def level(self, cells: Cells) -> NDArray[np.int64]:
        """The other tree's; its depth and one for a side."""
        levels: NDArray[np.int64] = self.tree.level(cells >> self.shift) + self._is_side(cells)
        return levels

    def span(self, cells: Cells) -> tuple[Cells, Cells]:
        """All that stands for the rows in each cell: all sides, unless it is one; a base cell goes with its first."""
        side, number = self._is_side(cells), cells & (self.first - np.uint64(1))
        first, last = self.tree.span(cells >> self.shift)
        first, last = first << self.shift, last << self.shift | self.first | np.uint64(self.number - 1)
        return np.where(side & (number > 0), cells, first), np.where(side & (number + 1 < self.number), cells, last)

    def cell_at(self, columns: Columns, level: int) -> Cells:
        """The cell of each row; `TableError` without the column `mark`."""
        known = self._known(columns)
        if level < self.depth:
            inner = self.tree.cell_at(columns, level)
            return np.where(known, inner << self.shift, NOWHERE)
        inner = self.tree.cell_at(columns, self.tree.depth)
        side = np.where(known, columns[MARK], 0).astype(np.uint64)
        return np.where(known & (inner != NOWHERE), inner << self.shift | self.first | side, NOWHERE)

    def area(self, cells: Cells) -> NDArray[np.float64]:
        """The other tree's; each side covers its whole base cell."""
        return self.tree.area(cells >> self.shift)

    def outlines(self, cells: Cells) -> NDArray[Any]:
        """The other tree's."""
        return self.tree.outlines(cells >> self.shift)

    def names(self, cells: Cells) -> list[str]:
        """The other tree's; with the side."""
        side = np.where(self._is_side(cells), 1 + (cells & (self.first - np.uint64(1))).astype(np.int64), 0)
        ends = np.array(["", *(f" {word}" for word in self._words)])[side]
        return [name + end for name, end in zip(self.tree.names(cells >> self.shift), ends.tolist(), strict=True)]

    def named(self, names: list[str]) -> Cells:
        """The cells with these names."""
        parts = [name.partition(" ") for name in names]
        if any(side not in ("", *self._words) or bool(space) != bool(side) for _, space, side in parts):
            raise InputError(
                f"write a marked cell as the name of a cell, followed by a side if you like: {', '.join(self._words)}"
            )
        inner = self.tree.named([name for name, _, _ in parts])
        number = {word: int(self.first) + at for at, word in enumerate(self._words)}
        return inner << self.shift | np.array([number.get(side, 0) for *_, side in parts], dtype=np.uint64)

    @property
    def _words(self) -> tuple[str, ...]:
        """What the sides are called."""
        return ("no", "yes") if self.sides is None else tuple(map(str, range(self.sides)))

    def _is_side(self, cells: Cells) -> NDArray[np.bool_]:
        side: NDArray[np.bool_] = (cells & self.first) != 0
        return side

    def _known(self, columns: Columns) -> NDArray[np.bool_]:
        """Which rows have a side."""
        if MARK not in columns:
            raise TableError(f"a table of marked rows needs a column {MARK!r}; found {', '.join(sorted(columns))}")
        return np.isin(columns[MARK], np.arange(self.number))


@dataclass(frozen=True)
class AttributeCells:
    """Each of some cells once for every side: first all rows without the mark, cell by cell, then all with it.

    A partition of a `BinaryAttribute` tree, made of disjoint cells of the tree inside.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> inner = Quadtree.world(depth=2)
    >>> AttributeCells(Leaves(inner, inner.children(inner.root))).size
    8
    """

    cells: Leaves
    sides: int | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.cells.cells == NOWHERE).any():
            raise InputError("rows outside the map are neither marked nor unmarked: leave NOWHERE out of the cells")
        _ = self.tree

    @property
    def tree(self) -> BinaryAttribute:
        """The tree whose base cells are counted."""
        return BinaryAttribute(self.cells.tree, self.sides)

    @property
    def size(self) -> int:
        """As many for each cell as there are sides."""
        return self.tree.number * self.cells.size

    def locate(self, base: Cells) -> NDArray[np.int64]:
        """For each base cell the position of the cell and side it lies in; -1 for none."""
        tree = self.tree
        found = self.cells.locate(base >> tree.shift)
        side = (base & (tree.first - np.uint64(1))).astype(np.int64)
        return np.where(found >= 0, found + self.cells.size * side, -1)

    def total(self, base: Cells, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """The weight in each cell and side, given sorted base cells with weights: O(size · log base)."""
        tree = self.tree
        side = base & (tree.first - np.uint64(1))
        each = (side == number for number in range(tree.number))
        return np.concatenate([self.cells.total(base[some] >> tree.shift, weights[some]) for some in each])
