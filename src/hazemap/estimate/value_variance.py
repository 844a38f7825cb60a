"""The variance of a value from a few noisy counters: arrays in, arrays out.

From (1 − y)², 2y(1 − y) and y² summed over people it is V(t) = (t₀ t₂ − t₁²/4)/N², where t are the three true sums and
N what they add up to (`variances`); from y and y(1 − y), where N is known, s − s² − b with s and b their means
(`variances_known`). Neither is a ratio of sums, so Fieller's sets are not to be had. An interval is the profile set
(Venzon and Moolgavkar 1988): all V(t) of sums t that noise could lead from to what was counted, |t − b| at most `reach`
standard deviations in the direction in which V changes. Its ends are found as they are, not by the slope at what was
counted, so it holds near 0 and near 1/4 too, where V is as curved as it is steep.

Sums over people are such that V is not negative. Where noise led out of them, the ends are those around what was
counted or around possible sums near it, whichever are further out: to say that V is 0 for certain is never right.
"""

from collections.abc import Callable

import numpy as np

from hazemap.estimate.confidence_margins import reach
from hazemap.estimate.mean_intervals import Interval
from hazemap.machine_code.arrays import Floats

Noise = tuple[float | Floats, float]
"""The standard deviation of a counter, one for all or of each place, and its excess kurtosis."""

Function = Callable[[Floats], Floats]

STEPS = 12
"""Each step goes from what was counted in the direction in which V changes at the last one; 12 find an end to 1 %."""


def variances(counters: Floats, noise: Noise, confidence: float | Floats) -> Interval:
    """E y² − (E y)² of each place, within 0 … 1/4, of float64[places, 3] counters: O(places · STEPS).

    The confidence is one for all, or float64[places]. `value` is less the bias that the noise of the mean gives to its
    square. Where noise could explain that nobody is there, the interval is all of 0 … 1/4.
    """
    stddev, kurtosis = noise
    people = counters.sum(axis=1)
    some = people > 0
    number = np.where(some, people, 1)
    nodes = np.array([0, 0.5, 1])
    mean = counters @ nodes / number
    off = nodes - np.clip(mean, 0, 1)[:, None]
    value = counters[:, 2] / number - mean**2 + stddev**2 * (off**2).sum(axis=1) / number**2
    slope = _slope(_possible(counters, some))
    found = stddev * np.sqrt((slope**2).sum(axis=1))
    sure = np.broadcast_to(confidence, people.shape)
    unknown = ~some | (people**2 <= _reach(sure, kurtosis / 3) ** 2 * 3 * stddev**2)
    low, high = np.zeros(len(people)), np.full(len(people), 0.25)
    known = np.flatnonzero(~unknown)
    around = counters[known], _possible(counters[known], some[known])
    low[known], high[known] = _ends(around, _variance, _slope, noise, sure[known])
    return Interval(np.where(some, np.clip(value, 0, 0.25), np.nan), np.where(some, found, np.inf), low, high)


def variances_known(sums: Floats, bent: Floats, people: Floats, noise: Noise, confidence: float) -> Interval:
    """The same from `sums` Σ y and `bent` Σ y(1 − y), float64[places] each, of a known number of people.

    Less the bias σ²/N² that the noise of the mean gives to its square. O(places · STEPS).
    """
    stddev, kurtosis = noise
    counted = np.column_stack([sums, bent]) / people[:, None]
    mean = np.clip(counted[:, 0], 0, 1)
    value = counted[:, 0] * (1 - counted[:, 0]) - counted[:, 1] + (stddev / people) ** 2
    found = stddev / people * np.hypot(1 - 2 * mean, 1)
    around = counted, np.column_stack([mean, np.clip(counted[:, 1], 0, mean * (1 - mean))])
    sure = np.full(len(people), confidence)
    low, high = _ends(around, _variance_known, _slope_known, (stddev / people, kurtosis), sure)
    return Interval(np.clip(value, 0, 0.25), found, low, high)


def _ends(
    around: tuple[Floats, Floats], value: Function, slope: Function, noise: Noise, confidence: Floats
) -> tuple[Floats, Floats]:
    """The least and the greatest V within reach of what was counted or of the possible sums near it."""
    low, high = (np.stack([_end(sums, value, slope, noise, confidence, side) for sums in around]) for side in (-1, 1))
    return np.clip(low.min(axis=0), 0, 0.25), np.clip(high.max(axis=0), 0, 0.25)


def _reach(confidence: Floats, kurtosis: Floats | float) -> Floats:
    """`reach` of each place at a confidence of its own."""
    shape = np.broadcast_to(kurtosis, confidence.shape)
    found = np.empty(len(confidence))
    for each in np.unique(confidence):
        same = confidence == each
        found[same] = reach(float(each), shape[same])
    return found


def _end(sums: Floats, value: Function, slope: Function, noise: Noise, confidence: Floats, side: int) -> Floats:
    """The least (−1) or greatest (1) V within reach of some sums."""
    stddev, kurtosis = noise
    at, best = sums, value(sums)
    for _ in range(STEPS):
        there = slope(at)
        energy = (there**2).sum(axis=1)
        energy = np.where(energy > 0, energy, 1)
        far = stddev * _reach(confidence, kurtosis * (there**4).sum(axis=1) / energy**2)
        at = sums + side * (far / np.sqrt(energy))[:, None] * there
        found = value(at)
        best = np.where(side * (found - best) > 0, found, best)
    return best


def _variance_known(means: Floats) -> Floats:
    """V = s − s² − b of the means of y and of y(1 − y); float64[places]."""
    found: Floats = means[:, 0] * (1 - means[:, 0]) - means[:, 1]
    return found


def _slope_known(means: Floats) -> Floats:
    """Its derivative to each mean, float64[places, 2]."""
    return np.column_stack([1 - 2 * means[:, 0], np.full(len(means), -1.0)])


def _variance(sums: Floats) -> Floats:
    """V of sums of a positive number of people; float64[places]."""
    found: Floats = (sums[:, 0] * sums[:, 2] - sums[:, 1] ** 2 / 4) / sums.sum(axis=1) ** 2
    return found


def _slope(sums: Floats) -> Floats:
    """The derivative of V to each sum, float64[places, 3]."""
    number = sums.sum(axis=1)[:, None]
    turned = np.column_stack([sums[:, 2], -sums[:, 1] / 2, sums[:, 0]])
    slope: Floats = turned / number**2 - 2 * _variance(sums)[:, None] / number
    return slope


def _possible(counters: Floats, some: Floats) -> Floats:
    """Sums in the cone near what was counted: [[t₀, t₁/2], [t₁/2, t₂]] without its negative eigenvalues."""
    least = np.where(some[:, None], counters, np.array([1.0, 0, 0]))
    middle, half = (least[:, 0] + least[:, 2]) / 2, (least[:, 0] - least[:, 2]) / 2
    radius = np.hypot(half, least[:, 1] / 2)
    upper, lower = np.maximum(middle + radius, 0), np.maximum(middle - radius, 0)
    # The matrix is its mean eigenvalue and, times half their difference, a reflection.
    turn = np.where(radius > 0, (upper - lower) / 2 / np.where(radius > 0, radius, 1), 0)
    even = (upper + lower) / 2
    return np.column_stack([even + turn * half, turn * least[:, 1], even - turn * half])
