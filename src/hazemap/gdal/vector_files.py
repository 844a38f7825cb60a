"""Layers of points and shapes in files: GeoPackage, FlatGeobuf and shapefile by GDAL, GeoJSON without it.

What a file may cost is bounded by its size: a few bytes can name the same page, or the same shape, millions of times.
Tiles of a map (PMTiles) are not read: they hold pieces of shapes, cut off at their edges, and GDAL unfolds two
megabytes of them to ten gigabytes.

A text in braces may be one of many things to GDAL, so GeoJSON (RFC 7946) of districts and outlines, which are public,
is read whole here; points of people are read feature by feature (`readers.point_files`).

A GeoPackage is an SQLite database, and a database can be a program: a view in it runs a query of its maker's, and so
does a computed column; a virtual table may read other files; and pages that name each other make a small file long.
SQLite looks at it before GDAL does, and stops after as many steps as a file of its size may take.
"""

import io
import json
import os
import re
import sqlite3
import threading
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from hazemap.errors import FileError, HazemapError
from hazemap.files.text_files import read_text
from hazemap.gdal.own_files import CLOSED, real_file, refuse_named_files

if TYPE_CHECKING:
    from geopandas import GeoDataFrame


LINES = (".geojsonl", ".geojsons")
GEOJSON = (".geojson", ".json", *LINES)
LARGEST_GEOJSON = 1 << 30
"""Bytes of a file of GeoJSON, at most: it is read whole."""
_SYSTEM = re.compile(r"(?:urn:ogc:def:crs:)?(?:EPSG::?(\d{4,6})|OGC:(?:1\.3:)?CRS84)", re.IGNORECASE)
"""How files of the time before RFC 7946 name a reference system. PROJ reads files for what is none of these."""


def read_geojson(path: str) -> "GeoDataFrame":
    """The features of a collection, of lines, or a single one; `FileError` for anything else."""
    import geopandas
    import shapely

    text = read_text(path, "the shapes in", LARGEST_GEOJSON)
    try:
        if path.lower().endswith(LINES):
            whole: Any = {"type": "FeatureCollection", "features": [json.loads(line) for line in _lines(text)]}
        else:
            whole = json.loads(text)
        features = _features(whole)
        texts = [None if each.get("geometry") is None else json.dumps(each["geometry"]) for each in features]
        shapes = shapely.from_geojson(texts)
    except (ValueError, RecursionError, shapely.errors.ShapelyError) as error:
        raise FileError(f"{path} cannot be read as GeoJSON: {str(error)[:200]}") from error
    names = dict.fromkeys(name for each in features for name in _properties(each))
    values = {name: [_properties(each).get(name) for each in features] for name in names}
    return geopandas.GeoDataFrame(values, geometry=shapes, crs=_system(path, whole), dtype=object)


def _lines(text: str) -> list[str]:
    return [line for each in text.split("\n") if (line := each.strip("\x1e \t\r"))]


def _features(whole: Any) -> list[dict[str, Any]]:
    """The features of a document; `ValueError` where there are none."""
    match whole:
        case {"type": "FeatureCollection", "features": list(features)}:
            found = features
        case {"type": "Feature"}:
            found = [whole]
        case {"type": str(), "coordinates": list()} | {"type": "GeometryCollection", "geometries": list()}:
            found = [{"type": "Feature", "geometry": whole}]
        case _:
            raise ValueError("it holds no features")
    if not all(isinstance(each, dict) and each.get("type") == "Feature" for each in found):
        raise ValueError("it holds what is no feature")
    return found


def _properties(feature: dict[str, Any]) -> dict[str, Any]:
    """Its properties, and its own `id` where none of them is called so."""
    found = feature.get("properties")
    own = {"id": feature["id"]} if "id" in feature else {}
    return own | (found if isinstance(found, dict) else {})


def _system(path: str, whole: Any) -> str:
    match whole:
        case {"crs": {"type": "name", "properties": {"name": str(name)}}} if found := _SYSTEM.fullmatch(name):
            return f"EPSG:{found[1] or 4326}"
        case {"crs": crs} if crs is not None:
            raise FileError(f"{path} declares a reference system that is not read; convert it to a GeoPackage")
    return "EPSG:4326"


INDEXES = ("rtree", "fts3", "fts4", "fts5")
"""The kinds of virtual tables that index others."""

STEPS = 1 << 24
"""So many steps of SQLite, about a second, are free; a row of a table takes four."""

LONGEST = 1 << 24
"""Bytes of what a GeoPackage says of itself, all tables together."""

_VIRTUAL = re.compile(r"\s*CREATE\s+VIRTUAL\s+TABLE\b.*?\bUSING\s+[\"'`\[]?(\w+)", re.IGNORECASE | re.DOTALL)
_COMPUTED = (2, 3)


def check_geopackage(file: str) -> None:
    """`FileError` where opening a file would run a query of its maker's, or takes longer than its size allows."""
    with _database(file) as base:
        tables = base.execute("SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
        if ("table", "gpkg_contents") not in {(kind, name.lower()) for kind, name, _ in tables}:
            raise FileError(f"{file} is no GeoPackage: it has no table gpkg_contents")
        length = 0
        for kind, name, sql in tables:
            using = _VIRTUAL.match(sql or "")
            if using is not None and using[1].lower() not in INDEXES:
                raise FileError(f"{file} holds the virtual table {name!r}, which may read other files: drop it")
            if not name.lower().startswith("gpkg_"):
                continue
            if kind == "view" or using is not None or _computes(base, name):
                raise FileError(f"{file} is no GeoPackage: {name!r} is not a plain table")
            for row in base.execute(f"SELECT * FROM {_quoted(name)}"):  # noqa: S608 - quoted
                if name.lower() == "gpkg_spatial_ref_sys":
                    for said in row:
                        refuse_named_files(said if isinstance(said, bytes) else str(said).encode(), file)
                length += 8 + sum(len(value) if isinstance(value, str | bytes) else 8 for value in row)
                if length > LONGEST:
                    raise FileError(f"{file} says more of itself than {LONGEST >> 20} MB: copy its layer to a new one")


def check_layer(file: str, layer: str) -> None:
    """`FileError` for a layer that is no table, computes columns, or has more rows than its file can hold.

    GDAL calls the layers of a table or view of two geometries `name (column)`: there is no table of this name.
    """
    with _database(file) as base:
        found = base.execute("SELECT type, sql FROM sqlite_master WHERE name = ? COLLATE NOCASE", [layer]).fetchall()
        if not found:
            raise FileError(f"the layer {layer!r} of {file} is not a plain table: store its rows in one")
        if any(kind != "table" or _VIRTUAL.match(sql or "") for kind, sql in found):
            raise FileError(f"the layer {layer!r} of {file} is a view, which is a query: store its rows in a table")
        if _computes(base, layer):
            raise FileError(f"the layer {layer!r} of {file} computes a column: store its values")
        base.execute(f"SELECT sum(1) FROM {_quoted(layer)} NOT INDEXED").fetchall()  # noqa: S608 - quoted


def _computes(base: sqlite3.Connection, table: str) -> bool:
    return any(hidden in _COMPUTED for *_, hidden in base.execute(f"PRAGMA table_xinfo({_quoted(table)})"))


@contextmanager
def _database(file: str) -> Generator[sqlite3.Connection, None, None]:
    """A database to read, as GDAL will; `FileError` for none, and for one that takes too many steps."""
    log, step = Path(file + "-wal"), 1 << 12
    fixed = "" if log.exists() and log.stat().st_size else "&immutable=1"
    left = (STEPS + 4 * sum(os.stat(each).st_size for each in (file, log) if Path(each).exists())) // step  # noqa: PTH116

    def tired() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    try:
        with closing(sqlite3.connect(f"file:{quote(file)}?mode=ro{fixed}", uri=True)) as base:
            base.set_progress_handler(tired, step)
            base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
            base.execute("PRAGMA trusted_schema = OFF")
            yield base
    except (sqlite3.Error, UnicodeError) as error:
        why = "its tables are longer than a file of its size can hold" if left < 0 else "it is damaged"
        raise FileError(f"{file} cannot be read: {why}, or it is not of the kind that its name says") from error


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


BATCH = 1 << 16
MOST_TIMES, FREE = 1_000, 1 << 26
"""Beyond so many bytes, what is read of a layer is at most so many times as long as its file."""


class VectorFormat(NamedTuple):
    """How files of a format begin, and how the names of those end that belong to one."""

    begins: bytes
    companions: tuple[str, ...] = ()


FORMATS = {
    ".gpkg": VectorFormat(b"SQLite format 3\0", ("-wal", "-shm", "-journal")),
    ".fgb": VectorFormat(b"fgb"),
    ".shp": VectorFormat(b"\0\0\x27\x0a", (".dbf", ".shx", ".prj", ".cpg", ".cst", ".qix", ".sbn", ".ldid")),
}


class Layer(NamedTuple):
    """What a layer declares, and its rows in batches of Arrow."""

    about: dict[str, Any]
    schema: Any
    batches: Iterator[Any]


def layers_in(path: str) -> list[str]:
    """The names of a file's layers; `FileError` for one that cannot be read, or holds none."""
    from pyogrio import list_layers

    with _opened(path) as file:
        found = [str(name) for name, _ in list_layers(file)]
    if not found:
        raise FileError(f"{path} holds no layer: it is empty or damaged")
    return found


@contextmanager
def open_layer(
    path: str, layer: str | None = None, columns: Sequence[str] | None = None, geometry: bool = True
) -> Generator[Layer, None, None]:
    """A layer, or the first, with these columns, or all. Memory is O(1): GDAL reads ahead by one batch.

    `FileError` for a file that cannot be read, is not what its name says, or holds more than its size allows.
    """
    from pyogrio.raw import open_arrow

    with _opened(path) as file:
        layer = layers_in(path)[0] if layer is None else layer
        if path.lower().endswith(".gpkg"):
            check_layer(file, layer)
        options = {"columns": columns, "read_geometry": geometry, "batch_size": BATCH, "use_pyarrow": True}
        with open_arrow(file, layer=layer, **options) as (about, rows):
            yield Layer(about, rows.schema, _bounded(rows, path))


def read_shapes(path: str | os.PathLike[str]) -> "GeoDataFrame":
    """The shapes of a file's first layer, with their columns as they are; `FileError` for what cannot be read."""
    import geopandas
    import pyarrow
    import shapely

    name = os.fspath(path)
    if not Path(name).is_file():
        raise FileError(f"there is no file {name}")
    if name.lower().endswith(GEOJSON):
        return read_geojson(name)
    layers = layers_in(name)
    shaped = [layer for layer in layers if layer != "layer_styles"]
    if len(shaped) != 1:
        raise FileError(f"{name} has several layers ({', '.join(layers)}): write the one to a file of its own")
    with open_layer(name, shaped[0]) as found:
        table = pyarrow.Table.from_batches(found.batches, found.schema)
        column, crs = found.about["geometry_name"] or "wkb_geometry", found.about["crs"]
    if found.about["geometry_type"] is None or column not in table.column_names:
        raise FileError(f"{name} holds no shapes")
    try:
        shapes = shapely.from_wkb(table[column].to_pylist())
    except shapely.errors.ShapelyError as error:
        raise FileError(f"{name} holds shapes that are damaged, or curves: {error}") from error
    try:
        values = {each: table[each].to_pylist() for each in table.column_names if each != column}
    except UnicodeDecodeError as error:
        raise FileError(f"{name} holds text in another encoding than it declares: {error}") from error
    return geopandas.GeoDataFrame(values, geometry=shapes, crs=crs, dtype=object)


def write_layer(frame: "GeoDataFrame", driver: str, layer: str, **options: Any) -> bytes:
    """A layer in any of GDAL's formats, made in memory; `RuntimeError` or `ValueError` says what GDAL says."""
    import pyogrio

    made = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "'crs' was not provided")  # a plane has none
        pyogrio.write_dataframe(frame, made, driver=driver, layer=layer, **options)
    return made.getvalue()


@contextmanager
def _opened(path: str) -> Generator[str, None, None]:
    """The real path of a file that GDAL may open, which fetches nothing for as long as this lasts."""
    kind = FORMATS.get(Path(path).suffix.lower())
    if kind is None:
        raise FileError(
            f"the name of {path} ends in none of {', '.join((*GEOJSON, *FORMATS))}: convert it to one of these"
        )
    file = real_file(path, [kind.begins], kind.companions)
    if path.lower().endswith(".gpkg"):
        check_geopackage(file)
    else:
        refuse_named_files(_system_of(Path(file)), path)
    with _CLOSED:
        try:
            yield file
        except HazemapError:
            raise
        except (RuntimeError, ValueError, OSError, UnboundLocalError) as error:  # what pyogrio makes of GDAL's errors
            raise FileError(f"{path} cannot be read: it is damaged, or not of the kind that its name says") from error


def _system_of(file: Path) -> bytes:
    """What says the reference system of a shapefile or a FlatGeobuf: the file beside it, or its first bytes."""
    if file.suffix.lower() == ".fgb":
        with file.open("rb") as begin:
            return begin.read(1 << 20)
    beside = [file.with_suffix(ending) for ending in (".prj", ".PRJ")] if file.suffix.lower() == ".shp" else []
    return b"".join(each.read_bytes() for each in beside if each.is_file())


def _bounded(batches: Any, path: str) -> Iterator[Any]:
    """Batches, until they are longer than a file of this size can be; `ValueError` for one that is not whole."""
    left = max(FREE, MOST_TIMES * os.stat(path).st_size)  # noqa: PTH116 - a path as text
    for batch in batches:
        left -= batch.nbytes
        if left < 0:
            raise FileError(f"{path} cannot be read: its rows are longer than a file of its size can hold")
        for column in batch.columns:
            _check_ends(getattr(column, "storage", column))
        yield batch


def _check_ends(column: Any) -> None:
    """`ValueError` where a text or a shape ends elsewhere than in what was read.

    GDAL leaves off in the middle of a batch at a FlatGeobuf's broken shape, and whoever believed the rest would read
    beyond its memory. Texts are compared as bytes: what of one is no letter is its own row's.
    """
    import pyarrow
    from pyarrow import types

    if types.is_string(column.type) or types.is_large_string(column.type):
        column = column.view(pyarrow.binary() if types.is_string(column.type) else pyarrow.large_binary())
    if types.is_binary(column.type) or types.is_large_binary(column.type):
        column.validate(full=True)


class _ClosedDoors:
    """While anybody reads, GDAL has the settings of `CLOSED`; after the last, those that it had before."""

    def __init__(self) -> None:
        self._lock, self._inside, self._before = threading.Lock(), 0, dict[str, Any]()

    def __enter__(self) -> None:
        from pyogrio import get_gdal_config_option, set_gdal_config_options

        with self._lock:
            if not self._inside:
                self._before = {name: get_gdal_config_option(name) for name in CLOSED}
                set_gdal_config_options(CLOSED)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        from pyogrio import set_gdal_config_options

        with self._lock:
            self._inside -= 1
            if not self._inside:
                set_gdal_config_options(self._before)


_CLOSED = _ClosedDoors()
