"""What a charge must fit: whom its data set protects, and the periods of a schedule within their allowance.

Both are checked in the transaction that writes the charge, so of two processes that come to one period at the same
instant exactly one pays for it, whichever of them is killed, and where.
"""

import json
import shlex
from fractions import Fraction
from typing import Literal

from hazemap.errors import CapExceeded, InputError, OtherUnit, PeriodPaid
from hazemap.privacy.budget import Budget, PrivacyAmount, PureDP
from hazemap.privacy.ledger_balance import booked, cost_in, page_status, read_budget, read_protected
from hazemap.privacy.ledger_records import Occasion, PaidPeriod, ProtectedUnit
from hazemap.privacy.ledger_store import LedgerReads, LedgerWrites, Noted
from hazemap.privacy.privacy_unit import VALUES_ONLY, Unit


def check_unit(db: LedgerReads, name: str, unit: Unit) -> str | None:
    """Raise `OtherUnit` where a charge of this unit does not add up with what a data set protects; a caution, or none.

    A data set that protects nobody yet takes any unit.
    """
    row = db.execute("SELECT protects, earlier FROM datasets WHERE name = ?", (name,)).fetchone()
    protected, earlier = (None, None) if row is None else (read_protected(row[0]), row[1])
    if protected is not None:
        if not protected.agrees(unit):
            raise OtherUnit(protected.refusal(name, unit))
        return protected.caution(name, unit)
    if earlier is not None:
        raise OtherUnit(unsettled(name, earlier))
    if unit.kind != "person" and page_status(db, name, VALUES_ONLY):
        raise OtherUnit(
            f"the data set {name!r} has a values-only page, which is about people told apart by a column of ids, and "
            f"this release is about {ProtectedUnit.of(unit)}: let another data set pay (--dataset, dataset=… in Python)"
        )
    return None


def unsettled(name: str, earlier: str) -> str:
    """What to say of a data set whose charges are older than the notes of whose they are."""
    known = [kind for kind in earlier.split(",") if kind != "unknown"]
    if len(known) > 1:
        return (
            f"to the data set {name!r} an older hazemap charged prices of several units ({', '.join(known)}), whose "
            "sum holds for nobody: nothing more is added to it. See `hazemap ledger history`, and let another data "
            "set pay (--dataset, dataset=… in Python) if the people's agreement allows it"
        )
    command = f"hazemap ledger unit {shlex.quote(name)}"
    others = "" if known else f", or with `{command} --rows` or `{command} --devices` if these were its people"
    return (
        f"the data set {name!r} was charged by an older hazemap, which did not note by which column people were told "
        f"apart: say it once, with `{command} --person COLUMN`{others}; it has to be what those charges were about"
    )


def settle(db: LedgerWrites, name: str, protected: ProtectedUnit, now: Noted) -> None:
    """Take a steward's word for whom a data set protects, where nothing in the ledger contradicts it."""
    [text, earlier] = db.execute("SELECT protects, earlier FROM datasets WHERE name = ?", (name,)).fetchone()
    charged = db.execute("SELECT 1 FROM charges WHERE dataset = ?", (name,)).fetchone()
    old = read_protected(text)
    if old is not None and old.agrees_with(protected):
        return
    if old is not None and charged:
        raise OtherUnit(f"the data set {name!r} has paid for {old} already, and its charges stay theirs")
    if earlier is not None:
        known = set(earlier.split(",")) - {"unknown"}
        if len(known) > 1:
            raise OtherUnit(unsettled(name, earlier))
        if known and known != {protected.kind}:
            raise OtherUnit(f"the statements of what {name!r} has paid for say that they are about a {known.pop()}")
    if protected.kind != "person" and page_status(db, name, VALUES_ONLY):
        raise OtherUnit(f"the data set {name!r} has a values-only page, which is about people told apart by ids")
    db.set_protects(name, text, json.dumps(protected.to_json(), ensure_ascii=False), now)


def to_fix(db: LedgerReads, name: str, protected: ProtectedUnit) -> str | None:
    """Whom a data set protects from now on, and how their ids are read, where it is not known yet."""
    [text] = db.execute("SELECT protects FROM datasets WHERE name = ?", (name,)).fetchone()
    known = read_protected(text)
    fixed = known is not None and not (known.kind == "person" and known.read_as is None)
    return None if fixed else json.dumps(protected.to_json(), ensure_ascii=False)


def paid_periods(db: LedgerReads, schedule: str) -> list[PaidPeriod]:
    """Every charge of a schedule, the oldest first."""
    rows = db.execute(
        "SELECT id, dataset, price, rho, period, allowance, state, file, run FROM charges WHERE schedule = ? "
        "ORDER BY id",
        (schedule,),
    )
    return [
        PaidPeriod(
            Occasion(schedule, period, read_budget(allowance)),
            number,
            dataset,
            read_budget(price),
            booked(rho),
            state == "released",
            file,
            run,
            asked_again(run),
        )
        for number, dataset, price, rho, period, allowance, state, file, run in rows
    ]


def asked_again(run: str | None) -> bool:
    """Whether a charge is for a question of another charge's run, which was asked once more after a crash."""
    return run is not None and ":" in run


def spent_in(year: str, paid: list[PaidPeriod], allowance: Budget) -> PrivacyAmount:
    """What the periods of a year have cost, in the measure of their allowance.

    Where a price in ρ was paid under an allowance in pure ε (the allowance was changed), it is in ρ.
    """
    own = [each for each in paid if each.occasion.year == year]
    exact = isinstance(allowance, PureDP) and all(isinstance(each.price, PureDP) for each in own)
    measure: Literal["ε", "ρ"] = "ε" if exact else "ρ"
    return PrivacyAmount(measure, sum((cost_in(each.price, each.rho, measure) for each in own), Fraction(0)))


def left_in(year: str, paid: list[PaidPeriod], allowance: Budget) -> PrivacyAmount:
    """What the periods of a year may still cost."""
    spent = spent_in(year, paid, allowance)
    if isinstance(allowance, PureDP) and spent.measure == "ρ":
        return PrivacyAmount("ε", Fraction(0))
    most = allowance.epsilon if isinstance(allowance, PureDP) else allowance.rho
    return PrivacyAmount(spent.measure, max(most - spent.value, Fraction(0)))


def check_occasion(db: LedgerReads, name: str, price: Budget, rho: Fraction, occasion: Occasion, again: bool) -> None:
    """Raise `PeriodPaid` for a period that was paid for, `CapExceeded` where its year has no room for this price.

    The price is booked with this ρ. A question that is asked `again` belongs to a period that was paid
    for; it counts in the year too.
    """
    paid = paid_periods(db, occasion.schedule)
    others = sorted({each.dataset for each in paid} - {name})
    if others:
        raise InputError(
            f"the schedule {occasion.schedule!r} has paid from the data set {others[0]!r}, and now {name!r} would pay: "
            "a schedule has one data set; give another schedule another name"
        )
    if not again and any(each.occasion.period == occasion.period for each in paid):
        raise PeriodPaid(f"the period {occasion.period} of the schedule {occasion.schedule!r} is paid for already")
    left = left_in(occasion.year, paid, occasion.allowance)
    year = f"{occasion.year} of the schedule {occasion.schedule!r}"
    if left.measure == "ε" and not isinstance(price, PureDP):
        raise CapExceeded(
            f"the allowance of {year} is {occasion.allowance}, and {price} implies no finite pure ε: pay in pure ε, or "
            "allow a year so much in ρ"
        )
    if cost_in(price, rho, left.measure) > left.value:
        raise CapExceeded(
            f"{year} has {left} left of its allowance {occasion.allowance}, and a release costs {price}: it is refused "
            "until the next year, unless the schedule's yearly budget is raised (if the people's agreement allows it)"
        )
