"""Answers to questions about a release, with their error bars."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from hazemap.cellmap import CellMap, Spread
from hazemap.errors import InputError
from hazemap.releases.ground import Floats


@dataclass(frozen=True)
class Estimate:
    """A number that noise was added to, and how far it may be from the truth.

    `value` is the unbiased least-squares estimate, `stddev` its standard error, and `low` … `high` an interval
    that holds the true number with probability `confidence`. They speak of the noise alone: how the `cut`
    people in cells that the border of a region cuts lie inside those cells is not known, and they were taken
    to be spread evenly. `best` is what the picture shows; it may be shrunk or clamped, so it has no interval.

    >>> print(Estimate(12345.2, 66.8, 12214.3, 12476.1, 0.95, 12340.0, 310.0, "people"))
    12,345 ± 67 people (95 % interval 12,214 … 12,476)
    """

    value: float
    stddev: float
    low: float
    high: float
    confidence: float
    best: float
    cut: float
    counted: str

    def __str__(self) -> str:
        digits = decimals(self.stddev)
        value, low, high = (f"{number:,.{digits}f}" for number in (self.value, self.low, self.high))
        return (
            f"{value} ± {self.stddev:,.{digits}f} {self.counted}"
            f" ({100 * self.confidence:.6g} % interval {low} … {high})"
        )


def decimals(stddev: float) -> int:
    """How many decimals a number deserves: two digits of its standard error.

    >>> decimals(66.8), decimals(3.21), decimals(0.0123)
    (0, 1, 3)
    """
    return max(0, 1 - math.floor(math.log10(stddev))) if 0 < stddev < math.inf else 0


def reach(confidence: float, kurtosis: float) -> float:
    """Standard errors that hold the truth with this probability, for noise of this excess kurtosis.

    The Cornish–Fisher quantile of a symmetric law, q = z + κ (z³ − 3z)/24 with z that of the Gaussian;
    never more than Chebyshev's 1/√(1 − confidence), which holds for every law.

    >>> round(reach(0.95, 0), 3), round(reach(0.95, 3), 3)
    (1.96, 2.166)
    """
    if not 0 < confidence < 1:
        raise InputError(f"a confidence lies between 0 and 1, such as 0.95; found {confidence:g}")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    return min(max(z + kurtosis * (z**3 - 3 * z) / 24, 0.0), 1 / math.sqrt(1 - confidence))


def estimate(cellmap: CellMap, weights: Floats, counted: str, confidence: float, cut: float = 0.0) -> Estimate:
    """What the map says of Σ weights · cells; weights is float64[cells]."""
    spread: Spread = cellmap.noise.of(weights)
    value = float(weights @ cellmap.unbiased)
    margin = reach(confidence, spread.kurtosis) * spread.stddev
    best = float(weights @ cellmap.values)
    return Estimate(value, spread.stddev, value - margin, value + margin, confidence, best, cut, counted)


def cut_by(cellmap: CellMap, shares: Floats) -> float:
    """How many lie in cells that are neither inside nor outside, by the best guess."""
    return max(float(cellmap.values[(shares > 0) & (shares < 1)].sum()), 0.0) + 0.0


def bounds(unbiased: Floats, stddev: Floats, kurtosis: float, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """The interval of each cell on its own; float64[cells] twice."""
    margin = reach(confidence, kurtosis) * stddev
    return np.subtract(unbiased, margin), np.add(unbiased, margin)
