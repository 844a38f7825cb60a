"""Work on a stream with several threads, in the order of the stream."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from typing import TypeVar

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
