"""Rows of the ledger's tables as the records that they are."""

import json
from typing import Any

from hazemap.errors import CodecError, LedgerError
from hazemap.privacy.budget import Budget
from hazemap.privacy.ledger_balance import read_budget, read_protected, read_unit
from hazemap.privacy.ledger_records import Charge, LedgerChange, LedgerCharge, Occasion
from hazemap.privacy.statement import Statement

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
