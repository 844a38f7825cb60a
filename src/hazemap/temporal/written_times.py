"""Times as texts, each read by itself and by one grammar: the only reader of them for tables, events and devices.

ISO 8601, basic or extended: a date (20260531, 2026-05-31, 2026-W22-7, 2026W227, 2026-151, 2026151), perhaps T or
blanks and a time (18, 18:00, 1800, 18:00:59, 180059, with a fraction after a point or a comma), perhaps Z, UTC or an
offset (+02, +0200, +02:00), also after blanks. A date alone is its midnight, a time without an offset is UTC. As in
GTFS a time may reach to 48:00, and the hour before a colon may have one digit. Where "seconds" or "milliseconds" are
declared (`time_format`) a time is a number of them since 1970 instead. Anything else is no time: names and
abbreviations of zones, for they mean several offsets or none, and numbers where no unit is declared, for no size tells
seconds from milliseconds.

Parts of a microsecond are cut off, so that nothing moves into the next slot. This module imports numba; import it
inside the function that uses it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.temporal.time_format import FIRST, LAST, UNITS, TimeFormat
from hazemap.vdaf.compiled_loops import compiled

_MICRO, _EXACT = 10**6, 2**53
_COMMA, _MINUS, _POINT, _COLON, _BLANK, _PLUS = 44, 45, 46, 58, 32, 43
_T, _Z, _W = 84, 90, 87
_UTC = np.frombuffer(b"UTC", dtype=np.uint8)


def seconds_of_texts(
    letters: NDArray[np.uint8], ends: NDArray[np.int32], unit: TimeFormat = "iso"
) -> NDArray[np.float64]:
    """Seconds since 1970 of each text `letters[ends[i]:ends[i + 1]]`; NaN for what is no time. O(bytes).

    >>> letters, ends = np.frombuffer(b"19700101T000001Z1970-01-02BST", np.uint8), np.array([0, 16, 26, 29], np.int32)
    >>> seconds_of_texts(letters, ends).tolist()
    [1.0, 86400.0, nan]
    """
    found = np.empty(len(ends) - 1, dtype=np.float64)
    _seconds(letters, ends, UNITS[unit], found)
    return found


def seconds_of_text(text: str, unit: TimeFormat = "iso") -> float:
    """Seconds since 1970 of one text; NaN for what is no time.

    >>> seconds_of_text("1970-01-01 26:00 +0200"), seconds_of_text("1500", "milliseconds")
    (86400.0, 1.5)
    """
    written = text.encode("utf-8", "surrogatepass")
    letters = np.frombuffer(written or b" ", dtype=np.uint8)
    ends = np.frombuffer(np.array([0, len(written)], dtype=np.int32).tobytes(), dtype=np.int32)
    return float(seconds_of_texts(letters, ends, unit)[0])  # arrays as Arrow's are, for which loops are compiled


@compiled
def _seconds(letters, ends, units, found) -> None:  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    for row in range(found.size):
        at, end = np.int64(ends[row]), np.int64(ends[row + 1])
        while at < end and _is_blank(letters[at]):
            at += 1
        while end > at and _is_blank(letters[end - 1]):
            end -= 1
        there, micros = _written(letters, at, end) if units == 0 else _counted(letters, at, end, units)
        there = there and FIRST * _MICRO <= micros < LAST * _MICRO
        if not there:
            found[row] = np.nan
        elif -_EXACT < micros < _EXACT:
            found[row] = micros / _MICRO
        else:
            found[row] = micros // _MICRO + micros % _MICRO / _MICRO


@compiled
def _is_blank(letter) -> Any:  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    return letter == _BLANK or 9 <= letter <= 13


@compiled
def _upper(letter) -> Any:  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    return letter - 32 if 97 <= letter <= 122 else letter


@compiled
def _number(letters, at, size, end) -> Any:  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The number in the next digits; -1 if they are missing."""
    if at + size > end:
        return -1
    number = np.int64(0)
    for i in range(at, at + size):
        if not 48 <= letters[i] <= 57:
            return -1
        number = 10 * number + np.int64(letters[i] - 48)
    return number


@compiled
def _digits(letters, at, end) -> int:  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The number of digits from a position on."""
    size = 0
    while at + size < end and 48 <= letters[at + size] <= 57:
        size += 1
    return size


@compiled
def _days(year, month, day) -> Any:  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Days since 1970 of a day of the Gregorian calendar, by years that begin in March."""
    shifted = year - (1 if month <= 2 else 0)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return 365 * shifted + shifted // 4 - shifted // 100 + shifted // 400 + of_year - 719468


@compiled
def _date(letters, at, end) -> Any:  # type: ignore[no-untyped-def]  # noqa: PLR0911, PLR0912 - one grammar  # pragma: no cover
    """The end of a date and its days after 1970; an end of -1 if there is none."""
    year = _number(letters, at, 4, end)
    if year < 1:
        return np.int64(-1), np.int64(0)
    leap = (year % 4 == 0 and year % 100 != 0) or year % 400 == 0
    at += 4
    extended = at < end and letters[at] == _MINUS
    if extended:
        at += 1
    if at < end and _upper(letters[at]) == _W:
        week = _number(letters, at + 1, 2, end)
        at += 3
        if extended:
            if at >= end or letters[at] != _MINUS:
                return np.int64(-1), np.int64(0)
            at += 1
        weekday = _number(letters, at, 1, end)
        fourth = _days(year, 1, 4)
        monday = fourth - (fourth + 3) % 7
        following = _days(year + 1, 1, 4)
        last = (following - (following + 3) % 7 - monday) // 7
        if not (1 <= week <= last and 1 <= weekday <= 7):
            return np.int64(-1), np.int64(0)
        return at + 1, monday + 7 * (week - 1) + weekday - 1
    size = _digits(letters, at, end)
    if size == 3:
        day = _number(letters, at, 3, end)
        if not 1 <= day <= 365 + leap:
            return np.int64(-1), np.int64(0)
        return at + 3, _days(year, 1, 1) + day - 1
    if size != (2 if extended else 4):
        return np.int64(-1), np.int64(0)
    month = _number(letters, at, 2, end)
    at += 2
    if extended:
        if at >= end or letters[at] != _MINUS or _digits(letters, at + 1, end) != 2:
            return np.int64(-1), np.int64(0)
        at += 1
    day = _number(letters, at, 2, end)
    if not 1 <= month <= 12:
        return np.int64(-1), np.int64(0)
    longest = 30 + (month + month // 8) % 2
    if month == 2:
        longest = 28 + leap
    if not 1 <= day <= longest:
        return np.int64(-1), np.int64(0)
    return at + 2, _days(year, month, day)


@compiled
def _time(letters, at, end) -> Any:  # type: ignore[no-untyped-def]  # noqa: PLR0911 - one grammar  # pragma: no cover
    """The end of a time and its microseconds after midnight; an end of -1 if there is none."""
    size = _digits(letters, at, end)
    colons = at + size < end and letters[at + size] == _COLON
    if not (size == 2 or (size == 1 and colons) or (not colons and size in (4, 6))):
        return np.int64(-1), np.int64(0)
    hour = _number(letters, at, min(size, 2), end)
    at += min(size, 2)
    zero: Any = np.int64(0)
    minute, second, parts = zero, zero, zero
    most = 0
    if colons or size >= 4:
        at += 1 if colons else 0
        if colons and _digits(letters, at, end) != 2:
            return np.int64(-1), np.int64(0)
        minute = _number(letters, at, 2, end)
        at += 2
        if (colons and at < end and letters[at] == _COLON) or size == 6:
            at += 1 if colons else 0
            if colons and _digits(letters, at, end) != 2:
                return np.int64(-1), np.int64(0)
            second = _number(letters, at, 2, end)
            at += 2
            most = 60 if minute == 59 else 59  # a leap second
            if at < end and (letters[at] == _POINT or letters[at] == _COMMA):
                size = _digits(letters, at + 1, end)
                if size == 0:
                    return np.int64(-1), np.int64(0)
                for i in range(6):
                    parts = 10 * parts + (np.int64(letters[at + 1 + i] - 48) if i < size else 0)
                at += 1 + size
    if minute > 59 or second > most or hour > 48:
        return np.int64(-1), np.int64(0)
    micros = (3600 * hour + 60 * minute + second) * _MICRO + parts
    if micros > 48 * 3600 * _MICRO:
        return np.int64(-1), np.int64(0)
    return at, micros


@compiled
def _offset(letters, at, end) -> Any:  # type: ignore[no-untyped-def]  # noqa: PLR0911 - one grammar  # pragma: no cover
    """Whether what stands from a place on to the end is an offset, and how many minutes it is."""
    if end - at == 1 and _upper(letters[at]) == _Z:
        return True, np.int64(0)
    if end - at == 3 and letters[at] != _PLUS and letters[at] != _MINUS:
        for i in range(3):
            if _upper(letters[at + i]) != _UTC[i]:
                return False, np.int64(0)
        return True, np.int64(0)
    if letters[at] != _PLUS and letters[at] != _MINUS:
        return False, np.int64(0)
    sign = -1 if letters[at] == _MINUS else 1
    at += 1
    size = _digits(letters, at, end)
    zero: Any = np.int64(0)
    hours, minutes = _number(letters, at, 2, end), zero
    if size == 4:
        minutes = _number(letters, at + 2, 2, end)
        at += 4
    elif size == 2:
        at += 2
        if at < end and letters[at] == _COLON:
            if _digits(letters, at + 1, end) != 2:
                return False, np.int64(0)
            minutes = _number(letters, at + 1, 2, end)
            at += 3
    else:
        return False, np.int64(0)
    if at != end or hours > 23 or minutes > 59:
        return False, np.int64(0)
    return True, np.int64(sign * (60 * hours + minutes))


@compiled
def _written(letters, at, end) -> Any:  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Whether a text is a time, and how many microseconds after 1970."""
    at, days = _date(letters, at, end)
    if at < 0:
        return False, np.int64(0)
    micros = days * 86400 * _MICRO
    if at == end:
        return True, micros
    if _upper(letters[at]) == _T:
        at += 1
    elif letters[at] == _BLANK:
        while letters[at] == _BLANK:  # the text ends with something else
            at += 1
    else:
        return False, np.int64(0)
    at, after = _time(letters, at, end)
    if at < 0:
        return False, np.int64(0)
    micros += after
    if at == end:
        return True, micros
    while letters[at] == _BLANK:
        at += 1
    zoned, minutes = _offset(letters, at, end)
    return zoned, micros - minutes * 60 * _MICRO


@compiled
def _counted(letters, at, end, units) -> Any:  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Whether a text is a plain number, and its microseconds for this many units per second."""
    negative = at < end and letters[at] == _MINUS
    if at < end and (letters[at] == _MINUS or letters[at] == _PLUS):
        at += 1
    step = _MICRO // units
    whole, digits, some = np.int64(0), 0, False
    while at < end and 48 <= letters[at] <= 57:
        if whole < 10**15:
            whole = 10 * whole + np.int64(letters[at] - 48)
        digits += 1
        at += 1
    parts, place = np.int64(0), step
    if at < end and letters[at] == _POINT:
        at += 1
        while at < end and 48 <= letters[at] <= 57:
            place //= 10
            parts += place * np.int64(letters[at] - 48)
            some |= place == 0 and letters[at] != 48
            digits += 1
            at += 1
    if at < end or digits == 0 or whole > LAST * units:
        return False, np.int64(0)
    micros = whole * step + parts
    return True, (-micros - (1 if some else 0) if negative else micros)
