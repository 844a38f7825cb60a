"""The columns of a table by their roles: which is which, and what SQL selects of numbers, marks and times.

The type of a column declares what it holds: dates and timestamps are times. Texts are read by one grammar
(`temporal.written_times`), each by itself; whole numbers and others are times only where their unit is declared.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite

from hazemap.engines.duckdb_connection import quoted
from hazemap.engines.person_ids import family_of, text_of_column
from hazemap.engines.table_source import SourcePart
from hazemap.errors import InputError, TableError
from hazemap.temporal.time_format import UNITS, TimeFormat
from hazemap.values.marks import Marks


@dataclass(frozen=True)
class ColumnRole:
    """A role, how to name its column, and the names it usually has: the first line of them that fits wins.

    >>> LON.column(["User ID", "Longitude", "lat"], None)
    'Longitude'
    """

    what: str
    option: str
    usual: tuple[tuple[str, ...], ...]

    def column(self, columns: Iterable[str], wanted: str | None) -> str:
        """The wanted column, else the one with a usual name; `TableError` for none, and for more than one."""
        found = list(columns)
        if wanted is not None:
            return self._named(found, wanted)
        for names in self.usual:
            fitting = [column for column in found if _plain(column) in names]
            if len(fitting) > 1:
                raise TableError(f"{' and '.join(fitting)} could each be the {self.what}; {self._hint}")
            if fitting:
                return fitting[0]
        raise TableError(
            f"no column is known to hold the {self.what}; found {', '.join(found) or 'no columns'}; {self._hint}"
        )

    def is_guessed(self, columns: Iterable[str]) -> bool:
        """Whether a column, or more than one, has a usual name."""
        return any(_plain(column) in names for column in columns for names in self.usual)

    @property
    def _hint(self) -> str:
        return f"name the column with --{self.option} ({self.option.replace('-', '_')}=… in Python)"

    def _named(self, found: list[str], wanted: str) -> str:
        fitting = [column for column in found if column == wanted]
        fitting = fitting or [column for column in found if column.casefold() == wanted.casefold()]
        if len(fitting) != 1:
            raise TableError(
                f"the {self.what} was said to be in column {wanted!r};"
                f" found {' and '.join(fitting) or 'only ' + ', '.join(found)}; {self._hint}"
            )
        return fitting[0]


def refuse_plain(columns: Iterable[str], lon: str | None, lat: str | None, remedy: str) -> None:
    """`TableError` if both coordinates would be taken from columns that are only called x and y: see `are_degrees`.

    They may as well be metres or pixels, which no name tells from degrees.
    """
    found = list(columns)
    if lon is not None or lat is not None or are_degrees(found):
        return
    x, y = LON.column(found, None), LAT.column(found, None)
    raise TableError(
        f"the columns {x!r} and {y!r} do not say whether they are degrees: for a longitude and a latitude say "
        f"--lon {x} --lat {y} (lon={x!r}, lat={y!r} in Python) or declare a box in degrees; {remedy}"
    )


def are_degrees(columns: Iterable[str]) -> bool:
    """Whether the names of coordinates alone say that they are degrees, which x and y do not.

    >>> are_degrees(["lon", "lat"]), are_degrees(["x", "latitude"]), are_degrees(["x", "y"])
    (True, True, False)
    """
    names = {_plain(column) for column in columns}
    return any(names & set(role.usual[0]) for role in (LON, LAT))


def refuse_repeated_names(names: Iterable[str], name: str) -> None:
    """`TableError` for two columns whose names are one to SQL, which does not see capitals.

    It would rename one of them, and a query for that one would read the other.
    """
    seen = dict[str, str]()
    for each in names:
        if each.lower() in seen:
            twins = (
                f"two columns called {each!r}"
                if seen[each.lower()] == each
                else f"columns called {seen[each.lower()]!r} and {each!r}, which SQL does not tell apart"
            )
            raise TableError(f"{name} has {twins}; rename one")
        seen[each.lower()] = each


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


PERSON = ColumnRole(
    "person",
    "person",
    (
        (
            *("user", "userid", "uid", "iduser", "person", "personid", "pid", "idperson", "device", "deviceid"),
            *("iddevice", "subject", "subjectid", "customer", "customerid", "member", "memberid", "rider", "riderid"),
            *("participant", "participantid", "visitor", "visitorid"),
        ),
    ),
)
LON = ColumnRole("longitude", "lon", (("lon", "lng", "long", "longitude"), ("x",)))
LAT = ColumnRole("latitude", "lat", (("lat", "latitude"), ("y",)))
CELL = ColumnRole("H3 cell", "cell-column", ())
TIME = ColumnRole("time", "time", (("ts", "time", "timestamp", "datetime", "date"),))
VALUE = ColumnRole("weight of a row", "value", ())
MARK = ColumnRole("mark of a row", "mark", ())
MEASURED = ColumnRole("value of a row", "value", ())
"""The measured value, such as a speed or a delay."""


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


def number_of(part: SourcePart, role: ColumnRole, column: str) -> str:
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
