"""A table of events, CSV or Parquet, as events of one person or of many; refused whole where a line does not fit."""

import csv
from collections.abc import Iterator
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hazemap.errors import FileError, InputError, TableError
from hazemap.federated.device.event_store import Event
from hazemap.federated.recipes.event_stream import EventField, EventStream, EventType, EventValue
from hazemap.temporal.time_format import UNITS, TimeFormat

if TYPE_CHECKING:
    import pyarrow as pa

SIGNS = ",;\t"
MOST_LINES = 50_000_000


def events_by_person(
    table: Path, stream: EventStream, person: str | None, time_format: TimeFormat = "iso"
) -> dict[str | None, list[Event]]:
    r"""The events of each person, in the order of the table; without a column `person`, all are one person's (None).

    Columns are named as the stream's fields; others are not read. An event has exactly the types of its stream, or
    `InputError` names its line and what is wrong, never what stands there. Times are ISO 8601, the type of a column
    says that it holds some, or they are numbers since 1970 in the unit that `time_format` declares. O(lines).

    >>> import tempfile
    >>> stream = EventStream("keyboard", (EventField("score", EventType.REAL),), 30)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "events.csv"
    ...     _ = path.write_text("user,score\nanna,0.5\nbert,1.5\nanna,2\n")
    ...     events_by_person(path, stream, "user")
    {'anna': [(0.5,), (2.0,)], 'bert': [(1.5,)]}
    """
    found: dict[str | None, list[Event]] = {}
    read = _parquet if table.suffix.lower() == ".parquet" else _csv
    lines = read(table, stream, person, time_format)
    for number, (whose, event) in enumerate(lines):
        if number >= MOST_LINES:
            raise InputError(f"{table} has more than {MOST_LINES:,} lines: divide it")
        found.setdefault(whose, []).append(event)
    return found


def _csv(
    table: Path, stream: EventStream, person: str | None, time_format: TimeFormat
) -> Iterator[tuple[str | None, Event]]:
    try:
        with table.open(encoding="utf-8-sig", newline="") as file:
            head = file.readline(1 << 16)
            sign = max(SIGNS, key=head.count)
            names = next(csv.reader([head], delimiter=sign), [])
            places, whose = _places(table, names, stream, person)
            reader = csv.reader(file, delimiter=sign, strict=True)
            for row in reader:
                line = reader.line_num + 1
                if not row:
                    continue
                if len(row) != len(names):
                    raise InputError(f"{table}, line {line:,}: {len(row)} columns, but the head has {len(names)}")
                yield _owner(table, line, row, whose), _read(table, line, stream, row, places, time_format)
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{table} cannot be read as CSV in UTF-8 ({type(error).__name__})") from None
    except csv.Error as error:
        raise TableError(f"{table} cannot be read as CSV: {error}") from None


def _read(
    table: Path,
    line: int,
    stream: EventStream,
    row: list[str],
    places: list[int | None],
    time_format: TimeFormat,
) -> Event:
    try:
        return tuple(
            field.check(None) if place is None else field.read(row[place], time_format)
            for field, place in zip(stream.fields, places, strict=True)
        )
    except InputError as error:
        raise InputError(f"{table}, line {line:,}: {error}") from None


def _owner(table: Path, line: int, row: list[Any], whose: int | None) -> str | None:
    if whose is None:
        return None
    if row[whose] in (None, ""):
        raise InputError(f"{table}, line {line:,}: nobody's name stands in the column of people")
    return str(row[whose])


def _places(
    table: Path, names: list[str], stream: EventStream, person: str | None
) -> tuple[list[int | None], int | None]:
    """Where each field of the stream stands, and the person."""
    if len(set(names)) != len(names):
        raise TableError(f"{table} has two columns of one name")
    wanted = [field.name for field in stream.fields if not field.optional] + ([person] if person else [])
    if missing := [name for name in wanted if name not in names]:
        raise TableError(
            f"{table} has no column {missing[0]!r}: {stream.name} needs {', '.join(wanted)};"
            f" found {', '.join(names)[:200]}"
        )
    places = [names.index(field.name) if field.name in names else None for field in stream.fields]
    return places, names.index(person) if person else None


def _parquet(
    table: Path, stream: EventStream, person: str | None, time_format: TimeFormat
) -> Iterator[tuple[str | None, Event]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(table) as file:
            names = file.schema_arrow.names
            places, _ = _places(table, names, stream, person)
            read = [names[place] for place in places if place is not None]
            line = 0
            for batch in file.iter_batches(columns=[*read, *([person] if person else [])]):
                columns = [
                    [None] * len(batch)
                    if place is None
                    else _column(table, field, batch.column(field.name), time_format)
                    for field, place in zip(stream.fields, places, strict=True)
                ]
                owners = batch.column(person).to_pylist() if person else [None] * len(batch)
                for owner, *values in zip(owners, *columns, strict=True):
                    line += 1
                    whose = _owner(table, line, [owner], 0 if person else None)
                    yield whose, _checked(table, line, stream, values)
    except (OSError, pa.ArrowException) as error:
        raise FileError(f"{table} cannot be read as Parquet ({type(error).__name__})") from None


def _checked(table: Path, line: int, stream: EventStream, values: list[EventValue]) -> Event:
    try:
        return tuple(field.check(value) for field, value in zip(stream.fields, values, strict=True))
    except InputError as error:
        raise InputError(f"{table}, row {line:,}: {error}") from None


def _column(table: Path, field: EventField, column: "pa.Array", time_format: TimeFormat) -> list[Any]:
    """The values of a column, if its type is the field's: nothing is converted but times and the width of numbers."""
    import pyarrow as pa

    type_ = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    text = pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_)
    counted = pa.types.is_integer(type_) and time_format != "iso"
    fits = {
        EventType.INTEGER: pa.types.is_integer(type_),
        EventType.REAL: pa.types.is_floating(type_),
        EventType.TEXT: text,
        EventType.CATEGORY: text,
        EventType.TIME: counted or text or (pa.types.is_timestamp(type_) and time_format == "iso"),
    }[field.type]
    if not (fits or pa.types.is_null(type_)):
        unit = ": numbers need --time-format, and only they" if field.type is EventType.TIME else ""
        raise TableError(
            f"{table}: the column {field.name} holds {type_}, but the stream says {field.type.value}{unit}"
        )
    if pa.types.is_timestamp(type_):
        ticks = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[type_.unit]
        return [None if tick is None else tick // ticks for tick in column.cast(pa.int64()).to_pylist()]
    values: list[Any] = column.to_pylist()
    if field.type is EventType.TIME:
        return [_time(value, time_format) for value in values]
    return values


def _time(value: Any, time_format: TimeFormat) -> Any:
    """Whole seconds of a text or a number; what is no time as it is, so that it is refused by its line."""
    from hazemap.temporal.written_times import seconds_of_text

    if isinstance(value, int):
        return value // UNITS[time_format]
    seconds = nan if value is None else seconds_of_text(value, time_format)
    return value if isnan(seconds) else int(seconds // 1)
