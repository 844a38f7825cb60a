"""What a server does besides answering: it looks after what it keeps, and spares the collector of garbage.

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
