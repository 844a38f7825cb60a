"""One count for every cell of one level."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hazemap.algorithm_disclosure import Disclosure, Learned, counted
from hazemap.algorithms.count_queries import grids_up, laplace_epsilon, mapped, number_of_people, together
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import NOWHERE, Leaves, Tree
from hazemap.errors import InputError
from hazemap.estimate import Measurement, consistent, measurements, nonnegative, read
from hazemap.noisy_queries import Prices, Query, Rounds
from hazemap.tables.contribution_bounding import AtMostRows, Bounding


@dataclass(frozen=True)
class Flat:
    """A regular grid (or all hexagons of a resolution), asked once with the whole budget.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> Flat(Quadtree.world(depth=8), level=4).level
    4
    """

    tree: Tree
    level: int
    bounding: Bounding = AtMostRows(1)
    reading: Reading = Reading.NONNEGATIVE
    disclosure: ClassVar[Disclosure] = counted()

    def rounds(self, prices: Prices) -> Rounds[CellMap]:  # noqa: ARG002 - one query needs no price
        """One query."""
        return (yield from mapped(Leaves.at_level(self.tree, self.level), self.bounding, self.reading))


@dataclass(frozen=True)
class FittedLevel:
    """About N'ε/10 cells, N' a noisy number of people that is paid for: the rule of `UniformGrid` for any tree.

    For any noise, ε is read as √2/σ, what it is for Laplace noise of standard deviation σ. The grid is the level
    of the tree whose number of cells is nearest (in ratio) to the rule's.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> FittedLevel(Quadtree.world(depth=8)).people_a_cell
    10
    """

    tree: Tree
    bounding: Bounding = AtMostRows(1)
    share_of_number: Fraction = Fraction(1, 50)
    people_a_cell: int = 10
    reading: Reading = Reading.NONNEGATIVE
    disclosure: ClassVar[Disclosure] = counted(Learned.PEOPLE, Learned.FINENESS)

    def rounds(self, prices: Prices) -> Rounds[CellMap]:
        """Two queries: the number of people, then the grid."""
        people, left, asked = yield from number_of_people(self.tree, self.bounding, self.share_of_number)
        epsilon = laplace_epsilon(prices, self.tree, self.bounding, left, self.people_a_cell)
        cells = self._grid(people * epsilon / self.people_a_cell)
        return (yield from mapped(cells, self.bounding, self.reading, left, asked))

    def _grid(self, wanted: float) -> Leaves:
        """The level whose number of cells is nearest to the one wanted."""
        finer = coarser = Leaves.at_level(self.tree, 0)
        for level in range(1, self.tree.depth + 1):
            if finer.size >= wanted:
                break
            try:
                coarser, finer = finer, Leaves.at_level(self.tree, level)
            except InputError:  # more cells than one query may have: the finest grid that it may
                break
        return finer if finer.size * coarser.size <= wanted**2 else coarser


@dataclass(frozen=True)
class BestLevel:
    """Hierarchical one-hot as in Bagdasaryan et al. (2022, section 5.1): asked as `Hierarchical` does, then one level.

    They choose the level that is nearest to the truth, which a curator would have to look at. Here the answers choose:
    the squared error of a histogram with counts c and areas A is a constant less Σ c²/A, plus its noise Σ σ²/A (Rudemo
    1982, with noise). Noisy counts ĉ put Σ c²/A too high by Σ σ²/A, so the level with the largest Σ (ĉ² − 2σ²)/A is
    shown, spread evenly over cells of level `level`.

    The cells are fixed beforehand and noise decides only on the best guess, so the unbiased numbers and their
    intervals are those of `Hierarchical`.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> BestLevel(Quadtree.world(depth=8), level=8).level
    8
    """

    tree: Tree
    level: int
    bounding: Bounding = AtMostRows(1)
    disclosure: ClassVar[Disclosure] = counted(Learned.FINENESS)

    def rounds(self, prices: Prices) -> Rounds[CellMap]:  # noqa: ARG002 - one query needs no price
        """One query."""
        levels = grids_up(self.tree, self.level, self.level, self.bounding)
        query = Query(together(levels, (1,) * self.level, self.bounding), Fraction(1))
        answer = yield query
        cells = levels[0]
        plain = read([(query, answer)], cells, Reading.UNBIASED)
        best = max(measurements([(query, answer)], cells), key=evidence)
        shown = consistent([best], best.leaves, float(plain.unbiased[plain.places].sum()))
        spread = _spread(best.leaves, nonnegative(best.leaves, shown.numbers), cells)
        return replace(plain, values=np.where(plain.places, spread, plain.unbiased))


def evidence(level: Measurement) -> float:
    """How much a level explains: an estimate of what its squared error lacks to a constant, per square metre."""
    real = level.leaves.cells != NOWHERE
    explained = level.numbers[real] ** 2 - 2 * level.variances[real]
    return float((explained / level.leaves.areas[real]).sum())


def _spread(coarse: Leaves, numbers: NDArray[np.float64], cells: Leaves) -> NDArray[np.float64]:
    """Each number shared out by area among the cells inside its cell; nothing for `NOWHERE`."""
    holder = coarse.locate(cells.spans[0])
    place = (cells.cells != NOWHERE) & (holder >= 0)
    areas = np.bincount(holder[place], cells.areas[place], coarse.size)
    spread = np.zeros(cells.size)
    spread[place] = numbers[holder[place]] * cells.areas[place] / areas[holder[place]]
    return spread
