"""How full the cells of the adaptive method are follows the exact number of people, which nobody paid for."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hazemap.algorithms.adaptive import Adaptive
from hazemap.audit.planted.replacing import replaced
from hazemap.audit.planted.watched_votes import watched
from hazemap.cells import Leaves


@contextmanager
def planted() -> Iterator[None]:
    """A twentieth of the people is a full cell; the last deciding round alone knows it."""
    cut = Adaptive._cut
    with watched() as seen:

        def informed(self: Adaptive, known: Any, fullness: float, *rest: Any) -> Leaves:
            people = float(seen[-1].weights.sum()) / self.bounding.unit
            return cut(self, known, max(people / 20, 1.0) * fullness / max(fullness, 1.0), *rest)

        with replaced(Adaptive, "_cut", informed):
            yield
