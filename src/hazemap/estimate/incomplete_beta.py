"""The distribution function of Beta laws, by its continued fraction, for questions that are not to wait for SciPy."""

from math import lgamma

import numpy as np
from numpy.typing import NDArray

from hazemap.machine_code.arrays import Floats

ENOUGH = 1e-13
"""How much of a fraction a further step may change for it to be the last."""

TINY = 1e-300
"""What stands for a denominator of 0 (Lentz's method)."""


def beta_distribution(a: Floats, b: Floats, at: Floats) -> Floats:
    """I_x(a, b), the probability that a Beta variable is at most x; float64[n] of one shape each, a and b above 0.

    Lentz's method of the continued fraction of DLMF 8.17.22, on that side of the law's middle where it converges fast:
    O(√max(a, b)) steps at the middle and few elsewhere, which only points that still change take. Off by less than
    10⁻⁸ where a and b are at most 10⁶, and than 10⁻⁴ up to 10⁹.

    >>> beta_distribution(np.array([1.0, 2.0]), np.array([1.0, 2.0]), np.array([0.3, 0.5])).round(9)
    array([0.3, 0.5])
    """
    upper = at > (a + 1) / (a + b + 2)
    a, b, x = np.where(upper, b, a), np.where(upper, a, b), np.where(upper, 1 - at, at)
    found = np.zeros(len(x))
    some = np.flatnonzero(x > 0)
    a, b, x = a[some], b[some], x[some]
    front = a * np.log(x) + b * np.log1p(-x) - _log_beta(a, b)
    found[some] = np.clip(np.exp(front) * _fraction(a, b, x), 0, 1)
    return np.where(upper, 1 - found, found)


def _log_beta(a: Floats, b: Floats) -> Floats:
    """The logarithm of a B(a, b), which the same cells' points share."""
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    logs = {(one, other): lgamma(one + 1) + lgamma(other) - lgamma(one + other) for one, other in set(pairs)}
    return np.array([logs[pair] for pair in pairs], dtype=np.float64)


def _fraction(a: Floats, b: Floats, x: Floats) -> Floats:
    """1 / (1 + d₁/(1 + d₂/(1 + …)))."""
    found = np.ones(len(x))
    going: NDArray[np.int64] = np.arange(len(x))
    product, c = np.ones(len(x)), np.ones(len(x))
    d = 1 / _apart(1 - (a + b) * x / (a + 1))
    product *= d
    step = 0
    while len(going):
        step += 1
        twice = a + 2 * step
        even = step * (b - step) * x / ((twice - 1) * twice)
        d, c = 1 / _apart(1 + even * d), _apart(1 + even / c)
        product *= d * c
        odd = -(a + step) * (a + b + step) * x / (twice * (twice + 1))
        d, c = 1 / _apart(1 + odd * d), _apart(1 + odd / c)
        product *= d * c
        changing = np.abs(d * c - 1) > ENOUGH
        if not changing.all():
            found[going[~changing]] = product[~changing]
            going = going[changing]
            a, b, x, product, c, d = (each[changing] for each in (a, b, x, product, c, d))
    return found


def _apart(number: Floats) -> Floats:
    return np.where(np.abs(number) < TINY, TINY, number)
