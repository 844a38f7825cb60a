"""Points of GeoPackage, FlatGeobuf and GeoJSON are rows."""

import json
import random

import numpy as np
import pytest
from tests.tables.people import QUADTREE, crowd, same

from hazemap.engines.person_ids import IdColumnReader
from hazemap.errors import FileError, TableError
from hazemap.readers.open_table import open_table
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, RowIsPerson

gpd, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
WORLD = Quadtree.world(depth=6)
MEMORY = crowd(60, 800)
RULE = AtMostRows(2)


def frame(crs=4326):
    points = gpd.points_from_xy(MEMORY.columns["lon"], MEMORY.columns["lat"])
    usable = np.isfinite(MEMORY.columns["lon"])
    columns = {"user": MEMORY.person, "weight": MEMORY.columns["weight"]}
    return gpd.GeoDataFrame(columns, geometry=points, crs=4326)[usable].to_crs(crs)


@pytest.mark.parametrize("crs", [4326, 3857])
@pytest.mark.parametrize("name", ["rows.gpkg", "rows.fgb"])
def test_a_layer_of_points_is_a_table_in_any_reference_system(tmp_path, name, crs):
    options = {"SPATIAL_INDEX": "NO"} if name.endswith("fgb") else {}  # which would reorder the rows
    frame(crs).to_file(tmp_path / name, **options)
    table = open_table(tmp_path / name, key=MEMORY.key, value="weight")
    found, expected = table.votes(QUADTREE, RULE), MEMORY.votes(QUADTREE, RULE)
    assert table.id_column == IdColumnReader("user", "whole numbers", guessed=True)
    assert same(found, expected) if crs == 4326 else abs(found.weights.sum() - expected.weights.sum()) <= 4


def test_a_layer_is_named_where_a_file_has_several(tmp_path):
    for layer in ("visits", "homes"):
        frame()[: 5 if layer == "homes" else 7].to_file(tmp_path / "rows.gpkg", layer=layer)
    with pytest.raises(TableError, match=r"several layers.*rows\.gpkg:visits"):
        open_table(tmp_path / "rows.gpkg")
    with pytest.raises(TableError, match="no layer 'trips'"):
        open_table(f"{tmp_path / 'rows.gpkg'}:trips")
    assert open_table(f"{tmp_path / 'rows.gpkg'}:homes").votes(WORLD, RowIsPerson()).weights.sum() == 5


def test_a_layer_that_declares_areas_is_refused_and_an_area_among_points_is_nowhere(tmp_path):
    areas = frame(3857)
    areas.geometry = areas.geometry.buffer(10)
    areas.to_file(tmp_path / "areas.gpkg")
    with pytest.raises(TableError, match="declares that it holds Polygon"):
        open_table(tmp_path / "areas.gpkg")
    mixed = frame(3857)[:10]
    mixed.geometry = [*mixed.geometry[:6], *mixed.geometry[6:].buffer(10)]
    mixed.to_file(tmp_path / "mixed.gpkg", geometry_type="Unknown")
    assert open_table(tmp_path / "mixed.gpkg").votes(WORLD, RowIsPerson()).weights.sum() == 6


def test_a_file_that_is_no_layer_is_refused(tmp_path):
    for name in ("rows.gpkg", "rows.fgb"):
        (tmp_path / name).write_bytes(b"nothing of the kind")
        with pytest.raises(FileError, match="damaged"):
            open_table(tmp_path / name)


def feature(who, lon, lat) -> str:
    point = {"type": "Point", "coordinates": [lon, lat]}
    return json.dumps({"type": "Feature", "properties": {"user": who, "n": str(lon)}, "geometry": point})


def collection(features: list[str], **members) -> str:
    start = json.dumps({"type": "FeatureCollection", **members})[:-1]
    return f'{start}, "features": [{",".join(features)}]}}'


def test_geojson_is_read_feature_by_feature_with_the_properties_that_are_named(tmp_path):
    (tmp_path / "rows.geojson").write_text(collection([feature(i % 50, i % 90, i % 80) for i in range(40_000)]))
    table = open_table(tmp_path / "rows.geojson", person="user", value="n")
    assert table.id_column == IdColumnReader("user", "text, letter by letter", guessed=False)
    assert table.votes(WORLD, AtMostRows(1)).weights.sum() == 50
    assert table.votes(WORLD, RowIsPerson()).weights.sum() == 40_000
    with pytest.raises(TableError, match="--person"):
        open_table(tmp_path / "rows.geojson").votes(WORLD, AtMostRows(1))


def test_whatever_geopandas_writes_as_geojson_is_read(tmp_path):
    frame().to_file(tmp_path / "rows.geojson")
    assert open_table(tmp_path / "rows.geojson").votes(QUADTREE, RowIsPerson()).weights.sum() == sum(
        MEMORY.votes(QUADTREE, RowIsPerson()).weights
    )
    frame(3857).to_file(tmp_path / "metres.geojson", RFC7946="NO")
    with pytest.raises(TableError, match="reference system"):
        open_table(tmp_path / "metres.geojson")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"type": "FeatureCollection"', "nothing"])
def test_what_is_no_collection_at_its_start_is_refused(tmp_path, content):
    (tmp_path / "rows.geojson").write_text(content)
    with pytest.raises(FileError):
        open_table(tmp_path / "rows.geojson")


ODD = [
    '{"type": "Feature", "properties": null, "geometry": null}',
    '{"type": "Feature", "properties": {"user": "bob"}, "geometry": {"type": "Point", "coordinates": []}}',
    '{"type": "Feature", "properties": {"user": 7.5}, "geometry": {"type": "Point", "coordinates": ["1", true]}}',
    '{"type": "Feature", "properties": {"user": [7]}, "geometry": {"type": "Point", "coordinates": [1, 2]}}',
    '{"properties": {"user": "bob"}, "geometry": {"type": "LineString", "coordinates": [[1, 2], [3, 4]]}}',
    '{"properties": {"user": 1' + "0" * 5_000 + '}, "geometry": {"type": "Point", "coordinates": [1e999, NaN]}}',
    *("null", "7", '"text"', "[]", "[[1, 2]]"),
]
BROKEN = ["{", '{"type"', '"', "[" * 100_000, "\0", "}", "]", '{"a": 1} 2']


@pytest.mark.parametrize("lines", [False, True], ids=["collection", "lines"])
def test_no_feature_of_one_person_changes_how_another_s_is_read(tmp_path, lines):
    chance = random.Random(4)
    for _ in range(5):
        people = [feature(chance.choice([7, 7.0, "7", "07", "ann", 2**60]), i, -i) for i in range(60)]
        found = []
        for own in ([], ODD + BROKEN * lines):
            every = list(people)
            for each in own:
                every.insert(chance.randrange(len(every) + 1), each)
            path = tmp_path / ("rows.geojsonl" if lines else "rows.geojson")
            path.write_text("\n".join(every) if lines else collection(every))
            batches = open_table(path, person="user")._batches(AtMostRows(1))
            rows = [row for batch in batches for row in zip(*(c.to_pylist() for c in batch), strict=True)]
            found.append([repr(row) for row in rows if row[0] not in {None, "bob", "7.5"}])
        assert found[0] == found[1]
        assert len(found[0]) == 60


def test_one_point_that_is_called_several_is_a_point_in_every_source_and_two_are_nowhere(tmp_path):
    one, two = (shapely.MultiPoint([(13.4, 52.5), (13.5, 52.5)][:number]) for number in (1, 2))
    points = [one, two, shapely.Point(13.4, 52.5)]
    several = gpd.GeoDataFrame({"user": [1, 2, 3]}, geometry=points, crs=4326)
    several.to_file(tmp_path / "rows.geojson")
    several[:2].to_file(tmp_path / "rows.gpkg", geometry_type="MultiPoint")
    several.to_parquet(tmp_path / "rows.parquet")
    several[:2].to_parquet(tmp_path / "several.parquet")
    for source, number in (("rows.geojson", 2), ("rows.gpkg", 1), ("rows.parquet", 2), ("several.parquet", 1)):
        assert open_table(tmp_path / source).votes(WORLD, RowIsPerson()).weights.sum() == number, source
    assert open_table(several).votes(WORLD, RowIsPerson()).weights.sum() == 2


def test_the_id_of_a_feature_is_one_unless_a_property_is_called_so(tmp_path):
    place = {"type": "Point", "coordinates": [13.4, 52.5]}
    feature = {"type": "Feature", "id": 7, "properties": {}, "geometry": place}
    features = [feature, feature | {"id": "8"}, feature | {"properties": {"id": "9"}}, feature | {"properties": None}]
    features += [{"type": "Feature", "properties": {"id": None}, "geometry": place}]
    (tmp_path / "rows.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    read = open_table(tmp_path / "rows.geojson", person="id")
    assert read.votes(WORLD, AtMostRows(1)).weights.sum() == 3 and read.report.without_person == 1


def test_the_points_and_ids_of_other_programs_are_read(shared):
    for name, person, number in (("multipoint1", "user", None), ("feature_id", "id", 5)):
        source = shared / "cases" / f"{name}.geojson"
        many = len(json.loads(source.read_text())["features"])
        assert open_table(source).votes(WORLD, RowIsPerson()).weights.sum() == many
        people = open_table(source, person=person).votes(WORLD, AtMostRows(1)).weights.sum()
        assert people > 0 and number in (None, people)
