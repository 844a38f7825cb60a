"""The simplest mechanism for a distribution, to be beaten by trees: every part is asked for by itself.

Rameshwar et al. 2024: the number of people up to each of K bins, each with the noise of a K-th of the budget, for one
person more moves all of them.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hazemap.estimate.quantile_intervals import monotone
from hazemap.machine_code.arrays import Floats
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers import discrete_laplace


def interval_queries(values: Floats, edges: Floats, epsilon: Fraction, stream: Stream) -> Floats:
    """The parts up to each bin, never falling and in [0, 1], of one value a person; float64[bins].

    >>> parts = interval_queries(np.array([1.0, 4, 9]), np.array([0.0, 5, 10]), Fraction(100), Stream.fixed(b"doctest"))
    >>> parts.round(2)
    array([0.67, 1.  ])
    """
    counts = np.cumsum(np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0])
    noisy = counts + discrete_laplace(stream, Fraction(len(counts)) / epsilon, len(counts))
    return monotone(noisy / max(int(noisy[-1]), 1))


@dataclass(frozen=True)
class PartsUpTo:
    """Interval queries over so many bins of equal width between two bounds."""

    low: float
    high: float
    bins: int

    @property
    def edges(self) -> Floats:
        """The ends of the bins, float64[bins + 1]."""
        return np.linspace(self.low, self.high, self.bins + 1)

    def parts(self, values: Floats, epsilon: Fraction) -> Floats:
        """A fresh draw of the parts up to each bin, of one value a person."""
        return interval_queries(values, self.edges, epsilon, Stream.from_os())


@dataclass(frozen=True)
class IntervalQueries:
    """The mechanism by name, for comparisons."""

    name: str = "interval queries"
    at: float | None = None

    @property
    def spelled(self) -> str:
        """Its name."""
        return self.name

    @property
    def settings(self) -> dict[str, Any]:
        """It has none."""
        return {}
