"""Statistics of a value where only values are private: one question about those who were chosen to count."""

from dataclasses import dataclass
from fractions import Fraction

from hazemap.algorithm_disclosure import Disclosure, Learned
from hazemap.encoders.public_location_values import PublicLocationValues
from hazemap.estimate.known_count_estimates import KnownPeople
from hazemap.queries import Prices, Query, Rounds


@dataclass(frozen=True)
class PublicLocationStatistics:
    """All places that are told, asked once with the whole budget; `route` says how those who count were chosen.

    VALUES ONLY: who is where with how many records is public, and everything in here follows from that
    (`algorithms.contribution_selection.best_selection`). Numbers of people are exact and cost nothing.
    """

    asked: PublicLocationValues
    route: str

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        return Disclosure((Learned.ONLY_VALUES,))

    def rounds(self, prices: Prices) -> Rounds[KnownPeople]:  # noqa: ARG002 - one query needs no price
        """One query."""
        answer = yield Query(self.asked, Fraction(1))
        return KnownPeople.of(self.asked, answer)
