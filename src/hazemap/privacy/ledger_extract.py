"""All that a ledger says of one data set at one instant, for somebody else: its pages, charges and changes.

No fingerprint of a table is in it, no journal, and of a file its name alone and not its folder. Rationals are exact.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import PurePath
from typing import Any

from hazemap.errors import CodecError, InputError
from hazemap.privacy.budget import Budget, PrivacyAmount
from hazemap.privacy.ledger import Ledger, data_set_name
from hazemap.privacy.ledger_balance import (
    CHANGES,
    CHARGES,
    booked,
    change_of,
    charge_of,
    cost_in,
    for_a_replacement,
    page_status,
)
from hazemap.privacy.ledger_records import LedgerBalance, LedgerChange, LedgerCharge, ProtectedUnit
from hazemap.privacy.privacy_unit import FULL, VALUES_ONLY, Model
from hazemap.privacy.statement import budget_from_json, budget_to_json


def balance_facts(status: LedgerBalance) -> dict[str, Any]:
    """A page of a data set."""
    left = status.remaining
    return {
        "dataset": status.name,
        "model": status.model,
        "protects": status.protects and status.protects.to_json(),
        "cap": status.cap and budget_to_json(status.cap),
        "spent": {"measure": status.spent.measure, "value": float(status.spent.value)},
        "remaining": left and {"measure": left.measure, "value": float(left.value)},
        "charges": status.charges,
        "created": status.created,
    }


def charge_facts(record: LedgerCharge, running: Mapping[int, bool]) -> dict[str, Any]:
    """A charge; `running` says of those that can be recovered whether their run is still going on."""
    charge = record.charge
    return {
        "charge": charge.id,
        "dataset": charge.dataset,
        "model": charge.model,
        "unit": charge.unit and charge.unit.to_json(),
        "price": budget_to_json(charge.price),
        "what": charge.what,
        "time": charge.time,
        "who": record.who,
        "released": record.released,
        "file": record.file,
        "recoverable": running.get(charge.id) is False,
        "period": record.occasion and {"schedule": record.occasion.schedule, "period": record.occasion.period},
    }


def change_facts(change: LedgerChange) -> dict[str, Any]:
    """What a steward changed."""
    return {
        "dataset": change.dataset,
        "changed": "protects" if change.model is None else "cap",
        "model": change.model,
        "old": None if change.old is None else _plain(change.old),
        "new": _plain(change.new),
        "time": change.time,
        "who": change.who,
        "why": change.why,
    }


def _plain(changed: Budget | ProtectedUnit) -> dict[str, str]:
    return changed.to_json() if isinstance(changed, ProtectedUnit) else budget_to_json(changed)


FORMAT = 1
FIELDS = {"format", "dataset", "protects", "pages", "charges", "changes", "exported"}


def extract(ledger: Ledger, dataset: str) -> dict[str, Any]:
    """What a ledger says of a data set, as plain JSON; `InputError` for a data set not known."""
    name = data_set_name(dataset)
    with ledger.store.reading() as db:
        found = [page_status(db, name, model) for model in (FULL, VALUES_ONLY)]
        pages = [page for page in found if page is not None]
        rho = dict(db.execute("SELECT id, rho FROM charges WHERE dataset = ?", (name,)).fetchall())
        records = [charge_of(row) for row in db.execute(CHARGES.format(payer=db.payer)) if row[1] == name]
        changes = [change_of(row) for row in db.execute(CHANGES) if row[0] == name]
    if not pages:
        raise InputError(f"the ledger {ledger.place} has no page of a data set {name!r}: see `hazemap ledger list`")
    protects = pages[0].protects
    return {
        "format": FORMAT,
        "dataset": name,
        "protects": protects and protects.to_json(),
        "pages": [_page(page) for page in pages],
        "charges": [_charge(record, rho[record.charge.id]) for record in records],
        "changes": [change_facts(change) for change in changes],
        "exported": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
    }


def _page(page: LedgerBalance) -> dict[str, Any]:
    return {
        "model": page.model,
        "cap": page.cap and budget_to_json(page.cap),
        "spent": _amount(page.spent),
        "left": page.remaining and _amount(page.remaining),
        "charges": page.charges,
        "created": page.created,
    }


def _amount(amount: PrivacyAmount) -> dict[str, str]:
    return {"measure": amount.measure, "value": str(amount.value)}


def _charge(record: LedgerCharge, rho: str) -> dict[str, Any]:
    charge, occasion = record.charge, record.occasion
    return {
        "charge": charge.id,
        "day": charge.time[:10],  # a second would say how long the run took whose file bears its end
        "who": record.who,
        "model": charge.model,
        "unit": charge.unit and charge.unit.to_json(),
        "price": budget_to_json(charge.price),
        "rho": rho,
        "what": charge.what,
        "period": occasion and {"schedule": occasion.schedule, "period": occasion.period},
        "released": record.released,
        "file": None if record.file is None else PurePath(record.file).name,
        "statement": record.statement and record.statement.to_json(),
    }


KEPT = ("charge", "day", "who", "model", "unit", "price", "rho", "what", "period")
"""What of a charge never changes; what it was spent on is noted later, and a statement may be forgotten."""


def check_sums(found: Mapping[str, Any]) -> None:
    """Add up the charges of an extract again; `CodecError` where they are not what its pages say, or are no charges.

    >>> check_sums({"pages": [], "charges": []})
    """
    try:
        charges = found["charges"]
        numbers = [charge["charge"] for charge in charges]
        if numbers != sorted(set(numbers)):
            raise CodecError("charges have numbers that grow")
        for page in found["pages"]:
            own = [charge for charge in charges if charge["model"] == page["model"]]
            if len(own) != page["charges"]:
                raise CodecError(f"the {page['model']} page is said to have {page['charges']} charges, not {len(own)}")
            total = _spent(page["model"], page["spent"]["measure"], charges)
            if total != Fraction(page["spent"]["value"]):
                raise CodecError(
                    f"the charges of the {page['model']} page do not add up to what it is said to have spent"
                )
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
        raise CodecError(f"this is no page of a ledger ({type(error).__name__})") from None


def _spent(model: Model, measure: Any, charges: Iterable[Mapping[str, Any]]) -> Fraction:
    total = Fraction(0)
    for charge in charges:
        price, rho = budget_from_json(charge["price"]), booked(charge["rho"])
        if charge["model"] == model:
            total += cost_in(price, rho, measure)
        elif model == VALUES_ONLY:
            total += cost_in(for_a_replacement(price, rho), 4 * rho, measure)
    return total


def check_grown(older: Mapping[str, Any], newer: Mapping[str, Any]) -> None:
    """`CodecError` unless an extract holds all that an older one of the same data set does, unchanged."""
    if older["dataset"] != newer["dataset"] or older["exported"] > newer["exported"]:
        raise CodecError("the older page is of another data set, or is not older")
    now = {charge["charge"]: charge for charge in newer["charges"]}
    for charge in older["charges"]:
        later = now.get(charge["charge"])
        if later is None:
            raise CodecError(f"charge {charge['charge']} was on the older page and is not on this one")
        if any(later[name] != charge[name] for name in KEPT) or charge["released"] > later["released"]:
            raise CodecError(f"charge {charge['charge']} is another one than on the older page")
    if newer["changes"][: len(older["changes"])] != older["changes"]:
        raise CodecError("changes that were on the older page are not on this one")
