"""What one person adds to a sum, checked before anything hides it.

Masks and noise make a wrong number impossible to see, so this is the last place where it can be. The law of every
encoder is that positions lie inside the vector and that nobody moves it by more than its sensitivity; here it is
enforced, person by person. And whatever goes wrong with somebody's rows may not be seen from outside: a person who
does not answer, or stops, would reveal that their rows were read and what kind they were. So they answer zeros, like
those who have no row, and the same noise goes over them.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hazemap.encoders import Concatenation, Encoder
from hazemap.engines.memory import MemoryTable
from hazemap.errors import Refused
from hazemap.machine_code.arrays import Ints
from hazemap.tables.contribution_bounding import Sensitivity

_ROOM = 1 << 62


class CheckedContribution(NamedTuple):
    """A person's vector, int64[size], and what kept it from being made of their rows: None, or an error's name."""

    sums: Ints
    trouble: str | None = None


def contribution(encoder: Encoder, rows: Callable[[], MemoryTable]) -> CheckedContribution:
    """What the person whose rows these are adds; zeros where anything at all goes wrong. O(size + rows · depth).

    `rows` reads them: that may go wrong as well.
    """
    try:
        return CheckedContribution(bounded(encoder, rows()))
    except Exception as error:  # see above: of whatever kind, it must look the same from outside
        return CheckedContribution(np.zeros(encoder.size, dtype=np.int64), type(error).__name__)


def bounded(encoder: Encoder, table: MemoryTable) -> Ints:
    """The vector of a table of one person; `Refused` if it is not within what the encoder promises of everybody."""
    if isinstance(encoder, Concatenation):
        parts = zip(encoder.weights, encoder.parts, strict=True)
        return within(np.concatenate([weight * bounded(part, table) for weight, part in parts]), encoder.sensitivity, 1)
    entries = encoder.encode(table)
    if len(entries.position) and not 0 <= entries.position.min() <= entries.position.max() < encoder.size:
        raise Refused("a vote lies outside the vector that was asked for")
    sums = np.zeros(encoder.size, dtype=np.int64)
    np.add.at(sums, entries.position, entries.value)
    return within(sums, encoder.sensitivity, 1)


def within(sums: Ints, most: Sensitivity, people: int) -> Ints:
    """The sums, if `people` people can have made them: ‖v‖₁ ≤ people · Δ₁ and ‖v‖₂² ≤ people² · Δ₂². Exact.

    `Refused` otherwise, before any noise is added.
    """
    some = sums[sums != 0]
    largest = max(int(some.max(initial=0)), -int(some.min(initial=0)))
    if largest**2 * len(some) >= _ROOM:
        some = some.astype(object)  # Python's integers do not wrap
    if int(np.abs(some).sum()) > people * most.l1 or int((some * some).sum()) > people**2 * most.l2_squared:
        raise Refused(f"these sums are larger than {people:,} people can have made them")
    return sums
