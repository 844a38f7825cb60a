"""Several vectors asked in one query."""

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from hazemap.encoders.encoder import Encoder, Entries
from hazemap.errors import InputError
from hazemap.tables.bounding import Sensitivity
from hazemap.tables.memory import MemoryTable
from hazemap.tables.votes import Table


@dataclass(frozen=True)
class Stack:
    """Encoders side by side in one vector, each times its weight: sensitivities add.

    The noise is the same for the whole vector, so a part of weight w is known w times as exactly.
    """

    parts: tuple[Encoder, ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.parts or len(self.parts) != len(self.weights) or min(self.weights) < 1:
            raise InputError("a stack needs at least one part, and a whole weight above 0 for each")

    @property
    def size(self) -> int:
        """Length of the whole vector."""
        return sum(part.size for part in self.parts)

    @property
    def sensitivity(self) -> Sensitivity:
        """L1 and L2² add over the parts, weighted."""
        each = [(w, part.sensitivity) for w, part in zip(self.weights, self.parts, strict=True)]
        return Sensitivity(sum(w * s.l1 for w, s in each), sum(w * w * s.l2_squared for w, s in each))

    def encode(self, table: MemoryTable) -> Entries:
        """What each person adds where."""
        starts = accumulate((part.size for part in self.parts), initial=0)
        each = [
            Entries(e.person, e.position + start, e.value * w)
            for e, w, start in zip((p.encode(table) for p in self.parts), self.weights, starts, strict=False)
        ]
        return Entries(*(np.concatenate(column) for column in zip(*each, strict=True)))

    def total(self, table: Table) -> NDArray[np.int64]:
        """The exact sums, from the table's votes."""
        return np.concatenate([w * p.total(table) for w, p in zip(self.weights, self.parts, strict=True)])

    def split(self, sums: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        """Undo the stacking and the weights."""
        cuts = list(accumulate(part.size for part in self.parts))[:-1]
        return [piece / w for piece, w in zip(np.split(sums, cuts), self.weights, strict=True)]
