"""A steward's ledger for a browser: pages, charges, changes of caps, and what can be recovered."""

from typing import Any

from hazemap.errors import InputError
from hazemap.execution.crash_recovery import Recoverable, recoverable
from hazemap.privacy.ledger import data_set_name
from hazemap.privacy.ledger_facts import balance_facts, change_facts, charge_facts
from hazemap.privacy.ledger_records import LedgerBalance, LedgerChange
from hazemap.sources.source import LocalFiles
from hazemap.studio.command_text import Commands
from hazemap.studio.refusals import refused
from hazemap.studio.stewards import Steward


def ledger_view(who: Steward, dataset: str | None, commands: Commands) -> dict[str, Any]:
    """All of it, or what is about one data set; nothing for one that the ledger does not know yet."""
    book, name = who.ledger, None if dataset is None else data_set_name(dataset)
    pages = [page for page in book.datasets() if name in (None, page.name)]
    known = name is None or bool(pages)
    waiting = recoverable(book) if known else []
    running = {each.record.charge.id: each.running for each in waiting}
    charges = [
        {
            **charge_facts(record, running),
            "said": str(record.charge.price),
            "file": None if record.file is None else who.root.name_of(record.file) or record.file,
            "here": record.file is not None and who.root.holds(record.file),
        }
        for record in (book.history(name) if known else [])
    ]
    return {
        "ledger": str(book.place),
        "pages": [{**balance_facts(page), "said": said(page)} for page in pages],
        "charges": charges,
        "changes": [_changed(change) for change in (book.changes(name) if known else [])],
        "recoverable": [
            _waiting(who, each, commands) for each in waiting if name in (None, each.record.charge.dataset)
        ],
        "same_as": commands.history(name if known else None).to_json(),
    }


def to_recover(who: Steward, charge: int) -> Recoverable:
    """What the studio can recover of a charge; `InputError` where it cannot."""
    for each in recoverable(who.ledger):
        if each.record.charge.id == charge:
            if not can_recover(who, each):
                raise refused(InputError, "chargeElsewhere", charge=charge)
            return each
    raise refused(InputError, "nothingToRecover", charge=charge)


def can_recover(who: Steward, each: Recoverable) -> bool:
    """Whether the studio may: files inside the steward's folder, which nobody makes now."""
    if each.running or each.fault or each.output is None:
        return False
    table_there = each.ended or each.source is None
    if isinstance(each.source, LocalFiles):
        table_there |= who.root.holds(each.source.path)
    return table_there and who.root.holds(each.output)


def said(page: LedgerBalance) -> dict[str, str | None]:
    """A page in words: what it may spend, has spent and has left, and whom it protects."""
    amounts = {"cap": page.cap, "spent": page.spent, "left": page.remaining, "protects": page.protects}
    return {name: None if value is None else str(value) for name, value in amounts.items()}


def _changed(change: LedgerChange) -> dict[str, Any]:
    words = {"old": None if change.old is None else str(change.old), "new": str(change.new)}
    return {**change_facts(change), "said": words}


def _waiting(who: Steward, each: Recoverable, commands: Commands) -> dict[str, Any]:
    charge = each.record.charge
    return {
        "charge": charge.id,
        "dataset": charge.dataset,
        "what": charge.what,
        "price": str(charge.price),
        "state": each.state,
        "running": each.running,
        "free": each.ended,
        "possible": can_recover(who, each),
        "rest": each.rest and str(each.rest),
        "same_as": commands.recover(charge.id, go_on=each.rest is not None).to_json(),
    }
