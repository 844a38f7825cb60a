"""Whom a data set protects: fixed by its first charge or by a steward, and whether a charge is about them."""

import json
import shlex

from hazemap.errors import OtherUnit
from hazemap.privacy.ledger_balance import page_status, read_protected
from hazemap.privacy.ledger_records import ProtectedUnit
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
