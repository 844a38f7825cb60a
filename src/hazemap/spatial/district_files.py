"""Named polygons from files and frames, made fit to be districts: in degrees, valid, each with a name."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import FileError, InputError

if TYPE_CHECKING:
    from geopandas import GeoDataFrame

MENDED = 0.01
"""A ring that crosses itself is mended where that moves at most this part of its area: else it may mean anything."""


@dataclass(frozen=True, eq=False)
class DistrictLayer:
    """Where the districts of one level come from: a file that GDAL reads (GeoJSON, GPKG …), or a GeoDataFrame.

    `name` is the column of names; by default the one called so. Where two districts of a parent are called the same,
    "name+kind" joins two columns or more, with a space. `parent` is the column that says of each district
    which coarser one it belongs to, by any column of the coarser file whose values are all different; without it,
    districts belong to the coarser one in which most of their area lies.

    >>> DistrictLayer("counties.geojson", name="geo_id", parent="state").title
    'counties.geojson'
    """

    source: "str | os.PathLike[str] | GeoDataFrame"
    name: str | None = None
    parent: str | None = None

    @property
    def title(self) -> str:
        """What messages call it."""
        if isinstance(self.source, str | os.PathLike):
            return Path(self.source).name
        return "a table of districts"

    def read(self) -> "Named":
        """Its districts; `FileError` for what cannot be read, `InputError` for what cannot be districts."""
        frame = self._frame()
        if not len(frame):
            raise InputError(f"{self.title} has no districts in it: it is empty")
        columns = {str(name): _texts(frame[name].tolist()) for name in frame.columns if name != frame.geometry.name}
        names = self._names(columns)
        if self.parent is not None and self.parent not in columns:
            raise InputError(f"{self.title} has no column {self.parent!r} of parents; found {', '.join(columns)}")
        nameless = [row for row, text in enumerate(names) if not text]
        if nameless:
            raise InputError(f"every district needs a name; in {self.title}, that of row {nameless[0] + 1} is empty")
        shapes = _fit(np.asarray(_in_degrees(frame, self.title).geometry.values, dtype=object), names, self.title)
        return Named(self.title, names, shapes, columns, columns[self.parent] if self.parent else None)

    def _frame(self) -> "GeoDataFrame":
        import geopandas

        if isinstance(self.source, geopandas.GeoDataFrame):
            return self.source
        if not isinstance(self.source, str | os.PathLike):
            raise InputError(f"districts come from a file or a GeoDataFrame; found a {type(self.source).__name__}")
        path = Path(self.source)
        if not path.is_file():
            raise FileError(f"there is no file of districts {str(path)!r}")
        try:
            frame = geopandas.read_file(path)
        except Exception as error:  # GDAL's drivers raise what they like
            raise FileError(f"{path} could not be read as districts: {error}") from error
        if not isinstance(frame, geopandas.GeoDataFrame):
            raise FileError(f"{path} has no shapes in it: districts are polygons, as in GeoJSON or GPKG")
        return frame

    def _names(self, columns: Mapping[str, list[str]]) -> list[str]:
        if self.name is not None:
            parts = self.name.split("+")
            if self.name not in columns and all(part in columns for part in parts):
                return [" ".join(filter(None, each)) for each in zip(*(columns[part] for part in parts), strict=True)]
            if self.name not in columns:
                raise InputError(f"{self.title} has no column {self.name!r}; found {', '.join(columns) or 'none'}")
            return columns[self.name]
        exact = [column for column in columns if column.lower() == "name"]
        alike = exact or [column for column in columns if "name" in column.lower()]
        if not alike and len(columns) == 1:
            alike = list(columns)
        if len(alike) != 1:
            raise InputError(f"which column of {self.title} holds the names? Found {', '.join(columns) or 'none'}")
        return columns[alike[0]]


@dataclass(frozen=True, eq=False)
class Named:
    """The districts of one layer: names, valid polygons in degrees, all columns as text, and the column of parents."""

    title: str
    names: list[str]
    shapes: NDArray[Any]
    columns: Mapping[str, list[str]]
    parents: list[str] | None


def _texts(values: Sequence[Any]) -> list[str]:
    """Values as text, numbers without a fraction as whole ones, missing ones as nothing."""
    texts = []
    for value in values:
        missing = value is None or value != value  # noqa: PLR0124 - NaN and NaT differ from themselves
        whole = isinstance(value, float) and not missing and value.is_integer()
        texts.append("" if missing else str(int(value) if whole else value).strip())
    return texts


def _in_degrees(frame: "GeoDataFrame", title: str) -> "GeoDataFrame":
    """The same shapes in longitude and latitude (WGS 84)."""
    if frame.crs is not None:
        return frame.to_crs("EPSG:4326") if frame.crs.to_epsg() != 4326 else frame
    west, south, east, north = frame.total_bounds.tolist()
    if min(west, 360 - east) < -360 or min(south, -north) < -90:
        raise InputError(
            f"{title} does not say in which coordinates it is (it has no CRS), and they are not degrees: they run over"
            f" {west:.6g},{south:.6g},{east:.6g},{north:.6g}; give it its CRS"
        )
    return frame


def _fit(shapes: NDArray[Any], names: Sequence[str], title: str) -> NDArray[Any]:
    """Valid polygons within ±180 and ±90 degrees, of two dimensions; `InputError` where there is no telling what."""
    import shapely
    import shapely.affinity

    for shape, name in zip(shapes, names, strict=True):
        kind = "nothing" if shape is None or shape.is_empty else shape.geom_type
        if kind not in ("Polygon", "MultiPolygon"):
            raise InputError(f"a district is a polygon; in {title}, {name!r} is {kind}")
    fit: NDArray[Any] = shapely.force_2d(shapes)
    broken = np.flatnonzero(~shapely.is_valid(fit))
    mended = shapely.make_valid(fit[broken], method="structure", keep_collapsed=False)
    for at, shape in zip(broken.tolist(), mended, strict=True):
        if not abs(shape.area - fit[at].area) <= MENDED * fit[at].area:  # not-a-number compares false
            reason = shapely.is_valid_reason(fit[at])
            raise InputError(f"the border of {names[at]!r} in {title} crosses itself ({reason}): mend it first")
    fit[broken] = mended
    bounds = shapely.bounds(fit)
    beyond = (bounds[:, 1] < -90) | (bounds[:, 3] > 90) | (bounds[:, 0] < -540) | (bounds[:, 2] > 540)
    for at in np.flatnonzero(beyond).tolist():
        raise InputError(f"{names[at]!r} in {title} lies beyond ±90 degrees of latitude or ±540 of longitude")
    for at in np.flatnonzero((bounds[:, 0] < -180) | (bounds[:, 2] > 180)).tolist():
        turns = [shapely.affinity.translate(fit[at], by) for by in (-360, 0, 360)]
        inside = shapely.intersection(turns, shapely.box(-180, -90, 180, 90))
        fit[at] = shapely.union_all([part for part in inside if part.area > 0])
    return fit
