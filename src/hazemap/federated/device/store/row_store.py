"""A person's own rows: kept for some days, read only to answer.

They come from a person's own file, or from a table of which each person gets a device.
"""

import os
import time as clock
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from hazemap.engines.arrow_arrays import floats, valid
from hazemap.engines.duckdb_connection import DuckDBConnection
from hazemap.engines.memory import MemoryTable
from hazemap.engines.row_query import Roles, TableLayout
from hazemap.engines.table_source import TableSource
from hazemap.errors import InputError
from hazemap.federated.device.store.answer_records import leave_all
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.readers.column_roles import TIME
from hazemap.readers.open_table import layout_of, named_columns, source_of
from hazemap.temporal.time_format import TimeFormat
from hazemap.values.marks import Marks

DAY = 86_400
COLUMNS = ("time", "lon", "lat", "weight", "mark")
NEVER = 1 << 40
"""The day on which rows expire that are kept for good."""


@dataclass(frozen=True, eq=False)
class DeviceRows:
    """Where one person was: seconds since 1970 (UTC), degrees, how much each row weighs, and its mark. All float64.

    A mark is 1 for yes and 0 for no (see `values.boolean_attribute.BinaryAttribute`), NaN where a row has none.

    >>> DeviceRows.of([2.35], [48.85], time=0).weight
    array([1.])
    """

    time: NDArray[np.float64]
    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    weight: NDArray[np.float64]
    mark: NDArray[np.float64]

    def __post_init__(self) -> None:
        if len({column.shape for column in vars(self).values()}) != 1 or self.lon.ndim != 1:
            raise InputError("rows have a time, a longitude, a latitude, a weight and a mark each")

    @classmethod
    def of(cls, lon: object, lat: object, time: float) -> "DeviceRows":
        """Places of one time, each of weight 1 and without a mark."""
        x, y = (np.asarray(column, dtype=np.float64) for column in (lon, lat))
        return cls(np.full(x.shape, float(time)), x, y, np.ones(x.shape), np.full(x.shape, np.nan))

    def __len__(self) -> int:
        return len(self.lon)

    def to_bytes(self) -> bytes:
        """The columns one after the other, little-endian."""
        return b"".join(getattr(self, name).astype("<f8").tobytes() for name in COLUMNS)

    @classmethod
    def from_bytes(cls, data: bytes) -> "DeviceRows":
        """What `to_bytes` wrote."""
        return cls(*np.frombuffer(data, dtype="<f8").reshape(len(COLUMNS), -1))

    def days(self) -> Iterator[tuple[int, "DeviceRows"]]:
        """The rows of each day; a row whose time is not known is of day 0."""
        day = np.floor(np.nan_to_num(self.time) / DAY).astype(np.int64)
        order = np.argsort(day, kind="stable")
        for chosen in np.split(order, np.flatnonzero(np.diff(day[order])) + 1) if len(order) else ():
            yield int(day[chosen[0]]), DeviceRows(*(getattr(self, name)[chosen] for name in COLUMNS))


@dataclass(frozen=True)
class RowStore:
    """The rows of one device.

    Rows of one day are sealed together. `keep` days after their own time they are deleted for good.
    """

    store: EncryptedStore
    device: int

    def add(self, places: DeviceRows, keep: int | None) -> int:
        """Keep rows for `keep` days from their own time (None: for good); how many were written."""
        return added(self.store, {self.device: places}, keep)

    def all(self) -> DeviceRows:
        """All rows, in the order in which they were added."""
        pages = self.store.read(
            "SELECT sequence, expires, sealed FROM rows WHERE device = ? ORDER BY sequence", self.device
        )
        each = [
            DeviceRows.from_bytes(self.store.unseal("rows", self.device, sequence, sealed, expires))
            for sequence, expires, sealed in pages
        ]
        return DeviceRows(*(np.concatenate([np.zeros(0), *(getattr(p, name) for p in each)]) for name in COLUMNS))

    def table(self, sampling: bytes, campaign: str) -> MemoryTable:
        """All rows as a table of one person, drawing samples of its own for each campaign."""
        rows = self.all()
        columns = {name: getattr(rows, name) for name in COLUMNS}
        person = np.zeros(len(columns["lon"]), dtype=np.int64)
        return MemoryTable(person, columns, sha256(sampling + campaign.encode()).digest())

    def __len__(self) -> int:
        return len(self.table(b"", "").person)


def added(store: EncryptedStore, places: dict[int, DeviceRows], keep: int | None) -> int:
    """Keep the rows of many devices in one transaction; how many were written."""
    if keep is not None and keep < 1:
        raise InputError(f"rows are kept for at least 1 day, or for good; found {keep}")
    with store.writing() as database:
        for device, own in places.items():
            sequence = store.next_number("rows", device)
            for number, (day, rows) in enumerate(own.days(), start=sequence):
                expires = NEVER if keep is None else day + keep + 1
                sealed = store.seal("rows", device, number, rows.to_bytes(), expires)
                database.execute("INSERT INTO rows VALUES (?, ?, ?, ?)", (device, number, expires, sealed))
    return sum(len(own) for own in places.values())


def any_rows(store: EncryptedStore) -> bool:
    """Whether there is a row of anybody."""
    return bool(store.read("SELECT 1 FROM rows LIMIT 1"))


def expire(store: EncryptedStore, now: float) -> int:
    """Delete for good what is older than it may be; of how many days and devices there was something."""
    today = int(now // DAY)
    if not store.read("SELECT 1 FROM rows WHERE expires <= ? LIMIT 1", today):
        return 0
    with store.writing() as database:
        gone = database.execute("DELETE FROM rows WHERE expires <= ?", (today,)).rowcount
    store.emptied()
    return gone


def forget(store: EncryptedStore, device: int | None = None) -> None:
    """Delete all rows of a device, or of all, for good, and leave the sessions that keep what was counted of them."""
    with store.writing() as database:
        database.execute("DELETE FROM rows WHERE ? IS NULL OR device = ?", (device, device))
        leave_all(database, device)
    store.emptied()


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


def own(table: Any, **names: Unpack[ColumnNames]) -> DeviceRows:
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
) -> list[DeviceRows]:
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
) -> dict[str, DeviceRows]:
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


def _places(columns: NDArray[np.float64]) -> DeviceRows:
    return DeviceRows(*np.ascontiguousarray(columns.T))


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


def _columns(layout: TableLayout, batch: list[Any], with_ids: bool) -> Batch:
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
