"""What schedules have paid: a period once, and the periods of a year within their allowance.

Both are checked in the transaction that writes the charge, so of two processes that come to one period at the same
instant exactly one pays for it, whichever of them is killed, and where.
"""

from fractions import Fraction
from typing import Literal

from hazemap.errors import CapExceeded, InputError, PeriodPaid
from hazemap.privacy.budget import Budget, PrivacyAmount, PureDP
from hazemap.privacy.ledger_balance import booked, cost_in, read_budget
from hazemap.privacy.ledger_records import Occasion, PaidPeriod
from hazemap.privacy.ledger_store import LedgerReads


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
