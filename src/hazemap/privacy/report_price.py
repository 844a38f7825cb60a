"""What a report costs its sender against whoever sees only a sum of reports, in the units that a device adds up."""

from dataclasses import dataclass
from fractions import Fraction

from hazemap.errors import InputError
from hazemap.field_types import check_fields


@dataclass(frozen=True)
class ReportPrice:
    """(ε, δ), upper bounds in exact rationals; `rho`, where it is known, is zCDP but for the probability `spill`.

    A pure price, with δ = 0, implies ρ = ε²/2 (Bun and Steinke 2016, proposition 1.4; approximate zCDP: section 8).

    >>> ReportPrice(Fraction(1, 10), Fraction(0)).in_zcdp
    (Fraction(1, 200), Fraction(0, 1))
    """

    epsilon: Fraction
    delta: Fraction
    rho: Fraction | None = None
    spill: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.epsilon < 0 or not 0 <= self.delta < 1 or (self.rho is not None and self.rho < 0):
            raise InputError("a price has an ε and a ρ of 0 or more, and a δ from 0 to below 1")
        if not 0 <= self.spill < 1 or (self.spill and self.rho is None):
            raise InputError("the spill of a price is that of its ρ: 0 or more, and below 1")

    @property
    def in_zcdp(self) -> tuple[Fraction, Fraction] | None:
        """ρ and spill that are known to hold; None where none are."""
        if self.rho is not None:
            return self.rho, self.spill
        return None if self.delta else (self.epsilon**2 / 2, Fraction(0))

    def within(self, other: "ReportPrice") -> bool:
        """Whether this price is no more than another, in ε and δ, and in ρ where the other states one."""
        if self.epsilon > other.epsilon or self.delta > other.delta:
            return False
        mine = self.in_zcdp
        return other.rho is None or (mine is not None and mine[0] <= other.rho and mine[1] <= other.spill)

    def __str__(self) -> str:
        return f"(ε, δ) = ({float(self.epsilon):.6g}, {float(self.delta):.3g})"
