"""How many samples each person gives to one cell: public, where only values are protected."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hazemap.arrays import Ints
from hazemap.errors import InputError


@dataclass(frozen=True, eq=False)
class SampleCounts:
    """The numbers m_ℓ of samples of the people in one cell, in ascending order of their codes; int64[people], all ≥ 1.

    Privacy model: VALUES ONLY. Whoever uses them promises that they are public (Rameshwar et al. 2024): two tables
    are neighbours if the *values* of one person differ, and these numbers do not.

    >>> some = SampleCounts(np.array([3, 1, 10]))
    >>> some.people, some.total, some.most, some.kept(4)
    (3, 14, 10, array([3, 1, 4]))
    """

    counts: Ints

    def __post_init__(self) -> None:
        counts = np.array(self.counts, dtype=np.int64)
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)
        if counts.ndim != 1 or not len(counts) or counts.min() < 1:
            raise InputError("there is one person at least, and each gives one sample at least")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SampleCounts) and np.array_equal(self.counts, other.counts)

    def __hash__(self) -> int:
        return hash(self.counts.tobytes())

    @property
    def people(self) -> int:
        """How many people."""
        return len(self.counts)

    @cached_property
    def total(self) -> int:
        """Σ m_ℓ."""
        return int(self.counts.sum())

    @cached_property
    def most(self) -> int:
        """The largest number of one person."""
        return int(self.counts.max())

    def kept(self, most: int) -> Ints:
        """min(m_ℓ, most): what is left of each person where nobody gives more than `most`."""
        return np.minimum(self.counts, most)

    @cached_property
    def distinct(self) -> tuple[Ints, Ints, Ints]:
        """For each distinct number c, ascending: c, Σ min(m_ℓ, c), and how many people give c or more. O(n log n)."""
        numbers, people = np.unique(self.counts, return_counts=True)
        more = people[::-1].cumsum()[::-1]
        below = np.concatenate([[0], np.cumsum(numbers * people)[:-1]])
        return numbers, below + numbers * more, more
