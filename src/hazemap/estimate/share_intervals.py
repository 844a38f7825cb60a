"""The share of people with a mark, from a noisy number with it and another without it: estimate and interval."""

from dataclasses import dataclass

import numpy as np

from hazemap.estimate.confidence_margins import checked_confidence, reach
from hazemap.machine_code.arrays import Floats

TURNS = 4
"""How often the margin is fitted to where an interval ends: its law changes slowly along it."""


@dataclass(frozen=True, eq=False)
class Shares:
    """Noisy numbers with a mark and without it, float64[n] each, unbiased; their noise is independent.

    `noise` is its standard deviation in the numbers with and without, `kurtosis` its excess kurtosis in each; `grain`
    is the least step of a number, 0 where there is none.

    >>> found = Shares(np.array([200.0]), np.array([800.0]), (10.0, 10.0))
    >>> found.values, [end.round(3) for end in found.interval(0.95)]
    (array([0.2]), [array([0.184]), array([0.216])])
    """

    marked: Floats
    without: Floats
    noise: tuple[float, float]
    kurtosis: tuple[float, float] = (0.0, 0.0)
    grain: float = 0.0

    @property
    def people(self) -> Floats:
        """All of them: unbiased, and perhaps below 0."""
        return self.marked + self.without

    @property
    def values(self) -> Floats:
        """The best guess, within 0 … 1 and within every interval; NaN where there seem to be no people at all."""
        marked, without = np.maximum(self.marked, 0), np.maximum(self.without, 0)
        some = self.people > 0
        return np.where(some, marked / np.where(some, marked + without, 1), np.nan)

    def interval(self, confidence: float = 0.95, sampled: bool = False) -> tuple[Floats, Floats]:
        """Low and high ends, within 0 … 1. With `sampled`, the people asked stand for more people like them.

        Fieller (1954): p is in the interval iff (1 − p) · marked − p · without is no further from 0 than its noise
        reaches with this confidence. That noise is a weighted sum of two laws, of which `reach` knows the shape at
        every p; margins are of whole people, as noise is. A sample adds people · p(1 − p) to its variance (with no
        noise this is Wilson's interval). A number below 0 is taken for 0 first, so the interval is never empty and
        holds the best guess. Where noise could explain that nobody is there, it is 0 … 1. O(n).
        """
        checked_confidence(confidence)
        x, y = np.maximum(self.marked, 0), np.maximum(self.without, 0)
        start = np.full(len(x), float(reach(confidence, max(self.kurtosis), at_most=True)))
        low, high = self._ends(x, y, start, sampled)
        for _ in range(TURNS):
            low, high = (
                self._ends(x, y, reach(confidence, self._kurtosis(end, x + y, sampled)), sampled)[at]
                for at, end in enumerate((low, high))
            )
        return low, high

    def _kurtosis(self, p: Floats, people: Floats, sampled: bool) -> Floats:
        """The excess kurtosis of (1 − p) · marked − p · without."""
        parts = [(weight * noise) ** 2 for weight, noise in zip((1 - p, p), self.noise, strict=True)]
        whole = parts[0] + parts[1] + sampled * people * p * (1 - p)
        fourth = sum(each * part**2 for each, part in zip(self.kurtosis, parts, strict=True))
        found: Floats = np.divide(fourth, whole**2, out=np.zeros_like(p), where=whole > 0)
        return found

    def _ends(self, x: Floats, y: Floats, reach: Floats, sampled: bool) -> tuple[Floats, Floats]:
        """Both ends, where noise reaches this many of its standard deviations: the roots of a quadratic."""
        mx, my = (self._whole(reach * noise) ** 2 for noise in self.noise)
        people = x + y
        spread = reach**2 * people * sampled
        a, b, c = people**2 - mx - my + spread, 2 * (mx - x * people) - spread, x**2 - mx
        some = (people > 0) & (a > 0)
        half = np.sqrt(np.maximum(b**2 - 4 * a * c, 0)) / np.where(some, 2 * a, 1)
        middle = -b / np.where(some, 2 * a, 1)
        guess = x / np.where(people > 0, people, 1)  # a root may miss it by rounding
        low, high = np.minimum(middle - half, guess), np.maximum(middle + half, guess)
        return np.where(some, np.clip(low, 0, 1), 0.0), np.where(some, np.clip(high, 0, 1), 1.0)

    def _whole(self, margin: Floats) -> Floats:
        return margin if self.grain == 0 else np.ceil(margin / self.grain - 1e-9) * self.grain
