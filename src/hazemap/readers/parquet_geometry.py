"""Points of a Parquet file and their reference system: declared by the file, never by rows.

GeoParquet 1.0, 1.1 and 2.0 say so in the metadata of a file (`geo`). Parquet's own types GEOMETRY and GEOGRAPHY say so
in the schema, beside `geo` or alone; DuckDB 2 and GDAL 3.12 write them. Their values are well-known binary, which is
read as bytes, for a library that reads a column of shapes would refuse all for one that is none.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from hazemap.engines.table_source import Geometry
from hazemap.errors import FileError, TableError
from hazemap.gdal.own_files import refuse_named_files

CRS84 = "OGC:CRS84"
"""The reference system of points by default."""

USUAL = ("geometry", "geom", "wkb_geometry")
"""The column of shapes that is meant if `geo` names none."""

_PARAMETERS = re.compile(r"(init|grids|file|catalog)\s*=\s*(?!@null)|[\ud800-\udfff]", re.IGNORECASE)
"""PROJ strings that name a file, which PROJ would open wherever it is; and half letters, which it cannot read."""

Native = Mapping[str, str]
"""The columns of Parquet's own types, and the reference system that each declares; empty for none."""


def native_columns(schema: Any) -> dict[str, str]:
    """The columns of these types in the schema of a `pyarrow.parquet.ParquetFile`."""
    found = {}
    for i in range(len(schema)):
        column = schema.column(i)
        if column.logical_type.type in ("GEOMETRY", "GEOGRAPHY") and "." not in column.path:
            found[str(column.path)] = str(json.loads(column.logical_type.to_json()).get("crs") or "")
    return found


def geometry_of(metadata: Mapping[bytes, bytes], native: Native, file: str) -> Geometry | None:
    """The points of a file, from its metadata and its schema.

    `FileError` for metadata that cannot be read; `TableError` where no shape is a point, or the two contradict each
    other.
    """
    if b"geo" not in metadata:
        usual = [column for column in native if column in USUAL] if len(native) > 1 else list(native)
        if len(usual) != 1:
            return None
        return Geometry(usual[0], "WKB", _written(_declared(native[usual[0]], metadata, file), file))
    try:
        geo = json.loads(metadata[b"geo"])
        column = geo["primary_column"]
        about = geo["columns"][column]
        encoding = about.get("encoding", "WKB") if column in native else about["encoding"]
        kinds = set(about.get("geometry_types", []))
        known = encoding in {"WKB", "point"}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FileError(f"the GeoParquet metadata of {file} cannot be read") from None
    may_be = {f"{several}Point{more}" for several in ("", "Multi") for more in ("", " Z", " M", " ZM")}
    if not known or (kinds and not kinds & may_be):
        raise TableError(f"rows are counted where their point is; {file} declares that none of its geometries is one")
    own = _declared(native[column], metadata, file) if native.get(column) else None
    crs = about.get("crs", CRS84 if own is None else own)
    _refuse_odd(crs, file)
    if own is not None and not same_system(own, crs):
        raise TableError(f"{file} declares two reference systems of its points, in its metadata and in its schema")
    return Geometry(column, encoding, _written(crs, file))


def common_geometry(found: Sequence[Geometry | None], name: str) -> Geometry | None:
    """The points of files of one table; `TableError` where they differ in their column or its reference system."""
    first = found[0]
    for other in found[1:]:
        same = first is other or (
            first is not None
            and other is not None
            and (first.column, first.encoding) == (other.column, other.encoding)
            and same_system(json.loads(first.crs), json.loads(other.crs))
        )
        if not same:
            raise TableError(
                f"the files of {name} differ in their geometry column or its reference system; make them one"
            )
    return first


def same_system(one: Any, other: Any) -> bool:
    """Whether two reference systems are one, however each is written."""
    if one == other:
        return True
    if one is None or other is None:
        return False
    from pyproj import CRS
    from pyproj.exceptions import CRSError

    try:
        return bool(CRS.from_user_input(one).equals(CRS.from_user_input(other), ignore_axis_order=True))
    except CRSError:
        return False


def _declared(crs: str, metadata: Mapping[bytes, bytes], file: str) -> Any:
    """The declared reference system for PROJ: PROJJSON, its key in the metadata, a number of EPSG or another text."""
    kind, _, key = crs.partition(":")
    number = key if kind == "srid" else crs
    if number.isascii() and number.isdigit():
        return f"EPSG:{number}" if int(number) else None
    try:
        if kind == "projjson":
            return json.loads(metadata[key.encode()])
        return json.loads(crs) if crs.startswith("{") else crs or CRS84
    except (ValueError, KeyError, RecursionError):
        raise FileError(f"the reference system that the schema of {file} declares cannot be read") from None


def _refuse_odd(crs: Any, file: str) -> None:
    """`FileError` for a text or parameters in which PROJ would find the name of a file."""
    of_proj = {"init", "proj"} & crs.keys() if isinstance(crs, dict) else set()
    if of_proj or (isinstance(crs, str) and _PARAMETERS.search(crs)):
        raise FileError(f"the reference system that {file} declares is not read: declare it as PROJJSON")
    said = json.dumps(crs).replace('\\"', '"')
    if '"value": "' in said:  # a parameter of PROJJSON that is no number is the name of a grid's file
        raise FileError(f"{file} cannot be read: its reference system names another file")
    refuse_named_files(said.encode(), file)


def _written(crs: Any, file: str) -> str:
    _refuse_odd(crs, file)
    if crs is None:
        raise TableError(f"{file} does not say the reference system of its points; set it, or pass --lon and --lat")
    return json.dumps(crs, sort_keys=True)
