"""Tables in memory: Arrow tables and streams, pandas, polars, GeoDataFrames and whatever speaks Arrow."""

import json
from typing import Any

from hazemap.errors import TableError
from hazemap.tables.opening.connection import Connection
from hazemap.tables.opening.source import Geometry, Source

NAME = "the table"
POINTS = {"geoarrow.wkb": "WKB", "geoarrow.point": "point"}


def open_frame(connection: Connection, frame: Any) -> Source:
    """The table in an object. Streams that can be read only once are stored, on disk where they are large."""
    import pyarrow
    from pyarrow.dataset import Dataset

    geometry = None
    if hasattr(frame, "to_crs") and hasattr(frame, "geometry"):
        table, geometry = _geodataframe(frame)
    elif type(frame).__module__.startswith("pandas"):
        table = _pandas(frame)
    elif isinstance(frame, pyarrow.RecordBatchReader):
        return _stream(connection, frame)
    elif isinstance(frame, Dataset):
        return _stream(connection, frame.scanner().to_reader())
    elif isinstance(frame, pyarrow.Table):
        table = frame
    elif isinstance(frame, pyarrow.RecordBatch):
        table = pyarrow.Table.from_batches([frame])
    elif hasattr(frame, "to_arrow") and hasattr(frame, "height"):  # polars
        table = frame.to_arrow()
    elif hasattr(frame, "__arrow_c_stream__"):
        return _stream(connection, pyarrow.RecordBatchReader.from_stream(frame))
    else:
        raise TableError(
            f"cannot read a {type(frame).__name__}; pass a path, an Arrow table or stream, or a data frame of"
            " pandas, polars or geopandas"
        )
    geometry = geometry or _geometry(table.schema)
    connection.register("rows", pyarrow.table(_stored(table), schema=_bare(table.schema)))
    return Source(NAME, "rows", connection.kinds("rows", NAME), table.num_rows, geometry)


def _pandas(frame: Any) -> Any:
    import pyarrow

    try:
        return pyarrow.Table.from_pandas(frame, preserve_index=False)
    except (pyarrow.ArrowException, TypeError):
        raise TableError("some column of the data frame holds values of several types; make it one type") from None


def _geodataframe(frame: Any) -> tuple[Any, Geometry]:
    """The other columns, and the points as a struct in WGS 84."""
    import numpy as np
    import pyarrow
    import shapely

    points = frame.geometry
    if points.crs is None:
        raise TableError("the GeoDataFrame does not say its reference system; call set_crs first")
    shapes = np.asarray(points.to_crs("OGC:CRS84"))
    if not np.isin(shapely.get_type_id(shapes), (-1, 0)).all():  # -1: missing
        raise TableError("rows are counted where their point is; the geometries of the GeoDataFrame are not all points")
    xy = pyarrow.StructArray.from_arrays([shapely.get_x(shapes), shapely.get_y(shapes)], ["x", "y"])
    others = [name for name in frame.columns if str(frame[name].dtype) != "geometry"]
    table = _pandas(frame.drop(columns=[name for name in frame.columns if name not in others]))
    return table.append_column(points.name, xy), Geometry(points.name, "point", json.dumps("OGC:CRS84"))


def _stream(connection: Connection, stream: Any) -> Source:
    import pyarrow

    schema = _bare(stream.schema)
    batches = (pyarrow.RecordBatch.from_arrays(_stored(batch), schema=schema) for batch in stream)
    connection.store("rows", pyarrow.RecordBatchReader.from_batches(schema, batches))
    return Source(NAME, "rows", connection.kinds("rows", NAME), None, _geometry(stream.schema))


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
    """The columns of `rows`, those of GeoArrow's types as they are stored."""
    return [
        column.cast(bare.type) if column.type != bare.type else column
        for column, bare in zip(rows.columns, _bare(rows.schema), strict=True)
    ]
