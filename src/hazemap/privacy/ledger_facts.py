"""What the ledger holds, for machines: pages of data sets, charges, changes of caps."""

from collections.abc import Mapping
from typing import Any

from hazemap.privacy.budget import Budget
from hazemap.privacy.ledger_records import LedgerBalance, LedgerChange, LedgerCharge, ProtectedUnit
from hazemap.privacy.statement import budget_to_json


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
