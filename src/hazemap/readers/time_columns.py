"""The time of a row: what SQL selects of its column, and the window of times that counts.

The type of a column declares what it holds: dates and timestamps are times. Texts are read by one grammar
(`temporal.written_times`), each by itself; whole numbers and others are times only where their unit is declared.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from hazemap.engines.duckdb_connection import quoted
from hazemap.engines.table_source import SourcePart
from hazemap.errors import InputError, TableError
from hazemap.readers.mark_columns import is_number
from hazemap.temporal.time_format import UNITS, TimeFormat

_ZONED = ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS")
_UNIX = "say --time-format seconds or milliseconds (time_format=… in Python) for numbers since 1970"

Limit = datetime | str | None


@dataclass(frozen=True)
class TimeColumn:
    """A column of times in one part of a source.

    `sql` selects seconds since 1970 as DOUBLE, or texts that are to be read; `typed` is the time in SQL, which compares
    it with a limit, of a column whose type says that it is one. `zoned` says that no time can lack its offset.
    """

    sql: str
    typed: str | None
    zoned: bool

    def within(self, since: Limit, until: Limit) -> tuple[str, ...]:
        """The conditions in SQL on a typed time; none for another, which is read first."""
        if self.typed is None:
            return ()
        kind, zone = ("TIMESTAMPTZ", "+00") if self.zoned else ("TIMESTAMP", "")
        return tuple(
            f"{self.typed} {sign} {kind} '{utc(limit):%Y-%m-%d %H:%M:%S.%f}{zone}'"
            for sign, limit in ((">=", since), ("<", until))
            if limit is not None
        )


def time_column(part: SourcePart, column: str, written: TimeFormat) -> TimeColumn:
    """The reading of a column of times; `TableError` for a type that is not a time in this format."""
    kind, name = part.kinds[column], quoted(column)
    if kind == "VARCHAR":
        return TimeColumn(name, None, written != "iso")
    if kind.startswith(("DATE", "TIMESTAMP")):
        if written != "iso":
            raise TableError(f"the column {column!r} is {kind}, which says what time it is: leave --time-format out")
        # NULL where a time is beyond all calendars; and DuckDB compares TIMESTAMPTZ_NS with nothing else
        of = "TIMESTAMPTZ" if kind in _ZONED else "TIMESTAMP"
        typed = name if kind == _ZONED[0] else f"TRY_CAST({name} AS {of})"
        return TimeColumn(f"epoch({typed})", typed, kind in _ZONED)
    if not is_number(kind) or written == "iso":
        raise TableError(
            f"the time must be dates or timestamps; the column {column!r} is {kind}"
            + (f": {_UNIX}" if is_number(kind) else "")
        )
    return TimeColumn(f"TRY_CAST({name} AS DOUBLE) / {UNITS[written]}", None, True)


def utc(limit: datetime | str) -> datetime:
    """A limit of times in UTC, which it is in unless it says otherwise; `InputError` for what is none."""
    try:
        moment = limit if isinstance(limit, datetime) else datetime.fromisoformat(limit)
    except ValueError:
        raise InputError(f"write a time as 2024-05-31 or 2024-05-31T18:00:00+02:00; found {limit!r}") from None
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise InputError(f"a time lies between the years 1 and 9999, in UTC too; found {limit!r}") from None
