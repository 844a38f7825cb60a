"""What a ledger holds and tells: amounts, charges, the pages of data sets, and what their stewards changed."""

from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal, localcontext
from fractions import Fraction
from typing import Literal

from hazemap.privacy.budget import Budget
from hazemap.privacy.ledger_units import ProtectedUnit
from hazemap.privacy.privacy_unit import Model, Unit
from hazemap.privacy.statement import Statement


@dataclass(frozen=True)
class Amount:
    """So much privacy, or none: ε's of pure differential privacy, or ρ's of zero-concentrated.

    >>> str(Amount("ε", Fraction(0)))
    'ε = 0'
    """

    measure: Literal["ε", "ρ"]
    value: Fraction

    def __str__(self) -> str:
        """Nine digits, rounded down: who asks for what is shown to be left is not refused."""
        with localcontext(prec=9, rounding=ROUND_DOWN):
            return f"{self.measure} = {float(decimal(self.value)):.9g}"


@dataclass(frozen=True)
class Charge:
    """A price that has been paid: of whose privacy, what for, and when (UTC, ISO 8601).

    `model` names the data set's page that paid. The `unit` is `None` where an older hazemap did not note it.

    """

    id: int
    dataset: str
    price: Budget
    what: str
    time: str
    model: Model
    unit: Unit | None


@dataclass(frozen=True)
class LedgerCharge:
    """A charge and what became of it.

    A record that is not `released` was paid for a run that failed, or is still going on; `run` names its journal.
    """

    charge: Charge
    released: bool
    statement: Statement | None
    file: str | None
    run: str | None = None


@dataclass(frozen=True)
class LedgerBalance:
    """What a page of a data set may spend, has spent and has left.

    A data set has a page for the full model, and perhaps one for values-only, where charges of the full model count
    as well, at their price for a replacement; `charges` are the page's own. `protects` is `None` where nothing was
    charged, or where an older hazemap did not note it.

    Without a cap `spent` is in ε if all that counts is pure, else in ρ, and `remaining` is `None`. A cap that was
    lowered below what is spent leaves 0.
    """

    name: str
    model: Model
    protects: ProtectedUnit | None
    cap: Budget | None
    spent: Amount
    remaining: Amount | None
    charges: int
    created: str

    @property
    def page(self) -> str:
        """The page in words."""
        return ("" if self.model == "full" else "the values-only page of ") + f"the data set {self.name!r}"


@dataclass(frozen=True)
class Change:
    """What a steward changed: a page's cap, or (with no model) whom a data set protects; who it was, when and why."""

    dataset: str
    model: Model | None
    old: Budget | ProtectedUnit | None
    new: Budget | ProtectedUnit
    time: str
    who: str
    why: str | None


def decimal(value: Fraction) -> Decimal:
    """A rational in digits, rounded as the context says."""
    return Decimal(value.numerator) / Decimal(value.denominator)
