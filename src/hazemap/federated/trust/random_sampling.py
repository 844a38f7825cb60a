"""Random samples of people, without replacement, and random dropouts, drawn from a stream."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import distinct
from hazemap.errors import InputError
from hazemap.privacy.random_stream import Stream


def without_replacement(stream: Stream, population: int, number: int) -> NDArray[np.int64]:
    """`number` different ranks below `population`, ascending; every set of that size is as likely as any other.

    Ranks are drawn one by one and those that came before are passed over, in batches no larger than what is still
    wanted: so the last of a batch never stands back for an earlier one. O(number log number), or, where more than half
    are wanted, O(population) for those who are left out.

    >>> without_replacement(Stream.from_os(), 3, 3)
    array([0, 1, 2])
    """
    if not 0 <= number <= population:
        raise InputError(f"{number} people cannot be drawn from {population} without drawing somebody twice")
    if 2 * number > population:
        kept = np.ones(population, dtype=np.bool_)
        kept[without_replacement(stream, population, population - number)] = False
        return np.flatnonzero(kept)
    found = np.zeros(0, dtype=np.uint64)
    while len(found) < number:
        found = distinct(np.concatenate([found, _below(stream, population, number - len(found))]))
    return found.view(np.int64)


def _below(stream: Stream, bound: int, number: int) -> NDArray[np.uint64]:
    """At most `number` (more than a third of them on average) uniform numbers below a bound."""
    words = stream.words(number) >> np.uint64(64 - max(1, (bound - 1).bit_length()))
    return words[words < bound]


def happens(stream: Stream, number: int, probability: Fraction) -> NDArray[np.bool_]:
    """`number` independent events of a probability, to 64 binary digits."""
    if probability == 1:
        return np.ones(number, dtype=np.bool_)
    happened: NDArray[np.bool_] = stream.words(number) < np.uint64(int(probability * 2**64))
    return happened
