"""Spends a small share of the budget to find a bounding box that nobody declared."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, log, log2, sqrt
from typing import Any, ClassVar, Protocol, TypeVar, cast, runtime_checkable

from hazemap.cellmap import CellMap
from hazemap.cells import Cells, Leaves, Tree
from hazemap.encoders import Counts, Encoder
from hazemap.queries.algorithm_disclosure import Disclosure, Learned
from hazemap.queries.noisy_queries import Prices, Query, Question, Rounds
from hazemap.spatial.bounding_box import WORLD, Box
from hazemap.spatial.h3_hexagons import Hexagons, cells_about
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, Bounding, Outside

T = TypeVar("T")


class MethodOfBox(Protocol):
    """A method that cuts a tree: a frozen dataclass with a tree and a bounding rule among its fields."""

    @property
    def tree(self) -> Tree:
        """What it cuts."""

    @property
    def bounding(self) -> Bounding:
        """What one person may contribute."""

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""

    def rounds(self, prices: Prices) -> Rounds[CellMap]:
        """Its queries, until there is a map."""


@runtime_checkable
class OneLevel(Protocol):
    """A method that ends in all cells of one level: `level` means that, and nothing else, in every method."""

    @property
    def level(self) -> int:
        """Of the tree."""


@runtime_checkable
class SeveralLevels(Protocol):
    """A method that counts these levels, the coarsest first; `level` is the last."""

    levels: tuple[int, ...]


MOST_ROOTS = 1 << 16
"""A tree over a box that was found begins with this many hexagons or fewer: methods cut them where people are."""

MOST_HEXAGONS = 1 << 20
"""Hexagons that are asked for at once over a box that was found, at most; a declared box may have more."""

EQUATOR = 40_075_017.0  # metres: the side of the Web-Mercator world


@dataclass(frozen=True)
class LocateBox:
    """Two coarse grids of the world, one inside the other; what stands out of the noise is framed by a box.

    First all tiles of level `coarse` (156 km at level 8); then, inside those that stand out, tiles `deeper`
    levels down. A tile stands out if noise alone would lift any tile that far in less than 1 run of 100. If none does,
    there are too few people for so little noise to be found, and the box is the widest there is, the world.

    >>> LocateBox().coarse
    8
    """

    bounding: Bounding = AtMostRows(1)
    coarse: int = 8
    deeper: int = 3
    disclosure: ClassVar[Disclosure] = Disclosure((Learned.BOX,))

    @property
    def tiles(self) -> Quadtree:
        """Those of both grids, and those between."""
        return Quadtree.world(self.coarse + self.deeper)

    def rounds(self, prices: Prices) -> Rounds[Box]:
        """Two queries of half the budget each, the second one only if the first finds something."""
        return (yield from self.search(prices)) or WORLD

    def search(self, prices: Prices) -> Rounds[Box | None]:
        """The same; None where no place stands out."""
        tree, half = self.tiles, Fraction(1, 2)
        cells = Leaves.at_level(tree, self.coarse).cells
        for step in (0, self.deeper):
            # Where much of the world stands out fewer levels do: a query stays below 4^(coarse + 1) cells.
            down = min(step, max(0, self.coarse + 1 - ceil(log2(len(cells)) / 2)))
            for _ in range(down):
                cells = tree.children(cells)
            encoder = Counts(Leaves(tree, cells), replace(self.bounding, outside=Outside.DROP))
            answer = yield Query(encoder, half)
            loud = answer.sums > prices.stddev(encoder, half) / sqrt(2) * log(len(cells) / 0.02)
            if loud.any():
                cells = cells[loud]
            elif not step:
                return None
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
class PrivateBoundingBox:
    """Find a box with a share of the budget, then run a method inside it with the rest.

    The method's tree says of what kind: a quadtree of the found box is as deep as its cells stay at least
    `finest` metres wide; hexagons keep their resolutions, but start coarser where the box holds too many, and a method
    of one level counts coarser ones where the box holds more than `MOST_HEXAGONS` of its own. Where no place stands
    out of the noise the box is the world, and `found_in` says so.

    >>> from hazemap.algorithms import Adaptive
    >>> PrivateBoundingBox(Adaptive(Quadtree.world(depth=0))).share
    Fraction(1, 25)
    """

    method: MethodOfBox
    share: Fraction = Fraction(1, 25)
    finest: int = 10

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        return self.method.disclosure.after(Learned.BOX)

    def rounds(self, prices: Prices) -> Rounds[CellMap]:
        """The rounds of `LocateBox`, then those of the method."""
        box = yield from part_of(LocateBox(self.method.bounding).rounds(BoxPart(prices, self.share)), self.share)
        rest = 1 - self.share
        return (yield from part_of(self.over(box).rounds(BoxPart(prices, rest)), rest))

    def over(self, box: Box) -> MethodOfBox:
        """The method over the cells of a box."""
        tree, method, level = self.tree(box), self.method, dict[str, Any]()
        if isinstance(method, OneLevel) and isinstance(tree, Hexagons) and isinstance(method.tree, Hexagons):
            resolution = fitting(box, method.tree.coarsest + method.level, MOST_HEXAGONS)
            # As many levels above it as the method was made with.
            tree = Hexagons(box, min(tree.coarsest, max(resolution - method.level, 0)), tree.finest)
            down = resolution - tree.coarsest - method.level
            level = {"level": method.level + down}
            if isinstance(method, SeveralLevels):
                level = {"levels": tuple(sorted({max(each + down, 0) for each in method.levels}))}
        return cast(MethodOfBox, replace(cast(Any, method), tree=tree, **level))

    def found_in(self, transcript: Iterable[tuple[Question, Any]]) -> bool:
        """Whether a run with these questions found a box: the second grid is asked only inside of what stood out."""
        tree = LocateBox(self.method.bounding).tiles
        asked = [question.encoder for question, _ in transcript if isinstance(question, Query)]
        grids = [each for each in asked if isinstance(each, Counts) and each.cells.tree == tree]
        return len(grids) > 1

    def tree(self, box: Box) -> Quadtree | Hexagons:
        """The tree of the method's kind over a box."""
        tree = self.method.tree
        if isinstance(tree, Hexagons):
            return hexagons_over(box, tree)
        return over(box, self.finest, self.method.level if isinstance(self.method, OneLevel) else 0)


def over(box: Box, finest: int, least: int = 0) -> Quadtree:
    """A quadtree around a box, as deep (but at least `least`) as its cells stay `finest` metres wide on the equator."""
    side = Quadtree.around(box, 0).side * EQUATOR
    return Quadtree.around(box, max(least, min(20, int(log2(max(1.0, side / finest))))))


def fitting(box: Box, resolution: int, most: int, coarsest: int = 0) -> int:
    """The finest resolution of H3, at most this one, with about `most` hexagons or fewer in a box."""
    while resolution > coarsest and cells_about(box, resolution) > most:
        resolution -= 1
    return resolution


def hexagons_over(box: Box, tree: Hexagons) -> Hexagons:
    """Hexagons of the same finest resolution over a box that was paid for, from the coarsest of which it holds few."""
    return Hexagons(box, fitting(box, tree.coarsest, MOST_ROOTS), tree.finest)


@dataclass(frozen=True)
class BoxPart:
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
