"""A person's own events, in streams: donated, sealed, read one after the other, deleted in time.

Events are sealed in pages. A page holds events that expire on one day; a donation goes on where the last page of that
day has room, so a device that donates one event at a time reads 10,000 of them as fast as one that donates them at
once. An event is read until its retention ends, to the second, and its page is deleted for good within a day after.

The stream `places` is the table of rows that campaigns ask about (`row_store`), seen as a stream: it is filled as ever.

Events come from a table, CSV or Parquet, of one person or of many, which is refused whole where a line does not fit.
"""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf, isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hazemap.errors import FileError, InputError, TableError
from hazemap.federated.device.store.answer_records import leave_all
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.device.store.row_store import DAY, RowStore
from hazemap.federated.recipes.event_stream import EventField, EventStream, EventType, EventValue
from hazemap.federated.recipes.policy import ShippedPolicy
from hazemap.federated.recipes.query_class import StreamFieldName
from hazemap.temporal.time_format import UNITS, TimeFormat

if TYPE_CHECKING:
    import pyarrow as pa


PAGE = 1_024
"""Events of a page at most: sealing one again for one more event costs less than a millisecond."""

MOST_EVENTS = 1 << 20
"""Events of one stream of a device: more are refused, before any of them is stored."""

PLACES = "places"
"""The stream of rows of places. A policy that lists it gives it these fields, in this order:"""

PLACE_FIELDS = (
    EventField("time", EventType.TIME, optional=True),
    EventField("lon", EventType.REAL),
    EventField("lat", EventType.REAL),
    EventField("weight", EventType.REAL),
    EventField("mark", EventType.REAL, optional=True),
)

Event = tuple[EventValue, ...]


class DonationCounts(NamedTuple):
    """Events that were stored, and those that were too old to be stored at all."""

    kept: int
    older: int


class _Page(NamedTuple):
    """`keep` days were promised to these events; `begins` is the second from which on their retention runs."""

    sequence: int
    expires: int
    keep: int
    earliest: float
    text: tuple[bytes, ...]
    """JSON of `begins`, the seconds from which on retention runs, and of each column: read where they are needed."""

    @property
    def begins(self) -> list[float]:
        found: list[float] = json.loads(self.text[0])
        return found

    def column(self, place: int) -> list[EventValue]:
        found: list[EventValue] = json.loads(self.text[1 + place])
        return found

    @property
    def size(self) -> int:
        return len(self.begins)

    def grown(self, more: Sequence[tuple[float, Event]]) -> "_Page":
        begins = [each for each, _ in more]
        columns = [begins, *zip(*(event for _, event in more), strict=True)]
        text = tuple(_joined(before, after) for before, after in zip(self.text, columns, strict=True))
        return self._replace(earliest=min([self.earliest, *begins]), text=text)


@dataclass(frozen=True)
class EventStore:
    """The streams of one device.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from hazemap.federated.device import enrolment
    >>> stream = EventStream("keyboard", (EventField("ngram", EventType.TEXT),), keep=30)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with EncryptedStore.opened(Path(folder) / "d.sqlite", create=True) as store:
    ...         events = EventStore(store, enrolment.add(store)[0])
    ...         kept = events.donate(stream, [("hello world",)], now=0.0)
    ...         kept, events.read(stream, now=29 * 86_400.0), events.read(stream, now=30 * 86_400.0)
    (DonationCounts(kept=1, older=0), [('hello world',)], [])
    """

    store: EncryptedStore
    device: int

    def donate(self, stream: EventStream, events: Iterable[Sequence[EventValue]], now: float) -> DonationCounts:
        """Store events: all of them, or none where one does not fit its stream (`InputError` names its number)."""
        if stream.name == PLACES:
            raise InputError(f"rows of {PLACES} are added by `hazemap device add` without --stream")
        checked = _checked(stream, events)
        return store_events(self.store, stream, {self.device: checked}, now)[self.device]

    def read(self, stream: EventStream, now: float) -> list[Event]:
        """All events whose retention has not ended: the oldest day first, and in a day in the order of donation.

        10,000 events of three fields: some milliseconds.
        """
        return list(self.values(stream, tuple(field.name for field in stream.fields), now))

    def values(self, stream: EventStream, fields: tuple[str, ...], now: float) -> Iterator[Event]:
        """As `read`, with the values of these fields in this order. A page is opened when its first event is read."""
        names = [field.name for field in stream.fields]
        places = [names.index(name) for name in fields]
        if stream.name == PLACES:
            columns = list(zip(*self._places(stream, now), strict=True)) or [()] * len(names)
            yield from zip(*(columns[place] for place in places), strict=True)
            return
        for page in _pages(self.store, self.device, stream):
            events = zip(*(page.column(place) for place in places), strict=True)
            over = now - min(page.keep, stream.keep) * DAY
            if page.earliest > over:
                yield from events
            else:
                yield from (event for begins, event in zip(page.begins, events, strict=True) if begins > over)

    def count(self, stream: EventStream, now: float) -> int:
        """How many events can be read."""
        return sum(1 for _ in self.values(stream, (stream.fields[0].name,), now))

    def _places(self, stream: EventStream, now: float) -> list[Event]:
        rows = RowStore(self.store, self.device).all()
        columns = (rows.time, rows.lon, rows.lat, rows.weight, rows.mark)
        events = zip(*(column.tolist() for column in columns), strict=True)
        over = now - stream.keep * DAY
        return [
            (None if isnan(time) else int(time // 1), lon, lat, weight, None if isnan(mark) else mark)
            for time, lon, lat, weight, mark in events
            if not time <= over
        ]


@dataclass(frozen=True)
class ApprovedStreams:
    """The streams of one device that a policy lists, at one moment: what a query's sandbox reads from."""

    store: EventStore
    policy: ShippedPolicy
    now: float

    def events(self, stream: str, fields: tuple[str, ...]) -> list[Event]:
        """The events of a stream, the oldest day first, with the values of these fields in this order."""
        approved = self.policy.stream(stream)
        if approved is None:
            return []
        return list(self.store.values(approved, fields, self.now))

    def latest(self, name: StreamFieldName) -> EventValue:
        """What the latest event holds in a field, as cohort fields are read; None where there is none."""
        found = self.events(name.stream, (name.field,))
        return found[-1][0] if found else None


def _checked(stream: EventStream, events: Iterable[Sequence[EventValue]]) -> list[Event]:
    found: list[Event] = []
    for number, event in enumerate(events, 1):
        if len(event) != len(stream.fields):
            raise InputError(
                f"event {number:,}: {stream.name} has {len(stream.fields)} fields, and this one {len(event)}"
            )
        try:
            found.append(tuple(field.check(value) for field, value in zip(stream.fields, event, strict=True)))
        except InputError as error:
            raise InputError(f"event {number:,} of {stream.name}: {error}") from None
        if number > MOST_EVENTS:
            raise InputError(f"a device keeps at most {MOST_EVENTS:,} events of a stream")
    return found


def store_events(
    store: EncryptedStore, stream: EventStream, events: dict[int, list[Event]], now: float
) -> dict[int, DonationCounts]:
    """Store checked events of many devices, in one transaction."""
    counts = {}
    with store.writing():
        for device, own in events.items():
            counts[device] = _donated(store, device, stream, own, now)
    return counts


def _donated(
    store: EncryptedStore, device: int, stream: EventStream, events: list[Event], now: float
) -> DonationCounts:
    days: dict[int, list[tuple[float, Event]]] = {}
    for event in events:
        begins = stream.begins(event, now)
        if begins + stream.keep * DAY > now:
            days.setdefault(_expiry(begins, stream.keep), []).append((begins, event))
    tag, fresh = _tag(store, device, stream), sum(map(len, days.values()))
    numbers = store.read("SELECT sequence, expires FROM events WHERE device = ? AND stream = ?", device, tag)
    last = {expires: sequence for sequence, expires in sorted(numbers)}
    if len(numbers) * PAGE + fresh > MOST_EVENTS and _stored(store, device, stream) + fresh > MOST_EVENTS:
        raise InputError(f"a device keeps at most {MOST_EVENTS:,} events of {stream.name}: donate fewer")
    following = max((sequence for sequence, _ in numbers), default=0) + 1
    for expires, own in days.items():
        page = _page(store, device, stream, last[expires]) if expires in last else None
        room = PAGE - page.size if page and page.keep == stream.keep else 0
        if page and room > 0:
            _write(store, device, stream, page.grown(own[:room]))
        for start in range(max(room, 0), len(own), PAGE):
            empty = _Page(following, expires, stream.keep, inf, (b"[]",) * (1 + len(stream.fields)))
            _write(store, device, stream, empty.grown(own[start : start + PAGE]))
            following += 1
    return DonationCounts(fresh, len(events) - fresh)


def shorten(store: EncryptedStore, device: int, old: EventStream, new: EventStream | None) -> None:
    """Let a shorter retention hold for what is stored already; without `new` delete it all. Within a transaction."""
    if new is None:
        tag = _tag(store, device, old)
        store.read("DELETE FROM events WHERE device = ? AND stream = ?", device, tag)
        return
    for page in _pages(store, device, old):
        if page.keep > new.keep:
            shorter = page._replace(expires=page.expires - (page.keep - new.keep), keep=new.keep)
            _write(store, device, old, shorter)


def expire(store: EncryptedStore, now: float) -> int:
    """Delete for good every page whose events are all over; how many pages there were."""
    today = int(now // DAY)
    if not store.read("SELECT 1 FROM events WHERE expires <= ? LIMIT 1", today):
        return 0
    with store.writing() as database:
        gone = database.execute("DELETE FROM events WHERE expires <= ?", (today,)).rowcount
    store.emptied()
    return gone


def forget(store: EncryptedStore) -> None:
    """Delete all events of all devices for good, and leave the sessions that keep what was said of them."""
    with store.writing() as database:
        database.execute("DELETE FROM events")
        leave_all(database)
    store.emptied()


def _expiry(begins: float, keep: int) -> int:
    """The day at whose beginning all events of a page are over: the one after the last second of any of them."""
    return int(begins // DAY) + keep + 1


def _joined(before: bytes, after: Sequence[EventValue]) -> bytes:
    """The JSON of a list with more items at its end."""
    return json.dumps([*json.loads(before), *after], separators=(",", ":")).encode()


def _tag(store: EncryptedStore, device: int, stream: EventStream) -> bytes:
    return store.tag(device, b"stream" + stream.name.encode())


def _stored(store: EncryptedStore, device: int, stream: EventStream) -> int:
    return sum(page.size for page in _pages(store, device, stream))


def _pages(store: EncryptedStore, device: int, stream: EventStream) -> list[_Page]:
    tag = _tag(store, device, stream)
    found = store.read(
        "SELECT sequence, expires, sealed FROM events WHERE device = ? AND stream = ? ORDER BY expires, sequence",
        device,
        tag,
    )
    return [_opened(store, device, stream, *each) for each in found]


def _page(store: EncryptedStore, device: int, stream: EventStream, sequence: int) -> _Page | None:
    tag = _tag(store, device, stream)
    found = store.read(
        "SELECT sequence, expires, sealed FROM events WHERE device = ? AND stream = ? AND sequence = ?",
        device,
        tag,
        sequence,
    )
    return _opened(store, device, stream, *found[0]) if found else None


def _opened(
    store: EncryptedStore, device: int, stream: EventStream, sequence: int, expires: int, sealed: bytes
) -> _Page:
    plain = store.unseal(f"events {stream.name}", device, sequence, sealed, expires)
    head, *text = plain.split(b"\n")  # a newline within a text is written as an escape
    keep, names, earliest = json.loads(head)
    if names != [field.name for field in stream.fields]:
        raise FileError(f"events of {stream.name} were stored with other fields than the policy gives it")
    return _Page(sequence, expires, keep, earliest, tuple(text))


def _write(store: EncryptedStore, device: int, stream: EventStream, page: _Page) -> None:
    names = [field.name for field in stream.fields]
    head = json.dumps([page.keep, names, page.earliest]).encode()
    sealed = store.seal(f"events {stream.name}", device, page.sequence, b"\n".join((head, *page.text)), page.expires)
    store.read(
        "INSERT OR REPLACE INTO events VALUES (?, ?, ?, ?, ?)",
        device,
        _tag(store, device, stream),
        page.sequence,
        page.expires,
        sealed,
    )


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
                    yield whose, _checked_events(table, line, stream, values)
    except (OSError, pa.ArrowException) as error:
        raise FileError(f"{table} cannot be read as Parquet ({type(error).__name__})") from None


def _checked_events(table: Path, line: int, stream: EventStream, values: list[EventValue]) -> Event:
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
