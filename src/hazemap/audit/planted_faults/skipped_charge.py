"""Every third charge is missing from the ledger: releases go on after the cap is spent."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from hazemap.audit.planted_faults.monkeypatch import replaced
from hazemap.errors import LedgerError
from hazemap.privacy.ledger import Ledger


@contextmanager
def planted() -> Iterator[None]:
    """Take the row away again after it was written."""
    charge, released, turns = Ledger.charge, Ledger.released, [0]

    def skipping(self: Ledger, *arguments: Any, **options: Any) -> Any:
        made = charge(self, *arguments, **options)
        turns[0] += 1
        if turns[0] % 3 == 0:
            with closing(sqlite3.connect(self.path)) as db:
                db.execute("DELETE FROM charges WHERE id = ?", (made.id,))
                db.commit()
        return made

    def tolerant(self: Ledger, *arguments: Any, **options: Any) -> None:
        try:
            released(self, *arguments, **options)
        except LedgerError:
            return

    with replaced(Ledger, "charge", skipping), replaced(Ledger, "released", tolerant):
        yield
