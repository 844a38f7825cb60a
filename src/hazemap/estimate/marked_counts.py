"""How many of those in each cell carry which marks, also in every slot: counts of every side, shares, intervals."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hazemap.cellmap import CellMap
from hazemap.cells import Leaves
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate.confidence_margins import checked_confidence, reach
from hazemap.machine_code.arrays import Bools, Floats, Ints
from hazemap.queries.noisy_queries import Answer, Query, Question
from hazemap.temporal.time_slots import Slots
from hazemap.values.boolean_attribute import AttributeCells
from hazemap.values.cells_in_slots import AllSlots, EachSlot
from hazemap.values.marks import Marks
from hazemap.values.sides_in_slots import SidesInSlots

TURNS = 4
"""How often the margin is fitted to where an interval ends: its law changes slowly along it."""


@dataclass(frozen=True, eq=False)
class MarkedShares:
    """Noisy numbers with a mark and without it, float64[n] each, unbiased; their noise is independent.

    `noise` is its standard deviation in the numbers with and without, `kurtosis` its excess kurtosis in each; `grain`
    is the least step of a number, 0 where there is none.

    >>> found = MarkedShares(np.array([200.0]), np.array([800.0]), (10.0, 10.0))
    >>> found.values, [end.round(3) for end in found.interval(0.95)]
    (array([0.2]), [array([0.184]), array([0.216])])
    """

    marked: Floats
    without: Floats
    noise: tuple[float, float]
    kurtosis: tuple[float, float] = (0.0, 0.0)
    grain: float = 0.0

    @property
    def people(self) -> Floats:
        """All of them: unbiased, and perhaps below 0."""
        return self.marked + self.without

    @property
    def values(self) -> Floats:
        """The best guess, within 0 … 1 and within every interval; NaN where there seem to be no people at all."""
        marked, without = np.maximum(self.marked, 0), np.maximum(self.without, 0)
        some = self.people > 0
        return np.where(some, marked / np.where(some, marked + without, 1), np.nan)

    def interval(self, confidence: float = 0.95, sampled: bool = False) -> tuple[Floats, Floats]:
        """Low and high ends, within 0 … 1. With `sampled`, the people asked stand for more people like them.

        Fieller (1954): p is in the interval iff (1 − p) · marked − p · without is no further from 0 than its noise
        reaches with this confidence. That noise is a weighted sum of two laws, of which `reach` knows the shape at
        every p; margins are of whole people, as noise is. A sample adds people · p(1 − p) to its variance (with no
        noise this is Wilson's interval). A number below 0 is taken for 0 first, so the interval is never empty and
        holds the best guess. Where noise could explain that nobody is there, it is 0 … 1. O(n).
        """
        checked_confidence(confidence)
        x, y = np.maximum(self.marked, 0), np.maximum(self.without, 0)
        start = np.full(len(x), float(reach(confidence, max(self.kurtosis), at_most=True)))
        low, high = self._ends(x, y, start, sampled)
        for _ in range(TURNS):
            low, high = (
                self._ends(x, y, reach(confidence, self._kurtosis(end, x + y, sampled)), sampled)[at]
                for at, end in enumerate((low, high))
            )
        return low, high

    def _kurtosis(self, p: Floats, people: Floats, sampled: bool) -> Floats:
        """The excess kurtosis of (1 − p) · marked − p · without."""
        parts = [(weight * noise) ** 2 for weight, noise in zip((1 - p, p), self.noise, strict=True)]
        whole = parts[0] + parts[1] + sampled * people * p * (1 - p)
        fourth = sum(each * part**2 for each, part in zip(self.kurtosis, parts, strict=True))
        found: Floats = np.divide(fourth, whole**2, out=np.zeros_like(p), where=whole > 0)
        return found

    def _ends(self, x: Floats, y: Floats, reach: Floats, sampled: bool) -> tuple[Floats, Floats]:
        """Both ends, where noise reaches this many of its standard deviations: the roots of a quadratic."""
        mx, my = (self._whole(reach * noise) ** 2 for noise in self.noise)
        people = x + y
        spread = reach**2 * people * sampled
        a, b, c = people**2 - mx - my + spread, 2 * (mx - x * people) - spread, x**2 - mx
        some = (people > 0) & (a > 0)
        half = np.sqrt(np.maximum(b**2 - 4 * a * c, 0)) / np.where(some, 2 * a, 1)
        middle = -b / np.where(some, 2 * a, 1)
        guess = x / np.where(people > 0, people, 1)  # a root may miss it by rounding
        low, high = np.minimum(middle - half, guess), np.maximum(middle + half, guess)
        return np.where(some, np.clip(low, 0, 1), 0.0), np.where(some, np.clip(high, 0, 1), 1.0)

    def _whole(self, margin: Floats) -> Floats:
        return margin if self.grain == 0 else np.ceil(margin / self.grain - 1e-9) * self.grain


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

    def shares(self, mark: str) -> MarkedShares:
        """Those with a mark, and those without, in each place: O(sides · n)."""
        having = self.marks.having(mark)
        stddev, kurtosis = zip(*(self.noise_of(some) for some in (having, ~having)), strict=True)
        return MarkedShares(
            self.sides[having].sum(axis=0), self.sides[~having].sum(axis=0), stddev, kurtosis, self.grain
        )

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

    def shares(self, mark: str, together: Ints | None = None) -> MarkedShares:
        """Those with a mark, and those without, in each cell; with `together`, in all of these cells at once.

        O(sides · cells).
        """
        if together is None:
            return self.numbers.shares(mark)
        having, whole = self.marks.having(mark), self.sides[:, together].sum(axis=1, keepdims=True)
        noises = [self.numbers.noise_of(some, len(together)) for some in (having, ~having)]
        stddev, kurtosis = zip(*noises, strict=True)
        return MarkedShares(whole[having].sum(axis=0), whole[~having].sum(axis=0), stddev, kurtosis, self.grain)

    @property
    def map(self) -> CellMap:
        """The people in each cell, as a map."""
        stddev, kurtosis = self.numbers.noise
        return CellMap.independent(self.cells, self.people, np.full(self.cells.size, stddev), kurtosis)


def asked_in_slots(question: Question, marks: Marks) -> tuple[SidesInSlots, int]:
    """The sides of cells in slots that a question asks for, and how many votes are one of what is counted.

    `InputError` for a question about something else.
    """
    if not isinstance(question, Query) or not isinstance(question.encoder, Counts):
        raise InputError("only a question for counts of sides says who carries a mark")
    cells = question.encoder.cells
    if not isinstance(cells, SidesInSlots) or cells.tree.number != marks.sides:
        raise InputError(f"this question does not ask for {', '.join(marks.texts)} in slots")
    return cells, question.encoder.bounding.unit


def of_all_slots(question: Question, answer: Answer, marks: Marks) -> MarkedCounts:
    """What an answer about the sides of cells says, of all slots together."""
    cells, unit = asked_in_slots(question, marks)
    if not isinstance(cells.places, AllSlots):
        raise InputError("this question asks for each slot apart")
    counts = answer.sums.reshape(marks.sides, -1) / unit
    return MarkedCounts(cells.leaves, marks, counts, float(answer.stddev.max()) / unit, answer.kurtosis, 1 / unit)


@dataclass(frozen=True, eq=False)
class MarkedSlots:
    """Unbiased counts, float64[slots, sides, cells]; each has noise of its own, of one standard deviation and kurtosis.

    So the numbers of some slots are sums of these, with the noise of as many, and all slots add up to the total.
    `first` has the numbers of the first slot.

    >>> import numpy as np
    >>> from hazemap.cells import Leaves
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> from hazemap.temporal.time_slots import Clock
    >>> one = Leaves(Quadtree.world(depth=0), np.array([1], dtype=np.uint64))
    >>> first = MarkedCounts(one, Marks.of("ill"), np.array([[60.0], [40.0]]), 3.0)
    >>> found = MarkedSlots(Clock("UTC", (0, 43200)), np.array([first.sides, [[90.0], [10.0]]]), first)
    >>> found.during([1]).shares("ill").values, found.total.shares("ill").values, found.total.stddev
    (array([0.1]), array([0.25]), 4.242640687119286)
    """

    slots: Slots
    numbers: Floats
    first: MarkedCounts

    def __post_init__(self) -> None:
        if self.numbers.shape != (len(self.slots.names), *self.first.sides.shape):
            raise InputError("marked counts in slots hold a number for each side of each cell in each slot")

    @classmethod
    def of(cls, question: Question, answer: Answer, marks: Marks) -> "MarkedSlots":
        """What an answer about the sides of cells in each slot says; `InputError` for one about something else."""
        cells, unit = asked_in_slots(question, marks)
        if not isinstance(cells.places, EachSlot):
            raise InputError("this question asks for all slots together")
        slots = cells.places.tree
        counts = (answer.sums / unit).reshape(marks.sides, -1, slots.many).transpose(2, 0, 1)
        stddev = float(answer.stddev.max()) / unit
        first = MarkedCounts(cells.leaves, marks, counts[0], stddev, answer.kurtosis, 1 / unit)
        return cls(slots.slots, counts, first)

    def during(self, chosen: Sequence[int]) -> MarkedCounts:
        """The counts in some slots together: O(chosen · sides · cells)."""
        some = self.chosen(chosen)
        noise = {"stddev": self.first.stddev * len(some) ** 0.5, "kurtosis": self.first.kurtosis / len(some)}
        numbers = self.numbers if len(some) == len(self.numbers) else self.numbers[some]
        return replace(self.first, sides=numbers.sum(axis=0), **noise)

    def chosen(self, slots: Sequence[int]) -> list[int]:
        """The slots that are named, each once; `InputError` for none, and for others than there are."""
        some = list(dict.fromkeys(slots))
        if not some or not all(0 <= slot < len(self.numbers) for slot in some):
            raise InputError(f"name some of the {len(self.numbers)} slots, by numbers from 0 on")
        return some

    def in_each(self, cells: Ints) -> MarkedNumbers:
        """The numbers of some cells in every slot, those of one cell after each other: O(slots · sides · cells)."""
        numbers = np.take(self.numbers.transpose(1, 2, 0), cells, axis=1).reshape(self.first.marks.sides, -1)
        return replace(self.first.numbers, sides=numbers)

    @cached_property
    def total(self) -> MarkedCounts:
        """The counts in all slots together."""
        return self.during(range(len(self.numbers)))
