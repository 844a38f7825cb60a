"""Private selection of the best candidate (exponential mechanism)."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers.laplace import geometric

_CHUNK = 1 << 20  # candidates at a time: about 30 MB


def permute_and_flip(stream: Stream, scores: Ints, sensitivity: int, epsilon: Fraction) -> int:
    """The position of a high score: ε-differentially private, never worse than the exponential mechanism.

    McKenna and Sheldon 2020: go through the candidates in random order and take the first whose coin of
    probability exp(−ε (max − score) / 2Δ) shows heads. The coins do not depend on the order, so the first
    heads in a random order is a uniform choice among all heads; and P(g ≥ max − score) is that probability
    if g is geometric of scale 2Δ/ε. The best candidate's coin always shows heads.

    >>> permute_and_flip(Stream.fixed(b"doctest"), np.array([0, 1000, 3]), 1, Fraction(1))
    1
    """
    if scores.ndim != 1:
        raise InputError("permute-and-flip needs a one-dimensional array of scores")
    return int(permute_and_flip_each(stream, scores, np.array([0, len(scores)]), sensitivity, epsilon)[0])


def permute_and_flip_each(
    stream: Stream, scores: Ints, starts: Ints, sensitivity: int, epsilon: Fraction
) -> NDArray[np.int64]:
    """One private choice in each of many groups of candidates, independent of each other: the position in the group.

    Group i are the scores from `starts[i]` until before `starts[i + 1]`; none is empty. O(scores).

    >>> scores, starts = np.array([0, 1000, 900, 3]), np.array([0, 2, 4])
    >>> permute_and_flip_each(Stream.fixed(b"doctest"), scores, starts, 1, Fraction(1))
    array([1, 0])
    """
    if scores.ndim != 1 or not np.issubdtype(scores.dtype, np.signedinteger):
        raise InputError("permute-and-flip needs a one-dimensional array of at least one integer score")
    number = np.diff(starts)
    if not len(number) or number.min() < 1 or starts[0] or starts[-1] != len(scores):
        raise InputError("permute-and-flip chooses from groups of one candidate or more, which are all of them")
    if sensitivity < 1 or epsilon <= 0:
        raise InputError(
            f"a choice needs a sensitivity of at least 1 and a positive epsilon, not {sensitivity}, {epsilon}"
        )
    whole, found, begin = scores.astype(np.int64, copy=False), np.empty(len(number), dtype=np.int64), 0
    while begin < len(number):  # some groups at a time, so that memory is bounded
        end = max(begin + 1, int(np.searchsorted(starts, starts[begin] + _CHUNK, "right")) - 1)
        some = slice(int(starts[begin]), int(starts[end]))
        found[begin:end] = _each(
            stream, whole[some], starts[begin : end + 1] - starts[begin], 2 * sensitivity / epsilon
        )
        begin = end
    return found


def _each(stream: Stream, scores: Ints, starts: Ints, scale: Fraction) -> Ints:
    best = np.maximum.reduceat(scores, starts[:-1]).view(np.uint64)
    behind = np.repeat(best, np.diff(starts)) - scores.view(np.uint64)  # modulo 2⁶⁴ every difference of two int64 fits
    heads = np.flatnonzero(geometric(stream, scale, len(scores)) >= behind)
    before = np.searchsorted(heads, starts)
    chosen: Ints = heads[before[:-1] + below_each(stream, np.diff(before))] - starts[:-1]
    return chosen


def below_each(stream: Stream, bounds: Ints) -> NDArray[np.int64]:
    """For each bound, of 1 to 2⁵², a uniform integer from 0 to below it: words are cut to length and rejected.

    >>> below_each(Stream.fixed(b"doctest"), np.array([1, 1, 1]))
    array([0, 0, 0])
    """
    if len(bounds) and not 1 <= bounds.min() <= bounds.max() <= 1 << 52:
        raise InputError("numbers are drawn below bounds of 1 to 2^52")
    found = np.zeros(len(bounds), dtype=np.int64)
    bits = np.frexp((bounds - 1).astype(np.float64))[1]  # how many bits the largest number has: exact up to 2⁵³
    todo = np.flatnonzero(bits)
    while todo.size:
        words = stream.words(todo.size) >> (64 - bits[todo]).astype(np.uint64)
        found[todo] = words.astype(np.int64)
        todo = todo[found[todo] >= bounds[todo]]
    return found
