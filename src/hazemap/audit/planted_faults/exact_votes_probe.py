"""The exact votes of the last table that was read, for sabotages that look at them without paying."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hazemap.audit.planted_faults.monkeypatch import replaced
from hazemap.engines.duckdb import EngineTable
from hazemap.tables.votes import Votes


@contextmanager
def watched() -> Iterator[list[Votes]]:
    """A list whose last item is what a table answered last."""
    votes, seen = EngineTable.votes, list[Votes]()

    def watching(self: EngineTable, *arguments: Any, **options: Any) -> Votes:
        found = votes(self, *arguments, **options)
        seen[:] = [found]
        return found

    with replaced(EngineTable, "votes", watching):
        yield seen
