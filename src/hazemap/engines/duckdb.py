"""Rows in files or frames, of any number: DuckDB streams them, compiled loops count them.

Rows come in batches, in the order of the source. A batch gets its base cells from the tree and its seeds
from the ids, on whatever thread is free; then each `PersonGroup` takes in the rows of its own people, batch after
batch. So memory is O(cells + people) or the limit, never O(rows), and the votes are exactly `MemoryTable`'s.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from queue import SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from hazemap.cells import NOWHERE, Cells, Redrawn, Tree
from hazemap.engines.arrow_arrays import floats
from hazemap.engines.duckdb_connection import DuckDBConnection
from hazemap.engines.memory import measured
from hazemap.engines.person_ids import Coded, IdColumnReader, Ids
from hazemap.engines.row_query import TableLayout
from hazemap.engines.streaming.cell_counter import counters_for, gathered
from hazemap.engines.streaming.one_vote_per_person import EvenVotePerPerson, OneVotePerPerson
from hazemap.engines.streaming.per_person_bottom_k import CellSample, PersonCellMeans, RowSample
from hazemap.engines.streaming.person_cell_sums import PersonCellSums
from hazemap.engines.streaming.person_groups import PersonGroup, wanted
from hazemap.engines.streaming.person_index import RowBatch
from hazemap.engines.streaming.row_buffer import PackedRowBuffer
from hazemap.engines.streaming.table_fingerprint import Fingerprinting
from hazemap.machine_code.parallel_map import in_order
from hazemap.tables.contribution_bounding import (
    AtMostCells,
    AtMostRows,
    Bounding,
    OneVote,
    Outside,
    OwnMeans,
    RowIsPerson,
    whole_weights,
)
from hazemap.tables.keyed_hash import KeyWords, SamplingKey
from hazemap.tables.person_cell_values import DRAWN_AS
from hazemap.tables.table_fingerprint import Fingerprint
from hazemap.tables.votes import Votes
from hazemap.values.cell_slot_counters import LocatedRows, ObservedCellSlots

if TYPE_CHECKING:
    from hazemap.engines.streaming.cell_counter import CellCounter
    from hazemap.engines.streaming.person_groups import BoundingStep
    from hazemap.tables.person_cell_values import PersonCellValues

Progress = Callable[[float], None]
"""Called repeatedly with the part of a read that is done, where the number of rows is known."""


@dataclass(frozen=True)
class ReadReport:
    """What became of the rows of one read: exact numbers, so for the curator's eyes only.

    None of them may be published, stored in a release or shown to its recipients.
    """

    rows: int = 0
    without_person: int = 0
    nowhere: int = 0
    passes: int = 0


class EngineTable:
    """Rows of people in files or frames: `open_table` makes one. Only a trust model may hold it.

    `memory_limit` bounds, in bytes, what is kept of people; DuckDB may use as much again.

    >>> import pyarrow
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> from hazemap.tables.contribution_bounding import AtMostRows
    >>> from hazemap.readers.open_table import open_table
    >>> table = open_table(pyarrow.table({"user": [7, 7, 8], "lon": [2.0, 2.0, 3.0], "lat": [48.0, 48.0, 49.0]}))
    >>> table.votes(Quadtree.world(depth=1), AtMostRows(1)).weights
    array([2])
    """

    def __init__(
        self,
        connection: DuckDBConnection,
        layout: TableLayout,
        key: SamplingKey,
        memory_limit: int,
        threads: int,
        progress: Progress | None = None,
    ) -> None:
        self._connection, self._layout, self._key = connection, layout, key
        self._memory_limit, self._threads, self._progress = memory_limit, threads, progress
        self._known: dict[tuple[Tree, Bounding], Votes] = {}
        self._report, self._told = ReadReport(), 0.0
        self._watch: Fingerprinting | None = None
        self._fingerprint: Fingerprint | None = None
        self._lock = Lock()  # one stream at a time on the connection

    def __repr__(self) -> str:
        return f"EngineTable({self._layout.name!r})"

    @property
    def report(self) -> ReadReport:
        """What became of the rows at the last read, for the curator's eyes only."""
        return self._report

    def watch(self, key: bytes | None) -> None:
        """Have a fingerprint (`tables.table_fingerprint`) taken while rows are read for the first time, if there is a
        key.

        It costs 1 to 13 ns a row, and takes O(1) memory.
        """
        self._watch = None if key is None else Fingerprinting(key, self._threads)

    @property
    def fingerprint(self) -> Fingerprint | None:
        """The fingerprint of the rows that were read, if one was asked for; for the curator's eyes only."""
        return self._fingerprint

    def _seen(self) -> None:
        """All rows have been read, of the files that were opened: their fingerprint stands."""
        if self._layout.check is not None:
            self._layout.check()
        if self._watch is not None:
            self._fingerprint, self._watch = self._watch.finished(), None

    @property
    def id_column(self) -> IdColumnReader | None:
        """The column that tells people apart, and how it is read; None where no column does."""
        return self._layout.id_column

    @property
    def zoneless(self) -> str | None:
        """The column of times, if it may hold some that do not say their offset; such times are read as UTC."""
        return self._layout.zoneless

    def need_id_column(self) -> IdColumnReader:
        """The column that tells people apart; `TableError`, with why there is none, where there is none."""
        self._layout.need_ids()
        assert self._layout.id_column is not None  # noqa: S101 - found together with the ids
        return self._layout.id_column

    def votes(self, tree: Tree, bounding: Bounding) -> Votes:
        """The exact votes of everyone in the base cells of a tree; the rows are read once for each rule.

        Not again for a tree that is drawn over the base cells of one that was counted.
        """
        if isinstance(tree, Redrawn):
            return self.votes(tree.base, bounding).redrawn(tree)
        with self._lock:
            if (tree, bounding) not in self._known:
                self._report, self._told = ReadReport(), 0.0
                read = self._read_rows if isinstance(bounding, RowIsPerson) else self._read_people
                votes = read(tree, bounding)
                self._seen()
                self._tell(self._layout.rows or 0, lambda _: 1.0)  # a filter leaves fewer rows than there are
                somewhere = votes.cells != NOWHERE
                if not bounding.outside.asked and not somewhere.all():
                    votes = Votes(votes.cells[somewhere], votes.weights[somewhere])
                self._known[tree, bounding] = votes
            return self._known[tree, bounding]

    def pairs(self, places: ObservedCellSlots) -> "PersonCellValues":
        """What each person measured in each place, added up, from one pass: O(pairs) memory within the limit.

        For those who hold values only to be private: see `tables.person_cell_values`. Rows are taken in by one worker,
        and coded by all.
        """
        ids, rule, words = self._layout.need_ids(), OwnMeans(1), KeyWords.expanded(self._key, DRAWN_AS)
        pairing, rows = PersonCellSums(places, ids.places(), self._memory_limit), 0
        box, width = self._layout.masked(rule), 1 + self._layout.width

        def code(arrived: list[Any]) -> tuple["RowBatch", LocatedRows]:
            columns = self._layout.arrived(arrived, 1)
            seeds, known, texts = coded = ids.coded(columns[0], words)
            found = self._layout.columns(columns[1:width])
            if self._watch is not None:
                self._watch.people(columns[0], coded, words, found["lon"], found["lat"])
            placed = places.rows(found)
            counts = known & (placed.cells != NOWHERE)
            if box is not None:
                counts &= box.holds(found["lon"], found["lat"])
            strangers = len(known) - int(known.sum())
            return RowBatch(seeds, placed.cells, np.zeros(0, np.int64), counts, texts, strangers), placed

        with self._lock, ThreadPoolExecutor(self._threads) as threads, closing(self._batches(rule)) as batches:
            self._report, self._told = ReadReport(), 0.0
            for batch, placed in in_order(code, batches, threads, 2 * self._threads):
                pairing.take(batch, placed.slots, placed.readings)
                rows += len(batch.cells)
                nowhere = self._report.nowhere + int((placed.cells == NOWHERE).sum())
                self._report = ReadReport(rows, self._report.without_person + batch.strangers, nowhere, 1)
                self._tell(rows, lambda part: part)
            self._seen()
        return pairing.finished()

    def _read_rows(self, tree: Tree, bounding: Bounding) -> Votes:
        """Every row counts, so no batch waits for another."""
        tallies = counters_for(tree, self._threads)
        free: SimpleQueue[CellCounter] = SimpleQueue()
        for tally in tallies:
            free.put(tally)

        def count(columns: list[Any]) -> tuple[int, int]:
            cells = self._cells(self._layout.arrived(columns, 0), tree, bounding)
            tally = free.get()
            try:
                tally.count(cells)
            finally:
                free.put(tally)
            return len(cells), len(cells) - int(np.count_nonzero(cells))

        with ThreadPoolExecutor(self._threads) as threads, closing(self._batches(bounding)) as batches:
            for rows, nowhere in in_order(count, batches, threads, 2 * self._threads):
                self._report = ReadReport(self._report.rows + rows, 0, self._report.nowhere + nowhere)
                self._tell(self._report.rows, lambda part: part)
        self._report = replace(self._report, passes=1)
        return gathered(tallies)

    def _read_people(self, tree: Tree, bounding: Bounding) -> Votes:
        """Every group takes in its own people's rows, in as many passes as the fullest group needs."""
        ids = self._layout.need_ids()
        words = KeyWords.expanded(self._key, type(bounding).__name__)
        limit, weighted = self._memory_limit // self._threads, any(part.weight for part in self._layout.parts)
        groups = [
            PersonGroup(i, self._threads, limit, ids.places, partial(at_work, bounding, tree, weighted), tally)
            for i, tally in enumerate(counters_for(tree, self._threads))
        ]

        code = partial(self._coded, tree=tree, bounding=bounding, ids=ids, words=words, groups=groups)
        with ExitStack() as stack:
            threads = stack.enter_context(ThreadPoolExecutor(self._threads))
            workers = [(stack.enter_context(ThreadPoolExecutor(1)), group) for group in groups]
            while any(group.busy for group in groups):
                with closing(self._batches(bounding)) as batches:
                    self._show(in_order(code, batches, threads, 2 * self._threads), workers)
                _finish([worker.submit(group.finish) for worker, group in workers])
                self._report = replace(self._report, passes=self._report.passes + 1)
        return gathered([group.tally for group in groups])

    def _show(self, batches: Iterator["RowBatch"], workers: list[tuple[ThreadPoolExecutor, "PersonGroup"]]) -> None:
        """Show all rows to all groups, once."""
        rows, report = 0, self._report
        waiting: deque[list[Future[None]]] = deque()
        for batch in batches:
            waiting.append([worker.submit(group.read, batch) for worker, group in workers])
            if len(waiting) > 2:
                _finish(waiting.popleft())
            rows += len(batch.cells)
            if not report.passes:
                strangers = self._report.without_person + batch.strangers
                nowhere = self._report.nowhere + len(batch.cells) - int(np.count_nonzero(batch.cells))
                self._report = ReadReport(rows, strangers, nowhere)
            self._tell(rows, lambda part: sum(group.progress(part) for _, group in workers) / len(workers))
        while waiting:
            _finish(waiting.popleft())

    def _tell(self, rows: int, progress: Callable[[float], float]) -> None:
        if self._progress is not None and self._layout.rows:
            self._told = max(self._told, min(1.0, progress(rows / self._layout.rows)))  # it never falls back
            self._progress(self._told)

    def _batches(self, bounding: Bounding) -> Generator[list[Any], None, None]:
        """The columns that a rule needs, batch by batch, as Arrow arrays."""
        free = isinstance(bounding, RowIsPerson)  # all others draw a row by its rank among its person's rows
        stream = self._connection.stream_in_any_order if free else self._connection.stream
        for query in self._layout.queries(bounding):
            with closing(stream(query, self._layout.name)) as batches:
                for batch in batches:
                    yield batch.columns

    def _cells(
        self,
        places: list[Any],
        tree: Tree,
        bounding: Bounding,
        of: "tuple[Any, Coded, KeyWords] | None" = None,
    ) -> Cells:
        """The cell of each row. Rows outside the box are not looked for: that they are `NOWHERE` is known already."""
        columns = self._layout.columns(places)
        if self._watch is not None and not self._report.passes:
            if isinstance(bounding, RowIsPerson):
                self._watch.rows(columns["lon"], columns["lat"])
            elif of is not None:
                self._watch.people(*of, columns["lon"], columns["lat"])
        box = self._layout.masked(bounding)
        if box is None:
            return _located(columns, tree, bounding)
        inside = box.holds(columns["lon"], columns["lat"])
        cells = np.full(len(inside), NOWHERE)
        cells[inside] = _located({name: column[inside] for name, column in columns.items()}, tree, bounding)
        return cells

    def _coded(
        self, columns: list[Any], tree: Tree, bounding: Bounding, ids: Ids, words: KeyWords, groups: list["PersonGroup"]
    ) -> "RowBatch":
        """Rows ready for the groups. Only the first pass looks at everybody's."""
        import pyarrow

        columns, width = self._layout.arrived(columns, 1), 1 + self._layout.width
        points, weight = columns[1:width], columns[width:]
        seeds, known, texts = coded = ids.coded(columns[0], words)
        counts = known
        if self._report.passes:
            counts = known & wanted(seeds, groups)
            points = [column.filter(pyarrow.array(counts)) for column in points]
            cells = np.full(len(seeds), NOWHERE)
            cells[counts] = self._cells(points, tree, bounding)
        else:
            cells = self._cells(points, tree, bounding, (columns[0], coded, words))
        weights = np.ones(len(cells) if isinstance(bounding, OneVote) else 0, dtype=np.int64)
        if weight:
            weights = whole_weights(floats(weight[0]))
            counts = counts & (weights > 0)
        outside = None
        if bounding.outside is not Outside.COUNT:
            inside = counts & (cells != NOWHERE)
            if bounding.outside is Outside.PEOPLE:
                outside = counts & ~inside
            counts = inside
        return RowBatch(seeds, cells, weights, counts, texts, len(known) - int(known.sum()), outside)


def _located(columns: dict[str, Any], tree: Tree, bounding: Bounding) -> Cells:
    if isinstance(bounding, OwnMeans):
        return measured(tree, bounding).rows(columns)
    return tree.cell_at(columns, tree.depth)


def at_work(bounding: Bounding, tree: Tree, weighted: bool) -> "BoundingStep[Any]":
    """The compiled form of a rule about people, of whose rows each has a weight of its own or all have the same."""
    match bounding:
        case AtMostRows(most=most):
            return RowSample(most)
        case AtMostCells(most=most):
            return CellSample(most)
        case OneVote(scale=scale) if not weighted and PackedRowBuffer.suits(tree):
            return EvenVotePerPerson(scale, tree)
        case OneVote(scale=scale):
            return OneVotePerPerson(scale)
        case OwnMeans():
            return PersonCellMeans(bounding, measured(tree, bounding).value_encoding.parts)
        case RowIsPerson():
            raise TypeError("where each row is a person, nothing is kept of anybody")


def _finish(futures: list[Future[None]]) -> None:
    """Wait for all, then raise the first error."""
    wait(futures)
    for future in futures:
        future.result()
