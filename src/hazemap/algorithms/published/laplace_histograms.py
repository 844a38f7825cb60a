"""A Laplace histogram over all cells, clipped at zero: the baseline of other methods."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import ClassVar

import numpy as np

from hazemap.algorithm_disclosure import Disclosure, counted
from hazemap.algorithms.count_queries import mapped
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import Leaves, Tree
from hazemap.errors import InputError
from hazemap.noisy_queries import Prices, Rounds
from hazemap.tables.contribution_bounding import Bounding, OneVote


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
