"""Modules and compiled code stay as long as a process: Python's collector of garbage need not look at them again.

It otherwise goes through all of them whenever a quarter as many objects is new: an eighth of what a server does that
handles thousands of reports.
"""

import asyncio
import gc
import sys
from typing import Final

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
