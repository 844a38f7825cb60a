"""The number that leads in every view, and the interval that it lies in: tables, tooltips, pictures, answers, exports.

Two numbers are known of a place. The unbiased one has an interval, of the noise alone. The best guess is the one to
show: it is never below 0, and knows what is around. It may lie outside of that interval, in up to one cell of twenty.
To move it would put people into cells that are most likely empty, so the interval is made longer instead: it reaches to
the best guess, and holds the truth at least as often as before. Nobody counts fewer than 0, so an interval holds
numbers below 0 only down to a best guess that is there itself, and 0 with them.
"""

from typing import NamedTuple

import numpy as np

from hazemap.estimate.confidence_margins import reach
from hazemap.machine_code.arrays import Floats


class Ends(NamedTuple):
    """The ends of an interval, or of many."""

    low: Floats
    high: Floats


def leading(best_guess: Floats | float, low: Floats | float, high: Floats | float) -> Ends:
    """The interval of the leading number, from that of the unbiased one.

    >>> low, high = leading(np.array([1.0, 5.0, -9.0]), np.array([3.0, -4.0, -13.0]), np.array([16.0, 7.0, -5.0]))
    >>> low.tolist(), high.tolist()
    ([1.0, 0.0, -9.0], [16.0, 7.0, 0.0])
    """
    return Ends(np.minimum(np.maximum(low, 0.0), best_guess), np.maximum(np.maximum(high, 0.0), best_guess))


def intervals(
    best_guess: Floats,
    unbiased: Floats,
    stddev: Floats,
    kurtosis: float,
    confidence: float = 0.95,
    asymmetry: float = 0.0,
) -> Ends:
    """The interval of each cell on its own, of the leading number."""
    margin = margins(stddev, kurtosis, confidence, asymmetry)
    return leading(best_guess, unbiased - margin, unbiased + margin)


def margins(stddev: Floats, kurtosis: float, confidence: float = 0.95, asymmetry: float = 0.0) -> Floats:
    """How far noise reaches to either side of each unbiased number: a whole number of people.

    `kurtosis` is the largest of any cell, and so is `asymmetry`, what skewed noise adds to a margin.
    """
    margin: Floats = np.ceil(reach(confidence, kurtosis, at_most=True) * stddev + asymmetry)
    return margin
