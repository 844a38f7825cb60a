"""What one sum of reports costs a person in ρ: zero-concentrated differential privacy, for budgets that are spent in ρ.

A coordinate of the sum has losses in either direction (`sum_of_reports`), whose curve D lies above H_γ of whatever
the others hold, but for the probability δ' at ∞. E_Q f(L) = ∫ f''(γ) (H_γ − max(0, 1 − γ)) dγ for a convex f that is
0 with its slope at 1; so (α − 1) D_α is at most F(α) = ln(1 + that of f(x) = x^α − 1 − α(x − 1) and D). Below the
lowest loss D is replaced by the chord from H₀ = 1, as H is convex. A removal moves one coordinate, so its F is that
of the worse direction. A replacement moves one coordinate each way, independently, so its F is the sum of both: less
than twice the worse one, as noise is skewed and one direction is cheap where the other is dear.

ρ is the least with D_α ≤ ρα for all α > 1. It is found on a grid: (α − 1) D_α is convex in α, and so lies below
chords between two points; D_α grows, which covers 1 to the first point; and it is at most the largest loss, from the
last on. In small sums F is that of each configuration of the others, which is less than that of a curve above all of
them.

Over rounds, also where each was chosen on the way, ρ and δ' add up: the filter below, with
ρ_t = ρ α, and with the convex curve below D and its chord in place of Σ m_i max(0, 1 − γ e^(−l_i)).

**The filter**, in Rényi divergence, for those who choose the next round's sizes on the way. Let every round t have an
order-α divergence ρ_t and a δ_t that may depend on all answers before it, and stop before Σ ρ_t > ρ or Σ δ_t > Δ.
Then the whole is (ε, δ)-DP with δ = Δ + e^((α − 1)(ρ − ε)) (1 − 1/α)^(α − 1)/α.

Proof. Let the losses (m_i, l_i, ∞) dominate the first round, and let ψ(γ) be the greatest H_γ of the rounds after it,
over the first answer y. ψ is convex, falls and is at most 1, so it is a mixture of functions max(0, 1 − γ e^(−l)),
and so H_γ = ∫ H_{γ/L₁}(rest given y) dP₁ ≤ ∫ ψ(γ/L₁) dP₁ ≤ δ₁ + Σ m_i ψ(γ e^(−l_i)). By induction ψ(γ) ≤ Δ − δ₁ + c
γ^(1 − α) e^((α − 1)(ρ − ρ₁)), c = (1 − 1/α)^(α − 1)/α; put in e^((α − 1) ρ₁) = Σ m_i e^((α − 1) l_i). At the end H_γ
= max(0, 1 − γ) ≤ c γ^(1 − α) e^((α − 1)ρ), as c γ^(1 − α) x^(α − 1) ≥ max(0, 1 − γ/x) for every x > 0. Where the m_i
add up to M > 1, by rounding, take m_i/M and add M − 1 to δ₁, as ψ ≤ 1. ∎

Feldman and Zrnic 2021 and Lécuyer 2021 have the filter for Rényi divergence, Whitehouse et al. 2023 for zCDP.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from heapq import heapify, heappop, heappush
from itertools import pairwise

import numpy as np

from hazemap.errors import InputError
from hazemap.machine_code.arrays import Floats
from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.privacy.amplification.certified_bounds import UNIT, float_below, rounded_up
from hazemap.privacy.amplification.neighbours import ReportNeighbours, SumRound, losses
from hazemap.privacy.amplification.privacy_loss_distribution import PrivacyLossDistribution
from hazemap.privacy.amplification.sum_of_reports import CoordinateLosses, Pair, all_pairs, coordinate_losses

LEAST_DELTA = Fraction(1, 10**12)
"""The least δ of a budget in which the δ' of all its rounds have room.

`ApproxDP.rho` leaves 9 · 10⁻¹⁰ of its δ unused: more than a thousand million rounds of `SPILL`.
"""

SPILL = Fraction(1, 1 << 100)
"""What δ' is at most."""

_FIRST, _FIRST_OF_PAIRS, _GROWTH = 0.01, 0.001, 1.06  # the grid of α − 1
_VARIANCE = 250_000  # of the noise of a sum: more people than make it are not looked at, as fewer are a bound
_SMALL = 16  # in larger sums a curve above all costs some 1 % more, and devices find a price in less than 0.1 s
_FINE = 1 << 70
_STRIDE = 16  # steps of the grid that the first chords span


@dataclass(frozen=True)
class ApproximateZCDP:
    """ρ, rounded up, but for a probability `delta`: both add up over rounds that are chosen on the way.

    >>> price = zcdp_of_sum(BitFlipLaw.asymmetric(4), 10_000)
    >>> round(float(price.rho), 6), price.delta <= SPILL
    (0.00133, True)
    """

    rho: Fraction
    delta: Fraction


@lru_cache(maxsize=4096, typed=True)
def zcdp_of_sum(
    law: BitFlipLaw, honest: int, neighbours: ReportNeighbours = ReportNeighbours.REPLACEMENT
) -> ApproximateZCDP:
    """The price of one sum of reports of `honest` people or more, the person included, whatever the others hold.

    Tight to about 1 %. Some 10 ms; a second for a million people and a small ε₀.

    >>> law = BitFlipLaw.asymmetric(4)
    >>> [round(float(zcdp_of_sum(law, people, ReportNeighbours.REMOVAL).rho), 6) for people in (1, 1_000, 100_000)]
    [1.466116, 0.007125, 6.8e-05]
    """
    if honest < 1:
        raise InputError(f"a sum of reports has 1 honest person or more, not {honest}")
    alone = neighbours.local(law) ** 2 / 2  # of one report by itself (Bun and Steinke 2016, proposition 1.4)
    _, _, lit, dark = law.chances
    counted = min(honest, int(_VARIANCE / (lit * dark)) + 1) if lit * dark > 1e-12 else honest
    losses = coordinate_losses(law, counted, float(SPILL / 8), exact_tails=True)
    left_out = 2 * (Fraction(losses.forward.infinite) + Fraction(losses.backward.infinite))
    found = [ApproximateZCDP(alone, Fraction(0))]
    if left_out <= SPILL:
        found.append(ApproximateZCDP(_rounded(_by_losses(losses, neighbours)), left_out))
    if honest <= _SMALL and (pairs := all_pairs(law, honest)) is not None:
        found.append(ApproximateZCDP(_rounded(_by_pairs(law, pairs, neighbours)), Fraction(0)))
    return min(found, key=lambda one: one.rho)


def _rounded(rho: float) -> Fraction:
    return Fraction(math.ceil(Fraction(rho * (1 + 1e-12)) * _FINE), _FINE)


def _by_losses(losses: CoordinateLosses, neighbours: ReportNeighbours) -> float:
    """The least ρ of losses that dominate every configuration."""
    ways = (losses.forward, losses.backward)
    both = neighbours is not ReportNeighbours.REMOVAL
    tops = [float(way.losses[-1]) for way in ways]
    most = sum(tops) if both else max(tops)
    rough = max(float(np.sum(way.mass * way.losses**2)) for way in ways) / 4  # about half of ρ
    grid = _grid(most, rough)
    forward, backward = (_Moments(way) for way in ways)

    def moment(index: int) -> float:
        one, two = forward.at(float(grid[index])), backward.at(float(grid[index]))
        return one + two if both else max(one, two)

    return _greatest(grid, moment, most)


def _by_pairs(law: BitFlipLaw, pairs: Sequence[Pair], neighbours: ReportNeighbours) -> float:
    """The least ρ of every configuration: pairs[a] where a of the others hold the bin. O(honest²) for each α."""
    both = neighbours is not ReportNeighbours.REMOVAL
    most = float(neighbours.local(law))
    rough = max(float(np.sum(np.exp(log_p) * (log_p - log_q) ** 2)) for log_p, log_q, _ in pairs) / 4
    grid = _grid(most, rough, _FIRST_OF_PAIRS)
    forward = np.array([_moments_of_pair(log_p, log_q, error, grid) for log_p, log_q, error in pairs])
    backward = np.array([_moments_of_pair(log_q, log_p, error, grid) for log_p, log_q, error in pairs])
    if not both:
        return _greatest(grid, np.maximum(forward.max(axis=0), backward.max(axis=0)).item, most)
    # Where a of the others hold the one bin, at most honest − 1 − a hold the other.
    others = np.maximum.accumulate(backward, axis=0)[::-1]
    return _greatest(grid, (forward + others).max(axis=0).item, most)


def _grid(most: float, rough: float, first: float = _FIRST) -> Floats:
    """Values of α − 1, up to where the largest loss says no more than this ρ."""
    points = math.ceil(math.log(max(most / max(rough, 1e-30), 2) / first) / math.log(_GROWTH)) + 2
    grid: Floats = first * np.power(_GROWTH, np.arange(points, dtype=np.float64))
    return grid


def _moments_of_pair(log_p: Floats, log_q: Floats, error: float, grid: Floats) -> Floats:
    """Ln Σ P^α Q^(1 − α) at every α − 1 of the grid, of laws that are known up to a factor of 1 ± error: rounded up."""
    loss, mass = log_p - log_q, np.exp(log_q)
    wide = np.where(loss > -2 * error, loss + 2 * error, loss - 2 * error)  # f grows away from 1
    exponents = np.outer(1 + grid, wide)
    small = exponents.max(axis=1) < 1
    found = np.empty(len(grid))
    near, far = np.expm1(exponents[small]), np.outer(1 + grid[small], np.expm1(wide))
    rounding = (mass * (np.abs(near) + np.abs(far))).sum(axis=1) * (20 + 2 * len(mass)) * UNIT
    found[small] = np.log1p(((mass * (near - far)).sum(axis=1) + rounding) * (1 + 2 * error))
    terms = log_q + exponents[~small]
    peak = terms.max(axis=1, initial=-math.inf)
    rounding = (len(mass) + 2000 + np.abs(peak)) * 4 * UNIT
    found[~small] = peak + np.log(np.exp(terms - peak[:, np.newaxis]).sum(axis=1)) + rounding + 2 * error
    return np.maximum(found, 0.0) * (1 + 8 * UNIT)


class _Moments:
    """F of losses, rounded up, at any α − 1: O(losses) each."""

    def __init__(self, way: PrivacyLossDistribution) -> None:
        self.mass, self.losses = way.mass, way.losses
        self.lowest = math.exp(float(way.losses[0]))
        low = way.mass * np.exp(-way.losses)
        self.slope = math.fsum(low.tolist())
        rest = math.fsum([*(way.mass - self.lowest * low).tolist(), self.lowest - 1.0])
        self.above = max(0.0, rest) + (len(way.mass) + 50) * 2 * UNIT
        with np.errstate(divide="ignore"):
            self.logarithms = np.log(way.mass)

    def at(self, order: float) -> float:
        """Ln Σ P^α Q^(1 − α) of what dominates, where `order` is α − 1."""
        mass, losses = self.mass, self.losses
        exponents = order * losses
        if float(exponents.max()) < 1:
            near, far = np.expm1(exponents), order * np.expm1(-losses)
            rounding = math.fsum((mass * (np.abs(near) + np.abs(far))).tolist()) * 20 * UNIT
            first = math.exp(order * float(losses[0]))
            edge = max(0.0, (first - 1) * self.lowest - order * (self.lowest - 1)) * max(0.0, 1 - self.slope)
            ends = edge + self.above * (order * first + (1 + order) * (1 - first))
            found = math.log1p(math.fsum((mass * (near + far)).tolist()) + rounding + ends * (1 + 1e-9))
        else:
            terms = self.logarithms + exponents
            peak = float(terms.max())
            error = (len(losses) + 2000 + abs(peak)) * 4 * UNIT
            found = peak + math.log(float(np.exp(terms - peak).sum())) + error
        return max(found, 0.0) * (1 + 8 * UNIT)


def _greatest(grid: Floats, moment: Callable[[int], float], most: float) -> float:
    """The largest (α − 1) D_α/(α(α − 1)) for any α > 1, of the chords; D_α is at most `most`.

    `moment` gives F at a point of the grid. F is convex, so a chord over several steps of the grid lies above theirs:
    it is cut only while it is the highest of all. Some forty moments instead of four hundred.
    """
    moment = cache(moment)

    def chord(left: int, right: int) -> tuple[float, int, int]:
        return -_chord(float(grid[left]), float(grid[right]), moment(left), moment(right)), left, right

    last = len(grid) - 1
    marks = [*range(0, last, _STRIDE), last]
    chords = [chord(left, right) for left, right in pairwise(marks)]
    heapify(chords)
    while chords[0][2] - chords[0][1] > 1:
        _, left, right = heappop(chords)
        middle = (left + right) // 2
        heappush(chords, chord(left, middle))
        heappush(chords, chord(middle, right))
    return max(moment(0) / float(grid[0]), most / (1 + float(grid[-1])), -chords[0][0])


def _chord(left: float, right: float, one: float, two: float) -> float:
    """The largest (A + Bt)/(t(t + 1)), t = α − 1 from left to right, of the line through (left, one), (right, two)."""
    b = (two - one) / (right - left)
    a = one - b * left
    points = [left, right]
    if b and a * a - a * b >= 0:  # its derivative is 0 where Bt² + 2At + A = 0
        roots = [(-a + sign * math.sqrt(a * a - a * b)) / b for sign in (1, -1)]
        points += [t for t in roots if left < t < right]
    return max((a + b * t) / (t * (t + 1)) for t in points)


_FINEST = Fraction(1, 1 << 80)
_ORDERS = tuple(1 + 10 ** (i / 40 - 1.5) for i in range(240))


@dataclass(frozen=True)
class RenyiPrice:
    """Divergences of one round at each order, above 1, rounded up, but for the probability `delta`.

    Prices of rounds add up, order by order, and so do their deltas: also where each round was chosen on the way, at an
    order that was fixed beforehand.

    >>> one = renyi_of_sum(BitFlipLaw.asymmetric(4), 10_000, [32.0])
    >>> round(float(one.divergences[0]), 4), one.plus(one).epsilon(Fraction(1, 10**6)) < 1
    (0.0421, True)
    """

    orders: tuple[float, ...]
    divergences: tuple[Fraction, ...]
    delta: Fraction

    def plus(self, other: "RenyiPrice") -> "RenyiPrice":
        """Both rounds; the orders must be the same."""
        if self.orders != other.orders:
            raise InputError("Rényi prices add up order by order: state both at the same orders")
        both = tuple(a + b for a, b in zip(self.divergences, other.divergences, strict=True))
        return RenyiPrice(self.orders, both, self.delta + other.delta)

    def epsilon(self, delta: Fraction) -> Fraction:
        """ε at this δ, by the best of the orders, rounded up; for a filter, of the one order that was fixed."""
        if delta <= self.delta:
            raise InputError(f"this price needs a δ above {float(self.delta):.3g} to be converted")
        left = math.log(float_below(delta - self.delta))
        found = math.inf
        for order, divergence in zip(self.orders, self.divergences, strict=True):
            gain = math.log1p(-1 / order) - (left + math.log(order)) / (order - 1)
            found = min(found, float(divergence) * (1 + 1e-12) + gain + 1e-12 * (1 + abs(left)) * (1 + 1 / (order - 1)))
        return rounded_up(max(found, 0.0))


def renyi_of_sum(
    law: BitFlipLaw,
    honest: int,
    orders: Sequence[float],
    neighbours: ReportNeighbours = ReportNeighbours.REPLACEMENT,
    spill: Fraction = Fraction(1, 10**12),
) -> RenyiPrice:
    """Rényi divergence of a sum of reports at these orders, whatever the others hold, but for about `spill`."""
    if not orders or not all(1.001 <= order <= 1e7 for order in orders):
        raise InputError("Rényi divergences are computed at orders between 1.001 and 10,000,000")
    ways = losses([SumRound(law, honest)], float(spill), neighbours)
    worst = np.max([_divergences(way, np.array(orders)) for way in ways], axis=0)
    local = neighbours.local(law)
    found = tuple(min(local, Fraction(math.ceil(Fraction(x) / _FINEST)) * _FINEST) for x in worst.tolist())
    return RenyiPrice(tuple(orders), found, _left_out(ways))


def renyi_symmetric(honest: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """ε of a sum of symmetric reports by theorem C.3 of McMillan et al. 2022, rounded up; never above 2ε₀.

    The divergence is twice that of binary randomised response, at each order. The paper leaves the worst data of the
    others open; here they are covered as for the exact law, which is always tighter.

    >>> round(float(renyi_symmetric(1000, Fraction(1), Fraction(1, 10**6))), 3)
    0.198
    """
    law = BitFlipLaw.symmetric(epsilon)
    spill = min(Fraction(1, 10**12), delta / 10**6)
    if spill < Fraction(1, 10**40):
        return law.replacement
    price = renyi_of_sum(law, honest, _ORDERS, spill=spill)
    return law.replacement if delta <= price.delta else min(law.replacement, price.epsilon(delta))


def _divergences(way: PrivacyLossDistribution, orders: Floats) -> Floats:
    """ln(Σ m e^((α − 1) l))/(α − 1) at every order, rounded up."""
    excess = math.log(max(1.0, float(way.mass.sum())))  # that is in δ_t
    logarithms = np.log(way.mass, out=np.full(len(way.mass), -np.inf), where=way.mass > 0)
    logarithms -= excess
    found = np.empty(len(orders))
    for index, order in enumerate(orders - 1):
        terms = logarithms + order * way.losses
        top = float(terms.max())
        error = (len(terms) + 2000 + abs(top)) * 4 * UNIT
        found[index] = max(0.0, top + math.log(float(np.exp(terms - top).sum())) + error) / order * (1 + 4 * UNIT)
    return found


def _left_out(ways: Sequence[PrivacyLossDistribution]) -> Fraction:
    return Fraction(max(way.infinite + max(0.0, float(way.mass.sum()) * (1 + 1e-12) - 1) for way in ways))
