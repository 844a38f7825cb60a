"""Privacy losses on a grid that dominate a pair of laws: what composition adds up."""

import math
from dataclasses import dataclass, replace

import numpy as np

from hazemap.machine_code.arrays import Floats
from hazemap.privacy.amplification.certified_bounds import UNIT

_LONGEST = 4096
"""Points of a grid; a longer one is made coarser before it is composed."""


@dataclass(frozen=True, eq=False)
class PrivacyLossDistribution:
    """Mass m_i at the losses l_i = (first + i) · step, and `infinite` at ∞: a bound of hockey-stick divergences.

    It dominates a pair (P, Q) if H_γ(P‖Q) ≤ D(γ) = infinite + Σ m_i max(0, 1 − γ e^(−l_i)) for every γ ≥ 0. Then it
    dominates every adaptive composition too: H_γ of the two rounds is ∫ H_{γ/L₁}(second) dP₁ ≤ ∫ D₂(γ/L₁) dP₁, D₂ is
    a mixture of functions max(0, 1 − γ e^(−l)), and for each of them the integral is H at γ e^(−l) of the first round
    again. No mass need add up to 1 for that, so any of it may be rounded up: whatever raises m_i, or moves it to a
    higher loss, raises D. `step` is a power of two, so losses are exact floats.

    >>> told = PrivacyLossDistribution(0.5, 0, np.array([0.5, 0.5]), 0.0)
    >>> round(told.delta(0.0), 6), round(told.compose(told).delta(0.0), 6)
    (0.196735, 0.354765)
    """

    step: float
    first: int
    mass: Floats
    infinite: float

    @classmethod
    def from_curve(cls, step: float, first: int, curve: Floats) -> "PrivacyLossDistribution":
        """From upper bounds of H at γ_i = e^((first + i) step): connect the dots (Doroshenko et al. 2022).

        H is convex in γ, is 1 at 0 and falls; so chords lie above it. The slopes of D are those of the chords, or the
        next steeper one, and D at the last point is the mass at ∞.
        """
        curve = np.minimum.accumulate(np.minimum(curve, 1.0))
        # -slopes, times gamma at the left end of the interval, then the same in units of 1/gamma
        gamma = np.exp(step * np.arange(first, first + len(curve)))
        slopes = np.append((curve[:-1] - curve[1:]) / (gamma[:-1] * math.expm1(step)), 0.0)
        slopes = np.append((1 - curve[0]) / gamma[0], slopes)
        slopes = np.maximum.accumulate(slopes[::-1])[::-1]
        mass = gamma * (slopes[:-1] - slopes[1:])
        return cls(step, first, mass * (1 + 200 * UNIT), float(curve[-1]))

    @property
    def losses(self) -> Floats:
        """The losses of the grid, float64[size]."""
        return np.arange(self.first, self.first + len(self.mass), dtype=np.float64) * self.step

    def compose(self, other: "PrivacyLossDistribution", spill: float = 0.0) -> "PrivacyLossDistribution":
        """Both rounds. Up to `spill` of each far end is moved upward. O(size²), with sizes below 4,096."""
        one, two = self._short(), other._short()
        while one.step < two.step:
            one = one.coarser()
        while two.step < one.step:
            two = two.coarser()
        rounding = 1 + 1.1 * (min(len(one.mass), len(two.mass)) + 4) * UNIT
        infinite = one.infinite + two.infinite * float(one.mass.sum()) + 1e-250  # for products that underflow
        mass = np.convolve(one.mass, two.mass) * rounding
        return PrivacyLossDistribution(one.step, one.first + two.first, mass, infinite * rounding)._trimmed(spill)

    def rounds(self, times: int, spill: float = 0.0) -> "PrivacyLossDistribution":
        """The same round so many times: O(log times) compositions."""
        done: PrivacyLossDistribution | None = None
        power = self
        while times:
            if times & 1:
                done = power if done is None else done.compose(power, spill)
            times >>= 1
            if times:
                power = power.compose(power, spill)
        return done or replace(self, first=0, mass=np.ones(1), infinite=0.0)

    def coarser(self) -> "PrivacyLossDistribution":
        """On a grid of twice the step: a mass between two points goes to both so that Σ m e^(−l) stays.

        That spreads e^(−l), in which max(0, 1 − γ e^(−l)) is convex, so D only grows.
        """
        mass, first = self.mass, self.first
        if first % 2:
            mass, first = np.append(0.0, mass), first - 1
        if len(mass) % 2 == 0:
            mass = np.append(mass, 0.0)
        up = 1 / (1 + math.exp(-self.step))
        halves = mass[::2].copy()
        halves[1:] += mass[1::2] * up
        halves[:-1] += mass[1::2] * (1 - up)
        return PrivacyLossDistribution(2 * self.step, first // 2, halves * (1 + 20 * UNIT), self.infinite)

    def delta(self, epsilon: float) -> float:
        """D(e^ε), rounded up."""
        losses = self.losses
        above = losses > epsilon
        total = float(np.sum(self.mass[above] * -np.expm1(epsilon - losses[above]))) + self.infinite
        return min(1.0, total * (1 + (len(losses) + 100) * UNIT))

    def epsilon(self, delta: float) -> float:
        """The least ε ≥ 0 with D(e^ε) ≤ δ, rounded up; ∞ if there is none.

        D is a straight line in γ between two points: D_i = D_{i+1} + (γ_{i+1} − γ_i) Σ_{j>i} m_j/γ_j.
        """
        goal = delta * (1 - 4 * (len(self.mass) + 100) * UNIT)
        if self.infinite > goal:
            return math.inf
        losses = self.losses
        low, high = -1, len(losses) - 1  # D at the loss of `high` is within the goal; that of `low` is not
        if self.delta(0.0) <= goal:
            return 0.0
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.delta(float(losses[middle])) <= goal else (middle, high)
        top = float(losses[high])
        slope = float(np.sum(self.mass[high:] * np.exp(top - losses[high:])))  # Σ m_j γ_high/γ_j, from it on
        room = goal - self.delta(top)
        least = top + math.log1p(-room / slope * (1 - 1e-12)) if room < slope else 0.0
        if low >= 0:
            least = max(least, float(losses[low]))
        return max(least, 0.0) * (1 + 1e-12) + 1e-14

    def _short(self) -> "PrivacyLossDistribution":
        short = self
        while len(short.mass) > _LONGEST:
            short = short.coarser()
        return short

    def _trimmed(self, spill: float) -> "PrivacyLossDistribution":
        """Without ends that hold `spill` at most: the upper goes to ∞, the lower to the lowest loss that is kept."""
        above = np.cumsum(self.mass[::-1])[::-1]
        below = np.cumsum(self.mass)
        begin = int(np.searchsorted(below, spill, "right"))
        end = len(above) - int(np.searchsorted(above[::-1], spill, "right"))
        if not begin < end:
            return self
        mass = self.mass[begin:end].copy()
        rounding = 1 + 2 * (len(above) + 4) * UNIT
        if begin:
            mass[0] += below[begin - 1] * rounding
        gone = float(above[end]) * rounding if end < len(above) else 0.0
        return PrivacyLossDistribution(self.step, self.first + begin, mass, (self.infinite + gone) * (1 + 2 * UNIT))
