"""Which people have how many records in which place: public where only values are protected."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Ints
from hazemap.errors import InputError


@dataclass(frozen=True, eq=False)
class PublicLocations:
    """Pairs of a person and a place (a cell in a slot), person after person: those of person i are
    `firsts[i]` … `firsts[i + 1]`, in an order that a keyed hash drew, as are
    people themselves; none twice. So nothing here depends on the order of rows, which values may have made.

    Privacy model: VALUES ONLY. There is no value here, so whatever follows from it costs nothing.

    >>> some = PublicLocations(np.array([0, 2, 3]), np.array([4, 0, 4]), np.array([7, 1, 2]), number=5)
    >>> some.people, some.counts, some.weights(3)
    (array([1, 0, 0, 0, 2]), array([2, 1]), array([3, 1, 2]))
    """

    firsts: Ints
    place: NDArray[np.int32]
    records: Ints
    number: int

    def __post_init__(self) -> None:
        if not len(self.place) or self.place.shape != self.records.shape or self.firsts[-1] != len(self.place):
            raise InputError(
                "public locations need at least one pair of a person and a place, and a number of records for each pair"
            )

    @property
    def counts(self) -> Ints:
        """In how many places each person is."""
        return np.diff(self.firsts)

    @property
    def person(self) -> NDArray[np.int32]:
        """The person of each pair, counted from 0."""
        return np.repeat(np.arange(len(self.firsts) - 1, dtype=np.int32), self.counts)

    @cached_property
    def people(self) -> Ints:
        """The number of people in each place; int64[number]."""
        return np.bincount(self.place, minlength=self.number)

    def weights(self, most: int) -> Ints:
        """For how much each pair counts: min(records, most)."""
        return np.minimum(self.records, most)
