"""What a share of a budget buys where each person's one report answers every question."""

from dataclasses import dataclass
from fractions import Fraction

from hazemap.encoders import Counts, Encoder
from hazemap.federated.trust.prefix_walk import flat
from hazemap.federated.trust.two_servers import price_share
from hazemap.privacy.budget import Budget
from hazemap.privacy.two_server_noise import TwoServerNoise
from hazemap.tables.contribution_bounding import Sensitivity


def moved(encoder: Encoder) -> Sensitivity:
    """How far a person's rows, there or not, move a question: twice as far where who is nowhere is counted, too.

    Everybody reports. So rows that are there or not turn a path into that of nowhere, which counts in another cell
    (`protocols.dap.walk_terms`).

    >>> from hazemap import AtMostRows, Leaves, Outside, Quadtree
    >>> cells = Leaves.at_level(Quadtree.world(depth=1), 1)
    >>> moved(Counts(cells, AtMostRows(1, Outside.DROP))).l1, moved(Counts(cells, AtMostRows(1, Outside.PEOPLE))).l1
    (1, 2)
    """
    outside = any(isinstance(each, Counts) and each.bounding.outside.asked for each in flat(encoder))
    return Sensitivity(*(2 * each for each in encoder.sensitivity)) if outside else encoder.sensitivity


@dataclass(frozen=True)
class OneReportPrices:
    """Each of two servers adds the whole noise, for rows that move a question as far as `moved` says.

    >>> from hazemap import AtMostRows, Leaves, Outside, PureDP, Quadtree
    >>> counts = Counts(Leaves.at_level(Quadtree.world(depth=1), 1), AtMostRows(1, Outside.DROP))
    >>> round(OneReportPrices(PureDP(1)).stddev(counts, Fraction(1, 10)), 2)
    19.99
    """

    budget: Budget

    def noise(self, encoder: Encoder, share: Fraction) -> TwoServerNoise:
        """Of each server, for a share of the budget."""
        return TwoServerNoise.within(self.budget.part(share), moved(encoder))

    def stddev(self, encoder: Encoder, share: Fraction) -> float:
        """The standard deviation of the noise in each sum."""
        return self.noise(encoder, share).stddev

    def share(self, encoder: Encoder, stddev: float) -> Fraction:
        """The least share that buys a standard deviation this small."""
        return price_share(self.budget, moved(encoder), stddev)
