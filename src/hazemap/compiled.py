"""Loops in machine code: the one place that asks numba for it.

Modules whose loops are compiled as they are imported import this one; light paths import those lazily.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """The function in machine code that lets other threads run, kept on disk where a folder can be written.

    >>> compiled(lambda x: x + 1)(2)
    3
    """
    try:
        return cast(F, njit(nogil=True, cache=True)(function))
    except RuntimeError:  # neither this folder nor the user's can be written: compile in every process
        return cast(F, njit(nogil=True)(function))
