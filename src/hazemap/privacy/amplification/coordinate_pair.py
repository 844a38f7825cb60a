"""One coordinate of a sum of reports, with one person's bit set and not set, and how well the two are told apart."""

import numpy as np

from hazemap.machine_code.arrays import Floats
from hazemap.privacy.amplification.binomial_window import BinomialWindow
from hazemap.privacy.amplification.certified_bounds import UNIT

Chances = tuple[float, float, float, float]
"""keep, 1 − keep, turn_on, 1 − turn_on."""


class CoordinatePair:
    """P = Bern(keep) + X and Q = Bern(turn_on) + X, where X is the sum of what all others send there.

    `forward` bounds the hockey-stick divergence H_γ(P‖Q) = Σ max(0, P − γQ) from above, `backward` H_γ(Q‖P), with
    γ = e^ε. X is log-concave, so the likelihood ratio grows with the outcome and the best event is a tail. The bound is
    for the exact laws: a tail by floats is widened by the error of the ratios, sums by their relative error, and what
    is absolute or outside of the window is added. (A cut law P' ≤ P has H_γ(P‖Q) ≤ H_γ(P'‖Q') + (P − P')(everywhere).)

    Cost O(size of the window) to make, O(log of it) for each ε.

    >>> from hazemap.privacy.amplification.binomial_window import binomial
    >>> pair = CoordinatePair((0.75, 0.25, 0.25, 0.75), binomial(0, 0.5, 0.5, 1e-20))
    >>> pair.forward(np.zeros(1)).round(6)
    array([0.5])
    """

    def __init__(self, chances: Chances, others: BinomialWindow) -> None:
        keep, drop, lit, dark = chances
        one, zero = np.append(0.0, others.mass), np.append(others.mass, 0.0)
        p, q = keep * one + drop * zero, lit * one + dark * zero
        if others.absolute:
            possible = (p > 0) & (q > 0)
            p, q = p[possible], q[possible]
        loss = np.log(p / q)
        if others.absolute:  # errors of the transform shuffle the far tails; any order is sound, the sorted one is best
            order = np.argsort(loss, kind="stable")
            p, q, loss = p[order], q[order], loss[order]
        self._loss = np.maximum.accumulate(loss)
        self._p_above, self._q_above = _from_the_top(p), _from_the_top(q)
        self._p_below, self._q_below = np.append(0.0, np.cumsum(p)), np.append(0.0, np.cumsum(q))
        self._ratio = 2 * others.relative + 1000 * UNIT
        self._relative = others.relative + (len(p) + 200) * UNIT + 1.7 * self._ratio
        self._absolute, self._outside = others.absolute, others.outside
        self.least = 8 * others.absolute + 2 * others.outside
        """Bounds do not fall much below it."""

    def forward(self, epsilon: Floats) -> Floats:
        """An upper bound of H(P‖Q) at every e^ε."""
        index = np.searchsorted(self._loss, epsilon - self._ratio, "right")
        return self._bound(self._p_above[index], self._q_above[index], epsilon)

    def backward(self, epsilon: Floats) -> Floats:
        """An upper bound of H(Q‖P) at every e^ε."""
        index = np.searchsorted(self._loss, self._ratio - epsilon, "left")
        return self._bound(self._q_below[index], self._p_below[index], epsilon)

    def _bound(self, likely: Floats, unlikely: Floats, epsilon: Floats) -> Floats:
        factor = np.exp(epsilon)
        other = factor * unlikely
        bound = np.maximum(likely - other, 0.0) + self._relative * (likely + other)
        bound = bound + self._absolute * (1 + factor) + self._outside
        return np.minimum(bound, 1.0)


def _from_the_top(mass: Floats) -> Floats:
    return np.append(np.cumsum(mass[::-1])[::-1], 0.0)
