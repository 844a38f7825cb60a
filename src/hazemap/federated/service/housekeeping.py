"""What a server does besides answering: it looks after what it keeps, as long as it serves."""

import asyncio
import logging
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
