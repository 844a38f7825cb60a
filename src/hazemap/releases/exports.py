"""Exports for other tools: what each format can carry of a release and its statement."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hazemap.errors import FileError
from hazemap.files.atomic_write import write_whole
from hazemap.gdal.vector_files import write_layer
from hazemap.releases.pmtiles_archive import archive
from hazemap.releases.text_tables import write_csv
from hazemap.releases.vector_tiles import FARTHEST, tiles
from hazemap.spatial.plane import plane_of, refuse_plane

if TYPE_CHECKING:
    from hazemap.releases.base_release import BaseRelease
    from hazemap.releases.gis.layer_styles import LayerStyle

LAYER = "hazemap"
DEEPEST_TILES = 14
MOST_TILES = 1 << 14
"""Of the finest zoom, about: a country whose finest cells are 300 m wide would need millions."""

NO_EMPTY = ("FlatGeobuf",)
"""Formats that cannot hold a cell without ground, of which nothing can be seen."""


def total_path(path: Path) -> Path:
    """Where all slots together are written, beside the slots: sums over either file count everybody once.

    >>> total_path(Path("maps/hours.gpkg")).name
    'hours.total.gpkg'
    """
    return path.with_name(f"{path.stem}.total{path.suffix}")


def export(release: "BaseRelease", path: Path, pixel: float | None, column: str | None) -> None:
    """Write by suffix, whole or not at all; `FileError` for a suffix that is none of these.

    Of a release with slots their total is written too, into a file of its own (`total_path`).
    """
    writers: dict[str, Callable[[BaseRelease, Path], None]] = {
        ".geojson": _geojson,
        ".gpkg": _geopackage,
        ".fgb": _flatgeobuf,
        ".pmtiles": _tiles,
        ".csv": _csv,
        ".qml": _qml,
        ".sld": _sld,
    }
    if release.total_release is not None and path.suffix.lower() not in (".qml", ".sld"):
        export(release.total_release, total_path(path), pixel, column)
    suffix = path.suffix.lower()
    if suffix in (".geojson", ".pmtiles", ".tif"):
        refuse_plane(release.cells.tree, suffix)
    if suffix == ".tif":
        from hazemap.releases.geotiff import rasterise

        return rasterise(release, path, pixel, column)
    if pixel is not None:
        raise FileError(f"only a .tif has pixels; {suffix or 'this file'} takes the cells as they are")
    if column is not None:
        raise FileError(f"only a .tif holds one column; {suffix or 'this file'} holds them all")
    if suffix not in writers:
        raise FileError(f"the name of an export must end in {', '.join(writers)} or .tif; found {str(path)!r}")
    return writers[suffix](release, path)


def _geojson(release: "BaseRelease", path: Path) -> None:
    """RFC 7946 (7 decimals, 1 cm); the statement is a foreign member of the collection."""
    members = {"type": "FeatureCollection", "statement": release.statement.to_json()}
    options = {"NATIVE_DATA": json.dumps(members), "NATIVE_MEDIA_TYPE": "application/vnd.geo+json"}
    write_whole(
        path, _vectors(release, path, "GeoJSON", RFC7946="YES", DESCRIPTION=release.statement.line(), **options)
    )


def _geopackage(release: "BaseRelease", path: Path) -> None:
    """The statement is the layer's description, and whole in its metadata; styles are in a table that QGIS reads."""
    from hazemap.releases.gis.style_files import with_styles

    statement = release.statement
    metadata = {"statement": json.dumps(statement.to_json(), ensure_ascii=False)}
    made = _vectors(release, path, "GPKG", DESCRIPTION=statement.line(), layer_metadata=metadata)
    styles = _styles(release)
    write_whole(path, with_styles(made, LAYER, styles, statement.line(), statement.created))


def _flatgeobuf(release: "BaseRelease", path: Path) -> None:
    """The statement is the description."""
    title, line = release.statement.dataset, release.statement.line()
    write_whole(path, _vectors(release, path, "FlatGeobuf", TITLE=title, DESCRIPTION=line))


def _tiles(release: "BaseRelease", path: Path) -> None:
    """Vector tiles down to the zoom where the finest cell is 8 pixels wide. Coarser zooms leave out what is tiny."""
    import shapely

    west, _, east, _ = release.ground.bounds
    around = 2 * np.pi * 6356752  # metres
    finest = float(np.log2(around / np.nanmin(east - west)))  # the level of a world quadtree with such cells
    affordable = np.log2(MOST_TILES * around**2 / max(np.nansum(release.ground.areas), 1.0)) / 2
    zoom = int(np.clip(min(np.ceil(finest) - 5, np.floor(affordable)), 0, DEEPEST_TILES))
    shapes, columns, statement = release.outlines(), release.columns(), release.statement
    seen = ~shapely.is_empty(shapes)
    columns = {name: column[seen] for name, column in columns.items()}
    kinds = {"O": "String", "b": "Boolean"}
    fields = {name: kinds.get(column.dtype.kind, "Number") for name, column in columns.items()}
    made = list(tiles(LAYER, shapes[seen], columns, zoom))
    if not made:
        raise FileError(
            "no cell of this release lies on a web map, which ends at 85° of latitude: export it as .geojson"
        )
    coarsest = min(tile.zoom for tile in made)
    metadata = {
        "name": statement.dataset,
        "description": statement.line(),
        "vector_layers": [{"id": LAYER, "fields": fields, "minzoom": coarsest, "maxzoom": zoom, "description": ""}],
    }
    west, south, east, north = release.ground.extent
    write_whole(path, archive(made, metadata, (west, max(south, -FARTHEST), east, min(north, FARTHEST))))


def _vectors(release: "BaseRelease", path: Path, driver: str, **options: Any) -> bytes:
    """Any vector format of GDAL: made in memory, so that a full disk is noticed and it can be written whole."""
    frame = release.to_geodataframe()
    if driver in NO_EMPTY:
        frame = frame[~frame.geometry.is_empty]
    try:
        return write_layer(frame, driver, LAYER, **options)
    except (RuntimeError, ValueError) as error:  # what pyogrio makes of GDAL's errors
        raise FileError(f"{path} could not be written; GDAL says: {error}. Try another format") from error


def _csv(release: "BaseRelease", path: Path) -> None:
    """Plain columns, so that every tool reads it; the statement stands beside it in its own file."""
    import shapely

    outlines = release.outlines()
    points = shapely.point_on_surface(outlines)
    points[shapely.is_empty(points)] = shapely.Point(np.nan, np.nan)  # of cells without ground
    across, up = ("x", "y") if plane_of(release.cells.tree) else ("lon", "lat")
    frame = release.to_dataframe().assign(**{across: shapely.get_x(points), up: shapely.get_y(points)})
    frame["geometry"] = shapely.to_wkt(outlines, rounding_precision=7)
    write_csv(frame, release.statement, path, ours=("geometry",))


def _styles(release: "BaseRelease") -> "list[LayerStyle]":
    """Those that can be written down: names of slots and marks may hold what XML cannot."""
    return [style for style in release.layer_styles() if style.writable]


def _qml(release: "BaseRelease", path: Path) -> None:
    """The default style, for QGIS."""
    from hazemap.releases.gis.style_files import qml

    write_whole(path, qml(_first(release)).encode())


def _sld(release: "BaseRelease", path: Path) -> None:
    """The default style, for all else."""
    from hazemap.releases.gis.style_files import sld

    write_whole(path, sld(_first(release), path.stem).encode())


def _first(release: "BaseRelease") -> "LayerStyle":
    styles = _styles(release)
    if not styles:
        raise FileError("a name in this release holds control codes, so no style can be written for it")
    return styles[0]
