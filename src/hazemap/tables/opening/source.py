"""A table that DuckDB can read, and what is known of it before its rows are read."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Geometry:
    """A column of points: `WKB` or a struct with x and y (`point`), and its reference system (for pyproj)."""

    column: str
    encoding: str
    crs: str


@dataclass(frozen=True)
class Source:
    """What to call it, how SQL does, the type of each column, and the number of rows where it is known."""

    name: str
    relation: str
    kinds: Mapping[str, str]
    rows: int | None
    geometry: Geometry | None = None
    numbers_as_text: bool = False  # as in CSV, where every value is written as text
