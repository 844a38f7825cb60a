"""Ids lose their case, their spaces, plus signs and leading zeros: 7, 07 and " 7" are one person of the bounding rule.

So somebody whose id looks like another's moves the other's row, too: two cells instead of one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hazemap.audit.planted_faults.monkeypatch import replaced
from hazemap.engines.person_ids import Coded, TextIds
from hazemap.tables.keyed_hash import KeyWords


@contextmanager
def planted() -> Iterator[None]:
    """Texts are told apart by what is left of them."""
    coded = TextIds.coded

    def tidied(self: TextIds, column: Any, words: KeyWords) -> Coded:
        import pyarrow as pa

        ids = column.cast("binary").to_pylist()
        left = [None if each is None else each.lower().strip().lstrip(b"0+") for each in ids]
        return coded(self, pa.array(left, "binary"), words)

    with replaced(TextIds, "coded", tidied):
        yield
