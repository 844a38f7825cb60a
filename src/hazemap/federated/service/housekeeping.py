"""Housekeeping of a server: deleting in time, by a clock that is believed, and sparing the garbage collector.

A clock that is wrong at a start, or is set wrong, is mostly put right within hours. For a day after it has jumped it
decides nothing that cannot be undone. The last look at it is stored, so that a restart does not make it believed.

Modules and compiled code stay as long as a process, so Python's collector need not look at them again. It otherwise
goes through all of them whenever a quarter as many objects is new: an eighth of what a server does that handles
thousands of reports.
"""

import asyncio
import gc
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from hazemap.errors import StoreError
from hazemap.federated.service.store import Store, Write

HOUSEKEEPING: Final = 600.0
"""Seconds between two looks."""


async def housekeeping(look: Callable[[], Awaitable[None]], log: logging.Logger) -> None:
    """Look again and again, also where the store could not be written at one look."""
    while True:
        await asyncio.sleep(HOUSEKEEPING)
        try:
            await look()
        except StoreError as error:
            log.warning("nothing is forgotten and no key rotated until the store can be written: %s", error)


@asynccontextmanager
async def alongside(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """These go on meanwhile, and end with it."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield
    finally:
        await ended(*tasks)


async def ended(*tasks: "asyncio.Task[None]") -> None:
    """End these."""
    for each in tasks:
        each.cancel()
    for each in tasks:
        with suppress(asyncio.CancelledError):
            await each


PAUSE: Final = 2.0
"""Seconds between two looks at whether code was loaded."""
YOUNG: Final = 20_000
"""New objects between two searches for garbage: the work of one message, of which nothing is left when it is done."""


def set_aside() -> None:
    """Set aside what is there now."""
    gc.set_threshold(YOUNG)
    gc.collect()
    gc.freeze()


async def settled() -> None:
    """For ever: once no more code is loaded than at the look before, what is there is set aside."""
    known, looked = 0, 0
    gc.set_threshold(YOUNG)
    while True:
        now = len(sys.modules)
        if now == looked != known:
            set_aside()
            known = now
        looked = now
        await asyncio.sleep(PAUSE)


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
