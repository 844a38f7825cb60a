"""How many samples each person gives to one cell, and arrays of equal length made of the samples of several people.

Both are public where only values are protected, for they follow from numbers of samples alone. Rameshwar et al. 2024
(after George et al. 2024): the first min(m_ℓ, m) samples of each person go into arrays of length m. How many arrays one
person is in, f, is how many array means one person can move.
"""

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from hazemap.errors import InputError
from hazemap.field_types import EqualByFields, own_array
from hazemap.machine_code.arrays import Ints
from hazemap.vdaf.compiled_loops import once_compiled


@dataclass(frozen=True, eq=False)
class SampleCounts(EqualByFields):
    """The numbers m_ℓ of samples of the people in one cell, in ascending order of their codes; int64[people], all ≥ 1.

    Privacy model: VALUES ONLY. The caller promises that they are public (Rameshwar et al. 2024): two tables are
    neighbours if the *values* of one person differ, and these numbers do not.

    >>> some = SampleCounts(np.array([3, 1, 10]))
    >>> some.people, some.total, some.most, some.kept(4)
    (3, 14, 10, array([3, 1, 4]))
    """

    counts: Ints

    def __post_init__(self) -> None:
        own_array(self, "counts", np.int64)
        if self.counts.ndim != 1 or not len(self.counts) or self.counts.min() < 1:
            raise InputError("sample counts need at least one person, and at least one sample of each")

    @property
    def people(self) -> int:
        """The number of people."""
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
        """min(m_ℓ, most): the samples left of each person if each gives at most `most`."""
        return np.minimum(self.counts, most)

    @cached_property
    def distinct(self) -> tuple[Ints, Ints, Ints]:
        """For each distinct number c, ascending: c, Σ min(m_ℓ, c), and how many people give c or more. O(n log n)."""
        numbers, people = np.unique(self.counts, return_counts=True)
        more = people[::-1].cumsum()[::-1]
        below = np.concatenate([[0], np.cumsum(numbers * people)[:-1]])
        return numbers, below + numbers * more, more


class Arrays(NamedTuple):
    """Where samples go: of person ℓ the first `kept[ℓ]`; of these, the first `split[ℓ]` to array `first[ℓ]`, the others
    to the one after it. `filled` are the samples in each array; all int64.
    """

    kept: Ints
    first: Ints
    split: Ints
    filled: Ints

    @property
    def number(self) -> int:
        """The number of arrays, K̄."""
        return len(self.filled)


class Filling(Enum):
    """The samples of a person that go into the arrays: their first samples (as the paper says), or their mean, as many
    times (as its authors' code does). The mean is of all their samples, so none is lost. Either way it is theirs alone,
    and the
    mean of an array is a mean of values.
    """

    SAMPLES = "samples"
    MEANS = "means"


@dataclass(frozen=True)
class _Arrays:
    """Arrays of at most `most` samples, and which samples of a person fill them."""

    most: int
    filling: Filling = Filling.SAMPLES

    def __post_init__(self) -> None:
        if self.most < 1:
            raise InputError(f"an array must hold at least 1 sample, not {self.most}")


@dataclass(frozen=True)
class BestFit(_Arrays):
    """Each person's first min(m_ℓ, most) samples go, whole, into the fullest array that still has room, else a new one.

    A person is in one array, so f = 1: all samples of theirs that are kept are put there together, and which array it
    is depends on numbers of samples alone, which are public and the same in neighbouring tables (VALUES ONLY).

    >>> BestFit(4).arrays(SampleCounts(np.array([3, 2, 9, 1])))
    Arrays(kept=array([3, 2, 4, 1]), first=array([0, 1, 2, 0]), split=array([3, 2, 4, 1]), filled=array([4, 2, 4]))
    """

    spanned: ClassVar[int] = 1

    def arrays(self, contributions: SampleCounts) -> Arrays:
        """In ascending order of codes; of equally full arrays, into the last that became so. O(people · log m)."""
        kept = contributions.kept(self.most)
        first, filled = once_compiled(_best_fit)(kept, min(self.most, int(kept.sum())))
        return Arrays(kept, first, kept, filled)


@dataclass(frozen=True)
class WrapAround(_Arrays):
    """Arrays are filled one after another; a person whose samples do not fit any more goes on in the next one.

    A person is in two arrays at most, so f = 2: they have min(m_ℓ, most) ≤ most samples one after another, and these
    touch at most two runs of `most` places. Only the last array may not be full.

    >>> WrapAround(4).arrays(SampleCounts(np.array([3, 2, 9, 1])))
    Arrays(kept=array([3, 2, 4, 1]), first=array([0, 0, 1, 2]), split=array([3, 1, 3, 1]), filled=array([4, 4, 2]))
    """

    spanned: ClassVar[int] = 2

    def arrays(self, contributions: SampleCounts) -> Arrays:
        """People in ascending order of their codes. O(people)."""
        kept = contributions.kept(self.most)
        starts = np.cumsum(kept) - kept
        total = int(kept.sum())
        filled = np.full(-(-total // self.most), self.most, dtype=np.int64)
        filled[-1] = total - (len(filled) - 1) * self.most
        return Arrays(kept, starts // self.most, np.minimum(kept, self.most - starts % self.most), filled)


Grouping = BestFit | WrapAround


def alone(contributions: SampleCounts, most: int) -> Arrays:
    """An array for each person, of their first `most` samples.

    >>> alone(SampleCounts(np.array([3, 9])), 4).filled
    array([3, 4])
    """
    kept = contributions.kept(most)
    return Arrays(kept, np.arange(len(kept)), kept, kept)


def array_sums(arrays: Arrays, person: Ints, readings: Ints) -> Ints:
    """The sum of the readings in each array; `person` is each row's place in the order of people. O(rows).

    A person's first rows are those that come first in the table.
    """
    sums: Ints = once_compiled(_add_up)(arrays.kept, arrays.first, arrays.split, arrays.number, person, readings)
    return sums


def _best_fit(kept, most):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Stacks of arrays by the room they have left; a binary heap over rooms knows which stacks are not empty."""
    side = 1
    while side < most + 1:
        side *= 2
    some = np.zeros(2 * side, dtype=np.bool_)
    top, under = np.full(side, -1), np.full(len(kept), -1)
    first, filled = np.empty(len(kept), dtype=np.int64), np.empty(len(kept), dtype=np.int64)
    number = 0
    for person in range(len(kept)):
        node = side + kept[person]
        if not some[node]:  # up, until something lies to the right; node 0 and 1 mean that nothing does
            while node > 1 and (node % 2 == 1 or not some[node + 1]):
                node //= 2
            node = node + 1 if node > 1 else 0
        if node > 1:
            while node < side:  # down, to the least room in it
                node = 2 * node if some[2 * node] else 2 * node + 1
            room = node - side
            array = top[room]
            top[room] = under[array]
            if top[room] < 0:
                some[node] = False
                while node > 1 and not some[node ^ 1]:
                    node //= 2
                    some[node] = False
        else:
            array, room = number, most
            filled[array] = 0
            number += 1
        first[person] = array
        filled[array] += kept[person]
        room -= kept[person]
        if room > 0:
            under[array] = top[room]
            top[room] = array
            node = side + room
            while node > 0 and not some[node]:
                some[node] = True
                node //= 2
    return first, filled[:number]


def _add_up(kept, first, split, number, person, readings):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    seen, sums = np.zeros(len(kept), dtype=np.int64), np.zeros(number, dtype=np.int64)
    for row in range(len(person)):
        who = person[row]
        before = seen[who]
        if before < kept[who]:
            seen[who] = before + 1
            array = first[who]
            if before >= split[who]:
                array += 1
            sums[array] += readings[row]
    return sums
