"""Timeslots by the names that users write: one notion of time for maps and for statistics."""

import re

from hazemap.errors import InputError
from hazemap.specs.parsing import refuse
from hazemap.temporal.time_slots import Always, Clock, Slots, Spans, Weekdays

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
