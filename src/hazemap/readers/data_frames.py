"""Tables in memory: Arrow tables and streams, pandas, polars, GeoDataFrames and whatever else exports Arrow."""

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hazemap.engines.duckdb_connection import BATCH, DuckDBConnection
from hazemap.engines.table_source import FED, Geometry, SourcePart, TableSource, named_numbers
from hazemap.errors import TableError
from hazemap.readers.column_roles import refuse_repeated_names
from hazemap.readers.value_coercion import numbers_of, sound, text_of

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
        table = _of_polars(frame)
    elif hasattr(frame, "__arrow_c_stream__"):
        return _stream(connection, pyarrow.RecordBatchReader.from_stream(frame))
    else:
        raise TableError(
            f"cannot read a {type(frame).__name__}; pass a path, an Arrow table or stream, or a data frame of"
            " pandas, polars, geopandas or Spark"
        )
    refuse_repeated_names(table.schema.names, NAME)
    known = connection.kinds_of(_bare(table.schema), NAME)
    kinds, table = _all_kinds(table.schema, known), table.select(list(known))
    connection.register("rows", pyarrow.table(_stored(table), schema=_bare(table.schema)))
    return TableSource(NAME, (SourcePart("rows", kinds),), table.num_rows, _geometry(table.schema))


def _of_polars(frame: Any) -> Any:
    """The columns of types that Arrow has, too."""
    import pyarrow

    columns = {}
    for name, kind in frame.schema.items():
        if str(kind) != "Object":
            with suppress(pyarrow.ArrowException):
                columns[name] = frame.select(name).to_arrow().column(0)
    return pyarrow.table(columns)


def _geodataframe(connection: DuckDBConnection, frame: Any) -> TableSource:
    """The other columns, and the points as a struct in WGS 84; a shape that is no point is nowhere."""
    import pyarrow
    import shapely
    from pyproj.exceptions import ProjError

    points = frame.geometry
    if points.crs is None:
        raise TableError("the GeoDataFrame does not say its reference system; call set_crs first")
    try:
        shapes = np.asarray(points.to_crs("OGC:CRS84")).copy()
    except ProjError:
        raise TableError("no way is known from the reference system of the points to degrees: convert them") from None
    shapes[shapely.is_empty(shapes)] = None  # GEOS has no x for them
    alone = (shapely.get_type_id(shapes) == shapely.GeometryType.MULTIPOINT) & (shapely.get_num_geometries(shapes) == 1)
    shapes[alone] = shapely.get_geometry(shapes[alone], 0)
    shapes[shapely.is_empty(shapes)] = None
    xy = pyarrow.StructArray.from_arrays([shapely.get_x(shapes), shapely.get_y(shapes)], ["x", "y"])
    others = frame.drop(columns=[name for name in frame.columns if str(frame[name].dtype) == "geometry"])
    geometry = Geometry(str(points.name), "point", json.dumps("OGC:CRS84"))
    return open_pandas(connection, others, {str(points.name): xy}, geometry)


def _stream(connection: DuckDBConnection, stream: Any) -> TableSource:
    import pyarrow

    refuse_repeated_names(stream.schema.names, NAME)
    known = connection.kinds_of(_bare(stream.schema), NAME)
    read = pyarrow.schema([field for field in stream.schema if field.name in known])
    schema = _bare(read)
    batches = (pyarrow.RecordBatch.from_arrays(_stored(batch.select(list(known))), schema=schema) for batch in stream)
    connection.store("rows", pyarrow.RecordBatchReader.from_batches(schema, batches))
    kinds = _all_kinds(stream.schema, connection.kinds("rows", NAME))
    return TableSource(NAME, (SourcePart("rows", kinds),), None, _geometry(read))


def _all_kinds(schema: Any, known: Mapping[str, str]) -> dict[str, str]:
    """The types of columns; those that DuckDB has not as Arrow calls them, so that they are refused by these names."""
    return {field.name: known.get(field.name, str(field.type)) for field in schema}


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


NAME = "the table"


@dataclass(frozen=True)
class PandasFeed:
    """The columns of a frame, those of objects as text and as numbers. A column is converted when it is first read."""

    typed: Mapping[str, Any]
    loose: Mapping[str, Any]
    made: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def numbers(self) -> dict[str, str]:
        """The columns of objects, and what the numbers in them are called."""
        names = named_numbers([*self.typed, *self.loose])
        return {name: names[name] for name in self.loose}

    @property
    def columns(self) -> tuple[str, ...]:
        """All that can be had of a row."""
        return (*self.typed, *self.loose, *self.numbers.values())

    def batches(self, columns: Sequence[str]) -> Generator[Any, None, None]:
        """Arrow record batches of these columns."""
        import pyarrow

        table = pyarrow.Table.from_arrays([self._column(column) for column in columns], names=list(columns))
        yield from table.to_batches(max_chunksize=BATCH)

    def _column(self, name: str) -> Any:
        import pyarrow

        if name in self.typed:
            return self.typed[name]
        if name not in self.made:
            if name in self.loose:
                self.made[name] = _texts(self.loose[name])
            else:
                text = next(text for text, numbers in self.numbers.items() if numbers == name)
                self.made[name] = pyarrow.array(numbers_of(self._column(text).to_pylist()))
        return self.made[name]


def open_pandas(
    connection: DuckDBConnection, frame: Any, beside: Mapping[str, Any] | None = None, geometry: Geometry | None = None
) -> TableSource:
    """The table in a data frame, with other columns beside its own; `TableError` for two columns of one name.

    An index that has a name is a column too, unless there is one of that name.

    Which columns hold objects is what the frame declares: whether the values in them are of one type or of several,
    changes nothing about how each is read.
    """
    import pyarrow

    held = {str(name) for name in frame.columns}
    levels = [name for name in frame.index.names if name is not None and str(name) not in held]
    frame = frame.reset_index(level=levels) if levels else frame
    names = [str(name) for name in frame.columns]
    refuse_repeated_names(names, "the data frame")
    typed, loose = dict(beside or {}), {}
    for place, name in enumerate(names):
        series = frame.iloc[:, place]
        if _holds_objects(series.dtype):
            loose[name] = series
            continue
        try:
            column = pyarrow.array(series, from_pandas=True)
        except (pyarrow.ArrowException, TypeError):
            continue  # a type that Arrow does not have: nothing here could use it
        if not isinstance(column.type, pyarrow.BaseExtensionType):
            typed[name] = sound(_decoded(column))
    schema = pyarrow.schema([(name, column.type) for name, column in typed.items()])
    known = connection.kinds_of(schema, NAME) if typed else {}
    kinds = _all_kinds(schema, known)
    typed = {name: column for name, column in typed.items() if name in known}
    if not loose:
        connection.register("rows", pyarrow.table(typed))
        return TableSource(NAME, (SourcePart("rows", kinds),), len(frame), geometry)
    feed = PandasFeed(typed, loose)
    kinds |= dict.fromkeys(loose, "VARCHAR")
    return TableSource(NAME, (SourcePart(FED, kinds, feed, feed.numbers),), len(frame), geometry)


def _decoded(column: Any) -> Any:
    """A column without a dictionary or runs, which loops over values do not know."""
    from pyarrow import compute, types

    if types.is_run_end_encoded(column.type):
        return _decoded(compute.run_end_decode(column))
    return column.dictionary_decode() if types.is_dictionary(column.type) else column


def _holds_objects(kind: Any) -> bool:
    """Whether a type of pandas stores objects of Python: each may be anything, even text that is not Unicode."""
    held = getattr(getattr(kind, "categories", None), "dtype", kind)
    return str(held) == "object" or getattr(held, "storage", None) == "python"


_TEXTS = {"str", "float", "NoneType", "NAType"}
"""Types of texts and of what is missing. A float that is a number is no text to Arrow, which refuses all then."""


def _texts(series: Any) -> Any:
    """The text of each value: all at once where all are texts or missing, which gives the same."""
    import pyarrow

    values = series.astype(object)
    if {kind.__name__ for kind in set(map(type, values))} <= _TEXTS:
        with suppress(pyarrow.ArrowException, TypeError, UnicodeEncodeError):
            return pyarrow.array(values, type=pyarrow.large_string(), from_pandas=True)
    return pyarrow.array([text_of(value) for value in values], type=pyarrow.large_string())
