"""Regions as weights of cells: the fraction of each cell that a question is about.

A person is somewhere in what their cell owns, and the file does not know where. A cell that the border of a
region cuts gives as much of its number as of its area lies inside; nothing else is assumed.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Cells, Leaves
from hazemap.errors import InputError
from hazemap.machine_code.arrays import Floats
from hazemap.releases.cell_geometry import CellGeometry, NearPieces, equal_area
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.plane import plane_of

Region = Any
"""A `Box`, a shapely polygon or multipolygon, anything with `__geo_interface__`, a GeoJSON mapping, the name
of a cell of any level, or several names. Polygons are in degrees (WGS 84), their edges straight in degrees."""


@runtime_checkable
class PlacedRegion(Protocol):
    """A tree that knows places by name which are no cells of it: the cities in a county that was cut another way."""

    def place(self, name: str) -> tuple[Any, Cells] | None:
        """The outline of such a place, and the one cell around it; None for any other name."""


SLIVER = 1e-9
"""An overlap below this part of the cell and of the region is rounding: borders that coincide cut no cells."""


def shares_in(ground: CellGeometry, region: Region) -> Floats:
    """The share of each cell that lies in a region, float64[cells].

    `InputError` for what is no region.
    """
    if isinstance(region, Box):
        return _in_box(ground, region)
    if isinstance(region, str):
        return _in_names(ground, [region])
    if hasattr(region, "geom_type"):
        return _in_polygon(ground, region)
    if isinstance(region, Mapping) or hasattr(region, "__geo_interface__"):
        return _in_polygon(ground, _geometry(region if isinstance(region, Mapping) else region.__geo_interface__))
    if isinstance(region, Iterable) and (names := list(region)) and all(isinstance(n, str) for n in names):
        return _in_names(ground, names)
    raise InputError(
        "a region is a Box, a polygon in degrees (shapely or GeoJSON), or names of cells;"
        f" found a {type(region).__name__}"
    )


def weights(ground: CellGeometry, region: Region) -> Floats:
    """The share of each cell that lies in a region, float64[cells]; `InputError` if none does."""
    shares = shares_in(ground, region)
    if not shares.any():
        west, south, east, north = ground.extent
        raise InputError(
            f"this region lies outside the map, which covers {west:.6g},{south:.6g},{east:.6g},{north:.6g}"
            f" ({'x,y,x,y' if plane_of(ground.leaves.tree) else 'west,south,east,north in degrees'})"
        )
    return shares


def _shares(ground: CellGeometry, near: NearPieces, inside: Floats, region: float) -> Floats:
    """From the area of some pieces inside a region, and of all of it, to the share of what each cell owns."""
    shares, areas = np.zeros(ground.leaves.size), ground.areas_of(near)
    real = inside > SLIVER * np.minimum(areas, region)
    if ground.owns_one_piece_each:
        shares[near.owner[real]] = inside[real] / areas[real]
    else:
        np.add.at(shares, near.owner[real], inside[real])
        cells = np.flatnonzero(shares)
        shares[cells] /= ground.owned[cells]
    shares[shares > 1 - SLIVER] = 1
    return shares


def _in_box(ground: CellGeometry, box: Box) -> Floats:
    low, high = ground.flat(np.array([[box.west, box.south], [box.east, box.north]]))
    if not ground.rectangles:
        import shapely

        return _in_flat(ground, shapely.box(*low, *high))
    near = ground.near(low, high)
    west, south, east, north = near.bounds
    sides = (
        np.minimum(east, high[0]) - np.maximum(west, low[0]),
        np.minimum(north, high[1]) - np.maximum(south, low[1]),
    )
    return _shares(ground, near, sides[0] * sides[1], float((high - low).prod()))


def _in_polygon(ground: CellGeometry, shape: Any) -> Floats:
    import shapely

    if shape.geom_type not in ("Polygon", "MultiPolygon") or shape.is_empty:
        raise InputError(
            f"a region is a polygon or a multipolygon with an area; found a {shape.geom_type}"
            + (" that is empty" if shape.is_empty else "")
        )
    west, south, east, north = shape.bounds
    if not plane_of(ground.leaves.tree) and not (-180 <= west <= east <= 180 and -90 <= south <= north <= 90):
        raise InputError(
            "a region is in degrees of longitude and latitude (WGS 84, EPSG:4326); this one runs over"
            f" {west:.6g},{south:.6g},{east:.6g},{north:.6g}: transform it first"
        )
    if not shape.is_valid:
        raise InputError("the rings of this polygon cross or overlap each other: mend it with shapely.make_valid")
    if plane_of(ground.leaves.tree):
        return _in_flat(ground, shape)
    # Edges are straight in degrees; in the equal-area plane only short ones are.
    flat = shapely.transform(shapely.segmentize(shape, 0.25), equal_area)
    return _in_flat(ground, shapely.make_valid(flat, method="structure", keep_collapsed=False))


def _in_flat(ground: CellGeometry, region: Any) -> Floats:
    """The share of each cell in a region of the equal-area plane."""
    import shapely

    corners = np.array(region.bounds)
    near = ground.near(corners[:2], corners[2:])
    shapes, inside = ground.shapes(near), ground.areas_of(near).copy()
    shapely.prepare(region)
    cut = ~shapely.covers(region, shapes)
    inside[cut] = _shared(region, shapes[cut], near.bounds.T[cut])
    return _shares(ground, near, inside, region.area)


def _shared(region: Any, shapes: NDArray[Any], bounds: Floats) -> Floats:
    """The area of each shape inside a region: where both are large, the region is cut in halves first."""
    import shapely

    if len(shapes) <= 8 or shapely.get_num_coordinates(region) <= 64:
        shared: Floats = shapely.area(shapely.intersection(region, shapes))
        return shared
    extent = np.hstack([bounds[:, :2].min(axis=0), bounds[:, 2:].max(axis=0)])
    axis = int(extent[3] - extent[1] > extent[2] - extent[0])
    order = np.argsort(bounds[:, axis] + bounds[:, axis + 2], kind="stable")
    shared = np.empty(len(shapes))
    for half in np.array_split(order, 2):
        box = shapely.box(*bounds[half, :2].min(axis=0), *bounds[half, 2:].max(axis=0))
        shared[half] = _shared(shapely.intersection(region, box), shapes[half], bounds[half])
    return shared


def _in_names(ground: CellGeometry, names: list[str]) -> Floats:
    """Cells, and places that are none: of those, only the cells in the one around them are looked at."""
    import shapely

    tree = ground.leaves.tree
    places = [tree.place(name) if isinstance(tree, PlacedRegion) else None for name in names]
    cells = [name for name, place in zip(names, places, strict=True) if place is None]
    shares = _in_cells(ground, cells) if cells else np.zeros(ground.leaves.size)
    shapes: dict[int, list[Any]] = {}
    for outline, around in filter(None, places):
        shapes.setdefault(int(around[0]), []).append(outline)
    for cell, outlines in shapes.items():
        first, last = tree.span(np.array([cell], dtype=np.uint64))
        near = np.flatnonzero((ground.leaves.spans[0] >= first) & (ground.leaves.spans[1] <= last))
        part = CellGeometry(Leaves(tree, ground.leaves.cells[near]))
        shares[near] = np.maximum(shares[near], _in_polygon(part, shapely.union_all(outlines)))
    return shares


def _in_cells(ground: CellGeometry, names: list[str]) -> Floats:
    """Cells of any level: leaves inside count whole; the leaf around gives the share that is free for them."""
    leaves, tree = ground.leaves, ground.leaves.tree
    asked = Leaves(tree, np.unique(tree.named(names)))
    asked = Leaves(tree, asked.cells[asked.holder < 0])  # a cell inside another adds nothing to it
    first, last = (np.sort(ends) for ends in asked.spans)
    low, high = leaves.spans
    near = np.flatnonzero(np.searchsorted(first, high, "right") > np.searchsorted(last, low, "left"))
    # Among leaves and asked cells together, an asked cell owns what the leaf around it has free inside it.
    both = Leaves(tree, np.union1d(leaves.cells[near], asked.cells))
    held, holder = np.isin(both.cells, asked.cells), both.holder
    while (reached := held | (held[holder] & (holder >= 0))).sum() > held.sum():
        held = reached
    shares = np.zeros(leaves.size)
    shares[near] = held[np.searchsorted(both.cells, leaves.cells[near])]
    parts = np.flatnonzero(np.isin(both.cells, asked.cells) & (holder >= 0) & (both.areas > 0))
    parts = parts[~np.isin(both.cells[parts], leaves.cells)]
    sorter = near[np.argsort(leaves.cells[near])]
    around = sorter[np.searchsorted(leaves.cells[sorter], both.cells[holder[parts]])]
    np.add.at(shares, around, both.areas[parts] / leaves.areas[around])
    return shares


def _geometry(data: Mapping[str, Any]) -> Any:
    """A GeoJSON geometry, feature or collection of features as one shapely geometry."""
    import shapely
    from shapely.geometry import shape

    try:
        match data.get("type"):
            case "FeatureCollection":
                return shapely.union_all([_geometry(feature) for feature in data["features"]])
            case "Feature":
                return _geometry(data["geometry"])
            case _:
                return shape(data)
    except (AttributeError, KeyError, TypeError, ValueError, shapely.errors.ShapelyError) as error:
        raise InputError(f"this mapping is not GeoJSON with polygons: {type(error).__name__}") from error
