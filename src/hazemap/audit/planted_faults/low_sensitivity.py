"""At most k rows a person, with noise for k − 1: whoever has k rows in a cell loses ε·k/(k − 1)."""

from collections.abc import Iterator
from contextlib import contextmanager

from hazemap.audit.planted_faults.monkeypatch import replaced
from hazemap.tables.contribution_bounding import AtMostRows, Sensitivity


@contextmanager
def planted() -> Iterator[None]:
    """The rule keeps as many rows as before, and says one less."""

    def sensitivity(self: AtMostRows) -> Sensitivity:
        most = max(1, self.most - 1)
        return Sensitivity(most, most**2)

    with replaced(AtMostRows, "sensitivity", property(sensitivity)):
        yield
