"""Where are the people at all? A small share of the budget finds the box that nobody declared."""

from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, log, log2, sqrt
from typing import Any, Protocol, TypeVar, cast

from hazemap.algorithms.best_level import BestLevel
from hazemap.algorithms.flat import Flat
from hazemap.algorithms.geometric import Geometric
from hazemap.algorithms.hb import HB
from hazemap.algorithms.hierarchical import Hierarchical
from hazemap.algorithms.laplace_clip import LaplaceClip
from hazemap.algorithms.privlet import Privlet
from hazemap.algorithms.top_cells import TopCells
from hazemap.cellmap import CellMap
from hazemap.cells import Cells, Leaves, Tree
from hazemap.domains import WORLD, Box, Hexagons, Quadtree
from hazemap.encoders import Counts, Encoder
from hazemap.errors import InputError, NoPlaceFound
from hazemap.rounds import Prices, Query, Rounds
from hazemap.tables.bounding import AtMostRows, Bounding

T = TypeVar("T")

Grid = Flat | Hierarchical | Geometric | HB | Privlet | BestLevel | LaplaceClip | TopCells
"""Methods that end in all cells of one level."""


class Way(Protocol):
    """A method that cuts a tree: a frozen dataclass with a tree and a bounding rule among its fields."""

    @property
    def tree(self) -> Tree:
        """What it cuts."""
        ...

    @property
    def bounding(self) -> Bounding:
        """What one person may contribute."""
        ...

    def rounds(self, prices: Prices) -> Rounds[CellMap]:
        """Its queries, until there is a map."""
        ...


EQUATOR = 40_075_017.0  # metres: the side of the Web-Mercator world


@dataclass(frozen=True)
class Locate:
    """Two coarse grids of the world, one inside the other; what stands out of the noise is framed by a box.

    First all tiles of level `coarse` (156 km at level 8); then, inside those that stand out, tiles `deeper`
    levels down. A tile stands out if noise alone would lift any tile that far in less than 1 run of 100.

    >>> Locate().coarse
    8
    """

    bounding: Bounding = AtMostRows(1)
    coarse: int = 8
    deeper: int = 3

    def rounds(self, prices: Prices) -> Rounds[Box]:
        """Two queries of half the budget each."""
        tree, half = Quadtree.world(self.coarse + self.deeper), Fraction(1, 2)
        cells = Leaves.at_level(tree, self.coarse).cells
        for step in (0, self.deeper):
            # Where much of the world stands out fewer levels do: a query stays below 4^(coarse + 1) cells.
            down = min(step, max(0, self.coarse + 1 - ceil(log2(len(cells)) / 2)))
            for _ in range(down):
                cells = tree.children(cells)
            encoder = Counts(Leaves(tree, cells), replace(self.bounding, nowhere=False))
            answer = yield Query(encoder, half)
            loud = answer.sums > prices.stddev(encoder, half) / sqrt(2) * log(len(cells) / 0.02)
            if loud.any():
                cells = cells[loud]
            elif not step:
                raise NoPlaceFound(
                    "no place stands out of the noise, so no box could be found for this budget (which is spent); "
                    "declare one with box=west,south,east,north"
                )
        return _frame(tree, cells)


def _frame(tree: Quadtree, cells: Cells) -> Box:
    """The rectangle around cells, a cell wider on every side, inside the world."""
    west, south, east, north = tree.bounds(cells)
    dx, dy = (east - west).max(), (north - south).max()
    return Box(
        max(WORLD.west, float(west.min() - dx)),
        max(WORLD.south, float(south.min() - dy)),
        min(WORLD.east, float(east.max() + dx)),
        min(WORLD.north, float(north.max() + dy)),
    )


@dataclass(frozen=True)
class FoundBox:
    """Find a box with a share of the budget, then run a method inside it with the rest.

    The method's tree says of what kind: a quadtree of the found box is as deep as its cells stay at least
    `finest` metres wide; hexagons keep their resolutions, but start coarser where the box holds too many.

    >>> from hazemap.algorithms import Adaptive
    >>> FoundBox(Adaptive(Quadtree.world(depth=0))).share
    Fraction(1, 25)
    """

    method: Way
    share: Fraction = Fraction(1, 25)
    finest: int = 10

    def rounds(self, prices: Prices) -> Rounds[CellMap]:
        """The rounds of `Locate`, then those of the method."""
        box = yield from part_of(Locate(self.method.bounding).rounds(Part(prices, self.share)), self.share)
        rest = 1 - self.share
        method = cast(Way, replace(cast(Any, self.method), tree=self.tree(box)))
        return (yield from part_of(method.rounds(Part(prices, rest)), rest))

    def tree(self, box: Box) -> Quadtree | Hexagons:
        """The tree of the method's kind over a box."""
        tree = self.method.tree
        if isinstance(tree, Hexagons):
            return hexagons_over(box, tree)
        return over(box, self.finest, self.method.level if isinstance(self.method, Grid) else 0)


def over(box: Box, finest: int, least: int = 0) -> Quadtree:
    """A quadtree around a box, as deep (but at least `least`) as its cells stay `finest` metres wide on the equator."""
    side = Quadtree.around(box, 0).side * EQUATOR
    return Quadtree.around(box, max(least, min(20, int(log2(max(1.0, side / finest))))))


def hexagons_over(box: Box, tree: Hexagons) -> Hexagons:
    """Hexagons of the same finest resolution over a box that was paid for, from the coarsest that it can hold."""
    for coarsest in range(tree.coarsest, 0, -1):
        with suppress(InputError):
            return Hexagons(box, coarsest, tree.finest)
    return Hexagons(box, 0, tree.finest)


@dataclass(frozen=True)
class Part:
    """Prices for a run that has only a part of the budget."""

    prices: Prices
    part: Fraction

    def stddev(self, encoder: Encoder, share: Fraction) -> float:
        """The standard deviation that a share of the part buys."""
        return self.prices.stddev(encoder, share * self.part)

    def share(self, encoder: Encoder, stddev: float) -> Fraction:
        """The least share of the part that buys a standard deviation this small."""
        return self.prices.share(encoder, stddev) / self.part


def part_of(rounds: Rounds[T], part: Fraction) -> Rounds[T]:
    """A run within a run: every share is that share of the part."""
    try:
        question = next(rounds)
        while True:
            answer = yield replace(question, share=question.share * part)
            question = rounds.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result
