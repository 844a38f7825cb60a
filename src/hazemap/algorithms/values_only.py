"""Statistics of a value where only values are private: one question about those who were chosen to count."""

from dataclasses import dataclass
from fractions import Fraction

from hazemap.disclosure import Disclosure, Learned
from hazemap.encoders.kept_values import KeptValues
from hazemap.estimate.dialled import KnownPeople
from hazemap.rounds import Prices, Query, Rounds


@dataclass(frozen=True)
class ValuesOnly:
    """All places that are told, asked once with the whole budget; `route` says how those who count were chosen.

    VALUES ONLY: who is where with how many records is public, and everything in here follows from that
    (`algorithms.keeping.best_keeping`). Numbers of people are exact and cost nothing.
    """

    asked: KeptValues
    route: str

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        return Disclosure((Learned.ONLY_VALUES,))

    def rounds(self, prices: Prices) -> Rounds[KnownPeople]:  # noqa: ARG002 - one query needs no price
        """One query."""
        answer = yield Query(self.asked, Fraction(1))
        return KnownPeople.of(self.asked, answer)
