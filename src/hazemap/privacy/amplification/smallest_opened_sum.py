"""How many honest reports hide one: the n of every price, from the sums that can be opened."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from hazemap.errors import InputError


@dataclass(frozen=True)
class OpenedSum:
    """A sum that some party can open: how many were invited to it, and how many of their reports are in it.

    >>> OpenedSum(invited=1000, survivors=900).honest(Fraction(1, 10))
    800
    """

    invited: int
    survivors: int

    def __post_init__(self) -> None:
        if not 0 <= self.survivors <= self.invited:
            raise InputError(f"of {self.invited:,} people invited, {self.survivors:,} cannot have reported")

    def honest(self, corrupt: Fraction) -> int:
        """Honest reports in it, at least: every corrupt device that was invited may have survived."""
        if not 0 <= corrupt <= 1:
            raise InputError(f"the corrupt part of the people lies between 0 and 1, not at {float(corrupt):.6g}")
        return max(0, self.survivors - ceil(corrupt * self.invited))


def honest_in_smallest_sum(sums: Iterable[OpenedSum], corrupt: Fraction) -> int:
    """The n of a price: honest survivors of the smallest sum that any party can open or obtain by subtracting two.

    Where opened sums share no report, list them all: subtracting one from another hides a person among more reports,
    not fewer. Where they share reports, list instead the *pieces*: the sets of reports that are in exactly the same
    sums (`pieces`). Every opened sum is a sum of pieces, so whoever is told the sums of all pieces knows no less. A
    person's report is in one piece, and the pieces are independent; so the price is that of a sum of as many honest
    reports as their piece has, and nobody pays more than those in the smallest. For a piece, `invited` is still the
    number of people among whom the corrupt part is assumed, for all of the corrupt ones may be in it.

    Corrupt devices know their own reports, so they hide nobody: they are subtracted, all of them, as are sybils and
    reports that were not randomised. Zero means that no price but the local ε₀ can be stated.

    >>> honest_in_smallest_sum([OpenedSum(1000, 900), OpenedSum(1000, 650)], Fraction(1, 10))
    550
    """
    counts = [one.honest(corrupt) for one in sums]
    if not counts:
        raise InputError("no sum was opened, so there is nothing to price: list the sums that can be opened")
    return min(counts)


def pieces(sums: Sequence[Collection[Hashable]]) -> list[int]:
    """Sizes of the sets of reports that are in exactly the same sums, from the reports in each sum.

    Two sums of the same thousand people, of whom three came late, are pieces of 997 and 3.

    >>> sorted(pieces([range(997), range(1000)]))
    [3, 997]
    """
    places: dict[Hashable, int] = {}
    for index, members in enumerate(sums):
        for member in set(members):
            places[member] = places.get(member, 0) | 1 << index
    return list(Counter(places.values()).values())
