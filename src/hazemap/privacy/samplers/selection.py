"""A private choice of the best candidate."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.privacy.samplers.laplace import geometric
from hazemap.privacy.stream import Stream


def permute_and_flip(stream: Stream, scores: NDArray[np.int64], sensitivity: int, epsilon: Fraction) -> int:
    """The position of a high score: ε-differentially private, never worse than the exponential mechanism.

    McKenna and Sheldon 2020: go through the candidates in random order and take the first whose coin of
    probability exp(−ε (max − score) / 2Δ) shows heads. The coins do not depend on the order, so the first
    heads in a random order is a uniform choice among all heads; and P(g ≥ max − score) is that probability
    if g is geometric of scale 2Δ/ε. The best candidate's coin always shows heads.

    >>> permute_and_flip(Stream.fixed(b"doctest"), np.array([0, 1000, 3]), 1, Fraction(1))
    1
    """
    if scores.ndim != 1 or not len(scores) or not np.issubdtype(scores.dtype, np.signedinteger):
        raise InputError("permute-and-flip chooses from a flat array of one integer score or more")
    if sensitivity < 1 or epsilon <= 0:
        raise InputError(f"a choice needs a sensitivity of 1 or more and epsilon above 0, not {sensitivity}, {epsilon}")
    unsigned = scores.astype(np.int64).view(np.uint64)
    behind = unsigned[np.argmax(scores)] - unsigned  # modulo 2⁶⁴, where every difference of two int64 fits
    heads = np.flatnonzero(geometric(stream, 2 * sensitivity / epsilon, len(scores)) >= behind)
    return int(heads[stream.below(len(heads))])
