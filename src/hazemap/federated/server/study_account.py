"""What a study may still cost: under its own limit, and under that of its analysis over all studies."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from hazemap.federated.server.campaign_store import CampaignStore

_OF_ANALYSIS = "SELECT epsilon, delta FROM study_rounds WHERE analysis = ? AND state <> 'refused' AND created > ?"

Paid = Sequence[tuple[Fraction, Fraction]]
"""ε and δ of each round that was paid."""


class Left(NamedTuple):
    """What may still be spent: by a study, or on its analysis by all studies together, whichever is less.

    >>> Left(Fraction(2), Fraction(1, 10**5), 3).after([(Fraction(1, 2), Fraction(1, 10**6))]).reports
    2
    """

    epsilon: Fraction
    delta: Fraction
    reports: int

    def after(self, paid: Paid) -> "Left":
        """What is left once these rounds are paid; never below 0."""
        return Left(
            max(Fraction(0), self.epsilon - sum((epsilon for epsilon, _ in paid), Fraction(0))),
            max(Fraction(0), self.delta - sum((delta for _, delta in paid), Fraction(0))),
            max(0, self.reports - len(paid)),
        )


NOTHING = Left(Fraction(0), Fraction(0), 0)


def least(one: Left, other: Left) -> Left:
    """The smaller of each."""
    return Left(min(one.epsilon, other.epsilon), min(one.delta, other.delta), min(one.reports, other.reports))


def paid_of_analysis(store: CampaignStore, analysis: str, since: str) -> Paid:
    """What rounds of an analysis have cost since then, whichever study asked them."""
    return [(Fraction(epsilon), Fraction(delta)) for epsilon, delta in store.read(_OF_ANALYSIS, analysis, since)]
