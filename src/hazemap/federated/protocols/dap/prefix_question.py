"""What a collector asks about one report's tree: which level to verify, and sums over cells of the levels so far.

A cell is a prefix: all strings that begin with some bits. A question has one or more parts, each a list of cells that
differ, and each person counts in at most one cell of a part: the deepest that holds them. So a part of weight w moves
by at most w in L1 and in L2, and a question by Σ w and √Σ w², whoever the person is and whichever levels were counted
(`question_shares`). A path that turns into another moves it up to twice as much (`WalkTerms.moved`). The question
says which share of the task's budget it spends.

It travels in place of the VDAF's aggregation parameter in a collection job, so that both aggregate shares are bound to
it byte for byte.

A cell is summed from the first level that is at least as deep as the cell. Levels descend from each other, and a report
counts at a level only if it counted at the one before. So whoever counts in a cell also counts in every larger one,
and a person adds at most 1 to one cell of a part, and 0 to the others: a part moves by at most its weight. This holds
for every list of cells, whether the levels fill them or not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate
from math import gcd
from typing import Annotated, Final, Self

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import CodecError, InputError, Refused
from hazemap.machine_code.arrays import Ints, Words
from hazemap.tables.contribution_bounding import Sensitivity
from hazemap.vdaf.idpf import MODULUS_INNER, SIZE_INNER
from hazemap.vdaf.poplar1_evaluation import Poplar1Parameter
from hazemap.vdaf.tls_encoding import Structure, number, opaque, vector

MOST_QUESTIONS: Final = 1 << 12
MOST_PARTS: Final = 1 << 10
HEAVIEST: Final = 1 << 40
"""The largest weight: sums must fit 64 bits."""
MOST_CELLS: Final = 1 << 20
"""Cells of one question."""
LONGEST: Final = 64
"""Bits of a prefix."""
_SHARE_BYTES: Final = 64


@dataclass(frozen=True)
class PrefixCells(Structure):
    """Cells that differ, in any order, and the weight of their sums: `lengths` are bits, `starts` 64-bit numbers.

    A prefix is written with zeros after it, to 64 bits.

    >>> halves = PrefixCells.of(np.array([0, 1], dtype=np.uint64), np.array([1, 1]))
    >>> halves.begins.tolist(), halves.ends.tolist() == [2**63 - 1, 2**64 - 1]
    ([0, 9223372036854775808], True)
    """

    weight: Annotated[int, number(8)]
    lengths: Annotated[bytes, opaque(4)] = field(repr=False)
    starts: Annotated[bytes, opaque(4)] = field(repr=False)

    def __post_init__(self) -> None:
        if type(self.weight) is not int or not 1 <= self.weight <= HEAVIEST:
            raise InputError(f"a weight is 1 to {HEAVIEST:,}, not {self.weight}")
        if not 1 <= len(self.lengths) <= MOST_CELLS or len(self.starts) != 8 * len(self.lengths):
            raise InputError(f"a question is about 1 to {MOST_CELLS:,} cells, each with its length and its bits")
        if min(self.lengths) < 1 or max(self.lengths) > LONGEST:
            raise InputError(f"a prefix has 1 to {LONGEST} bits")
        if (self.begins & self._below).any():
            raise InputError("a prefix is longer than it says")
        if len(set(zip(self.lengths, self.begins.tolist(), strict=True))) != len(self.lengths):
            raise InputError("a cell is asked for twice in one part of a question")

    @classmethod
    def of(cls, prefixes: Words, lengths: Sequence[int] | Ints, weight: int = 1) -> Self:
        """Prefixes as numbers of so many bits each."""
        sizes = np.asarray(lengths, dtype=np.uint64)
        if len(sizes) and (sizes.min() < 1 or sizes.max() > LONGEST):
            raise InputError(f"a prefix has 1 to {LONGEST} bits")
        starts = prefixes << (np.uint64(LONGEST) - sizes)
        return cls(weight, sizes.astype(np.uint8).tobytes(), starts.astype(">u8").tobytes())

    @property
    def size(self) -> int:
        """How many sums it asks for."""
        return len(self.lengths)

    @cached_property
    def begins(self) -> Words:
        """The first string of each cell, of 64 bits."""
        return np.frombuffer(self.starts, dtype=">u8").astype(np.uint64)

    @cached_property
    def ends(self) -> Words:
        """The last string of each cell, of 64 bits."""
        return self.begins | self._below

    @cached_property
    def holders(self) -> Ints:
        """The place of the next larger cell of this part that holds each, or -1. O(cells log cells)."""
        found = np.full(self.size, -1, dtype=np.int64)
        begins, ends = self.begins.tolist(), self.ends.tolist()
        above: list[int] = []
        for place in np.lexsort((np.frombuffer(self.lengths, dtype=np.uint8), self.begins)).tolist():
            while above and ends[above[-1]] < begins[place]:
                above.pop()
            if above:
                found[place] = above[-1]
            above.append(place)
        return found

    @property
    def _below(self) -> Words:
        """The bits after each prefix."""
        sizes = np.frombuffer(self.lengths, dtype=np.uint8).astype(np.uint64)
        return np.uint64((1 << 64) - 1) >> (sizes - np.uint64(1)) >> np.uint64(1)


@dataclass(frozen=True)
class PrefixQuestion(Structure):
    """Verify the level of `parameter`, if it was not verified before, and give the noisy sums of all parts.

    `numerator` and `denominator` of the share are big-endian, without zeros before them, and in lowest terms.
    """

    number: Annotated[int, number(2)]
    """of the question, from 0: the same question with another number is another one, with noise of its own"""
    parameter: Annotated[bytes, opaque(4)] = field(repr=False)
    """Poplar1's: level and candidates"""
    numerator: Annotated[bytes, opaque(1)]
    denominator: Annotated[bytes, opaque(1)]
    parts: Annotated[tuple[PrefixCells, ...], vector(PrefixCells, 4)]

    def __post_init__(self) -> None:
        if type(self.number) is not int or not 0 <= self.number < MOST_QUESTIONS:
            raise InputError(f"a batch is asked at most {MOST_QUESTIONS:,} questions")
        if not 1 <= len(self.parts) <= MOST_PARTS or self.size > MOST_CELLS:
            raise InputError(f"a question has 1 to {MOST_PARTS:,} parts, of at most {MOST_CELLS:,} cells in all")
        for each in (self.numerator, self.denominator):
            if not 1 <= len(each) <= _SHARE_BYTES or not each[0]:
                raise InputError(f"a share is written in numbers of 1 to {_SHARE_BYTES} bytes, without zeros before")
        top, bottom = (int.from_bytes(each, "big") for each in (self.numerator, self.denominator))
        if top > bottom or gcd(top, bottom) != 1:
            raise InputError("a share is above 0, at most 1, and in lowest terms")

    @classmethod
    def of(cls, number: int, parameter: bytes, share: Fraction, parts: tuple[PrefixCells, ...]) -> Self:
        """A question that spends a share of the budget."""
        top, bottom = (value.to_bytes((value.bit_length() + 7) // 8, "big") for value in share.as_integer_ratio())
        return cls(number, parameter, top, bottom, parts)

    @property
    def share(self) -> Fraction:
        """Of the task's budget."""
        return Fraction(int.from_bytes(self.numerator, "big"), int.from_bytes(self.denominator, "big"))

    @property
    def size(self) -> int:
        """How many sums it asks for."""
        return sum(part.size for part in self.parts)

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one path, there or not, moves the sums."""
        weights = [part.weight for part in self.parts]
        return Sensitivity(sum(weights), sum(weight * weight for weight in weights))

    @cached_property
    def stretches(self) -> tuple[Words, Words]:
        """First and last strings, of 64 bits, of the stretches that all its cells cover together, ascending."""
        begins = np.concatenate([part.begins for part in self.parts])
        ends = np.concatenate([part.ends for part in self.parts])
        order = np.lexsort((~ends, begins))
        begins, ends = begins[order], np.maximum.accumulate(ends[order])
        gap = begins[1:] > ends[:-1]
        some = np.ones(1, dtype=bool)
        return begins[np.concatenate([some, gap])], ends[np.concatenate([gap, some])]


@lru_cache(maxsize=4, typed=True)
def read_question(data: bytes) -> PrefixQuestion:
    """`PrefixQuestion.from_bytes`, of the same bytes once: servers look at a question many times while they work on it.

    >>> question = PrefixQuestion.of(0, b"level", Fraction(1, 2), (PrefixCells.of(np.zeros(1, dtype=np.uint64), [1]),))
    >>> read_question(question.to_bytes()) is read_question(question.to_bytes())
    True
    """
    return PrefixQuestion.from_bytes(data)


@dataclass(frozen=True, eq=False)
class LevelShares:
    """Shares of how many strings begin with each of the prefixes of one level: elements of the field of inner levels.

    >>> shares = LevelShares(Poplar1Parameter(1, np.array([0, 2, 3], dtype=np.uint64)), (10, 20, 30))
    >>> shares.within(PrefixCells.of(np.array([0, 1], dtype=np.uint64), [1, 1])).tolist()
    [10, 50]
    """

    parameter: Poplar1Parameter
    shares: Sequence[int] = field(repr=False)

    @property
    def length(self) -> int:
        """Bits of its prefixes."""
        return self.parameter.level + 1

    def within(self, cells: PrefixCells) -> NDArray[np.object_]:
        """The sum of all shares in each cell, not reduced. O(cells log prefixes)."""
        first = self.parameter.prefixes << np.uint64(LONGEST - self.length)
        until = np.searchsorted(first, cells.ends, "right")
        found: NDArray[np.object_] = self._until[until] - self._until[np.searchsorted(first, cells.begins, "left")]
        return found

    @cached_property
    def _until(self) -> NDArray[np.object_]:
        return np.array(list(accumulate(self.shares, initial=0)), dtype=np.object_)


def question_shares(question: PrefixQuestion, levels: Sequence[LevelShares], modulus: int) -> list[int]:
    """Shares of all sums, reduced; `Refused` for cells deeper than every level. O(cells × levels × log prefixes)."""
    found: list[int] = []
    for part in question.parts:
        owned = _whole(part, levels)
        whole, inside = owned.copy(), part.holders >= 0
        np.subtract.at(owned, part.holders[inside], whole[inside])
        found += [part.weight * share % modulus for share in owned.tolist()]
    return found


def _whole(part: PrefixCells, levels: Sequence[LevelShares]) -> NDArray[np.object_]:
    lengths: Words = np.frombuffer(part.lengths, dtype=np.uint8).astype(np.uint64)
    sums = np.zeros(part.size, dtype=np.object_)
    missing = np.ones(part.size, dtype=bool)
    for level in sorted(levels, key=lambda each: each.length):
        here = missing & (lengths <= level.length)
        if here.any():
            sums[here] = level.within(part)[here]
        missing &= ~here
    if missing.any():
        raise Refused(f"{int(missing.sum()):,} cells are deeper than every level that was verified")
    return sums


def encoded_shares(shares: Sequence[int]) -> bytes:
    """Elements of the field of inner levels, one after another, little end first.

    >>> decoded_shares(encoded_shares([1, 2**40]), 2)
    [1, 1099511627776]
    """
    return b"".join(share.to_bytes(SIZE_INNER, "little") for share in shares)


def decoded_shares(data: bytes, size: int) -> list[int]:
    """What `encoded_shares` wrote of so many; `CodecError` for anything else."""
    if len(data) != SIZE_INNER * size:
        raise CodecError(f"shares of {size} sums have {SIZE_INNER * size} bytes, not {len(data)}")
    found: list[int] = np.frombuffer(data, dtype="<u8").tolist()
    if any(share >= MODULUS_INNER for share in found):
        raise CodecError("a share holds a number that is not below the field's modulus")
    return found
