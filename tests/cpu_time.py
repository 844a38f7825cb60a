"""What a piece of work costs: seconds of one thread, without what memory's tidying up takes at the time.

A collection of all that a test process holds can take half a second by itself, and other threads of the process work
on: neither says anything about the code under test.
"""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail if the work inside takes this thread so many seconds of a processor, or more."""
    with _untidied():
        start = time.thread_time()
        yield
        took = time.thread_time() - start
    assert took < seconds, f"{took:.2f} s of CPU, of {seconds} s at most"


def least_cpu(work: Callable[[], object], times: int = 3) -> float:
    """The CPU seconds that the cheapest of some runs takes this thread."""
    took = []
    for _ in range(times):
        with _untidied():
            start = time.thread_time()
            work()
            took.append(time.thread_time() - start)
    return min(took)


@contextmanager
def _untidied() -> Iterator[None]:
    """Without collections of garbage."""
    tidied = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if tidied:
            gc.enable()
