"""Work in a thread that waits for others, and stops waiting as soon as nobody wants its result any more."""

import asyncio
from collections.abc import Callable
from threading import Event
from typing import TypeVar

from hazemap.errors import Unreachable

T = TypeVar("T")


async def stoppable(work: Callable[[Callable[[float], None]], T]) -> T:
    """What `work` gives, in a thread; its pauses, by the function that it is given, end when this is cancelled.

    Without that a server that is told to end would wait for its threads, and they for the servers of others.

    >>> asyncio.run(stoppable(lambda pause: pause(0.0) or "done"))
    'done'
    """
    ended = Event()

    def pause(seconds: float) -> None:
        if ended.wait(seconds):
            raise Unreachable("nobody waits for this any more")

    try:
        return await asyncio.to_thread(work, pause)
    finally:
        ended.set()
