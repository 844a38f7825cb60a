"""The tables of a ledger, and how those of an older ledger become them."""

import json
import sqlite3
from collections.abc import Iterable

APPLICATION = 0x48415A45  # "HAZE", in SQLite's header: this file is a ledger and no other database
SCHEMA = 2

SUFFIX = " (values only)"
"""What schema 1 added to the name of a data set to have a page for values-only. Names mean nothing any more, so that a
name that ends in this is refused: whoever writes one means the page."""

TABLES = (
    """CREATE TABLE datasets (
        name TEXT PRIMARY KEY NOT NULL,
        protects TEXT,
        earlier TEXT,
        created TEXT NOT NULL
    )""",
    """CREATE TABLE pages (
        dataset TEXT NOT NULL REFERENCES datasets (name),
        model TEXT NOT NULL CHECK (model IN ('full', 'values-only')),
        cap TEXT,
        cap_rho TEXT,
        created TEXT NOT NULL,
        PRIMARY KEY (dataset, model)
    )""",
    """CREATE TABLE charges (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        dataset TEXT NOT NULL,
        model TEXT NOT NULL,
        unit TEXT,
        price TEXT NOT NULL,
        rho TEXT NOT NULL,
        time TEXT NOT NULL,
        what TEXT NOT NULL,
        state TEXT NOT NULL DEFAULT 'charged' CHECK (state IN ('charged', 'released')),
        file TEXT,
        statement TEXT,
        run TEXT,
        FOREIGN KEY (dataset, model) REFERENCES pages (dataset, model)
    )""",
    """CREATE TABLE changes (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        dataset TEXT NOT NULL REFERENCES datasets (name),
        model TEXT,
        old TEXT,
        new TEXT NOT NULL,
        time TEXT NOT NULL,
        who TEXT NOT NULL,
        why TEXT
    )""",
    """CREATE TABLE fingerprints (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        dataset TEXT NOT NULL REFERENCES datasets (name),
        fingerprint BLOB NOT NULL
    )""",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {SCHEMA}",
)
"""A budget is JSON of rationals. Its ρ stands beside it: for (ε, δ) it comes of a search in floats, and what
was paid must not change with the machine that reads it. No index but the names': a damaged one hides rows.

`run` names the journal of the run that paid (`execution.journal`), where there was one.

`earlier` are the kinds of what an older hazemap charged, where it did not note whose it was. A change without a model
is one of whom the data set protects. `fingerprints` are for warnings alone (see `privacy.duplicate_tables`), are in no
history, and mean nothing without their key, which is another file.
"""

_KINDS = {
    "a person's values alone": "values",
    "a person: all rows of one id": "person",
    "a person: all rows on one device": "device",
    "a row": "row",
}
"""How the statements of schema 1's time begin to say whom they protect."""

_FIXED = {"row": '{"kind": "row", "model": "full"}', "device": '{"kind": "device", "model": "full"}'}
_PROTECTS = {"row": '{"kind": "row"}', "device": '{"kind": "device"}'}


def migrate(db: sqlite3.Connection) -> None:
    """Turn the tables of schema 1 into these, within the transaction that is open: every charge and every cap stays.

    Whose a charge was is known from its statement, where it was released; by which column people were told apart is
    not, so whoever charges next is asked (`Ledger.charge`). A data set named "x (values only)" becomes the values-only
    page of x, unless something else was charged to it.
    """
    old = {name: rest for name, *rest in db.execute("SELECT name, cap, cap_rho, created FROM datasets ORDER BY name")}
    charges = db.execute(
        "SELECT id, dataset, price, rho, time, what, state, file, statement FROM charges ORDER BY id"
    ).fetchall()
    kinds: dict[str, set[str]] = {name: set() for name in old}
    for charge in charges:
        kinds[charge[1]].add(_kind(charge[-1]))
    pages = {name: _page(name, kinds[name]) for name in old}
    db.execute("DROP TABLE charges")
    db.execute("DROP TABLE datasets")
    for statement in TABLES:
        db.execute(statement)
    for dataset in sorted({dataset for dataset, _ in pages.values()}):
        own = [name for name in old if pages[name][0] == dataset]
        known = set().union(*(kinds[name] for name in own))
        protects, earlier = _protects(known)
        created = min(old[name][2] for name in own)
        db.execute("INSERT INTO datasets VALUES (?, ?, ?, ?)", (dataset, protects, earlier, created))
    for name, (cap, rho, created) in old.items():
        db.execute("INSERT INTO pages VALUES (?, ?, ?, ?, ?)", (*pages[name], cap, rho, created))
    for number, name, *rest, statement in charges:
        unit = _FIXED.get(_kind(statement))
        db.execute(
            "INSERT INTO charges (id, dataset, model, unit, price, rho, time, what, state, file, statement) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (number, *pages[name], unit, *rest, statement),
        )


def _kind(statement: str | None) -> str:
    try:
        unit = json.loads(statement)["unit"] if statement else ""
        return next((kind for words, kind in _KINDS.items() if unit.startswith(words)), "unknown")
    except (ValueError, TypeError, KeyError, AttributeError):
        return "unknown"  # whoever looks at the history is told that this statement cannot be read


def _page(name: str, kinds: set[str]) -> tuple[str, str]:
    apart = name.endswith(SUFFIX) and kinds <= {"values", "unknown"}
    return (name.removesuffix(SUFFIX), "values-only") if apart else (name, "full")


def _protects(kinds: Iterable[str]) -> tuple[str | None, str | None]:
    """Whom a data set protects, where its charges say it, or else the kinds of what was charged."""
    found = sorted({"person" if kind == "values" else kind for kind in kinds})
    if not found:
        return None, None
    if len(found) == 1 and found[0] in _PROTECTS:
        return _PROTECTS[found[0]], None
    return None, ",".join(found)
