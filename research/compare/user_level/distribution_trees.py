"""Trees of intervals under a distribution, or every part by itself, and how far they are from the true one."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log
from typing import Any, ClassVar

import numpy as np

from hazemap.algorithms.cumulative_distribution import CumulativeTree, best_branchings
from hazemap.errors import InputError
from hazemap.lab.compare.trial_settings import Named, Row
from hazemap.privacy.budget import PureDP, exact
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.trust.curator import Curator
from hazemap.values.interval_tree import IntervalTree
from research.compare.user_level.interval_queries import IntervalQueries, PartsUpTo
from research.compare.user_level.one_cell import OneCell


@dataclass(frozen=True)
class Branching:
    """The branchings of a tree over so many bins, by name.

    >>> [one.branchings(1000) for one in (CHOSEN, BINARY, SEVENTEEN, FLAT)]
    [(10, 10, 10), (2, 2, 2, 2, 2, 2, 2, 2, 2, 2), (17, 17, 17), (1000,)]
    """

    name: str
    branchings: Callable[[int], tuple[int, ...]]
    at: float | None = None

    @property
    def spelled(self) -> str:
        """Its name."""
        return self.name

    @property
    def settings(self) -> dict[str, Any]:
        """It has none."""
        return {}


def evenly(branching: int, bins: int) -> tuple[int, ...]:
    """As few levels of one branching as reach so many bins."""
    height = max(1, ceil(log(bins, branching) - 1e-9))
    return (branching,) * height


def binary(bins: int) -> tuple[int, ...]:
    """Two everywhere."""
    return evenly(2, bins)


def four(bins: int) -> tuple[int, ...]:
    """Four everywhere."""
    return evenly(4, bins)


def seventeen(bins: int) -> tuple[int, ...]:
    """Seventeen everywhere: the best branching of all for real numbers of bins, very large."""
    return evenly(17, bins)


def flat(bins: int) -> tuple[int, ...]:
    """One level."""
    return (bins,)


CHOSEN = Branching("chosen", best_branchings)
BINARY, FOUR = Branching("binary", binary), Branching("4-ary", four)
SEVENTEEN, FLAT = Branching("17-ary", seventeen), Branching("flat", flat)


@dataclass(frozen=True)
class Bins:
    """A distribution over so many bins is released again and again, with fresh noise."""

    places: ClassVar[tuple[type, ...]] = (OneCell,)
    methods: ClassVar[tuple[type, ...]] = (Branching, IntervalQueries)

    bins: int = 100
    draws: int = 10

    def algorithm(self, place: OneCell, method: Named, epsilon: str) -> Any:  # noqa: ARG002 - none needs ε
        """The tree over the bounds of the value, or all of its parts by themselves."""
        if self.bins < 2:
            raise InputError(f"a distribution is compared over 2 bins or more, not {self.bins}")
        if isinstance(method, IntervalQueries):
            return PartsUpTo(place.quantizer.low, place.quantizer.high, self.bins)
        if not isinstance(method, Branching):
            raise InputError(f"a distribution has no method {method.name}")
        return CumulativeTree(
            IntervalTree(place.quantizer.low, place.quantizer.high, self.bins, method.branchings(self.bins))
        )

    def measured(self, place: OneCell, method: Named, epsilon: str, repetition: int) -> Row:  # noqa: ARG002 - draws differ
        """ℓ₂ error of the parts up to each bin, root mean square over the bins; whether all are in order."""
        algorithm, trust = self.algorithm(place, method, epsilon), Curator(place.table)
        edges = np.linspace(place.quantizer.low, place.quantizer.high, self.bins + 1)
        true = np.cumsum(np.histogram(place.value, edges)[0]) / place.samples
        errors, ordered = [], True
        for _ in range(self.draws):
            if isinstance(algorithm, PartsUpTo):
                parts = algorithm.parts(place.first, exact(epsilon, "ε"))
            else:
                parts = run(algorithm, trust, PureDP(epsilon), Unrecorded()).value.parts
            ordered &= bool((np.diff(parts, prepend=0.0, append=1.0) >= 0).all())
            errors.append(float(np.sqrt(np.mean((parts - true) ** 2))))
        return {"draws": self.draws, "cdf": float(np.mean(errors)), "in_order": int(ordered)}
