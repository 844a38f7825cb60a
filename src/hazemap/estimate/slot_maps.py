"""Maps of every slot and of all slots together, from answers about cells in slots: one map, cut by time.

The cells of the total are counted over all slots, so they are many and small; in each slot coarser cells are counted,
made of them, so that people enough are in them at an hour too. Both add up:

    x_gs = x̂_gs + (T_g − Σ_t x̂_gt)/S

is the unbiased number of the coarse cell g in the slot s, one of S, where x̂ are the least squares of the slot's own
answers and T those of the total's. All slots have the same noise. So a difference of slots has nothing to do with T,
and the number in k of the slots has exactly the variance (k/S)² Var T + k(1 − k/S) Var x̂ (`SlotNoise`); in all of
them it is the total's own.

The best guess begins with what the slots have in common: a slot is *predicted* to be the total map, scaled to the
people of the slot. From the top down, a cell's number in a slot is shared out to its parts; each is predicted by the
total, or by what the slots before and after say where that helps (`from_neighbours`), measured in the slot, and
judged as parts of any map are (`empirical_bayes`), by a prior that all parts of all slots of one level teach. So
where an hour says nothing of its own it looks like the day, with all detail of the day. In the end the slots are
scaled so that they add up to the best guess of the total, cell by cell (iterative proportional fitting; Deming and
Stephan 1940).

**Neighbours.** What the slots before and after one say of it, from noisy numbers alone: a part is *predicted* to
hold, in slot t, P_t: what the map of the day makes of it. Measured is x_t = P_t(1 + θ_t) + noise. Where people move
little by little, θ changes little from one slot to the next, so

    θ̂_t = Σ_k K_k P d / σ² ÷ (Σ_k K_k P² / σ² + 1/τ²),    d = x − P,

over the slots t + k other than t itself, the nearer the heavier: the ridge estimate of a θ that is 0 but for some τ.
Its error has nothing to do with the noise of x_t, so Σ (x_t − P_t(1 + θ̂_t))²/σ² is the noise, the same for every
choice, and how far the predictions are off. So how far neighbours reach, how large τ is, and whether neighbours say
anything at all, is read off the answers themselves (cross-validation by leaving one out; Stone 1974), level by level:
where slots have nothing to do with their neighbours, the prediction stays that of the day.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hazemap.cellmap import CellMap, Reading, Spread
from hazemap.cells import NOWHERE, Leaves
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate.empirical_bayes import LEAST, shared
from hazemap.estimate.empirical_bayes_kernels import SCALES, WIDTHS, posterior
from hazemap.estimate.postprocess import once_fixed, read
from hazemap.estimate.shrinkage import TreeLevels
from hazemap.estimate.smooth_disaggregation import EvenDisaggregation, finer
from hazemap.estimate.transcript_measurements import LEAST_VARIANCE, measured_people, measurements
from hazemap.estimate.tree_least_squares import ConsistentEstimate, Measurement, consistent
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.queries.noisy_queries import Answer, Query, Question
from hazemap.temporal.time_slots import Clock, Slots, Weekdays
from hazemap.values.cells_in_slots import EachSlot

REACHES = (1, 2, 3, 4)
"""How many slots before and after may count."""

APART = (0.1, 0.3, 1.0)
"""How far slots may differ from the day, as a part of it: the τ that are tried."""


def from_neighbours(measured: Floats, predicted: Floats, stddev: Floats, slots: Slots) -> Floats:
    """The numbers that the neighbours of each slot predict, float64[slots, parts]; `predicted` where they do not help.

    `measured` have independent errors `stddev` in each slot. The hours of a day and the days of a week are a ring.

    >>> slots = Clock.hours("UTC")
    >>> day = np.full((24, 1), 100.0)
    >>> wave = day * (1 + 0.5 * np.sin(np.arange(24) / 24 * 2 * np.pi))[:, None]
    >>> found = from_neighbours(wave, day, np.full((24, 1), 5.0), slots)
    >>> bool(np.abs(found - wave).max() < 5), bool(np.abs(day - wave).max() > 49)
    (True, True)
    """
    precision = 1 / np.maximum(stddev, LEAST) ** 2
    away = measured - predicted
    told, known = predicted * away * precision, predicted**2 * precision
    best, found = float((away**2 * precision).sum()), predicted
    ring = isinstance(slots, Clock | Weekdays)
    for reach in REACHES:
        if 2 * reach + 1 > len(measured):
            break
        above, below = _around(told, reach, ring), _around(known, reach, ring)
        for apart in APART:
            tried = predicted * (1 + np.maximum(above / (below + apart**-2), -1))
            misses = float(((measured - tried) ** 2 * precision).sum())
            if misses < best:
                best, found = misses, tried
    return np.asarray(found)


def _around(numbers: Floats, reach: int, ring: bool) -> Floats:
    """The weighted sums of what slots before and after each have, without its own."""
    return np.asarray(sum(weight * each for weight, each in _moved(numbers, reach, ring)))


def _moved(numbers: Floats, reach: int, ring: bool) -> Iterator[tuple[float, Floats]]:
    """Each neighbour's numbers in the place of the slot's own, and its weight: a triangle's."""
    for step in (step for step in range(-reach, reach + 1) if step):
        moved = np.roll(numbers, step, axis=0)
        if not ring and step > 0:
            moved[:step] = 0
        if not ring and step < 0:
            moved[step:] = 0
        yield 1 - abs(step) / (reach + 1), moved


FITTED = 50
"""Rounds of scaling to both margins: then they agree to many digits where both can be kept."""


SHOWS = 0.05
"""Pictures of slots are cut where a part would differ by this part of the total's standard error (`finer`): the total
is counted finely, and each slot has its detail, so steps at the borders of cells cost more than they do in one map."""

ALIKE = np.array([0.01, *(0.12, 0.16, 0.2, 0.2, 0.15, 0.08, 0.04), *(0.005, 0.005, 0.01, 0.01, 0.005, 0.005)])
"""What is known of slots before anything is seen, by the components of `empirical_bayes_kernels`: they are like the
day, give or take a few per cent or a third; rarely empty, or anything."""


@dataclass(frozen=True, eq=False)
class SlotNoise:
    """The errors of numbers in `chosen` of `slots` slots: those of the total, and of differences between slots.

    `total` and `slot` are the estimates of a slot's cells, over all slots and in any one of them.
    """

    total: ConsistentEstimate
    slot: ConsistentEstimate
    chosen: int
    slots: int

    @property
    def parts(self) -> tuple[float, float]:
        """How much of the variance of the total, and of that of a slot, is in the numbers."""
        part = self.chosen / self.slots
        return part**2, self.chosen * (1 - part)

    def of(self, weights: Floats) -> Spread:
        """The noise of Σ weights · numbers: O(regions). Variances and fourth cumulants of both add."""
        part, others = self.chosen / self.slots, self.slots - self.chosen
        whole, slot = self.total.of(weights), self.slot.of(weights)
        variance = self.parts[0] * whole.stddev**2 + self.parts[1] * slot.stddev**2
        fourth = part**4 * whole.kurtosis * whole.stddev**4
        fourth += (self.chosen * (1 - part) ** 4 + others * part**4) * slot.kurtosis * slot.stddev**4
        return Spread(variance**0.5, fourth / variance**2 if variance else 0.0)


@dataclass(frozen=True, eq=False)
class SlotMaps:
    """The map of all slots together (`total`), and in each slot numbers of coarser cells, made of the total's.

    `unbiased` and `guess`, the best guess, are float64[slots, cells of a slot]: of the total's cells, which may be many
    more, it follows (`values_of`).
    `day` and `slot` are the least squares of a slot's cells: over all slots, and in the first one.
    """

    total: CellMap
    slots: Slots
    guess: Floats
    unbiased: Floats
    day: ConsistentEstimate
    slot: ConsistentEstimate

    @property
    def cells(self) -> Leaves:
        """Those that are counted in each slot."""
        return self.slot.leaves

    @cached_property
    def holder(self) -> Ints:
        """The cell of a slot that each cell of the total lies in; −1 for `NOWHERE`."""
        return held_by(self.total.cells, self.cells)

    @cached_property
    def _part(self) -> Floats:
        """Which part of the people of its cell of a slot each cell of the total has, by the total's best guess."""
        values = _most_likely(self.total)
        day = summed(self.holder, values, self.cells.size)[self.holder]
        return np.divide(values, day, out=np.zeros(len(values)), where=(self.holder >= 0) & (day > 0))

    def values_of(self, slots: Sequence[int]) -> Floats:
        """The best guess of every cell of the total in some slots: float64[slots, cells of the total]."""
        found: Floats = self.guess[list(slots)][:, self.holder] * self._part
        return found

    @cached_property
    def values(self) -> Floats:
        """That of all slots: float64[slots, cells of the total], which are gigabytes of thousands of slots."""
        return self.values_of(range(len(self.guess)))

    def during(self, chosen: Sequence[int]) -> CellMap:
        """The map of some slots together; of all slots it is the total, in the cells of a slot."""
        slots = self.numbers(chosen)
        noise = SlotNoise(self.day, self.slot, len(slots), len(self.unbiased))
        values = self.guess[slots].sum(axis=0)
        whole, slot = noise.parts
        stddev = np.sqrt(whole * self.day.stddev**2 + slot * self.slot.stddev**2)
        return CellMap(self.cells, values, self.unbiased[slots].sum(axis=0), stddev, noise, Reading.LIKELY)

    def numbers(self, chosen: Sequence[int]) -> list[int]:
        """The slots that are named, each once; `InputError` for none, and for others than there are."""
        slots = list(dict.fromkeys(chosen))
        if not slots or not all(0 <= slot < len(self.unbiased) for slot in slots):
            raise InputError(f"name some of the {len(self.unbiased)} slots, by numbers from 0 on")
        return slots

    @property
    def detail(self) -> CellMap:
        """The total as a picture shows it, cut as finely as all slots are."""
        return self._shown[0]

    @cached_property
    def _shown(self) -> tuple[CellMap, Ints]:
        """The total as a picture shows it, and in which of the total's cells each of its cells lies."""
        fine = finer(self.total, SHOWS)
        holder = fine.noise.holder if isinstance(fine.noise, EvenDisaggregation) else np.arange(fine.cells.size)
        return fine, holder

    def finer(self, chosen: Sequence[int]) -> CellMap:
        """The same as a picture shows it: as fine as that of the total, whose detail is that of every slot.

        What is unbiased is spread evenly over it, so that every union of a slot's cells keeps its interval.
        """
        coarse, (fine, cell) = self.during(chosen), self._shown
        places = fine.places
        leaves = Leaves(fine.cells.tree, fine.cells.cells[places])
        cell = cell[places]
        holder, areas = self.holder[cell], leaves.areas
        whole = np.bincount(holder, areas, coarse.cells.size)
        share = np.where(areas > 0, areas, 1) / np.where(whole > 0, whole, 1)[holder]
        even = EvenDisaggregation(coarse.noise, holder, share, coarse.cells.size)
        day = np.maximum(fine.values[places], 0)
        part = np.divide(
            day, np.bincount(cell, day, self.total.cells.size)[cell], out=np.zeros(len(day)), where=day > 0
        )
        values = self.values_of(self.numbers(chosen)).sum(axis=0)[cell] * part
        return CellMap(
            leaves, values, coarse.unbiased[holder] * share, coarse.stddev[holder] * share, even, Reading.SHRUNK
        )


def read_slots(transcript: Iterable[tuple[Question, Answer]], cells: Leaves, slots: Slots) -> SlotMaps:
    """The maps of slots from all answers of a run, of which the total has these cells."""
    transcript = tuple(transcript)
    total = read(transcript, cells, Reading.LIKELY)
    people = measured_people(transcript, cells)
    asked = [_by_slot(*each, len(slots.names), people) for each in transcript if _of_slots(each[0])]
    if not asked or not isinstance(asked[0][0].cells, Leaves):
        raise InputError("no cells were counted in slots, so nothing is known of slots")
    coarse = asked[0][0].leaves
    day = consistent(once_fixed(measurements(transcript, cells), cells), coarse)
    parts = list(zip(*asked, strict=True))
    first = consistent(parts[0], coarse)
    found = np.stack([consistent(own, coarse).numbers for own in parts])
    unbiased = found + (day.numbers - found.sum(axis=0)) / len(parts)
    guess = _guessed(total, coarse, parts, unbiased, first, slots)
    return SlotMaps(total, slots, guess, unbiased, day, first)


def _most_likely(total: CellMap) -> Floats:
    """The best guess of each place, not below 0; 0 for `NOWHERE`."""
    return np.where(total.places, np.maximum(total.values, 0), 0)


def held_by(cells: Leaves, coarse: Leaves) -> Ints:
    """The position of the coarse cell around each cell; −1 for `NOWHERE`. Coarse cells lie beside each other.

    Spans are compared, and no base cell is looked up: a span of a hexagon ends at numbers that name no cell.
    """
    end, (first, last) = cells.spans[1], coarse.spans
    found = coarse.order[np.maximum(np.searchsorted(first[coarse.order], end, "right") - 1, 0)]
    inside = np.where((cells.cells != NOWHERE) & (first[found] <= end) & (end <= last[found]), found, -1)
    if (inside < 0)[cells.cells != NOWHERE].any():
        raise InputError("every cell of a total must lie in a cell of the slots")
    return inside


def summed(holder: Ints, numbers: Floats, size: int) -> Floats:
    """The sums of what each of `size` cells holds; −1 for none."""
    sums: Floats = np.bincount(holder + 1, numbers, size + 1)[1:].astype(np.float64)
    return sums


def _of_slots(question: Question) -> bool:
    return (
        isinstance(question, Query)
        and isinstance(question.encoder, Counts)
        and isinstance(question.encoder.cells, EachSlot)
    )


def _by_slot(question: Question, answer: Answer, slots: int, people: int | None) -> list[Measurement]:
    """What an answer about cells in slots says of each slot; of so many people, where answers say of how many."""
    encoder = question.encoder  # type: ignore[union-attr]  # `_of_slots` was asked
    unit = encoder.bounding.unit  # type: ignore[union-attr]
    factor = people / answer.people if people and answer.people else 1.0
    variance = max((factor * float(answer.stddev.max()) / unit) ** 2, LEAST_VARIANCE)
    numbers = (factor * answer.sums / unit).reshape(-1, slots).T
    cells = encoder.cells.cells  # type: ignore[union-attr]
    return [Measurement(cells, each, np.full(len(each), variance), answer.kurtosis) for each in numbers]


def _guessed(
    total: CellMap,
    coarse: Leaves,
    asked: list[tuple[Measurement, ...]],
    unbiased: Floats,
    slot: ConsistentEstimate,
    slots: Slots,
) -> Floats:
    """The best guess of every cell of a slot in every slot, float64[slots, cells]."""
    holder = held_by(total.cells, coarse)
    values = _most_likely(total)
    people = values.sum()
    if people <= 0:
        return np.zeros((len(asked), coarse.size))
    day = summed(holder, values, coarse.size)
    stddev = slot.of(np.ones(coarse.size)).stddev * (1 - 1 / len(asked)) ** 0.5
    even = np.full(len(asked), people / len(asked))
    numbers = unbiased.sum(axis=1)
    hours = _judged(numbers[:, None], even[:, None], np.full((len(asked), 1), max(stddev, LEAST)), None)[0][:, 0]
    hours = hours * (people / hours.sum()) if hours.sum() > 0 else even
    guess = _walked(coarse, day, hours, asked, slots)
    return _fitted(guess, day, hours)


def _walked(coarse: Leaves, day: Floats, hours: Floats, asked: list[tuple[Measurement, ...]], slots: Slots) -> Floats:
    """Each slot's people shared out from the top down, float64[slots, coarse cells]."""
    generations = TreeLevels(coarse)
    first, *others = zip(asked, hours, strict=True)
    guess = _of_slot(generations, coarse, *first)
    wholes = np.stack([guess.whole, *(_of_slot(generations, coarse, *each).whole for each in others)])
    place = np.full(len(guess.whole), -1)
    place[guess.regions.forest.row] = np.arange(len(place))
    sums = sums_up(generations, day)
    values, weights = np.zeros((len(asked), coarse.size)), None
    start, upper, upper_numbers, upper_day = 0, hours[:, None], hours[:, None], np.array([day.sum()])
    for level, here in enumerate(generations.levels):
        at = place[start : start + len(here.cells)]
        start += len(here.cells)
        numbers, given, below = wholes[:, at], guess.given[at], guess.below[at]
        if not level:
            upper_numbers = numbers.sum(axis=1, keepdims=True)
        measured = numbers + given * (upper - upper_numbers)[:, here.parent]
        stddev = np.broadcast_to(np.sqrt(below * np.maximum(1 - given, LEAST)), numbers.shape)
        common = np.divide(sums[level], upper_day[here.parent], out=np.zeros(len(at)), where=upper_day[here.parent] > 0)
        predicted = from_neighbours(measured, upper[:, here.parent] * common, stddev, slots)
        found, weights = _judged(measured, predicted, stddev, weights)
        found = np.stack(
            [
                shared(each, np.maximum(sums[level], LEAST), here.parent, top)
                for each, top in zip(found, upper, strict=True)
            ]
        )
        own = here.leaf >= 0
        values[:, here.leaf[own]] = found[:, own]
        upper, upper_numbers, upper_day = found, numbers, sums[level]
    return values


def _of_slot(
    generations: TreeLevels, coarse: Leaves, parts: tuple[Measurement, ...], people: float
) -> ConsistentEstimate:
    """The least squares of a slot of so many people, in cells of every generation."""
    return consistent([*generations.unknown, *parts], coarse, float(people))


def sums_up(generations: TreeLevels, day: Floats) -> list[Floats]:
    """What the cells of every generation hold, from the numbers of the map's cells."""
    found = list[Floats]()
    below: Floats = np.empty(0)
    for here in reversed(generations.levels):
        own = here.leaf >= 0
        numbers = np.empty(len(here.cells))
        numbers[own], numbers[~own] = day[here.leaf[own]], below
        found.append(numbers)
        below = np.bincount(here.parent, numbers).astype(np.float64)[np.bincount(here.parent) > 0]
    return found[::-1]


def _judged(measured: Floats, predicted: Floats, stddev: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """The most plausible number of each part in each slot, and what their law teaches about the next level."""
    start = ALIKE if weights is None else weights
    error = np.ascontiguousarray(stddev).ravel()
    likely = np.maximum(predicted.ravel(), LEAST * error)
    found, common = posterior(measured.ravel(), likely, error, start, SCALES, WIDTHS)
    return found.reshape(measured.shape), (ALIKE + common) / 2


def _fitted(guess: Floats, day: Floats, hours: Floats) -> Floats:
    """Numbers scaled until they add up to the day in each cell, and as nearly as can be to the people of each slot."""
    tried = guess + np.where(guess.sum(axis=0) > 0, 0, hours[:, None])
    for _ in range(FITTED):
        rows = tried.sum(axis=1)
        tried = tried * np.divide(hours, rows, out=np.zeros(len(rows)), where=rows > 0)[:, None]
        columns = tried.sum(axis=0)
        tried = tried + np.where(columns > 0, 0, hours[:, None])
        tried = tried * (day / tried.sum(axis=0))
    return np.asarray(tried)
