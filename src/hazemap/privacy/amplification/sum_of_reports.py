"""The exact law of a sum of reports: privacy losses that cover whatever the other people hold."""

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hazemap.machine_code.arrays import Floats
from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.privacy.amplification.certified_bounds import DIRECT, UNIT, BinomialWindow, add, binomial
from hazemap.privacy.amplification.privacy_loss_distribution import PrivacyLossDistribution

Chances = tuple[float, float, float, float]
"""keep, 1 − keep, turn_on, 1 − turn_on."""


class CoordinatePair:
    """P = Bern(keep) + X and Q = Bern(turn_on) + X, where X is the sum of what all others send there.

    `forward` bounds the hockey-stick divergence H_γ(P‖Q) = Σ max(0, P − γQ) from above, `backward` H_γ(Q‖P), with
    γ = e^ε. X is log-concave, so the likelihood ratio grows with the outcome and the best event is a tail. The bound is
    for the exact laws: a tail by floats is widened by the error of the ratios, sums by their relative error, and what
    is absolute or outside of the window is added. (A cut law P' ≤ P has H_γ(P‖Q) ≤ H_γ(P'‖Q') + (P − P')(everywhere).)

    Cost O(size of the window) to make, O(log of it) for each ε.

    >>> from hazemap.privacy.amplification.certified_bounds import binomial
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


_FINE = 40
"""Steps of the grid to the standard deviation of a loss, at least."""

_PRODUCTS = 400_000_000
"""Products that all windows of a cover may take, so that they need no transform and no absolute error."""

_POINTS = 1500
"""Points of the grid on each side of 0, about, at most."""


@dataclass(frozen=True, eq=False)
class CoordinateLosses:
    """Losses of one coordinate of the sum: with one person's bit against without, and without against with.

    A replacement moves one coordinate each way, so its losses are `forward` composed with `backward`.
    """

    forward: PrivacyLossDistribution
    backward: PrivacyLossDistribution


@lru_cache(maxsize=64)
def coordinate_losses(law: BitFlipLaw, honest: int, spill: float, exact_tails: bool = False) -> CoordinateLosses:
    """Losses of one coordinate of a sum of `honest` reports, whatever the other people hold.

    Where a of the other n − 1 people hold the bin, they add X_a = Bin(a, keep) + Bin(n − 1 − a, turn_on). For a between
    lo and hi, X_a is Bin(lo, keep) + Bin(n − 1 − hi, turn_on) plus an independent number, which post-processing could
    add; so that pair dominates. The greatest bound over intervals that cover 0 … n − 1 is convex in γ again. No bound
    for one a alone would do: "nobody else holds it" is not always the worst (a lattice, skewness).

    If turn_on = 1 − keep, zeros and ones may be exchanged, and holders with the others. Then the two directions are
    alike, and half of the intervals tell all. Where keep + turn_on > 1 the bound is looser: the worst a is n − 1 for
    both coordinates, though the others cannot all hold both.

    `spill` is the probability that may go to ∞ beyond the grid. 3–500 intervals of O(√n) each. With `exact_tails` all
    laws are added up one by one, whatever it takes, so that errors are relative: O(n) for each interval.
    """
    chances = law.chances
    keep, drop, lit, dark = chances
    tail = max(spill * 1e-3, 1e-60)
    spans = list(cover(law, honest - 1))
    if law.mirrored:
        spans = [span for span in spans if 2 * span[1] >= honest - 1]  # they are the finer near their end
    direct = sys.maxsize if exact_tails else max(DIRECT, _PRODUCTS // len(spans))

    def pair(span: tuple[int, int]) -> CoordinatePair:
        low, high = span
        others = add(binomial(low, keep, drop, tail), binomial(honest - 1 - high, lit, dark, tail), direct)
        return CoordinatePair(chances, others)

    ends = [pair(spans[0]), pair(spans[-1])] if len(spans) > 1 else [pair(spans[0])]
    step, points = _grid(law, honest, ends, spill)
    losses = np.arange(-points, points + 1, dtype=np.float64) * step
    forward, backward = np.zeros(len(losses)), np.zeros(len(losses))
    for index, span in enumerate(spans):
        one = ends[0] if index == 0 else ends[-1] if index == len(spans) - 1 else pair(span)
        np.maximum(forward, one.forward(losses), out=forward)
        np.maximum(backward, one.backward(losses), out=backward)
    if law.mirrored:
        forward = backward = np.maximum(forward, backward)
    return CoordinateLosses(*(_bounded(law, step, points, losses, curve) for curve in (forward, backward)))


Pair = tuple[Floats, Floats, float]
"""ln P and ln Q of every outcome of a coordinate, and how far a factor of either may be from 1."""


def all_pairs(law: BitFlipLaw, honest: int) -> list[Pair] | None:
    """Where 0 … n − 1 of the other people hold a bin; None where some probability is too small for a float.

    O(n³), for small sums.
    """
    keep, drop, lit, dark = law.chances
    found = []
    for holders in range(honest):
        others = add(binomial(holders, keep, drop, 1e-60), binomial(honest - 1 - holders, lit, dark, 1e-60))
        if len(others.mass) < honest:
            return None
        one, zero = np.append(0.0, others.mass), np.append(others.mass, 0.0)
        error = others.relative + 1000 * UNIT
        found.append((np.log(keep * one + drop * zero), np.log(lit * one + dark * zero), error))
    return found


def _bounded(law: BitFlipLaw, step: float, points: int, losses: Floats, curve: Floats) -> PrivacyLossDistribution:
    """No loss is above the local one, so H is 0 from there on."""
    return PrivacyLossDistribution.from_curve(step, -points, np.where(losses >= _local(law), 0.0, curve))


def _local(law: BitFlipLaw) -> float:
    return math.nextafter(float(law.removal), math.inf)


def _grid(law: BitFlipLaw, honest: int, ends: list[CoordinatePair], spill: float) -> tuple[float, int]:
    """The step, a power of two, and the points on each side: up to where H is below `spill`, or to the local ε₀."""
    keep, drop, lit, dark = law.chances
    spread = max(honest, 4) * min(keep * drop, lit * dark) + 1
    deviation = (keep - lit) / math.sqrt(spread)
    local = _local(law)
    reach = min(local, 4 * deviation)
    while reach < local:
        here = np.array([reach])
        if all(max(pair.forward(here)[0], pair.backward(here)[0]) <= max(spill, pair.least) for pair in ends):
            break
        reach = min(local, reach * 1.2)
    step = 2.0 ** math.floor(math.log2(max(deviation / _FINE, reach / _POINTS)))
    return step, math.ceil(reach / step) + 1


def cover(law: BitFlipLaw, people: int) -> Iterator[tuple[int, int]]:
    """Intervals of how many of `people` hold a bin that cover 0 … people, first to last.

    Each leaves out few enough people to lose 0.05–1 % of the variance. If a bin's holders make less noise than the
    others, the bits are turned round: turn_on ↔ 1 − keep, holders ↔ others.

    >>> [len(list(cover(BitFlipLaw.asymmetric(4), people))) for people in (3, 1000, 100_000)]
    [4, 23, 6]
    """
    keep, drop, lit, dark = law.chances
    if keep * drop >= lit * dark * (1 - 1e-9):
        yield from _spans(people, keep * drop, lit * dark)
    else:
        turned = list(_spans(people, lit * dark, keep * drop))
        yield from ((people - high, people - low) for low, high in reversed(turned))


def _spans(people: int, loud: float, quiet: float) -> Iterator[tuple[int, int]]:
    """Intervals where each holder adds the variance `loud`, and each other person `quiet`, which is no more."""
    noise = people * quiet
    louder = loud > 1.01 * quiet
    loss = 5e-4 if louder else 5e-3
    if noise > 1e5:  # what is left out is then less than the last digit of a price
        loss = 5e-4 if loud > 4 * quiet else 2e-3 if loud > 1.2 * quiet else 5e-3 if louder else 1e-2
    part = 0.02 if noise < 200 else 0.05 if noise < 2000 else 0.3
    low = 0
    while low <= people:
        if louder and low * loud >= 1.5 * noise + 60:
            high = people  # the holders alone are noise enough
        else:
            high = int(low + min((low * (loud - quiet) + loss * noise) / quiet, part * (people - low)))
        high = max(low, min(people, high))
        yield low, high
        low = high + 1
