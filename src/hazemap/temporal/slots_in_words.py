"""Timeslots in words, for statements and for people whose devices are asked about them."""

from hazemap.temporal.time_slots import Always, Slots, Spans, Weekdays, shown


def describe(slots: Slots) -> str:
    """Slots in words.

    >>> from hazemap.temporal.time_slots import Clock
    >>> describe(Clock.hours("Europe/Berlin"))
    'hours of the day, as clocks of Europe/Berlin show it'
    """
    if isinstance(slots, Always):
        return "one, of all times"
    if isinstance(slots, Weekdays):
        return f"days of the week in {slots.zone}"
    if isinstance(slots, Spans):
        first = shown(slots.zone, slots.edges[0])
        return f"{len(slots.edges) - 1:,} stretches of time in {slots.zone}, the first from {first}"
    what = "hours of the day" if len(slots.edges) == 24 else f"parts of the day ({', '.join(slots.names)})"
    return f"{what}, as clocks of {slots.zone} show it"
