"""Streams of events that a device keeps: a name, typed fields, and how long an event is kept.

McMillan et al. (2022), section 4. A stream is public: a signed policy lists those that are approved. What does not fit
its types is refused before anything is stored.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from math import isfinite
from typing import Any

from hazemap.errors import InputError
from hazemap.federated.recipes.query_class import FieldType, StreamField, StreamFieldName, StreamSchema
from hazemap.federated.recipes.sql_query import LONGEST_VALUE, check_text
from hazemap.field_types import check_fields
from hazemap.temporal.time_format import TimeFormat
from hazemap.temporal.written_times import seconds_of_text

LONGEST_KEPT = 3_660
"""Days that an event is kept at most."""

MOST_VALUES = 1_024
"""Values of a category at most."""

LATEST = 253_402_300_799
"""The last second of the year 9999."""

EventValue = int | float | str | None
"""What an event holds in one field: a time is whole seconds since 1970 (UTC), a category one of its texts."""


class EventType(Enum):
    """What a field of an event holds."""

    INTEGER = "integer"
    REAL = "real"
    TEXT = "text"
    TIME = "time"
    CATEGORY = "category"

    @property
    def in_queries(self) -> FieldType:
        """What a query sees: a time as whole seconds since 1970 (UTC), a category as its text."""
        if self is EventType.TIME:
            return FieldType.INTEGER
        return FieldType.TEXT if self is EventType.CATEGORY else FieldType(self.value)


@dataclass(frozen=True)
class EventField:
    """One field of the events of a stream; `values` are those of a category, `optional` ones may be missing.

    >>> EventField("layout", EventType.CATEGORY, ("qwerty", "azerty")).read("dvorak")
    Traceback (most recent call last):
    hazemap.errors.InputError: layout is none of the 2 values of its category
    """

    name: str
    type: EventType
    values: tuple[str, ...] = ()
    optional: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        StreamField(self.name, self.type.in_queries)
        if bool(self.values) != (self.type is EventType.CATEGORY):
            raise InputError(f"a category lists its values, and nothing else does: see the field {self.name}")
        if len(set(self.values)) != len(self.values) or len(self.values) > MOST_VALUES:
            raise InputError(f"a category has at most {MOST_VALUES:,} values, each once: see the field {self.name}")
        for value in self.values:
            check_text(value, f"a value of {self.name}", LONGEST_VALUE)

    def check(self, value: Any) -> EventValue:
        """A value that has this field's type already, or is missing where it may be; `InputError` for any other."""
        if value is None and self.optional:
            return None
        if value is None or not _OF_TYPE[self.type](value):
            found = "nothing" if value is None else _words(value)
            raise InputError(f"{self.name} is {_NAMES[self.type]}; found {found}")
        if self.type is EventType.CATEGORY and value not in self.values:
            raise InputError(f"{self.name} is none of the {len(self.values):,} values of its category")
        if self.type in (EventType.TEXT, EventType.CATEGORY):
            check_text(value, self.name, LONGEST_VALUE)
        return value  # type: ignore[no-any-return]  # checked above

    def read(self, text: str, time_format: TimeFormat = "iso") -> EventValue:
        """A value as a text file writes it: `InputError` for what is not of this type. Nothing means missing.

        A time is ISO 8601, or a number since 1970 where `time_format` declares its unit.
        """
        if self.type in (EventType.TEXT, EventType.CATEGORY):
            return self.check(None if not text and self.optional else text)
        if not text.strip():
            return self.check(None)
        try:
            if len(text) > 64:
                raise ValueError(text)
            if self.type is EventType.TIME:
                return self.check(_moment(text, time_format))
            return self.check(_READ[self.type](text.strip()))
        except (ValueError, OverflowError):
            raise InputError(f"{self.name} is {_NAMES[self.type]}; found another text") from None


@dataclass(frozen=True)
class EventStream:
    """A stream: its name, the fields of its events in order, and the days that an event is kept.

    An event is kept until `keep` days after its own time (the earliest of its fields of type time) or after it was
    donated, whichever is earlier. So nobody keeps an old event for longer by donating it late, nor a new one by dating
    it into the future.

    >>> stream = EventStream("keyboard", (EventField("ngram", EventType.TEXT), EventField("at", EventType.TIME)), 30)
    >>> stream.ends(("hello world", 86_400), donated=1e9) == 86_400 * 31
    True
    """

    name: str
    fields: tuple[EventField, ...]
    keep: int

    def __post_init__(self) -> None:
        check_fields(self)
        _ = self.schema
        if not 1 <= self.keep <= LONGEST_KEPT:
            raise InputError(
                f"events of {self.name} are kept for 1 to {LONGEST_KEPT:,} days, not {self.keep}: leave the stream out"
                " of the policy to keep none"
            )

    @property
    def schema(self) -> StreamSchema:
        """The stream as queries see it."""
        return StreamSchema(self.name, tuple(StreamField(each.name, each.type.in_queries) for each in self.fields))

    @property
    def names(self) -> tuple[StreamFieldName, ...]:
        """Its fields, as budgets name them."""
        return tuple(StreamFieldName(self.name, each.name) for each in self.fields)

    def begins(self, event: tuple[EventValue, ...], donated: float) -> float:
        """From when on its retention runs: its own time, or that of its donation; seconds since 1970."""
        own = [
            value
            for each, value in zip(self.fields, event, strict=True)
            if each.type is EventType.TIME and isinstance(value, int)
        ]
        return min([donated, *own])

    def ends(self, event: tuple[EventValue, ...], donated: float) -> float:
        """The second from which on the event is read no more."""
        return self.begins(event, donated) + self.keep * 86_400


def _of_time(value: Any) -> bool:
    return type(value) is int and 0 <= value <= LATEST


def _of_text(value: Any) -> bool:
    return type(value) is str


_OF_TYPE: dict[EventType, Callable[[Any], bool]] = {
    EventType.INTEGER: lambda value: type(value) is int and -(1 << 63) <= value < 1 << 63,
    EventType.REAL: lambda value: type(value) is float and isfinite(value),
    EventType.TEXT: _of_text,
    EventType.TIME: _of_time,
    EventType.CATEGORY: _of_text,
}
_NAMES = {
    EventType.INTEGER: "a whole number of 64 bits",
    EventType.REAL: "a finite number with a fraction",
    EventType.TEXT: "a text",
    EventType.TIME: "a time from 1970 to 9999",
    EventType.CATEGORY: "a text of a category",
}


def _moment(text: str, time_format: TimeFormat) -> int:
    return int(seconds_of_text(text, time_format) // 1)  # ValueError where it is NaN


def _whole(text: str) -> int:
    if not text.removeprefix("-").isdigit() or not text.isascii():
        raise ValueError(text)
    return int(text)


def _number(text: str) -> float:
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return float(text)


_READ: dict[EventType, Callable[[str], EventValue]] = {
    EventType.INTEGER: _whole,
    EventType.REAL: _number,
}


def _words(value: Any) -> str:
    return f"a {type(value).__name__} that is not" if type(value) in (int, float, str) else f"a {type(value).__name__}"
