"""How the numbers of a map are computed from its answers.

An adaptive method cuts a cell because its noisy number was high. That number cannot then stand for the cells
without bias: with all rounds, least squares put the total of a map 3 to 5 standard errors too high, and 95 %
intervals of large unions held the truth 75 % of the time. So the unbiased estimate, and every interval, comes from
the answers that were given once the cells were fixed: from the first query that asks for exactly these cells on.
Their noise is fresh, so it is unbiased for every union of cells, whatever the noise before has chosen. Where no query
asks for exactly these cells, some are asked for here and some there, as soon as they were fixed: then it comes from the
last answer about each, and from all that was asked when the last of them was fixed. So a method that decides cell by
cell asks about a cell once more when it is decided.

The best guess that a picture shows may use all rounds: it has no interval, and keeps the unbiased total. The most
plausible one (`empirical_bayes.py`) is for cells of which none lies in another, and a total above 0; otherwise numbers
are shrunk instead.

Answers of devices say over how many people they are. Numbers and intervals are then of the people who answered, and
intervals are about noise alone. The best guess is of everybody from whom they were drawn: it weighs rounds by noise
and sampling error together (as if every round drew afresh), and neighbouring cells help each other.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hazemap.cellmap import CellMap, Reading
from hazemap.cells import NOWHERE, Leaves, WholeDomain
from hazemap.errors import InputError
from hazemap.estimate.empirical_bayes import likely
from hazemap.estimate.grid_groups import groups
from hazemap.estimate.nonnegative_projection import nonnegative
from hazemap.estimate.shrinkage import drawn_together, shrunk
from hazemap.estimate.transcript_measurements import measurements, with_sampling
from hazemap.estimate.tree_least_squares import Measurement, consistent, levels
from hazemap.queries.noisy_queries import Answer, Question

MOST_LIKELY = 1 << 20
"""Cells of a grid of rectangles, which is cut wherever nobody is, too: the most plausible map of so many takes four
seconds and 1 GB. More are shown by the nearest map without minus signs, at a third of that."""


def read(transcript: Iterable[tuple[Question, Answer]], cells: Leaves, reading: Reading) -> CellMap:
    """A map of these cells from all answers: O(cells asked · depth). `InputError` if they were never asked for."""
    asked = measurements(transcript, cells)
    fixed = once_fixed(asked, cells)
    plain = _unbiased(fixed, cells)
    if reading is Reading.UNBIASED:
        return plain
    total = float(plain.unbiased[plain.places].sum())
    if reading is Reading.LIKELY and cells.size > MOST_LIKELY and groups(cells):
        reading = Reading.NONNEGATIVE
    if reading is Reading.LIKELY and total > 0 and not cells.nested:
        return replace(plain, values=_likely(_weighed(asked, cells, total), cells, total), reading=reading)
    guess = plain.values
    shrinks = reading is not Reading.NONNEGATIVE
    if shrinks or len(asked) > len(fixed) or any(part.sample is not None for part in asked):
        guess = _guessed(asked, cells, total, shrinks)
    return replace(plain, values=nonnegative(cells, guess))


def _unbiased(fixed: list[Measurement], cells: Leaves) -> CellMap:
    """Least squares from these answers; where these very cells were counted once, they are their numbers already."""
    if len(fixed) == 1 and np.array_equal(fixed[0].leaves.cells, cells.cells):
        return CellMap.independent(cells, fixed[0].numbers, np.sqrt(fixed[0].variances), fixed[0].kurtosis)
    found = levels(fixed, cells) or consistent(fixed, cells)
    return CellMap(cells, found.numbers, found.numbers, found.stddev, found)


def once_fixed(asked: list[Measurement], cells: Leaves) -> list[Measurement]:
    """What was answered once the cells were fixed: all that unbiased numbers and intervals come from."""
    for turn, part in enumerate(asked):
        if isinstance(part.cells, Leaves) and part.cells.same_cells(cells):
            return asked[turn:]
    wanted = np.sort(cells.cells)
    found, latest = [], -1  # the turn after which no cell was decided; no answer decides whether `NOWHERE` is one
    for turn, part in reversed(list(enumerate(asked))):
        if isinstance(part.cells, WholeDomain):
            continue
        place = np.searchsorted(wanted, part.cells.cells)
        own = np.append(wanted, NOWHERE)[place] == part.cells.cells
        own &= place < len(wanted)
        if own.any() and not part.cells.nested:
            found.append((turn, _some(part, part.cells, own)))
            decided = turn if part.cells.cells[own].any() else -1  # `NOWHERE` is 0
            wanted, latest = np.delete(wanted, place[own]), max(latest, decided)
    if len(wanted) or cells.nested:
        raise InputError("the cells of the result were never asked for, so nothing is known of them")
    return [*(part for turn, part in found[::-1] if turn <= latest), *asked[latest + 1 :]]


def _some(part: Measurement, cells: Leaves, own: NDArray[np.bool_]) -> Measurement:
    """The measurements of some of its cells."""
    leaves = cells if own.all() else Leaves(cells.tree, cells.cells[own])
    return part._replace(cells=leaves, numbers=part.numbers[own], variances=part.variances[own])


def _likely(asked: list[Measurement], cells: Leaves, total: float) -> NDArray[np.float64]:
    """The most plausible map; of a grid by the groups of its cells."""
    if not (tree := groups(cells)):
        return likely(asked, cells, total)
    grouped = tree.grouped(cells)
    return grouped.back(likely([tree.measured(part) for part in asked], grouped.cells, total))


def _guessed(asked: list[Measurement], cells: Leaves, total: float, shrinks: bool) -> NDArray[np.float64]:
    """The best guess of each cell before minus signs are removed."""
    samples = any(part.sample is not None for part in asked)
    if not samples and (even := levels(asked, cells, total)):
        return even.shrunk() if shrinks else even.numbers
    guess = consistent(_weighed(asked, cells, total), cells, total)
    if not shrinks:
        return guess.numbers
    values = shrunk(guess)
    return drawn_together(cells, guess.numbers, guess.stddev**2, values) if samples else values


def _weighed(asked: list[Measurement], cells: Leaves, total: float) -> list[Measurement]:
    """The same measurements as ones of everybody: where they are of people drawn, with the error of that."""
    if all(part.sample is None for part in asked):
        return asked
    return with_sampling(asked, consistent(asked, cells, total))
