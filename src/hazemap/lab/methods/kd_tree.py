"""A kd-tree: rectangles split at private medians (Cormode, Procopiuc, Srivastava, Shen and Yu 2012)."""

from dataclasses import dataclass
from fractions import Fraction
from math import log2

import numpy as np
from numpy.typing import NDArray

from hazemap.algorithms.built_in_methods import A_CELL, CORMODE, GRAIN, KNOWN_PEOPLE, NUMBER, SMALL
from hazemap.algorithms.count_queries import laplace_epsilon, mapped_together, number_of_people, square_of, with_nowhere
from hazemap.algorithms.named_methods import SQUARES, NamedMethod, Setting
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import Cells, Leaves, Tree
from hazemap.encoders import MedianSplitScores
from hazemap.errors import InputError
from hazemap.queries.algorithm_disclosure import Disclosure, Learned, counted
from hazemap.queries.noisy_queries import Choice, Prices, Rounds
from hazemap.spatial.rectangle_trees import DEEPEST, DOWN, BinaryPartition
from hazemap.tables.contribution_bounding import AtMostRows, Bounding


@dataclass(frozen=True)
class KDTree:
    """A kd-tree of private medians, the axis alternating; then all its levels are counted at once, by least squares.

    The part `medians` of the budget (15 %, the authors' choice) buys the cuts: equally much for each on the way to a
    leaf. The authors choose a median by the exponential mechanism; permute-and-flip at the same price is nowhere
    worse (McKenna and Sheldon 2020, theorem 2). The rest buys counts. As published, a level is two cuts, one in each
    direction (fan-out four, so that a rectangle needs about twice as many cells of each level as of the one before),
    and level i of 0 to h gets ε_i ∝ 2^(i · `growth`): 1/3 for geometric budgets, 0 for equal ones (ibid., lemma 3).
    Weights are whole numbers, `grain` for the root. Least squares over all levels are exact (ibid., section 5); the
    cells were fixed before they were counted, so the counts of every level are unbiased.

    A hybrid cuts some levels in the middle, which costs nothing: `above` at the top of the tree, `below` at its
    bottom (kd-hybrid), both as parts of all levels.

    `cuts` are the cuts on the way to a leaf, a public number in the paper's figures. Without it they are the even
    number next to log₂(Nε/`people_a_cell`); N is `people` where it is public, and otherwise `share_of_number` of the
    budget buys it. A cell that is one pixel wide is cut in the other direction.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> KDTree(Quadtree.world(depth=10)).medians, KDTree.hybrid(Quadtree.world(depth=10)).below
    (Fraction(3, 20), Fraction(1, 2))
    """

    tree: Tree
    bounding: Bounding = AtMostRows(1)
    cuts: int | None = None
    medians: Fraction = Fraction(3, 20)
    growth: Fraction = Fraction(1, 3)
    above: Fraction = Fraction(0)
    below: Fraction = Fraction(0)
    people: int | None = None
    share_of_number: Fraction = Fraction(1, 50)
    people_a_cell: int = 10
    grain: int = 4
    reading: Reading = Reading.NONNEGATIVE

    def __post_init__(self) -> None:
        if not 0 < self.medians < 1 or self.people_a_cell < 1 or not 0 <= self.growth <= 1:
            raise InputError(
                "the part of the budget for a kd-tree's medians must be between 0 and 1, and "
                "a cell must hold at least one person"
            )
        if min(self.above, self.below) < 0 or self.above + self.below > 1:
            raise InputError(
                "the parts of the levels that are cut in the middle, at the top and at "
                "the bottom, must be between 0 and 1"
            )
        if not 1 <= self.grain <= 1 << 10 or (self.cuts is not None and not 1 <= self.cuts <= DEEPEST):
            raise InputError(f"a path to a leaf has 1 to {DEEPEST} cuts, and the weight of the root is 1 to 1024")
        square_of(self.tree, "a kd-tree")

    @classmethod
    def uniform(cls, tree: Tree, bounding: Bounding = AtMostRows(1)) -> "KDTree":
        """Equal budgets for all levels."""
        return cls(tree, bounding, growth=Fraction(0))

    @classmethod
    def hybrid(cls, tree: Tree, bounding: Bounding = AtMostRows(1)) -> "KDTree":
        """Medians for the upper half of the levels, a quadtree below (kd-hybrid)."""
        return cls(tree, bounding, below=Fraction(1, 2))

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        asked = (Learned.PEOPLE,) if self.cuts is None and self.people is None else ()
        fine = (Learned.FINENESS,) if self.cuts is None else ()
        lines = () if self.above + self.below >= 1 else (Learned.MEDIANS,)
        return counted(*asked, *fine, *lines, people=self.people if self.cuts is None else None)

    def rounds(self, prices: Prices) -> Rounds[CellMap]:
        """The number of people if it decides, then the medians of one depth after another, then all counts."""
        left, cuts = Fraction(1), self.cuts
        if cuts is None:
            people, left, _ = yield from number_of_people(self.tree, self.bounding, self.share_of_number, self.people)
            cuts = self._cuts(people * laplace_epsilon(prices, self.tree, self.bounding, left, self.people_a_cell))
        halved = self._halved(cuts)
        each = self.medians * left / max(cuts - sum(halved), 1)
        tree = BinaryPartition.uncut(square_of(self.tree, "a kd-tree"))
        levels = [tree.root]
        for depth in range(cuts):
            cells, axis = self._uncut(tree, depth % 2)
            if not len(cells):
                break
            if halved[depth]:
                at = _middle(tree, cells, axis)
            else:
                at = (yield Choice(MedianSplitScores(Leaves(tree, cells), axis, self.bounding), each)).sums
            tree = tree.cut(cells, axis, at)
            if (cuts - depth) % 2:
                levels.append(tree.ends)
        finest, *coarser = (Leaves(tree, cells) for cells in reversed(levels))
        finest = with_nowhere(finest, self.bounding)
        counts = left if all(halved) else (1 - self.medians) * left
        weights = self._weights(len(levels))
        return (yield from mapped_together((finest, *coarser), weights, self.bounding, self.reading, counts))

    def _cuts(self, signal: float) -> int:
        """How many cuts lead to a leaf, given Nε."""
        wanted = round(log2(max(signal / self.people_a_cell, 1)) / 2) * 2
        return min(max(wanted, 2), 2 * self.tree.depth, DEEPEST)

    def _halved(self, cuts: int) -> list[bool]:
        """Which of the cuts lie in the middle: whole levels of two cuts."""
        levels = (cuts + 1) // 2
        top, bottom = round(self.above * levels), round((1 - self.below) * levels)
        return [not top <= (depth + cuts % 2) // 2 < bottom for depth in range(cuts)]

    def _weights(self, levels: int) -> tuple[int, ...]:
        """The weight of each level, the finest first."""
        return tuple(round(self.grain * 2 ** (level * float(self.growth))) for level in range(levels - 1, -1, -1))

    def _uncut(self, tree: BinaryPartition, axis: int) -> tuple[Cells, NDArray[np.int8]]:
        """Uncut cells of two pixels or more, and the axis each is to be cut on: this, or the other where it is thin."""
        west, north, east, south = tree.rectangles(tree.ends)
        wide = np.stack([east - west, south - north]) > 1
        some = wide.any(axis=0)
        axes = np.where(wide[axis], axis, 1 - axis).astype(np.int8)
        return tree.ends[some], axes[some]


def _middle(tree: BinaryPartition, cells: Cells, axis: NDArray[np.int8]) -> NDArray[np.int64]:
    """The line between pixels in the middle of each cell, or before it."""
    west, north, east, south = tree.rectangles(cells)
    return np.where(axis == DOWN, (north + south) // 2, (west + east) // 2)


KD_TREE = NamedMethod(
    "kd-tree",
    KDTree,
    cells=SQUARES,
    what="cuts at private medians, then all levels at once, ε ∝ 2^(i/3), by least squares",
    paper=CORMODE,
    settings=(
        Setting("medians", "medians", "part of the budget for medians", SMALL, Fraction(99, 100), part=True),
        Setting("cuts", "cuts", "cuts on the way to a leaf; chosen by the number of people", 1, 40),
        Setting("growth", "growth", "level i from the root has 2^(growth · i) of the budget", 0, 1, part=True),
        *(KNOWN_PEOPLE, NUMBER, A_CELL),
        GRAIN,
    ),
)
KD_TREE_UNIFORM = NamedMethod(
    "kd-tree-uniform",
    KDTree.uniform,
    cells=SQUARES,
    types=(KDTree,),
    what="kd-tree with equal parts for the levels",
    paper=CORMODE,
)
KD_HYBRID = NamedMethod(
    "kd-hybrid",
    KDTree.hybrid,
    cells=SQUARES,
    types=(KDTree,),
    what="medians for the upper half of the levels, a quadtree below",
    paper=CORMODE,
)
