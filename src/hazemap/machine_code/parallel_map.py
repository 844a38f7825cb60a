"""Work in several threads: over a stream, in its order, or over parts of an array."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TypeVar

CHUNK = 1 << 18
"""Rows in a part of an array."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item], threads: Executor, ahead: int
) -> Iterator[Result]:
    """Each item's result, in the order of the items; at most `ahead` items are taken before they are needed.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as threads:
    ...     list(in_order(abs, [-1, 2, -3], threads, ahead=2))
    [1, 2, 3]
    """
    waiting: deque[Future[Result]] = deque()
    for item in items:
        waiting.append(threads.submit(function, item))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_chunks(work: Callable[[slice], None], size: int) -> None:
    """Work on all parts of an array, in all processors at once where it has several: `work` lets other threads run."""
    chunks = [slice(start, start + CHUNK) for start in range(0, size, CHUNK)]
    if len(chunks) <= 1:
        list(map(work, chunks))
    else:
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            list(threads.map(work, chunks))
