"""Slots as people name them, and as the rows of a table of all slots together and of each."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.machine_code.arrays import Ints
from hazemap.releases.base_release import Rows

ALL = "all"
"""What the column of slots says of a row of the total."""

Table = dict[str, NDArray[Any]]


def numbered(names: tuple[str, ...], slots: str | int | Iterable[str | int]) -> list[int]:
    """Slots by names or numbers; a text may list several, and ranges of them (`8-10,17:00`), over midnight too.

    `InputError` for what is no slot.

    >>> numbered(("night", "day", "evening"), "evening-0"), numbered(("night", "day"), ["day", 0])
    ([2, 0], [1, 0])
    """
    if isinstance(slots, str):
        words = [slots] if slots in names else slots.split(",")
        return list(dict.fromkeys(number for word in words for number in _range(names, word.strip())))
    some = [slots] if isinstance(slots, int) else list(slots)
    if not some:
        raise InputError(f"name some of the {len(names)} slots, by names or by numbers from 0 on")
    return list(dict.fromkeys(_one(names, each) for each in some))


def heading(names: tuple[str, ...], numbers: Sequence[int]) -> str:
    """The names of some slots above a picture: a run of more than three by its ends.

    >>> heading(("a", "b", "c", "d", "e"), [3, 4, 0, 1]), heading(("a", "b"), [1, 0])
    ('d to b', 'b, a')
    """
    some = [names[at] for at in numbers]
    run = len(some) > 3 and all(after == (at + 1) % len(names) for at, after in pairwise(numbers))
    return f"{some[0]} to {some[-1]}" if run else ", ".join(some)


def with_slots(columns: Table, slots: NDArray[Any]) -> Table:
    """The columns with that of slots after the names."""
    (name, names), *rest = columns.items()
    return {name: names, "slot": slots, **dict(rest)}


def of_total(columns: Table) -> Table:
    """The rows of all slots together."""
    return with_slots(columns, np.full(len(next(iter(columns.values()))), ALL, dtype=object))


def in_blocks(cells: Ints, slots: int, most: int, make: Callable[[Ints], Rows]) -> Iterator[Rows]:
    """What `make` says of so many cells at a time that they have about `most` rows in all slots; of none first."""
    each = max(most // slots, 1)
    for block in (cells[:0], *(cells[start : start + each] for start in range(0, len(cells), each))):
        yield make(block)


def total_first(total: Iterable[Rows], slots: Iterator[Rows]) -> Iterator[Rows]:
    """The rows of the total, as a slot `all`, then those of slots without their empty first block."""
    for block in total:
        yield Rows(of_total(block.columns), block.shapes, block.times)
    next(slots)
    yield from slots


def _range(names: tuple[str, ...], word: str) -> list[int]:
    """A slot, or those from one to another; names may have dashes of their own."""
    ends = [(word[:at], word[at + 1 :]) for at, sign in enumerate(word) if sign == "-"]
    both = [(first.strip(), last.strip()) for first, last in ends]
    known = next(((first, last) for first, last in both if _known(names, first) and _known(names, last)), None)
    if word in names or known is None:
        return [_one(names, word)]
    begin, end, number = _one(names, known[0]), _one(names, known[1]), len(names)
    return [at % number for at in range(begin, end + 1 if begin <= end else end + number + 1)]


def _known(names: tuple[str, ...], word: str) -> bool:
    return _found(names, word) is not None


def _found(names: tuple[str, ...], word: str) -> int | None:
    """The slot of this name or number; of a name the first three letters will do, in any case (`mon`)."""
    if word in names:
        return names.index(word)
    if word.isascii() and word.isdecimal() and len(word) < 9:
        return int(word) if int(word) < len(names) else None
    short = word.casefold() if len(word) > 2 and word.isalpha() else f"0{word}"  # 8:00 is 08:00
    some = [at for at, name in enumerate(names) if name.casefold().startswith(short)]
    return some[0] if len(some) == 1 and (word.isalpha() or len(short) == len(names[some[0]])) else None


def _one(names: tuple[str, ...], word: str | int) -> int:
    name = str(word).strip()
    found = _found(names, name)
    if found is None:
        some = ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
        raise InputError(
            f"this release has no slot {name!r}; it has {len(names)}: {some}, or their numbers from 0 on, "
            f"and ranges such as {names[0]}-{names[-1]}"
        )
    return found
