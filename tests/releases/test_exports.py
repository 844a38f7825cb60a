"""Every export opens again in the tools it is for, with the right totals and the statement."""

import json
import re
import resource
import signal

import pandas as pd
import pyogrio
import pytest
import shapely

from hazemap.cells import Leaves
from hazemap.draw import save
from hazemap.errors import FileError
from hazemap.releases import Release
from hazemap.releases.gis.catalogue_facts import Publication
from hazemap.releases.gis.dcat_dataset import dcat_dataset
from hazemap.releases.gis.stac_item import stac_item
from hazemap.releases.page import page_file
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons

from .conftest import flat

VECTORS = (".geojson", ".gpkg", ".fgb")


@pytest.mark.parametrize("suffix", VECTORS)
def test_a_vector_export_holds_every_cell_and_number(any_release, tmp_path, suffix):
    path = tmp_path / f"map{suffix}"
    any_release.export(path)
    found = pyogrio.read_dataframe(path, layer=0)
    wanted = any_release.to_geodataframe()
    name = wanted.columns[0]
    found, wanted = (frame.sort_values(name).reset_index(drop=True) for frame in (found, wanted))
    for column in ("level", "best_guess", "unbiased", "stddev", "low", "high", "area_km2", "per_km2"):
        assert found[column].to_numpy() == pytest.approx(wanted[column].to_numpy()), column
    assert list(found[name]) == list(wanted[name])
    assert found.crs.to_epsg() == 4326
    assert shapely.area(found.geometry.values).sum() == pytest.approx(
        shapely.area(wanted.geometry.values).sum(), rel=1e-4
    )
    assert list(tmp_path.iterdir()) == [path]


def test_geojson_carries_the_statement_as_a_foreign_member(release, tmp_path):
    release.export(tmp_path / "map.geojson")
    data = json.loads((tmp_path / "map.geojson").read_text())
    assert data["description"] == release.statement.line()
    assert data["statement"]["dataset"] == "berlin"
    assert data["statement"]["budget"] == {"kind": "PureDP", "epsilon": "1"}
    assert data["features"][0]["geometry"]["type"] == "Polygon"


def test_geopackage_carries_the_statement_in_its_metadata(release, tmp_path):
    release.export(tmp_path / "map.gpkg")
    info = pyogrio.read_info(tmp_path / "map.gpkg", layer="hazemap")
    assert json.loads(info["layer_metadata"]["statement"]) == release.statement.to_json()
    assert info["layer_metadata"]["DESCRIPTION"] == release.statement.line()


def test_flatgeobuf_carries_the_line(release, tmp_path):
    release.export(tmp_path / "map.fgb")
    assert release.statement.line() in str(pyogrio.read_info(tmp_path / "map.fgb")["layer_metadata"])


def test_no_file_says_when_it_was_made_but_by_its_day(release, tmp_path, monkeypatch):
    """The time of a file is when a run ended; the second in which it began would say how long it took."""
    monkeypatch.setattr(page_file, "template", lambda: "<!--title--><!--summary--><!--release-->")
    release.save(tmp_path / "map.parquet")
    for suffix in ("geojson", "gpkg", "fgb", "pmtiles", "csv", "tif", "qml", "sld"):
        release.export(tmp_path / f"map.{suffix}")
    for suffix in ("png", "svg", "pdf"):
        save(release.plot(width=5, base=False), tmp_path / f"map.{suffix}")
    (tmp_path / "map.html").write_text(release.to_html())
    (tmp_path / "map.json").write_text(
        json.dumps([record(release, Publication("./map.parquet")) for record in (stac_item, dcat_dataset)])
    )
    time = re.compile(rb"(?:20\d\d-\d\d-\d\d[T ]|20\d{6}T|D:20\d{6}|tIME)(?!00:00:00)")
    assert {p.name: found for p in tmp_path.iterdir() if (found := time.findall(p.read_bytes()))} == {}


@pytest.mark.parametrize("kind", ["release", "hexagon_release", "nested_release"])
def test_tiles_open_and_hold_every_cell_at_their_deepest_zoom(request, kind, tmp_path):
    release = request.getfixturevalue(kind)
    release.export(tmp_path / "map.pmtiles")
    found = pyogrio.read_dataframe(tmp_path / "map.pmtiles")
    name = release.to_dataframe().columns[0]
    numbers = found.drop_duplicates(name).set_index(name)["best_guess"]  # a cell is cut at the edges of tiles
    wanted = release.to_dataframe().set_index(name)["best_guess"]
    assert numbers.sort_index().to_numpy() == pytest.approx(wanted.sort_index().to_numpy())


def test_csv_is_plain_and_has_its_statement_beside_it(any_release, tmp_path):
    any_release.export(tmp_path / "map.csv")
    found = pd.read_csv(tmp_path / "map.csv", dtype={any_release.to_dataframe().columns[0]: str})
    wanted = any_release.to_dataframe()
    assert found["best_guess"].to_numpy() == pytest.approx(wanted["best_guess"].to_numpy())
    assert list(found.iloc[:, 0]) == list(wanted.iloc[:, 0])
    shapes, points = shapely.from_wkt(found["geometry"]), shapely.points(found["lon"], found["lat"])
    assert shapely.contains(shapes, points).all()
    beside = json.loads((tmp_path / "map.csv.statement.json").read_text())
    assert beside == any_release.statement.to_json()


def test_an_export_is_not_taken_for_a_release(release, tmp_path):
    for suffix in (*VECTORS, ".csv", ".tif"):
        release.export(tmp_path / f"map{suffix}")
        with pytest.raises(FileError, match="no release of hazemap"):
            Release.open(tmp_path / f"map{suffix}")


@pytest.mark.parametrize("name", ["map.shp", "map", "map.parquet"])
def test_an_unknown_format_names_those_there_are(release, tmp_path, name):
    with pytest.raises(FileError, match=r"\.geojson.*\.tif"):
        release.export(tmp_path / name)


def test_only_pictures_have_pixels(release, tmp_path):
    with pytest.raises(FileError, match=r"only a \.tif has pixels"):
        release.export(tmp_path / "map.gpkg", pixel=100)


def test_hexagons_are_not_drawn_as_squares(hexagon_release, tmp_path):
    with pytest.raises(FileError, match="hexagons have no pixels"):
        hexagon_release.export(tmp_path / "map.tif")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["map.parquet", "map.tif", "map.gpkg", "map.fgb", "map.geojson", "map.csv", "picture.tif"]
)
def test_a_disk_that_fills_up_is_a_clear_error_for_every_format(make, tmp_path, name):
    release = make(flat(7))
    path = tmp_path / name
    path.write_bytes(b"old")
    write = release.save if name in ("map.parquet", "map.tif") else release.export
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, before[1]))
    try:
        with pytest.raises(FileError, match=r"could not be written"):
            write(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == b"old"
    assert {file.name for file in tmp_path.iterdir()} <= {name, "map.csv.statement.json"}


def test_a_failed_export_keeps_the_old_file(release, tmp_path, monkeypatch):
    (tmp_path / "map.gpkg").write_bytes(b"old")

    def fail(*_args, **_options):
        raise pyogrio.errors.DataSourceError("no")

    monkeypatch.setattr(pyogrio, "write_dataframe", fail)
    with pytest.raises(FileError, match=r"map\.gpkg"):
        release.export(tmp_path / "map.gpkg")
    assert (tmp_path / "map.gpkg").read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [tmp_path / "map.gpkg"]


@pytest.mark.parametrize("suffix", [*VECTORS, ".pmtiles", ".csv"])
def test_cells_on_both_sides_of_the_antimeridian_are_exported_whole(make, tmp_path, suffix):
    tree = Hexagons(Box(179.0, -1.0, 180.0, 1.0), 3, 5)
    release = make(Leaves(tree, tree.root))
    assert set(release.to_geodataframe().geom_type) == {"Polygon", "MultiPolygon"}
    path = tmp_path / f"map{suffix}"
    release.export(path)
    if suffix in VECTORS:
        assert len(pyogrio.read_dataframe(path, layer=0)) == len(tree.root)
    release.save(tmp_path / "map.parquet")
    assert Release.open(tmp_path / "map.parquet").total() == release.total()
