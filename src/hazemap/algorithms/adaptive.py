"""A tree whose cells all hold about as much as noise allows: the default method."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hazemap.algorithms.asking import with_nowhere
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import NOWHERE, Cells, Leaves, Tree
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate import Consistent, consistent, measurements, read
from hazemap.rounds import Answer, Prices, Query, Question, Rounds
from hazemap.tables.bounding import AtMostRows, Bounding


@dataclass(frozen=True)
class Adaptive:
    """First decide on the cells with a small part of the budget, then count them with the rest.

    Deciding: ask a coarse grid; cut every cell until its parts hold no more than some standard errors of the next
    round; ask again. Bagdasaryan et al. (2022) cut what stands out of the noise and end with cells of nearly equal
    area. This aims at cells of equal count: a cell of count c is cut k times, b^k ≈ c/(fullness σ), where b is the
    tree's fan-out and σ the noise that `Prices` tells for the next round.

    Counting: ask the cells, then coarser cells made of them (`coarser`: how many levels up, with which share), which
    are known better together than one by one. The cells are fixed by then, so these answers give unbiased numbers
    and intervals for every union of cells, by exact least squares (`estimate.read`); the picture may use all rounds.
    The parameters were chosen on synthetic maps (docs/adaptive.md).

    The first grid is the coarsest level with `first_cells` cells; `prior` replaces it by any disjoint cells: last
    year's map, or one of the buildings.

    >>> from hazemap.domains import Quadtree
    >>> Adaptive(Quadtree.world(depth=10)).share
    Fraction(17, 25)
    """

    tree: Tree
    bounding: Bounding = AtMostRows(1)
    first_cells: int = 64
    deciding: tuple[Fraction, ...] = (Fraction(1, 100), Fraction(3, 100), Fraction(8, 100))
    fullness: tuple[int, ...] = (20, 6, 6)
    coarser: tuple[tuple[int, Fraction], ...] = ((2, Fraction(3, 20)), (4, Fraction(1, 20)))
    prior: Leaves | None = None
    reading: Reading = Reading.SHRUNK

    def __post_init__(self) -> None:
        shares = (*self.deciding, *(share for _, share in self.coarser), self.share)
        if len(self.deciding) != len(self.fullness) or min(shares) <= 0:
            raise InputError(
                "an adaptive tree has one fullness for each deciding share, and shares that add up to less than 1"
            )
        if self.prior and (self.prior.tree != self.tree or self.prior.nested):
            raise InputError("a prior is made of cells of the same tree, none inside another")

    @property
    def share(self) -> Fraction:
        """What is left for the cells themselves."""
        return 1 - sum(self.deciding, Fraction(0)) - sum((share for _, share in self.coarser), Fraction(0))

    def rounds(self, prices: Prices) -> Rounds[CellMap]:
        """One query for each deciding share, one for the cells, one for each coarser level."""
        cells = with_nowhere(self.prior or coarsest(self.tree, self.first_cells), self.bounding)
        transcript: list[tuple[Question, Answer]] = []
        for share, fullness, following in zip(
            self.deciding, self.fullness, (*self.deciding[1:], self.share), strict=True
        ):
            query = Query(Counts(cells, self.bounding), share)
            transcript.append((query, (yield query)))
            noise = prices.stddev(query.encoder, following) / self.bounding.unit
            known = consistent(measurements(transcript, cells), cells)
            cells = with_nowhere(cut(known, fullness * noise), self.bounding)
        for levels, share in ((0, self.share), *self.coarser):
            query = Query(Counts(cells.above(levels), self.bounding), share)
            transcript.append((query, (yield query)))
        return read(transcript, cells, self.reading)


def coarsest(tree: Tree, cells: int) -> Leaves:
    """The coarsest level with at least so many cells (the finest level if none has)."""
    level = 0
    while (grid := Leaves.at_level(tree, level)).size < cells and level < tree.depth:
        level += 1
    return grid


def cut(known: Consistent, fullness: float) -> Leaves:
    """Each cell replaced by its descendants k levels down, k so that one of them holds about `fullness`."""
    tree, places = known.leaves.tree, known.leaves.cells != NOWHERE
    todo: Cells = known.leaves.cells[places]
    fan_out = _fan_out(tree)
    parts = np.maximum(known.numbers[places] / fullness, 1.0)
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
