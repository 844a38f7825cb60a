"""How far the clocks of a place are ahead of UTC, for many moments at once: daylight saving included."""

from bisect import bisect_right
from datetime import UTC, datetime
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError

FIRST, LAST = -2208988800, 4102444800
"""1900 and 2100, in seconds since 1970: before and after, the clocks are taken to stay as they are then."""

WEEK = 7 * 86400


def clocks(name: str) -> ZoneInfo:
    """The time zone of a name, such as Europe/Berlin; `InputError` for a name that is not one.

    >>> clocks("Europe/Berlin")
    zoneinfo.ZoneInfo(key='Europe/Berlin')
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(f"a time zone is a name such as Europe/Berlin or UTC; found {name!r}") from None


def local(name: str, moments: NDArray[np.float64]) -> NDArray[np.float64]:
    """What the clocks show at each moment (seconds since 1970, UTC), as seconds too.

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
    except ValueError:
        raise InputError(f"a time is written as 2024-05-31 or 2024-05-31T18:00:00+02:00; found {text!r}") from None
    return (found if found.tzinfo else found.replace(tzinfo=clocks(name))).astimezone(UTC)


def shown(name: str, seconds: int) -> str:
    """A moment as clocks of the zone show it, with their offset.

    >>> shown("Europe/Berlin", 1445731200), shown("Europe/Berlin", 1445734800)
    ('2015-10-25T02:00+02:00', '2015-10-25T02:00+01:00')
    """
    return datetime.fromtimestamp(seconds, clocks(name)).isoformat(timespec="minutes")


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
