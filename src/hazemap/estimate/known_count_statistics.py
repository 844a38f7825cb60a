"""Means and quantiles where the number of people is known exactly: arrays in, arrays out.

The counters are those of `values.value_encoding.KnownCountEncoding`, whose noise has standard deviation σ and
excess kurtosis κ, each independent of the others; `people` may be weights. Nothing is a ratio of two noisy numbers
here, so an interval of a mean is its noise alone, and how wide it is does not depend on the data. Ends are not clipped.
Variances:
`variances`.
"""

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Floats
from hazemap.errors import InputError
from hazemap.estimate.confidence_margins import reach
from hazemap.estimate.ratio_estimates import Interval

Noise = tuple[float, float]


def means(sums: Floats, people: Floats, noise: Noise, confidence: float) -> Interval:
    """Σ y / N of each place, within 0 … 1; float64[places] in."""
    stddev, kurtosis = noise
    value, found = sums / people, stddev / people
    margin = reach(confidence, np.full(1, kurtosis)) * found
    return Interval(np.clip(value, 0, 1), found, value - margin, value + margin)


def quantiles(bins: Floats, rank: float, people: Floats, noise: Noise, confidence: float) -> Interval:
    """Where a part `rank` of the people lies below, in bins 0 … K: float64[places, K] in.

    That bins add up to N is known, so what they are short of it is added to them in equal parts (least squares): the
    number below edge j then has noise of variance σ² j(K − j)/K, none at both ends. The interval is where noise could
    explain that the number passes rank · N; the best guess is where it, made monotone, does; both along lines in bins.
    """
    if not 0 < rank < 1:
        raise InputError(f"a quantile has a rank between 0 and 1, such as 0.5; found {rank:g}")
    stddev, kurtosis = noise
    places, number = bins.shape
    level = bins + ((people - bins.sum(axis=1)) / number)[:, None]
    excess = np.zeros((places, number + 1))
    np.cumsum(level, axis=1, out=excess[:, 1:])
    excess[:, -1] = people
    excess -= (rank * people)[:, None]
    edges = np.arange(number + 1)
    square = edges * (number - edges) / number
    fourth = edges * (1 - edges / number) ** 4 + (number - edges) * (edges / number) ** 4
    shape = kurtosis * fourth / np.where(square > 0, square, 1) ** 2
    margin = reach(confidence, shape) * stddev * np.sqrt(square)
    row = np.arange(places)
    below, above = excess < -margin, excess > margin  # surely before the quantile; surely behind it: so at both ends
    after, first = number + 1 - np.argmax(below[:, ::-1], axis=1), np.argmax(above, axis=1)
    low, high = _passed(excess + margin, row, after), _passed(excess - margin, row, first)
    low, high = np.minimum(low, high), np.maximum(low, high)
    rising = (np.maximum.accumulate(excess, axis=1) + np.minimum.accumulate(excess[:, ::-1], axis=1)[:, ::-1]) / 2
    at = np.clip((rising < 0).sum(axis=1), 1, number)
    value = np.clip(_passed(rising, row, at), low, high)
    slope = np.maximum(rising[row, at] - rising[row, at - 1], people / number)
    found = stddev * np.sqrt(np.maximum(square[at], square[at - 1])) / slope
    return Interval(value, found, low, high)


def _passed(numbers: Floats, row: NDArray[np.int64], at: NDArray[np.int64]) -> Floats:
    """Where a line from the number at edge `at` − 1 to that at `at` passes 0, within the bin."""
    at = np.clip(at, 1, numbers.shape[1] - 1)
    before, behind = numbers[row, at - 1], numbers[row, at]
    rise = np.where(behind > before, behind - before, 1.0)
    passed: Floats = np.clip(-before / rise, 0, 1) + (at - 1)
    return passed
