"""The estimators of user-level means in every place that is told (Rameshwar et al. 2024), as conversations.

Privacy model of all of them: VALUES ONLY (`hazemap.privacy.statement_facts`). `user_level_means` has the same for a
single cell.

Which places are told, and how, follows from whereabouts and the budget alone. Rameshwar et al. 2024 and Rameshwar and
Tandon 2024: everybody counts in all of their places that are told; if nobody is in more than K of them, a place is
told with a K-th of the budget. CHOP-USER lowers K.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar

import numpy as np

from hazemap.algorithms.published.chop_user import CellVisits, ChopUserQuery, chop_user
from hazemap.algorithms.published.user_level_means import BalancedMean, median_length, most_arrays, worst_case_length
from hazemap.encoders.sample_statistics import (
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
from hazemap.machine_code.arrays import Bools, Floats, Ints
from hazemap.queries.algorithm_disclosure import Disclosure, Learned
from hazemap.queries.noisy_queries import Answer, Choice, Measure, Prices, Question, Rounds
from hazemap.tables.sample_grouping import PublicLocations, SampleCounts, SampledPlaces
from hazemap.values.quantizer import Quantizer

PLAIN, ARRAYS, LEVY, QUANTILE, BALANCED = "plain", "array-averaging", "levy", "quantile", "balanced"
ESTIMATORS = (PLAIN, ARRAYS, LEVY, QUANTILE, BALANCED)
"""The estimators of a place's mean, by their names."""

GROUPED = frozenset({ARRAYS, LEVY, QUANTILE})
"""Those that average the means of arrays."""

LENGTHS = ("median", "k-root-m", "worst-case")
"""The rules for the length m of arrays, or how many samples a person counts for at most; a number is m itself."""

MOST_SAMPLES = 1 << 16
"""Nobody counts for more samples of a place: sums must fit 64 bits. What that leaves out is in the bias."""

TOO_WIDE = 0.5
"""A place is told if noise reaches no farther than this part of the bounds, both ways together: which is public."""


@dataclass(frozen=True)
class PlaceNoise:
    """What noise does: `unit` is the standard deviation of the noise of a number that one person moves by 1 in a place
    (`rooted`: it grows with the root of K, as Gaussian noise does; else with K), and `reach` how many of them 95 % are.

    >>> PlaceNoise(1.4, rooted=False, reach=2.0).stddev(3), PlaceNoise(1.4, rooted=True, reach=2.0).stddev(4)
    (4.199999999999999, 2.8)
    """

    unit: float
    rooted: bool
    reach: float

    def stddev(self, together: int) -> float:
        """Where somebody is in this many places."""
        return self.unit * (sqrt(together) if self.rooted else together)

    def epsilon(self, together: int) -> float:
        """The ε whose Laplace noise has this standard deviation."""
        return sqrt(2) / self.stddev(together)


@dataclass(frozen=True)
class PlaceRules:
    """How places are chosen. `length` is one of `LENGTHS`, a number, or empty for the estimator's own rule."""

    estimator: str
    length: str = ""
    chopped: bool = False
    most_places: int | None = None
    variance: bool = False
    by_people: bool = False

    def __post_init__(self) -> None:
        if self.estimator not in ESTIMATORS:
            raise InputError(f"an estimator of a mean is one of: {', '.join(ESTIMATORS)}; found {self.estimator!r}")
        if self.length not in ("", *LENGTHS) and not (
            self.length.isascii() and self.length.isdecimal() and len(self.length) <= 9 and int(self.length) >= 1
        ):
            raise InputError(
                f"the length of arrays is {', '.join(LENGTHS)} or a number from 1 on, not {self.length!r:.40}"
            )
        if self.most_places is not None and self.most_places < 1:
            raise InputError("a person must count in at least 1 place")

    def length_of(self, samples: SampleCounts, epsilon: float) -> int:
        """The m of a place, from numbers of samples and what it may spend: both are public."""
        return min(self._rule(samples, epsilon), samples.most, MOST_SAMPLES)

    def _rule(self, samples: SampleCounts, epsilon: float) -> int:
        if self.length.isdecimal():
            return int(self.length)
        if self.length:
            rules: dict[str, Callable[[], int]] = {
                "median": lambda: median_length(samples),
                "k-root-m": lambda: most_arrays(samples),
                "worst-case": lambda: worst_case_length(samples, epsilon),
            }
            return rules[self.length]()
        if self.estimator == BALANCED:
            return BalancedMean(Quantizer(0, 1), samples).length(epsilon)
        usual = {ARRAYS: median_length, LEVY: most_arrays, QUANTILE: most_arrays}.get(self.estimator)
        return samples.most if usual is None else usual(samples)

    @property
    def widths(self) -> float:
        """How many times as much noise as one sum a mean may have: half of the budget may go to choices."""
        return 2.0 if self.estimator in (LEVY, QUANTILE) else 1.0


@dataclass(frozen=True, eq=False)
class PlaceSelection:
    """Which pairs count, bool[pairs]; for how many samples at most in each place (0: it is not told), int64[places];
    and in how many places anybody counts.
    """

    counting: Bools
    length: Ints
    together: int


def selected_places(where: PublicLocations, rules: PlaceRules, noise: PlaceNoise) -> PlaceSelection:
    """The places that can be told; `InputError` if none can.

    All places at first; as long as the noise of some is too wide, the worse half of those is given up. So nobody pays
    for what could not be told. O(pairs) and a look at every place, for each try.
    """
    samples = np.ones(len(where.records), dtype=np.int64) if rules.by_people else where.records
    order = np.argsort(where.place, kind="stable")
    firsts = np.searchsorted(where.place[order], np.arange(where.number + 1))
    active = where.people > 0
    while active.any():
        counting = _counting(where, samples, rules, noise, active)
        together = int(np.bincount(where.person[counting]).max())
        length, kept = _lengths(samples, counting, order, firsts, active, rules, noise.epsilon(together))
        wide = np.zeros(where.number)
        parts = noise.stddev(together) * rules.widths * (sqrt(2) if noise.rooted else 2) ** rules.variance
        told = np.flatnonzero(length)
        wide[told] = 2 * noise.reach * parts * length[told] / kept[told]
        few = np.flatnonzero(active & ((length == 0) | (wide > TOO_WIDE)))
        if not few.size:
            return PlaceSelection(counting, length, together)
        worst = few[np.argsort(-np.where(length[few] == 0, np.inf, wide[few]), kind="stable")]
        active[worst[: (len(worst) + 1) // 2]] = False
    raise InputError(
        "no place can be told: in each, noise would reach over half of the bounds or more; ask for a smaller --length, "
        "coarser cells, fewer slots, CHOP-USER (--chop-user), fewer places for a person (--max-cells-per-person) or a "
        "larger budget (nothing was paid)"
    )


def _counting(where: PublicLocations, samples: Ints, rules: PlaceRules, noise: PlaceNoise, active: Bools) -> Bools:
    """Which pairs count, of those in active places."""
    counting: Bools = active[where.place]
    if rules.most_places is not None:
        before = np.concatenate([[0], np.cumsum(counting)])
        rank = before[1:] - np.repeat(before[where.firsts[:-1]], where.counts)
        counting = counting & (rank <= rules.most_places)
    if rules.chopped:
        some = np.flatnonzero(counting)
        person, place = where.person[some].astype(np.int64), where.place[some].astype(np.int64)
        together = int(np.bincount(person).max())
        asked = ChopUserQuery(1.0, rules.variance)
        chopped = chop_user(CellVisits(person, place, samples[some]), asked, noise.epsilon(together))
        order = np.lexsort((place, person))  # as `CellVisits` puts pairs
        counting = np.zeros(len(where.place), dtype=np.bool_)
        counting[some[order[chopped.kept]]] = True
    return counting


def _lengths(
    samples: Ints, counting: Bools, order: Ints, firsts: Ints, active: Bools, rules: PlaceRules, epsilon: float
) -> tuple[Ints, Floats]:
    """The m of each place, and Σ min(m_ℓ, m) of those who count; 0 where nobody does."""
    length, kept = np.zeros(len(active), dtype=np.int64), np.zeros(len(active))
    for place in np.flatnonzero(active).tolist():
        pairs = order[firsts[place] : firsts[place + 1]]
        own = samples[pairs[counting[pairs]]]
        if len(own):
            length[place] = rules.length_of(SampleCounts(own), epsilon)
            kept[place] = np.minimum(own, length[place]).sum()
    return length, kept


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
