"""Points in the types of Parquet itself, with the metadata of GeoParquet or without, in the system that is declared."""

import json
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyproj import CRS, Transformer

from hazemap.errors import FileError, TableError
from hazemap.readers.open_table import open_table
from hazemap.readers.parquet_files import geometry_of
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, RowIsPerson

WORLD = Quadtree.world(depth=8)
UTM = CRS("EPSG:25833")
GEO = {"version": "1.0.0", "primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB"}}}


def points(source: object) -> dict[int, int]:
    found = open_table(source).votes(WORLD, RowIsPerson())
    return dict(zip(found.cells.tolist(), found.weights.tolist(), strict=True))


def cell_of(lon: float, lat: float) -> int:
    return int(WORLD.cell_at({"lon": np.array([lon]), "lat": np.array([lat])}, 8)[0])


def written(file: Path, version: str, system: CRS | None = None, shape: str = "POINT(13.4 52.5)") -> Path:
    kind = "GEOMETRY" if system is None else "GEOMETRY('" + system.to_json().replace("'", "''") + "')"
    rows = f"SELECT 7 AS user, '{shape}'::{kind} AS geometry, 1 AS lat"
    with duckdb.connect() as database:
        database.execute(f"COPY ({rows}) TO '{file}' (FORMAT parquet, GEOPARQUET_VERSION '{version}')")
    return file


@pytest.mark.parametrize("version", ["NONE", "V1", "V2", "BOTH"])
def test_points_are_where_they_are_in_every_version_and_reference_system(tmp_path, version):
    place = {cell_of(13.4, 52.5): 1}
    x, y = Transformer.from_crs("OGC:CRS84", UTM, always_xy=True).transform(13.4, 52.5)
    assert points(written(tmp_path / "degrees.parquet", version)) == place
    assert points(written(tmp_path / "metres.parquet", version, UTM, f"POINT({x} {y})")) == place


def test_files_of_one_table_may_be_of_several_versions_of_one_reference_system(tmp_path):
    for i, (version, system) in enumerate([("V1", None), ("V2", CRS("OGC:CRS84")), ("BOTH", None), ("NONE", None)]):
        written(tmp_path / f"{i}.parquet", version, system)
    assert points(tmp_path) == {cell_of(13.4, 52.5): 4}
    written(tmp_path / "9.parquet", "V2", UTM)
    with pytest.raises(TableError, match="differ in their geometry column or its reference system"):
        points(tmp_path)


def test_what_is_no_point_is_nowhere_alone_in_a_column_of_shapes_too(tmp_path):
    class Shapes(pa.ExtensionType):
        def __init__(self) -> None:
            super().__init__(pa.binary(), "geoarrow.wkb")

        def __arrow_ext_serialize__(self) -> bytes:
            return b'{"crs": "EPSG:4326", "crs_type": "authority_code"}'

        @classmethod
        def __arrow_ext_deserialize__(cls, storage: object, about: bytes) -> "Shapes":
            return cls()

    point = bytes([1, 1, 0, 0, 0]) + np.array([13.4, 52.5]).tobytes()
    line = bytes([1, 2, 0, 0, 0, 1, 0, 0, 0]) + np.array([13.4, 52.5]).tobytes()
    pa.register_extension_type(Shapes())
    try:
        shapes = pa.ExtensionArray.from_storage(Shapes(), pa.array([point, line, None, point], pa.binary()))
        parquet.write_table(pa.table({"user": [1, 2, 3, 4], "geometry": shapes}), tmp_path / "a.parquet")
        registered = open_table(tmp_path / "a.parquet", person="user").votes(WORLD, AtMostRows(1))
    finally:
        pa.unregister_extension_type("geoarrow.wkb")
    assert parquet.ParquetFile(tmp_path / "a.parquet").schema.column(1).logical_type.type == "GEOMETRY"
    assert registered.weights.tolist() == [2] and points(tmp_path / "a.parquet") == {cell_of(13.4, 52.5): 2}


def test_the_reference_system_of_a_schema_is_read_in_every_spelling_and_contradictions_are_refused():
    def crs(native: str, about: dict[str, object] | None = None, also: dict[bytes, bytes] | None = None) -> object:
        geo = {} if about is None else {b"geo": json.dumps(GEO | {"columns": {"geometry": about}}).encode()}
        found = geometry_of(geo | (also or {}), {"geometry": native}, "a file")
        return None if found is None else json.loads(found.crs)

    assert crs("") == crs("", {}) == "OGC:CRS84"
    assert crs("srid:25833") == crs("25833") == crs("EPSG:25833") == crs("srid:25833", {}) == "EPSG:25833"
    assert crs(UTM.to_json()) == crs("projjson:utm", None, {b"utm": UTM.to_json().encode()}) == UTM.to_json_dict()
    assert crs("srid:25833", {"crs": UTM.to_json_dict()}) == UTM.to_json_dict() == crs("", {"crs": UTM.to_json_dict()})
    with pytest.raises(TableError, match="declares two reference systems"):
        crs("srid:25832", {"crs": UTM.to_json_dict()})
    for native, about in (("srid:0", None), ("", {"crs": None})):
        with pytest.raises(TableError, match="does not say the reference system"):
            crs(native, about)
    for native in ("projjson:utm", "{"):
        with pytest.raises(FileError, match="the reference system that the schema of a file declares cannot be read"):
            crs(native)
    assert geometry_of({}, {"a": "", "b": ""}, "a file") is None
    assert geometry_of({}, {"a": "", "geom": ""}, "a file").column == "geom"


def test_points_of_other_programs_are_read_as_they_are(shared):
    for name in ("geoparquet2_native.parquet", "geoparquet_both.parquet", "parquet_geometry_no_geo_key.parquet"):
        assert sum(points(shared / "cases" / name).values()) == 200
    assert sum(points(shared / "cases" / "mixed_v1_v2_folder").values()) == 400


@pytest.mark.parametrize(
    "crs",
    [
        *("+init=/a/pipe:x", "init=/a/pipe:x", {"init": "/a/pipe:x"}, "+proj=longlat +nadgrids=/a/pipe", "\ud800"),
        'GEOGCS["x",DATUM["x",SPHEROID["x",6377397,299.15],EXTENSION["PROJ4_GRIDS","/a/pipe"]]]',
        {"type": "BoundCRS", "transformation": {"parameters": [{"name": "difference file", "value": "/a/pipe"}]}},
    ],
    ids=["init", "bare", "parameters", "grids", "half a letter", "text", "projjson"],
)
def test_a_reference_system_that_names_a_file_is_refused_and_the_file_not_opened(crs):
    geo = {"primary_column": "g", "columns": {"g": {"encoding": "WKB", "crs": crs}}}
    with pytest.raises(FileError, match=r"is not read|names another file"):
        geometry_of({b"geo": json.dumps(geo).encode()}, {}, "a.parquet")
    if isinstance(crs, str):
        with pytest.raises(FileError, match=r"is not read|names another file"):
            geometry_of({}, {"g": crs}, "a.parquet")


def test_the_web_map_in_text_of_gdal_names_no_file():
    """Its text has +nadgrids=@null in it, which is none."""
    text = CRS.from_epsg(3857).to_wkt("WKT1_GDAL")
    assert "@null" in text and geometry_of({}, {"g": text}, "a.parquet") is not None


@pytest.mark.parametrize("encoding", [["WKB"], {}], ids=["list", "object"])
def test_odd_metadata_is_refused(encoding):
    geo = {"primary_column": "g", "columns": {"g": {"encoding": encoding}}}
    for text in (json.dumps(geo), "[" * 100_000):
        with pytest.raises(FileError, match="cannot be read"):
            geometry_of({b"geo": text.encode()}, {}, "a.parquet")
