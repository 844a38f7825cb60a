"""What chance makes of a client's neighbours: how many are corrupt, how many stay, and whether a ring holds."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log

from hazemap.protocols.secure_aggregation.hypergeometric_tails import at_least, log_all_gone

SECURITY = 2.0**-41
"""How likely each of two bad events may be at most, so that both together stay below 2⁻⁴⁰."""
CORRECTNESS = 2.0**-20
"""How likely a round among honest people may fail at most."""


@dataclass(frozen=True)
class NeighbourProbabilities:
    """The laws of the number of corrupt and of missing neighbours, and what a finder asks of them.

    Of `clients` invited, `corrupt` work with a server that `lies`, or does not, and `missing` drop out.

    >>> everybody = NeighbourProbabilities(1000, corrupt=50, missing=100, lies=False, drawn_from=899, staying=999)
    >>> everybody.least_threshold(36), everybody.most_threshold(36), everybody.ring_holds(36)
    (19, 19, True)
    """

    clients: int
    corrupt: int
    missing: int
    lies: bool
    drawn_from: int
    """how many an honest client's neighbours are drawn from, where most are corrupt"""
    staying: int
    """how many they are drawn from, where most drop out later"""

    def least_threshold(self, degree: int) -> int:
        """The least t that corrupt neighbours do not reach (or 2t, k + c, where the server lies); at least 1."""
        drawn = min(degree, self.drawn_from)
        fails, holds = -1, min(self.corrupt, drawn)  # the corrupt are at most this many, but for SECURITY / n
        while holds - fails > 1:
            middle = (fails + holds) // 2
            if at_least(self.drawn_from, self.corrupt, drawn, middle + 1) < SECURITY / self.clients:
                holds = middle
            else:
                fails = middle
        return (degree + holds) // 2 + 1 if self.lies else holds + 1

    def most_threshold(self, degree: int) -> int:
        """The largest t that every client's surviving neighbours reach, but for CORRECTNESS; 0 if there is none."""
        holds, fails = 0, degree + 1
        while fails - holds > 1:
            middle = (fails + holds) // 2
            if at_least(self.staying, self.missing, degree, degree - middle + 1) < CORRECTNESS / self.clients:
                holds = middle
            else:
                fails = middle
        return holds

    def ring_holds(self, degree: int) -> bool:
        """Whether the honest survivors on a ring of everybody are connected, but for SECURITY."""
        pairs = log(self.clients) + log(self.clients - degree - 1) - log(2)
        return pairs + log_all_gone(self.clients, self.corrupt + self.missing, degree) < log(SECURITY)

    def rings(self, last: int | None = None) -> Iterator[tuple[int, int, int]]:
        """Ascending degrees of connected rings, up to `last`, with their least and most threshold; no hopeless ones.

        Two draws more cannot lower the number of corrupt neighbours, nor add more than two survivors. So of what
        the most threshold lacks, a step of 2 in the degree makes up for at most 2, or 1 where the server lies.
        """
        degree, step = 2, 1 if self.lies else 2
        while degree < self.clients - 1 and (last is None or degree <= last):
            lacks = 1
            if self.ring_holds(degree):
                least, most = self.least_threshold(degree), self.most_threshold(degree)
                yield degree, least, most
                lacks = least - most
            degree += 2 * max(1, -(-lacks // step))
