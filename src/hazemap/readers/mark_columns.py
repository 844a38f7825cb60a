"""Columns of numbers and of marks in SQL: what a row weighs or measures, and which marks it carries."""

from collections.abc import Iterable, Mapping
from math import isfinite

from hazemap.engines.duckdb_connection import quoted
from hazemap.engines.person_ids import family_of, text_of_column
from hazemap.engines.table_source import SourcePart
from hazemap.errors import TableError
from hazemap.readers.column_names import MARK, Role
from hazemap.values.marks import Marks

NUMBERS = {
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
}
TRUTH = {"true": "1", "yes": "1", "false": "0", "no": "0"}

TOLD_APART = 2.0**53
"""Below it a DOUBLE is at most one whole number."""


def marked_columns(columns: Iterable[str], marks: Marks) -> dict[str, tuple[str | None, ...]]:
    """The values of each column of a table that are marks; `TableError` for two names of one column."""
    found = list(columns)
    named = {name: MARK.column(found, name) for name in marks.columns}
    for name, column in named.items():
        others = [other for other, of in named.items() if of == column and other != name]
        if others:
            raise TableError(f"the marks {name!r} and {others[0]!r} are of one column, {column!r}: write it in one way")
    return {named[name]: values for name, values in marks.columns.items()}


def number_of(part: SourcePart, role: Role, column: str) -> str:
    """A column of numbers, as DOUBLE; NULL for text that is none."""
    kind, name = part.kinds[column], quoted(column)
    if kind == "DOUBLE":
        return name
    if is_number(kind):
        return f"TRY_CAST({name} AS DOUBLE)"
    if column in part.written:
        return quoted(part.written[column])
    raise TableError(f"the {role.what} must be numbers; the column {column!r} is {kind}")


def side_of(part: SourcePart, columns: Mapping[str, tuple[str | None, ...]]) -> str:
    """The side of a row (`values.marks.Marks`), as DOUBLE; none where one of its columns holds nothing that is known.

    `columns` are the values of each column that are marks, (None,) for a column of yes or no.
    """
    only = next(iter(columns))
    if columns == {only: (None,)}:
        return _yes_or_no(part, only)
    digits, step = list[str](), 1
    for column, values in columns.items():
        if values == (None,):
            digit = f"CASE {_yes_or_no(part, column)} WHEN 1 THEN 1 WHEN 0 THEN 0 END"
        else:
            digit = _which(part, column, [str(each) for each in values])
        digits.append(f"{step} * ({digit})")
        step *= 1 + len(values)
    return f"CAST({' + '.join(digits)} AS DOUBLE)"


def _yes_or_no(part: SourcePart, column: str) -> str:
    """A column of marks, as DOUBLE: 1 for yes, 0 for no; rows with anything else have no mark."""
    if part.kinds[column] == "BOOLEAN":
        return f"CAST({quoted(column)} AS DOUBLE)"
    if part.kinds[column] == "VARCHAR":
        return f"CAST(TRY_CAST(trim({quoted(column)}) AS BOOLEAN) AS DOUBLE)"
    if not is_number(part.kinds[column]) and column not in part.written:
        raise TableError(
            f"the mark of a row is yes or no, or 1 or 0; the column {column!r} is {part.kinds[column]}: "
            f"name one of its values, {column}=VALUE"
        )
    return number_of(part, MARK, column)


def _which(part: SourcePart, column: str, values: list[str]) -> str:
    """The number of the value that a column holds, from 1 on; 0 for any other value, NULL for none."""
    kind, name = part.kinds[column], quoted(column)
    if is_number(kind):
        # Nothing, where it is not a number: statistics of files have DuckDB believe that nothing is NaN.
        held, other = f"TRY_CAST({name} AS DOUBLE)", f"TRY_CAST({name} AS DOUBLE) - TRY_CAST({name} AS DOUBLE)"
        words = [f"CAST({_number(column, value)!r} AS DOUBLE)" for value in values]
    elif kind == "BOOLEAN":
        held = f"CAST({name} AS DOUBLE)"
        other = f"CASE WHEN {name} IS NOT NULL THEN 0 END"
        words = [_truth(column, value) for value in values]
    elif family_of(kind) is None:
        raise TableError(f"a mark is a text, a number, a truth or a date; the column {column!r} is {kind}")
    else:
        held = f"trim(CAST({text_of_column(name, kind)} AS VARCHAR))"
        other, words = f"CASE WHEN {held} <> '' THEN 0 END", [_literal(value) for value in values]
    if len(set(words)) < len(words):
        raise TableError(f"two of the marks of the column {column!r} are one value: name each once")
    cases = " ".join(f"WHEN {held} = {word} THEN {number}" for number, word in enumerate(words, 1))
    return f"CASE {cases} ELSE {other} END"


def is_number(kind: str) -> bool:
    """Whether a type of DuckDB is one of numbers."""
    return kind in NUMBERS or kind.startswith("DECIMAL")


def _number(column: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not isfinite(number):
        raise TableError(f"the column {column!r} holds numbers, so a mark is {column}=NUMBER; found {value!r}")
    if abs(number) >= TOLD_APART:
        raise TableError(f"numbers of 2^53 and more cannot be distinguished; found the mark {column}={value}")
    return number + 0.0  # no -0.0 beside 0.0


def _truth(column: str, value: str) -> str:
    if value.casefold() not in TRUTH:
        raise TableError(
            f"the column {column!r} holds true and false, so name it alone, or {column}=true; found {value!r}"
        )
    return TRUTH[value.casefold()]


def _literal(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"
