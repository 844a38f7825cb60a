"""How long arrays are, or how many samples a person counts for: chosen from public numbers of samples alone."""

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Ints
from hazemap.tables.sample_arrays import SampleCounts


def median_length(contributions: SampleCounts) -> int:
    """The (lower) median of m_ℓ: within a factor 2 of the least noise of Array-Averaging (Rameshwar et al. 2024).

    >>> median_length(SampleCounts(np.array([1, 9, 5])))
    5
    """
    return int(np.sort(contributions.counts)[(contributions.people - 1) // 2])


def most_arrays(contributions: SampleCounts) -> int:
    """The m of the largest K√m, K = ⌊Σ min(m_ℓ, m)/m⌋, m one of the m_ℓ: the least noise of Levy's mean but for logs.

    >>> most_arrays(SampleCounts(np.array([1, 9, 5, 9, 9])))
    9
    """
    lengths, kept, _ = contributions.distinct
    return int(lengths[np.argmax(kept // lengths * np.sqrt(lengths))])


def worst_case_length(contributions: SampleCounts, epsilon: float) -> int:
    """m^(ε), the length with the least worst-case error: always one of the m_ℓ, and the longer the larger ε is.

    >>> some = SampleCounts(np.array([1, 9, 5, 9, 400]))
    >>> worst_case_length(some, 0.01), worst_case_length(some, 100)
    (1, 400)
    """
    lengths, kept, _ = contributions.distinct
    return int(lengths[np.argmin(_worst(lengths, kept, contributions.total, epsilon))])


def worst_case_error(contributions: SampleCounts, length: int, epsilon: float) -> float:
    """Largest bias of Array-Averaging over all tables plus the mean size of its noise, as a part of the range U.

    1 − Σ min(m_ℓ, m)/Σ m_ℓ + m/(ε Σ min(m_ℓ, m)) (Rameshwar et al. 2024, equation 1).

    >>> worst_case_error(SampleCounts(np.array([2, 2])), 1, 1.0)
    1.0
    """
    kept = np.array([contributions.kept(length).sum()])
    return float(_worst(np.array([length]), kept, contributions.total, epsilon)[0])


def _worst(lengths: Ints, kept: Ints, total: int, epsilon: float) -> NDArray[np.float64]:
    return 1 - kept / total + lengths / (epsilon * kept)
