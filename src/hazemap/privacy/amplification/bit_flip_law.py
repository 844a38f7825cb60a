"""The law of one report: each bit of a one-hot vector is sent as 1 with a probability that depends on the bit alone."""

from dataclasses import dataclass
from fractions import Fraction

from hazemap.errors import InputError
from hazemap.privacy.amplification.certified_bounds import exp_bounds, ln_bounds, rounded_up
from hazemap.privacy.budget import Number, exact

LARGEST_EPSILON = 200
"""An ε₀ above it leaves no noise that a float could see."""

SMALLEST_EPSILON = Fraction(1, 1 << 20)

_NARROW = Fraction(1, 1 << 60)

Enclosure = tuple[Fraction, Fraction]
"""A lower and an upper bound of one number."""


@dataclass(frozen=True)
class BitFlipLaw:
    """A person's own bit is sent as 1 with probability `keep`, each other bit with probability `turn_on`.

    Both are between rationals, relatively 2⁻⁶⁰ apart at most, and so are 1 − keep and 1 − turn_on. `replacement` is the
    local ε₀ where a person's bit may be another one, ln(keep (1 − turn_on)/(turn_on (1 − keep))); `removal` where it
    may be none, max(ln(keep/turn_on), ln((1 − turn_on)/(1 − keep))). Both are rounded up. Make one with `asymmetric`,
    `symmetric` or `unary`.

    >>> law = BitFlipLaw.symmetric(Fraction(1))
    >>> law.replacement, law.removal, round(float(law.turn_on[0]), 4)
    (Fraction(2, 1), Fraction(1, 1), 0.2689)
    """

    keep: Enclosure
    turn_on: Enclosure
    replacement: Fraction
    removal: Fraction

    def __post_init__(self) -> None:
        for low, high in (self.keep, self.turn_on):
            if not 0 < low <= high < 1 or high - low > _NARROW * min(low, 1 - high):
                raise InputError("a report must leave doubt: its two probabilities lie between 0 and 1, not at an end")
        if self.turn_on[1] >= self.keep[0]:
            raise InputError("a bit that is set must be sent as 1 more often than one that is not: keep > turn_on")
        kept, lost = _logarithms(self.keep, self.turn_on, 0)
        if self.replacement < kept + lost or self.removal < max(kept, lost):
            raise InputError("the local ε₀ of a law of reports was stated too small: make it with one of its methods")

    @classmethod
    def asymmetric(cls, epsilon: Number) -> "BitFlipLaw":
        """With keep = ½ and turn_on = 1/(e^ε₀ + 1): ε₀-DP for replacement, ln((e^ε₀ + 1)/2) for removal.

        Optimised unary encoding (Wang et al. 2017), the asymmetric one-hot encoding of McMillan et al. 2022.
        """
        epsilon = _checked(epsilon)
        low, high = exp_bounds(epsilon)
        half = Fraction(1, 2)
        removal = rounded_up(ln_bounds((high + 1) / 2)[1])
        return cls((half, half), (1 / (high + 1), 1 / (low + 1)), epsilon, min(removal, epsilon))

    @classmethod
    def symmetric(cls, epsilon: Number) -> "BitFlipLaw":
        """With turn_on = 1 − keep = 1/(e^ε₀ + 1): ε₀-DP for removal, 2ε₀ for replacement (Erlingsson et al. 2014)."""
        epsilon = _checked(epsilon)
        low, high = exp_bounds(epsilon)
        flip = (1 / (high + 1), 1 / (low + 1))
        return cls((1 - flip[1], 1 - flip[0]), flip, 2 * epsilon, epsilon)

    @classmethod
    def unary(cls, keep: Fraction, turn_on: Fraction) -> "BitFlipLaw":
        """Any two rationals with 0 < turn_on < keep < 1.

        >>> float(BitFlipLaw.unary(Fraction(3, 4), Fraction(1, 4)).removal)
        1.098612289
        """
        if not 0 < turn_on < keep < 1:
            raise InputError(f"unary encoding needs 0 < turn_on < keep < 1, not turn_on {turn_on} and keep {keep}")
        first, second = (keep, keep), (turn_on, turn_on)
        kept, lost = _logarithms(first, second, 1)
        return cls(first, second, rounded_up(kept + lost), rounded_up(max(kept, lost)))

    @property
    def chances(self) -> tuple[float, float, float, float]:
        """keep, 1 − keep, turn_on and 1 − turn_on as floats, each relatively within 2⁻⁵²."""
        kept, lit = self.keep[0], self.turn_on[0]
        return float(kept), float(1 - kept), float(lit), float(1 - lit)

    @property
    def mirrored(self) -> bool:
        """Whether turn_on = 1 − keep: the two kinds of bit are alike."""
        return self.keep[0] + self.turn_on[1] == 1


def _logarithms(keep: Enclosure, turn_on: Enclosure, side: int) -> tuple[Fraction, Fraction]:
    """Bounds of ln(keep/turn_on) and ln((1 − turn_on)/(1 − keep)): below for side 0, above for side 1."""
    kept = ln_bounds(keep[side] / turn_on[1 - side])[side]
    return kept, ln_bounds((1 - turn_on[1 - side]) / (1 - keep[side]))[side]


def _checked(epsilon: Number) -> Fraction:
    value = exact(epsilon, "epsilon")
    if not 0 < value <= LARGEST_EPSILON:
        raise InputError(f"a local epsilon lies above 0 and at most at {LARGEST_EPSILON}, not at {float(value):.6g}")
    if value < SMALLEST_EPSILON:
        raise InputError("a local epsilon below 2^-20 says nothing about anyone: choose a larger one")
    return value
