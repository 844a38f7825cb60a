"""How far one person can move the mean and the variance of a cell, and how far leaving out samples can: exact.

Of person ℓ, Γ_ℓ of m_ℓ samples are kept; values lie in a range of width U. All of it follows from these numbers, which
are public under the VALUES ONLY model (Rameshwar and Tandon 2024, arXiv 2405.06261). Results are parts of U for means,
and of U² for variances (the mean square distance from the mean).

The slides of that paper print the first condition of the variance's bias the other way round (Σm > 2ΣΓ): brute force
over all cells of up to 7 samples (tests) agrees with the one below, and refutes theirs.
"""

from fractions import Fraction

from hazemap.errors import InputError

QUARTER = Fraction(1, 4)


def mean_sensitivity(kept: int, most: int) -> Fraction:
    """Γ*/ΣΓ, where `kept` = ΣΓ and `most` = Γ* = max Γ.

    >>> mean_sensitivity(kept=10, most=4)
    Fraction(2, 5)
    """
    _some(kept, most, kept)
    return Fraction(most, kept)


def variance_sensitivity(kept: int, most: int) -> Fraction:
    """Γ*(ΣΓ − Γ*)/(ΣΓ)² if ΣΓ > 2Γ*; otherwise the largest variance there is: of ΣΓ values at both ends of the range.

    >>> variance_sensitivity(kept=10, most=4), variance_sensitivity(kept=10, most=6), variance_sensitivity(3, 2)
    (Fraction(6, 25), Fraction(1, 4), Fraction(2, 9))
    """
    _some(kept, most, kept)
    return Fraction(most * (kept - most), kept**2) if kept > 2 * most else _largest_variance(kept)


def mean_bias(kept: int, samples: int) -> Fraction:
    """1 − ΣΓ/Σm: all that is left out may lie at one end, and all that is kept at the other.

    >>> mean_bias(kept=9, samples=12)
    Fraction(1, 4)
    """
    _some(kept, 1, samples)
    return 1 - Fraction(kept, samples)


def variance_bias(kept: int, samples: int) -> Fraction:
    """0 if all is kept; ΣΓ(Σm − ΣΓ)/(Σm)² if 2ΣΓ > Σm; otherwise the largest variance of Σm values.

    >>> variance_bias(kept=12, samples=12), variance_bias(kept=9, samples=12), variance_bias(kept=2, samples=12)
    (Fraction(0, 1), Fraction(3, 16), Fraction(1, 4))
    """
    _some(kept, 1, samples)
    if kept == samples:
        return Fraction(0)
    return Fraction(kept * (samples - kept), samples**2) if 2 * kept > samples else _largest_variance(samples)


def _largest_variance(samples: int) -> Fraction:
    return QUARTER if samples % 2 == 0 else QUARTER * (1 - Fraction(1, samples**2))


def _some(kept: int, most: int, samples: int) -> None:
    if not 1 <= most <= kept <= samples:
        raise InputError(f"of {samples} samples 1 or more are kept, not {kept}, of one person {most}")
