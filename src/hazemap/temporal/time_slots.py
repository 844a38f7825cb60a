"""Timeslots, a closed list of public ways to divide time, and the calendar periods that a schedule releases one by one.

`timed` are the timeslots for which rows need a time. A period begins at midnight as clocks of the zone show it, and
ends where the next one begins, so periods tile time whatever clocks do: a day of a change of clocks has 23 or 25 hours.
Where midnight comes twice the first is meant; where it is left out, the instant at which clocks jump over it. A day
that a place never had (Samoa's 30 December 2011) is no period.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache, cached_property
from importlib.resources import files
from itertools import pairwise
from typing import Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.field_types import check_fields
from hazemap.machine_code.arrays import Floats, Ints

DAY, HOUR = 86400, 3600
MOST_SLOTS = 1 << 16
EARLIEST, LATEST = -62_103_801_600, 253_338_000_000
"""Seconds since 1970 that every clock can show, some days inside the years 2 and 9998."""
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class Always:
    """One slot, of all times; rows need no time.

    >>> Always().names
    ('always',)
    """

    timed = False

    @property
    def in_words(self) -> str:
        """For statements, and for people whose devices are asked."""
        return "one, of all times"

    @property
    def names(self) -> tuple[str, ...]:
        """The name of the slot."""
        return ("always",)

    def at(self, moments: Floats) -> Ints:
        """The slot of each row: 0."""
        return np.zeros(len(moments), dtype=np.int64)


@dataclass(frozen=True)
class Clock:
    """Parts of the day as clocks of a time zone show it: slot i begins `edges[i]` seconds after midnight.

    The last one goes on over midnight until the first begins. Where clocks are put back, an hour comes twice and both
    are in its slot; where they are put forward, one day gives nothing to the hour that is left out.

    >>> Clock.hours("Europe/Berlin").names[2]
    '02:00'
    >>> Clock("UTC", (7 * 3600, 10 * 3600, 19 * 3600)).names
    ('07:00-10:00', '10:00-19:00', '19:00-07:00')
    """

    zone: str
    edges: tuple[int, ...]
    timed = True

    def __post_init__(self) -> None:
        check_fields(self)
        clocks(self.zone)
        rising = all(a < b for a, b in pairwise(self.edges))
        if not self.edges or not rising or not self.edges[0] >= 0 or not self.edges[-1] < DAY:
            raise InputError("parts of a day must begin at increasing times between 00:00 and 23:59")

    @classmethod
    def hours(cls, zone: str) -> "Clock":
        """The 24 hours of a day."""
        return cls(zone, tuple(range(0, DAY, HOUR)))

    @property
    def in_words(self) -> str:
        """For statements, and for people whose devices are asked.

        >>> Clock.hours("Europe/Berlin").in_words
        'hours of the day, as clocks of Europe/Berlin show it'
        """
        what = "hours of the day" if len(self.edges) == 24 else f"parts of the day ({', '.join(self.names)})"
        return f"{what}, as clocks of {self.zone} show it"

    @property
    def names(self) -> tuple[str, ...]:
        """Where each begins; from where to where, unless they are hours. With seconds, where some begin in a minute."""
        begin = [f"{edge // HOUR:02}:{edge % HOUR // 60:02}" for edge in self.edges]
        if any(edge % 60 for edge in self.edges):
            begin = [f"{minutes}:{edge % 60:02}" for minutes, edge in zip(begin, self.edges, strict=True)]
        if self.edges == tuple(range(0, DAY, HOUR)):
            return tuple(begin)
        return tuple(f"{a}-{b}" for a, b in zip(begin, begin[1:] + begin[:1], strict=True))

    def at(self, moments: Floats) -> Ints:
        """The slot of each moment (seconds since 1970, UTC); −1 for one that clocks cannot show, and for NaN."""
        known = _known(moments)
        seconds = np.floor(local(self.zone, moments if known.all() else np.where(known, moments, 0.0))).astype(np.int64)
        slot: Ints = self._of_seconds[seconds % DAY]
        if not known.all():
            slot[~known] = -1
        return slot

    @cached_property
    def _of_seconds(self) -> Ints:
        """The slot of each second of a day."""
        slot = np.searchsorted(np.array(self.edges), np.arange(DAY), "right") - 1
        return slot % len(self.edges)


@dataclass(frozen=True)
class Weekdays:
    """The seven days of the week in a time zone, from Monday.

    >>> Weekdays("UTC").at(np.array([0.0]))  # 1970 began on a Thursday
    array([3])
    """

    zone: str
    timed = True

    def __post_init__(self) -> None:
        check_fields(self)
        clocks(self.zone)

    @property
    def in_words(self) -> str:
        """For statements, and for people whose devices are asked."""
        return f"days of the week in {self.zone}"

    @property
    def names(self) -> tuple[str, ...]:
        """Monday to Sunday."""
        return WEEKDAYS

    def at(self, moments: Floats) -> Ints:
        """The slot of each moment (seconds since 1970, UTC); −1 for one that clocks cannot show, and for NaN."""
        known = _known(moments)
        days = np.floor(local(self.zone, np.where(known, moments, 0.0)) / DAY).astype(np.int64)
        return np.where(known, (days + 3) % 7, -1)


@dataclass(frozen=True)
class Spans:
    """Stretches of time one after another: slot i is from `edges[i]` until before `edges[i + 1]`, seconds since 1970.

    Moments before the first and after the last are in none. Names are the beginnings, as clocks of the zone show them,
    with their offset, so an hour that comes twice is two slots.

    >>> Spans.every(3600, "Europe/Berlin", "2015-10-25T02:00", "2015-10-25T04:00").names
    ('2015-10-25T02:00+02:00', '2015-10-25T02:00+01:00', '2015-10-25T03:00+01:00')
    """

    zone: str
    edges: tuple[int, ...]
    timed = True

    def __post_init__(self) -> None:
        check_fields(self)
        clocks(self.zone)
        if not all(a < b for a, b in pairwise(self.edges)) or not 2 <= len(self.edges) <= MOST_SLOTS + 1:
            raise InputError(f"time intervals need 2 to {MOST_SLOTS + 1:,} increasing times; found {len(self.edges):,}")
        if not EARLIEST <= self.edges[0] <= self.edges[-1] <= LATEST:
            raise InputError("time intervals lie between the years 2 and 9998")

    @classmethod
    def every(cls, seconds: int, zone: str, since: str, until: str) -> "Spans":
        """Slots of equal length from `since` on, as many as reach `until`."""
        first, last = seconds_of(zone, since), seconds_of(zone, until)
        if not first < last or (last - first) / seconds > MOST_SLOTS:
            raise InputError(f"the time from {since} until {until} must hold 1 to {MOST_SLOTS:,} slots")
        return cls(zone, tuple(range(first, last + seconds, seconds)))

    @classmethod
    def between(cls, zone: str, times: Sequence[str]) -> "Spans":
        """From each of these times until the next."""
        return cls(zone, tuple(seconds_of(zone, time.strip()) for time in times))

    @classmethod
    def days(cls, zone: str, since: str, until: str) -> "Spans":
        """The days of a time zone, from midnight to midnight: 23 or 25 hours where clocks are changed.

        >>> np.diff(Spans.days("Europe/Berlin", "2015-10-24", "2015-10-27").edges) / 3600
        array([24., 25., 24.])
        """
        first, last = (moment(zone, time).astimezone(clocks(zone)).date() for time in (since, until))
        days = (last - first).days
        if not 1 <= days <= MOST_SLOTS:
            raise InputError(f"the time from {since} until {until} must hold 1 to {MOST_SLOTS:,} days")
        return cls(zone, tuple(seconds_of(zone, f"{first + timedelta(day)}") for day in range(days + 1)))

    @property
    def in_words(self) -> str:
        """For statements, and for people whose devices are asked."""
        first = clock_text(self.zone, self.edges[0])
        return f"{len(self.edges) - 1:,} stretches of time in {self.zone}, the first from {first}"

    @property
    def names(self) -> tuple[str, ...]:
        """Where each begins; to the second, where some begin in the same minute."""
        begin = tuple(clock_text(self.zone, edge) for edge in self.edges[:-1])
        if len(set(begin)) == len(begin):
            return begin
        return tuple(clock_text(self.zone, edge, "seconds") for edge in self.edges[:-1])

    def at(self, moments: Floats) -> Ints:
        """The slot of each moment; −1 for NaN and for moments in none."""
        slot = np.searchsorted(np.array(self.edges, dtype=np.float64), moments, "right") - 1
        return np.where(np.isfinite(moments) & (slot < len(self.edges) - 1), slot, -1)


Slots = Always | Clock | Weekdays | Spans
"""The closed list of ways to cut time."""


def seconds_of(zone: str, text: str) -> int:
    """Whole seconds since 1970 of a time as clocks of a zone show it."""
    return round(moment(zone, text).timestamp())


FIRST, LAST = -2208988800, 4102444800
"""1900 and 2100, in seconds since 1970: before and after, the clocks are taken to stay as they are then."""

WEEK = 7 * 86400


def _known(moments: Floats) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (moments >= EARLIEST) & (moments <= LATEST)
    return found


@cache
def zone_names() -> frozenset[str]:
    """The names of time zones, in their spelling: one list for all devices, and not what a machine's database has."""
    return frozenset((files("hazemap.temporal") / "zone_names.txt").read_text(encoding="ascii").split())


def clocks(name: str) -> ZoneInfo:
    """The time zone of a name, such as Europe/Berlin; `InputError` for a name that is not one.

    >>> clocks("Europe/Berlin")
    zoneinfo.ZoneInfo(key='Europe/Berlin')
    """
    if name not in zone_names():
        raise InputError(f"a time zone must be a name such as Europe/Berlin or UTC; found {name!r}")
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(f"the time zone database of this machine does not know {name}: update it") from None


def local(name: str, moments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Local clock times at moments (seconds since 1970, UTC), as seconds too.

    O(moments), and times log(transitions) if clocks are changed between the first and the last of them.

    An hour that comes twice is shown twice, an hour that is left out never.

    >>> twice = np.array([1445731200.0, 1445734800.0])  # 2015-10-25, 00:00 and 01:00 UTC: both 02:00 in Berlin
    >>> (local("Europe/Berlin", twice) % 86400 / 3600).tolist()
    [2.0, 2.0]
    """
    begins, ahead = _transitions(name)
    ends = np.array([moments.min(), moments.max()]) if len(moments) else moments
    first, last = np.searchsorted(begins, ends, "right") if len(ends) else (0, 0)
    which = first if first == last and np.isfinite(ends).all() else np.searchsorted(begins, moments, "right")
    found: NDArray[np.float64] = moments + ahead[which]
    return found


def moment(name: str, text: str) -> datetime:
    """A time as clocks of the zone show it (ISO 8601), in UTC; an offset in the text is kept.

    Of an hour that comes twice the first is meant; a time that is left out is read by the clocks before it.
    """
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=clocks(name))).astimezone(UTC)
    except OverflowError:
        raise InputError(f"a time lies between the years 2 and 9998; found {text!r}") from None
    except ValueError:
        raise InputError(f"write a time as 2024-05-31 or 2024-05-31T18:00:00+02:00; found {text!r}") from None


def clock_text(name: str, seconds: int, to: str = "minutes") -> str:
    """A moment as clocks of the zone show it, with their offset.

    >>> clock_text("Europe/Berlin", 1445731200), clock_text("Europe/Berlin", 1445734800)
    ('2015-10-25T02:00+02:00', '2015-10-25T02:00+01:00')
    """
    return datetime.fromtimestamp(seconds, clocks(name)).isoformat(timespec=to)


@cache
def _transitions(name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Moments at which the offset changes, and the offset before the first and after each; looked for week by week."""
    here = clocks(name)

    def ahead(seconds: int) -> int:
        offset = datetime.fromtimestamp(seconds, UTC).astimezone(here).utcoffset()
        return round(offset.total_seconds()) if offset else 0

    begins: list[int] = []
    offsets = [ahead(FIRST)]
    for week in range(FIRST, LAST, WEEK):
        while (after := ahead(week + WEEK)) != offsets[-1]:
            before = offsets[-1]
            start = week if not begins else max(week, begins[-1])
            change = start + bisect_right(range(start, week + WEEK), False, key=lambda at: ahead(at) != before)
            begins.append(change)
            offsets.append(ahead(change))
            if offsets[-1] == after:
                break
    return np.array(begins, dtype=np.float64), np.array(offsets, dtype=np.float64)


Every = Literal["day", "week", "month", "year"]

MOST_PERIODS = 1 << 14
"""Forty years of days: a calendar that has more is a mistake."""


@dataclass(frozen=True)
class Period:
    """The time `since <= t < until` (UTC), and its name, which begins with the year that it belongs to."""

    name: str
    since: datetime
    until: datetime


@dataclass(frozen=True)
class Calendar:
    """The periods of a time zone from the first that begins on `begins` or later, until the last that begins before
    `ends`, if there is an end.

    Weeks are those of ISO 8601, from Monday; a week belongs to the year that has most of its days.

    >>> march = Calendar("day", "Europe/Berlin", date(2026, 3, 28))
    >>> for each in march.ended(datetime(2026, 3, 30, tzinfo=UTC)):
    ...     print(each.name, each.until - each.since)
    2026-03-28 1 day, 0:00:00
    2026-03-29 23:00:00
    """

    every: Every
    zone: str
    begins: date
    ends: date | None = None

    def __post_init__(self) -> None:
        if self.every not in get_args(Every):
            raise InputError(f"a schedule has a period every {', '.join(get_args(Every))}; found {self.every!r:.40}")
        clocks(self.zone)
        if not 1900 <= self.begins.year <= 2200 or (self.ends is not None and not self.ends <= date(2200, 12, 31)):
            raise InputError("a schedule begins and ends between 1900 and 2200")
        if self.ends is not None and not self.begins < self.ends:
            raise InputError(f"a schedule begins before it ends; found {self.begins} and {self.ends}")

    def ended(self, now: datetime) -> Iterator[Period]:
        """Those that are over at an instant, the oldest first; `InputError` where they are more than `MOST_PERIODS`."""
        first, number = self._first(), 0
        while self.ends is None or first < self.ends:
            after = self._next(first)
            since, until = (moment(self.zone, day.isoformat()) for day in (first, after))
            if until > now:
                return
            if since < until:
                number += 1
                if number > MOST_PERIODS:
                    raise InputError(f"the schedule has more than {MOST_PERIODS:,} periods: let it begin later")
                yield Period(self._name(first), since, until)
            first = after

    def _first(self) -> date:
        begins = self.begins
        if self.every == "week":
            return begins + timedelta(-begins.weekday() % 7)
        if self.every == "month" and begins.day > 1:
            return self._next(begins.replace(day=1))
        if self.every == "year" and (begins.month, begins.day) != (1, 1):
            return date(begins.year + 1, 1, 1)
        return begins

    def _next(self, first: date) -> date:
        if self.every == "month":
            return date(first.year + first.month // 12, first.month % 12 + 1, 1)
        if self.every == "year":
            return date(first.year + 1, 1, 1)
        return first + timedelta(7 if self.every == "week" else 1)

    def _name(self, first: date) -> str:
        if self.every == "week":
            year, week, _ = first.isocalendar()
            return f"{year}-W{week:02}"
        return first.isoformat()[: {"day": 10, "month": 7, "year": 4}[self.every]]


def utc_text(instant: datetime) -> str:
    """An instant as a specification has it.

    >>> utc_text(datetime(2026, 3, 29, tzinfo=UTC))
    '2026-03-29T00:00:00+00:00'
    """
    return instant.astimezone(UTC).isoformat(timespec="seconds")
