"""Maps of every slot that share one adaptive tree: the method of maps with time."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import log10

import numpy as np

from hazemap.algorithms.adaptive_tree import Adaptive
from hazemap.algorithms.cell_cutting import coarsest
from hazemap.algorithms.count_queries import LEAST_NOISE
from hazemap.cellmap import CellMap
from hazemap.cells import Cells, Leaves, Tree, WholeDomain
from hazemap.encoders import Counts, Encoder
from hazemap.errors import InputError
from hazemap.estimate.shrinkage import TreeLevels
from hazemap.estimate.slot_maps import SlotMaps, read_slots, sums_up
from hazemap.machine_code.arrays import Floats
from hazemap.queries.algorithm_disclosure import Disclosure, Learned
from hazemap.queries.noisy_queries import Answer, Prices, Query, Question, Rounds
from hazemap.tables.contribution_bounding import AtMostRows, Bounding
from hazemap.temporal.time_slots import Slots
from hazemap.values.cells_in_slots import AllSlots, EachSlot
from hazemap.values.timed_tree import TimedTree

MOST_IN_SLOTS = 1 << 22
"""Cells times slots that a map has at most: then cells are fuller."""


@dataclass(frozen=True)
class AdaptiveSlots:
    """First the adaptive map of all slots together, then coarser cells of it in each slot.

    The tree is decided on, and counted, over all slots (`Adaptive`). Cells of a slot are made of its cells: cut as
    long as the parts hold `fullness` standard errors in a slot, if every slot had the same. They are counted in each
    slot with a share of their own, and all of them together in each slot with `hours`; where one cell is all, with both
    at once. `estimate.slot_maps` makes maps of that which add up.

    That share grows with the people whom a slot has above the noise, as the deciding rounds tell: from `least`, where
    an hour can hardly be told from the day, by `growth` for ten times the people, up to `most`. So what depends on
    rows was paid for. One bounding rule covers all slots: a person's votes lie in places in slots (`TimedTree`), so
    every answer has the sensitivity of the rule.

    `first_fullness` is how many standard errors a cell of the first grid holds, as in `Adaptive`.

    `most_numbers` limits how many numbers are asked for in all rounds together: what each device sends. All slots
    together get half of them at most, and cells of slots what is left.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> from hazemap.temporal.time_slots import Clock
    >>> method = AdaptiveSlots(Quadtree.world(depth=8), Clock.hours("UTC"))
    >>> method.share(24 * 16.0, 1.0), method.share(24 * 160.0, 1.0), method.share(24e9, 1.0)
    (Fraction(1, 10), Fraction(27, 100), Fraction(3, 5))
    """

    tree: Tree
    slots: Slots
    bounding: Bounding = AtMostRows(1)
    hours: Fraction = Fraction(5, 100)
    least: Fraction = Fraction(10, 100)
    most: Fraction = Fraction(60, 100)
    growth: Fraction = Fraction(17, 100)
    fullness: int = 2
    most_numbers: int | None = None
    first_fullness: int | None = 24

    def __post_init__(self) -> None:
        if not self.slots.timed:
            raise InputError("maps with time need slots, such as hour-of-day")
        if min(self.hours, self.least) <= 0 or self.growth < 0 or self.fullness < 1:
            raise InputError("shares of slots must be positive, and their cells must hold somebody")
        if not self.least <= self.most < 1 - self.hours - DECIDING:
            raise InputError("the shares of slots must leave something for the map of all slots together")
        if self.most_numbers is not None:
            self._check_numbers(self.most_numbers)

    def _check_numbers(self, most: int) -> None:
        """`InputError` where the first cells, and the coarsest of each slot, are more than may be asked for."""
        slots, day = len(self.slots.names), self.day
        first = max(coarsest(self.tree, day.first_cells).size, day.first_cells)  # the box may be yet to be found
        least = 2 * max(first * (len(day.deciding) + 1 + len(day.coarser)), (len(self.tree.root) + 1) * slots)
        if most < least:
            raise InputError(
                f"a device may be asked for {most:,} numbers, but maps of {slots:,} slots need {least:,} in all rounds "
                "at least: allow more numbers, or choose fewer slots"
            )

    @property
    def day(self) -> Adaptive:
        """The method of the map of all slots together."""
        day = Adaptive.for_slots(self.tree, self.bounding, self.most_numbers and self.most_numbers // 2)
        return replace(day, first_fullness=self.first_fullness)

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        return Disclosure((Learned.FINENESS, Learned.PEOPLE, Learned.SLOTS, Learned.NUMBERS))

    def rounds(self, prices: Prices) -> Rounds[SlotMaps]:
        """The queries of the adaptive map, then one or two about slots."""
        timed = TimedTree(self.tree, self.slots)
        transcript: list[tuple[Question, Answer]] = []
        day, share = yield from self._day(timed, prices, transcript)
        room = self._room(transcript)
        cells = self.cells_of(day, prices, share, room)
        if cells.size == 1:
            share += self.hours
        query = Query(Counts(EachSlot(timed, cells), self.bounding), share)
        transcript.append((query, (yield query)))
        if cells.size > 1:
            query = Query(Counts(EachSlot(timed, WholeDomain(self.tree)), self.bounding), self.hours)
            transcript.append((query, (yield query)))
        return read_slots(transcript, day.cells, self.slots)

    def _day(
        self, timed: TimedTree, prices: Prices, transcript: list[tuple[Question, Answer]]
    ) -> Rounds[tuple[CellMap, Fraction]]:
        """The adaptive map of all slots together, and the share that is left for cells in slots.

        The deciding rounds have the shares that they have in a map without slots; all others divide what is left.
        """
        day, spent = self.day, Fraction(0)
        rounds = day.rounds(_OverSlots(prices, timed))
        question = next(rounds)
        while question.share < day.share:  # it decides
            spent += question.share
            answer = yield from _over_slots(question, question.share, timed, transcript)
            question = rounds.send(answer)
        share = self.share(answer.sums.sum() / self.bounding.unit, self._noise(prices, Fraction(1)))
        left = (1 - spent - share - self.hours) / (1 - spent)
        try:
            while True:
                answer = yield from _over_slots(question, question.share * left, timed, transcript)
                question = rounds.send(answer)
        except StopIteration as end:
            made: CellMap = end.value
            return made, share

    def share(self, people: float, noise: float) -> Fraction:
        """The share that counts cells in slots, for so many people, where all of the budget buys this noise."""
        above = max(float(people), 0.0) / len(self.slots.names) / max(noise, LEAST_NOISE)
        grown = float(self.least) + float(self.growth) * log10(max(above / HARDLY, 1.0))
        return min(Fraction(round(100 * grown), 100), self.most)

    def _noise(self, prices: Prices, share: Fraction) -> float:
        """The standard deviation in people that a share buys."""
        everybody = Counts(EachSlot(TimedTree(self.tree, self.slots), WholeDomain(self.tree)), self.bounding)
        return prices.stddev(everybody, share) / self.bounding.unit

    def _room(self, transcript: list[tuple[Question, Answer]]) -> int:
        """How many cells times slots may still be asked for, when everybody in each slot is asked for too."""
        if self.most_numbers is None:
            return MOST_IN_SLOTS
        asked = sum(len(answer.sums) for _, answer in transcript)
        return min(self.most_numbers - asked - len(self.slots.names), MOST_IN_SLOTS)

    def cells_of(self, day: CellMap, prices: Prices, share: Fraction, room: int = MOST_IN_SLOTS) -> Leaves:
        """The cells of a slot: unions of the total's, as small as they are full in a slot of the usual size.

        Cells times slots are `room` at most: then cells are fuller.
        """
        slots = len(self.slots.names)
        places = Leaves(day.cells.tree, day.cells.cells[day.places])
        numbers = np.maximum(day.values[day.places], 0) / slots
        fullness = max(self.fullness * self._noise(prices, share), 1.0)
        while (found := united(places, numbers, fullness)).size * slots > room and fullness <= numbers.sum():
            fullness *= 2
        return found


DECIDING = Fraction(165, 1000)
"""What the deciding rounds of the adaptive map take, and counting its people first."""

HARDLY = 16.0
"""People in a slot, in standard errors of what all of the budget buys: fewer hardly tell an hour from the day."""


def united(cells: Leaves, numbers: Floats, fullness: float) -> Leaves:
    """Cells made of these, none inside another, cut as long as the parts of a cell hold `fullness` on average."""
    every = TreeLevels(cells)
    held, generations = sums_up(every, numbers), every.levels
    done: list[Cells] = []
    cut = np.ones(1, dtype=np.bool_)  # everything
    for level, here in enumerate(generations):
        reached = cut[here.parent]
        last = here.leaf >= 0
        if level + 1 == len(generations):
            done.append(here.cells[reached])
            break
        lower = generations[level + 1]
        parts = np.bincount(lower.parent, minlength=len(here.cells))
        mean = held[level] / np.maximum(parts, 1)
        cut = reached & ~last & ((mean >= fullness) | (parts == 1))
        done.append(here.cells[reached & ~cut])
    return Leaves(cells.tree, np.concatenate(done))


def _over_slots(
    question: Question, share: Fraction, timed: TimedTree, transcript: list[tuple[Question, Answer]]
) -> Rounds[Answer]:
    """The answer to the same question of all slots together, for this share; noted in the transcript."""
    asked = Query(over_slots(question.encoder, timed), share)  # type: ignore[union-attr]  # it asks for nothing but sums
    answer = yield asked
    transcript.append((asked, answer))
    return answer


def over_slots(encoder: Encoder, timed: TimedTree) -> Counts:
    """The same counts, of all slots together."""
    if not isinstance(encoder, Counts) or not isinstance(encoder.cells, Leaves | WholeDomain):
        raise InputError("only counts of cells can be asked for over all slots")
    return replace(encoder, cells=AllSlots(timed, encoder.cells))


@dataclass(frozen=True)
class _OverSlots:
    """Prices of counts of all slots together, for a method that knows no slots."""

    prices: Prices
    timed: TimedTree

    def stddev(self, encoder: Encoder, share: Fraction) -> float:
        """The standard deviation of the noise in each sum."""
        return self.prices.stddev(over_slots(encoder, self.timed), share)

    def share(self, encoder: Encoder, stddev: float) -> Fraction:
        """The least share that buys a standard deviation this small."""
        return self.prices.share(over_slots(encoder, self.timed), stddev)
