"""What releases of maps and of statistics share: statement, transcript, file, exports, replay, notebook card."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Leaves
from hazemap.errors import FileError, InputError
from hazemap.machine_code.arrays import Floats
from hazemap.privacy.statement import Statement
from hazemap.privacy.statement_facts import estimand
from hazemap.queries.algorithm_session import Transcript
from hazemap.queries.noisy_queries import Algorithm, Prices
from hazemap.releases.cell_geometry import CellGeometry
from hazemap.releases.file_metadata import (
    Later,
    MapContents,
    MarkedContents,
    MarkedSlotsContents,
    StatisticsContents,
    TimedContents,
    UnknownMethod,
    reading,
)
from hazemap.releases.notebook_table import plain
from hazemap.spatial.plane import plane_of, reference_system, refuse_plane

if TYPE_CHECKING:
    from geopandas import GeoDataFrame
    from pandas import DataFrame

    from hazemap.releases.gis.layer_styles import LayerStyle
    from hazemap.releases.page.page_file import PageFrame
    from hazemap.spatial.bounding_box import Box

Contents = MapContents | MarkedContents | MarkedSlotsContents | StatisticsContents | TimedContents
AnyPath = str | os.PathLike[str]
_HOMES: dict[type, str] = {
    MapContents: "map_release",
    MarkedContents: "marked_release",
    MarkedSlotsContents: "marked_timed_release",
    StatisticsContents: "statistics_release",
    TimedContents: "timed_release",
}
"""Which module makes a release of what a file holds."""

MOST_IN_NOTEBOOKS = 20_000
"""Places of a release whose page is in every notebook that shows it; `explore` puts larger ones there."""

MOST_LINES, LONGEST_LINE = 10, 300
"""Of what `print` says of a release: lines, and letters of each."""

TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


class Rows(NamedTuple):
    """Some rows of a file: `shapes` are of cells, each of which has `times` rows, one after another."""

    columns: dict[str, NDArray[Any]]
    shapes: NDArray[Any]
    times: int


class Bands(NamedTuple):
    """What a picture of pixels holds: a number for every cell of a ground, float64[cells], in each of some named bands.

    Counts are `spread` over the ground of a cell; other numbers are those of every point in it.
    """

    names: tuple[str, ...]
    numbers: list[Floats]
    spread: bool
    tags: dict[str, str]
    ground: CellGeometry


class BaseRelease(ABC):
    """Published numbers of cells. Every question is answered from them, so asking costs no privacy."""

    statement: Statement
    algorithm: object
    transcript: Transcript

    HOLDS: ClassVar[str]
    SUFFIXES: ClassVar[tuple[str, ...]]
    MADE: ClassVar[str]
    """What a file of this kind holds, in words; how its files end; the field that the algorithm makes."""
    _KINDS: ClassVar[dict[type, type["BaseRelease"]]] = {}

    def __init_subclass__(cls, contents: type, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        BaseRelease._KINDS[contents] = cls

    @classmethod
    def open(cls, path: AnyPath) -> Self:
        """What `save` wrote; `FileError` for a foreign, damaged or newer file, and for another kind of release."""
        contents = _read(Path(path))
        import_module(f"hazemap.releases.{_HOMES[type(contents)]}")
        kind = BaseRelease._KINDS[type(contents)]
        if not issubclass(kind, cls):
            raise FileError(
                f"{path} holds {kind.HOLDS}, not {cls.HOLDS}: open it with hazemap.{kind.__name__}.open,"
                " or with hazemap.open, which opens both"
            )
        made = kind(*contents)
        later = {name: part for name, part in vars(made).items() if isinstance(part, Later)}
        for name in later:
            del made.__dict__[name]
        made.__dict__["_later"] = later
        return made

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """A part of the file that has not been read yet."""
            part = self.__dict__.get("_later", {}).get(name)
            if part is None:
                raise AttributeError(f"a {type(self).__name__} has no {name!r}")
            self.__dict__[name] = part.value
            return part.value

    def save(self, path: AnyPath) -> None:
        """Write everything to one file: GeoParquet (`.parquet`), or for a map of equal squares a COG (`.tif`)."""
        from hazemap.releases import geoparquet, geotiff

        suffix = Path(path).suffix.lower()
        if suffix not in self.SUFFIXES:
            raise FileError(
                f"{self.HOLDS} can be saved as {' or '.join(self.SUFFIXES)}; found {str(path)!r}."
                " For other formats use export: they hold the numbers, but cannot be opened again"
            )
        if suffix != ".parquet":
            refuse_plane(self.cells.tree, suffix)
        (geoparquet if suffix == ".parquet" else geotiff).write(cast(Any, self), Path(path))

    def export(self, path: AnyPath, pixel: float | None = None, column: str | None = None) -> None:
        """Write the numbers for other tools: `.geojson`, `.gpkg`, `.fgb`, `.pmtiles`, `.csv` or `.tif`.

        A `.gpkg` has styles for QGIS in it; for the others a `.qml` or `.sld` is written under a name of its own.

        A `.tif` is drawn at the level of the finest cell, or with pixels of at most `pixel` metres (at the equator).
        That of a map holds its counts; that of statistics the `column`, by default `value`, in a band for every slot.
        Every format carries the statement; beside a `.csv` stands a `.csv.statement.json`. Of a release with slots the
        total of all of them is apart, in a file of its own: `hours.total.csv` beside `hours.csv`.
        """
        from hazemap.releases.exports import export

        export(self, Path(path), pixel, column)

    def to_html(
        self,
        title: str | None = None,
        *,
        outlines: "Path | str | GeoDataFrame | None" = None,
        box: "Box | None" = None,
    ) -> str:
        """The release as one page for a browser: a whole HTML file that asks no other machine for anything.

        `title` is its heading, by default the name of the data set. `outlines` are lines to draw over it, such as
        districts, and `box` the part that is shown at first. `InputError` where hazemap's page was not built.
        """
        from hazemap.releases.page.page_file import filled, page_view, template

        return filled(template(), self.page_data(title) | page_view(self, outlines, box))

    def explore(self, height: int = 640, title: str | None = None) -> "PageFrame":
        """The page of the release inside a notebook, so many pixels high: see `to_html`."""
        from hazemap.releases.page.page_file import PageFrame

        return PageFrame(self.to_html(title), height)

    @abstractmethod
    def page_data(self, title: str | None = None) -> dict[str, Any]:
        """What a page is told, as JSON; `InputError` for more than a page can show."""

    def replay(self, prices: Prices) -> Self:
        """The same release, made again from its stored answers: `TranscriptMismatch` if they do not fit.

        `prices` are those of the trust model that answered, for the budget of the statement.
        """
        from hazemap.queries.algorithm_session import replay

        if isinstance(self.algorithm, UnknownMethod):
            raise FileError(
                f"this release was made by a method that this hazemap does not know ({self.statement.method},"
                f" hazemap {self.statement.version}): replay it with that version or a newer one"
            )
        algorithm = cast(Algorithm[Any], self.algorithm)
        made = replay(algorithm, prices, self.statement.budget, self.transcript).value
        return cast(Self, replace(cast(Any, self), **{self.MADE: made}))

    @property
    def counted(self) -> str:
        """What a count of 1 is, as every view calls it: see `hazemap.privacy.statement_facts`."""
        return estimand(self.statement.bounding)

    @property
    @abstractmethod
    def cells(self) -> Leaves:
        """The cells that the release has numbers of."""

    @property
    def told(self) -> int:
        """How many places the release tells of: its cells, in every slot."""
        return self.cells.size

    @cached_property
    def ground(self) -> CellGeometry:
        """The cells on the ground: areas, outlines."""
        return CellGeometry(self.cells)

    @abstractmethod
    def columns(self) -> dict[str, NDArray[Any]]:
        """The table of the release, column by column, without geometry."""

    @abstractmethod
    def outlines(self) -> NDArray[Any]:
        """The polygon of each row of the table, in degrees."""

    @abstractmethod
    def rows(self, most: int) -> Iterator[Rows]:
        """The table in blocks of about so many rows; before them a block without rows, for their types."""

    def file_rows(self, most: int) -> Iterator[Rows]:
        """The rows of a saved file, in the same way."""
        return self.rows(most)

    @property
    def total_release(self) -> "BaseRelease | None":
        """Of a release with slots the one of all slots together, whose tables are apart; None for others."""
        return None

    @abstractmethod
    def label(self) -> dict[str, Any]:
        """What the label of a file says of this kind of release alone."""

    @abstractmethod
    def bands(self, column: str | None) -> Bands:
        """What a `.tif` for other tools holds."""

    @abstractmethod
    def layer_styles(self) -> "tuple[LayerStyle, ...]":
        """How a GIS may draw the rows of the table; the first is the default."""

    @abstractmethod
    def summary(self) -> list[str]:
        """A few sentences: promise, size, the number that matters most."""

    @property
    @abstractmethod
    def thumbnail(self) -> tuple[Floats, bool]:
        """What a small picture shows: float64[cells], NaN where nothing is known, and whether as a density."""

    def to_dataframe(self) -> "DataFrame":
        """The table of the release: see `columns`."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def to_geodataframe(self) -> "GeoDataFrame":
        """`to_dataframe` with the outline of each row's cell."""
        import geopandas as gpd

        return gpd.GeoDataFrame(self.columns(), geometry=self.outlines(), crs=self.crs)

    @property
    def crs(self) -> str | None:
        """The reference system of outlines: degrees of WGS 84, a projection's, or None for a plane without one."""
        plane = plane_of(self.cells.tree)
        if plane is None:
            return "EPSG:4326"
        return reference_system(plane.crs).to_string() if plane.crs else None

    def cell_at(self, lon: float, lat: float) -> int:
        """The position of the cell around a point in degrees; `InputError` outside of all."""
        leaves = self.cells
        base = leaves.tree.cell_at({"lon": np.array([lon]), "lat": np.array([lat])}, leaves.tree.depth)
        position = int(leaves.locate(base)[0])
        if position not in self.ground.places:
            west, south, east, north = self.ground.extent
            raise InputError(
                f"the point {lon:g},{lat:g} lies outside the map, which covers"
                f" {west:.6g},{south:.6g},{east:.6g},{north:.6g}"
                f" ({'x,y,x,y' if plane_of(leaves.tree) else 'west,south,east,north in degrees'})"
            )
        return position

    def __repr__(self) -> str:
        """A few lines, whatever it holds: what it is, and its summary."""
        lines = [f"{type(self).__name__}: {self.HOLDS}", *self.summary()][:MOST_LINES]
        return "\n".join(plain(line, LONGEST_LINE) for line in lines)

    def _repr_html_(self) -> str:
        from hazemap.releases.notebook_card import card
        from hazemap.releases.page.page_file import folded

        small = self.told <= MOST_IN_NOTEBOOKS
        try:
            return card(self) + (folded(self.explore()) if small else "")
        except InputError:  # hazemap's own page was never built
            return card(self)


def _read(path: Path) -> Contents:
    """A file of any format: its first bytes say which it is."""
    with reading(path), path.open("rb") as file:
        start = file.read(4)
    if start == b"PAR1":
        from hazemap.releases import geoparquet

        return geoparquet.read(path)
    if start in TIFF:
        from hazemap.releases import geotiff

        return geotiff.read(path)
    raise FileError(
        f"{path} is neither Parquet nor TIFF, so it is no release of hazemap"
        + ("; it is empty" if not start else "; an export cannot be opened again")
    )
