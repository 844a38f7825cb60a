"""Tables on Spark, classic or Connect: executors bound what people contribute, and the driver gets votes of cells.

Rows go to the slice of their person (a shuffle of 12 bytes a row for most trees), in which our own loops apply the rule
(`spark_tasks`); then votes go to the slice of their cell and are added up. So the driver's memory and traffic are
O(cells), an executor's O(people of a slice + cells), and the votes are exactly `MemoryTable`'s, with rows in the order
that Spark gives them (docs/decisions/0018-spark-bounds-on-its-executors.md).
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from hazemap import __version__
from hazemap.cells import Tree
from hazemap.engines import spark_tasks as tasks
from hazemap.engines.duckdb import EngineTable, ReadReport
from hazemap.engines.spark_messages import NOTES, SCHEMA, received, votes_read
from hazemap.engines.table_source import Feed
from hazemap.errors import FileError, HazemapError, TableError
from hazemap.tables.contribution_bounding import Bounding
from hazemap.tables.votes import Votes

SLICES = 256
"""Slices of people at first, unless Spark is told to shuffle into more than half as many partitions."""

MORE = 8
"""How many times as many slices there are, where the people of one did not fit."""


@runtime_checkable
class ClusterFeed(Feed, Protocol):
    """Rows on a cluster."""

    def frame(self, columns: tuple[str, ...]) -> Any:
        """These columns as a DataFrame of Spark."""

    def arriving(self) -> "tasks.ArrivingFeed":
        """The feed of those tasks that get its rows."""


class SparkTable(EngineTable):
    """Rows in a DataFrame of Spark: `open_table` makes one. Only a trust model may hold it.

    `memory_limit` bounds what one task keeps of people. Sums for each person and place (`pairs`) are made here, by
    streaming the rows.
    """

    def __repr__(self) -> str:
        return f"SparkTable({self._layout.name!r})"

    def _read_rows(self, tree: Tree, bounding: Bounding) -> Votes:
        """Every row counts: no row is shuffled."""
        task = self._task(tree, bounding, SLICES)
        with explained(self._layout.name):
            counted = self._rows(bounding).mapInArrow(task.run(tasks.count_rows), _schema())
            return self._gathered(task, counted)

    def _read_people(self, tree: Tree, bounding: Bounding) -> Votes:
        """Every slice bounds its own people; where those of one do not fit its memory, again with more slices."""
        from hazemap.engines.spark_messages import MOST_SLICES

        with explained(self._layout.name):
            rows = self._rows(bounding)
            shuffled = str(rows.sparkSession.conf.get("spark.sql.shuffle.partitions"))  # some clusters say "auto"
            slices = min(max(SLICES, 2 * int(shuffled) if shuffled.isdecimal() else 0), MOST_SLICES)
            while True:
                task = self._task(tree, bounding, slices)
                if slices == MOST_SLICES:  # whoever has too much alone has to fit nevertheless
                    task = replace(task, limit=1 << 62)
                sent = rows.mapInArrow(task.run(tasks.send_rows), _schema())
                sliced = sent.repartition("slice").sortWithinPartitions("slice", "part", "seq")
                try:
                    return self._gathered(task, sliced.mapInArrow(task.run(tasks.bound_people), _schema()))
                except PeopleDidNotFit:
                    slices = min(MORE * slices, MOST_SLICES)

    def _rows(self, bounding: Bounding) -> Any:
        (query,) = self._layout.queries(bounding)
        if not isinstance(query.feed, ClusterFeed):
            raise TypeError("a table on Spark is fed by Spark")
        return query.feed.frame(query.columns)

    def _task(self, tree: Tree, bounding: Bounding, slices: int) -> tasks.SparkTask:
        parts = tuple(
            replace(part, feed=part.feed.arriving(), near=None)
            for part in self._layout.parts
            if isinstance(part.feed, ClusterFeed)
        )
        layout = replace(self._layout, parts=parts)
        watched = None if self._watch is None else self._watch.key
        return tasks.SparkTask(layout, tree, bounding, self._key, watched, self._memory_limit, slices)

    def _gathered(self, task: tasks.SparkTask, votes: Any) -> Votes:
        """The votes of all slices. `PeopleDidNotFit` where they are not of everybody."""
        added = votes.repartition("slice").mapInArrow(task.run(tasks.add_votes), _schema())
        notes, found = list[bytes](), list[Votes]()
        for where, messages in received(added.toArrow().to_batches()):
            if where == NOTES:
                notes += messages
            else:
                found.append(votes_read(messages))
        whole = tasks.together(task, notes)
        whole.raise_failure()
        if len(set(whole.slices)) != len(whole.slices):
            raise TableError("Spark gave the rows of some people to two tasks, which bound them apart: nothing counts")
        passes = self._report.passes + 1
        self._report = ReadReport(whole.rows, whole.without_person, whole.nowhere, passes)
        if whole.full:
            raise PeopleDidNotFit
        if self._watch is not None:
            for sample in whole.sample:
                self._watch.add_state(sample)
        return _all(found)


class PeopleDidNotFit(Exception):
    """The people of some slice need more memory than a task may have."""


def _all(found: list[Votes]) -> Votes:
    cells = np.concatenate([np.zeros(0, np.uint64), *(each.cells for each in found)])
    return Votes.gathered(cells, np.concatenate([np.zeros(0, np.int64), *(each.weights for each in found)]))


def _schema() -> str:
    return SCHEMA


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Say what went wrong in words of ours: Spark's quote rows, plans and addresses."""
    try:
        yield
    except (HazemapError, PeopleDidNotFit):
        raise
    except Exception as error:
        kind = type(error)
        if kind.__module__.partition(".")[0] not in {"pyspark", "py4j", "grpc"} and not isinstance(error, OSError):
            raise
        if "No module named 'hazemap'" in str(error):
            raise TableError(
                f"Spark's executors cannot read {name}: install hazemap {__version__} on all of them, "
                "for the Python that they use"
            ) from None
        named = re.match(r"(?:(?!Traceback)[^\[])*\[([A-Z][A-Z_.]{3,80})\]", str(error))  # by Spark, and not by a row
        told = named[1] if named else kind.__name__
        raise FileError(
            f"Spark could not read {name} to its end ({told}); nothing was counted. Its own log says more"
        ) from None
