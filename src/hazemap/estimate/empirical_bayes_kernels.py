"""The compiled loops of `empirical_bayes.py`.

A number x ≥ 0 is predicted to be m and measured as y, with a normal error of standard deviation s. What x may be is
a mixture of components, all of them relative to m, so that numbers of all sizes tell of it:

* nothing: x = 0;
* near the prediction: normal of mean m and deviation τm on x ≥ 0, for the `WIDTHS` τ;
* anything: exponential of mean θm, for the `SCALES` θ.

Each component's likelihood of y and its posterior of x have closed forms, in terms of the normal law Φ and of its
hazard φ/Φ. Its weight is learned by expectation maximisation, from the numbers of its class (empirical Bayes; Robbins
1956; of this form Stephens 2017). Classes are by m/s, that of the clearest numbers first; each begins with the weights
of the one before, as if they had been seen in `SEEN` numbers.
"""

from math import erfc, exp, log, sqrt

import numpy as np

from hazemap.machine_code.arrays import Floats
from hazemap.vdaf.compiled_loops import compiled

WIDTHS = np.array([0.01, 0.03, 0.07, 0.15, 0.3, 0.6, 1.2])
SCALES = np.array([1 / 64, 1 / 16, 1 / 4, 1.0, 4.0, 16.0])
_NEAR, _ANY = (0.02, 0.05, 0.1, 0.2, 0.2, 0.1, 0.05), (0.02, 0.03, 0.05, 0.1, 0.05, 0.02)
NOTHING = 0.3  # before anything is seen

START = np.array([NOTHING / (1 - NOTHING) * (sum(_NEAR) + sum(_ANY)), *_NEAR, *_ANY])
START /= START.sum()

CLASSES = 12  # by powers of 2 of m/s, from 2⁶ down
SEEN, STEPS = 20.0, 15
_ROOT2, _ROOT2PI = sqrt(2.0), sqrt(2 * np.pi)


@compiled
def _tail(t: float) -> tuple[float, float]:
    """The logarithm of Φ(t), and φ(t)/Φ(t), also where Φ(t) is too small for a double."""
    if t > -5:
        below = 0.5 * erfc(-t / _ROOT2)
        return log(below), exp(-t * t / 2) / (_ROOT2PI * below)
    series = 1 - 1 / t**2 + 3 / (t * t * t * t)
    return -t * t / 2 - log(-t * _ROOT2PI) + log(series), -t / series


@compiled
def _root(mean: float, stddev: float) -> float:
    """The mean of √x for a normal x of this mean and deviation on x ≥ 0, to second order; 0.87 √mean at least."""
    t = mean / stddev
    _, hazard = _tail(t)
    inside = max(mean + stddev * hazard, 1e-150)  # its square is divided by
    variance = stddev * stddev * max(1 - hazard * (t + hazard), 1e-3)
    return sqrt(inside * max(0.75, 1 - variance / (4 * inside * inside)))


@compiled
def _components(y: float, m: float, s: float, scales: Floats, widths: Floats, likely: Floats, roots: Floats) -> None:
    """The likelihood of y under each component, but for a common factor, and the posterior mean of √x."""
    likely[0], roots[0] = -y * y / (2 * s * s) - log(s), 0.0
    k = 1
    for width in widths:
        own = width * m
        variance = s * s + own * own
        mean, stddev = m + own * own / variance * (y - m), own * s / sqrt(variance)
        likely[k] = -((y - m) ** 2) / (2 * variance) - 0.5 * log(variance)
        likely[k] += _tail(mean / stddev)[0] - _tail(1 / width)[0]  # both laws are cut at 0
        roots[k] = _root(mean, stddev)
        k += 1
    for scale in scales:
        own = scale * m
        mean = y - s * s / own
        likely[k] = 0.5 * log(2 * np.pi) - log(own) + s * s / (2 * own * own) - y / own + _tail(mean / s)[0]
        roots[k] = _root(mean, s)
        k += 1
    highest = likely[0]
    for k in range(1, likely.size):
        highest = max(highest, likely[k])
    for k in range(likely.size):
        likely[k] = exp(likely[k] - highest)


@compiled
def posterior(  # noqa: PLR0912 - sums are written out: numba takes seconds to compile those of arrays
    y: Floats, m: Floats, s: Floats, start: Floats, scales: Floats, widths: Floats
) -> tuple[Floats, Floats]:
    """The square of the posterior mean of √x for each number, and the weights of the class with most numbers.

    O(numbers · components · steps); m and s are positive.
    """
    n, size = len(y), len(start)
    likely, roots, kind = np.empty((n, size)), np.empty((n, size)), np.empty(n, dtype=np.int64)
    members = np.zeros(CLASSES)
    for i in range(n):
        _components(y[i], m[i], s[i], scales, widths, likely[i], roots[i])
        kind[i] = min(max(6 - int(np.floor(np.log2(m[i] / s[i]))), 0), CLASSES - 1)
        members[kind[i]] += 1
    weights, seen = np.empty((CLASSES, size)), np.empty((CLASSES, size))
    for c in range(CLASSES):
        for k in range(size):
            weights[c, k] = start[k]
    for _ in range(STEPS):
        for c in range(CLASSES):
            for k in range(size):
                seen[c, k] = SEEN * (start[k] if c == 0 else weights[c - 1, k])
        for i in range(n):
            whole, c = 0.0, kind[i]
            for k in range(size):
                whole += weights[c, k] * likely[i, k]
            for k in range(size):
                seen[c, k] += weights[c, k] * likely[i, k] / whole
        for c in range(CLASSES):
            whole = 0.0
            for k in range(size):
                whole += seen[c, k]
            for k in range(size):
                weights[c, k] = seen[c, k] / whole
    found = np.empty(n)
    for i in range(n):
        whole, root = 0.0, 0.0
        for k in range(size):
            own = weights[kind[i], k] * likely[i, k]
            whole += own
            root += own * roots[i, k]
        found[i] = (root / whole) ** 2
    return found, weights[members.argmax()]
