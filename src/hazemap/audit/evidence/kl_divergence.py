"""A lower bound on ρ from samples: the Kullback–Leibler divergence of two laws, which is ρ at most.

ρ-zCDP bounds the divergence of order α by ρα, and so that of order 1 by ρ. For every function g,
KL(P ‖ Q) ≥ E_P g − log E_Q e^g (Donsker and Varadhan 1975). Nothing is lost if g is the logarithm of the likelihood
ratio; here it is a score, times a factor and cut off at both ends, both learned from other samples. Both means are of
bounded numbers, so each has a bound of its own (Maurer and Pontil 2009, theorem 4).
"""

from dataclasses import dataclass
from math import inf, log, sqrt

import numpy as np

from hazemap.arrays import Floats

_FACTORS = (0.5, 0.8, 1.0, 1.25, 2.0)
_ENDS = (0.5, 1.0, 2.0, 3.0, 4.0)


@dataclass(frozen=True)
class Tilt:
    """g: a score less `middle`, times `factor`, cut off at ±`end`; and the divergence that it proved."""

    middle: float
    factor: float
    end: float
    proved: float = 0.0

    def of(self, scores: Floats) -> Floats:
        """G of each."""
        return np.clip((scores - self.middle) * self.factor, -self.end, self.end)


def best_tilt(here: Floats, there: Floats, alpha: float) -> Tilt:
    """The function that proves most of these samples."""
    apart, spread = float(here.mean() - there.mean()), float(np.var(there)) + 1e-12
    middle, slope = float(here.mean() + there.mean()) / 2, apart / spread
    tried = (Tilt(middle, slope * factor, end) for factor in _FACTORS for end in _ENDS)
    judged = (Tilt(each.middle, each.factor, each.end, divergence(here, there, each, alpha)) for each in tried)
    return max(judged, key=lambda each: each.proved)


def divergence(here: Floats, there: Floats, tilt: Tilt, alpha: float) -> float:
    """A lower bound on KL of the law of `here` from that of `there`, wrong with probability alpha."""
    least = float(tilt.of(here).mean()) - _error(tilt.of(here), 2 * tilt.end, alpha / 2)
    raised = np.exp(tilt.of(there))
    most = float(raised.mean()) + _error(raised, float(np.exp(tilt.end) - np.exp(-tilt.end)), alpha / 2)
    return max(0.0, least - log(most))


def _error(sample: Floats, width: float, alpha: float) -> float:
    """What the mean of independent numbers within such a width misses by more with probability alpha at most."""
    count, doubt = len(sample), log(2 / alpha)
    if count < 2:
        return inf
    return sqrt(2 * float(sample.var(ddof=1)) * doubt / count) + 7 * width * doubt / (3 * (count - 1))
