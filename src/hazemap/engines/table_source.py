"""A table that DuckDB can read, and what its files declare before any row is read."""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, Self, runtime_checkable

from hazemap.spatial.bounding_box import Box

FED = "fed"
"""What SQL calls the rows of a feed."""


class Feed(Protocol):
    """Rows that DuckDB does not read by itself, from the first one again for every query."""

    @property
    def columns(self) -> Sequence[str]:
        """What can be had of a row."""

    def batches(self, columns: Sequence[str]) -> Generator[Any, None, None]:
        """Arrow record batches of these columns, in the order of the rows."""


@runtime_checkable
class ChoosingFeed(Feed, Protocol):
    """A feed that may leave rows out that cannot count, so that they need not travel.

    It sends all that may count, perhaps others too, in the same order: which of them count is decided here.
    """

    def during(self, column: str, since: datetime | None, until: datetime | None) -> Self:
        """The same, perhaps without rows that are not in `since <= time < until`, both in UTC."""

    def inside(self, columns: Sequence[str], box: Box) -> Self:
        """The same, perhaps without rows whose place, in these columns or this one, is outside of a box."""


@dataclass(frozen=True)
class Geometry:
    """A column of points: `WKB` or a struct with x and y (`point`), and its reference system (for pyproj)."""

    column: str
    encoding: str
    crs: str


@dataclass(frozen=True)
class SourcePart:
    """Rows that declare one type for each column: how SQL calls them, and what feeds them where SQL does not read them.

    A column that is `written` is text that may hold a number, as all of CSV; beside it is the name of the number in it.
    SQL refuses the whole of a `checked` column for one bad value, so queries for it are fed by `checking`.
    """

    relation: str
    kinds: Mapping[str, str]
    feed: Feed | None = None
    written: Mapping[str, str] = field(default_factory=dict)
    checked: frozenset[str] = frozenset()
    checking: Feed | None = None


@dataclass(frozen=True)
class TableSource:
    """What to call it, its parts in the order of their rows, and the number of rows where it is known.

    `check` is asked once rows have been read: `FileError` where the files are not those that were opened any more.
    `refuse` is asked with the columns that are to be read, before any row is: `TableError` for what no memory holds.
    """

    name: str
    parts: tuple[SourcePart, ...]
    rows: int | None = None
    geometry: Geometry | None = None
    check: Callable[[], None] | None = None
    refuse: Callable[[Collection[str]], None] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that all parts have, in the order of the first."""
        first, *others = self.parts
        return tuple(name for name in first.kinds if all(name in other.kinds for other in others))


def named_numbers(columns: Sequence[str]) -> dict[str, str]:
    """A name for the numbers in each column of text, which no column has.

    >>> named_numbers(["lon", "number in lon"])
    {'lon': ' number in lon', 'number in lon': ' number in number in lon'}
    """
    start = "number in "
    while any(column.startswith(start) for column in columns):
        start = " " + start
    return {column: start + column for column in columns}
