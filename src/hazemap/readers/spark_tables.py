"""Tables of Spark: DataFrames, classic or Connect, and tables of its catalogue.

Spark sends the columns that are needed to tasks of ours on its executors. What it may leave out, rows outside of a box
or of a time, is tested again there. It is asked in SQL alone, with names that are quoted; no expression of ours can
fail for what a row holds.
"""

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from hazemap.engines.spark import explained
from hazemap.engines.table_source import FED, SourcePart, TableSource
from hazemap.errors import FileError, InputError, TableError
from hazemap.readers.value_coercion import sound
from hazemap.sources.source import SparkCatalogueTable
from hazemap.spatial.bounding_box import Box

KINDS = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
}
"""Spark's types as Arrow hands them over, in DuckDB's names; decimals keep theirs."""

_MOMENTS = {"date": "DATE", "timestamp": "TIMESTAMP", "timestamp_ntz": "TIMESTAMP_NTZ"}
NEEDS = "Spark needs pyspark, which is not installed here: pip install 'hazemap[spark]', and Java 17"


@dataclass(frozen=True)
class ArrivingRows:
    """The rows that Spark hands to one task (an `engines.spark_tasks.ArrivingFeed`)."""

    columns: tuple[str, ...]
    arrived: Iterator[Any] | None = None

    def of(self, batches: Iterator[Any]) -> "ArrivingRows":
        """The same, of these Arrow batches."""
        return replace(self, arrived=batches)

    def batches(self, columns: Sequence[str]) -> Generator[Any, None, None]:
        """Arrow record batches of these columns, which are those that Spark was asked for, in this order."""
        import pyarrow

        for batch in self.arrived or ():
            yield pyarrow.RecordBatch.from_arrays([sound(each) for each in batch.columns], names=list(columns))


@dataclass(frozen=True)
class SparkRows:
    """The rows of a DataFrame (an `engines.spark.ClusterFeed`, and a `ChoosingFeed`), with types as Spark says them."""

    name: str
    rows: Any
    types: Mapping[str, str]
    conditions: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """All that can be had of a row."""
        return tuple(self.types)

    def frame(self, columns: Sequence[str]) -> Any:
        """These columns as a DataFrame of Spark."""
        for column in columns:
            if _kind(self.types[column]) is None:
                raise TableError(
                    f"the column {column!r} is {self.types[column]}, which hazemap does not read: make it a text, a "
                    "number or a time"
                )
        rows = self.rows
        for condition in self.conditions:
            rows = rows.where(condition)
        return rows.selectExpr(*(f"{_quoted(column)} AS c{i}" for i, column in enumerate(columns)))

    def arriving(self) -> ArrivingRows:
        """The feed of those tasks that get its rows."""
        return ArrivingRows(self.columns)

    def batches(self, columns: Sequence[str]) -> Generator[Any, None, None]:
        """Arrow record batches of these columns, in the order of the rows: they come here, a part at a time."""
        import pyarrow

        with explained(self.name):
            written = self.frame(columns).mapInArrow(_as_bytes, "batch binary")
            for row in written.toLocalIterator():
                with pyarrow.ipc.open_stream(bytes(row.batch)) as stream:
                    for batch in stream:
                        yield pyarrow.RecordBatch.from_arrays([sound(each) for each in batch], names=list(columns))

    def during(self, column: str, since: datetime | None, until: datetime | None) -> "SparkRows":
        """The same, perhaps without rows that are not in `since <= time < until`, both in UTC."""
        of, conditions = self.types[column], list[str]()
        for sign, limit in ((">=", since), ("<", until)):
            if limit is None or of not in _MOMENTS or limit.year < 1000:
                continue
            text, sure = limit.replace(tzinfo=None).isoformat(sep=" "), sign
            if of == "date":  # the day of `until` counts, unless it begins then
                text, sure = str(limit.date()), f"{sign.rstrip('=')}="
            zone = "+00:00" if of == "timestamp" else ""
            conditions.append(f"{_quoted(column)} {sure} {_MOMENTS[of]} '{text}{zone}'")
        return replace(self, conditions=(*self.conditions, *conditions))

    def inside(self, columns: Sequence[str], box: Box) -> "SparkRows":
        """The same, perhaps without rows whose place, in these columns, is outside of a box."""
        sides = zip(columns, (box.west, box.south), (box.east, box.north), strict=False)
        conditions = [
            f"{_quoted(column)} BETWEEN CAST('{low!r}' AS DOUBLE) AND CAST('{high!r}' AS DOUBLE)"
            for column, low, high in sides
            if self.types[column] in {"float", "double"}
        ]
        return replace(self, conditions=(*self.conditions, *conditions))


def is_spark_frame(frame: Any) -> bool:
    """Whether this is a DataFrame of Spark, classic or Connect; pyspark need not be there.

    >>> is_spark_frame({"user": [7]})
    False
    """
    return type(frame).__module__.startswith("pyspark.sql") and hasattr(frame, "mapInArrow")


def open_spark_frame(frame: Any, name: str = "the DataFrame") -> TableSource:
    """The table in a DataFrame; no row is read."""
    with explained(name):
        if frame.isStreaming:
            raise TableError("a stream of Spark has no end: read it as a table, or release a window of it")
        types = {field.name: field.dataType.simpleString() for field in frame.schema}
        names = list(frame.columns)
        if frame.sparkSession.conf.get("spark.sql.caseSensitive") != "true":
            names = [each.lower() for each in names]
    twice = [each for each in names if names.count(each) > 1]
    if twice:
        raise TableError(f"the DataFrame has two columns called {twice[0]!r}; rename one")
    feed = SparkRows(name, frame, types)
    kinds = {column: _kind(kind) or kind for column, kind in types.items()}
    return TableSource(name, (SourcePart(FED, kinds, feed),))


def open_spark_table(table: SparkCatalogueTable) -> TableSource:
    """A table of the session that there is, or else of the one that the environment says."""
    with explained(str(table)):
        return open_spark_frame(session().table(table.name), str(table))


def session() -> Any:
    """The session that is active; one at SPARK_REMOTE; or one of this environment's configuration, else local.

    `InputError` where pyspark or Java is missing.
    """
    import sys

    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise InputError(NEEDS) from None
    found = SparkSession.getActiveSession()
    if found is not None:
        return found
    remote, python = os.environ.get("SPARK_REMOTE"), "PYSPARK_PYTHON"
    if remote is not None and remote.startswith("local"):
        os.environ.setdefault(python, sys.executable)
    maker = SparkSession.builder.appName("hazemap")
    try:
        if remote is not None:
            return maker.getOrCreate()
        made = maker.config("spark.ui.showConsoleProgress", "false").getOrCreate()
        if str(made.sparkContext.master).startswith("local") and python not in os.environ:
            made.sparkContext.pythonExec = sys.executable  # of this machine, and not the first one in PATH
        return made
    except PySparkException as error:
        if "JAVA" in str(error.getCondition()):
            raise InputError(
                "Spark needs Java 17, which was not found here or does not start: install it (openjdk-17-jre-headless "
                "in Debian), and set JAVA_HOME where it has several; or set SPARK_REMOTE to a Spark Connect server"
            ) from None
        raise FileError(f"no session of Spark could be had ({error.getCondition()})") from None
    except ImportError:
        raise InputError(f"{NEEDS}: a part of what Spark Connect needs is missing") from None


def _as_bytes(batches: Iterator[Any]) -> Iterator[Any]:
    """Each batch as the bytes of an Arrow stream, in a row of its own."""
    import pyarrow

    for batch in batches:
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pyarrow.RecordBatch.from_arrays([pyarrow.array([sink.getvalue().to_pybytes()], "binary")], ["batch"])


def _kind(of: str) -> str | None:
    """A type of Spark in DuckDB's words; None for one that is not read."""
    if of.startswith(("char(", "varchar(", "string collate")):
        return "VARCHAR"
    return of.upper() if of.startswith("decimal(") else KINDS.get(of)


def _quoted(name: str) -> str:
    """A name of any signs as an identifier of Spark's SQL."""
    return "`" + name.replace("`", "``") + "`"
