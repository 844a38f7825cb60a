"""The pages of a data set: what counts on each, and whether there is room for one more charge."""

import json
import math
import shlex
from collections.abc import Callable
from decimal import localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeVar

from hazemap.errors import CapExceeded, CodecError, LedgerError
from hazemap.privacy.budget import ZCDP, Budget, PrivacyAmount, PureDP, decimal
from hazemap.privacy.ledger_records import Charge, LedgerBalance, LedgerChange, LedgerCharge, Occasion, ProtectedUnit
from hazemap.privacy.ledger_store import RESTORE, LedgerReads
from hazemap.privacy.privacy_unit import FULL, VALUES_ONLY, Model, Unit
from hazemap.privacy.statement import Statement, budget_from_json

T = TypeVar("T")

Paid = tuple[Budget, Fraction]
"""A price, and the ρ it was booked with."""

MANY = 40
"""Digits behind the point, at most, of what was paid in all."""

LAST = 2**62
"""More than any charge's number."""


@lru_cache(maxsize=1024)
def read_budget(text: str) -> Budget:
    """A price or a cap as the ledger holds it."""
    return _read(text, budget_from_json, "holds a price that hazemap did not write")


def read_unit(text: str | None) -> Unit | None:
    """Whose a charge is, as the ledger holds it; `None` where an older hazemap did not note it."""
    return None if text is None else _read(text, Unit.from_json, "holds a unit that hazemap did not write")


def read_protected(text: str | None) -> ProtectedUnit | None:
    """Whom a data set protects, as the ledger holds it."""
    return None if text is None else _read(text, ProtectedUnit.from_json, "does not say whom a data set protects")


def _read(text: str, from_json: Callable[[object], T], wrong: str) -> T:
    try:
        return from_json(json.loads(text))
    except (CodecError, ValueError, TypeError) as error:
        raise LedgerError(f"the ledger {wrong} ({error}): {RESTORE}") from error


def for_a_replacement(price: Budget, rho: Fraction | None = None) -> Budget:
    """What a price of the full model costs under values-only; `rho` is the one it was booked with, if it was.

    Two tables are neighbours of the full model if they differ by one person added or removed, and of values-only if
    one person's values differ. Replacing is removing and adding: from D by way of D without the person to D'. So a
    mechanism of the full model is private under replacement as it is for groups of two:

    * pure ε costs 2ε: P(M(D) ∈ S) ≤ e^ε P(M(D°) ∈ S) ≤ e^2ε P(M(D') ∈ S);
    * ρ costs 4ρ: a group of k costs k²ρ (Bun and Steinke 2016, proposition 1.9); and so does (ε, δ), which every
      `ApproxDP` here spends as a ρ.

    The other way round nothing finite follows: a release under values-only may tell whereabouts exactly.

    >>> for_a_replacement(PureDP(1)), for_a_replacement(ZCDP("0.1"))
    (PureDP(epsilon=Fraction(2, 1)), ZCDP(rho=Fraction(2, 5)))
    """
    if isinstance(price, PureDP):
        return PureDP(2 * price.epsilon)
    return ZCDP(4 * (price.rho if rho is None else rho))


def counted(db: LedgerReads, name: str, model: Model, last: int = LAST) -> list[Paid]:
    """All that counts on a page: its own charges, and on that of values-only those of the full model as well.

    Up to the charge `last`, this one included; by default all.
    """
    own = _charged(db, name, model, last)
    if model == FULL:
        return own
    return own + [(for_a_replacement(price, rho), 4 * rho) for price, rho in _charged(db, name, FULL, last)]


def pure(paid: list[Paid]) -> bool:
    """Whether all of it is in pure ε."""
    return all(isinstance(price, PureDP) for price, _ in paid)


def page_status(db: LedgerReads, name: str, model: Model) -> LedgerBalance | None:
    """A page, or `None` where the data set has no such page."""
    row = db.execute(
        "SELECT cap, cap_rho, pages.created, protects FROM pages JOIN datasets ON name = dataset "
        "WHERE dataset = ? AND model = ?",
        (name, model),
    ).fetchone()
    if row is None:
        return None
    text, rho, created, protects = row
    cap = None if text is None else read_budget(text)
    own = len(_charged(db, name, model))
    room = room_of(db, name, model, cap, None if rho is None else booked(rho))
    return LedgerBalance(name, model, read_protected(protects), cap, *room, own, created)


class BudgetRoom(NamedTuple):
    """What a page has spent, in the measure of a cap, and what of that remains; None without a cap."""

    spent: PrivacyAmount
    remaining: PrivacyAmount | None


def room_of(db: LedgerReads, name: str, model: Model, cap: Budget | None, rho: Fraction | None) -> BudgetRoom:
    """What a page has spent and has left if this is its cap, booked with this ρ."""
    paid = counted(db, name, model)
    limit: PrivacyAmount | None = None
    if isinstance(cap, PureDP) and pure(_charged(db, name, model)) and not pure(paid):
        # of schema 1, where charges of the full model did not count here: no ε bounds what was paid
        spent = PrivacyAmount("ρ", sum((rho for _, rho in paid), Fraction(0)))
        return BudgetRoom(spent, PrivacyAmount("ε", Fraction(0)))
    if isinstance(cap, PureDP):
        limit = PrivacyAmount("ε", cap.epsilon)
    elif cap is not None:
        limit = PrivacyAmount("ρ", rho or cap.rho)
    measure = limit.measure if limit else None
    spent = _sum(paid, measure)
    remaining = PrivacyAmount(limit.measure, max(limit.value - spent.value, Fraction(0))) if limit else None
    return BudgetRoom(spent, remaining)


def _sum(paid: list[Paid], measure: Literal["ε", "ρ"] | None = None) -> PrivacyAmount:
    """All of it in this measure; by default in ε if all of it is pure, else in ρ."""
    found = measure or ("ε" if pure(paid) else "ρ")
    return PrivacyAmount(found, sum((cost_in(price, rho, found) for price, rho in paid), Fraction(0)))


def paid_by(db: LedgerReads, name: str, model: Model, charge: int) -> PrivacyAmount:
    """What a page's people had paid in all with this charge, which is the same for ever: nothing before it changes.

    In ε if all of it is pure, else in ρ, whatever the cap. It is for people to read, so one of very many digits is
    rounded up.
    """
    found = _sum(counted(db, name, model, charge))
    if found.value.denominator < 10**MANY:
        return found
    return PrivacyAmount(found.measure, Fraction(math.ceil(found.value * 10**MANY), 10**MANY))


def paid_with(db: LedgerReads, name: str, model: Model, price: Budget) -> PrivacyAmount:
    """What they will have paid in all with one more price."""
    return _sum([*counted(db, name, model), (price, price.rho)])


def pure_by(db: LedgerReads, name: str, model: Model) -> bool:
    """Whether all that counts on a page was paid in pure ε."""
    return pure(counted(db, name, model))


def check_room(
    db: LedgerReads, name: str, price: Budget, rho: Fraction, model: Model, first: LedgerBalance | None = None
) -> None:
    """Raise `CapExceeded` unless every page that a charge counts on has room; filling a cap exactly is allowed.

    It is booked with this ρ.

    `first` is the charge's own page with the cap that it gets with this charge.
    """
    full, values = (first if first and model == each else page_status(db, name, each) for each in (FULL, VALUES_ONLY))
    if model == VALUES_ONLY:
        if full and full.cap and not (values and values.cap):
            raise CapExceeded(
                f"the data set {name!r} has a cap, {full.cap}, which is about whereabouts too: values-only tells these "
                "exactly, so no cap of that kind covers it; if the people's agreement allows it, say how much may be "
                f"spent on their values alone, with `hazemap ledger cap {shlex.quote(name)} … --values-only`"
            )
    elif full:
        _check_page(full, price, rho, model)
    if values:
        _check_page(values, price, rho, model)


def _charged(db: LedgerReads, name: str, model: Model, last: int = LAST) -> list[Paid]:
    """A page's own charges, up to one."""
    asked = "SELECT price, rho FROM charges WHERE dataset = ? AND model = ? AND id <= ?"
    rows = db.execute(asked, (name, model, last)).fetchall()
    return [(read_budget(price), booked(rho)) for price, rho in rows]


def _check_page(status: LedgerBalance, price: Budget, rho: Fraction, model: Model) -> None:
    left = status.remaining
    if left is None:
        return
    option = " --values-only" if status.model == VALUES_ONLY else ""
    command = f"`hazemap ledger cap {shlex.quote(status.name)} …{option}` if the people's agreement allows it"
    has = f"{status.page} has {left} left of its cap {status.cap} (spent {status.spent})"
    if left.measure != status.spent.measure:
        raise CapExceeded(
            f"{has}: charges of the full model count there too, and those in ρ imply no finite pure ε; give it a cap "
            f"in ρ or in (ε, δ) with {command}"
        )
    if left.measure == "ε" and not isinstance(price, PureDP):
        raise CapExceeded(
            f"{has}; this release asks for {price}, which implies no finite pure ε: "
            "ask for pure ε, or give the data set a cap in ρ or in (ε, δ) if the people's agreement allows it"
        )
    here = price if model == status.model else for_a_replacement(price)
    cost = PrivacyAmount(left.measure, cost_in(here, rho if here is price else 4 * rho, left.measure))
    if cost.value <= left.value:
        return
    asked = str(price)
    if here is not price:
        asked += f", which costs {cost} there (who is removed and added has other values)"
    elif left.measure == "ρ" and not isinstance(price, ZCDP):
        asked += f", which costs {cost}"
    ask = f"ask for at most {_most(left, price, converted=here is not price)}, or " if left.value else ""
    raise CapExceeded(f"{has}; this release asks for {asked}: {ask}raise the cap with {command}")


def _most(left: PrivacyAmount, price: Budget, converted: bool) -> PrivacyAmount:
    """What could be asked for instead, in the measure of what was asked for."""
    if left.measure == "ε":
        return PrivacyAmount("ε", left.value / 2 if converted else left.value)
    rho = left.value / 4 if converted else left.value
    if not isinstance(price, PureDP):
        return PrivacyAmount("ρ", rho)
    with localcontext(prec=30):
        return PrivacyAmount("ε", Fraction((2 * decimal(rho)).sqrt()))


def cost_in(price: Budget, rho: Fraction, measure: Literal["ε", "ρ"]) -> Fraction:
    """What a price, booked with this ρ, takes of a cap in this measure."""
    if measure == "ρ":
        return rho
    if isinstance(price, PureDP):
        return price.epsilon
    raise LedgerError(
        f"the ledger holds a charge of {price} under a cap in pure ε, so it was changed by hand: {RESTORE}"
    )


@lru_cache(maxsize=1024)
def booked(text: str) -> Fraction:
    """The ρ that a charge was booked with, as the ledger holds it."""
    try:
        rho = Fraction(text)
    except (ValueError, TypeError, ZeroDivisionError):
        rho = Fraction(0)
    if rho <= 0:
        raise LedgerError(f"the ledger holds a ρ that hazemap did not write: {RESTORE}")
    return rho


CHARGES = (
    "SELECT id, dataset, model, unit, price, what, time, state, statement, file, run, schedule, period, allowance, "
    "{payer} FROM charges ORDER BY id"
)
"""`payer` is how a store says who paid (`LedgerReads.payer`)."""
OLDER = (1, 2)
"""Versions of statements that are not read any more: as if they were forgotten. Their charges count as ever."""

CHANGES = "SELECT dataset, model, old, new, time, who, why FROM changes ORDER BY id"


def charge_of(row: tuple[Any, ...]) -> LedgerCharge:
    """A charge, of a row of `CHARGES`; `LedgerError` for one that hazemap did not write."""
    number, dataset, model, unit, price, what, time, state, text, file, run, schedule, period, allowance, who = row
    try:
        said = None if text is None else json.loads(text)
        older = isinstance(said, dict) and said.get("statement") in OLDER
        statement = None if said is None or older else Statement.from_json(said)
    except (CodecError, ValueError, TypeError) as error:
        raise LedgerError(f"the statement of charge {number} cannot be read: {error}") from error
    charge = Charge(number, dataset, read_budget(price), what, time, model, read_unit(unit))
    occasion = None if schedule is None else Occasion(schedule, period, read_budget(allowance))
    return LedgerCharge(charge, state == "released", statement, file, run, occasion, who)


def change_of(row: tuple[Any, ...]) -> LedgerChange:
    """A change of a cap, or of whom a data set protects, of a row of `CHANGES`."""
    dataset, model, old, new, time, who, why = row
    read = read_protected if model is None else _read_cap
    changed = read(new)
    if changed is None:
        raise LedgerError(f"the ledger does not say what was changed of {dataset!r}")
    return LedgerChange(dataset, model, read(old), changed, time, who, why)


def _read_cap(text: str | None) -> Budget | None:
    return None if text is None else read_budget(text)
