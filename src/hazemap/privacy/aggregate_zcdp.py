"""What a sum of n people's reports costs one of them in ρ: zero-concentrated differential privacy of the aggregate.

Neighbours: one person's vector, or zeros in its place; their report is sent all the same. Only the bin that they name
is sent with another law: P = Bern(p) + X against Q = Bern(q) + X, where a of the other n − 1 people name it too, so
that X = Bin(a, p) + Bin(n − 1 − a, q). Nobody knows a, so the price is that of the worst. (A replacement moves two
bins, each as a removal does, so it costs 2ρ at most.)

An independent part of X may be left out, as adding it is post-processing. So for every a from lo to hi the pair is
dominated by the one with X = Bin(lo, p) + Bin(n − 1 − hi, q), and a few intervals cover all a.

Outcomes outside of a window have a probability below δ' = 2^−100. Within it, the sum is ρ-zCDP if D_α(P‖Q) ≤ ρα and
D_α(Q‖P) ≤ ρα for all α > 1; so it is δ'-approximately ρ-zCDP (Bun and Steinke 2016, definition 8.1), which composes
like zCDP: the δ' add up. `ApproxDP.rho` leaves 9 · 10^−10 of its δ unused, more than a thousand million rounds need for
δ ≥ 10^−12 (`LEAST_DELTA`).

The least such ρ is found on a grid: (α − 1)D_α is convex in α, so chords bound it between two points; D_α grows, which
covers 1 to the first point; and D_α is at most the largest loss in the window, which covers all from that over ρ on.
Floats compute it, with room: every moment is raised by 10^−6 of it and α · 10^−13, above the forward error of its sums.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from math import ceil, log, sqrt

import numpy as np

from hazemap.arrays import Floats
from hazemap.errors import InputError
from hazemap.privacy.local_randomisers import Randomiser

LEAST_DELTA = Fraction(1, 10**12)
"""The least δ of a budget in which what is outside of the windows has room."""

SPILL = Fraction(1, 1 << 100)
"""δ': what is outside of the windows of one sum, at most."""

_FIRST, _GROWTH = 0.01, 1.15  # the grid of α − 1
_CUT = -76.0  # e^−76 < 2^−109 of the largest: all that is cut off is below 2^−102 on each side
_WIDE = -160.0  # of the parts, so that their sum is right up to its own cut
_COINS = 0.1  # and this part of the coins
_VARIANCE = 0.01  # an interval gives away this part of the variance, at most
_RELATIVE, _ABSOLUTE = 1e-6, 1e-13
_FINE = 1 << 50
_CELLS = 1 << 19  # numbers in memory at a time
_MOST = 1_000_000  # more people are not looked at: fewer are a bound


@lru_cache(maxsize=4096, typed=True)
def rho_of_sum(law: Randomiser, honest: int) -> Fraction:
    """The ρ of one sum of reports of `honest` people or more, the person included: rounded up.

    Some 10 ms where ε is large, seconds for a million people and a small ε.

    >>> from hazemap.privacy.local_randomisers import Asymmetric
    >>> law = Asymmetric(Fraction(4))
    >>> [round(float(rho_of_sum(law, people)), 6) for people in (1, 1_000, 100_000)]
    [5.527822, 0.007209, 6.9e-05]
    """
    if honest < 1:
        raise InputError(f"a sum of reports has 1 honest person or more, not {honest}")
    alone = law.removal**2 / 2  # one report by itself (Bun and Steinke 2016, proposition 1.4)
    p, q = law.chances
    if honest == 1 or not 1e-12 < q < p < 1 - 1e-12:
        return alone
    others = min(honest, _MOST) - 1
    found = max(_least(*_pair(p, q, low, others - high)) for low, high in _cover(others, p, q))
    return min(alone, Fraction(ceil(found * (1 + _RELATIVE) * _FINE), _FINE))


def _cover(others: int, p: float, q: float) -> Iterator[tuple[int, int]]:
    """Intervals of a, from 0 to `others`, in each of which what is left keeps 99 % of the least variance.

    The least variance is that of nobody or of everybody naming the bin. An interval also keeps most coins of q, for
    skewness and far tails, until those of p alone are plenty.
    """
    loud, quiet = p * (1 - p), q * (1 - q)
    least = (1 - _VARIANCE) * others * min(loud, quiet)
    low = 0
    while low <= others:
        kept = least if low * loud < 4 * least + 100 else 0.0
        high = int(others - (kept - low * loud) / quiet)
        if kept:
            high = min(high, low + int(_COINS * (others - low)))
        high = min(others, max(low, high))
        yield low, high
        low = high + 1


def _pair(p: float, q: float, named: int, rest: int) -> tuple[Floats, Floats]:
    """The logarithms of P and Q on a window: all outcomes but those next to where the law of X was cut off."""
    (start, one), (other, two) = _binomial(named, p), _binomial(rest, q)
    x = np.convolve(one, two)
    kept = _run(np.log(np.maximum(x, 1e-300)), _CUT)
    first, x = start + other + kept.start, x[kept]
    whole = slice(int(first > 0), len(x) + int(first + len(x) > named + rest))
    ones, zeros = np.append(0.0, x)[whole], np.append(x, 0.0)[whole]
    return np.log(p * ones + (1 - p) * zeros), np.log(q * ones + (1 - q) * zeros)


def _binomial(coins: int, heads: float) -> tuple[int, Floats]:
    """The first number of heads of its window, and the law on it, float64[O(σ)]; its errors are relative."""
    mode = min(coins, int((coins + 1) * heads))
    reach = int(20 * sqrt(coins * heads * (1 - heads))) + 250
    up = np.arange(mode, min(coins, mode + reach), dtype=np.float64)
    down = np.arange(mode, max(0, mode - reach), -1, dtype=np.float64)
    odds = log(heads / (1 - heads))
    above = np.cumsum(np.log((coins - up) / (up + 1)) + odds)
    below = np.cumsum(np.log(down / (coins - down + 1)) - odds)
    law = np.concatenate([below[::-1], [0.0], above])
    kept = _run(law, _WIDE)
    law = np.exp(law[kept])
    return mode - len(down) + kept.start, np.asarray(law / law.sum())


def _run(logarithms: Floats, cut: float) -> slice:
    """The entries that are kept."""
    kept = np.flatnonzero(logarithms >= logarithms.max() + cut)
    return slice(int(kept[0]), int(kept[-1]) + 1)


def _least(log_p: Floats, log_q: Floats) -> float:
    """The least ρ of a pair on its window."""
    loss = log_p - log_q
    most = float(np.abs(loss).max())
    first = np.array([_FIRST])
    rho = max(float(moment[0]) / _FIRST for moment in _moments(log_p, log_q, loss, first))
    if not most / (1 + _FIRST) > rho:
        return rho
    points = ceil(log((most / rho - 1) / _FIRST) / log(_GROWTH)) + 1
    grid: Floats = _FIRST * np.power(_GROWTH, np.arange(points + 1, dtype=np.float64))
    for moments in _moments(log_p, log_q, loss, grid):
        for left, right, one, two in zip(grid, grid[1:], moments, moments[1:], strict=False):
            rho = max(rho, _chord(float(left), float(right), float(one), float(two)))
    return rho


def _moments(log_p: Floats, log_q: Floats, loss: Floats, grid: Floats) -> tuple[Floats, Floats]:
    """(α − 1)D_α of both directions for every α − 1 of the grid, raised by their errors."""
    return _raised(log_q, loss, 1 + grid), _raised(log_p, -loss, 1 + grid)


def _raised(law: Floats, loss: Floats, alphas: Floats) -> Floats:
    """Log Σ law · e^(α · loss) for every α, in pieces of bounded memory."""
    mass, found = np.exp(law), np.empty(len(alphas))
    total, widest = float(mass.sum()), float(np.abs(loss).max())
    step = max(1, _CELLS // len(loss))
    small = int(np.searchsorted(alphas, 0.5 / widest)) if widest else len(alphas)
    for start in range(0, small, step):
        some = alphas[start : min(small, start + step), None] * loss
        found[start : start + len(some)] = np.log1p((mass * np.expm1(some)).sum(axis=1) / total)
    for start in range(small, len(alphas), step):
        terms = law + alphas[start : start + step, None] * loss
        peak = terms.max(axis=1)
        found[start : start + step] = peak + np.log(np.exp(terms - peak[:, None]).sum(axis=1))
    return found + _RELATIVE * np.abs(found) + _ABSOLUTE * alphas


def _chord(left: float, right: float, one: float, two: float) -> float:
    """The largest (A + Bt)/(t(t + 1)), t = α − 1 from left to right, of the line through (left, one), (right, two)."""
    b = (two - one) / (right - left)
    a = one - b * left
    points = [left, right]
    if b and a * a - a * b >= 0:  # its derivative is 0 where Bt² + 2At + A = 0
        roots = [(-a + sign * sqrt(a * a - a * b)) / b for sign in (1, -1)]
        points += [t for t in roots if left < t < right]
    return max((a + b * t) / (t * (t + 1)) for t in points)
