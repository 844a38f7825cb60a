"""PrivTree: a quadtree split wherever many people are, at a price independent of its depth (Zhang et al. 2016)."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from hazemap.algorithms.count_queries import mapped
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import Leaves, Tree
from hazemap.errors import InputError
from hazemap.queries.algorithm_disclosure import Disclosure, Learned, counted
from hazemap.queries.noisy_queries import Growth, Prices, Rounds
from hazemap.tables.contribution_bounding import AtMostRows, Bounding


@dataclass(frozen=True)
class PrivTree:
    """PrivTree: one part of the budget, `growing`, grows the tree, and the other counts its leaves.

    A cell is split iff its noisy count, less a bias that grows with its depth, is above θ (`threshold`); only whether
    it was is published. The bias makes the price of the whole tree that of about two of its cells, however deep it is:
    `privacy.private_splitting` has the law, in integers, and the proof. So only a curator can grow it. β is the number
    of children a cell has. Defaults are the authors': half the budget, θ = 0. Counts of inner cells are sums of their
    leaves'.

    Leaves were fixed before they were counted, so their numbers are unbiased: the published ones with
    `Reading.UNBIASED`.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> PrivTree(Quadtree.world(depth=10)).fan
    4
    """

    tree: Tree
    bounding: Bounding = AtMostRows(1)
    growing: Fraction = Fraction(1, 2)
    threshold: int = 0
    reading: Reading = Reading.NONNEGATIVE
    disclosure: ClassVar[Disclosure] = counted(Learned.GROWTH, Learned.FINENESS)

    def __post_init__(self) -> None:
        if not 0 < self.growing < 1:
            raise InputError(
                "the part of the budget that grows the tree must be between 0 and 1: the rest counts its leaves"
            )

    @property
    def fan(self) -> int:
        """β: how many children a cell has."""
        return len(self.tree.children(self.tree.root[:1]))

    def rounds(self, prices: Prices) -> Rounds[CellMap]:  # noqa: ARG002 - it does not look at them
        """Growth, then count."""
        tree = yield Growth(self.tree, self.bounding, self.growing, self.threshold, self.fan)
        leaves = Leaves(self.tree, tree.sums.astype("uint64"))
        return (yield from mapped(leaves, self.bounding, self.reading, 1 - self.growing))
