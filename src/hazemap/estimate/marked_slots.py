"""How many of those in each cell carry which marks, in every slot: noisy counts of every side, and sums of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate.marked_counts import MarkedCounts, MarkedNumbers
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.queries.noisy_queries import Answer, Query, Question
from hazemap.temporal.time_slots import Slots
from hazemap.values.cells_in_slots import AllSlots, EachSlot
from hazemap.values.marks import Marks
from hazemap.values.sides_in_slots import SidesInSlots


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
