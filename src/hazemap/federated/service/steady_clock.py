"""Whether a server's clock may decide what is deleted for good: not for a day after it has jumped.

A clock that is wrong at a start, or is set wrong, is mostly put right within hours. What it says until then is acted on
only where that can be undone. When it was looked at last is stored, so that a restart does not make it believed.
"""

import logging
from typing import Final

from hazemap.federated.service.store import Store, Write

log = logging.getLogger("hazemap.federated.service")

DOUBTED: Final = 86_400
"""Seconds that a clock may move between two looks, and for which it is doubted if it has moved by more."""

_PUT = "INSERT INTO facts VALUES ('clock', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


def is_steady(store: Store, now: int) -> bool:
    """Whether a clock that shows `now` (seconds after the epoch) is believed; ask every few minutes.

    A server that stood still for more than a day doubts its clock for another one. A store without a date believes it.

    >>> from tempfile import TemporaryDirectory
    >>> from hazemap.federated.service.store import Schema
    >>> schema = Schema("version", 1, ("CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",))
    >>> day = 86_400
    >>> with TemporaryDirectory() as folder:
    ...     store = Store(f"{folder}/s.sqlite", schema)
    ...     said = [is_steady(store, now) for now in (0, 600, 90 * day, 91 * day - 1, 91 * day, 600, day + 600)]
    ...     store.close()
    >>> said
    [True, True, False, False, True, False, True]
    """
    rows = store.read("SELECT value FROM facts WHERE name = 'clock'")
    looked, since = map(int, rows[0][0].split()) if rows else (now, now - DOUBTED)
    if abs(now - looked) > DOUBTED:
        since = now
        log.warning(
            "the clock is %.1f days from where it was when it was last looked at: see that it is right. "
            "Nothing is forgotten and no key deleted for a day",
            (now - looked) / 86_400,
        )
    store.write_now(Write(_PUT, (f"{now} {since}",)))
    return now - since >= DOUBTED
