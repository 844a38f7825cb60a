"""From where to where most of a noisy histogram is: arrays in, numbers out.

Each bin has noise of standard deviation σ and an excess kurtosis, independent of the others.
"""

from functools import lru_cache
from math import ceil, log2
from typing import NamedTuple

import numpy as np

from hazemap.arrays import Floats
from hazemap.estimate.ratio_estimates import loudest

Noise = tuple[float, float]

CHANCE, FURTHER = 0.01, 0.05
"""How probable it is that noise alone looks like a crowd where there is nobody; and like one more beside a crowd."""

PENALTY = 2.0
"""A bin belongs to a crowd if it adds more than so many standard errors."""

SLACK = 2.0
"""So many times more may be left out, where noise hides it."""

SURE = 3.0
"""Standard errors that are added to what is said to lie beyond."""


class Top(NamedTuple):
    """The last bin that holds a crowd, and how many there are in all of them."""

    last: int
    people: float


class HistogramRange(NamedTuple):
    """Bins `first` to `last` hold most; no more than parts `before` and `behind` of all lie outside, as far as noise
    lets anybody say (three standard errors are added).
    """

    first: int
    last: int
    before: float
    behind: float


def topmost(counts: Floats, noise: Noise, beyond: float) -> Top | None:
    """The last bin that holds many, but for a part `beyond` of all; None where noise could explain everything.

    A crowd is a run of bins whose sum noise alone would bring to *any* run in less than 1 case of 100 (a union bound:
    half of the chance for runs of one bin, a quarter for those of two, …). Of these runs that one is taken whose sum,
    less two standard errors a bin, is largest; then others beside it. Their last bins are left out while no more than
    `beyond` of the crowds is in them: so a few values that are a thousand times too large change nothing. O(bins²).
    """
    crowds = np.zeros(len(counts), dtype=bool)
    todo = [(0, len(counts))]
    while todo:
        begin, end = todo.pop()
        run = _crowd(counts[begin:end], noise, (FURTHER if crowds.any() else CHANCE) / len(counts))
        if run is not None:
            first, last = begin + run[0], begin + run[1]
            crowds[first : last + 1] = True
            todo += [(begin, first), (last + 1, end)]
    if not crowds.any():
        return None
    held = np.where(crowds, counts, 0.0)
    people = float(held.sum())
    above = np.cumsum(held[::-1])[::-1]  # what is in a bin and in those after it
    return Top(int(np.flatnonzero(above > beyond * people).max()), people)


def _crowd(counts: Floats, noise: Noise, chance: float) -> tuple[int, int] | None:
    """The best run among these bins; noise alone may look like one that begins at a given bin with this probability."""
    size = len(counts)
    until = np.concatenate([[0.0], np.cumsum(counts)])
    sums = until[None, 1:] - until[:-1, None]  # from bin i to the end of bin j
    lengths = np.arange(size)[None, :] - np.arange(size)[:, None] + 1
    enough = np.array([_enough(length, noise, chance) for length in range(1, size + 1)])
    loud = (lengths > 0) & (sums > enough[np.maximum(lengths, 1) - 1])
    if not loud.any():
        return None
    at = int(np.argmax(np.where(loud, sums - PENALTY * noise[0] * lengths, -np.inf)))
    return divmod(at, size)


@lru_cache(maxsize=1024)
def _enough(length: int, noise: Noise, chance: float) -> float:
    """What noise alone brings to a run of so many bins with a probability that, over all lengths, adds up to less."""
    return loudest(length, noise, chance / 2 ** (2 * ceil(log2(length)) + 1))


def best_bins(people: float, stddev: float, most: int) -> int:
    """A power of two: as many bins as leave about eight standard errors in each of a quarter of them; at least 8.

    As many as there may be where noise is 0, as at an ε of a million.

    >>> best_bins(1_000, 28, 128), best_bins(100_000, 28, 128), best_bins(200, 0, 128)
    (16, 128, 128)
    """
    wanted = people / (2 * stddev) if stddev > 0 else most
    return int(min(max(2 ** round(log2(max(wanted, 1.0))), 8), most))


def ends(counts: Floats, noise: Noise, beyond: float) -> HistogramRange:
    """Of a histogram whose outermost bins are what lies outside: all bins but those with a part `beyond` at each side.

    From each side bins are left out until the noisy sum of those before stays above `beyond` of all and one and a half
    standard errors (or `SLACK` times as much, if that is less). Where there are few people noise decides, and more or
    less of them may be left out; how many at most is said. O(bins).
    """
    people = max(float(counts.sum()), 1.0)
    errors = noise[0] * np.sqrt(np.arange(1, len(counts) + 1))
    upto, behind = np.cumsum(counts), np.cumsum(counts[::-1])
    limit = beyond * people + np.minimum(1.5 * errors, (SLACK - 1) * beyond * people)
    first, left_behind = max(_stays(upto, limit), 1), max(_stays(behind, limit), 1)
    last = len(counts) - 1 - left_behind
    if first > last:
        first, last = 1, len(counts) - 2

    def most(sums: Floats, left_out: int) -> float:
        """What may lie in the bins that are left out, as a part of all."""
        sure = max(float(sums[left_out - 1]), 0.0) + SURE * float(errors[left_out - 1])
        return min(sure / people, 1.0)

    return HistogramRange(first, last, most(upto, first), most(behind, len(counts) - 1 - last))


def _stays(sums: Floats, limit: Floats) -> int:
    """How many bins come before the sum is above the limit for good."""
    return len(sums) - int(np.argmin(np.append((sums > limit)[::-1], False)))
