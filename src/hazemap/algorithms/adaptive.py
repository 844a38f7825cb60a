"""A tree whose cells all hold about as much as noise allows: the default method."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hazemap.algorithms.asking import with_nowhere
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import Cells, Leaves, Tree
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate import read
from hazemap.rounds import Answer, Prices, Query, Question, Rounds
from hazemap.tables.bounding import AtMostRows, Bounding


@dataclass(frozen=True)
class Adaptive:
    """Ask a coarse grid; cut every cell until its parts hold no more than some standard errors; ask again.

    Bagdasaryan et al. (2022) cut what stands out of the noise and end with cells of nearly equal area. This
    aims at cells of equal *count*: before round i a cell of count c is cut k times, b^k ≈ c/(fullness_i σ_i),
    where b is the tree's fan-out and σ_i the noise that `Prices` tells for that round. All rounds are combined by
    exact least squares. Shares and fullness were chosen on synthetic maps (docs/adaptive.md).

    The first grid is the coarsest level with `first_cells` cells; `prior` replaces it by any disjoint cells: last
    year's map, or one of the buildings.

    >>> from hazemap.domains import Quadtree
    >>> Adaptive(Quadtree.world(depth=10)).shares[0]
    Fraction(1, 25)
    """

    tree: Tree
    bounding: Bounding = AtMostRows(1)
    first_cells: int = 64
    shares: tuple[Fraction, ...] = (Fraction(1, 25), Fraction(1, 10), Fraction(1, 4))
    fullness: tuple[int, ...] = (20, 6, 7)
    prior: Leaves | None = None
    reading: Reading = Reading.SHRUNK

    def __post_init__(self) -> None:
        if len(self.shares) != len(self.fullness) or min(self.shares, default=1) <= 0 or sum(self.shares) >= 1:
            raise InputError("an adaptive tree has one fullness a share, and shares that leave some for the last round")
        if self.prior and (self.prior.tree != self.tree or self.prior.nested):
            raise InputError("a prior is made of cells of the same tree, none inside another")

    def rounds(self, prices: Prices) -> Rounds[CellMap]:
        """One query more than there are shares; the last one spends the rest."""
        cells = self.prior or coarsest(self.tree, self.first_cells)
        transcript: list[tuple[Question, Answer]] = []
        for share, fullness in zip((*self.shares, 1 - sum(self.shares, Fraction(0))), (0, *self.fullness), strict=True):
            if transcript:
                known = read(transcript, cells, Reading.UNBIASED)
                noise = prices.stddev(Counts(cells, self.bounding), share) / self.bounding.unit
                cells = cut(known, fullness * noise)
            cells = with_nowhere(cells, self.bounding)
            query = Query(Counts(cells, self.bounding), share)
            answer = yield query
            transcript.append((query, answer))
        return read(transcript, cells, self.reading)


def coarsest(tree: Tree, cells: int) -> Leaves:
    """The coarsest level with at least so many cells (the finest level if none has)."""
    level = 0
    while (grid := Leaves.at_level(tree, level)).size < cells and level < tree.depth:
        level += 1
    return grid


def cut(cells: CellMap, fullness: float) -> Leaves:
    """Each cell replaced by its descendants k levels down, k so that one of them holds about `fullness`."""
    tree = cells.cells.tree
    todo: Cells = cells.cells.cells[cells.places]
    fan_out = _fan_out(tree)
    parts = np.maximum(cells.unbiased[cells.places] / fullness, 1.0)
    times = np.rint(np.log(parts) / np.log(fan_out)).astype(np.int64)
    times = np.minimum(times, tree.depth - tree.level(todo))
    done: list[Cells] = []
    while len(todo):
        done.append(todo[times <= 0])
        todo, times = todo[times > 0], times[times > 0]
        children = tree.children(todo)
        order = np.argsort(todo)
        times = times[order[np.searchsorted(todo[order], tree.parent(children))]] - 1
        todo = children
    return Leaves(tree, np.concatenate(done))


def _fan_out(tree: Tree) -> int:
    """How many children a cell has, most often."""
    return round(len(tree.children(tree.root)) / len(tree.root)) if tree.depth else 2
