"""In how many parts a person splits what they add, so that shuffled parts tell nothing but the sum.

The protocol of Ishai et al. (2006), with the analysis of Balle et al. (2020, lemma 5.2) derived anew, with every
constant: docs/concepts/shuffle.md. n honest people split each a group element in m + 1 parts, in a group of 2^g
elements. Their shuffled parts are, but for a total-variation distance τ, a function of the sum alone, with

    τ ≤ ½ √(E[2^(g(C − 1))] − 1),

C being the number of connected components of a random directed graph on n vertices, m edges out of and into each.
Here the expectation is bounded from above in whole rationals.
"""

from fractions import Fraction
from functools import lru_cache
from math import factorial, prod

from hazemap.errors import InputError

MOST_PARTS = 512
"""Parts that are looked for."""

FEWEST_HONEST = 19
"""Honest people that a shuffle needs, at least: below, the parts needed grow without use."""

_E = Fraction(2_718_281_829, 10**9)  # above e


def excess(honest: int, parts: int, group_bits: int) -> Fraction | None:
    """E[2^(g(C − 1))] − 1 at most, for `parts` = m + 1; None where this bound shows nothing.

    Σ_k t_k over k = 2 … n classes that no part leaves, t_k = (1/k!) Π_{j<k} λ_j, with
    λ_j = 3 · 2^g (m − 1)!/Π_{i<m} (m(n − j) + i). As t falls and then rises, t_3 … t_n are at most the larger of the
    two ends.

    >>> round(float(excess(1_000, 8, 16)) * 2**40, 3)
    0.001
    """
    n, m = honest, parts - 1
    if m < 3 or n < FEWEST_HONEST:
        return None
    size = 3 << group_bits

    def step(j: int) -> Fraction:
        return Fraction(size * factorial(m - 1), prod(m * (n - j) + i for i in range(1, m)))

    second = step(1) / 2
    third = second * step(2) / 3
    end = size * factorial(m - 1) * _E**m / (m ** (m - 1) * Fraction(n - 1) ** m)  # t_n ≤ end^(n−1)/n
    if step(3) > 4 or end > Fraction(1, 2):
        return None
    halvings = int(1 / end).bit_length() - 1  # end ≤ 2^−halvings
    last = Fraction(1, n << halvings * min(n - 1, 4096))
    return second + (n - 2) * max(third, last)


def is_secure(honest: int, parts: int, group_bits: int, blocks: int, security: int) -> bool:
    """Whether `blocks` sums together are within 2^−security of a function of the sums: blocks · τ ≤ 2^−security."""
    found = excess(honest, parts, group_bits)
    return found is not None and found * blocks**2 * (1 << 2 * security) <= 4


@lru_cache(maxsize=1024, typed=True)
def parts_for(honest: int, group_bits: int, blocks: int = 1, security: int = 60) -> int:
    """The least number of parts that is enough; `InputError` for too few honest people.

    >>> parts_for(1_000, 16), parts_for(100_000, 16), parts_for(100_000, 272, blocks=256)
    (14, 10, 25)
    """
    if min(group_bits, blocks, security) < 1:
        raise InputError("parts are for sums of at least 1 bit, in at least 1 block, for at least 1 bit of security")
    if honest >= FEWEST_HONEST:
        low = high = 3
        while high < MOST_PARTS and not is_secure(honest, high, group_bits, blocks, security):
            low, high = high, min(2 * high, MOST_PARTS)
        if is_secure(honest, high, group_bits, blocks, security):
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if is_secure(honest, middle, group_bits, blocks, security) else (middle, high)
            return high
    raise InputError(
        f"among {honest:,} honest people {MOST_PARTS} parts of {group_bits:,} bits are not enough for a security of "
        f"2^-{security}: ask more people, or put fewer numbers in a message"
    )
