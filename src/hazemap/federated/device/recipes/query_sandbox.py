"""Where a recipe's query runs over a person's events: SQLite in memory, with nothing in it but what the query may read.

Three walls, one behind the other (McMillan et al. 2022, section 4.2):

* the *shape*: one SELECT, no comments, no names in quotes, no NATURAL JOIN or USING (`federated.recipes.sql_query`);
* the *authorizer*: SQLite asks it, while it compiles, for every field and function by name; all else is denied;
* the *contents*: only fields that the authorizer has seen are ever read from the device's store. The others are there
  as names that hold nothing.

What a query touches is found on empty streams, so it cannot depend on events. A query that fails while it runs has no
rows and says nothing else: an error could tell what was in an event.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from itertools import chain, islice
from operator import itemgetter
from time import thread_time
from typing import Protocol

from hazemap.errors import InputError, Refused
from hazemap.federated.recipes.query_class import MOST_FIELDS, QueryClass, StreamFieldName, StreamSchema, check_streams
from hazemap.federated.recipes.sql_query import LONGEST_SQL, SqlQuery, Value

Event = Sequence[Value | None]


class EventSource(Protocol):
    """Where events come from: the device's own store."""

    def events(self, stream: str, fields: tuple[str, ...]) -> Iterable[Event]:
        """The events of a stream, oldest first, with the values of these fields in this order."""
        ...


@dataclass(frozen=True)
class QueryLimits:
    """What a query may cost. `steps` are those of SQLite's virtual machine; a query that needs more has no rows.

    `length` is in bytes, of one text or of one row that the query puts aside; `rows` and `letters` bound its answer,
    `names` what it names when every part of it is put in where it is used. `seconds` of the processor are a second
    bound, for machines so slow that the steps take longer. `heap` bounds all of SQLite's memory in this process, once
    and for all: SQLite lowers it and never raises it again.
    """

    events: int = 100_000
    steps: int = 2_000_000
    length: int = 4_096
    rows: int = 10_000
    letters: int = 1 << 22
    names: int = 2_000
    seconds: float = 2.0
    heap: int = 1 << 27


class QueryFailure(Enum):
    """Why a query has no rows: for the person's own log. It never leaves the device."""

    STEPS = "the query took too many steps"
    ROWS = "the query has too many rows"
    EVENTS = "there are too many events"
    MEMORY = "the query took too much memory"
    ERROR = "the query failed on these events"


@dataclass(frozen=True)
class AdmittedQuery:
    """A query that a class admits, what it touches, and how many columns its rows have."""

    query: SqlQuery
    touched: tuple[StreamFieldName, ...]
    columns: int


@dataclass(frozen=True)
class QueryOutcome:
    """The rows of a query, none where it failed; `thousands` of steps it took."""

    rows: tuple[tuple[Value | None, ...], ...]
    failure: QueryFailure | None
    thousands: int


@dataclass(frozen=True)
class QuerySandbox:
    """Streams, the class of queries that may run over them, and what one query may cost.

    >>> from hazemap.federated.recipes.query_class import AnyQueryOverFields
    >>> streams = (StreamSchema.of("profile", age="integer", name="text"),)
    >>> sandbox = QuerySandbox(streams, AnyQueryOverFields((StreamFieldName("profile", "age"),)))
    >>> [str(field) for field in sandbox.admit(SqlQuery("SELECT age / 10 FROM profile")).touched]
    ['profile.age']
    >>> sandbox.admit(SqlQuery("SELECT name FROM profile"))
    Traceback (most recent call last):
    hazemap.errors.Refused: this device does not let queries read profile.name
    """

    streams: tuple[StreamSchema, ...]
    query_class: QueryClass
    limits: QueryLimits = QueryLimits()

    def __post_init__(self) -> None:
        check_streams(self.streams, self.query_class)

    def admit(self, query: SqlQuery) -> AdmittedQuery:
        """What a query touches, found without any event; `Refused` where the class does not admit it."""
        if reason := self.query_class.refusal(query):
            raise Refused(reason)
        authorizer = Authorizer(self.streams, self.query_class, self.limits.names)
        meter = _Meter(self.limits)
        with closing(_empty(self.streams)) as connection, _guarded(connection, self.limits, authorizer, meter):
            try:
                cursor = connection.execute(query.text, _handed(query))
                columns = len(cursor.description or ())
                _fetched(cursor, self.limits)
            except (_QueryStop, sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
                reason = authorizer.refused or f"this query cannot run, even without events: {error!s:.200}"
                raise Refused(reason) from None
        touched = authorizer.touched
        if not touched:
            raise Refused("this query reads no field of any stream")
        return AdmittedQuery(query, touched, columns)

    def run(self, admitted: AdmittedQuery, source: EventSource) -> QueryOutcome:
        """The rows of a query that `admit` gave; no rows where anything goes wrong: O(events + steps).

        The source is asked for touched fields only. Nothing that it or SQLite raises comes out.
        """
        authorizer = Authorizer(self.streams, self.query_class, self.limits.names)
        meter = _Meter(self.limits)
        try:
            with closing(_empty(self.streams)) as connection:
                self._load(connection, admitted, source)
                with _guarded(connection, self.limits, authorizer, meter):
                    rows = _fetched(connection.execute(admitted.query.text, _handed(admitted.query)), self.limits)
        except _QueryStop as stopped:
            return QueryOutcome((), stopped.failure, meter.thousands)
        except MemoryError:
            return QueryOutcome((), QueryFailure.MEMORY, meter.thousands)
        except Exception:  # whatever it is, it may hold what an event says
            return QueryOutcome((), QueryFailure.STEPS if meter.spent else QueryFailure.ERROR, meter.thousands)
        return QueryOutcome(rows, None, meter.thousands)

    def _load(self, connection: sqlite3.Connection, admitted: AdmittedQuery, source: EventSource) -> None:
        """Put the touched fields of every touched stream in; the others hold nothing."""
        connection.execute("BEGIN")
        for stream in self.streams:
            touched = {each.field for each in admitted.touched if each.stream == stream.name}
            wanted = tuple(each.name for each in stream.fields if each.name in touched)
            if wanted:
                events = list(islice(source.events(stream.name, wanted), self.limits.events + 1))
                if len(events) > self.limits.events:
                    raise _QueryStop(QueryFailure.EVENTS)
                _check_types(events, stream, wanted)
                _insert(connection, stream.name, wanted, events)
        connection.execute("COMMIT")


class Authorizer:
    """What SQLite asks while it compiles: it says yes to the class's fields and functions, and no to all else.

    `touched` are the fields that it said yes to. A query that only counts the events of a stream touches every field of
    it that may be read: the strictest of their budgets pays.
    """

    def __init__(self, streams: tuple[StreamSchema, ...], found: QueryClass, names: int) -> None:
        self.schemas = {each.name: each for each in streams}
        self.allowed, self.functions = frozenset(found.fields), frozenset(found.functions)
        self.names, self.asked = names, 0
        self.refused: str | None = None
        self._fields: set[StreamFieldName] = set()
        self._counted: set[str] = set()

    @property
    def touched(self) -> tuple[StreamFieldName, ...]:
        """What the query reads, in ascending order."""
        named = {each.stream for each in self._fields}
        counted = {each for each in self.allowed if each.stream in self._counted - named}
        return tuple(sorted(self._fields | counted))

    def __call__(self, action: int, one: str | None, two: str | None, _base: str | None, _by: str | None) -> int:
        """SQLite's question: an action and its operands."""
        self.asked += 1
        reason = self._judge(action, one or "", two or "")
        if self.asked > self.names:
            reason = f"this query names more than {self.names:,} things when its parts are put in"
        if reason is None:
            return sqlite3.SQLITE_OK
        self.refused = self.refused or reason
        return sqlite3.SQLITE_DENY

    def _judge(self, action: int, one: str, two: str) -> str | None:
        if action == sqlite3.SQLITE_SELECT:
            return None
        if action == sqlite3.SQLITE_FUNCTION:
            return None if two.lower() in self.functions else f"queries here do not use the function {two:.40}"
        if action == sqlite3.SQLITE_READ:
            return self._read(one.lower(), two)  # as written, where no field is named: SQLite takes VAULT for vault
        if action == sqlite3.SQLITE_RECURSIVE:
            return "queries here do not repeat themselves (WITH RECURSIVE)"
        return "queries here only read events"

    def _read(self, table: str, column: str) -> str | None:
        if table not in self.schemas:  # perhaps a WITH of the query's own, whose parts are asked for one by one
            return f"this device has no stream {table:.40}" if column or _built_in(table) else None
        fields = {each.name for each in self.schemas[table].fields}
        if not column:
            allowed = any(each.stream == table for each in self.allowed)
            self._counted.add(table)
            return None if allowed else f"this device does not let queries count {table}"
        if column not in fields or StreamFieldName(table, column) not in self.allowed:
            return f"this device does not let queries read {table}.{column:.63}"
        self._fields.add(StreamFieldName(table, column))
        return None


class _QueryStop(Exception):
    """A query goes beyond its limits."""

    def __init__(self, failure: QueryFailure) -> None:
        super().__init__(failure)
        self.failure = failure


class _Meter:
    """Counts steps, and stops a query that took too many, or too long: one step may trim or search a long text."""

    def __init__(self, limits: QueryLimits) -> None:
        self.limits, self.strides, self.begun, self.spent = limits, 0, thread_time(), False

    @property
    def thousands(self) -> int:
        """Of steps, so far."""
        return self.strides * _STRIDE // 1_000

    def __call__(self) -> int:
        self.strides += 1
        late = thread_time() - self.begun > self.limits.seconds
        self.spent = self.strides * _STRIDE >= self.limits.steps or late
        return int(self.spent)


_STRIDE = 100

_INSERTED = 32
"""Events that one statement puts in."""


def _empty(streams: tuple[StreamSchema, ...]) -> sqlite3.Connection:
    """SQLite in memory with a strict table for every stream, without a row."""
    connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)
    connection.execute("PRAGMA temp_store = MEMORY")  # what is sorted never reaches a disk
    connection.execute("PRAGMA trusted_schema = OFF")
    for stream in streams:
        fields = ", ".join(f"{each.name} {each.type.value}" for each in stream.fields)
        connection.execute(f"CREATE TABLE {stream.name} ({fields}) STRICT")
    return connection


def _insert(connection: sqlite3.Connection, stream: str, wanted: tuple[str, ...], events: list[Event]) -> None:
    """Put the events in, some at a time: one by one they take three times as long."""
    row = f"({', '.join('?' * len(wanted))})"
    insert = f"INSERT INTO {stream} ({', '.join(wanted)}) VALUES "  # noqa: S608 - checked names
    many = len(events) // _INSERTED * _INSERTED
    flat = chain.from_iterable(events[:many])
    connection.executemany(insert + ", ".join([row] * _INSERTED), zip(*[flat] * (_INSERTED * len(wanted)), strict=True))
    connection.executemany(insert + row, events[many:])


@contextmanager
def _guarded(
    connection: sqlite3.Connection, limits: QueryLimits, authorizer: Authorizer, meter: _Meter
) -> Iterator[None]:
    """All limits and the authorizer, for one query."""
    connection.execute("PRAGMA query_only = ON")
    connection.execute(f"PRAGMA hard_heap_limit = {limits.heap:d}")
    for limit, most in (
        (sqlite3.SQLITE_LIMIT_LENGTH, limits.length),
        (sqlite3.SQLITE_LIMIT_SQL_LENGTH, LONGEST_SQL),
        (sqlite3.SQLITE_LIMIT_COLUMN, MOST_FIELDS),
        (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 64),
        (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 16),
        (sqlite3.SQLITE_LIMIT_VDBE_OP, 25_000),
        (sqlite3.SQLITE_LIMIT_FUNCTION_ARG, 16),
        (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
        (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 64),
        (sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 64),
        (sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 1),
        (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
    ):
        connection.setlimit(limit, most)
    connection.set_progress_handler(meter, _STRIDE)
    connection.set_authorizer(authorizer)
    try:
        yield
    finally:
        connection.set_authorizer(None)
        connection.set_progress_handler(None, 0)


def _fetched(cursor: sqlite3.Cursor, limits: QueryLimits) -> tuple[tuple[Value | None, ...], ...]:
    """All rows, within the limits."""
    rows: list[tuple[Value | None, ...]] = []
    letters = 0
    while part := cursor.fetchmany(_STRIDE):
        rows += part
        letters += sum(len(each) for row in part for each in row if isinstance(each, str | bytes))
        if len(rows) > limits.rows or letters > limits.letters:
            raise _QueryStop(QueryFailure.ROWS)
    return tuple(rows)


def _handed(query: SqlQuery) -> dict[str, Value]:
    return {each.name: each.value for each in query.parameters}


def _check_types(events: list[Event], stream: StreamSchema, wanted: tuple[str, ...]) -> None:
    """Each value has the type of its field or is missing: SQLite would take 1.0 for 1, and '1' too."""
    if not set(map(len, events)) <= {len(wanted)}:
        raise InputError(f"an event of {stream.name} has another number of fields")
    for place, name in enumerate(wanted):
        if not set(map(type, map(itemgetter(place), events))) <= {stream.field(name).type.python, type(None)}:
            raise InputError(f"an event of {stream.name} holds a value of another type than its field")


def _built_in(table: str) -> bool:
    """Whether SQLite itself has a table of this name (its schema, pragmas, functions that give rows)."""
    quoted = table.replace('"', '""')
    with closing(sqlite3.connect(":memory:")) as connection, suppress(sqlite3.Error):
        try:
            connection.execute(f'SELECT 1 FROM "{quoted}"')  # noqa: S608 - quoted, in a database without anything
        except sqlite3.OperationalError as error:
            return not str(error).startswith("no such table")
    return True
