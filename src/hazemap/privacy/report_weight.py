"""How many 1s an honest randomised report has at most: what servers that prove a report's weight let through.

A device whose coins give more throws them all again. The number of 1s has one law for all who have a place, so that
changes no local ε; and it happens so rarely that sums keep their law but for the chance that is stated.
"""

import math
from fractions import Fraction

import numpy as np

from hazemap.errors import InputError
from hazemap.privacy.amplification.certified_bounds import binomial
from hazemap.privacy.local_randomisers import Bits, Randomiser
from hazemap.privacy.random_stream import Stream

LEAST_CHANCE = Fraction(1, 10**40)
TOO_HEAVY = Fraction(1, 1 << 40)
"""The chance that any honest report of a batch has more 1s than servers let through."""


def most_ones(law: Randomiser, size: int, chance: Fraction) -> int:
    """The least m such that a report of `size` places has more than m 1s with this chance at most. O(√size).

    1s are Bern(p) + Bin(size − 1, q); the tail is summed with bounds of every float, so m may be one too large, never
    too small.

    >>> from hazemap.privacy.local_randomisers import Symmetric
    >>> most_ones(Symmetric(Fraction(5)), 4_096, Fraction(1, 10**9))
    65
    """
    if size < 1 or not LEAST_CHANCE <= chance < 1:
        raise InputError("the weight of a report is bounded for 1 place or more, and a chance from 10^-40 to below 1")
    p, q = law.chances
    goal = math.nextafter(float(chance), 0)
    others = binomial(size - 1, q, 1 - q, goal * 1e-6)
    above = np.cumsum(others.mass[::-1])[::-1] * (1 + others.relative + len(others.mass) * 2.0**-52) + others.outside
    # P(W > m) = p P(X ≥ m) + (1 − p) P(X > m), where X counts the others' 1s
    at_least = np.append(above, others.outside)
    tail = (p * at_least[:-1] + (1 - p) * at_least[1:]) * (1 + 2.0**-50)
    enough = np.flatnonzero(tail <= goal)
    most = others.start + (int(enough[0]) if len(enough) else len(others.mass))
    return min(most, size)


def report_within(law: Randomiser, stream: Stream, place: int | None, size: int, most: int) -> Bits:
    """What one person sends, uint8[size]: drawn again while it has more than `most` 1s.

    With the bound of `most_ones` that happens to hardly anybody.
    """
    if not 1 <= most <= size:
        raise InputError(f"a report of {size:,} places has at most 1 to {size:,} of them set, not {most:,}")
    while int((bits := law.report(stream, place, size)).sum()) > most:
        pass
    return bits
