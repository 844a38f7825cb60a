"""Findings of an audit: tests whose error is known only once all of them are counted."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import Any

from hazemap.lab.audit.confidence_bounds import Claim


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
