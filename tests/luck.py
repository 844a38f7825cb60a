"""The luck of tests: with CI set, what a test draws from the system is the same in every run.

So a test in one process cannot fail by chance on the same code, as laws cannot that are tried on the same examples.
Without CI each run draws afresh; HAZEMAP_LUCK, any text, chooses a luck that can be had again. Processes that a test
starts, and forks, always draw from the system.
"""

import os
import random
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager

FIXED = bool(os.environ.get("CI") or os.environ.get("HAZEMAP_LUCK"))
CHOSEN = os.environ.get("HAZEMAP_LUCK", "")

_system, _process, _lock = os.urandom, os.getpid(), threading.Lock()
_drawn = [random.Random(f"import {CHOSEN}")]


def _urandom(number: int, /) -> bytes:
    """As `os.urandom`, in this process alone."""
    if os.getpid() != _process or number < 0:
        return _system(number)
    with _lock:
        return _drawn[-1].randbytes(number)


def fix() -> None:
    """Let everything that is imported from now on draw by luck; a test begins its own with `luck_of`."""
    os.urandom = _urandom
    random._urandom = _urandom  # type: ignore[attr-defined] # of `secrets`, `SystemRandom` and NumPy's generators
    assert secrets.token_bytes(8) != secrets.token_bytes(8)


@contextmanager
def luck_of(name: str) -> Iterator[None]:
    """Draw what is drawn under this name."""
    _drawn.append(random.Random(f"{name} {CHOSEN}"))
    try:
        yield
    finally:
        _drawn.pop()
