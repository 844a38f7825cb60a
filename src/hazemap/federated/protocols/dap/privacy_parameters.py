"""Two task extensions of ours: the noise of each aggregator, and the terms of a walk down a tree.

No extension of the standard carries these. Their shape follows draft-thomson-ppm-dap-attribution: a budget in
millionths of ε. As parts of the task configuration they are bound into the associated data of every share: a report
opens under the noise and the terms that its device was shown, or not at all.

    noise   uint8 law · uint64 numerator · uint64 denominator · uint16 levels · uint64 micro_epsilon
            · uint64 inverse_delta
    walk    uint8 definition · uint64 numerator · uint64 denominator · uint64 inverse_delta · uint16 levels
            · uint32 prefixes · uint8 nowhere

In a walk a report is verified level after level of a tree, and answers questions about cells of the levels so far. Each
question spends a share of the budget, and both servers refuse what the budget or the number of levels does not cover.
"""

from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from typing import Annotated, Final, Self

from hazemap.errors import InputError
from hazemap.federated.protocols.dap.basic_types import LATEST, check_fraction
from hazemap.federated.protocols.dap.vdaf_configuration import Poplar1Configuration, VdafConfiguration
from hazemap.field_types import check_fields
from hazemap.privacy.budget import ZCDP, ApproxDP, Budget, PureDP, implied_epsilon
from hazemap.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Noise
from hazemap.tables.contribution_bounding import Sensitivity
from hazemap.vdaf.idpf import MOST_BITS
from hazemap.vdaf.poplar1 import MOST_PREFIXES
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


WALK: Final = 0xFF02
"""The type of the task extension, beside that of a task's noise."""


class BudgetDefinition(IntEnum):
    """What kind of budget a report is made for.

    >>> BudgetDefinition.PURE.value
    1
    """

    PURE = 1
    """ε"""
    CONCENTRATED = 2
    """ρ"""
    APPROXIMATE = 3
    """(ε, δ)"""


class Nowhere(IntEnum):
    """What becomes of who is nowhere, whose path begins with a 1.

    Everybody reports, with rows or without. So a device's rows, there or not, turn one path into another, and where who
    is nowhere is counted they move two counts.

    >>> Nowhere.PAID.value
    1
    """

    REFUSED = 0
    """no question counts them: rows move one count, and cost its price"""
    PAID = 1
    """they are counted: every question has the noise of reports that move twice as much"""


@dataclass(frozen=True)
class WalkTerms(Structure):
    """The budget of all questions together, how many levels are verified at most, and with how many prefixes each.

    >>> terms = WalkTerms.of(ApproxDP(1, "1e-6"), levels=5)
    >>> terms.budget, terms.nowhere.name, len(terms.to_bytes())
    (ApproxDP(epsilon=Fraction(1, 1), delta=Fraction(1, 1000000)), 'REFUSED', 32)
    """

    definition: Annotated[BudgetDefinition, code(BudgetDefinition, 1)]
    numerator: Annotated[int, number(8)]
    denominator: Annotated[int, number(8)]
    inverse_delta: Annotated[int, number(8)]
    """1/δ, or 0 where there is no δ"""
    levels: Annotated[int, number(2)]
    prefixes: Annotated[int, number(4)] = MOST_PREFIXES
    """of one level, at most; one more is for who is nowhere"""
    nowhere: Annotated[Nowhere, code(Nowhere, 1)] = Nowhere.REFUSED

    def __post_init__(self) -> None:
        check_fields(self)
        check_fraction("the budget of a task", self.numerator, self.denominator)
        approximate = self.definition is BudgetDefinition.APPROXIMATE
        if approximate is not (self.inverse_delta > 0) or self.inverse_delta == 1 or self.inverse_delta > LATEST:
            raise InputError("a budget of (ε, δ), and no other, has a δ below 1, whose inverse is a whole number")
        if not 1 <= self.levels <= MOST_BITS:
            raise InputError(f"a walk verifies 1 to {MOST_BITS} levels, not {self.levels}")
        if not 1 <= self.prefixes <= MOST_PREFIXES:
            raise InputError(f"a level of a walk has 1 to {MOST_PREFIXES:,} prefixes, not {self.prefixes:,}")
        _ = self.budget  # (ε, δ) that no ρ stays within cannot be spent

    @classmethod
    def of(cls, budget: Budget, levels: int, prefixes: int = MOST_PREFIXES, nowhere: Nowhere = Nowhere.REFUSED) -> Self:
        """The terms for a budget; InputError if it cannot be written exactly."""
        inverse = 1 / budget.delta if isinstance(budget, ApproxDP) else Fraction(0)
        if inverse.denominator != 1:
            raise InputError(f"1/δ of a task is a whole number, not {float(inverse):.6g}")
        match budget:
            case PureDP():
                definition, value = BudgetDefinition.PURE, budget.epsilon
            case ZCDP():
                definition, value = BudgetDefinition.CONCENTRATED, budget.rho
            case ApproxDP():
                definition, value = BudgetDefinition.APPROXIMATE, budget.epsilon
        return cls(definition, *value.as_integer_ratio(), inverse.numerator, levels, prefixes, nowhere)

    @property
    def budget(self) -> Budget:
        """What a report costs the person it is of, however much of it is asked."""
        value = Fraction(self.numerator, self.denominator)
        if self.definition is BudgetDefinition.PURE:
            return PureDP(value)
        if self.definition is BudgetDefinition.CONCENTRATED:
            return ZCDP(value)
        found = ApproxDP(value, Fraction(1, self.inverse_delta))
        _ = found.rho
        return found

    @property
    def candidates(self) -> int:
        """Prefixes that reports may be verified with at one level, that of who is nowhere among them."""
        return self.prefixes + 1

    def moved(self, question: Sensitivity) -> Sensitivity:
        """How far the rows of one person, there or not, move a question that one path moves so far.

        Two paths that both count move it by twice as much in L1, and as they lie in different cells by twice as much
        in L2², too. In a question that counts one of both, this noise costs half of its price. So nobody pays more
        than the budget if neither those at either place do.
        """
        return question if self.nowhere is Nowhere.REFUSED else Sensitivity(*(2 * each for each in question))

    def check(self, measured: VdafConfiguration) -> None:
        """InputError unless the task measures paths of at least so many levels, and at most 64 bits."""
        if not isinstance(measured, Poplar1Configuration):
            raise InputError(f"servers walk along paths (Poplar1), not along {measured.NAME}")
        if self.levels >= measured.bits:
            raise InputError(
                f"paths of {measured.bits} bits have no {self.levels} levels to walk: the last is not asked"
            )
