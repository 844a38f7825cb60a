"""Identities of people: ids become seeds, and text ids are kept beside their seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hazemap.engines.arrow_arrays import numbers, texts, valid
from hazemap.engines.streaming.keyed_hash import seeds_of_numbers
from hazemap.engines.streaming.person_index import NamedPeople, NumberedPeople, Texts
from hazemap.engines.table_source import SourcePart
from hazemap.errors import TableError
from hazemap.tables.keyed_hash import KeyWords

if TYPE_CHECKING:
    from hazemap.engines.streaming.person_index import PersonIndex


class Coded(NamedTuple):
    """The seed of the person of each row, whether the row has one, and the ids that are texts."""

    seeds: NDArray[np.uint64]
    known: NDArray[np.bool_]
    texts: "Texts | None"


@dataclass(frozen=True)
class IdColumnReader:
    """The column that tells people apart: its name, how ids are compared, and whether it was guessed by its name.

    All of it is public: the name and the type of a column, and never a row.
    """

    name: str
    read_as: str
    guessed: bool


class Ids(Protocol):
    """A column of ids."""

    @property
    def read_as(self) -> str:
        """How two ids are compared, for a statement."""

    def coded(self, column: Any, words: KeyWords) -> Coded:
        """The seeds of the people in an Arrow array."""

    def places(self) -> "PersonIndex":
        """An empty group of such people."""


@dataclass(frozen=True)
class WholeNumbers:
    """Ids that fit 64 bits: they are the codes of people as they are."""

    read_as: str = "whole numbers"

    def coded(self, column: Any, words: KeyWords) -> Coded:
        """The seeds of the people in an Arrow array."""
        return Coded(seeds_of_numbers(numbers(column, np.uint64), *words), valid(column), None)

    def places(self) -> "PersonIndex":
        """An empty group of such people."""
        return NumberedPeople()


@dataclass(frozen=True)
class TextIds:
    """Everything else, as text or bytes: kept whole in an exact dictionary."""

    read_as: str = "text, letter by letter"

    def coded(self, column: Any, words: KeyWords) -> Coded:
        """The seeds of the people in an Arrow array."""
        from hazemap.engines.streaming.keyed_hash import seeds_of_texts

        found = Texts(*texts(column))
        return Coded(seeds_of_texts(*found, *words), valid(column), found)

    def places(self) -> "PersonIndex":
        """An empty group of such people."""
        return NamedPeople()


LONGEST_BYTES = 10_000
"""An id of more bytes is nobody's: many rows may name one that their file holds once."""

WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
FLOATING = {"FLOAT": 24, "DOUBLE": 53}
"""Binary digits of these types: from 2^digits on, whole numbers next to each other are the same."""

_FAMILIES = {
    "whole": WHOLE,
    "wide": {"UBIGINT", "HUGEINT", "UHUGEINT"},
    "floating": set(FLOATING),
    "text": {"VARCHAR", "UUID"},
    "bytes": {"BLOB"},
    "alone": {"BOOLEAN", "DATE"},
}


def ids_of(column: str, quoted: str, parts: Sequence[SourcePart]) -> tuple[Ids, tuple[str, ...]]:
    """How to read a column as ids of people, and its SQL in each part; `TableError` for types that cannot.

    Decided from the types that the parts declare, never from rows. Equal ids are one person whatever their types: whole
    numbers are compared as numbers, and as soon as one part holds text, every number is the text of its value, so that
    the integer 7, the float 7.0, the decimal 7.00 and the text "7" are one person ("07" is another). A floating-point
    id that is no whole number, or so large that two numbers could be the same, is nobody's: its row is dropped.
    """
    kinds = [part.kinds[column] for part in parts]
    families = {family_of(kind) for kind in kinds}
    if None in families:
        kind = next(kind for kind in kinds if family_of(kind) is None)
        raise TableError(f"the column {column!r} cannot tell people apart: it is {kind}; use whole numbers or text")
    if not families <= {"whole", "wide", "floating", "decimal", "text", "bytes"} and len(set(kinds)) > 1:
        raise TableError(
            f"the column {column!r} cannot tell people apart: it is {' in one file and '.join(sorted(set(kinds)))} in"
            " another, whose texts differ; store it as one type"
        )
    if families <= {"whole", "floating"}:
        return WholeNumbers(), tuple(_number(quoted, kind) for kind in kinds)
    if set(kinds) == {"UBIGINT"}:
        return WholeNumbers(), (quoted,) * len(parts)
    texts = tuple(text_of_column(quoted, kind) for kind in kinds)
    if "bytes" in families and len(families) > 1:
        texts = tuple(text if kind == "BLOB" else f"encode({text})" for text, kind in zip(texts, kinds, strict=True))
    return TextIds(), texts


def family_of(kind: str) -> str | None:
    """Which types of DuckDB are told apart alike; None for one whose values have no texts of their own."""
    if kind.startswith("DECIMAL"):
        return "decimal"
    if kind.startswith("TIMESTAMP"):
        return "alone"
    if kind.startswith("ENUM"):
        return "text"
    return next((family for family, kinds in _FAMILIES.items() if kind in kinds), None)


def _number(quoted: str, kind: str) -> str:
    """A whole number of 64 bits; NULL for a floating-point number that may be another's."""
    if kind in WHOLE:
        return f"CAST({quoted} AS BIGINT)"
    exact = f"{quoted} = floor({quoted}) AND abs({quoted}) < {2 ** FLOATING[kind]}"  # false for NaN, too
    return f"CASE WHEN {exact} THEN TRY_CAST({quoted} AS BIGINT) END"


_FIRST_MOMENT = -9_223_372_022_400_000_000
"""The first microsecond of DuckDB's calendar: what lies before has no text, and asking for it is an error."""


def text_of_column(quoted: str, kind: str) -> str:
    """The text of each value of a column in SQL, NULL where it has none: of a number that of its value, of any type.

    The only such expression, for ids and marks: it fails for no value.
    """
    if kind in WHOLE or kind in FLOATING:
        return f"CAST({_number(quoted, kind)} AS VARCHAR)"
    if kind in {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"}:
        moment = f"TRY_CAST({quoted} AS TIMESTAMP)"
        quoted = f"CASE WHEN epoch_us({moment}) >= {_FIRST_MOMENT} THEN {moment} END"
    if kind == "BLOB":
        return f"CASE WHEN octet_length({quoted}) <= {LONGEST_BYTES} THEN {quoted} END"
    text = quoted if kind == "VARCHAR" else f"TRY_CAST({quoted} AS VARCHAR)"
    if kind.startswith("DECIMAL") and not kind.endswith((",0)", ", 0)")):
        return f"rtrim(rtrim({text}, '0'), '.')"
    return text
