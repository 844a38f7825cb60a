"""The estimators of user-level means in every place that is told (Rameshwar et al. 2024), as conversations.

Privacy model of all of them: VALUES ONLY (`hazemap.privacy.statement_facts`). `user_level_means` has the same for a
single cell.
"""

from collections.abc import Generator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from hazemap.algorithms.published.place_selection import ARRAYS, BALANCED, ESTIMATORS, GROUPED, LEVY, PLAIN, QUANTILE
from hazemap.encoders.place_statistics import (
    GRID,
    PlaceArrayMeans,
    PlaceBalances,
    PlaceBins,
    PlaceMeans,
    PlaceQuantiles,
    PlaceVariances,
)
from hazemap.errors import InputError
from hazemap.estimate.published_values import PublishedValues
from hazemap.field_types import check_fields
from hazemap.machine_code.arrays import Ints
from hazemap.queries.algorithm_disclosure import Disclosure, Learned
from hazemap.queries.noisy_queries import Answer, Choice, Measure, Prices, Question, Rounds
from hazemap.tables.sampled_places import SampledPlaces

HALF = Fraction(1, 2)
RANK = Fraction(1, 10)
"""Means of arrays are clipped to this private quantile and to the one as far from the upper end (Smith 2011)."""

FAILURE = 0.2
"""Levy et al. 2021: independent samples have all means of arrays within three bins, but with this probability."""

REACH = Fraction(1, 16)
"""Of the bounds: where people balance, nobody farther away pulls harder (`user_level_means.BalancedMean`)."""


@dataclass(frozen=True)
class PublishedStatistics:
    """The mean of the samples of each place that is told, by one `estimator`; with the `variance`, each has half of the
    budget. `route` says in words how places were chosen, from what is public.

    The whole budget answers for everybody: whoever counts in K places moves K numbers of each question, which is in the
    questions' sensitivity (`SampledPlaces.together`).
    """

    places: SampledPlaces
    estimator: str
    variance: bool
    route: str
    disclosure: ClassVar[Disclosure] = Disclosure((Learned.ONLY_VALUES,))

    def __post_init__(self) -> None:
        check_fields(self)
        if self.estimator not in ESTIMATORS or self.places.grouped is not (self.estimator in GROUPED):
            raise InputError(f"an estimator is one of {', '.join(ESTIMATORS)}, of arrays where it needs them")

    def rounds(self, prices: Prices) -> Rounds[PublishedValues]:  # noqa: ARG002 - shares are fixed
        """Perhaps choices, then sums; and the variances."""
        exchanges = list[tuple[Question, Answer]]()
        share = HALF if self.variance else Fraction(1)
        if self.estimator == PLAIN:
            yield from _asked(Measure(PlaceMeans(self.places), share), exchanges)
        elif self.estimator == BALANCED:
            yield from _asked(Choice(PlaceBalances(self.places, int(REACH * GRID)), share), exchanges)
        else:
            low, high = yield from self._ends(share / 2, exchanges)
            rest = share if self.estimator == ARRAYS else share / 2
            yield from _asked(Measure(PlaceArrayMeans(self.places, low, high), rest), exchanges)
        if self.variance:
            yield from _asked(Measure(PlaceVariances(self.places), HALF), exchanges)
        return PublishedValues.of(exchanges)

    def _ends(
        self, share: Fraction, exchanges: list[tuple[Question, Answer]]
    ) -> Generator[Question, Answer, tuple[Ints, Ints]]:
        """Between which steps means of arrays are clipped, at least one apart."""
        number = len(self.places.told)
        if self.estimator == QUANTILE:
            answer = yield from _asked(Choice(PlaceQuantiles(self.places, RANK), share), exchanges)
            pairs = np.sort(answer.sums.reshape(number, 2), axis=1)
            low = np.clip(pairs[:, 0], 0, GRID - 1)
            return low, np.clip(pairs[:, 1], low + 1, GRID)
        if self.estimator == LEVY:
            width = self.widths
            answer = yield from _asked(Choice(PlaceBins(self.places, width), share), exchanges)
            low = np.clip((answer.sums - 1) * width, 0, GRID - 1)
            return low, np.clip((answer.sums + 2) * width, low + 1, GRID)
        return np.zeros(number, dtype=np.int64), np.full(number, GRID, dtype=np.int64)

    @property
    def widths(self) -> Ints:
        """τ = (U/2) √((2/m) ln(2K̄/δ)) of each place, in steps, rounded up."""
        told = self.places.told
        arrays, length = self.places.arrays[told], self.places.length[told]
        part = np.sqrt(2 / length * np.log(2 * arrays / FAILURE)) / 2
        return np.clip(np.ceil(part * GRID), 1, GRID).astype(np.int64)


def _asked(question: Question, exchanges: list[tuple[Question, Answer]]) -> Generator[Question, Answer, Answer]:
    """Ask, and remember what was answered."""
    answer = yield question
    exchanges.append((question, answer))
    return answer
