"""Ledgers as an older hazemap wrote them (schema 1)."""

import json
import sqlite3
from pathlib import Path

from hazemap.privacy.budget import Budget
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.statement import A_ROW, Statement, budget_to_json
from hazemap.tables.contribution_bounding import AtMostRows, RowIsPerson

OLD_TABLES = (
    "CREATE TABLE datasets (name TEXT PRIMARY KEY NOT NULL, cap TEXT, cap_rho TEXT, created TEXT NOT NULL)",
    """CREATE TABLE charges (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        dataset TEXT NOT NULL REFERENCES datasets (name),
        price TEXT NOT NULL,
        rho TEXT NOT NULL,
        time TEXT NOT NULL,
        what TEXT NOT NULL,
        state TEXT NOT NULL DEFAULT 'charged' CHECK (state IN ('charged', 'released')),
        file TEXT,
        statement TEXT
    )""",
    f"PRAGMA application_id = {0x48415A45}",
    "PRAGMA user_version = 1",
)


def statement(dataset: str, budget: Budget, unit: str) -> str:
    made = Statement(
        dataset=dataset,
        unit=unit,
        neighbours="one of them added or removed",
        budget=budget,
        bounding=RowIsPerson() if unit == A_ROW else AtMostRows(1),
        trust="curator",
        assumptions=(),
        noise="discrete Laplace",
        public=(),
        charged=(),
        method="flat grid",
        created="2026-01-02",
        version="0.1.0",
    )
    return json.dumps(made.to_json())


def old(path: Path, caps: dict[str, Budget | None], charges: list[tuple[str, Budget, str | None]]) -> Ledger:
    """A ledger as schema 1 had it; a charge without words for whom it protects was not released."""
    with sqlite3.connect(path) as db:
        for each in OLD_TABLES:
            db.execute(each)
        for number, (name, cap) in enumerate(caps.items()):
            text, rho = (None, None) if cap is None else (json.dumps(budget_to_json(cap)), str(cap.rho))
            db.execute(
                "INSERT INTO datasets VALUES (?, ?, ?, ?)", (name, text, rho, f"2026-01-0{number + 1}T00:00:00Z")
            )
        for name, price, unit in charges:
            state, file = ("charged", None) if unit is None else ("released", f"{name}.parquet")
            said = None if unit is None else statement(name, price, unit)
            row = (name, json.dumps(budget_to_json(price)), str(price.rho), "2026-02-01T00:00:00Z", "a map")
            db.execute(
                "INSERT INTO charges (dataset, price, rho, time, what, state, file, statement) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*row, state, file, said),
            )
    db.close()
    return Ledger(path)
