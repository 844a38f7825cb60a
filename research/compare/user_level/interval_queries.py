"""The simplest mechanism for a distribution, to be beaten by trees: every part is asked for by itself.

Rameshwar et al. 2024: the number of people up to each of K bins, each with the noise of a K-th of the budget, for one
person more moves all of them.
"""

from fractions import Fraction

import numpy as np

from hazemap.arrays import Floats
from hazemap.estimate.isotonic_regression import monotone
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers import discrete_laplace


def interval_queries(values: Floats, edges: Floats, epsilon: Fraction, stream: Stream) -> Floats:
    """The parts up to each bin, never falling and in [0, 1], of one value a person; float64[bins].

    >>> parts = interval_queries(np.array([1.0, 4, 9]), np.array([0.0, 5, 10]), Fraction(100), Stream.fixed(b"doctest"))
    >>> parts.round(2)
    array([0.67, 1.  ])
    """
    counts = np.cumsum(np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0])
    noisy = counts + discrete_laplace(stream, Fraction(len(counts)) / epsilon, len(counts))
    return monotone(noisy / max(int(noisy[-1]), 1))
