"""A grid counted through its Haar wavelet (Xiao, Wang and Gehrke, ICDE 2010)."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from hazemap.algorithms.named_methods import LEVEL, NamedMethod
from hazemap.cellmap import CellMap, Reading
from hazemap.encoders import HaarWavelet
from hazemap.errors import InputError
from hazemap.estimate import read_wavelet
from hazemap.queries.algorithm_disclosure import Disclosure, counted
from hazemap.queries.noisy_queries import Prices, Query, Rounds
from hazemap.spatial.plane import plane_of
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, Bounding


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
