"""Layers of points and shapes in files: GeoPackage, FlatGeobuf and shapefile by GDAL, GeoJSON without it.

What a file may cost is bounded by its size: a few bytes can name the same page, or the same shape, millions of times.
Tiles of a map (PMTiles) are not read: they hold pieces of shapes, cut off at their edges, and GDAL unfolds two
megabytes of them to ten gigabytes.
"""

import io
import os
import threading
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hazemap.errors import FileError, HazemapError
from hazemap.gdal.geojson_shapes import GEOJSON, read_geojson
from hazemap.gdal.geopackage_schema import check_geopackage, check_layer
from hazemap.gdal.own_files import CLOSED, real_file, refuse_named_files

if TYPE_CHECKING:
    from geopandas import GeoDataFrame

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
