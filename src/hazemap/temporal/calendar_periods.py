"""Days, weeks, months and years of a time zone, one after another: what a schedule releases one by one.

A period begins at midnight as clocks of the zone show it, and ends where the next one begins, so periods tile time
whatever clocks do: a day of a change of clocks has 23 or 25 hours. Where midnight comes twice the first is meant; where
it is left out, the instant at which clocks jump over it. A day that a place never had (Samoa's 30 December 2011) is no
period.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal, get_args

from hazemap.errors import InputError
from hazemap.temporal.time_slots import clocks, moment

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
