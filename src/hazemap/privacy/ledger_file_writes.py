"""What is written to a ledger that is a file, in SQLite's SQL, within the transaction that is open."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hazemap.privacy.ledger_store import Forgotten, NewCharge, Noted
from hazemap.privacy.privacy_unit import Model

_CHANGE = "INSERT INTO changes (dataset, model, old, new, time, who, why) VALUES (?, ?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True)
class FileTransaction:
    """A transaction of the file, to read and to write: whoever may write the file may do all of it."""

    db: sqlite3.Connection
    payer: ClassVar[str] = "NULL"

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> sqlite3.Cursor:
        """A question."""
        return self.db.execute(sql, values)

    def check_page(self, dataset: str, model: Model) -> None:
        """A file takes charges of data sets without a cap, and of new ones."""

    def open_page(self, dataset: str, model: Model | None, time: str) -> None:
        """Have a data set, and its page for a model."""
        self.execute("INSERT INTO datasets (name, created) VALUES (?, ?) ON CONFLICT DO NOTHING", (dataset, time))
        if model is not None:
            page = (dataset, model, time)
            self.execute("INSERT INTO pages (dataset, model, created) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", page)

    def admit(self, dataset: str, model: Model, time: str) -> None:
        """The page is made by its first charge."""
        self.open_page(dataset, model, time)

    def charge(self, new: NewCharge) -> tuple[int, str]:
        """Write a charge."""
        if new.protects is not None:
            self.execute("UPDATE datasets SET protects = ? WHERE name = ?", (new.protects, new.dataset))
        self.execute(
            "INSERT INTO charges (dataset, model, unit, price, rho, time, what, run, schedule, period, allowance) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (new.dataset, new.model, new.unit, new.price, new.rho, new.time, new.what, new.run, *new.of_schedule),
        )
        [number] = self.execute("SELECT last_insert_rowid()").fetchone()
        return number, new.time

    def release(self, charge: int, statement: str, file: str | None) -> None:
        """Note what a charge was spent on."""
        self.execute(
            "UPDATE charges SET state = 'released', statement = ?, file = ? WHERE id = ?", (statement, file, charge)
        )

    def release_again(self, charge: int, dataset: str, file: str | None) -> None:
        """Note what the charge for a question asked once more was spent on."""
        self.execute(
            "UPDATE charges SET state = 'released', file = ? WHERE id = ? AND dataset = ?", (file, charge, dataset)
        )

    def set_cap(self, dataset: str, model: Model, old: str | None, cap: str, rho: str, now: Noted) -> None:
        """Set the cap of a page."""
        self.execute(
            "UPDATE pages SET cap = ?, cap_rho = ? WHERE dataset = ? AND model = ?", (cap, rho, dataset, model)
        )
        self.execute(_CHANGE, (dataset, model, old, cap, *now))

    def set_protects(self, dataset: str, old: str | None, new: str, now: Noted) -> None:
        """Say whom a data set protects."""
        self.execute("UPDATE datasets SET protects = ?, earlier = NULL WHERE name = ?", (new, dataset))
        self.execute(_CHANGE, (dataset, None, old, new, *now))

    def remember(self, dataset: str, fingerprint: bytes, most: int) -> None:
        """Keep the fingerprint of a table that paid; one that is just the same is replaced."""
        if not self.execute("SELECT 1 FROM datasets WHERE name = ?", (dataset,)).fetchone():
            return
        self.execute("DELETE FROM fingerprints WHERE dataset = ? AND fingerprint = ?", (dataset, fingerprint))
        self.execute("INSERT INTO fingerprints (dataset, fingerprint) VALUES (?, ?)", (dataset, fingerprint))
        self.execute(
            "DELETE FROM fingerprints WHERE dataset = ? AND id NOT IN "
            "(SELECT id FROM fingerprints WHERE dataset = ? ORDER BY id DESC LIMIT ?)",
            (dataset, dataset, most),
        )

    def forget(self, before: str, dataset: str | None) -> Forgotten:
        """Forget payloads; a charge keeps its price, its file's name and everything that is added up."""
        statements = self.execute(
            "UPDATE charges SET statement = NULL WHERE state = 'released' AND statement IS NOT NULL AND time < ? "
            "AND coalesce(dataset = ?, TRUE)",
            (before, dataset),
        ).rowcount
        fingerprints = self.execute(
            "DELETE FROM fingerprints WHERE coalesce(dataset = ?, TRUE) AND NOT EXISTS "
            "(SELECT 1 FROM charges WHERE charges.dataset = fingerprints.dataset AND time >= ?)",
            (dataset, before),
        ).rowcount
        return Forgotten(statements, fingerprints)
