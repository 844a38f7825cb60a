"""A map whose truth is known: how many people are in each pixel. Releases are made of it and scored against it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from hazemap.cellmap import CellMap
from hazemap.cells import NOWHERE, Cells, Leaves, Redrawn, Tree
from hazemap.errors import InputError
from hazemap.estimate import shown
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.privacy.random_stream import Stream
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import Bounding
from hazemap.tables.votes import Votes

SQUARE = Quadtree(0.2939453125, 0.3759765625, 2.0**-10, 0)
"""Where maps lie that have no place of their own: a tile of level 10 beside New York."""

SMALL_DEPTH = 5
"""A small map has 4^SMALL_DEPTH pixels."""


@dataclass(frozen=True, eq=False)
class KnownCounts:
    """A table of people with one row each, of whom all is known: `votes` is all that a trust model asks of it.

    `cells` are base cells of `tree` in ascending order, `people` how many are in each.
    """

    tree: Quadtree
    cells: Cells
    people: Ints

    def votes(self, tree: Tree, bounding: Bounding) -> Votes:
        """Everybody's vote: O(cells); another tree than the map's own asks where the middles of pixels lie."""
        if isinstance(tree, Redrawn):
            return self._counted(tree.base, bounding.sensitivity.l1).redrawn(tree)
        return self._counted(tree, bounding.sensitivity.l1)

    def _counted(self, tree: Tree, each: int) -> Votes:
        """So many votes of each person; those of the last tree are remembered, as any table does."""
        known: tuple[Tree, int, Votes] | None = self.__dict__.get("_known")
        if known is None or known[1] != each or (known[0] is not tree and known[0] != tree):
            known = tree, each, self._gathered(tree, each)
            object.__setattr__(self, "_known", known)
        return known[2]

    def _gathered(self, tree: Tree, each: int) -> Votes:
        if tree == self.tree:
            return Votes(self.cells, self.people * each)
        if isinstance(tree, Quadtree) and square(tree) == square(self.tree) and tree.depth < self.tree.depth:
            above = self.cells >> np.uint64(2 * (self.tree.depth - tree.depth))
            begins = np.flatnonzero(np.concatenate([[True], above[1:] != above[:-1]])[: len(above)])
            return Votes(above[begins], np.add.reduceat(self.people, begins) * each if len(begins) else self.people)
        base = tree.cell_at(middles(self.tree, self.cells), tree.depth)
        there = base != NOWHERE
        return Votes.gathered(base[there], self.people[there] * each)


@dataclass(frozen=True, eq=False)
class GroundTruthMap:
    """People in the pixels of a square, int64[side, side] with side = 2^depth of the tree; row 0 is in the north.

    `origin` says where they come from. Everybody is a person of one row.

    >>> four = GroundTruthMap.of("four", np.array([[3, 0], [0, 1]]))
    >>> four.people, four.table.people.tolist(), four.coarser(0).counts.tolist()
    (4, [3, 1], [[4]])
    """

    name: str
    tree: Quadtree
    counts: Ints
    origin: str = ""

    def __post_init__(self) -> None:
        side = 1 << self.tree.depth
        if self.counts.shape != (side, side) or self.counts.dtype != np.int64 or self.counts.min(initial=0) < 0:
            raise InputError(
                f"the map {self.name} needs {side} × {side} whole numbers of people, none below 0; "
                f"found {self.counts.dtype} {self.counts.shape}"
            )

    @classmethod
    def of(cls, name: str, counts: NDArray[np.generic], origin: str = "") -> "GroundTruthMap":
        """A picture of people of any shape, laid in the north-west of the least square of 2^n pixels that holds it."""
        if counts.ndim != 2 or not counts.size or counts.dtype.kind not in "iub":
            raise InputError(f"the map {name} is made of rows and columns of whole numbers; found {counts.dtype}")
        depth = (max(counts.shape) - 1).bit_length()
        whole = np.zeros((1 << depth, 1 << depth), dtype=np.int64)
        whole[: counts.shape[0], : counts.shape[1]] = counts
        return cls(name, Quadtree(SQUARE.left, SQUARE.top, SQUARE.side, depth), whole, origin)

    @property
    def people(self) -> int:
        """Everybody."""
        return int(self.counts.sum())

    @property
    def side(self) -> int:
        """Pixels along an edge."""
        return len(self.counts)

    @property
    def size(self) -> dict[str, int]:
        """Pixels along an edge, by their name in results."""
        return {"side": self.side}

    @property
    def extent(self) -> str:
        """The same in words."""
        return f"{self.side} × {self.side}"

    @property
    def table(self) -> KnownCounts:
        """What a curator holds: a new one, that remembers nothing of what was asked of another."""
        return KnownCounts(self.tree, *self._occupied)

    @cached_property
    def _occupied(self) -> tuple[Cells, Ints]:
        """The pixels with someone, and how many."""
        in_order = np.empty(self.counts.size, dtype=np.int64)
        in_order[places(self.tree.depth).ravel()] = self.counts.ravel()
        there = np.flatnonzero(in_order)
        return there.astype(np.uint64) + np.uint64(4**self.tree.depth), in_order[there]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that a score can depend on; the name is not part of it."""
        known = f"{square(self.tree)} {self.tree.depth} ".encode()
        return sha256(known + np.ascontiguousarray(self.counts, "<i8").tobytes()).hexdigest()

    def coarser(self, depth: int) -> "GroundTruthMap":
        """The same people in larger pixels."""
        if not 0 <= depth <= self.tree.depth:
            raise InputError(f"the map {self.name} has depth {self.tree.depth} and cannot be seen at {depth}")
        side, block = 1 << depth, 1 << (self.tree.depth - depth)
        sums = self.counts.reshape(side, block, side, block).sum(axis=(1, 3))
        tree = Quadtree(self.tree.left, self.tree.top, self.tree.side, depth)
        return GroundTruthMap(self.name, tree, sums, self.origin)

    def small(self) -> "GroundTruthMap":
        """What a trial is tried on before it is timed."""
        return self.coarser(min(SMALL_DEPTH, self.tree.depth))

    def sample(self, people: int, seed: bytes) -> "GroundTruthMap":
        """So many of the people, drawn without replacement: every set of them is as likely; the same for a seed."""
        if not 0 <= people <= self.people:
            raise InputError(f"{people:,} of the {self.people:,} people of {self.name} cannot be drawn")
        luck = Stream.fixed(b"a sample of people " + seed).words(self.people)
        chosen = np.sort(np.argpartition(luck, people)[:people] if people < self.people else np.arange(people))
        until = np.cumsum(self.counts.ravel())
        drawn = np.diff(np.searchsorted(chosen, until, "left"), prepend=0)
        origin = f"{people:,} people drawn from: {self.origin}"
        return GroundTruthMap(self.name, self.tree, drawn.reshape(self.counts.shape).astype(np.int64), origin)


def square(tree: Quadtree) -> tuple[float, float, float]:
    """The square that a quadtree cuts."""
    return tree.left, tree.top, tree.side


def in_pixels(name: str, cells: Cells, people: Ints, tree: Quadtree, origin: str) -> GroundTruthMap:
    """The map of people in base cells of a tree, in any order; those in none are left out."""
    inside = cells != NOWHERE
    at = (cells[inside] - np.uint64(4**tree.depth)).astype(np.int64)
    counts = np.zeros(4**tree.depth, dtype=np.int64)
    np.add.at(counts, at, people[inside])
    return GroundTruthMap(name, tree, counts[places(tree.depth)], origin)


def middles(tree: Quadtree, cells: Cells) -> dict[str, NDArray[np.float64]]:
    """The middle of cells, in degrees."""
    west, south, east, north = tree.bounds(cells)
    return {"lon": (west + east) / 2, "lat": (south + north) / 2}


@lru_cache(maxsize=4)
def places(depth: int) -> Ints:
    """Where each pixel stands in Z-order, int64[side, side]."""
    first = np.uint64(4**depth)
    found: Ints = (Quadtree(0.0, 0.0, 1.0, depth).grid(depth) - first).astype(np.int64)
    found.setflags(write=False)
    return found


def painted(made: CellMap, tree: Quadtree) -> tuple[Floats, Floats]:
    """People in each pixel, float64[side, side]: as the map shows them, and as the unbiased numbers have them.

    What a cell shows is spread evenly over its pixels, or (in the most plausible map) along the densities around it.

    Exact: a cell's number is divided by its pixels, so a picture sums to what the cells with a pixel sum to. Pixels in
    no cell are 0. O(pixels + cells · log cells).
    """
    fine = shown(made)
    if fine is made:
        best, unbiased = _spread(made.cells, [made.values, made.unbiased], tree)
        return best, unbiased
    return _spread(fine.cells, [fine.values], tree)[0], _spread(made.cells, [made.unbiased], tree)[0]


def _spread(cells: Leaves, numbers: Sequence[Floats], tree: Quadtree) -> list[Floats]:
    """Numbers of cells as pictures, each spread evenly over its pixels."""
    owner = owners(cells, tree)
    each = np.maximum(np.bincount(owner.ravel() + 1, minlength=cells.size + 1)[1:], 1)
    return [np.append(number / each, 0.0)[owner] for number in numbers]


def owners(cells: Leaves, tree: Quadtree) -> Ints:
    """The position of the deepest cell that holds each pixel, int64[side, side]; −1 for none.

    Cells of the same quadtree own runs of pixels in Z-order, so only where runs begin is looked up; cells of a tree
    that is drawn over this one are found by what it makes of the pixels; those of any other by the pixels' middles.
    """
    of = cells.tree
    if isinstance(of, Quadtree) and _as_fine(of, tree):
        return _in_order(cells, tree)[places(tree.depth)]
    pixels = tree.grid(tree.depth)
    if isinstance(of, Redrawn) and isinstance(of.base, Quadtree) and _as_fine(of.base, tree):
        rise = np.uint64(2 * (tree.depth - of.base.depth))
        leaf = of.positions(pixels.ravel() >> rise)
        return np.append(cells.locate(of.leaves), -1)[leaf].reshape(pixels.shape)
    return cells.locate(of.cell_at(middles(tree, pixels.ravel()), of.depth)).reshape(pixels.shape)


def _as_fine(of: Quadtree, tree: Quadtree) -> bool:
    """Whether each pixel lies in one base cell of another quadtree."""
    return square(of) == square(tree) and of.depth <= tree.depth


def _in_order(cells: Leaves, tree: Quadtree) -> Ints:
    """The owner of each pixel in Z-order, int64[4^depth]; the cells' tree is of the same square, and no deeper."""
    size, shift = 4**tree.depth, 2 * (tree.depth - cells.tree.depth)
    first, last = cells.spans
    here = np.flatnonzero(first > 0)
    start = 4**cells.tree.depth  # the first base cell
    begin = (first[here].astype(np.int64) - start) << shift
    end = (last[here].astype(np.int64) - start + 1) << shift
    if (begin[1:] >= end[:-1]).all():  # one after the other: the usual case
        bounds = np.stack([begin, end], axis=1).ravel()
        whose = np.stack([np.full(len(here), -1), here], axis=1).ravel()
        return np.repeat(np.append(whose, -1), np.diff(bounds, prepend=0, append=size))
    starts = np.unique(np.concatenate([[0], begin, end]))
    starts = starts[starts < size]
    whose = cells.locate((starts >> shift).astype(np.uint64) + np.uint64(start))
    return np.repeat(whose, np.diff(starts, append=size))
