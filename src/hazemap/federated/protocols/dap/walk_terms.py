"""A task extension of ours: what one report of a path lets two servers be asked, in all (one report, whole tree).

A report is verified level after level of a tree, and answers questions about cells of the levels so far. Each question
spends a share of the budget, and both servers refuse what the budget or the number of levels does not cover. As a part
of the task configuration the terms are bound into the associated data of every share: a device that was told others
makes reports that do not open.

    uint8 definition · uint64 numerator · uint64 denominator · uint64 inverse_delta · uint16 levels · uint32 prefixes
    · uint8 nowhere
"""

from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from typing import Annotated, Final, Self

from hazemap.errors import InputError
from hazemap.federated.protocols.dap.basic_types import LATEST, check_fraction
from hazemap.federated.protocols.dap.vdaf_configuration import Poplar1Configuration, VdafConfiguration
from hazemap.field_types import check_fields
from hazemap.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from hazemap.tables.contribution_bounding import Sensitivity
from hazemap.vdaf.idpf import MOST_BITS
from hazemap.vdaf.poplar1 import MOST_PREFIXES
from hazemap.vdaf.tls_encoding import Structure, code, number

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
