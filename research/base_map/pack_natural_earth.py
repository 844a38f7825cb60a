"""Packs layers of Natural Earth into the three files of the base map; how and from what: `README.md` beside this file.

    python -m research.base_map.pack_natural_earth MAGICS GPUWM [OUT]

Needs no network. The same sources give the same bytes, as long as shapely's GEOS rounds alike.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyogrio
import shapely

from hazemap.base_map.natural_earth import NamedPoints, Outlines, TileGrid, pack

GRIDS = (TileGrid("10m", 6, 10_000), TileGrid("50m", 30, 2_000), TileGrid("110m", 360, 180))
SIMPLER = {"10m": 0.001, "50m": 0.004, "110m": 0.0}  # degrees that a bend may move
SIMPLER_STATES = 0.003
STATES = {"10m": 9, "50m": 3}  # the last rank of lines within countries that a scale has
PLACES = {"10m": 10, "50m": 4, "110m": 1}  # and of places
LAYERS = ("land", "lakes", "rivers", "borders", "states", "places")
SMALLEST_LAKE = 1e-6  # square degrees: rounding leaves slivers


def main(magics: Path, gpuwm: Path, out: Path) -> None:
    """Write a file for each scale."""
    places = pyogrio.read_dataframe(magics / "10m" / "ne_10m_populated_places_simple.shp")
    states = pyogrio.read_dataframe(magics / "10m" / "ne_10m_admin_1_states_provinces_lines.shp")
    for grid in GRIDS:
        scale = grid.scale
        shapes = physical(scale, magics, gpuwm)
        entries: dict[tuple[str, int, int], Outlines | NamedPoints] = {}
        if scale in STATES:
            kept = (states.featurecla == "Admin-1 boundary") & (states.scalerank <= STATES[scale])
            shapes["states"] = simpler(states.geometry[kept].to_numpy(), max(SIMPLER_STATES, SIMPLER[scale]))
        for layer, geometries in shapes.items():
            for (column, row), outlines in cut(geometries, grid).items():
                entries[layer, column, row] = outlines
        some = places[places.scalerank <= PLACES[scale]].sort_values(["scalerank", "pop_max"], ascending=[True, False])
        entries |= {("places", *tile): named for tile, named in sorted(tiled(some, grid).items())}
        file = pack(grid, LAYERS, entries)
        (out / f"natural_earth_{scale}.tiles").write_bytes(file)
        points = {layer: sum(len(e.points) for (name, *_), e in entries.items() if name == layer) for layer in LAYERS}
        print(scale, f"{len(file):,} bytes, {len(entries):,} entries, points {points}")


def physical(scale: str, magics: Path, gpuwm: Path) -> dict[str, Any]:
    """Land, lakes, rivers and borders of a scale."""
    folder = magics / scale
    if scale == "10m":
        land, lakes = (_shapes(gpuwm / "natural_earth_10m" / f"ne_10m_{layer}.shp") for layer in ("land", "lakes"))
        borders = _shapes(gpuwm / "natural_earth_10m" / "ne_10m_admin_0_boundary_lines_land.shp")
    else:
        # Here lakes are holes in the land, and their islands are land again.
        land = shapely.get_parts(shapely.make_valid(_shapes(folder / f"ne_{scale}_land.shp")))
        holes = [shapely.polygons(hole) for polygon in land for hole in polygon.interiors]
        lakes = shapely.get_parts(shapely.difference(shapely.union_all(holes), shapely.union_all(land)))
        lakes = lakes[shapely.area(lakes) > SMALLEST_LAKE]
        land = shapely.polygons(shapely.get_exterior_ring(land))
        lines = pyogrio.read_dataframe(folder / f"ne_{scale}_admin_0_boundary_lines_land.shp")
        borders = lines.geometry[~lines.featurecla.str.contains("Magics")].to_numpy()
    rivers = pyogrio.read_dataframe(folder / f"ne_{scale}_rivers_lake_centerlines.shp")
    rivers = rivers.geometry[rivers.featurecla != "Lake Centerline"].to_numpy()
    shapes = {"land": land, "lakes": lakes, "rivers": rivers, "borders": borders}
    return {layer: simpler(geometries, SIMPLER[scale]) for layer, geometries in shapes.items()}


def simpler(geometries: Any, tolerance: float) -> Any:
    """Single geometries with fewer bends; none of them lost."""
    parts = shapely.get_parts(geometries[~shapely.is_missing(geometries)])
    return shapely.make_valid(shapely.simplify(parts, tolerance, preserve_topology=True)) if tolerance else parts


def cut(geometries: Any, grid: TileGrid) -> dict[tuple[int, int], Outlines]:
    """What lies in each tile, on the grid's steps."""
    dimension = int(shapely.get_dimensions(geometries).max())
    valid = shapely.make_valid(geometries) if dimension == 2 else geometries
    whole = (-180 // grid.side, -90 // grid.side, -(-180 // grid.side), -(-90 // grid.side))
    return dict(_cut(_parts(valid, dimension), grid, dimension, whole))


def _cut(
    geometries: Any, grid: TileGrid, dimension: int, tiles: tuple[int, int, int, int]
) -> Iterator[tuple[tuple[int, int], Outlines]]:
    """Halves the world until a tile is left: cheaper than cutting a continent for each tile."""
    west, south, east, north = tiles
    box = shapely.box(*(grid.side * edge for edge in tiles))
    inside = _parts(shapely.intersection(geometries[shapely.intersects(geometries, box)], box), dimension)
    if not len(inside):
        return
    if east - west > 1:
        middle = (west + east) // 2
        yield from _cut(inside, grid, dimension, (west, south, middle, north))
        yield from _cut(inside, grid, dimension, (middle, south, east, north))
    elif north - south > 1:
        middle = (south + north) // 2
        yield from _cut(inside, grid, dimension, (west, south, east, middle))
        yield from _cut(inside, grid, dimension, (west, middle, east, north))
    else:
        whole = shapely.union_all(inside, grid_size=1 / grid.steps)
        outlines = _outlines(_parts(whole if dimension == 2 else shapely.line_merge(whole), dimension), grid, dimension)
        if outlines is not None:
            yield (west, south), outlines


def _parts(geometries: Any, dimension: int) -> Any:
    """Single geometries of one dimension."""
    parts = shapely.get_parts(geometries)
    while (shapely.get_type_id(parts) >= 4).any():
        parts = shapely.get_parts(parts)
    return parts[shapely.get_dimensions(parts) == dimension]


def _outlines(parts: Any, grid: TileGrid, dimension: int) -> Outlines | None:
    rings, holes = [], []
    for part in parts:
        for hole, ring in enumerate([part.exterior, *part.interiors] if dimension == 2 else [part]):
            steps = np.rint(shapely.get_coordinates(ring) * grid.steps).astype(np.int64)
            kept = np.append(True, (np.diff(steps, axis=0) != 0).any(axis=1))
            if kept.sum() >= (4 if dimension == 2 else 2):
                rings.append(steps[kept])
                holes.append(hole > 0)
    if not rings:
        return None
    return Outlines(np.concatenate(rings), np.array([len(ring) for ring in rings]), np.array(holes))


def tiled(places: Any, grid: TileGrid) -> dict[tuple[int, int], NamedPoints]:
    """Places by the tile that they lie in, as they are ordered."""
    steps = np.rint(np.stack([places.geometry.x, places.geometry.y], axis=1) * grid.steps).astype(np.int64)
    columns, rows = (steps // (grid.side * grid.steps)).T
    found = {}
    for column, row in sorted(set(zip(columns.tolist(), rows.tolist(), strict=True))):
        here = (columns == column) & (rows == row)
        names = tuple(places.name.to_numpy()[here])
        found[column, row] = NamedPoints(steps[here], places.scalerank.to_numpy()[here], names)
    return found


def _shapes(file: Path) -> Any:
    return pyogrio.read_dataframe(file).geometry.to_numpy()


if __name__ == "__main__":
    package = Path(__file__).parents[2] / "src" / "hazemap" / "base_map"
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]) if len(sys.argv) > 3 else package)
