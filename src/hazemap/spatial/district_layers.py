"""Layers of named polygons from files and frames, and which district lies in which.

A point belongs to the district of the finest layer that holds it, and with it to all that this one belongs to. So
where two files draw a border differently the finer one is right, and a district's ground is that of its children
and what of its own polygon no finer district takes: its *unincorporated* child.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import FileError, InputError
from hazemap.gdal.vector_files import read_shapes

if TYPE_CHECKING:
    from geopandas import GeoDataFrame

UNINCORPORATED = "unincorporated"
"""The name of what is left over."""

BETWEEN = " > "
"""The separator of names on the path to a district."""

OVERLAP = 1e-3
"""Two districts of a layer may share this part of the smaller one, as badly drawn borders do; the first keeps it."""

LEFT_OVER = 1e-9
"""Parts of a district smaller than this are rounding."""

GRAIN = 1e-10
"""Degrees (10 µm): GEOS 3.14 may call touching polygons overlapping unless it rounds to a grid."""

MENDED = 0.01
"""A ring that crosses itself is mended where that moves at most this part of its area: else it may mean anything."""

Shapes = NDArray[Any]


@dataclass(frozen=True, eq=False)
class DistrictLayer:
    """The source of the districts of one level: GeoJSON, GeoPackage, FlatGeobuf, a shapefile or a GeoDataFrame.

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
        """The name in messages."""
        if isinstance(self.source, str | os.PathLike):
            return Path(self.source).name
        return "a table of districts"

    def read(self) -> "NamedDistricts":
        """Its districts; `FileError` for what cannot be read, `InputError` for what cannot be districts."""
        frame = self._frame()
        if not len(frame):
            raise InputError(f"{self.title} contains no districts")
        columns = {str(name): _texts(frame[name].tolist()) for name in frame.columns if name != frame.geometry.name}
        names = self._names(columns)
        if self.parent is not None and self.parent not in columns:
            raise InputError(f"{self.title} has no column {self.parent!r} of parents; found {', '.join(columns)}")
        nameless = [row for row, text in enumerate(names) if not text]
        if nameless:
            raise InputError(f"every district needs a name; in {self.title}, that of row {nameless[0] + 1} is empty")
        shapes = _fit(np.asarray(_in_degrees(frame, self.title).geometry.values, dtype=object), names, self.title)
        return NamedDistricts(self.title, names, shapes, columns, columns[self.parent] if self.parent else None)

    def _frame(self) -> "GeoDataFrame":
        import geopandas

        if isinstance(self.source, geopandas.GeoDataFrame):
            return self.source
        if not isinstance(self.source, str | os.PathLike):
            raise InputError(f"districts must come from a file or a GeoDataFrame; found a {type(self.source).__name__}")
        path = Path(self.source)
        if not path.is_file():
            raise FileError(f"there is no file of districts {str(path)!r}")
        try:
            return read_shapes(path)
        except FileError as error:
            raise FileError(f"{path} could not be read as districts: {error}") from error

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
            raise InputError(f"say which column of {self.title} holds the names? Found {', '.join(columns) or 'none'}")
        return columns[alike[0]]


@dataclass(frozen=True, eq=False)
class NamedDistricts:
    """The districts of one layer: names, valid polygons in degrees, all columns as text, and the column of parents."""

    title: str
    names: list[str]
    shapes: Shapes
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
    from pyproj.exceptions import ProjError

    if frame.crs is not None:
        try:
            return frame.to_crs("EPSG:4326") if frame.crs.to_epsg() != 4326 else frame
        except ProjError:
            raise InputError(f"no way is known from the reference system of {title} to degrees: convert it") from None
    west, south, east, north = frame.total_bounds.tolist()
    if min(west, 360 - east) < -360 or min(south, -north) < -90:
        raise InputError(
            f"{title} does not say in which coordinates it is (it has no CRS), and they are not degrees: they run over"
            f" {west:.6g},{south:.6g},{east:.6g},{north:.6g}; give it its CRS"
        )
    return frame


def _fit(shapes: Shapes, names: Sequence[str], title: str) -> Shapes:
    """Valid polygons within ±180 and ±90 degrees, of two dimensions; `InputError` where there is no telling what."""
    import shapely
    import shapely.affinity

    for shape, name in zip(shapes, names, strict=True):
        kind = "nothing" if shape is None or shape.is_empty else shape.geom_type
        if kind not in ("Polygon", "MultiPolygon"):
            raise InputError(f"a district must be a polygon; in {title}, {name!r} is {kind}")
    fit: Shapes = shapely.force_2d(shapes)
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


class Nested(NamedTuple):
    """All districts, each before those in it: names, levels, polygons (empty ones for what has none of its own)."""

    labels: tuple[str, ...]
    levels: NDArray[np.int64]
    shapes: Shapes


def nested(layers: Sequence[NamedDistricts], whole: str) -> Nested:
    """The districts of some layers, coarse to fine, under one root; all leaves are of the same level."""
    import shapely

    if not layers:
        raise InputError("districts need at least one layer of polygons; found none")
    for layer in layers:
        _apart(layer)
    starts = np.cumsum([1, *(len(layer.names) for layer in layers)])  # of each layer, among all with the root before
    parents = [np.zeros(1, dtype=np.int64)]
    for level, layer in enumerate(layers):
        upper = _parents(layer, layers[level - 1]) + starts[level - 1] if level else np.zeros(len(layer.names), int)
        parents.append(upper)
    names = [whole, *(name for layer in layers for name in layer.names)]
    shapes = np.concatenate([[shapely.Polygon()], *(layer.shapes for layer in layers)])
    parent = np.concatenate(parents)
    levels = np.repeat(np.arange(len(layers) + 1), [1, *(len(layer.names) for layer in layers)])
    left = left_over(shapes, levels)
    children: list[list[int]] = [[] for _ in names]
    for child in range(1, len(names)):
        children[parent[child]].append(child)
    labels: list[str] = []
    depths: list[int] = []
    order: list[int] = []

    def add(at: int, label: str, level: int) -> None:
        labels.append(label)
        depths.append(level)
        order.append(at)

    def visit(at: int) -> None:
        level = int(levels[at])
        add(at, names[at], level)
        for child in children[at]:
            visit(child)
        if at and level < len(layers) and (not children[at] or left[at].area > LEFT_OVER * shapes[at].area):
            if left[at].is_empty:
                raise InputError(
                    f"{names[at]!r} in {layers[level - 1].title} has no district in it, and districts of other parents "
                    "fill it: give the finer layer a column of parents, or cut its districts along the coarser ones"
                )
            for deeper in range(level + 1, len(layers) + 1):
                add(0, UNINCORPORATED, deeper)  # the root's polygon is empty

    visit(0)
    return Nested(tuple(labels), np.array(depths, dtype=np.int64), shapes[order])


def left_over(shapes: Shapes, levels: NDArray[np.int64]) -> Shapes:
    """The part of each polygon that those of deeper levels leave: O(crossings of borders)."""
    import shapely

    tree, left = shapely.STRtree(shapes), shapes.copy()
    upper = np.flatnonzero((levels < levels.max()) & ~shapely.is_empty(shapes))
    at, other = tree.query(shapes[upper], predicate="intersects")
    deeper = levels[other] > levels[upper[at]]
    at, other = at[deeper], other[deeper]
    for place in np.unique(at):
        taken = shapely.union_all(shapes[other[at == place]], grid_size=GRAIN)
        left[upper[place]] = shapely.difference(shapes[upper[place]], taken, grid_size=GRAIN)
    return areas_of(left)


def areas_of(shapes: Shapes) -> Shapes:
    """Only the polygons in each shape, without the lines and points that cutting may leave."""
    import shapely

    whole: Shapes = np.array(shapes, dtype=object)
    for at in np.flatnonzero(~np.isin(shapely.get_type_id(whole), (3, 6))):
        parts = shapely.get_parts(whole[at])
        parts = parts[shapely.area(parts) > 0]
        whole[at] = shapely.union_all(parts) if len(parts) else shapely.Polygon()
    return whole


def clipped(ground: Any, boxes: NDArray[np.float64]) -> Shapes:
    """The part of each box (west, south, east, north) in a polygon; edges of the box stay where they are.

    GEOS clips six times as fast as it intersects, and says that the result may be invalid: then it is intersected.
    """
    import shapely

    parts = np.array([shapely.clip_by_rect(ground, *box) for box in boxes.tolist()], dtype=object)
    doubtful = np.flatnonzero(~shapely.is_valid(parts) | ~np.isin(shapely.get_type_id(parts), (3, 6)))
    parts[doubtful] = shapely.intersection(ground, shapely.box(*boxes[doubtful].T), grid_size=GRAIN)
    return areas_of(parts)


def _apart(layer: NamedDistricts) -> None:
    """`InputError` if two districts of a layer share more than hairlines."""
    import shapely

    first, second = shapely.STRtree(layer.shapes).query(layer.shapes, predicate="intersects")
    first, second = first[first < second], second[first < second]
    shared = shapely.area(shapely.intersection(layer.shapes[first], layer.shapes[second], grid_size=GRAIN))
    smaller = np.minimum(shapely.area(layer.shapes[first]), shapely.area(layer.shapes[second]))
    part = shared / smaller
    if (part > OVERLAP).any():
        worst = int(np.argmax(part))
        names = [layer.names[place[worst]] for place in (first, second)]
        raise InputError(
            f"the districts of a layer must not overlap; in {layer.title}, {names[0]!r} and {names[1]!r} share "
            f"{100 * part[worst]:.3g} % of the smaller one"
        )


def _parents(layer: NamedDistricts, upper: NamedDistricts) -> NDArray[np.int64]:
    """For each district the position of its parent in the coarser layer."""
    if layer.parents is None:
        return _around(layer, upper)
    wanted = set(layer.parents)
    keys = [column for column in upper.columns.values() if len(set(column)) == len(column)]
    found = next((column for column in keys if wanted <= set(column)), None)
    if found is None:
        known = {value for column in keys for value in column}
        strange = next((text for text in layer.parents if text not in known), layer.parents[0])
        name = layer.names[layer.parents.index(strange)]
        raise InputError(
            f"the parent of {name!r} in {layer.title} is {strange!r}, but no column of {upper.title} has all the "
            f"parents, each once; its columns are {', '.join(upper.columns)}"
        )
    place = {value: at for at, value in enumerate(found)}
    return np.array([place[text] for text in layer.parents])


def _around(layer: NamedDistricts, upper: NamedDistricts) -> NDArray[np.int64]:
    """The coarser district in which most of each one's area lies; `InputError` if that is less than half."""
    import shapely

    at, above = shapely.STRtree(upper.shapes).query(layer.shapes, predicate="intersects")
    shared = np.zeros((len(layer.names), len(upper.names)))
    shared[at, above] = shapely.area(shapely.intersection(layer.shapes[at], upper.shapes[above], grid_size=GRAIN))
    part = shared.max(axis=1) / shapely.area(layer.shapes)
    if (part < 0.5).any():
        worst = int(np.argmin(part))
        hint = [
            name for name, column in layer.columns.items() for key in upper.columns.values() if set(column) <= set(key)
        ]
        raise InputError(
            f"{layer.names[worst]!r} in {layer.title} lies with only {100 * part[worst]:.3g} % of its area in any one "
            f"district of {upper.title}: name the column of its parents"
            + (f" (it may be {hint[0]!r})" if hint else "")
            + ", or cut it along their borders"
        )
    return np.asarray(shared.argmax(axis=1))
