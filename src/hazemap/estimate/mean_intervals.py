"""Means from noisy counters: arrays in, arrays out.

Counters of a value encoding share people out. In each place stand counters b₁ … b_K, whose true sums are N times the
mean of what people gave to them; each has noise of standard deviation σ and excess kurtosis κ, independent of the
others. A mean is the θ for which Σ_k c_k(θ) b_k has mean 0, c linear in θ. So an interval holds all θ for which noise
could explain that sum (Fieller 1954); it has its confidence however few people there are.

Where the number of people is known (`means_known`, of the counters of a known-count encoding), nothing is a ratio of
two noisy numbers. Variances: `value_estimates`. Quantiles: `quantile_intervals`.
"""

from math import comb, exp, factorial, sqrt
from typing import NamedTuple

import numpy as np

from hazemap.estimate.confidence_margins import reach
from hazemap.machine_code.arrays import Floats

MOST_LAPLACE = 64
"""This many Laplace numbers have nearly the tail of a Gaussian one, and not a lighter one."""

ROUNDS = 3
"""How often an interval is made again with the shape that noise has at its ends."""


Noise = tuple[float, float]
"""The standard deviation σ of each counter, and its excess kurtosis κ."""


class IntervalEstimates(NamedTuple):
    """Where the truth is, float64[places] each: a best guess with its standard error, and low and high ends."""

    value: Floats
    stddev: Floats
    low: Floats
    high: Floats


def means(counters: Floats, nodes: Floats, noise: Noise, confidence: float) -> IntervalEstimates:
    """Σ nodes·b / Σ b of each place, within the span of the nodes: float64[places, K] and float64[K] in.

    Σ (nodes − θ)·b has the noise σ²·Σ (nodes − θ)². Where noise could explain that nobody is there, the interval is the
    whole span. A place with no people at all by the best guess has no value (NaN). O(places · K).
    """
    stddev, kurtosis = noise
    least, most, number = float(nodes.min()), float(nodes.max()), len(nodes)
    total, people = counters @ nodes, counters.sum(axis=1)
    some = people > 0
    value = np.clip(total / np.where(some, people, 1), least, most)

    def variance(at: Floats) -> Floats:
        squares: Floats = (nodes**2).sum() - 2 * at * nodes.sum() + number * at**2
        return stddev**2 * squares

    def margin(at: Floats) -> Floats:
        fourth = sum(((node - at) ** 4 for node in nodes), np.zeros_like(at))
        square = sum(((node - at) ** 2 for node in nodes), np.zeros_like(at))
        return reach(confidence, kurtosis * fourth / square**2) ** 2

    low, high = value, value
    for _ in range(ROUNDS):
        low = _root(total, people, nodes, stddev**2 * margin(low), -1)
        high = _root(total, people, nodes, stddev**2 * margin(high), 1)
        low, high = np.clip(low, least, most), np.clip(high, least, most)
    found = np.sqrt(variance(value)) / np.where(some, people, 1)
    return IntervalEstimates(np.where(some, value, np.nan), np.where(some, found, np.inf), low, high)


def _root(total: Floats, people: Floats, nodes: Floats, noise: Floats, side: int) -> Floats:
    """An end of {θ: (total − θ·people)² ≤ noise·Σ (nodes − θ)²}, infinite where nobody may be there."""
    a = people**2 - noise * len(nodes)
    b = total * people - noise * nodes.sum()
    c = total**2 - noise * (nodes**2).sum()
    known = (people > 0) & (a > 0)
    root = np.sqrt(np.maximum(b**2 - a * c, 0))
    return np.where(known, (b + side * root) / np.where(known, a, 1), side * np.inf)


def means_known(sums: Floats, people: Floats, noise: Noise, confidence: float) -> IntervalEstimates:
    """Σ y / N of each place, within 0 … 1, where the number of people (or a weight) is known; float64[places] in.

    So the interval is the noise alone, and how wide it is does not depend on the data. Ends are not clipped.
    """
    stddev, kurtosis = noise
    value, found = sums / people, stddev / people
    margin = reach(confidence, np.full(1, kurtosis)) * found
    return IntervalEstimates(np.clip(value, 0, 1), found, value - margin, value + margin)


def loudest(counters: int, noise: Noise, chance: float) -> float:
    """A number that the noise of the sum of `counters` counters passes with this probability.

    Noise of excess kurtosis κ is taken as a sum of Laplace numbers, 3/κ for each counter, rounded down (so that the
    tail is no lighter, for a chance of 1 in 25 or less), and 64 in all at the most. The sum of m of width b is the
    difference of two Gamma(m) numbers, so it passes x · b with probability

        e⁻ˣ Σ_k xᵏ/k! Σ_{j < m − k} C(m − 1 + j, j) 2^−(m + j), k = 0 … m − 1.

    >>> round(loudest(1, (2**0.5, 3.0), 0.5 / 2.718281828), 4), round(loudest(2, (1.0, 0.0), 0.01), 2)
    (1.0, 3.31)
    """
    stddev, kurtosis = noise
    number = max(1, min(MOST_LAPLACE, int(3 * counters / kurtosis + 1e-6) if kurtosis > 0 else MOST_LAPLACE))
    power = np.arange(number)
    each = np.cumsum([comb(number - 1 + j, j) / 2 ** (number + j) for j in range(number)])[::-1]
    each /= [float(factorial(k)) for k in range(number)]

    def passed(x: float) -> float:
        return exp(-x) * float(each @ x**power)

    low, high = 0.0, 1.0
    while passed(high) > chance:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if passed(middle) > chance else (low, middle)
    return high * stddev * sqrt(counters / (2 * number))
