"""At most so many of what a person has: those that draw the smallest numbers (a bottom-k sketch).

The k smallest of all numbers are the k smallest of the k smallest so far and the rest, so a pile can be
folded at any time. This module imports numba.
"""

from abc import ABC, abstractmethod
from typing import final

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Cells
from hazemap.compiled import compiled
from hazemap.tables.counting.hashes import number
from hazemap.tables.counting.people import Batch
from hazemap.tables.counting.pile import Pile
from hazemap.tables.counting.tally import Tally

SEEN, LIMIT = 0, 1
ANY = np.uint64(2**64 - 1)


class Sample(ABC):
    """What every sample has in common: of each person, how much was seen and which numbers can still win."""

    valued = True

    def __init__(self, most: int) -> None:
        self._most = most
        self._people = _unseen(0)

    @abstractmethod
    def append(self, batch: Batch, rows: NDArray[np.int64], places: NDArray[np.int64], count: int, pile: Pile) -> int:
        """Put rows on the pile until it is full; how many were read."""

    def fold(self, pile: Pile) -> None:
        """Leave of a pile in order what may still be kept."""
        pile.size = _fold(pile.place, pile.word, pile.value, pile.size, self._people, self._most)

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Forget everybody else."""
        self._people = _enlarged(self._people, len(kept))[: len(kept)][kept]

    @abstractmethod
    def elsewhere(self, rows: NDArray[np.uint32]) -> int:
        """The votes of people who have so many rows (1 or more each), all of them in `NOWHERE`."""

    def count(self, pile: Pile, seeds: NDArray[np.uint64], tally: Tally) -> None:  # noqa: ARG002 - nothing is left to draw
        """Count one vote for everything kept."""
        for piece in pile.pieces():
            tally.count(pile.value[piece])


@final
class RowSample(Sample):
    """At most `most` rows a person. A row draws for its rank among the rows of its person, in their order."""

    def append(self, batch: Batch, rows: NDArray[np.int64], places: NDArray[np.int64], count: int, pile: Pile) -> int:
        """Put rows on the pile until it is full; how many were read."""
        self._people = _enlarged(self._people, count)
        read, pile.size = _append_rows(
            batch.seeds,
            batch.cells,
            rows,
            places,
            self._people,
            self._most,
            pile.place,
            pile.word,
            pile.value,
            pile.size,
        )
        return int(read)

    def elsewhere(self, rows: NDArray[np.uint32]) -> int:
        """The votes of people who have so many rows (1 or more each), all of them in `NOWHERE`."""
        return int(np.minimum(rows.astype(np.int64), self._most).sum())


@final
class CellSample(Sample):
    """At most `most` distinct cells a person. A cell draws for itself, so a second row in it changes nothing."""

    def append(self, batch: Batch, rows: NDArray[np.int64], places: NDArray[np.int64], count: int, pile: Pile) -> int:
        """Put rows on the pile until it is full; how many were read."""
        self._people = _enlarged(self._people, count)
        read, pile.size = _append_cells(
            batch.seeds, batch.cells, rows, places, self._people, pile.place, pile.word, pile.value, pile.size
        )
        return int(read)

    def elsewhere(self, rows: NDArray[np.uint32]) -> int:
        """The votes of people who have so many rows (1 or more each), all of them in `NOWHERE`: one cell."""
        return len(rows)


def _unseen(count: int) -> NDArray[np.uint64]:
    people = np.zeros((count, 2), dtype=np.uint64)
    people[:, LIMIT] = ANY
    return people


def _enlarged(people: NDArray[np.uint64], count: int) -> NDArray[np.uint64]:
    if count <= len(people):
        return people
    return np.concatenate([people, _unseen(max(count, count // 2 * 3) - len(people))])


@compiled
def _append_rows(
    seeds: NDArray[np.uint64],
    cells: Cells,
    rows: NDArray[np.int64],
    places: NDArray[np.int64],
    people: NDArray[np.uint64],
    most: int,
    place: NDArray[np.uint32],
    word: NDArray[np.uint64],
    value: NDArray[np.uint64],
    size: int,
) -> tuple[int, int]:
    for i in range(rows.size):
        if size == place.size:
            return i, size
        who = places[i]
        drawn = number(seeds[rows[i]], people[who, SEEN])
        people[who, SEEN] += np.uint64(1)
        if drawn <= people[who, LIMIT]:
            place[size], word[size], value[size] = who, drawn, cells[rows[i]]
            size += 1
            if most == 1:
                people[who, LIMIT] = drawn
    return rows.size, size


@compiled
def _append_cells(
    seeds: NDArray[np.uint64],
    cells: Cells,
    rows: NDArray[np.int64],
    places: NDArray[np.int64],
    people: NDArray[np.uint64],
    place: NDArray[np.uint32],
    word: NDArray[np.uint64],
    value: NDArray[np.uint64],
    size: int,
) -> tuple[int, int]:
    for i in range(rows.size):
        if size == place.size:
            return i, size
        drawn = number(seeds[rows[i]], cells[rows[i]])
        if drawn <= people[places[i], LIMIT]:
            place[size], word[size], value[size] = places[i], drawn, cells[rows[i]]
            size += 1
    return rows.size, size


@compiled
def _fold(
    place: NDArray[np.uint32],
    word: NDArray[np.uint64],
    value: NDArray[np.uint64],
    size: int,
    people: NDArray[np.uint64],
    most: int,
) -> int:
    """Keep the `most` smallest distinct words of each place, in a pile in order; its new size."""
    kept, held = 0, 0
    for i in range(size):
        same = kept > 0 and place[kept - 1] == place[i]
        if same and word[kept - 1] == word[i]:
            continue
        held = held + 1 if same else 1
        if held <= most:
            place[kept], word[kept], value[kept] = place[i], word[i], value[i]
            kept += 1
            if held == most:
                people[place[i], LIMIT] = word[i]
    return kept
