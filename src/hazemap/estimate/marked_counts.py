"""How many of those in each cell carry which marks: noisy counts of every side, and what follows from them."""

from dataclasses import dataclass, replace

import numpy as np

from hazemap.cellmap import CellMap
from hazemap.cells import Leaves
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate.share_intervals import Shares
from hazemap.machine_code.arrays import Bools, Floats, Ints
from hazemap.queries.noisy_queries import Answer, Query, Question
from hazemap.values.boolean_attribute import AttributeCells
from hazemap.values.marks import Marks


def is_about_sides(question: Question) -> bool:
    """Whether a question asks for the sides of cells."""
    return isinstance(question, Query) and isinstance(getattr(question.encoder, "cells", None), AttributeCells)


def people_of(question: Question, answer: Answer) -> CellMap:
    """The people on all sides of the cells of such a question, as a map."""
    cells, unit = _asked(question)
    sides = cells.tree.number
    people, stddev = answer.sums.reshape(sides, -1).sum(axis=0) / unit, float(answer.stddev.max()) / unit
    return CellMap.independent(
        cells.cells, people, np.full(cells.cells.size, stddev * sides**0.5), answer.kurtosis / sides
    )


def _asked(question: Question) -> tuple[AttributeCells, int]:
    """The cells of a question about sides, and how many votes are one of what is counted."""
    if not isinstance(question, Query) or not isinstance(question.encoder, Counts):
        raise InputError("only a question for counts of sides says who carries a mark")
    cells = question.encoder.cells
    if not isinstance(cells, AttributeCells):
        raise InputError("this question asks for people, whatever marks they carry")
    return cells, question.encoder.bounding.unit


@dataclass(frozen=True, eq=False)
class MarkedNumbers:
    """Unbiased numbers of each side in some places, float64[sides, n], with noise as in `MarkedCounts`."""

    marks: Marks
    sides: Floats
    stddev: float
    kurtosis: float
    grain: float

    @property
    def people(self) -> Floats:
        """How many are in each place, on any side: float64[n], unbiased."""
        everybody: Floats = self.sides.sum(axis=0)
        return everybody

    @property
    def noise(self) -> tuple[float, float]:
        """Standard deviation and kurtosis of the people in a place."""
        return self.noise_of(np.ones(self.marks.sides, dtype=np.bool_))

    def shares(self, mark: str) -> Shares:
        """Those with a mark, and those without, in each place: O(sides · n)."""
        having = self.marks.having(mark)
        stddev, kurtosis = zip(*(self.noise_of(some) for some in (having, ~having)), strict=True)
        return Shares(self.sides[having].sum(axis=0), self.sides[~having].sum(axis=0), stddev, kurtosis, self.grain)

    def noise_of(self, sides: Bools, places: int = 1) -> tuple[float, float]:
        """Standard deviation and kurtosis of the sum of some sides of so many places."""
        terms = int(sides.sum()) * places
        return self.stddev * terms**0.5, self.kurtosis / terms


@dataclass(frozen=True, eq=False)
class MarkedCounts:
    """Unbiased counts, float64[sides, cells]; each has noise of its own, of one standard deviation and kurtosis.

    `grain` is the least step of a count.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> one = Leaves(Quadtree.world(depth=0), np.array([1], dtype=np.uint64))
    >>> found = MarkedCounts(one, Marks.of("ill"), np.array([[800.0], [200.0]]), 10.0)
    >>> found.people, found.shares("ill").values
    (array([1000.]), array([0.2]))
    """

    cells: Leaves
    marks: Marks
    sides: Floats
    stddev: float
    kurtosis: float = 0.0
    grain: float = 1.0

    def __post_init__(self) -> None:
        if self.sides.shape != (self.marks.sides, self.cells.size):
            raise InputError("marked counts hold a number for each side of each cell")

    @classmethod
    def of(cls, question: Question, answer: Answer, marks: Marks) -> "MarkedCounts":
        """What an answer about the sides of some cells says; `InputError` for a question about something else."""
        cells, unit = _asked(question)
        if cells.tree.number != marks.sides:
            raise InputError(f"this question does not ask for {', '.join(marks.texts)} in cells")
        counts = answer.sums.reshape(marks.sides, -1) / unit
        return cls(cells.cells, marks, counts, float(answer.stddev.max()) / unit, answer.kurtosis, 1 / unit)

    @property
    def numbers(self) -> MarkedNumbers:
        """The numbers of all cells."""
        return MarkedNumbers(self.marks, self.sides, self.stddev, self.kurtosis, self.grain)

    def at(self, positions: Ints) -> MarkedNumbers:
        """The numbers of some cells: O(sides · positions)."""
        return replace(self.numbers, sides=np.take(self.sides, positions, axis=1))

    @property
    def people(self) -> Floats:
        """How many are in each cell, on any side: float64[cells], unbiased."""
        return self.numbers.people

    def shares(self, mark: str, together: Ints | None = None) -> Shares:
        """Those with a mark, and those without, in each cell; with `together`, in all of these cells at once.

        O(sides · cells).
        """
        if together is None:
            return self.numbers.shares(mark)
        having, whole = self.marks.having(mark), self.sides[:, together].sum(axis=1, keepdims=True)
        noises = [self.numbers.noise_of(some, len(together)) for some in (having, ~having)]
        stddev, kurtosis = zip(*noises, strict=True)
        return Shares(whole[having].sum(axis=0), whole[~having].sum(axis=0), stddev, kurtosis, self.grain)

    @property
    def map(self) -> CellMap:
        """The people in each cell, as a map."""
        stddev, kurtosis = self.numbers.noise
        return CellMap.independent(self.cells, self.people, np.full(self.cells.size, stddev), kurtosis)
