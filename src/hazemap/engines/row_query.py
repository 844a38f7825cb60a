"""The SQL that reads a source: whose rows, where they are, how much they weigh, and which of them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.engines.arrow_arrays import floats, texts, valid
from hazemap.engines.coordinate_readers import Points, TwoColumns
from hazemap.engines.duckdb_connection import TableQuery, quoted
from hazemap.engines.person_ids import IdColumnReader, Ids
from hazemap.engines.table_source import FED, Feed
from hazemap.errors import TableError
from hazemap.spatial.bounding_box import Box
from hazemap.tables.contribution_bounding import Bounding, OneVote, Outside, RowIsPerson
from hazemap.temporal.time_format import TimeFormat, within_calendar
from hazemap.temporal.written_times import seconds_of_texts
from hazemap.values.boolean_attribute import MARK


@dataclass(frozen=True)
class Roles:
    """The SQL of each role in one part of a source."""

    relation: str
    feed: Feed | None
    person: str | None
    points: Points
    weight: str | None
    mark: str | None
    value: str | None  # what is measured
    moment: str | None  # in seconds since 1970, or texts that are to be read
    where: tuple[str, ...]
    checked: frozenset[str] = frozenset()
    checking: Feed | None = None
    near: Feed | None = None  # the feed without rows outside of the box, where that leaves out any

    @property
    def beside(self) -> dict[str, str]:
        """What a tree looks at beside coordinates, by the name that the tree knows."""
        columns = {MARK: self.mark, "value": self.value, "time": self.moment}
        return {name: column for name, column in columns.items() if column is not None}

    @property
    def places(self) -> tuple[str, ...]:
        """The columns that say in which cell a row is: its coordinates, perhaps its mark, its value, its time."""
        return self.points.sql + tuple(self.beside.values())

    def need_person(self) -> str:
        """The ids."""
        if self.person is None:
            raise TypeError("this part of the source has no ids: ask `Layout.need_ids` first")
        return self.person

    def query(self, selected: Sequence[str], where: Sequence[str] = ()) -> TableQuery:
        """These columns of the rows asked for."""
        conditions = (*self.where, *where)
        named = ", ".join(f"{column} AS c{i}" for i, column in enumerate(selected))
        filtered = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        feed, relation = self.feed, self.relation
        if any(quoted(column) in f"{named}{filtered}" for column in self.checked):
            feed, relation = self.checking, FED
        sql = f"SELECT {named} FROM {relation}{filtered}"  # noqa: S608 - quoted
        if feed is None:
            return TableQuery(sql)
        fed = {quoted(column): column for column in feed.columns}
        if not conditions and all(column in fed for column in selected):
            return TableQuery(None, feed, tuple(fed[column] for column in selected))
        needed = tuple(column for name, column in fed.items() if name in sql)  # none is missed
        if len({column.lower() for column in needed}) < len(needed):
            raise TableError(
                f"SQL does not tell the columns {', '.join(needed)} apart, of which two differ in capitals alone: "
                "rename one"
            )
        return TableQuery(sql, feed, needed)


@dataclass(frozen=True)
class TableLayout:
    """The roles of the columns of a source, in each of its parts, and the rows asked for."""

    name: str
    rows: int | None  # where known without reading them
    ids: Ids | str  # or why there are none
    id_column: IdColumnReader | None  # where `ids` come from
    parts: tuple[Roles, ...]
    box: Box | None
    check: Callable[[], None] | None = None  # of the `TableSource`
    zoneless: str | None = None  # the column of times, if its type may hold some that say no offset: these are UTC
    time_format: TimeFormat = "iso"
    window: tuple[float | None, float | None] = (None, None)  # from when until before when rows count, beside `where`

    def need_ids(self) -> Ids:
        """The ids; `TableError` where there are none."""
        if isinstance(self.ids, str):
            raise TableError(self.ids)
        return self.ids

    @property
    def width(self) -> int:
        """How many columns say in which cell a row is."""
        return len(self.parts[0].places)

    def arrived(self, columns: list[Any], first: int) -> list[Any]:
        """The columns of a batch, of which the places are from `first` on, with times in seconds since 1970.

        Texts are read here, and rows outside of the window are left out: all rows of all sources pass here once.
        """
        if self.parts[0].moment is None:
            return columns
        import pyarrow

        at = first + self.width - 1
        seconds = self._seconds(columns[at])
        read = [*columns[:at], pyarrow.array(seconds), *columns[at + 1 :]]
        since, until = self.window
        if since is None and until is None:
            return read
        inside = (seconds >= (-inf if since is None else since)) & (seconds < (inf if until is None else until))
        return read if inside.all() else [column.filter(pyarrow.array(inside)) for column in read]

    def _seconds(self, column: Any) -> NDArray[np.float64]:
        from pyarrow import types

        if types.is_floating(column.type):
            return within_calendar(floats(column))

        seconds = seconds_of_texts(*texts(column), self.time_format)
        return np.where(valid(column), seconds, np.nan) if column.null_count else seconds

    def columns(self, places: list[Any]) -> dict[str, NDArray[Any]]:
        """What a tree looks at, from the columns `places` as Arrow arrays that have `arrived`."""
        points, beside = self.parts[0].points, self.parts[0].beside
        lon, lat = points.lonlat(places[: len(points.sql)])
        others = zip(beside, places[len(points.sql) :], strict=True)
        return {"lon": lon, "lat": lat} | {name: floats(column) for name, column in others}

    def masked(self, bounding: Bounding) -> Box | None:
        """The box, where the query does not leave out what lies outside: such rows are `NOWHERE`."""
        return None if self._pushed(bounding) else self.box

    def queries(self, bounding: Bounding) -> Iterator[TableQuery]:
        """The queries, one a part, for the rows that a rule weighs: perhaps ids, the places, perhaps weights."""
        if not isinstance(bounding, RowIsPerson):
            self.need_ids()
        for part in self.parts:
            columns = list(part.places)
            if not isinstance(bounding, RowIsPerson):
                columns.insert(0, part.need_person())
            if isinstance(bounding, OneVote) and part.weight:
                columns.append(part.weight)
            if part.near is not None and bounding.outside is Outside.DROP:
                part = replace(part, feed=part.near)  # noqa: PLW2901
            yield part.query(columns, self._inside(part) if self._pushed(bounding) else ())

    def selecting(self, columns: Callable[[Roles], Sequence[str]]) -> Iterator[TableQuery]:
        """The queries for the columns that `columns` names in each part."""
        for part in self.parts:
            yield part.query(columns(part))

    def _pushed(self, bounding: Bounding) -> bool:
        read_by_sql = all(isinstance(part.points, TwoColumns) and part.feed is None for part in self.parts)
        return self.box is not None and read_by_sql and bounding.outside is Outside.DROP

    def _inside(self, part: Roles) -> tuple[str, ...]:
        if self.box is None:
            return ()
        sides = ((self.box.west, self.box.east), (self.box.south, self.box.north))
        return tuple(
            f"{column} BETWEEN CAST({low!r} AS DOUBLE) AND CAST({high!r} AS DOUBLE)"
            for column, (low, high) in zip(part.points.sql, sides, strict=True)
        )
