"""What is called a GeoPackage or a picture reads no other file, asks no server, and is read in a bounded time."""

import json
import os
import shutil
import socket
import sqlite3
import struct
import time
from contextlib import closing

import geopandas
import numpy as np
import pytest
import rasterio
import shapely
from pyogrio import get_gdal_config_option

from hazemap.draw.overlay_lines import lines_around
from hazemap.errors import FileError, HazemapError
from hazemap.gdal.own_files import CLOSED, open_tiff
from hazemap.gdal.vector_files import FORMATS, layers_in, open_layer, read_shapes
from hazemap.lab.compare.datasets import own_map
from hazemap.readers.open_table import open_table
from hazemap.releases import Release
from hazemap.releases.pmtiles_archive import MapTile, archive
from hazemap.spatial.districts import Districts
from hazemap.spatial.quadtree import Quadtree
from hazemap.studio.stewards import is_release
from hazemap.tables.contribution_bounding import RowIsPerson

WORLD = Quadtree.world(6)
VRT = """<OGRVRTDataSource><OGRVRTLayer name="secret"><SrcDataSource>{}</SrcDataSource>
<GeometryType>wkbPoint</GeometryType><GeometryField encoding="PointFromColumns" x="lon" y="lat"/></OGRVRTLayer>
</OGRVRTDataSource>"""
RASTER = """<VRTDataset rasterXSize="1" rasterYSize="1"><Metadata><MDI key="HAZEMAP">{{}}</MDI></Metadata>
<VRTRasterBand dataType="Byte" band="1"><SimpleSource><SourceFilename>{}</SourceFilename></SimpleSource>
</VRTRasterBand></VRTDataset>"""
PIPELINE = '{{"type": "gdal_streamed_alg", "command_line": "gdal vector pipeline ! read {} ! write x"}}'


def readers(path):
    """Every way in which a user may name a file of shapes or of points."""
    return (
        lambda: open_table(path).votes(WORLD, RowIsPerson()),
        lambda: Districts.of(path),
        lambda: lines_around(path, (0.0, 0.0, 9.0, 9.0), 1.0, 0.01),
    )


def test_tiles_of_a_map_which_may_unfold_to_any_size_are_not_read(tmp_path):
    path = tmp_path / "a.pmtiles"
    path.write_bytes(archive([MapTile(0, 0, 0, bytes(1 << 20))], {"vector_layers": []}, (0.0, 0.0, 9.0, 9.0)))
    for read in readers(str(path)):
        with pytest.raises(HazemapError, match=r"a\.pmtiles"):
            read()


@pytest.mark.parametrize("text", [VRT, PIPELINE])
@pytest.mark.parametrize("suffix", [*FORMATS, ".geojson", ".json", ".vrt"])
def test_a_file_that_tells_gdal_to_read_another_is_refused(tmp_path, suffix, text):
    (tmp_path / "secret.csv").write_text("lon,lat,name\n1,2,a\n")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        for goal in (tmp_path / "secret.csv", f"/vsicurl/http://127.0.0.1:{server.getsockname()[1]}/a.csv"):
            path = tmp_path / f"a{suffix}"
            path.write_text(text.format(goal))
            for read in readers(str(path)):
                with pytest.raises(HazemapError):
                    read()
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_picture_that_tells_gdal_to_read_another_is_refused(tmp_path):
    path = tmp_path / "a.tif"
    path.write_text(RASTER.format("/etc/hostname"))
    assert not is_release(path)
    for read in (lambda path: own_map("a", path), lambda path: open_tiff(path).__enter__()):
        with pytest.raises(FileError, match="not of the kind"):
            read(path)
    with pytest.raises(FileError, match="no release"):
        Release.open(path)


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
def test_a_picture_is_read_alone(tmp_path):
    """Overviews and masks beside a picture are opened by any driver of GDAL."""
    profile = {"driver": "GTiff", "width": 512, "height": 512, "count": 1, "dtype": "uint8"}
    for name, value in (("a.tif", 7), ("other.tif", 9)):
        with rasterio.open(tmp_path / name, "w", **profile) as picture:
            picture.write(np.full((1, 512, 512), value, np.uint8))
    with rasterio.open(tmp_path / "other.tif", "r+") as picture:
        picture.build_overviews([2])
    half = RASTER.replace('"1" rasterYSize="1"', '"256" rasterYSize="256"').format(tmp_path / "other.tif")
    (tmp_path / "a.tif.ovr").write_text(half)
    (tmp_path / "a.tif.msk").write_text(half)
    with open_tiff(tmp_path / "a.tif") as picture:
        assert picture.overviews(1) == []
        assert picture.read(1, out_shape=(8, 8), masked=True).filled(0).min() == 7


@pytest.fixture
def package(tmp_path):
    path = tmp_path / "rows.gpkg"
    points = geopandas.GeoDataFrame({"user": range(5)}, geometry=shapely.points(np.ones((5, 2))), crs=4326)
    points.to_file(path, layer="rows")
    return path


def changed(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as base:
        for each in statements:
            base.execute(each)


ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n"
AS_LAYER = (
    f"CREATE VIEW rows AS {ENDLESS} AS fid, n AS user, x'00' AS geom FROM r",
    f"CREATE VIEW unused AS {ENDLESS} FROM r",
)
COLUMN = 'ALTER TABLE rows ADD COLUMN "more" TEXT AS (hex(zeroblob(100000000))) VIRTUAL'
SCHEMA = "INSERT INTO sqlite_master VALUES ('table', 'x', 'x', 0, 'CREATE VIRTUAL TABLE x USING VirtualOGR(''{}'')')"


@pytest.mark.parametrize(
    ("statements", "why"),
    [
        (["DROP TABLE rows", AS_LAYER[0]], "is a view"),
        ([COLUMN], "computes a column"),
        (["PRAGMA writable_schema = ON", SCHEMA.format("/etc/passwd")], "may read other files"),
        (["DROP TABLE gpkg_contents", f"CREATE VIEW gpkg_contents AS {ENDLESS} FROM r"], "no GeoPackage"),
        (["DROP TABLE gpkg_extensions", f"CREATE VIEW gpkg_extensions AS {ENDLESS} FROM r"], "not a plain table"),
        (["DROP TABLE gpkg_contents"], "no GeoPackage"),
        (
            ["UPDATE gpkg_contents SET description = hex(zeroblob(9000000))"],
            "says",
        ),
    ],
)
def test_a_geopackage_that_is_a_program_is_refused(package, statements, why):
    changed(package, *statements)
    for read in readers(str(package)):
        with pytest.raises(FileError, match=why):
            read()


def test_a_view_that_nobody_reads_does_no_harm(package):
    changed(package, AS_LAYER[1])
    assert layers_in(str(package)) == ["rows", "unused"]
    with open_layer(str(package), "rows") as found:
        assert sum(batch.num_rows for batch in found.batches) == 5


@pytest.mark.filterwarnings("ignore:Table twice appearing several times")
def test_a_view_of_two_geometries_is_not_read_by_its_other_name(package):
    """GDAL calls its layers `twice (geom)` and `twice (also)`, and neither is the name of anything in the database."""
    columns = "SELECT * FROM gpkg_geometry_columns"
    changed(
        package,
        f"CREATE TABLE kept AS {columns}",
        "DROP TABLE gpkg_geometry_columns",
        "ALTER TABLE kept RENAME TO gpkg_geometry_columns",
        f"CREATE VIEW twice AS {ENDLESS} AS fid, n AS user, x'00' AS geom, x'00' AS also FROM r",
        "INSERT INTO gpkg_contents (table_name, data_type, identifier, srs_id) VALUES"
        " ('twice', 'features', 'twice', 4326)",
        *(
            f"INSERT INTO gpkg_geometry_columns VALUES ('twice', '{each}', 'POINT', 4326, 0, 0)"
            for each in ("geom", "also")
        ),
    )
    with pytest.warns(RuntimeWarning, match="several times"):
        layers = layers_in(str(package))
    assert layers == ["rows", "twice (geom)", "twice (also)"]
    for layer in layers[1:]:
        with pytest.raises(FileError, match="not a plain table"), open_layer(str(package), layer):
            pass


def test_a_small_file_does_not_hold_more_rows_than_bytes(package):
    """Pages of a tree that all name the same page: 700 children each, five levels deep, in 40 kB."""
    with closing(sqlite3.connect(package)) as base:
        [(root,)] = base.execute("SELECT rootpage FROM sqlite_master WHERE name = 'rows'")
    content = bytearray(package.read_bytes())
    [size] = struct.unpack(">H", content[16:18])
    pages = len(content) // size
    leaf = content[(root - 1) * size : root * size]
    content += leaf
    below = pages + 1
    for _ in range(4):
        content += inner_page(below, size)
        below += 1
    content[(root - 1) * size : root * size] = inner_page(below, size)
    content[28:32] = struct.pack(">I", len(content) // size)
    package.write_bytes(content)
    began = time.process_time()
    with pytest.raises(FileError, match="longer than a file of its size"):
        open_table(package)
    assert time.process_time() - began < 60  # it would be years


def inner_page(below, size):
    cell = struct.pack(">I", below) + b"\x01"
    many = (size - 12) // (len(cell) + 2)
    at = [size - len(cell) * (number + 1) for number in range(many)]
    head = struct.pack(">BHHHBI", 5, 0, many, at[-1], 0, below) + b"".join(struct.pack(">H", each) for each in at)
    return head.ljust(at[-1], b"\0") + cell * many


def test_files_beside_a_file_are_no_links(tmp_path, package):
    geopandas.read_file(package).to_file(tmp_path / "a.shp")
    assert len(read_shapes(tmp_path / "a.shp")) == 5
    for name, beside in (("a.shp", "a.dbf"), ("rows.gpkg", "rows.gpkg-wal")):
        kept = tmp_path / f"kept-{beside}"
        shutil.move(tmp_path / beside, kept) if (tmp_path / beside).exists() else kept.touch()
        (tmp_path / beside).symlink_to(kept)
        with pytest.raises(FileError, match="is a link"):
            read_shapes(tmp_path / name)


def test_a_damaged_flatgeobuf_is_refused_and_nothing_beyond_it_is_read(tmp_path):
    path = tmp_path / "a.fgb"
    points = geopandas.GeoDataFrame({"user": range(9)}, geometry=shapely.points(np.ones((9, 2))), crs=4326)
    points.to_file(path, driver="FlatGeobuf", SPATIAL_INDEX="NO")
    whole = path.read_bytes()
    [head] = struct.unpack("<I", whole[8:12])
    [row] = struct.unpack("<I", whole[12 + head : 16 + head])
    shapeless = bytearray(whole)
    shapeless[12 + head + row + 4 + 8] = 0  # the second row's table
    for content in (shapeless, whole[:-5], whole[: head // 2]):
        path.write_bytes(content)
        for read in readers(str(path)):
            with pytest.raises(FileError, match=r"cannot be read|no layer"):
                read()


def test_a_shapefile_whose_companions_are_damaged_is_refused(tmp_path):
    path = tmp_path / "a.shp"
    shape = geopandas.GeoDataFrame({"name": ["Aaaa"]}, geometry=[shapely.box(1, 2, 3, 4)], crs=25833)
    shape.to_file(path)
    names, system = path.with_suffix(".dbf"), path.with_suffix(".prj")
    text, wkt = names.read_bytes(), system.read_text()
    names.write_bytes(text.replace(b"Aaaa", b"A\xe4a "))
    with pytest.raises(FileError, match="another encoding"):
        Districts.of(path)
    names.write_bytes(text)
    system.write_bytes(wkt.replace("ETRS", "E\xe4RS").encode("latin-1"))
    with pytest.raises(FileError, match="cannot be read"):
        Districts.of(path)


def test_what_no_way_leads_from_to_degrees_is_refused_before_rows_are_read(tmp_path):
    path = str(tmp_path / "a.gpkg")
    shape = geopandas.GeoDataFrame({"name": ["a"]}, geometry=[shapely.box(1, 2, 3, 4)], crs='LOCAL_CS["x",UNIT["m",1]]')
    shape.to_file(path)
    for read in readers(path)[1:]:
        with pytest.raises(HazemapError, match="no way is known"):
            read()
    points = shape.set_geometry(shape.centroid)
    points.to_file(path)
    for source in (path, points):
        with pytest.raises(HazemapError, match="no way is known"):
            open_table(source, person="name")


def test_the_name_of_a_district_is_whole_letters(tmp_path):
    path = tmp_path / "a.geojson"
    frame = geopandas.GeoDataFrame({"name": ["a?"]}, geometry=[shapely.box(1, 2, 3, 4)], crs=4326)
    path.write_text(frame.to_json().replace("a?", "a\\ud800"))
    with pytest.raises(HazemapError, match="name of a district"):
        Districts.of(path)


def test_a_pipe_is_not_waited_for(tmp_path):
    path = tmp_path / "a.gpkg"
    os.mkfifo(path)
    with pytest.raises(FileError, match="no file"):
        layers_in(str(path))


@pytest.mark.parametrize("suffix", [".gpkg", ".shp", ".fgb"])
def test_a_reference_system_that_names_a_file_is_refused_and_the_file_not_opened(tmp_path, suffix):
    path, pipe = str(tmp_path / f"a{suffix}"), tmp_path / "pipe"
    os.mkfifo(pipe)  # who opens it waits for ever
    datum = 'DATUM["x",SPHEROID["x",6377397,299.15],EXTENSION["PROJ4_GRIDS","@null"]]'
    system = f'GEOGCS["x",{datum},PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]]'
    frame = geopandas.GeoDataFrame({"name": ["a"]}, geometry=[shapely.box(1, 2, 3, 4)], crs=4326)
    frame.to_file(path)
    hostile = system.replace("@null", str(pipe))
    if suffix == ".gpkg":
        changed(path, f"UPDATE gpkg_spatial_ref_sys SET definition = '{hostile}' WHERE srs_id = 4326")
    elif suffix == ".shp":
        (tmp_path / "a.prj").write_text(hostile)
    else:
        (tmp_path / "a.fgb").write_bytes(b"fgb\3fgb\0" + struct.pack("<I", len(hostile)) + hostile.encode())
    for read in readers(path)[suffix == ".shp" :]:
        with pytest.raises(FileError, match="names another file"):
            read()


def test_names_that_gdal_takes_for_addresses_are_refused(package):
    for name in ("zip!rows.gpkg", "a;b.gpkg"):
        shutil.copy(package, package.with_name(name))
        with pytest.raises(FileError, match="rename"):
            open_table(package.with_name(name))
    for name in ("/vsizip/a.zip/rows.gpkg", "https://example.org/rows.gpkg", f"GPKG:{package}"):
        with pytest.raises(FileError):
            read_shapes(name)


def test_gdal_fetches_nothing_while_a_file_is_read_and_has_its_settings_back_after(package):
    before = {name: get_gdal_config_option(name) for name in CLOSED}
    with open_layer(str(package), "rows") as one, open_layer(str(package), "rows"):
        assert get_gdal_config_option("CPL_VSIL_CURL_ALLOWED_EXTENSIONS") == ".none"
        assert sum(batch.num_rows for batch in one.batches) == 5
    assert {name: get_gdal_config_option(name) for name in CLOSED} == before
    assert layers_in(str(package)) == ["rows"]


def test_geojson_of_any_form_holds_shapes_and_names_its_system(tmp_path):
    shape = json.loads(shapely.to_geojson(shapely.box(1, 2, 3, 4)))
    feature = {"type": "Feature", "id": 7, "properties": {"name": "A"}, "geometry": shape}
    collection = {"type": "FeatureCollection", "features": [feature, {**feature, "properties": {"n": 2**60}}]}
    for name, text in (
        ("a.geojson", json.dumps(collection)),
        ("b.json", "\ufeff" + json.dumps(feature)),
        ("c.json", json.dumps(shape)),
        ("d.geojsonl", "\n".join(map(json.dumps, collection["features"]))),
    ):
        (tmp_path / name).write_text(text)
        found = read_shapes(tmp_path / name)
        assert found.crs == "EPSG:4326" and found.geometry[0].equals(shapely.box(1, 2, 3, 4))
    assert found["n"].tolist() == [None, 2**60] and found["id"].tolist() == [7, 7]
    for name, system in (("urn:ogc:def:crs:EPSG::25833", 25833), ("urn:ogc:def:crs:OGC:1.3:CRS84", 4326)):
        crs = {"type": "name", "properties": {"name": name}}
        (tmp_path / "a.geojson").write_text(json.dumps({**collection, "crs": crs}))
        assert read_shapes(tmp_path / "a.geojson").crs.to_epsg() == system
    (tmp_path / "a.geojson").write_text(
        json.dumps({**collection, "crs": {**crs, "properties": {"name": "+init=/a:b"}}})
    )
    with pytest.raises(FileError, match="reference system that is not read"):
        read_shapes(tmp_path / "a.geojson")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"type": "Topology"}', "\xff", '{"type": "Feature", "geometry": {}}'])
def test_what_is_no_geojson_is_refused(tmp_path, text):
    (tmp_path / "a.geojson").write_text(text, encoding="latin-1")
    with pytest.raises(FileError, match="cannot be read"):
        read_shapes(tmp_path / "a.geojson")


@pytest.mark.parametrize("log", [False, True], ids=["files", "Delta"])
def test_a_link_in_a_folder_is_not_followed_out_of_it(tmp_path, log):
    folder = tmp_path / "table"
    (folder / "_delta_log").mkdir(parents=True)
    (tmp_path / "secret.csv").write_text("user,lon,lat\n1,2,3\n")
    (folder / "own.csv").write_text("user,lon,lat\n1,2,3\n")
    if log:
        (folder / "_delta_log" / f"{0:020}.json").symlink_to(tmp_path / "secret.csv")
    else:
        (folder / "linked.csv").symlink_to("own.csv")
        assert open_table(folder).votes(WORLD, RowIsPerson()).weights.sum() == 2
        (folder / "a=1").symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(FileError, match="a link that leads out of the folder"):
        open_table(folder)
