"""Settings in which a mean of one cell is released again and again, and its mean absolute error is the score."""

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from hazemap.lab.compare.trial_settings import Row
from hazemap.privacy.budget import PureDP
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.tables.sample_grouping import SampleCounts
from hazemap.trust.curator import Curator
from research.compare.user_level.mean_mechanisms import Mechanism
from research.compare.user_level.one_cell import OneCell


@dataclass(frozen=True)
class Draws:
    """So many releases of one cell with fresh noise; a trial of one would be over before it is written down."""

    places: ClassVar[tuple[type, ...]] = (OneCell,)
    methods: ClassVar[tuple[type, ...]] = (Mechanism,)

    draws: int = 30

    def cell(self, place: OneCell, repetition: int) -> OneCell:  # noqa: ARG002 - others draw people
        """The people and their values."""
        return place

    def numbers(self, place: OneCell) -> SampleCounts:
        """How many samples each of them has."""
        return place.table.contributions

    def algorithm(self, place: OneCell, method: Mechanism, epsilon: str) -> Any:
        """The method for these numbers of samples."""
        return method.algorithm(place.quantizer, self.numbers(place), epsilon)

    def measured(self, place: OneCell, method: Mechanism, epsilon: str, repetition: int) -> Row:
        """The mean absolute error, in units of the value and as a part of its range, and how far errors are spread;
        the standard deviation of the noise, where the answer says it.
        """
        cell = self.cell(place, repetition)
        algorithm, trust, budget = self.algorithm(place, method, epsilon), Curator(cell.table), PureDP(epsilon)
        begin = time.process_time()
        found = [run(algorithm, trust, budget, Unrecorded()).value for _ in range(self.draws)]
        seconds = (time.process_time() - begin) / self.draws
        errors = np.array([abs(mean.value - cell.mean) for mean in found])
        return {
            "draws": self.draws,
            "mae": float(errors.mean()),
            "mae_part": float(errors.mean() / (place.quantizer.high - place.quantizer.low)),
            "mae_variance": float(errors.var(ddof=1)) if self.draws > 1 else float("nan"),
            "noise": float(np.mean([mean.stddev for mean in found])),
            "seconds": seconds,
        }


@dataclass(frozen=True)
class Scaled(Draws):
    """The same of a cell with λ times as many samples of each person, or λ times as many people, all independent.

    The values depend on λ and the repetition alone, so that all methods have the same.
    """

    samples: int = 1
    people: int = 1

    def cell(self, place: OneCell, repetition: int) -> OneCell:
        """The people of a repetition, who are kept for the next trial."""
        return _scaled(place, self.samples, self.people, repetition)

    def numbers(self, place: OneCell) -> SampleCounts:
        """λ m_ℓ, or each m_ℓ λ times."""
        return place.numbers(self.samples, self.people)


@lru_cache(maxsize=1)
def _scaled(place: OneCell, samples: int, people: int, repetition: int) -> OneCell:
    return place.scaled(samples, people, f"{samples} {people} {repetition}".encode())
