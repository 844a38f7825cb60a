"""Query classes: which queries a device lets run over its streams of events (McMillan et al. 2022, section 4.2).

A class is public data that ships with a device. Each names the fields that its queries may read: a query of the class
that reads any other field is refused all the same. `federated.device.recipes.query_sandbox` decides, with SQLite's
authorizer.
"""

from dataclasses import dataclass
from enum import Enum

from hazemap.errors import InputError
from hazemap.federated.recipes.sql_query import (
    LONGEST_SQL,
    MOST_PARAMETERS,
    Parameter,
    SqlQuery,
    Value,
    check_name,
    check_shape,
    check_sql_name,
    check_text,
    check_value,
)
from hazemap.field_types import check_fields

MOST_STREAMS, MOST_FIELDS, MOST_QUERIES, MOST_CHOICES = 64, 64, 256, 1_024
"""Streams of a device, fields of a stream, queries or templates of a class, values to choose a parameter from."""

RESERVED = ("sqlite", "pragma", "json", "fts", "rtree", "dbstat", "bytecode", "tables_used", "generate_series")
"""How names of SQLite's own tables begin: no stream is called so."""

ROW_NUMBERS = ("rowid", "oid", "_rowid_")
"""What SQLite calls the number of a row: no field is called so."""

FUNCTIONS: tuple[str, ...] = (
    *("abs", "avg", "coalesce", "count", "ifnull", "length", "lower", "max", "min", "nullif", "round"),
    *("sign", "substr", "substring", "sum", "total", "typeof", "unicode", "upper"),
    *("row_number", "rank", "dense_rank", "first_value", "last_value", "lag", "lead", "nth_value", "ntile"),
)
"""Functions that queries use unless a class says otherwise: cheap, and the same for the same events."""

SEARCHES: tuple[str, ...] = ("glob", "instr", "like", "ltrim", "replace", "rtrim", "trim")
"""Functions that a class may name besides: their cost grows with the product of two lengths."""


class FieldType(Enum):
    """What a field of an event holds."""

    INTEGER = "integer"
    REAL = "real"
    TEXT = "text"

    @property
    def python(self) -> type:
        """Its type in Python."""
        return {"integer": int, "real": float, "text": str}[self.value]


@dataclass(frozen=True)
class StreamField:
    """One field of a stream's events."""

    name: str
    type: FieldType

    def __post_init__(self) -> None:
        check_fields(self)
        if check_sql_name(self.name, "the name of a field") in ROW_NUMBERS:
            raise InputError(f"a field is not called {self.name}: SQLite calls the number of a row so")


@dataclass(frozen=True)
class StreamSchema:
    """A stream of events on a device: its name and the fields of each event, in order.

    >>> schema = StreamSchema.of("keyboard", ngram="text", time="integer")
    >>> schema.field("time").type
    <FieldType.INTEGER: 'integer'>
    """

    name: str
    fields: tuple[StreamField, ...]

    def __post_init__(self) -> None:
        check_fields(self)
        if check_sql_name(self.name, "the name of a stream").startswith(RESERVED):
            raise InputError(f"the name of a stream does not begin as those of SQLite's own tables do: {self.name}")
        if not 1 <= len(self.fields) <= MOST_FIELDS:
            raise InputError(f"a stream has 1 to {MOST_FIELDS} fields; {self.name} has {len(self.fields)}")
        if len({field.name for field in self.fields}) != len(self.fields):
            raise InputError(f"the stream {self.name} has two fields of one name")

    @classmethod
    def of(cls, name: str, /, **fields: str) -> "StreamSchema":
        """A stream whose fields have these types: "integer", "real" or "text"."""
        known = {each.value: each for each in FieldType}
        if strange := sorted(set(fields.values()) - set(known)):
            raise InputError(f"a field holds one of {', '.join(known)}; found {strange[0]!r:.40}")
        return cls(name, tuple(StreamField(field, known[type_]) for field, type_ in fields.items()))

    def field(self, name: str) -> StreamField:
        """The field of this name."""
        for each in self.fields:
            if each.name == name:
                return each
        raise InputError(f"the stream {self.name} has no field {name!r:.80}")


@dataclass(frozen=True, order=True)
class StreamFieldName:
    """A field as budgets and classes name it: `keyboard.ngram`."""

    stream: str
    field: str

    def __post_init__(self) -> None:
        check_name(self.stream, "the name of a stream")
        check_name(self.field, "the name of a field")

    def __str__(self) -> str:
        return f"{self.stream}.{self.field}"

    @classmethod
    def parse(cls, text: str) -> "StreamFieldName":
        """From `stream.field`."""
        stream, dot, field = text.partition(".") if isinstance(text, str) else ("", "", "")
        if not dot:
            raise InputError(f"a field is named with its stream, as in keyboard.ngram; found {text!r:.80}")
        return cls(stream, field)


@dataclass(frozen=True)
class ParameterRange:
    """What a parameter of a template may be: one of `choices`, or a number from `low` to `high`."""

    name: str
    type: FieldType
    low: int | float | None = None
    high: int | float | None = None
    choices: tuple[Value, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        check_name(self.name, "the name of a parameter")
        ends = [each for each in (self.low, self.high) if each is not None]
        if len(self.choices) > MOST_CHOICES:
            raise InputError(f"a parameter has at most {MOST_CHOICES:,} values to choose from")
        for each in (*ends, *self.choices):
            check_value(each, f"a limit of the parameter {self.name}")
            if type(each) is not self.type.python:
                raise InputError(f"the parameter {self.name} is {self.type.value}; {each!r:.40} is not")
        if bool(self.choices) == bool(ends) or len(ends) == 1 or (ends and ends[0] > ends[1]):
            raise InputError(f"the parameter {self.name} has choices, or a low and a high end in ascending order")

    def refusal(self, value: Value) -> str | None:
        """Why a value is not admitted; None where it is."""
        if type(value) is not self.type.python:
            return f"the parameter {self.name} is to be {self.type.value}"
        if self.choices:
            return None if value in self.choices else f"the parameter {self.name} is none of the values to choose from"
        inside = bool(self.low <= value <= self.high)  # type: ignore[operator]  # both ends are there, of its type
        return None if inside else f"the parameter {self.name} lies between {self.low} and {self.high}"


@dataclass(frozen=True)
class QueryTemplate:
    """A query whose text is fixed and whose parameters may vary within ranges."""

    text: str
    parameters: tuple[ParameterRange, ...]

    def __post_init__(self) -> None:
        check_fields(self)
        check_text(self.text, "a template", LONGEST_SQL)
        if not 1 <= len(self.parameters) <= MOST_PARAMETERS:
            raise InputError(f"a template has 1 to {MOST_PARAMETERS} parameters: without any, list it as a query")
        check_shape(self.text, [each.name for each in self.parameters])

    def refusal(self, query: SqlQuery) -> str | None:
        """Why a query is not made from this template; None where it is."""
        if query.text != self.text:
            return "the text is another one"
        handed = {each.name: each.value for each in query.parameters}
        return next((why for each in self.parameters if (why := each.refusal(handed[each.name]))), None)


@dataclass(frozen=True)
class ListedQueries:
    """The queries that are listed, word for word and with the same parameters, and no other.

    >>> only = ListedQueries((SqlQuery("SELECT age FROM profile"),), (StreamFieldName("profile", "age"),))
    >>> only.refusal(SqlQuery("SELECT max(age) FROM profile"))
    'this query is not on the list'
    """

    queries: tuple[SqlQuery, ...]
    fields: tuple[StreamFieldName, ...]
    functions: tuple[str, ...] = FUNCTIONS

    def __post_init__(self) -> None:
        _check_class(self, len(self.queries))

    def refusal(self, query: SqlQuery) -> str | None:
        """Why a query is not of this class, as far as its text tells; None where it may be."""
        return None if any(_same(query, each) for each in self.queries) else "this query is not on the list"


@dataclass(frozen=True)
class QueryTemplates:
    """Queries made from templates: a fixed text, and parameters within ranges."""

    templates: tuple[QueryTemplate, ...]
    fields: tuple[StreamFieldName, ...]
    functions: tuple[str, ...] = FUNCTIONS

    def __post_init__(self) -> None:
        _check_class(self, len(self.templates))

    def refusal(self, query: SqlQuery) -> str | None:
        """Why a query is not of this class, as far as its text tells; None where it may be."""
        found = [each for each in self.templates if each.text == query.text]
        if not found:
            return "this query is made from none of the templates"
        reasons = [each.refusal(query) for each in found]
        return None if None in reasons else reasons[0]


@dataclass(frozen=True)
class AnyQueryOverFields:
    """Every query that reads these fields only, and uses these functions only."""

    fields: tuple[StreamFieldName, ...]
    functions: tuple[str, ...] = FUNCTIONS

    def __post_init__(self) -> None:
        _check_class(self, 1)

    def refusal(self, query: SqlQuery) -> str | None:  # noqa: ARG002 - what it reads, only SQLite can tell
        """None: the text alone tells nothing."""
        return None


QueryClass = ListedQueries | QueryTemplates | AnyQueryOverFields
"""What a device may admit queries by. `fields` and `functions` are the most that any query of it may use."""

KNOWN: tuple[type, ...] = (
    *(StreamSchema, StreamField, StreamFieldName, FieldType, SqlQuery, Parameter),
    *(ListedQueries, QueryTemplates, QueryTemplate, ParameterRange, AnyQueryOverFields),
)
"""What query classes add to the codec's closed list."""


def _same(one: SqlQuery, other: SqlQuery) -> bool:
    """Whether two queries have the same text, and the same values of the same types: 1 is not 1.0."""
    if one.text != other.text:
        return False
    mine, theirs = ({each.name: (type(each.value), each.value) for each in query.parameters} for query in (one, other))
    return mine == theirs


def _check_class(found: QueryClass, queries: int) -> None:
    check_fields(found)
    if not 1 <= queries <= MOST_QUERIES:
        raise InputError(f"a query class lists 1 to {MOST_QUERIES} queries; this one has {queries}")
    if not 1 <= len(found.fields) <= MOST_STREAMS * MOST_FIELDS or len(set(found.fields)) != len(found.fields):
        raise InputError("a query class names the fields that may be read, each once")
    known = set(FUNCTIONS) | set(SEARCHES)
    if strange := [each for each in found.functions if each not in known]:
        raise InputError(f"queries cannot use the function {strange[0]!r:.40}; those they may use: {sorted(known)}")


def check_streams(streams: tuple[StreamSchema, ...], found: QueryClass) -> None:
    """`InputError` unless the streams have different names, and every field of the class is a field of one."""
    if not 1 <= len(streams) <= MOST_STREAMS or len({each.name for each in streams}) != len(streams):
        raise InputError(f"a device has 1 to {MOST_STREAMS} streams of different names")
    known = {StreamFieldName(each.name, field.name) for each in streams for field in each.fields}
    if missing := sorted(set(found.fields) - known):
        raise InputError(f"no stream of this device has the field {missing[0]}")
