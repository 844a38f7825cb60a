"""Tables in memory: Arrow tables and streams, pandas, polars, GeoDataFrames and whatever speaks Arrow."""

import json
from typing import Any

from hazemap.engines.duckdb_connection import DuckDBConnection
from hazemap.engines.table_source import Geometry, SourcePart, TableSource
from hazemap.errors import TableError
from hazemap.readers.invalid_values import sound
from hazemap.readers.pandas_frames import NAME, open_pandas

POINTS = {"geoarrow.wkb": "WKB", "geoarrow.point": "point"}


def open_frame(connection: DuckDBConnection, frame: Any) -> TableSource:
    """The table in an object. Streams that can be read only once are stored, on disk where they are large."""
    import pyarrow
    from pyarrow.dataset import Dataset

    if hasattr(frame, "to_crs") and hasattr(frame, "geometry"):
        return _geodataframe(connection, frame)
    if type(frame).__module__.startswith("pandas"):
        return open_pandas(connection, frame)
    if isinstance(frame, pyarrow.RecordBatchReader):
        return _stream(connection, frame)
    if isinstance(frame, Dataset):
        return _stream(connection, frame.scanner().to_reader())
    if isinstance(frame, pyarrow.Table):
        table = frame
    elif isinstance(frame, pyarrow.RecordBatch):
        table = pyarrow.Table.from_batches([frame])
    elif hasattr(frame, "to_arrow") and hasattr(frame, "height"):  # polars
        table = frame.drop([name for name, kind in frame.schema.items() if str(kind) == "Object"]).to_arrow()
    elif hasattr(frame, "__arrow_c_stream__"):
        return _stream(connection, pyarrow.RecordBatchReader.from_stream(frame))
    else:
        raise TableError(
            f"cannot read a {type(frame).__name__}; pass a path, an Arrow table or stream, or a data frame of"
            " pandas, polars or geopandas"
        )
    geometry = _geometry(table.schema)
    connection.register("rows", pyarrow.table(_stored(table), schema=_bare(table.schema)))
    return TableSource(NAME, (SourcePart("rows", connection.kinds("rows", NAME)),), table.num_rows, geometry)


def _geodataframe(connection: DuckDBConnection, frame: Any) -> TableSource:
    """The other columns, and the points as a struct in WGS 84; a shape that is no point is nowhere."""
    import numpy as np
    import pyarrow
    import shapely

    points = frame.geometry
    if points.crs is None:
        raise TableError("the GeoDataFrame does not say its reference system; call set_crs first")
    shapes = np.asarray(points.to_crs("OGC:CRS84")).copy()
    shapes[shapely.is_empty(shapes)] = None  # GEOS has no x for them
    xy = pyarrow.StructArray.from_arrays([shapely.get_x(shapes), shapely.get_y(shapes)], ["x", "y"])
    others = frame.drop(columns=[name for name in frame.columns if str(frame[name].dtype) == "geometry"])
    geometry = Geometry(str(points.name), "point", json.dumps("OGC:CRS84"))
    return open_pandas(connection, others, {str(points.name): xy}, geometry)


def _stream(connection: DuckDBConnection, stream: Any) -> TableSource:
    import pyarrow

    schema = _bare(stream.schema)
    batches = (pyarrow.RecordBatch.from_arrays(_stored(batch), schema=schema) for batch in stream)
    connection.store("rows", pyarrow.RecordBatchReader.from_batches(schema, batches))
    return TableSource(NAME, (SourcePart("rows", connection.kinds("rows", NAME)),), None, _geometry(stream.schema))


def _geometry(schema: Any) -> Geometry | None:
    """The one column of points that says so as GeoArrow does."""
    found = [(field.name, *_geoarrow(field)) for field in schema if _geoarrow(field)[0] in POINTS]
    if len(found) != 1:
        return None
    column, name, about = found[0]
    crs = json.loads(about or "{}").get("crs")
    if crs is None:
        raise TableError(f"the points in column {column!r} do not say their reference system; pass --lon and --lat")
    return Geometry(column, POINTS[name], json.dumps(crs, sort_keys=True))


def _geoarrow(field: Any) -> tuple[str, str]:
    """The name and the metadata of a field's extension type, known to pyarrow or not."""
    name = getattr(field.type, "extension_name", "")
    if name in POINTS:
        return name, field.type.__arrow_ext_serialize__().decode()
    about = field.metadata or {}
    return (about.get(b"ARROW:extension:name", b"").decode(), about.get(b"ARROW:extension:metadata", b"").decode())


def _bare(schema: Any) -> Any:
    """The schema with GeoArrow's types as the plain types that store them."""
    import pyarrow

    return pyarrow.schema(
        pyarrow.field(field.name, getattr(field.type, "storage_type", field.type))
        if _geoarrow(field)[0] in POINTS
        else field
        for field in schema
    )


def _stored(rows: Any) -> list[Any]:
    """The columns of `rows`, those of GeoArrow's types as they are stored, with sound values alone."""
    return [
        sound(column.cast(bare.type) if column.type != bare.type else column)
        for column, bare in zip(rows.columns, _bare(rows.schema), strict=True)
    ]
