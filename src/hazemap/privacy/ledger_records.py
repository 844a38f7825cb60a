"""What a ledger holds: amounts, charges, whom data sets protect, their pages, and what their stewards changed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from hazemap.errors import CodecError, InputError
from hazemap.privacy.budget import Budget, PrivacyAmount
from hazemap.privacy.privacy_unit import Kind, Model, Unit, comparable
from hazemap.privacy.statement import Statement


@dataclass(frozen=True)
class ProtectedUnit:
    """Those whose losses a data set's pages add up: people by their column of ids, rows, or devices.

    How ids are read is `None` until a charge has said it: a steward knows the column, and the table how it is read.

    >>> print(ProtectedUnit("person", "user"))
    people told apart by the column 'user'
    >>> ProtectedUnit("person", "user").agrees(Unit.person("User", "text"))
    True
    """

    kind: Kind
    id_column: str | None = None
    read_as: str | None = None

    def __post_init__(self) -> None:
        if self.kind == "person":
            Unit.person(self.id_column or "", self.read_as or "not said")
        elif self.kind not in ("row", "device") or self.id_column is not None or self.read_as is not None:
            raise InputError("a data set protects people told apart by a column of ids, rows, or devices")

    @classmethod
    def of(cls, unit: Unit) -> "ProtectedUnit":
        """Those whom a charge of this unit is about."""
        return cls(unit.kind, unit.id_column, unit.read_as)

    def agrees(self, unit: Unit) -> bool:
        """Whether prices of this unit are about the same people, so that they add up here.

        People are the same where the column of ids is, however the letters of its name are composed and whatever
        their case (as in SQL). How ids are read may differ, because a file was converted: see `caution`.
        """
        return self.agrees_with(ProtectedUnit.of(unit))

    def agrees_with(self, other: "ProtectedUnit") -> bool:
        """Whether both are the same people, as far as either is known."""
        return self.kind == other.kind and comparable(self.id_column) == comparable(other.id_column)

    def caution(self, dataset: str, unit: Unit) -> str | None:
        """What a steward should look at, although the units agree: ids that are read in another way."""
        if self.read_as in (None, unit.read_as):
            return None
        return (
            f"the data set {dataset!r} protects {self}, so far read as {self.read_as}, and here as {unit.read_as}: its "
            "charges add up only if this tells the same people apart (7 and 07 are one person as whole numbers, and "
            "two as text). If it does not, convert the column, or name another data set with --dataset"
        )

    def refusal(self, dataset: str, unit: Unit) -> str:
        """Why a charge of another unit is not added here, and what to do."""
        same = {
            "person": f"ask for the same people (--person {self.id_column}); if the column was only renamed, name it "
            f"{self.id_column!r} again",
            "row": "ask for rows as people (--bounding 'rows are people')",
            "device": "ask devices (`hazemap campaign`)",
        }[self.kind]
        other = {"person": f"{dataset} by {unit.id_column}", "row": f"{dataset}, rows", "device": f"{dataset}, devices"}
        return (
            f"the data set {dataset!r} adds up what {self} lose, and this release is about {ProtectedUnit.of(unit)}: "
            f"prices of the two do not add up, and none converts into the other. Either {same}; or, if the people's "
            f"agreement allows both, let another data set pay: --dataset {other[unit.kind]!r} (dataset=… in Python)"
        )

    def __str__(self) -> str:
        if self.kind == "person":
            return f"people told apart by the column {self.id_column!r}"
        return "rows, each taken for a person of its own" if self.kind == "row" else "the people of devices"

    def to_json(self) -> dict[str, str]:
        """A plain dict for `json.dumps`."""
        fields = {"kind": self.kind, "id_column": self.id_column, "read_as": self.read_as}
        return {name: value for name, value in fields.items() if value is not None}

    @classmethod
    def from_json(cls, data: object) -> "ProtectedUnit":
        """What `to_json` wrote; `CodecError` for anything else."""
        if not isinstance(data, Mapping) or not {"kind"} <= data.keys() <= {"kind", "id_column", "read_as"}:
            raise CodecError("whom a data set protects is an object with a kind, and perhaps a column of ids")
        try:
            return cls(**data)
        except (InputError, TypeError) as error:
            raise CodecError(f"this JSON does not say whom a data set protects: {error}") from error


@dataclass(frozen=True)
class Charge:
    """A price that has been paid: of whose privacy, what for, and when (UTC, ISO 8601).

    `model` names the data set's page that paid. The `unit` is `None` where an older hazemap did not note it. A charge
    that was just made knows the `total`: what the page's people have paid in all, this included.
    """

    id: int
    dataset: str
    price: Budget
    what: str
    time: str
    model: Model
    unit: Unit | None
    total: PrivacyAmount | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Occasion:
    """What a charge of a schedule pays for: one of its periods, once.

    `allowance` is what all periods of a year may cost in all; a period's name begins with its year.

    >>> from hazemap.privacy.budget import PureDP
    >>> Occasion("nightly", "2026-03-29", PureDP(30)).year
    '2026'
    """

    schedule: str
    period: str
    allowance: Budget

    @property
    def year(self) -> str:
        """The year whose allowance pays."""
        return self.period[:4]


@dataclass(frozen=True)
class PaidPeriod:
    """A charge for a period of a schedule, and what became of it; with `again`, for a question asked once more.

    `rho` is what it was booked with.
    """

    occasion: Occasion
    charge: int
    dataset: str
    price: Budget
    rho: Fraction
    released: bool
    file: str | None
    run: str | None
    again: bool


@dataclass(frozen=True)
class LedgerCharge:
    """A charge and what became of it.

    A record that is not `released` was paid for a run that failed, or is still going on; `run` names its journal, and
    `occasion` the period of a schedule. `who` paid is known where many stewards share a ledger. What a release said
    (`statement`) may be forgotten after a time (`Ledger.forget`).
    """

    charge: Charge
    released: bool
    statement: Statement | None
    file: str | None
    run: str | None = None
    occasion: Occasion | None = None
    who: str | None = None


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
    spent: PrivacyAmount
    remaining: PrivacyAmount | None
    charges: int
    created: str

    @property
    def page(self) -> str:
        """The page in words."""
        return ("" if self.model == "full" else "the values-only page of ") + f"the data set {self.name!r}"


@dataclass(frozen=True)
class LedgerChange:
    """What a steward changed: a page's cap, or (with no model) whom a data set protects; who it was, when and why."""

    dataset: str
    model: Model | None
    old: Budget | ProtectedUnit | None
    new: Budget | ProtectedUnit
    time: str
    who: str
    why: str | None
