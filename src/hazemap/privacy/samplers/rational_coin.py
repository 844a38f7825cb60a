"""Exact Bernoulli samples of rational probability."""

from dataclasses import dataclass
from fractions import Fraction

from hazemap.errors import InputError


@dataclass(frozen=True)
class RationalCoin:
    """Heads with probability p, 0 < p < 1; its binary digits are those of a division.

    >>> bin(RationalCoin(Fraction(1, 3)).digits(8))
    '0b1010101'
    """

    p: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.p < 1:
            raise InputError("a coin shows heads with a probability between 0 and 1")

    def digits(self, n: int) -> int:
        """⌊p · 2ⁿ⌋."""
        return (self.p.numerator << n) // self.p.denominator
