"""The encoder interface: a person's rows become a vector, whose bound is this floor's whole privacy argument."""

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

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
