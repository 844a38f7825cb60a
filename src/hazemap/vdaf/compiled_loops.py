"""Loops compiled to machine code, and the types of the arrays that they go through.

`compiled` imports numba, and decorates loops that call each other: light paths import such modules lazily. A loop that
stands alone is compiled when it first runs: by `once_compiled(loop)(...)`, or by `fitting` if that is worth it.
"""

import sys
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]

F = TypeVar("F", bound=Callable[..., Any])

FEW = 4000
"""Numbers that a loop in Python has gone through in the time that it takes to load numba."""


def compiled(function: F) -> F:
    """The function in machine code that lets other threads run, kept on disk where a folder can be written.

    >>> compiled(lambda x: x + 1)(2)
    3
    """
    from hazemap.vdaf.loop_cache import cached

    return cached(function)


def inlined(function: F) -> F:
    """`compiled`, and a part of each loop that calls it before that is compiled, so that loops stay ones of vectors.

    For short functions without loops or returns in the middle.

    >>> inlined(lambda x: x + 1)(2)
    3
    """
    from hazemap.vdaf.loop_cache import cached

    return cached(function, inline="always")


def worth_compiling(size: int) -> bool:
    """Whether a loop over so many numbers had better be compiled: not over a few, unless numba is loaded anyway."""
    return size > FEW or compiler_is_loaded()


def compiler_is_loaded() -> bool:
    """Whether numba is there already, so that compiled loops cost no more than their time."""
    return "numba" in sys.modules


def fitting(function: Any, size: int) -> Any:
    """A loop over so many numbers, compiled if that is worth it. Either way it gives the same, to the last bit."""
    return once_compiled(function) if worth_compiling(size) else _quiet(function)


@cache
def once_compiled(function: Any) -> Any:
    """A loop in machine code, the same at every call: numba is loaded by the first one."""
    return compiled(function)


def _quiet(function: Any) -> Any:
    """The loop in Python, in which overflows and infinities pass without a warning, as they do in machine code."""

    def run(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return run
