"""Rows of a table as devices keep them: a person's own file, or a table of which each person gets a device."""

import os
import time as clock
from collections.abc import Iterator, Sequence
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from hazemap.engines.arrow_arrays import floats, valid
from hazemap.engines.duckdb_connection import DuckDBConnection
from hazemap.engines.row_query import Layout, Roles
from hazemap.engines.table_source import TableSource
from hazemap.federated.device.row_store import COLUMNS, PersonRows
from hazemap.readers.column_roles import TIME
from hazemap.readers.open_table import layout_of, named_columns, source_of
from hazemap.temporal.time_format import TimeFormat
from hazemap.values.marks import Marks

MEMORY_LIMIT = 1 << 28

Batch = tuple[NDArray[np.object_] | None, NDArray[np.float64]]
"""The ids of some rows, where each is asked for, and their columns as float64[rows, len(COLUMNS)]."""


class ColumnNames(TypedDict, total=False):
    """The columns of a table, where they are not guessed, and how its times are written."""

    lon: str | None
    lat: str | None
    time: str | None
    value: str | None
    mark: Sequence[str] | str | None
    time_format: TimeFormat


def own(table: Any, **names: Unpack[ColumnNames]) -> PersonRows:
    """All rows of a table, as those of one person; a row without a time counts as of now.

    A time that cannot be read is unknown (NaN), and not now: the row may be older than it may be kept.
    """
    each = [columns for _, columns in _batches(table, None, False, names)]
    return _places(np.concatenate([np.zeros((0, len(COLUMNS))), *each]))


def people(
    table: Any,
    most: int,
    person: str | None = None,
    each_row: bool = False,
    **names: Unpack[ColumnNames],
) -> list[PersonRows]:
    """The rows of the first `most` people of a table, in the order in which they come; of fewer if it has fewer.

    With `each_row` every row is a person. Memory is O(rows of these people).

    >>> import pyarrow
    >>> rows = pyarrow.table({"user": ["b", "a", "b"], "lon": [2.0, 3.0, 4.0], "lat": [48.0, 48.0, 48.0]})
    >>> [each.lon.tolist() for each in people(rows, most=10)]
    [[2.0, 4.0], [3.0]]
    """
    return list(people_by_name(table, most, person, each_row, **names).values())


def people_by_name(
    table: Any,
    most: int,
    person: str | None = None,
    each_row: bool = False,
    **names: Unpack[ColumnNames],
) -> dict[str, PersonRows]:
    """As `people`, each with their id as text; with `each_row` the number of the row."""
    codes: dict[Any, int] = {}
    found = [(np.zeros(0, dtype=np.int64), np.zeros((0, len(COLUMNS))))]
    for ids, columns in _batches(table, person, not each_row, names):
        people_of = range(len(codes), len(codes) + len(columns)) if ids is None else ids.tolist()
        code = np.array([_code(codes, name, most) for name in people_of], dtype=np.int64)
        found.append((code[code >= 0], columns[code >= 0]))
        if each_row and len(codes) == most:
            break
    whose, columns = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.argsort(whose, kind="stable")
    ends = np.searchsorted(whose[order], np.arange(1, len(codes)))
    each = (_places(columns[rows]) for rows in np.split(order, ends))
    return dict(zip(map(str, codes), each, strict=True)) if codes else {}


def _code(codes: dict[Any, int], name: Any, most: int) -> int:
    """The number of a person; -1 for nobody, and for one too many."""
    if name is None:
        return -1
    if name not in codes and len(codes) < most:
        codes[name] = len(codes)
    return codes.get(name, -1)


def _places(columns: NDArray[np.float64]) -> PersonRows:
    return PersonRows(*np.ascontiguousarray(columns.T))


def _batches(table: Any, person: str | None, with_ids: bool, names: ColumnNames) -> Iterator[Batch]:
    """The rows of a table in its own order."""
    connection = DuckDBConnection(MEMORY_LIMIT, os.cpu_count() or 1)
    wanted: dict[str, Any] = dict(names)
    mark = wanted.pop("mark", None)
    marks = Marks.of(*((mark,) if isinstance(mark, str) else mark)) if mark else None
    written = wanted.pop("time_format", "iso")
    columns = named_columns(person, *wanted.values(), *(marks.columns if marks else ()))
    source = source_of(connection, table, named=columns)
    wanted["time"] = when = _time(source, names.get("time"))
    wanted["time_format"] = written
    layout = layout_of(source, person=person, timed=when is not None, marks=marks, **wanted)
    if with_ids:
        layout.need_ids()
    for query in layout.selecting(lambda part: _wanted(part, with_ids)):
        for batch in connection.stream(query, layout.name):
            yield _columns(layout, batch.columns, with_ids)


def _wanted(part: Roles, with_ids: bool) -> list[str]:
    columns = [*part.places, part.weight or "CAST(1 AS DOUBLE)"]
    return [*columns, f"CAST({part.need_person()} AS VARCHAR)"] if with_ids else columns


def _columns(layout: Layout, batch: list[Any], with_ids: bool) -> Batch:
    width = layout.width
    known = layout.columns(layout.arrived(batch, 0)[:width])
    nothing = np.full(len(known["lon"]), np.nan)
    when, missing = known.get("time", nothing), ~valid(batch[width - 1])
    columns = {
        "mark": nothing,
        **known,
        "time": np.where(missing, clock.time(), when) if "time" in known else np.full(len(when), clock.time()),
        "weight": floats(batch[width]),
    }
    ids = batch[width + 1].to_numpy(zero_copy_only=False) if with_ids else None
    return ids, np.column_stack([columns[name] for name in COLUMNS])


def _time(source: TableSource, wanted: str | None) -> str | None:
    """The column of the time; None where no column is named, and none has a usual name.

    One that is there is read or refused: a row counts as of now only where the table says nothing of when.
    """
    if wanted is None and not TIME.is_guessed(source.columns):
        return None
    return TIME.column(source.columns, wanted)
