"""A noisy number for every cell, and none below zero: what others compare with."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from hazemap.algorithm_disclosure import Disclosure, counted
from hazemap.algorithms.count_queries import with_nowhere
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import Leaves, Tree
from hazemap.encoders import Counts
from hazemap.estimate import read
from hazemap.queries import Prices, Query, Rounds
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

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        return counted()

    def rounds(self, prices: Prices) -> Rounds[CellMap]:  # noqa: ARG002 - one query needs no price
        """One query."""
        cells = with_nowhere(Leaves.at_level(self.tree, self.level), self.bounding)
        query = Query(Counts(cells, self.bounding), Fraction(1))
        made = read([(query, (yield query))], cells, Reading.UNBIASED)
        return replace(made, values=np.maximum(made.unbiased, 0))
