"""Levels of a tree counted in one question and combined by exact least squares.

`Hierarchical` has all levels with equal parts of the budget (Hay et al. 2010), `Geometric` with more for finer cells
(Cormode et al. 2012), and `HB` some levels with equal parts (Qardaji, Yang and Li, VLDB 2013).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise
from math import ceil
from typing import ClassVar

import numpy as np

from hazemap.algorithms.built_in_methods import CORMODE, GRAIN
from hazemap.algorithms.count_queries import fan_out, grids_up, mapped_together, with_nowhere
from hazemap.algorithms.named_methods import EVERYWHERE, LEVEL, NamedMethod
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import Leaves, Tree
from hazemap.encoders import HaarWavelet
from hazemap.errors import InputError
from hazemap.estimate import read_wavelet
from hazemap.queries.algorithm_disclosure import Disclosure, counted
from hazemap.queries.noisy_queries import Prices, Query, Rounds
from hazemap.spatial.plane import plane_of
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, Bounding


@dataclass(frozen=True)
class Hierarchical:
    """Hierarchical one-hot: levels 1 to `level` in one vector, combined by exact least squares (Hay et al. 2010).

    A person adds one to their cell of each level, so the noise is `level` times that of one grid. Least squares make
    the levels consistent: a cell, and still more a union of cells, is then known better than its own number tells.
    Bagdasaryan et al. (2022, section 5.1) keep one level of the answer and discard the others: see `BestLevel`.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> Hierarchical(Quadtree.world(depth=8), level=8).level
    8
    """

    tree: Tree
    level: int
    bounding: Bounding = AtMostRows(1)
    reading: Reading = Reading.SHRUNK
    disclosure: ClassVar[Disclosure] = counted()

    def rounds(self, prices: Prices) -> Rounds[CellMap]:  # noqa: ARG002 - one query needs no price
        """One query."""
        levels = grids_up(self.tree, self.level, self.level, self.bounding)
        return mapped_together(levels, (1,) * self.level, self.bounding, self.reading)


@dataclass(frozen=True)
class Geometric:
    """A spatial decomposition with geometric budgets: level i of 0 to `level` gets ε_i ∝ 2^(i/3), then least squares.

    A rectangle is made of about 2^i cells of level i, so these budgets make its variance least (Cormode, Procopiuc,
    Srivastava, Shen and Yu 2012, lemma 3). They are whole weights in one vector, `grain` for the root: with 4 each is
    within 6 % of its power. Least squares are exact (ibid., section 5).

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> Geometric(Quadtree.world(depth=8), level=6).weights
    (16, 13, 10, 8, 6, 5, 4)
    """

    tree: Tree
    level: int
    bounding: Bounding = AtMostRows(1)
    grain: int = 4
    reading: Reading = Reading.SHRUNK
    disclosure: ClassVar[Disclosure] = counted()

    def __post_init__(self) -> None:
        if not 1 <= self.grain <= 1 << 10:
            raise InputError(f"the weight of the root must be 1 to 1024, not {self.grain}")

    @property
    def weights(self) -> tuple[int, ...]:
        """The weight of each level, the finest first."""
        return tuple(round(self.grain * 2 ** (level / 3)) for level in range(self.level, -1, -1))

    def rounds(self, prices: Prices) -> Rounds[CellMap]:  # noqa: ARG002 - one query needs no price
        """One query."""
        levels = grids_up(self.tree, self.level, self.level + 1, self.bounding)
        return mapped_together(levels, self.weights, self.bounding, self.reading)


@dataclass(frozen=True)
class HB:
    """A hierarchy with a branching factor of its own: few levels, so little noise, combined by exact least squares.

    Levels between those of a binary tree are left out: a quadtree that skips j − 1 levels has b = 2^j branches a side.
    `published` chooses b by the authors' rule for two dimensions: least b (n − 1) h², n pixels a side in h = ⌈log_b n⌉
    levels (section 5.1). They choose among all whole numbers and pad the side to b^h; here b is a power of two, so
    that all cells are cells of the quadtree. At 1024² theirs is b = 6 (rule: 96 n) on 1296², ours b = 4 (100 n).

    Their rule is an upper bound that knows nothing of least squares, and b is the same on all levels. `least` chooses
    among all sets of levels by what the rule stands for: the exact mean variance of all rectangles after least squares
    (`rectangle_variance`). At 1024² that is less than half of it, with levels 5, 8 and 10.

    Weighted averaging and mean consistency (ibid., section 3.3) are exact least squares where levels have equal noise.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> world = Quadtree.world(depth=10)
    >>> HB.published(world, 10).levels, HB.least(world, 10).levels
    ((2, 4, 6, 8, 10), (5, 8, 10))
    """

    tree: Tree
    levels: tuple[int, ...]
    bounding: Bounding = AtMostRows(1)
    reading: Reading = Reading.SHRUNK
    disclosure: ClassVar[Disclosure] = counted()

    def __post_init__(self) -> None:
        rising = all(coarse < fine for coarse, fine in pairwise(self.levels))
        if not self.levels or not rising or self.levels[0] < 0:
            raise InputError(f"a hierarchy needs levels of its tree, the coarsest first; found {self.levels}")

    @property
    def level(self) -> int:
        """The finest."""
        return self.levels[-1]

    @classmethod
    def published(
        cls, tree: Tree, level: int, bounding: Bounding = AtMostRows(1), reading: Reading = Reading.SHRUNK
    ) -> "HB":
        """The levels of the authors' rule, down to `level`."""
        fan = fan_out(tree) ** 0.5  # branches a side: 2 in a quadtree
        side = fan**level
        step = min(range(1, level + 1), key=lambda j: fan**j * (side - 1) * ceil(level / j) ** 2, default=1)
        return cls(tree, tuple(range(level, 0, -step))[::-1] or (level,), bounding, reading)

    @classmethod
    def least(
        cls, tree: Tree, level: int, bounding: Bounding = AtMostRows(1), reading: Reading = Reading.SHRUNK
    ) -> "HB":
        """The levels of a quadtree, down to `level`, that make the mean variance of a rectangle least."""
        if not isinstance(tree, Quadtree) or level < 0:
            raise InputError("this method merges cells of a quadtree into rectangles: choose quadtree cells")
        above = (chosen for number in range(max(level, 1)) for chosen in combinations(range(1, level), number))
        return cls(tree, min(((*upper, level) for upper in above), key=rectangle_variance), bounding, reading)

    def rounds(self, prices: Prices) -> Rounds[CellMap]:  # noqa: ARG002 - one query needs no price
        """One query."""
        finest, *coarser = (Leaves.at_level(self.tree, level) for level in reversed(self.levels))
        levels = (with_nowhere(finest, self.bounding), *coarser)
        return mapped_together(levels, (1,) * len(levels), self.bounding, self.reading)


def rectangle_variance(levels: tuple[int, ...]) -> float:
    """The variance of a rectangle of cells of a quadtree's last level, on average over all rectangles, for ε = 1.

    Each level is asked with 1/k of the budget, in Laplace noise of variance v = 2k² a cell. With B_l(i, j) = 1 where
    cells i and j lie in one block of level l, the covariance of least squares is (Σ B_l/v)⁻¹. These matrices share
    their eigenspaces: that of level l, what is constant on its blocks and sums to 0 in every coarser one, has the
    eigenvalue λ_l = Σ s_m/v over measured levels m ≥ l, s_m cells a block. So the covariance is Σ c_l B_l with
    c_l = (1/λ_l − 1/λ_(l+1))/s_l, and a rectangle I × J has variance Σ c_l (Σ |I ∩ b|²)(Σ |J ∩ b|²), whose mean over
    all intervals is a square. O(side · levels).

    >>> round(rectangle_variance((2, 4, 6, 8, 10))), round(rectangle_variance((5, 8, 10)))
    (52876, 23811)
    """
    last, noise = levels[-1], 2.0 * len(levels) ** 2
    every = sorted({0, *levels})
    sizes = {level: 4.0 ** (last - level) for level in every}
    inverse = {
        level: noise / sum(size for finer, size in sizes.items() if finer >= level and finer in levels)
        for level in every
    }
    inverse[last + 1] = 0.0
    shares = ((inverse[level] - inverse[finer]) / sizes[level] for level, finer in pairwise([*every, last + 1]))
    return sum(share * _interval_square(last, level) ** 2 for level, share in zip(every, shares, strict=True))


@cache
def _interval_square(last: int, level: int) -> float:
    """Σ |I ∩ b|² over blocks b of a level, on average over all intervals I of 2^last places.

    Two places i ≤ j are both in (i + 1)(n − j) of the n(n + 1)/2 intervals.
    """
    side, width = 2.0**last, 1 << (last - level)
    block = np.arange(side).reshape(-1, width)
    left, right = block + 1, side - block
    pairs = (left * right).sum() + 2 * (np.cumsum(left, axis=1)[:, :-1] * right[:, 1:]).sum()
    return float(pairs / (side * (side + 1) / 2))


HIERARCHICAL = NamedMethod(
    "hierarchical",
    Hierarchical,
    levelled=True,
    parameter=LEVEL,
    cells=EVERYWHERE,
    what="all levels down to LEVEL at once with equal parts, by least squares",
    paper="Hay, Rastogi, Miklau and Suciu, Boosting the accuracy of histograms, PVLDB 3, 2010",
)
GEOMETRIC = NamedMethod(
    "geometric",
    Geometric,
    levelled=True,
    parameter=LEVEL,
    cells=EVERYWHERE,
    what="all levels down to LEVEL at once, ε ∝ 2^(i/3), by least squares",
    paper=CORMODE,
    settings=(GRAIN,),
)
HB_PUBLISHED = NamedMethod(
    "hb",
    HB.published,
    levelled=True,
    parameter=LEVEL,
    types=(HB,),
    what="a few levels, with the branching of the authors' rule",
    paper="Qardaji, Yang and Li, Understanding hierarchical methods, PVLDB 6, 2013",
)
HB_LEAST = NamedMethod(
    "hb-least",
    HB.least,
    levelled=True,
    parameter=LEVEL,
    types=(HB,),
    what="the levels with the least mean variance of all rectangles, worked out exactly",
    paper="ours; after Qardaji, Yang and Li, PVLDB 6, 2013",
)


@dataclass(frozen=True)
class Privlet:
    """Privlet: equal noise in all numbers of the weighted Haar wavelet of a grid (see `HaarWavelet`).

    Pairs of blocks of every size get the same noise. A rectangle cuts through few pairs of each, so its variance grows
    with the logarithm of the grid and not with its own area: O(log³ n) on one axis of n cells (theorem 3), squared on
    two. A single cell of level L has (L + 1)²/3 times the noise of `Flat`.

    The published map is the inverse of the noisy wavelet: `Reading.UNBIASED`.

    >>> Privlet(Quadtree.world(depth=10), level=8).level
    8
    """

    tree: Quadtree
    level: int
    bounding: Bounding = AtMostRows(1)
    reading: Reading = Reading.NONNEGATIVE
    disclosure: ClassVar[Disclosure] = counted()

    def __post_init__(self) -> None:
        if self.reading is Reading.SHRUNK:
            raise InputError(
                "a wavelet map can be read unbiased or non-negative only: its cells have no parent to shrink towards"
            )
        if plane_of(self.tree):
            raise InputError("a wavelet is of squares on the ground: on a plane choose auto, flat or another")
        if not isinstance(self.tree, Quadtree) or self.level < 1:
            raise InputError("a wavelet needs rows and columns: choose quadtree cells and a level of at least 1")

    def rounds(self, prices: Prices) -> Rounds[CellMap]:  # noqa: ARG002 - one query needs no price
        """One query."""
        wavelet = HaarWavelet(self.tree, self.level, self.bounding)
        answer = yield Query(wavelet, Fraction(1))
        return read_wavelet(wavelet, answer, self.reading)


PRIVLET = NamedMethod(
    "privlet",
    Privlet,
    levelled=True,
    parameter=LEVEL,
    what="noise in the Haar wavelet of a grid",
    paper="Xiao, Wang and Gehrke, Differential privacy via wavelet transforms, ICDE 2010",
)
