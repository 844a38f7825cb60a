"""One server's shares of the sums that a question asks, from its shares of the levels that were verified.

A cell is summed from the first level that is at least as deep as the cell. Levels descend from each other, and a report
counts at a level only if it counted at the one before. So whoever counts in a cell also counts in every larger one,
and a person adds at most 1 to one cell of a part, and 0 to the others: a part moves by at most its weight. This holds
for every list of cells, whether the levels fill them or not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import CodecError, Refused
from hazemap.federated.protocols.dap.prefix_question import LONGEST, PrefixCells, PrefixQuestion
from hazemap.machine_code.arrays import Words
from hazemap.vdaf.idpf import MODULUS_INNER, SIZE_INNER
from hazemap.vdaf.poplar1_evaluation import Poplar1Parameter


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
