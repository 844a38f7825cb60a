"""Contribution bounding: a closed list of rules, and the sensitivity that each one proves.

A rule looks at one person's rows alone, so adding or removing a person changes nothing about the others.
What is left of a person is a short list of (base cell, integer weight); `Sensitivity` bounds its size.
What becomes of rows in `NOWHERE`, outside every cell, says `Outside`; whichever it is, the sensitivity is the same.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.field_types import check_fields

LARGEST_TOTAL = (1 << 62) - 1
"""The largest total weight of a person: further cells in order get nothing."""


class Outside(Enum):
    """The treatment of a person's rows in `NOWHERE`: those outside the map, and those without usable coordinates.

    `DROP` forgets them before anything is weighed, so that they use up nobody's allowance. `COUNT` weighs them like
    those of any other cell. `PEOPLE` drops them for a person who has some row in a cell, and counts, for a person who
    has none, what the rule leaves of their rows in `NOWHERE`: who is on the map is counted as if there were no outside,
    and everybody else is still counted once. Only rows that weigh something are rows here.

    What is left of a person is, in each case, what the rule makes of a part of their own rows, and which part depends
    on nobody else's: so whatever bounds the rule bounds it with all three, and `NOWHERE`, being one cell more that is
    disjoint from the others, can be asked for at no further price.
    """

    DROP = "drop"
    PEOPLE = "people"
    COUNT = "count"

    @property
    def asked(self) -> bool:
        """Whether votes may lie in `NOWHERE`, so that it is a cell to ask about."""
        return self is not Outside.DROP

    @property
    def written(self) -> bool | str:
        """In files, where the field is `nowhere`: false and true since before there was a third choice."""
        return "people" if self is Outside.PEOPLE else self is Outside.COUNT

    @classmethod
    def read(cls, written: object) -> "Outside":
        """The inverse of `written`; `InputError` for anything else."""
        for each in cls:
            if type(written) is type(each.written) and written == each.written:
                return each
        raise InputError("'nowhere' of a bounding rule must be true, false or \"people\"")


class Sensitivity(NamedTuple):
    """The distance by which one person can move a vector of sums, in L1 and L2 squared. Both are integers, so exact."""

    l1: int
    l2_squared: int


def _at_least_one(number: int, what: str) -> None:
    if number < 1:
        raise InputError(f"{what} must be at least 1, not {number}")


def whole_weights(weights: NDArray[Any]) -> NDArray[np.int64]:
    """Each weight in whole 1024ths, so that sums do not depend on an order; 0 for a row that does not count.

    NaN, infinity and negative weights do not count; 2⁴³ is the largest.

    >>> whole_weights(np.array([1.0, 0.25, -1.0, np.nan]))
    array([1024,  256,    0,    0])
    """
    usable = np.isfinite(weights) & (weights > 0)
    scaled = np.minimum(np.where(usable, weights, 0).astype(np.float64), 2.0**43) * 1024
    whole: NDArray[np.int64] = np.rint(scaled).astype(np.int64)
    return whole


class _Rule(ABC):
    """The common interface of all rules."""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    @abstractmethod
    def largest(self) -> int:
        """The most votes that one person has in all."""

    @property
    def sensitivity(self) -> Sensitivity:
        """The sensitivity of the votes: all of a person's may lie in one cell, or in one coarser cell."""
        return Sensitivity(self.largest, self.largest**2)

    @property
    def unit(self) -> int:
        """Votes that make one of what is counted."""
        return 1


class _AtMost(_Rule):
    """A rule that leaves a person at most this many of what is `capped`, each one vote."""

    most: int
    capped: str

    def __post_init__(self) -> None:
        super().__post_init__()
        _at_least_one(self.most, f"the number of {self.capped} a person")

    @property
    def largest(self) -> int:
        """The most votes that one person has in all."""
        return self.most


@dataclass(frozen=True)
class AtMostRows(_AtMost):
    """At most `most` rows a person, each one vote; drawn at random, by a keyed hash, where there are more.

    All of them may lie in one cell: L1 = most, L2² = most².

    >>> AtMostRows(3).sensitivity
    Sensitivity(l1=3, l2_squared=9)
    """

    most: int = 1
    outside: Outside = Outside.DROP

    capped = "rows"

    def __str__(self) -> str:
        return "one row a person" if self.most == 1 else f"at most {self.most} rows a person"


@dataclass(frozen=True)
class AtMostCells(_AtMost):
    """One vote in each of at most `most` distinct base cells a person; drawn by a keyed hash.

    The votes lie in different base cells, but a coarser cell may hold them all: L2² = most² as well.

    >>> AtMostCells(3).sensitivity
    Sensitivity(l1=3, l2_squared=9)
    """

    most: int
    outside: Outside = Outside.DROP

    capped = "cells"

    def __str__(self) -> str:
        return f"at most {self.most} cells a person"


@dataclass(frozen=True)
class OneVote(_Rule):
    """One vote a person, divided over all their rows by weight into `scale` integer micro-votes.

    With cumulative weights C_j, total W and one keyed number u in [0, W), the cell j gets
    ⌊(S·C_j + u)/W⌋ − ⌊(S·C_(j−1) + u)/W⌋: unbiased, and the sum is exactly S, so L1 = S and not S + k
    (dependent rounding; METHODS.md 1, against Bagdasaryan et al. 2022, section 4.4).

    >>> OneVote(1024).sensitivity
    Sensitivity(l1=1024, l2_squared=1048576)
    """

    scale: int = 1 << 10
    outside: Outside = Outside.DROP

    def __post_init__(self) -> None:
        super().__post_init__()
        _at_least_one(self.scale, "the number of micro-votes a person")
        if self.scale > 1 << 16:
            raise InputError(f"a person can have at most 65536 micro-votes, not {self.scale}: sums must fit 64 bits")

    @property
    def largest(self) -> int:
        """The most votes that one person has in all."""
        return self.scale

    @property
    def unit(self) -> int:
        """Votes that make one of what is counted."""
        return self.scale

    def __str__(self) -> str:
        return "one vote a person, shared out over their rows"


@dataclass(frozen=True)
class RowIsPerson(_Rule):
    """Every row is a person of its own. It protects rows, and says so in the statement.

    >>> RowIsPerson().sensitivity
    Sensitivity(l1=1, l2_squared=1)
    """

    outside: Outside = Outside.DROP
    largest = 1

    def __str__(self) -> str:
        return "each row is a person of its own"


@dataclass(frozen=True)
class OwnMeans(_Rule):
    """For values: of each person at most `cells` cells and slots, drawn by a keyed hash where there are more; in each,
    the mean of *all* their records there, with the weight of at most `records` of them.

    A record is divided into `scale` micro-votes over the counters of a value encoding
    (`hazemap.values.value_encoding.ValueEncoding`), the same number whatever its value. A person's records in one cell
    and slot are averaged counter by counter, times their weight w = min(number, records), and rounded dependently, so
    that they are exactly w · scale: L1 = cells · records · scale. No record is left out, so nothing is lost by a small
    `records`: with 1, every person counts once in a cell.

    >>> OwnMeans(24, scale=1 << 20).sensitivity.l1 == 24 << 20
    True
    """

    cells: int
    records: int = 1
    scale: int = 1 << 20
    outside: Outside = Outside.DROP

    def __post_init__(self) -> None:
        super().__post_init__()
        _at_least_one(self.cells, "the number of cells a person")
        _at_least_one(self.records, "the number of records that a person counts for")
        _at_least_one(self.scale, "the number of micro-votes a record")
        if self.outside.asked:
            raise InputError("values are measured inside cells, so rows outside must be dropped")
        if max(self.cells, self.records) > 1 << 16 or self.largest > 1 << 50:
            raise InputError(
                "a person can count in at most 65536 cells, with at most 65536 records: sums must fit 64 bits"
            )

    @property
    def largest(self) -> int:
        """The most votes that one person has in all."""
        return self.cells * self.records * self.scale

    @property
    def unit(self) -> int:
        """Votes that make one of what is counted."""
        return self.scale

    def __str__(self) -> str:
        where = "one cell and slot" if self.cells == 1 else f"at most {self.cells} cells and slots"
        weight = "1" if self.records == 1 else f"at most {self.records} records"
        return f"{where} a person, in each the mean of theirs with weight {weight}"


def whose_mean(records: int) -> str:
    """The population of a mean under `OwnMeans`, in words.

    >>> whose_mean(1), whose_mean(10)
    ("people's own means, each once", 'records, up to 10 a person')
    """
    return "people's own means, each once" if records == 1 else f"records, up to {records:,} a person"


@dataclass(frozen=True)
class OneReport(_Rule):
    """One report of each person, which names one bin whatever they did: the question of a recipe's round.

    Exchanging a person's events for any others moves their report from one bin to another: L1 = 2, L2² = 2.

    >>> OneReport().sensitivity
    Sensitivity(l1=2, l2_squared=2)
    """

    outside: Outside = Outside.DROP
    largest = 1

    @property
    def sensitivity(self) -> Sensitivity:
        """The sensitivity of the counts of the bins."""
        return Sensitivity(2, 2)

    def __str__(self) -> str:
        return "one report a person and round"


Bounding = AtMostRows | AtMostCells | OneVote | RowIsPerson | OwnMeans
