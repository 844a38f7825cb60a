"""What to read from a source, in SQL: whose rows, where they are, how much they weigh, and which of them."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from hazemap.domains.boxes import Box
from hazemap.domains.marked import MARK
from hazemap.errors import TableError
from hazemap.tables.bounding import Bounding, OneVote, RowIsPerson
from hazemap.tables.opening.arrays import floats
from hazemap.tables.opening.ids import Ids
from hazemap.tables.opening.points import Points, TwoColumns


@dataclass(frozen=True)
class Layout:
    """The roles of the columns of a relation, and the rows asked for."""

    name: str
    relation: str
    rows: int | None  # where known without reading them
    ids: Ids | str  # or why there are none
    points: Points
    weight: str | None
    mark: str | None
    where: tuple[str, ...]
    box: Box | None
    value: str | None = None  # what is measured
    moment: str | None = None  # in seconds since 1970

    def need_ids(self) -> Ids:
        """The ids; `TableError` where there are none."""
        if isinstance(self.ids, str):
            raise TableError(self.ids)
        return self.ids

    @property
    def places(self) -> tuple[str, ...]:
        """The columns that say in which cell a row is: its coordinates, perhaps its mark, its value, its time."""
        return self.points.sql + tuple(self._beside.values())

    @property
    def _beside(self) -> dict[str, str]:
        """What a tree looks at beside coordinates, by the name that the tree knows."""
        columns = {MARK: self.mark, "value": self.value, "time": self.moment}
        return {name: column for name, column in columns.items() if column is not None}

    def columns(self, places: list[Any]) -> dict[str, NDArray[Any]]:
        """What a tree looks at, from the columns `places` as Arrow arrays."""
        lon, lat = self.points.lonlat(places[: len(self.points.sql)])
        beside = zip(self._beside, places[len(self.points.sql) :], strict=True)
        return {"lon": lon, "lat": lat} | {name: floats(column) for name, column in beside}

    def masked(self, bounding: Bounding) -> Box | None:
        """The box, where the query does not leave out what lies outside: such rows are `NOWHERE`."""
        return None if self._pushed(bounding) else self.box

    def select(self, bounding: Bounding) -> str:
        """The query for the rows that a rule weighs: perhaps ids, the places, perhaps weights."""
        columns = list(self.places)
        if not isinstance(bounding, RowIsPerson):
            columns.insert(0, self.need_ids().sql)
        if isinstance(bounding, OneVote) and self.weight:
            columns.append(self.weight)
        where = self.where + (self._inside() if self._pushed(bounding) else ())
        named = ", ".join(f"{column} AS c{i}" for i, column in enumerate(columns))
        filtered = f" WHERE {' AND '.join(where)}" if where else ""
        return f"SELECT {named} FROM {self.relation}{filtered}"  # noqa: S608 - names are quoted

    def _pushed(self, bounding: Bounding) -> bool:
        return self.box is not None and isinstance(self.points, TwoColumns) and not bounding.nowhere

    def _inside(self) -> tuple[str, ...]:
        if self.box is None:
            return ()
        sides = ((self.box.west, self.box.east), (self.box.south, self.box.north))
        return tuple(
            f"{column} BETWEEN CAST({low!r} AS DOUBLE) AND CAST({high!r} AS DOUBLE)"
            for column, (low, high) in zip(self.points.sql, sides, strict=True)
        )
