"""Formats of a table's times: declared, and never guessed from rows."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError

TimeFormat = Literal["iso", "seconds", "milliseconds"]
"""ISO 8601 (`temporal.written_times`), or numbers since 1970 in this unit."""

UNITS: dict[str, int] = {"iso": 0, "seconds": 1, "milliseconds": 1000}
"""Units per second; 0 for texts."""

FIRST, LAST = -62_135_596_800, 253_402_300_800
"""From when until before when years have four digits, in seconds since 1970."""


def checked_format(found: object) -> TimeFormat:
    """A declared format; `InputError` for any other.

    >>> checked_format("seconds")
    'seconds'
    """
    for known in get_args(TimeFormat):
        if found == known:
            return known  # type: ignore[no-any-return]  # one of the literals
    raise InputError(f"--time-format is one of {', '.join(UNITS)}; found {found!r:.40}")


def within_calendar(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same seconds since 1970, NaN for those beyond the years of four digits."""
    inside = (seconds >= FIRST) & (seconds < LAST)
    return seconds if inside.all() else np.where(inside, seconds, np.nan)
