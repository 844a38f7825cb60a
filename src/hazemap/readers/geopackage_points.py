"""Points in GeoPackage and FlatGeobuf, read by GDAL in batches; each layer declares the types of its columns."""

import json
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hazemap.engines.duckdb_connection import DuckDBConnection
from hazemap.engines.table_source import FED, Geometry, SourcePart, TableSource
from hazemap.errors import TableError
from hazemap.gdal import vector_files
from hazemap.readers.value_coercion import sound
from hazemap.sources.source import Files, LocalFiles

VECTORS = (".gpkg", ".fgb")
POINTS = {
    *(f"{several}Point{more}" for several in ("", "Multi") for more in ("", " Z", " M", " ZM")),
    *("2.5D Point", "3D Point", "2.5D MultiPoint", "3D MultiPoint", "Unknown", "Geometry", "3D Geometry"),
}
"""Types of geometry that a layer may declare. In one of any type, what is no point is nowhere."""


@dataclass(frozen=True)
class VectorLayer:
    """A layer of a file: the columns that it declares, and its points as well-known binary."""

    file: str
    layer: str | None
    columns: tuple[str, ...]
    geometry: str | None

    def batches(self, columns: Sequence[str]) -> Generator[Any, None, None]:
        """Arrow record batches of these columns. Memory is O(1): GDAL reads ahead by one batch."""
        import pyarrow

        others = [name for name in dict.fromkeys(columns) if name != self.geometry]
        with vector_files.open_layer(self.file, self.layer, others, self.geometry in columns) as (about, _, rows):
            names = {about["geometry_name"] or "wkb_geometry": self.geometry}
            for batch in rows:
                found = {names.get(name, name): column for name, column in zip(batch.schema.names, batch, strict=True)}
                yield pyarrow.RecordBatch.from_arrays([_plain(found[name]) for name in columns], names=list(columns))


def open_layer(connection: DuckDBConnection, name: str, file: str, layer: str | None) -> TableSource:
    """The points of a layer, which must be named where a file has several; errors are about what the file declares."""
    import pyarrow

    layers = vector_files.layers_in(file)
    if layer is None and len(layers) > 1:
        raise TableError(f"{file} has several layers; say which as in {file}:{layers[0]} ({', '.join(layers)})")
    if layer is not None and layer not in layers:
        raise TableError(f"{file} has no layer {layer!r}; it has {', '.join(layers)}")
    with vector_files.open_layer(file, layer) as (about, schema, _):
        pass
    declared, crs = about["geometry_type"], about["crs"]
    if declared is not None and declared not in POINTS:
        raise TableError(f"rows are counted where their point is; {name} declares that it holds {declared}")
    if declared is not None and crs is None:
        raise TableError(f"{name} does not say the reference system of its points; set it")
    stored = about["geometry_name"] or "wkb_geometry"
    column = None if declared is None else _free("geometry", schema.names)
    kinds = connection.kinds_of(
        pyarrow.schema(
            [(field.name, getattr(field.type, "storage_type", field.type)) for field in schema if field.name != stored]
        ),
        name,
    )
    if column is not None:
        kinds[column] = "BLOB"
    geometry = None if column is None else Geometry(column, "WKB", json.dumps(crs))
    feed = VectorLayer(file, layer, tuple(kinds), column)
    return TableSource(name, (SourcePart(FED, kinds, feed),), None, geometry)


def layer_of(files: Files) -> tuple[Files, str | None]:
    """The file and the layer in `file.gpkg:layer`.

    >>> layer_of(LocalFiles("nowhere.gpkg:visits"))
    (LocalFiles(path='nowhere.gpkg'), 'visits')
    """
    if isinstance(files, LocalFiles) and not Path(files.path).exists():
        file, _, layer = files.path.rpartition(":")
        if file.lower().endswith(VECTORS):
            return LocalFiles(file), layer
    return files, None


def _free(name: str, names: Sequence[str]) -> str:
    while name in names:
        name += "_"
    return name


def _plain(column: Any) -> Any:
    stored = getattr(column, "storage", column)
    return sound(stored.dictionary_decode() if hasattr(stored, "dictionary_decode") else stored)
