"""Encoders, and a row of them: a person's rows become a vector, whose bound is this floor's privacy argument."""

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.field_types import check_fields
from hazemap.tables.contribution_bounding import Sensitivity
from hazemap.tables.votes import VotesTable

if TYPE_CHECKING:
    from hazemap.engines.memory import MemoryTable


class Entries(NamedTuple):
    """A sparse matrix, people by positions: what each person adds where. All int64."""

    person: NDArray[np.int64]
    position: NDArray[np.int64]
    value: NDArray[np.int64]


class Encoder(Protocol):
    """A linear map from people to a vector of integers.

    Laws (tests/laws/test_encoders.py): the total of a table is the sum of the totals of its people, from
    an engine and from memory alike; no person moves it by more than `sensitivity`.
    """

    @property
    def size(self) -> int:
        """Length of the vector."""

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one person can move the vector."""

    def encode(self, table: "MemoryTable") -> Entries:
        """What each person of a table in memory (a device holds one of one person) adds where."""

    def total(self, table: VotesTable) -> NDArray[np.int64]:
        """The exact sums over a table, from its votes. Only a trust model may ask, to add noise to it."""


def total(encoder: Encoder, table: "MemoryTable") -> NDArray[np.int64]:
    """The exact sums, person by person: what `Encoder.total` must equal."""
    entries = encoder.encode(table)
    sums = np.zeros(encoder.size, dtype=np.int64)
    np.add.at(sums, entries.position, entries.value)
    return sums


MOST_PARTS = 1 << 10
"""Parts of a stack: methods ask a few levels together."""

HEAVIEST = 1 << 40
"""The largest weight: sums must fit 64 bits."""


@dataclass(frozen=True)
class Concatenation:
    """Encoders side by side in one vector, each times its weight: sensitivities add.

    The noise is the same for the whole vector, so a part of weight w is known w times as exactly.
    """

    parts: tuple[Encoder, ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        whole = all(type(weight) is int for weight in self.weights)
        if not self.parts or len(self.parts) != len(self.weights) or not whole or min(self.weights) < 1:
            raise InputError("a concatenation needs at least one part, and a positive whole weight for each")
        if len(self.parts) > MOST_PARTS:
            raise InputError(f"a concatenation has at most {MOST_PARTS:,} parts")
        if max(self.weights) > HEAVIEST:
            raise InputError(f"the weights of a concatenation are at most {HEAVIEST:,}: sums must fit 64 bits")
        check_fields(self)

    @property
    def size(self) -> int:
        """Length of the whole vector."""
        return sum(part.size for part in self.parts)

    @property
    def sensitivity(self) -> Sensitivity:
        """L1 and L2² add over the parts, weighted."""
        each = [(w, part.sensitivity) for w, part in zip(self.weights, self.parts, strict=True)]
        return Sensitivity(sum(w * s.l1 for w, s in each), sum(w * w * s.l2_squared for w, s in each))

    def encode(self, table: "MemoryTable") -> Entries:
        """What each person adds where."""
        starts = accumulate((part.size for part in self.parts), initial=0)
        each = [
            Entries(e.person, e.position + start, e.value * w)
            for e, w, start in zip((p.encode(table) for p in self.parts), self.weights, starts, strict=False)
        ]
        return Entries(*(np.concatenate(column) for column in zip(*each, strict=True)))

    def total(self, table: VotesTable) -> NDArray[np.int64]:
        """The exact sums, from the table's votes."""
        return np.concatenate([w * p.total(table) for w, p in zip(self.weights, self.parts, strict=True)])

    def split(self, sums: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        """Undo the stacking and the weights."""
        cuts = list(accumulate(part.size for part in self.parts))[:-1]
        return [piece / w for piece, w in zip(np.split(sums, cuts), self.weights, strict=True)]
