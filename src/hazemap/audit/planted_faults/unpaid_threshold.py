"""How full the cells of the adaptive method are follows the exact number of people, which nobody paid for."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hazemap.algorithms.adaptive_tree import Adaptive
from hazemap.audit.planted_faults.exact_votes_probe import watched
from hazemap.audit.planted_faults.monkeypatch import replaced
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
