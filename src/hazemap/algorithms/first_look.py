"""Whether a run is worth the rest of its budget: decided from the noisy answers of its first rounds, and nothing else.

A release looks before it spends (docs/decisions/0023): the first rounds of its method, as far as they take no more
than `LOOK` of the budget, are paid by themselves. Whatever follows from their answers is free: to stop, too. A stop
tells nothing that these answers do not.

**How sure.** A run of a table with nobody on its map stops with probability 1 − `CHANCE` at least: each of the q
answers is tried twice, its total and its fullest cell, and noise alone passes each trial with probability CHANCE/2q at
most (a total by the law of its noise, see `estimate.confidence_margins.reach`; a cell by the tail of the law, times the
number of cells). Conversely a run stops although people are there only if no trial sees them, and if the look bounds
their number by `WORTH` standard errors of a count that has the whole budget: a look that sees less decides nothing.
With N people where a trial needs t, its noise is below t − N, so for N = 2t the probability is CHANCE/2q at most, the
law being symmetric. A box is not found with errors of its own: noise lifts any tile above the threshold of `LocateBox`
in 1 run of 100, and a tile with twice as many people as that stays below it in fewer than 1 of 10,000.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, log, sqrt
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from hazemap.algorithms.private_bounding_box import LocateBox, PrivateBoundingBox
from hazemap.algorithms.two_stage_statistics import PrivateBoxStatistics
from hazemap.cells import NOWHERE, Leaves
from hazemap.encoders import CellPresence, Counts, Values
from hazemap.estimate.confidence_margins import reach
from hazemap.estimate.value_estimates import Measurements
from hazemap.machine_code.arrays import Floats
from hazemap.queries.noisy_queries import Answer, Prices, Query, Question
from hazemap.values.cell_slot_counters import CellTimeSlots
from hazemap.values.cells_in_slots import AllSlots

LOOK = Fraction(1, 10)
"""The part of a budget that a look may spend: of ε under pure ε, and of ρ otherwise."""

CHANCE = 0.05
"""In so many runs at most nobody is taken for somebody."""

WORTH = 330
"""So many standard errors of a count that has the whole budget: 467 people at ε = 1. Fewer make some 16 cells."""

_MEANT = (
    "look whether the box is the right one, and whether rows are read as they are meant (degrees, not swapped, in the "
    "right columns, with the decimal sign of --decimal; times in ISO 8601, or with --time-format; as many fields in "
    "a line of CSV as its header has)"
)

FEW_PLACES = 0.02
"""Statistics that could be told of in no more than so many of their cells and slots are taken for nothing."""

Why = Literal["box", "outside", "nobody", "few"]


@dataclass(frozen=True)
class Stop:
    """Why a run does not go on: what was `found`, from noisy answers alone, and what to do (`advice`)."""

    why: Why
    found: str
    advice: str

    def __str__(self) -> str:
        return f"{self.found}: {self.advice}"


def judged(
    algorithm: object,
    transcript: Sequence[tuple[Question, Answer]],
    following: Question | None = None,
    prices: Prices | None = None,
) -> Stop | None:
    """Whether a run stops after these answers; None where it goes on. A pure function of its arguments.

    `following` is what the method asks next, which the rest would pay at these `prices`.
    """
    if isinstance(algorithm, PrivateBoundingBox | PrivateBoxStatistics) and not _box_found(transcript):
        return _no_box(transcript)
    grids = _grids(transcript)
    if grids and prices is not None and isinstance(algorithm, PrivateBoxStatistics) and isinstance(following, Query):
        if not isinstance(following.encoder, Values):
            return None
        return _too_few(grids[-1][1], following.encoder, prices.stddev(following.encoder, following.share))
    return _nobody(list(_counts(transcript, prices)))


def _nobody(asked: Sequence["_Counted"]) -> Stop | None:
    """A stop where no answer shows anybody on the map, and together they say that few are there."""
    if not asked or any(each.shows_somebody(CHANCE / (2 * len(asked))) for each in asked):
        return None
    most = min(each.most(CHANCE) for each in asked)
    if most > WORTH * min(each.least for each in asked):
        return None
    outside = [each.outside for each in asked if each.outside is not None and each.outside_stands_out(CHANCE)]
    found = f"nobody stands out of the noise: by the look, fewer than about {max(most, 10):,.0f} people are on the map"
    if not outside:
        return Stop("nobody", found, f"{_MEANT}; with so few people, ask for a larger budget or coarser cells")
    number, error = outside[-1]
    return Stop(
        "outside",
        f"{found}, and about {number:,.0f} (standard error {error:,.0f}) are outside it",
        _MEANT,
    )


def _grids(transcript: Sequence[tuple[Question, Answer]]) -> list[tuple[Query, Answer]]:
    """The questions that look for a box."""
    tiles = LocateBox().tiles
    return [
        (question, answer)
        for question, answer in transcript
        if isinstance(question, Query) and isinstance(question.encoder, Counts) and _tree(question) == tiles
    ]


def _tree(question: Any) -> Any:
    """The tree of the cells that a question counts."""
    return getattr(question.encoder.cells, "tree", None)


def _box_found(transcript: Sequence[tuple[Question, Answer]]) -> bool:
    """The second grid is asked only inside of what stood out in the first."""
    return len(_grids(transcript)) != 1


def _no_box(transcript: Sequence[tuple[Question, Answer]]) -> Stop:
    [(question, answer)] = _grids(transcript)
    assert isinstance(question.encoder, Counts)  # noqa: S101 - see `_grids`
    needed = answer.stddev.max() / sqrt(2) * log(len(answer.sums) / 0.02) / question.encoder.bounding.unit
    return Stop(
        "box",
        f"no place stands out of the noise, so there is no box: no tile of 156 km shows {needed:,.0f} people or more",
        "declare the box (west,south,east,north), which needs no search, or ask for a larger budget",
    )


def places_told(people: float, values: Values, stddev: float, kurtosis: float) -> tuple[float, float]:
    """In how many cells and slots at most so many people could be told of, and how many a place needs for that.

    Each is in `bounding.cells` places at most, and a place needs `Measurements.threshold`, which is public.
    """
    tree = values.tree
    one = CellTimeSlots(Leaves(tree.cells.tree, tree.cells.tree.root[:1]), tree.slots, tree.value_encoding)
    none = np.zeros((one.places, tree.value_encoding.size))
    needed = Measurements(one, none, stddev / tree.value_encoding.scale, kurtosis).threshold_of(tree.places)
    return (0.0 if people < needed else people * values.bounding.cells / needed), needed


def _too_few(grid: Answer, values: Values, stddev: float) -> Stop | None:
    """A stop where even with the most people that the box may hold hardly any place could be told of."""
    error = float(np.sqrt(np.square(np.broadcast_to(grid.stddev, grid.sums.shape)).sum()))
    law = float(reach(1 - 2 * CHANCE, grid.kurtosis / len(grid.sums)))
    most = max(float(grid.sums.sum()), 0.0) + law * error
    told, needed = places_told(most, values, stddev, grid.kurtosis)
    if told > FEW_PLACES * values.tree.places:
        return None
    return Stop(
        "few",
        f"too few people to say anything: a box was found with fewer than about {most:,.0f} people, a cell needs about "
        f"{needed:,.0f} in a slot, and there are {values.tree.places:,} cells and slots",
        "ask for coarser cells, fewer slots, --select, a lower --max-cells-per-person or a larger budget",
    )


@dataclass(frozen=True)
class _Counted:
    """What one question counted: inside of the map, and outside it where that was asked.

    `least` is the noise of a count that has the whole budget.
    """

    inside: Floats
    noise: Floats
    kurtosis: float
    outside: tuple[float, float] | None
    least: float

    def shows_somebody(self, chance: float) -> bool:
        """Whether the total, or the fullest cell, is more than noise makes of nobody with this probability each."""
        return bool(self._total > self._margin(chance) or (self.inside > self._tail(chance)).any())

    def most(self, chance: float) -> float:
        """How many people there are inside at most, but with this probability."""
        return max(self._total + self._margin(chance), 0.0)

    def outside_stands_out(self, chance: float) -> bool:
        """Whether more people than noise makes of nobody are outside."""
        if self.outside is None:
            return False
        number, error = self.outside
        return number > float(reach(1 - 2 * chance, self.kurtosis)) * error

    @property
    def _total(self) -> float:
        return float(self.inside.sum())

    def _margin(self, chance: float) -> float:
        """Noise of a total, the sum of those of its cells: their kurtosis is divided by their number."""
        law = float(reach(1 - 2 * chance, self.kurtosis / len(self.noise)))
        return max(law * float(np.sqrt(np.square(self.noise).sum())), 0.5)

    def _tail(self, chance: float) -> Floats:
        """So much noise has any cell with this probability at most, all of them together."""
        each = chance / len(self.noise)
        laplace = self.kurtosis > 1
        return np.maximum(self.noise * (-log(each) / sqrt(2) if laplace else NormalDist().inv_cdf(1 - each)), 0.5)


def _counts(transcript: Sequence[tuple[Question, Answer]], prices: Prices | None) -> Iterator[_Counted]:
    """Every question about numbers of people on the map, in people."""
    tiles = LocateBox().tiles
    for question, answer in transcript:
        encoder: Any = question.encoder if isinstance(question, Query) else None
        if not isinstance(encoder, Counts | CellPresence) or _tree(question) == tiles:
            continue
        cells = encoder.cells.cells if isinstance(encoder.cells, AllSlots) else encoder.cells
        outside = cells.cells == NOWHERE if isinstance(cells, Leaves) else np.zeros(len(answer.sums), dtype=bool)
        sums, noise = answer.sums / encoder.bounding.unit, np.broadcast_to(answer.stddev, answer.sums.shape)
        noise = noise / encoder.bounding.unit
        if not outside.all():
            known = (float(sums[outside][0]), float(noise[outside][0])) if outside.any() else None
            least = inf if prices is None else prices.stddev(encoder, Fraction(1)) / encoder.bounding.unit
            yield _Counted(sums[~outside], noise[~outside], answer.kurtosis, known, least)
