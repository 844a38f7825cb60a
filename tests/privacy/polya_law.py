"""The law of a Pólya difference, summed, and the chi-square test against it."""

import math
from fractions import Fraction

import mpmath
import numpy as np
from scipy.stats import chisquare


def polya_law(shape: Fraction, scale: Fraction, least: float = 1e-16) -> np.ndarray:
    """P(X − Y = d) for d = 0, 1, …, from X and Y to 40 digits, as far as X is likelier than `least`."""
    with mpmath.workdps(40):
        r = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        a = mpmath.mpf(shape.numerator) / shape.denominator
        one = [(1 - r) ** a]
        while one[-1] > least or len(one) < a * scale:
            one.append(one[-1] * r * (len(one) - 1 + a) / len(one))
    x = np.array(one, dtype=float)
    return np.correlate(x, x, mode="full")[len(x) - 1 :]


def laplace_law(scale: Fraction) -> np.ndarray:
    """(1 − r)/(1 + r) · r^d for d = 0, 1, …: what shares of shape 1 in all sum to."""
    r = math.exp(-1 / scale)
    return (1 - r) / (1 + r) * r ** np.arange(40 * math.ceil(scale))


def fit(drawn: np.ndarray, positive: np.ndarray) -> float:
    """Chi-square p-value of the signed numbers, in bins that expect 20 or more; the outer two hold the tails."""
    most = next(d for d in range(1, len(positive)) if positive[d:].sum() * len(drawn) < 40) - 1
    inner = np.concatenate([positive[most:0:-1], positive[: most + 1]])
    tail = (1 - inner.sum()) / 2
    expected = np.concatenate([[tail], inner, [tail]]) * len(drawn)
    seen = np.bincount(np.clip(drawn, -most - 1, most + 1) + most + 1, minlength=2 * most + 3)
    part = np.cumsum(expected) // 20
    part[-1] = part[-2]  # what is left over joins the last bin
    part = np.unique(part, return_inverse=True)[1]
    return chisquare(np.bincount(part, seen), np.bincount(part, expected)).pvalue
