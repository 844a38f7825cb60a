"""Rows in memory, in plain NumPy: what a device counts with, and the reference that every engine is tested against.

Among them the rows of one cell alone: a value each, and the person it belongs to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Redrawn, Tree
from hazemap.errors import InputError, TableError
from hazemap.machine_code.arrays import Ints
from hazemap.tables.contribution_bounding import (
    LARGEST_TOTAL,
    AtMostCells,
    AtMostRows,
    Bounding,
    OneVote,
    Outside,
    OwnMeans,
    RowIsPerson,
    whole_weights,
)
from hazemap.tables.keyed_hash import KeyWords, SamplingKey, numbers, seeds
from hazemap.tables.person_cell_values import PersonCellValues
from hazemap.tables.sample_grouping import Filling, Grouping, SampleCounts, alone, array_sums
from hazemap.tables.votes import Votes
from hazemap.values.cell_slot_counters import RUN, CellTimeSlots, ObservedCellSlots
from hazemap.values.quantizer import Quantizer
from hazemap.vdaf.compiled_loops import once_compiled

Bounded = tuple[NDArray[np.int64], Cells, NDArray[np.int64]]
"""What a rule leaves of people: whose, in which base cell, how much."""


@dataclass(frozen=True, eq=False)
class MemoryTable:
    """Rows with the code of the person each belongs to; columns `lon`, `lat` and perhaps `weight`, `value`, `time`.

    A code is an id that is a whole number, as it is, or any number that belongs to one person alone. `key`
    chooses the sample of people who have too much (see `draws`).

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> from hazemap.tables.contribution_bounding import AtMostRows
    >>> table = MemoryTable(np.array([7, 7, 8]), {"lon": np.array([2.0, 2, 3]), "lat": np.array([48.0, 48, 49])})
    >>> table.votes(Quadtree.world(depth=1), AtMostRows(1)).weights
    array([2])
    """

    person: NDArray[np.int64]
    columns: Mapping[str, NDArray[Any]]
    key: SamplingKey = 0

    def __post_init__(self) -> None:
        person = np.asarray(self.person)
        if person.ndim != 1 or person.dtype.kind not in "iu":
            raise TableError(
                "codes of people must be a one-dimensional array of whole numbers; "
                f"found {person.dtype}, {person.ndim}-d"
            )
        object.__setattr__(self, "person", person.astype(np.int64, copy=False))
        columns = {name: np.asarray(column) for name, column in self.columns.items()}
        object.__setattr__(self, "columns", columns)
        for name in ("lon", "lat"):
            if name not in columns:
                raise TableError(f"a table needs the columns lon and lat; found {', '.join(sorted(columns)) or 'none'}")
        for name, column in columns.items():
            if column.shape != person.shape:
                raise TableError(f"every column needs one value per row; {name!r} has another length than the people")

    def of(self, person: int) -> "MemoryTable":
        """The table of one person: the same codes and key, so the same draws."""
        own = self.person == person
        return MemoryTable(self.person[own], {name: column[own] for name, column in self.columns.items()}, self.key)

    def votes(self, tree: Tree, bounding: Bounding) -> Votes:
        """The exact votes of everyone in the base cells of a tree."""
        _, cells, weights = self.bounded(tree, bounding)
        return Votes.gathered(cells, weights)

    def pairs(self, places: ObservedCellSlots) -> "PersonCellValues":
        """What each person measured in each place, added up."""
        return PersonCellValues.of_rows(places, self.person, self.columns, self.key)

    def bounded(self, tree: Tree, bounding: Bounding) -> Bounded:
        """What a rule leaves of each person; what becomes of their rows in `NOWHERE` says its `outside`."""
        if isinstance(tree, Redrawn):
            person, cells, weights = self.bounded(tree.base, bounding)
            return person, np.append(tree.leaves, NOWHERE)[tree.positions(cells)], weights
        if isinstance(bounding, OwnMeans):
            return _own_means(self.person, self.columns, measured(tree, bounding), bounding, self.key)
        cells = tree.cell_at(self.columns, tree.depth)
        weights = np.ones(len(cells), dtype=np.int64)
        if isinstance(bounding, OneVote) and "weight" in self.columns:
            weights = whole_weights(self.columns["weight"])
        counts = _counting(self.person, cells, weights > 0, bounding)
        person, cells, weights = self.person[counts], cells[counts], weights[counts]
        words = KeyWords.expanded(self.key, type(bounding).__name__)
        match bounding:
            case RowIsPerson():
                return person, cells, np.ones(len(cells), dtype=np.int64)
            case AtMostRows(most=most):
                return _some_rows(person, cells, words, most)
            case AtMostCells(most=most):
                return _some_cells(person, cells, words, most)
            case OneVote(scale=scale):
                return _one_vote(person, cells, weights, words, scale)


def _counting(
    person: NDArray[np.int64], cells: Cells, weighs: NDArray[np.bool_], bounding: Bounding
) -> NDArray[np.bool_]:
    """The rows that a rule looks at: those in cells, and those in `NOWHERE` as its `outside` says."""
    inside: NDArray[np.bool_] = weighs & (cells != NOWHERE)
    match bounding.outside:
        case Outside.DROP:
            return inside
        case Outside.PEOPLE if not isinstance(bounding, RowIsPerson):
            return inside | (weighs & ~np.isin(person, person[inside]))
        case _:  # a row that is a person of its own has no other rows
            return weighs


def _begins(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a row differs from the row before in one of these columns."""
    changed = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return np.concatenate([[True], changed])[: len(columns[0])]


def _ranks(person: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, 2 … within each run of equal codes."""
    at = np.arange(len(person))
    return at - np.maximum.accumulate(np.where(_begins(person), at, 0))


def _some_rows(person: NDArray[np.int64], cells: Cells, words: KeyWords, most: int) -> Bounded:
    """The rows with the smallest numbers, drawn for the rank of a row among its person's rows."""
    order = np.argsort(person, kind="stable")
    person, cells = person[order], cells[order]
    drawn = numbers(seeds(person.view(np.uint64), words), _ranks(person).astype(np.uint64))
    order = np.lexsort((drawn, person))
    kept = order[_ranks(person[order]) < most]
    return person[kept], cells[kept], np.ones(len(kept), dtype=np.int64)


def _some_cells(person: NDArray[np.int64], cells: Cells, words: KeyWords, most: int) -> Bounded:
    """The distinct cells with the smallest numbers, drawn for the cell."""
    drawn = numbers(seeds(person.view(np.uint64), words), cells)
    order = np.lexsort((drawn, person))  # a person never draws a number twice: equal means the same cell
    order = order[_begins(person[order], drawn[order])]
    person, cells = person[order], cells[order]
    kept = _ranks(person) < most
    return person[kept], cells[kept], np.ones(kept.sum(), dtype=np.int64)


def _one_vote(
    person: NDArray[np.int64], cells: Cells, weights: NDArray[np.int64], words: KeyWords, scale: int
) -> Bounded:
    """Each person's vote, divided over their cells in ascending order. O(rows · log rows), and a loop over people."""
    some = np.flatnonzero(weights > 0)
    order = some[np.lexsort((cells[some], person[some]))]
    if not len(order):
        return np.zeros(0, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.int64)
    person, cells, weights = person[order], cells[order], weights[order]
    begins = np.flatnonzero(_begins(person, cells))
    exact = weights if float(weights.max()) * len(weights) < LARGEST_TOTAL else weights.astype(object)
    person, cells, sums = person[begins], cells[begins], np.add.reduceat(exact, begins).tolist()
    first = np.flatnonzero(_begins(person))
    drawn = numbers(seeds(person[first].view(np.uint64), words), np.zeros(len(first), dtype=np.uint64)).tolist()
    ends = [*first.tolist(), len(person)]
    parts = np.array(
        [
            part
            for (begin, end), number in zip(pairwise(ends), drawn, strict=True)
            for part in (divided(sums[begin:end], scale, number) if end - begin > 1 else (scale,))
        ],
        dtype=np.int64,
    )
    kept = parts > 0
    return person[kept], cells[kept], parts[kept]


def _own_means(
    person: NDArray[np.int64],
    columns: Mapping[str, NDArray[Any]],
    tree: CellTimeSlots,
    rule: OwnMeans,
    key: SamplingKey,
) -> Bounded:
    """Of each person the places with the smallest numbers, drawn for the place; in each the mean of their records."""
    rows = tree.rows(columns)
    person, rows = person[rows != NOWHERE], rows[rows != NOWHERE].astype(np.int64) - 1
    order = np.lexsort((rows, person))
    person, (place, reading) = person[order], np.divmod(rows[order], RUN)
    words = KeyWords.expanded(key, type(rule).__name__)
    first = np.flatnonzero(_begins(person, place))
    whose, where = person[first], place[first]
    drawn = numbers(seeds(whose.view(np.uint64), words), where.astype(np.uint64))
    number = np.diff(np.append(first, len(person)))
    sums = (
        np.add.reduceat(tree.value_encoding.parts[reading], first, axis=0)
        if len(first)
        else np.zeros((0, tree.value_encoding.size))
    )
    order = np.lexsort((drawn, whose))
    kept = order[_ranks(whose[order]) < rule.cells]
    until = np.cumsum(sums[kept], axis=1).astype(object)  # Python integers: exact
    much, many = np.minimum(number[kept], rule.records)[:, None], number[kept][:, None]
    marks = ((2 * much * until + many) // (2 * many)).astype(np.int64)
    counter = 1 + where[kept][:, None] * tree.value_encoding.size + np.arange(tree.value_encoding.size)
    weights, owner = np.diff(marks, axis=1, prepend=0), np.broadcast_to(whose[kept][:, None], counter.shape)
    some = weights > 0
    return owner[some], counter[some].astype(np.uint64), weights[some]


def measured(tree: Tree, rule: OwnMeans) -> CellTimeSlots:
    """The tree, if the rule can divide rows over it."""
    if not isinstance(tree, CellTimeSlots) or tree.value_encoding.scale != rule.scale:
        raise InputError(
            f"the rule {str(rule)!r} divides rows over the counters of a value encoding into {rule.scale} parts: "
            "use it with a tree of such counters (CellTimeSlots) whose value encoding has this scale"
        )
    return tree


def divided(weights: Sequence[int], scale: int, drawn: int) -> list[int]:
    """`scale` micro-votes divided by weight, rounded dependently; `drawn` is a number below 2⁶⁴.

    >>> divided([1, 1, 2], 10, 0), divided([1, 1, 2], 10, 2**63)
    ([2, 3, 5], [3, 2, 5])
    """
    until = [min(total, LARGEST_TOTAL) for total in accumulate(weights)]
    start = drawn * until[-1] >> 64
    marks = [(scale * total + start) // until[-1] for total in until]
    return [mark - before for before, mark in pairwise([0, *marks])]


_SPARSE = 8  # codes of people are looked up in a list if their range is at most this many times the rows


@dataclass(frozen=True, eq=False)
class SingleCellSamples:
    """Values (speeds of one hexagon and hour) with the code of the person each is of; a row each, in the table's order.

    Methods of one cell (`hazemap.algorithms.published.user_level_means`) ask it for sums and choices under the VALUES
    ONLY model; `votes` answers whatever counts people in intervals of the value (`values.interval_tree`) under the
    usual one.

    >>> table = SingleCellSamples(np.array([7, 8, 7]), np.array([20.0, 31.0, 22.0]))
    >>> table.contributions.counts, table.means(Quantizer(0, 65, steps=65))
    (array([2, 1]), array([21, 31]))
    """

    person: Ints
    value: NDArray[np.float64]
    key: SamplingKey = 0

    def __post_init__(self) -> None:
        person, value = np.asarray(self.person), np.asarray(self.value)
        if person.ndim != 1 or person.dtype.kind not in "iu" or value.shape != person.shape or not len(person):
            raise TableError("samples are one row or more: a whole number for the person, and a value")
        if value.dtype.kind not in "iuf" or np.isnan(value).any():
            raise TableError("values are numbers; leave out the rows in which they are not (NaN), and say so")
        object.__setattr__(self, "person", person.astype(np.int64, copy=False))
        object.__setattr__(self, "value", value)

    @cached_property
    def people(self) -> Ints:
        """The place of each row's person among all people, by ascending code: O(rows), or O(n log n) for wild codes."""
        low, high = int(self.person.min()), int(self.person.max())
        if high - low >= _SPARSE * len(self.person) + (1 << 16):
            return np.unique(self.person, return_inverse=True)[1].astype(np.int64, copy=False)
        places: Ints = once_compiled(_places)(self.person, low, high)
        return places

    @cached_property
    def contributions(self) -> SampleCounts:
        """How many rows each person has."""
        return SampleCounts(np.bincount(self.people))

    def array_means(self, grouping: Grouping, quantizer: Quantizer) -> Ints:
        """The mean of each array, rounded to whole readings: O(rows)."""
        arrays = grouping.arrays(self.contributions)
        if grouping.filling is Filling.MEANS:
            means, sums = self.means(quantizer), np.zeros(arrays.number, dtype=np.int64)
            np.add.at(sums, arrays.first, means * arrays.split)
            beyond = np.flatnonzero(arrays.kept > arrays.split)
            np.add.at(sums, arrays.first[beyond] + 1, (means * (arrays.kept - arrays.split))[beyond])
            return _rounded(sums, arrays.filled)
        return _rounded(array_sums(arrays, self.people, quantizer.read(self.value)), arrays.filled)

    def means(self, quantizer: Quantizer) -> Ints:
        """The mean of all values of each person, rounded to whole readings: O(rows)."""
        counts = self.contributions
        sums = array_sums(alone(counts, counts.most), self.people, quantizer.read(self.value))
        return _rounded(sums, counts.counts)

    def sum_of_first(self, most: int, quantizer: Quantizer) -> int:
        """The sum of the readings of the first `most` rows of each person: O(rows)."""
        return int(array_sums(alone(self.contributions, most), self.people, quantizer.read(self.value)).sum())

    def votes(self, tree: Tree, bounding: Bounding) -> Votes:
        """The votes of people in intervals of the value: a tree of places knows none of these rows."""
        nowhere = np.full(len(self.person), np.nan)
        columns = {"lon": nowhere, "lat": nowhere, "value": self.value}
        return MemoryTable(self.person, columns, self.key).votes(tree, bounding)


def _rounded(sums: Ints, counts: Ints) -> Ints:
    """Quotients rounded to whole numbers, halves up: of sums of `counts` readings 0 … steps, again 0 … steps."""
    quotients: Ints = (2 * sums + counts) // (2 * counts)
    return quotients


def _places(person, low, high):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    place, found = np.zeros(high - low + 1, dtype=np.int32), np.empty(len(person), dtype=np.int64)
    for row in range(len(person)):
        place[person[row] - low] = 1
    before = 0
    for code in range(len(place)):
        before += place[code]
        place[code] = before - 1
    for row in range(len(person)):
        found[row] = place[person[row] - low]
    return found
