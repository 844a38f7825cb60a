"""Findings of an audit: lower bounds on what releases give away, and the confidence bounds behind them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import exp, inf, log, log1p, sqrt
from typing import Any

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


@dataclass(frozen=True)
class LossTest:
    """A lower bound on the loss of two neighbours; `lower` gives it for a probability of error."""

    evidence: str
    about: str
    claim: Claim
    lower: Callable[[float], float]
    releases: int
    note: str = ""

    def judged(self, alpha: float) -> "AuditFinding":
        """Broken if the bound passes what was stated."""
        bound, stated = self.lower(alpha), self.claim.value
        broken = bound > stated
        return AuditFinding(
            self.evidence, self.about, broken, self.releases, self.note, self.claim.measure, stated, bound
        )


@dataclass(frozen=True)
class LawTest:
    """A p-value of something that the proof needs: noise independent of noise, sums that are those of the rule."""

    evidence: str
    about: str
    pvalue: float
    releases: int
    note: str = ""

    def judged(self, alpha: float) -> "AuditFinding":
        """Broken if chance would do this with a probability below alpha."""
        broken = self.pvalue < alpha
        return AuditFinding(self.evidence, self.about, broken, self.releases, self.note, pvalue=self.pvalue)


@dataclass(frozen=True)
class Fact:
    """Something that holds or does not, without chance: a charge that is missing, a number that does not follow."""

    evidence: str
    about: str
    broken: bool
    releases: int
    note: str = ""

    def judged(self, alpha: float) -> "AuditFinding":  # noqa: ARG002 - as the other kinds
        """Broken or not."""
        return AuditFinding(self.evidence, self.about, self.broken, self.releases, self.note)


Test = LossTest | LawTest | Fact


@dataclass(frozen=True)
class AuditFinding:
    """One thing that was looked at: the lower bound (or p-value) at its part of the error, and whether it is broken."""

    evidence: str
    about: str
    broken: bool
    releases: int
    note: str = ""
    measure: str = ""
    stated: float = 0.0
    bound: float | None = None
    pvalue: float | None = None

    def to_json(self) -> dict[str, Any]:
        """As JSON values; an infinite bound is a text."""
        facts = {key: value for key, value in self.__dict__.items() if value not in (None, "")}
        if self.bound is not None:
            facts["bound"] = "infinite" if self.bound == inf else round(self.bound, 4)
        return facts


def judge(tests: Iterable[Test], confidence: float) -> list[AuditFinding]:
    """All findings; with probability `confidence` at least no sound release is called broken by any of them.

    Bonferroni: each test by chance gets an equal part of the error. Facts have no error.
    """
    every = list(tests)
    by_chance = sum(not isinstance(test, Fact) for test in every)
    alpha = (1 - confidence) / max(by_chance, 1)
    return [test.judged(alpha) for test in every]
