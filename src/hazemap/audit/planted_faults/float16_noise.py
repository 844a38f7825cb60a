"""Noise passes through 16-bit floating point: beyond 2,048 only even numbers come out, beyond 4,096 multiples of 4.

So where noise is wide, the low digits of an answer are those of the exact sum (Mironov 2012).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from hazemap.audit.planted_faults.monkeypatch import replaced
from hazemap.privacy.mechanisms import DiscreteLaplace
from hazemap.privacy.random_stream import Stream


@contextmanager
def planted() -> Iterator[None]:
    """Round what was drawn to the nearest half-precision number."""
    draw = DiscreteLaplace.draw

    def halved(self: DiscreteLaplace, stream: Stream, size: int) -> Any:
        wide = np.clip(draw(self, stream, size), -65_504, 65_504)
        return wide.astype(np.float16).astype(np.int64)

    with replaced(DiscreteLaplace, "draw", halved):
        yield
