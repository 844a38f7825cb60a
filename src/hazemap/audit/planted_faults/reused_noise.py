"""Noise is cut, somewhere, from a pool that was drawn once: two releases, subtracted, may be exact."""

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np

from hazemap.audit.planted_faults.monkeypatch import replaced
from hazemap.privacy.mechanisms import DiscreteLaplace
from hazemap.privacy.random_stream import Stream


@contextmanager
def planted() -> Iterator[None]:
    """A pool of four times the numbers that are first asked for, for each scale."""
    draw, pools = DiscreteLaplace.draw, dict[Fraction, Any]()

    def pooled(self: DiscreteLaplace, stream: Stream, size: int) -> Any:
        pool = pools.get(self.scale)
        if pool is None or len(pool) < 2 * size:
            pool = pools[self.scale] = draw(self, stream, 4 * max(size, 256))
        start = stream.below(len(pool) - size)
        return np.array(pool[start : start + size])

    with replaced(DiscreteLaplace, "draw", pooled):
        yield
