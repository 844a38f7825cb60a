"""A tree whose rows carry a yes-or-no attribute: how many people are infected, out of how many."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Columns, Leaves, Tree
from hazemap.errors import InputError, TableError
from hazemap.field_types import check_fields

MARK = "mark"
"""The column of the mark: true or false, 1 or 0."""

_TWO = np.uint64(2)


@dataclass(frozen=True)
class BinaryAttribute:
    """Another tree with one level more: below each of its base cells lie the rows without and with the mark.

    A cell c of the other tree is 4c here; the two sides of a base cell are 4c + 2 (no) and 4c + 3 (yes). So all
    that counts base cells counts marks as well, under the same bounding rules: a row has one side. A row whose mark is
    neither lies `NOWHERE`. This is the auxiliary bit of Bagdasaryan et al. (2022, appendix B).

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> tree = BinaryAttribute(Quadtree.world(depth=2))
    >>> rows = {"lon": np.array([2.3, 2.3]), "lat": np.array([48.8, 48.8]), "mark": np.array([0, 1])}
    >>> tree.names(tree.cell_at(rows, 3)), tree.depth
    (['12 no', '12 yes'], 3)
    """

    tree: Tree

    @property
    def depth(self) -> int:
        """One more than the other tree's."""
        return self.tree.depth + 1

    @property
    def root(self) -> Cells:
        """The other tree's."""
        return self.tree.root << _TWO

    def children(self, cells: Cells) -> Cells:
        """The other tree's children; of its base cells, the two sides."""
        inner = cells >> _TWO
        base = self.tree.level(inner) == self.tree.depth
        if not base.any():
            return self.tree.children(inner) << _TWO
        if not base.all():
            raise InputError("ask for the children of base cells and of other cells separately")
        sides: Cells = ((inner << _TWO)[:, None] | np.array([2, 3], dtype=np.uint64)).ravel()
        return sides

    def parent(self, cells: Cells) -> Cells:
        """The base cell of a side; the other tree's parent of any other cell."""
        inner, side = cells >> _TWO, (cells & _TWO) != 0
        found = inner << _TWO
        if not side.all():
            found[~side] = self.tree.parent(inner[~side]) << _TWO
        return found

    def level(self, cells: Cells) -> NDArray[np.int64]:
        """The other tree's; its depth and one for a side."""
        levels: NDArray[np.int64] = self.tree.level(cells >> _TWO) + ((cells & _TWO) != 0)
        return levels

    def span(self, cells: Cells) -> tuple[Cells, Cells]:
        """All that stands for the rows in each cell: both sides, unless it is one."""
        side = (cells & _TWO) != 0
        first, last = self.tree.span(cells >> _TWO)
        first, last = first << _TWO, last << _TWO | np.uint64(3)
        no = side & (cells & np.uint64(1) == 0)
        yes = side & ~no
        return np.where(yes, cells, first), np.where(no, cells, last)

    def cell_at(self, columns: Columns, level: int) -> Cells:
        """The cell of each row; `TableError` without the column `mark`."""
        if level < self.depth:
            inner = self.tree.cell_at(columns, level)
            return np.where(_known(columns), inner << _TWO, NOWHERE)
        inner = self.tree.cell_at(columns, self.tree.depth)
        yes = np.asarray(columns[MARK] == 1, dtype=np.uint64) if MARK in columns else np.zeros(len(inner), np.uint64)
        return np.where(_known(columns) & (inner != NOWHERE), inner << _TWO | _TWO | yes, NOWHERE)

    def area(self, cells: Cells) -> NDArray[np.float64]:
        """The other tree's; each side covers its whole base cell."""
        return self.tree.area(cells >> _TWO)

    def outlines(self, cells: Cells) -> NDArray[Any]:
        """The other tree's."""
        return self.tree.outlines(cells >> _TWO)

    def names(self, cells: Cells) -> list[str]:
        """The other tree's; with the side."""
        ends = np.array(["", "", " no", " yes"])[(cells & np.uint64(3)).astype(np.int64)]
        return [name + end for name, end in zip(self.tree.names(cells >> _TWO), ends.tolist(), strict=True)]

    def named(self, names: list[str]) -> Cells:
        """The cells with these names."""
        parts = [name.partition(" ") for name in names]
        if any(side not in ("", "no", "yes") or bool(space) != bool(side) for _, space, side in parts):
            raise InputError("write a marked cell as the name of a cell, followed by ' no' or ' yes' if you like")
        inner = self.tree.named([name for name, _, _ in parts])
        return inner << _TWO | np.array([{"": 0, "no": 2, "yes": 3}[side] for *_, side in parts], dtype=np.uint64)


@dataclass(frozen=True)
class AttributeCells:
    """Each of some cells twice: first all rows without the mark, cell by cell, then all with it.

    A partition of a `BinaryAttribute` tree, made of disjoint cells of the tree inside.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> inner = Quadtree.world(depth=2)
    >>> AttributeCells(Leaves(inner, inner.children(inner.root))).size
    8
    """

    cells: Leaves

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.cells.cells == NOWHERE).any():
            raise InputError("rows outside the map are neither marked nor unmarked: leave NOWHERE out of the cells")

    @property
    def tree(self) -> BinaryAttribute:
        """The tree whose base cells are counted."""
        return BinaryAttribute(self.cells.tree)

    @property
    def size(self) -> int:
        """Two for each cell."""
        return 2 * self.cells.size

    def locate(self, base: Cells) -> NDArray[np.int64]:
        """For each base cell the position of the cell and side it lies in; -1 for none."""
        found = self.cells.locate(base >> _TWO)
        return np.where(found >= 0, found + self.cells.size * (base & np.uint64(1)).astype(np.int64), -1)

    def total(self, base: Cells, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """The weight in each cell and side, given sorted base cells with weights: O(size · log base)."""
        yes = (base & np.uint64(1)).astype(bool)
        return np.concatenate([self.cells.total(base[side] >> _TWO, weights[side]) for side in (~yes, yes)])


def _known(columns: Columns) -> NDArray[np.bool_]:
    """Which rows say yes or no."""
    if MARK not in columns:
        raise TableError(f"a table of marked rows needs a column {MARK!r}; found {', '.join(sorted(columns))}")
    known: NDArray[np.bool_] = (columns[MARK] == 1) | (columns[MARK] == 0)
    return known
