"""One level of cells, asked at once: what other methods are measured against."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import ceil
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hazemap.algorithms.built_in_methods import GHAZI, SHAHAM
from hazemap.algorithms.count_queries import grids_up, mapped, together
from hazemap.algorithms.named_methods import LEVEL, PERCENT, NamedMethod
from hazemap.algorithms.single_level import Flat
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import NOWHERE, Leaves, Tree
from hazemap.errors import InputError
from hazemap.estimate import Measurement, consistent, measurements, nonnegative, read
from hazemap.queries.algorithm_disclosure import Disclosure, Learned, counted
from hazemap.queries.noisy_queries import Prices, Query, Rounds
from hazemap.tables.contribution_bounding import AtMostRows, Bounding, OneVote


@dataclass(frozen=True)
class LaplaceClip:
    """All cells of one level, asked once; in the picture minus signs are zeros.

    The baseline of Ghazi et al. (2022), from Liu et al. (ETRA 2019). What noise leaves above zero adds up: the total of
    a sparse map grows by σ/√8 a cell, which `Flat` avoids. The unbiased numbers stand beside it.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> LaplaceClip(Quadtree.world(depth=8), level=8).level
    8
    """

    tree: Tree
    level: int
    bounding: Bounding = OneVote()
    disclosure: ClassVar[Disclosure] = counted()

    def rounds(self, prices: Prices) -> Rounds[CellMap]:  # noqa: ARG002 - one query needs no price
        """One query."""
        made = yield from mapped(Leaves.at_level(self.tree, self.level), self.bounding, Reading.UNBIASED)
        return replace(made, values=np.maximum(made.unbiased, 0))


@dataclass(frozen=True)
class TopCells:
    """All cells of one level, asked once; in the picture the part `kept` of them, others empty.

    The thresholding baseline of Ghazi et al. (2022), who keep 0.01 % and 0.001 %: it suits maps as sparse as that, and
    hides more the more people there are. One cell is always kept, and none whose number is below 0. Of equal numbers
    the first in the order of the cells is kept. The unbiased numbers of all cells stand beside it.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> TopCells(Quadtree.world(depth=8), level=8).kept
    Fraction(1, 10000)
    """

    tree: Tree
    level: int
    bounding: Bounding = OneVote()
    kept: Fraction = Fraction(1, 10_000)
    disclosure: ClassVar[Disclosure] = counted()

    def __post_init__(self) -> None:
        if not 0 < self.kept <= 1:
            raise InputError(
                f"the part of the cells to keep must be above 0 and at most 100 %, not {float(self.kept):.3%}"
            )

    def rounds(self, prices: Prices) -> Rounds[CellMap]:
        """One query."""
        made = yield from LaplaceClip(self.tree, self.level, self.bounding).rounds(prices)
        places, values = np.flatnonzero(made.places), made.values.copy()
        fullest = np.argsort(-made.unbiased[places], kind="stable")
        values[places[fullest[ceil(self.kept * len(places)) :]]] = 0
        return replace(made, values=values)


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


TOTAL = NamedMethod(
    "total",
    partial(Flat, level=0),
    types=(Flat,),
    what="one count for everything, spread evenly (uniform)",
    paper=SHAHAM,
)
SINGULAR = NamedMethod(
    "singular",
    Flat,
    levelled=True,
    parameter=LEVEL,
    what="flat at the finest level, by the name of this paper",
    paper=SHAHAM,
)
LAPLACE_CLIP = NamedMethod(
    "laplace-clip",
    LaplaceClip,
    levelled=True,
    parameter=LEVEL,
    what="one level; negative numbers are shown as zero",
    paper="Liu et al., ETRA 2019; baseline of " + GHAZI,
)
TOP = NamedMethod(
    "top",
    TopCells,
    levelled=True,
    parameter=PERCENT,
    what="the finest level, of which it shows the fullest PERCENT of cells",
    paper="baseline of " + GHAZI,
)
