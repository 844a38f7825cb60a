"""How people are told apart: ids become seeds, and for texts the texts travel along."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import TableError
from hazemap.tables.draws import KeyWords
from hazemap.tables.opening.arrays import floats, numbers, valid

if TYPE_CHECKING:
    from hazemap.tables.counting.people import Places, Texts


class Coded(NamedTuple):
    """The seed of the person of each row, whether the row has one, and the ids that are texts."""

    seeds: NDArray[np.uint64]
    known: NDArray[np.bool_]
    texts: "Texts | None"


class Ids(Protocol):
    """A column of ids."""

    @property
    def sql(self) -> str:
        """The column as it is read."""
        ...

    def coded(self, column: Any, words: KeyWords) -> Coded:
        """The seeds of the people in an Arrow array."""
        ...

    def places(self) -> "Places":
        """An empty group of such people."""
        ...


@dataclass(frozen=True)
class WholeNumbers:
    """Ids that fit 64 bits: they are the codes of people as they are."""

    sql: str

    def coded(self, column: Any, words: KeyWords) -> Coded:
        """The seeds of the people in an Arrow array."""
        from hazemap.tables.counting.hashes import seeds_of_numbers

        return Coded(seeds_of_numbers(numbers(column, np.uint64), *words), valid(column), None)

    def places(self) -> "Places":
        """An empty group of such people."""
        from hazemap.tables.counting.people import People

        return People()


@dataclass(frozen=True)
class FloatingNumbers:
    """Whole numbers that a file holds as floating point, as pandas does where some are missing."""

    sql: str
    digits: int  # binary digits of the type: from 2^digits on, ids next to each other are the same number

    def coded(self, column: Any, words: KeyWords) -> Coded:
        """The seeds of the people in an Arrow array; `TableError` for ids that are not whole numbers."""
        from hazemap.tables.counting.hashes import seeds_of_numbers

        values = floats(column)
        known = ~np.isnan(values)
        ids = np.where(known, values, 0.0)
        if not ((np.abs(ids) < 2.0**self.digits) & (np.floor(ids) == ids)).all():
            raise TableError(
                f"ids of people that are floating point must be whole numbers below 2^{self.digits}, or two people"
                " could have the same; store them as integers or text"
            )
        return Coded(seeds_of_numbers(ids.astype(np.int64).view(np.uint64), *words), known, None)

    def places(self) -> "Places":
        """An empty group of such people."""
        from hazemap.tables.counting.people import People

        return People()


@dataclass(frozen=True)
class TextIds:
    """Everything else, as text or bytes: kept whole in an exact dictionary."""

    sql: str

    def coded(self, column: Any, words: KeyWords) -> Coded:
        """The seeds of the people in an Arrow array."""
        from hazemap.tables.counting.hashes import seeds_of_texts
        from hazemap.tables.counting.people import Texts

        texts = column.cast("binary")
        _, ends, letters = texts.buffers()
        offsets = np.frombuffer(ends, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
        data = np.frombuffer(letters, dtype=np.uint8) if letters and letters.size else np.zeros(1, dtype=np.uint8)
        return Coded(seeds_of_texts(data, offsets, *words), valid(column), Texts(data, offsets))

    def places(self) -> "Places":
        """An empty group of such people."""
        from hazemap.tables.counting.people import Names

        return Names()


WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
TEXT = {"VARCHAR", "UUID", "HUGEINT", "UHUGEINT", "BOOLEAN", "DATE"}


def ids_of(column: str, quoted: str, kind: str) -> Ids:
    """How to read a column of this DuckDB type as ids of people."""
    if kind in WHOLE:
        return WholeNumbers(f"CAST({quoted} AS BIGINT)")
    if kind == "UBIGINT":
        return WholeNumbers(quoted)
    if kind in {"FLOAT", "DOUBLE"}:
        return FloatingNumbers(f"CAST({quoted} AS DOUBLE)", 24 if kind == "FLOAT" else 53)
    if kind == "BLOB":
        return TextIds(quoted)
    if kind in TEXT or kind.startswith(("ENUM", "DECIMAL", "TIMESTAMP")):
        return TextIds(f"CAST({quoted} AS VARCHAR)")
    raise TableError(f"the column {column!r} cannot tell people apart: it is {kind}; use whole numbers or text")
