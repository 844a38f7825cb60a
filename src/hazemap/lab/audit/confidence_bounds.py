"""Lower bounds on the privacy loss from frequencies of events, at a stated probability of error."""

from dataclasses import dataclass
from math import exp, inf, log, log1p, sqrt

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.privacy.budget import ZCDP, ApproxDP, Budget, PureDP

_ORDERS = np.concatenate([1 + np.geomspace(1e-3, 60, 90)])
"""The α at which Rényi divergences of two coins are compared."""


def at_least(hits: int, trials: int, alpha: float) -> float:
    """A probability that is at most the true one, wrong with probability alpha (Clopper and Pearson 1934, one-sided).

    >>> round(at_least(90, 100, 0.05), 3)
    0.836
    """
    from scipy.special import betaincinv

    return float(betaincinv(hits, trials - hits + 1, alpha)) if hits else 0.0


def at_most(hits: int, trials: int, alpha: float) -> float:
    """A probability that is at least the true one, wrong with probability alpha.

    >>> round(at_most(10, 100, 0.05), 3)
    0.164
    """
    return 1 - at_least(trials - hits, trials, alpha)


@dataclass(frozen=True)
class Claim:
    """What is claimed of two neighbours: ε, but for a probability `delta`; or ρ. Losses are in the same measure.

    >>> Claim("ε", 1.0).loss(0.5, 0.25) == log(2)
    True
    """

    measure: str
    value: float
    delta: float = 0.0

    @classmethod
    def of(cls, budget: Budget) -> "Claim":
        """The claim of a budget; (ε, δ) is judged as the largest ρ with which normal noise keeps it.

        >>> round(Claim.of(ApproxDP(1, "1e-6")).value, 4)
        0.028
        """
        if isinstance(budget, PureDP):
            return cls("ε", float(budget.epsilon))
        return cls("ρ", float(budget.rho) if isinstance(budget, ZCDP) else _largest_rho(budget))

    def __post_init__(self) -> None:
        if self.measure not in ("ε", "ρ"):
            raise InputError(f"a loss is in ε or in ρ, not in {self.measure!r}")

    def loss(self, here: float, there: float) -> float:
        """The least ε (or ρ) under which an event can have probability `here` on one table and `there` on the other.

        For ε it is ln((here − δ)/there); for ρ the largest D_α/α of two coins with these probabilities
        (post-processing). 0 where the event is not more likely here.
        """
        here -= self.delta
        if here <= there or here <= 0:
            return 0.0
        if self.measure == "ε":
            return inf if there <= 0 else log(here / there)
        if there <= 0:
            return inf
        both = [(here, there)] + ([(1 - here, 1 - there)] if here < 1 else [])
        powers = [_ORDERS * log(p) + (1 - _ORDERS) * log(q) for p, q in both if p > 0]
        divergence = np.logaddexp.reduce(powers, axis=0) / (_ORDERS - 1)
        return max(0.0, float((divergence / _ORDERS).max()))

    def together(self, losses: NDArray[np.float64]) -> float:
        """The loss of independent parts: both ε's and ρ's add."""
        return float(np.sum(losses))

    def lower(self, here: tuple[int, int], there: tuple[int, int], alpha: float) -> float:
        """The loss that (hits, trials) on one table and on the other prove, wrong with probability alpha."""
        return self.loss(at_least(*here, alpha / 2), at_most(*there, alpha / 2))


def _largest_rho(budget: ApproxDP) -> float:
    """By bisection in δ = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), with ρ = μ²/2 (Balle and Wang 2018, theorem 8)."""
    from scipy.special import log_ndtr

    epsilon, delta, low, high = float(budget.epsilon), float(budget.delta), 1e-12, 1e6
    for _ in range(200):
        rho = sqrt(low * high)
        move = sqrt(2 * rho)
        here = exp(log_ndtr(move / 2 - epsilon / move))
        there = exp(min(0.0, epsilon + log_ndtr(-move / 2 - epsilon / move)))
        low, high = (rho, high) if here - there <= delta else (low, rho)
    return low


def guesses(right: int, made: int, alpha: float) -> float:
    """ε that so many right guesses prove of canaries put in by fair coins, wrong with probability alpha.

    If a release is ε-DP, then the number of right among r guesses of whether a canary was put in is at most, in
    distribution, Binomial(r, e^ε/(1 + e^ε)) (Steinke, Nasr and Jagielski 2023, theorem 5.2 with δ = 0); guesses may
    be withheld, and depend on the whole release. So ε is at least the logit of the Clopper–Pearson bound.

    >>> round(guesses(7311, 10_000, 0.05), 2)
    0.96
    """
    if not made:
        return 0.0
    least = at_least(right, made, alpha)
    return max(0.0, log(least) - log1p(-least)) if 0 < least < 1 else 0.0
