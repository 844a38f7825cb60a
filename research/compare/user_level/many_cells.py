"""Who was in which cells with how many samples, of a table of which all is known: what CHOP-USER is measured on."""

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from hazemap.algorithms.published.chop_user import CellVisits
from hazemap.errors import InputError

FEW = 20
"""People of a small table."""


@dataclass(frozen=True, eq=False)
class ManyCells:
    """Pairs of a person and a cell; `width` is that of the range of a value, U.

    >>> pairs = CellVisits(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([5, 2, 9]))
    >>> some = ManyCells("some", pairs, 30.0)
    >>> some.people, some.cells, some.of_at_least(2).cells
    (2, 2, 1)
    """

    name: str
    presence: CellVisits
    width: float
    origin: str = ""

    @property
    def people(self) -> int:
        """How many they are."""
        return int(self.presence.person.max()) + 1

    @property
    def cells(self) -> int:
        """How many cells have somebody."""
        return int(self.presence.cell.max()) + 1

    @property
    def size(self) -> dict[str, int]:
        """Pairs and cells, by their names in results."""
        return {"pairs": len(self.presence.person), "places": self.cells}

    @property
    def extent(self) -> str:
        """The same in words."""
        return f"{self.size['pairs']:,} pairs of a person and one of {self.cells:,} cells, values 0 to {self.width:g}"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that a score can depend on."""
        columns = (self.presence.person, self.presence.cell, self.presence.samples)
        return sha256(
            f"{self.width} ".encode() + b"".join(part.astype("<i8").tobytes() for part in columns)
        ).hexdigest()

    def small(self) -> "ManyCells":
        """A few of the people."""
        return self._only(self.presence.person < FEW)

    def of_at_least(self, people: int) -> "ManyCells":
        """Only cells with so many people: a public condition, for their numbers are."""
        number = np.bincount(self.presence.cell)
        if number.max() < people:
            raise InputError(f"no cell of {self.name} has {people} people or more")
        return self._only(number[self.presence.cell] >= people)

    def _only(self, kept: NDArray[np.bool_]) -> "ManyCells":
        found = self.presence
        person, cell = (np.unique(codes[kept], return_inverse=True)[1] for codes in (found.person, found.cell))
        return ManyCells(self.name, CellVisits(person, cell, found.samples[kept]), self.width, self.origin)
