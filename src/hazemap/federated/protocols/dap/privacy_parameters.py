"""A task extension of ours: the noise that each aggregator adds, and what it lets a report cost the person it is of.

No extension of the standard carries this. Its shape follows draft-thomson-ppm-dap-attribution: a budget in millionths
of ε. As a part of the task configuration it is bound into the associated data of every share, so a report opens under
the noise that its device was told, or not at all.

    uint8 law · uint64 numerator · uint64 denominator · uint16 levels · uint64 micro_epsilon · uint64 inverse_delta
"""

from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from typing import Annotated, Final, Self

from hazemap.errors import InputError
from hazemap.federated.protocols.dap.basic_types import LATEST, check_fraction
from hazemap.federated.protocols.dap.vdaf_configuration import Poplar1Configuration, VdafConfiguration
from hazemap.field_types import check_fields
from hazemap.privacy.implied_epsilon import implied_epsilon
from hazemap.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Noise
from hazemap.vdaf.tls_encoding import Structure, code, number

PRIVACY_PARAMETERS: Final = 0xFF01
"""The type of the task extension; no range is set aside for private use, so it is far from what will be given out."""
MICRO: Final = 10**6
MOST_LEVELS: Final = 1024
"""No string has more bits that a tree could be walked along, with room."""


class NoiseLaw(IntEnum):
    """The law of each aggregator's noise, and what its parameter is.

    >>> NoiseLaw.DISCRETE_LAPLACE.value
    1
    """

    DISCRETE_LAPLACE = 1
    """by its scale"""
    DISCRETE_GAUSSIAN = 2
    """by its variance σ²"""


@dataclass(frozen=True)
class PrivacyParameters(Structure):
    """The noise of one aggregator on one collection, how often a batch may be collected, and the most it all costs.

    The price counts one aggregator's noise, as the other may be dishonest. Neighbours differ by one report.

    >>> terms = PrivacyParameters.of(DiscreteLaplace(Fraction(20)), levels=4, epsilon=Fraction(1, 5))
    >>> terms.noise, terms.epsilon, terms.delta, len(terms.to_bytes())
    (DiscreteLaplace(scale=Fraction(20, 1)), Fraction(1, 5), Fraction(0, 1), 35)
    """

    law: Annotated[NoiseLaw, code(NoiseLaw, 1)]
    numerator: Annotated[int, number(8)]
    denominator: Annotated[int, number(8)]
    levels: Annotated[int, number(2)]
    micro_epsilon: Annotated[int, number(8)]
    inverse_delta: Annotated[int, number(8)]
    """1/δ, or 0 where δ is 0"""

    def __post_init__(self) -> None:
        check_fields(self)
        check_fraction("the parameter of the noise", self.numerator, self.denominator)
        if not 1 <= self.micro_epsilon <= LATEST:
            raise InputError(f"the budget of a task is a 64-bit number of millionths of ε, not {self.micro_epsilon}")
        if not self.noise.fits:
            raise InputError(f"noise so wide cannot be drawn: at most {self.noise.widest}")
        if not 1 <= self.levels <= MOST_LEVELS:
            raise InputError(f"a batch is collected at 1 to {MOST_LEVELS} levels, not {self.levels}")
        if (self.inverse_delta == 0) != (self.law is NoiseLaw.DISCRETE_LAPLACE):
            raise InputError("Gaussian noise is priced at a δ above 0, Laplace noise at none")
        if self.inverse_delta == 1 or not 0 <= self.inverse_delta <= LATEST:
            raise InputError(f"δ must be below 1, and 1/δ a whole number of 64 bits, not {self.inverse_delta}")

    @classmethod
    def of(cls, noise: Noise, levels: int, epsilon: Fraction, delta: Fraction = Fraction(0)) -> Self:
        """The parameters for a noise and a budget; InputError if one of them cannot be written exactly."""
        micro, inverse = epsilon * MICRO, 1 / delta if delta else Fraction(0)
        if micro.denominator != 1 or inverse.denominator != 1:
            raise InputError(f"ε is a whole number of millionths and 1/δ a whole number, not {epsilon} and {delta}")
        laplace = isinstance(noise, DiscreteLaplace)
        parameter = noise.scale if isinstance(noise, DiscreteLaplace) else noise.variance
        law = NoiseLaw.DISCRETE_LAPLACE if laplace else NoiseLaw.DISCRETE_GAUSSIAN
        return cls(law, *parameter.as_integer_ratio(), levels, micro.numerator, inverse.numerator)

    @property
    def noise(self) -> Noise:
        """What each aggregator adds to each of its sums, once a level."""
        parameter = Fraction(self.numerator, self.denominator)
        return DiscreteLaplace(parameter) if self.law is NoiseLaw.DISCRETE_LAPLACE else DiscreteGaussian(parameter)

    @property
    def epsilon(self) -> Fraction:
        """The budget that the task names."""
        return Fraction(self.micro_epsilon, MICRO)

    @property
    def delta(self) -> Fraction:
        """The δ that it is named for."""
        return Fraction(1, self.inverse_delta) if self.inverse_delta else Fraction(0)

    def price(self, measured: VdafConfiguration) -> Fraction:
        """The ε that all levels cost a person: levels · Δ₁/scale, or that of ρ = levels · Δ₂²/2σ² at δ, rounded up."""
        noise = self.noise
        if isinstance(noise, DiscreteLaplace):
            return self.levels * Fraction(measured.norm_1) / noise.scale
        return implied_epsilon(self.levels * Fraction(measured.norm_2_squared) / (2 * noise.variance), self.delta)

    def check(self, measured: VdafConfiguration) -> None:
        """InputError if the noise costs more than the budget that the task names, or if levels mean nothing here."""
        if self.levels > 1 and not isinstance(measured, Poplar1Configuration):
            raise InputError(f"{measured.NAME} collects a batch once: {self.levels} levels are for Poplar1")
        if isinstance(measured, Poplar1Configuration) and self.levels > measured.bits:
            raise InputError(f"strings of {measured.bits} bits have no {self.levels} levels")
        if (price := self.price(measured)) > self.epsilon:
            raise InputError(
                f"the task names a budget of ε = {float(self.epsilon):.6g}, and its noise costs {float(price):.6g}: "
                "name the price, add noise or collect fewer levels"
            )
