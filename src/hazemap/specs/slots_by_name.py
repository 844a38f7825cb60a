"""Timeslots by the names that users write: one notion of time for maps and for statistics."""

import re
from contextlib import suppress

from hazemap.errors import InputError
from hazemap.specs.parsing import refuse
from hazemap.temporal.time_slots import Always, Clock, Slots, Spans, Weekdays, moment

SLOTS = "always, hour-of-day, day-of-week (or weekday), hour, day, clock:HH:MM,HH:MM,…, times:TIME,TIME,…"


def slots(text: str, zone: str, since: str | None, until: str | None) -> Slots:
    """The slots that a text names; hours and days one after another need the time from when until when.

    >>> slots("clock:7:00,9:30,16:00", "Europe/Berlin", None, None).names
    ('07:00-09:30', '09:30-16:00', '16:00-07:00')
    """
    if text == "always":
        return Always()
    if text == "hour-of-day":
        return Clock.hours(zone)
    if text in ("day-of-week", "weekday"):
        return Weekdays(zone)
    if text in ("hour", "day"):
        if since is None or until is None:
            raise InputError(
                f"{text}s one after another begin and end at declared times, not where the data does: give since and "
                f"until (--since, --until); for a usual day or week say hour-of-day or day-of-week"
            )
        return Spans.every(3600, zone, since, until) if text == "hour" else Spans.days(zone, since, until)
    if found := re.fullmatch(r"clock:([0-9:,]+)", text):
        times = [re.fullmatch(r"([0-9]{1,2})(?::([0-9]{2}))?", part) for part in found[1].split(",")]
        if all(times):
            return Clock(zone, tuple(3600 * int(time[1]) + 60 * int(time[2] or 0) for time in times if time))
    if found := re.fullmatch(r"times:(.+,.+)", text):
        return Spans.between(zone, found[1].split(","))
    refuse("a way to cut time", SLOTS, text)


def refuse_never(slots: Slots, zone: str, since: str | None, until: str | None) -> None:
    """`InputError` where no row can have a time that counts: what is declared already says that nobody is counted.

    A text that is no time is refused by whoever reads the rows.

    >>> refuse_never(Always(), "UTC", "2026-03-01", "2026-03-02")
    """
    begin = end = None
    with suppress(InputError):
        begin, end = (None if text is None else moment(zone, text).timestamp() for text in (since, until))
    if begin is not None and end is not None and begin >= end:
        raise InputError(f"no time lies from {since} until before {until}, so nobody would be counted: exchange them?")
    if isinstance(slots, Spans):
        first, last = slots.edges[0], slots.edges[-1]
        if (end is not None and end <= first) or (begin is not None and begin >= last):
            raise InputError(
                f"no slot has a time from {since or 'the beginning'} until before {until or 'the end'}, so nobody "
                "would be counted: choose slots between since and until"
            )
