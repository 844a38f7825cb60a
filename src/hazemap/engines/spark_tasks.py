"""What hazemap does on Spark's executors: rows become messages, messages votes, and votes sums.

Each is a function of `DataFrame.mapInArrow`, pickled with a `SparkTask`: generators over Arrow batches that give more.
What it gives is all that it does, so a task that fails and is tried again changes nothing. An error in words is a
message too: Spark would try it again, and quote it among rows. Whatever a rule is, its own loop of
`engines.streaming` applies it, under the same keyed hash as anywhere else.
"""

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Protocol, Self

import numpy as np

from hazemap import __version__
from hazemap.cells import Tree
from hazemap.engines.duckdb import EngineTable, ReadReport, at_work
from hazemap.engines.duckdb_connection import DuckDBConnection
from hazemap.engines.person_ids import TextIds
from hazemap.engines.row_query import TableLayout
from hazemap.engines.spark_messages import NOTES, Notes, RowForm, RowSender, received, sent, votes_read, votes_sent
from hazemap.engines.streaming.cell_counter import SparseCellCounter, counters_for
from hazemap.engines.streaming.person_groups import PersonGroup
from hazemap.engines.streaming.table_fingerprint import Fingerprinting
from hazemap.engines.table_source import Feed
from hazemap.errors import HazemapError, TableError
from hazemap.tables.contribution_bounding import Bounding, OneVote, Outside, OwnMeans, RowIsPerson
from hazemap.tables.keyed_hash import KeyWords, SamplingKey
from hazemap.tables.votes import Votes

Batches = Iterator[Any]
FOR_DUCKDB = 1 << 28
"""Memory with which DuckDB reads what Spark hands over: it keeps nothing."""


class ArrivingFeed(Feed, Protocol):
    """The feed of a task: rows that Spark hands to it."""

    def of(self, batches: Batches) -> Self:
        """The same, of these Arrow batches."""


@dataclass(frozen=True)
class SparkTask:
    """All that a task must know: the roles of columns, tree, rule, keys, memory for people, and number of slices."""

    layout: TableLayout
    tree: Tree
    bounding: Bounding
    key: SamplingKey
    watched: bytes | None
    limit: int
    slices: int
    version: str = __version__

    def run(self, step: "Callable[[SparkTask, Batches], Batches]") -> Callable[[Batches], Batches]:
        """A step as `mapInArrow` takes it."""

        def work(batches: Batches) -> Batches:
            return report_failures(self, step, batches)

        return work

    @property
    def weighted(self) -> bool:
        """Whether rows have weights of their own."""
        return isinstance(self.bounding, OneVote) and any(part.weight for part in self.layout.parts)

    def table(self, batches: Batches) -> "PartTable":
        """The rows of one part as a table."""
        parts = tuple(replace(part, feed=part.feed.of(batches)) for part in self.layout.parts)  # type: ignore[union-attr]
        connection = DuckDBConnection(FOR_DUCKDB, threads=1)
        return PartTable(connection, replace(self.layout, parts=parts), self.key, self.limit, 1, watch=self.watched)


class PartTable(EngineTable):
    """The rows of one task, of which each can be had once."""

    def __init__(self, *given: Any, watch: bytes | None) -> None:
        super().__init__(*given)
        self.watch(watch)

    def counted(self, task: SparkTask) -> Votes:
        """The votes of rows that are people of their own."""
        return self._read_rows(task.tree, task.bounding)

    def coded(self, task: SparkTask) -> Iterator[Any]:
        """Row batches (`streaming.person_index.RowBatch`), in the order of the rows."""
        ids = self._layout.need_ids()
        words = KeyWords.expanded(self._key, type(task.bounding).__name__)
        with closing(self._batches(task.bounding)) as batches:
            for columns in batches:
                batch = self._coded(columns, task.tree, task.bounding, ids, words, [])
                report, nowhere = self._report, len(batch.cells) - int(np.count_nonzero(batch.cells))
                self._report = ReadReport(
                    report.rows + len(batch.cells), report.without_person + batch.strangers, report.nowhere + nowhere
                )
                yield batch

    def notes(self) -> bytes:
        """What became of the rows, as a message."""
        report, sample = self._report, () if self._watch is None else (self._watch.state(),)
        return Notes(report.rows, report.without_person, report.nowhere, sample=sample).written()


def report_failures(task: SparkTask, step: Callable[[SparkTask, Batches], Batches], batches: Batches) -> Batches:
    """The step's batches; an error in words as the last message, when all that was to be read is read."""
    try:
        if task.version != __version__:
            raise TableError(
                f"executors of Spark have hazemap {__version__}, and this is {task.version}: install the same"
            )
        yield from step(task, batches)
    except HazemapError as error:
        yield sent([(NOTES, Notes(failed=(type(error).__name__, str(error))).written())])
    for _ in batches:
        pass
    if "pyspark.worker" in sys.modules:
        settle()


@cache
def settle() -> None:
    """Set aside, once, what a worker has loaded: Spark has Python look for garbage in all of it after every task.

    That was 0.1 s each time. What becomes garbage later is found as before.
    """
    gc.collect()
    gc.freeze()


def count_rows(task: SparkTask, batches: Batches) -> Batches:
    """Rows that are people of their own, counted: O(cells) memory and output for each task."""
    table = task.table(batches)
    yield from votes_sent(table.counted(task), task.slices)
    yield sent([(NOTES, table.notes())])


def send_rows(task: SparkTask, batches: Batches) -> Batches:
    """Rows that count, to the slices of their people: 12 bytes a row, 16 where there are more than 2³² cells.

    Weights are 8 more, and ids that are texts 4 more than their letters.
    """
    sender = RowSender(form_of(task), task.slices, number_of_part())
    table = task.table(batches)
    for batch in table.coded(task):
        yield from sender.take(batch)
    yield from sender.rest()
    yield sent([(NOTES, table.notes())])


def number_of_part() -> int:
    """The number of the part of the table that this task has: parts are in the order of the rows."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        raise TypeError("rows are sent by tasks of Spark")
    return int(context.partitionId())


def bound_people(task: SparkTask, batches: Batches) -> Batches:
    """Of each person what the rule leaves, added up: O(people of a slice + cells) memory, whoever has how many rows.

    Where the people of a slice do not fit, the notes say so, and the votes are not all.
    """
    form, ids = form_of(task), task.layout.need_ids()
    (tally,), rule = counters_for(task.tree, 1), partial(at_work, task.bounding, task.tree, task.weighted)
    notes, slices, group, full = list[bytes](), list[int](), None, False
    for where, messages in received(batches):
        if where == NOTES:  # they come first
            notes += messages
            continue
        if group is None or where != slices[-1]:
            full = group is not None and not finished(group)
            if full:
                break
            slices.append(where)
            group = PersonGroup(0, 1, task.limit, ids.places, rule, tally)
        group.read(form.read(messages))
    full = full or (group is not None and not finished(group))
    if slices and not full:
        yield from votes_sent(tally.votes(), task.slices)
    if notes or slices:
        whole = together(task, notes)
        yield sent([(NOTES, replace(whole, full=whole.full or full, slices=tuple(slices)).written())])


def finished(group: Any) -> bool:
    """End the people's only pass; whether all of them were in it."""
    group.finish()
    return not group.busy


def add_votes(task: SparkTask, batches: Batches) -> Batches:
    """Votes of a slice of all cells, added up: O(cells of the slice)."""
    tally, notes, some = SparseCellCounter(), list[bytes](), False
    for where, messages in received(batches):
        if where == NOTES:
            notes += messages
        else:
            found, some = votes_read(messages), True
            tally.add(found.cells, found.weights)
    if some:
        yield from votes_sent(tally.votes(), 1)
    if notes:
        yield sent([(NOTES, together(task, notes).written())])


def together(task: SparkTask, messages: list[bytes]) -> Any:
    """The notes of several tasks as those of one, with at most one sample."""
    notes = Notes.read(messages)
    if task.watched is not None and notes.sample:
        whole = Fingerprinting(task.watched, threads=1)
        for sample in notes.sample:
            whole.add_state(sample)
        return replace(notes, sample=(whole.state(),))
    return notes


def form_of(task: SparkTask) -> Any:
    """How rows are written on their way to the slices (`spark_messages.RowForm`)."""
    return RowForm.of(
        task.tree,
        numbered=not isinstance(task.bounding, OwnMeans | RowIsPerson),
        weighted=task.weighted,
        named=isinstance(task.layout.need_ids(), TextIds),
        apart=task.bounding.outside is Outside.PEOPLE,
    )
