"""Spends a small share of the budget to find the cells with many people, before they are asked about."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from hazemap.algorithms.cell_statistics import CellStatistics, touched
from hazemap.cells import Cells, Leaves, Tree
from hazemap.encoders import CellPresence, Counts, Values
from hazemap.errors import InputError
from hazemap.estimate.value_estimates import Measurements
from hazemap.queries.noisy_queries import Answer, Prices, Query, Rounds
from hazemap.tables.contribution_bounding import AtMostCells
from hazemap.values.cell_slot_counters import MOST_PLACES, CellTimeSlots
from hazemap.values.rows_with_values import RowsWithValues

MOST_ASKED = 1 << 18
"""Cells that are asked at once, at most; where a box has more of them, coarser ones are asked first."""

EMPTY, MOST_EMPTY = 0.1, 100
"""Which part of empty cells, and how many of them, noise may let through: they cost nobody anything, but room."""

BUSIEST = 3
"""How many times more people the busiest slot of a cell may have than its slots have in the mean."""


@dataclass(frozen=True)
class PartitionSelection:
    """Ask how many people are in each cell, each voting in `most` cells at most; keep cells that can be published.

    A cell is kept if its noisy votes stand out of the noise, and if they are enough. Let v be the votes of a cell, K
    how many places a person may have, s the slots, and b what part of all votes is in the cells that are kept. Somebody
    with more places than K, who spends them on kept cells alone, is there with the weight of their vote times K/(s ·
    most · b) in a mean slot; somebody with fewer, with less. So a cell is kept if v · K · min(s, 3)/(s · most · b) is
    at least the number of people that a published place needs, `Measurements.threshold`, which is public. The largest
    set is kept of which this is true; if it is true of none, all that stand out.

    Where a box has more cells than 262,144, coarser ones are asked first, and of those that stand out the cells within:
    the same votes, so that the rows are read once. Every step has an equal part of `share`.

    >>> PartitionSelection().steps(level=0, first=0), PartitionSelection().steps(level=7, first=3)
    (1, 3)
    """

    share: Fraction = Fraction(1, 10)
    most: int = 1
    down: int = 2

    def __post_init__(self) -> None:
        if not 0 < self.share < 1 or self.most < 1 or self.down < 1:
            raise InputError(
                "selecting cells needs a positive share of the budget, at least 1 vote "
                "per person, and at least one step"
            )

    def steps(self, level: int, first: int) -> int:
        """How many questions are asked, from level `first` down."""
        return 1 + ceil((level - first) / self.down)

    def rounds(self, method: CellStatistics, rest: Fraction, prices: Prices) -> Rounds[Leaves]:
        """One query or more about cells of the method, of which those are kept that the share `rest` suffices for."""
        tree: Tree = RowsWithValues(method.tree, method.slots)
        rule = AtMostCells(self.most)
        level, cells = (method.level, method.listed) if method.only else first_level(method.tree, method.level)
        share = self.share / self.steps(method.level, level)
        while level < method.level:
            query = Query(Counts(Leaves(tree, cells), rule), share)
            answer = yield query
            loud = _loudest_first(answer)
            loud = loud if len(loud) else np.argsort(-answer.sums, kind="stable")[:1]  # nobody, by all that can be said
            steps = min(self.down, method.level - level)
            cells = cells[loud[: MOST_ASKED // _fan_out(method.tree, cells, steps)]]
            for _ in range(steps):
                cells = method.tree.children(cells)
            level += steps
        cells = np.sort(cells)
        inside = method.listed if method.only else touched(method.tree, cells)
        cells = inside if len(inside) else cells
        asked = Leaves(tree, cells)
        finest = method.level == method.tree.depth
        encoder = CellPresence(asked, rule) if finest else Counts(asked, rule)
        answer = yield Query(encoder, share)
        return Leaves(method.tree, np.sort(cells[self._kept(method, answer, rest, prices)]))

    def _kept(self, method: CellStatistics, answer: Answer, rest: Fraction, prices: Prices) -> NDArray[np.int64]:
        """Positions of the cells to keep, the fullest first."""
        loud = _loudest_first(answer)
        if not len(loud):
            return np.argsort(-answer.sums, kind="stable")[:1]
        votes = answer.sums[loud].astype(np.float64)
        slots = len(method.slots.names)
        needed = _threshold(method, len(loud), rest, prices, answer.kurtosis)
        within = np.cumsum(votes) / max(float(votes.sum()), float(answer.sums.sum()))
        places = method.bounding.cells * min(slots, BUSIEST) / (slots * self.most)
        loud = loud[: MOST_PLACES // (slots * method.value_encoding.size)]
        votes, within = votes[: len(loud)], within[: len(loud)]
        enough = np.flatnonzero(votes * places / np.minimum(within, 1.0) >= needed)
        return loud[: enough[-1] + 1] if len(enough) else loud


def first_level(tree: Tree, level: int) -> tuple[int, Cells]:
    """The finest level down to `level` that has no more cells than are asked at once, and its cells."""
    cells = tree.root
    for number in range(level):
        finer = cells if len(cells) > MOST_ASKED else tree.children(cells)
        if len(finer) > MOST_ASKED or len(cells) > MOST_ASKED:
            return number, cells
        cells = finer
    return level, cells


def _fan_out(tree: Tree, cells: Cells, levels: int) -> int:
    """How many cells, this many levels down, make up a cell."""
    some = cells[:1]
    for _ in range(levels):
        some = tree.children(some)
    return max(len(some), 1)


def _loudest_first(answer: Answer) -> NDArray[np.int64]:
    """The cells that stand out, the fullest first; few empty ones are among them, in expectation."""
    chance, stddev = min(EMPTY, MOST_EMPTY / len(answer.sums)), float(answer.stddev.max())
    laplace = answer.kurtosis > 1
    above = stddev * (-log(2 * chance) / sqrt(2) if laplace else NormalDist().inv_cdf(1 - chance))
    order = np.argsort(-answer.sums, kind="stable")
    return order[: int((answer.sums > above).sum())]


def _threshold(method: CellStatistics, cells: int, rest: Fraction, prices: Prices, kurtosis: float) -> float:
    """How many people a place would need to be published, if this many cells were asked with the share `rest`."""
    one = CellTimeSlots(
        Leaves(method.tree, method.tree.root[:1]), method.slots, method.value_encoding
    )  # noise is the same in any
    stddev = prices.stddev(Values(one, method.bounding), rest) / method.value_encoding.scale
    counters = np.zeros((one.places, method.value_encoding.size))
    return Measurements(one, counters, stddev, kurtosis).threshold_of(cells * one.places)
