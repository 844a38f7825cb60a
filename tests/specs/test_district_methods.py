"""Maps of districts, ordered in words: spelled, checked, and released in one command."""

from pathlib import Path

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from typer.testing import CliRunner

from hazemap.algorithms import Adaptive, Flat, TreesWithinDistricts
from hazemap.cli.main import app
from hazemap.errors import FileError, InputError
from hazemap.lab.methods import Geometric, Hierarchical
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.random_stream import Stream
from hazemap.publish import release
from hazemap.releases import Release
from hazemap.spatial.bounding_box import Box
from hazemap.specs.method_from_name import among_devices, method_from_name, reach
from hazemap.specs.parsing import SQUARES, DistrictFiles, cells
from hazemap.tables.contribution_bounding import AtMostRows

RULE = AtMostRows(1)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two states; three counties, which name their state; a table of 3,000 people."""
    states = {"West": shapely.box(0, 0, 2, 2), "East": shapely.box(2, 0, 4, 2)}
    counties = {"a": shapely.box(0, 0, 1, 2), "b": shapely.box(1, 0, 2, 2), "c": shapely.box(2, 0, 3, 1)}
    frames = {
        "states": {"name": list(states), "code": [1, 2], "geometry": list(states.values())},
        "counties": {"title": list(counties), "state": [1, 1, 2], "geometry": list(counties.values())},
    }
    for name, columns in frames.items():
        geopandas.GeoDataFrame(columns, crs="EPSG:4326").to_file(tmp_path / f"{name}.geojson")
    rng = np.random.default_rng(3)
    lon, lat = rng.uniform([[0], [0]], [[4], [2]], (2, 3000)) * np.array([[0.5], [1]])  # all in the West
    pq.write_table(pa.table({"user": np.arange(3000), "lon": lon, "lat": lat}), tmp_path / "people.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


FILES = "districts:states.geojson,counties.geojson:title:state"


def test_files_are_spelled_with_columns_of_names_and_parents():
    assert cells(FILES) == DistrictFiles(
        (("states.geojson", None, None), ("counties.geojson", "title", "state")), SQUARES
    )
    assert cells("districts@9:a.gpkg::of") == DistrictFiles((("a.gpkg", None, "of"),), 9)
    assert str(cells(FILES)) == "districts of states.geojson, counties.geojson"


@pytest.mark.parametrize("text", ["districts", "districts:", "districts:,", "districts:a:b:c:d", "districts@:a"])
def test_other_spellings_are_refused(text):
    with pytest.raises(InputError, match="districts:FILE"):
        cells(text)


def test_methods_are_made_over_the_districts_of_the_files(folder):
    found = {
        name: method_from_name(name, cells(FILES), None, RULE)
        for name in ("flat", "flat:1", "hierarchical", "geometric:2")
    }
    assert [type(method) for method in found.values()] == [Flat, Flat, Hierarchical, Geometric]
    assert (found["flat"].level, found["flat:1"].level) == (2, 1)
    assert isinstance(method_from_name("adaptive", cells(FILES), None, RULE), Adaptive)
    national = method_from_name("national", cells(FILES.replace(":", "@12:", 1)), None, RULE)
    assert isinstance(national, TreesWithinDistricts)
    assert national.tree.square.depth == 12
    assert method_from_name("national:5000", cells(FILES), None, RULE).dynamic_below == 5000
    assert reach(national) == reach(found["flat"]) == Box(0, 0, 4, 2)


def test_what_districts_cannot_be_is_refused(folder):
    with pytest.raises(InputError, match="leave the box out"):
        method_from_name("flat", cells(FILES), Box(0, 0, 1, 1), RULE)
    with pytest.raises(InputError, match=r"a method for districts is one of: auto, .*national.*found 'htf'"):
        method_from_name("htf", cells(FILES), None, RULE)
    with pytest.raises(InputError, match=r"levels 0 .* to 2; found 3"):
        method_from_name("flat:3", cells(FILES), None, RULE)
    with pytest.raises(FileError, match="there is no file"):
        method_from_name("flat", cells("districts:nowhere.geojson"), None, RULE)
    with pytest.raises(InputError, match="only somebody can answer who sees all rows"):
        among_devices(method_from_name("national", cells(FILES), None, RULE), 1000)


def test_a_border_of_districts_cuts_cells_of_few_people(folder):
    """The noise is fixed: drawn anew, one run of sixty has a cell of more people."""
    drawn = {"ledger": Ledger(folder / "ledger.sqlite"), "stream": Stream.fixed(b"s1")}
    made = release(folder / "people.parquet", person="user", epsilon=2, cells=FILES, method="national", **drawn)
    for name, truth in (("West", 3000), ("East", 0)):
        found = made.count(name)
        assert found.unbiased == pytest.approx(truth, abs=60 + found.cut) and found.cut < 1000


@pytest.mark.parametrize("method", ["national", "national:2000", "flat:1"])
def test_a_map_of_districts_is_one_command(folder, method):
    command = ["release", "people.parquet", "-o", "map.parquet", "--person", "user", "-e", "2", "--cells", FILES]
    result = CliRunner().invoke(app, [*command, "--method", method, "--ledger", "ledger.sqlite"])
    assert result.exit_code == 0, result.output
    opened = Release.open("map.parquet")
    assert opened.total().unbiased == pytest.approx(3000, abs=60)
    west, east = opened.count("West"), opened.count("East")
    assert west.unbiased + east.unbiased == pytest.approx(opened.total().unbiased, abs=1e-6)
    for found, truth in ((west, 3000), (east, 0)):  # an answer says how many people are in cells that a border cuts
        assert found.unbiased == pytest.approx(truth, abs=60 + found.cut)
        assert found.cut == 0 or method == "national"
    assert "districts of states.geojson, counties.geojson" in opened.statement.method
    assert not any("box" in thing for thing in (*opened.statement.charged, *opened.statement.public))
    frame = opened.to_geodataframe()
    assert frame["area_km2"].sum() == pytest.approx(98_550, rel=1e-2)
    assert frame["geometry"].is_valid.all()


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("cells", "method"),
    [
        ("districts:one.geojson", None),
        ("districts:one.geojson,states.geojson", None),
        ("districts:one.geojson,states.geojson", "hierarchical"),
    ],
)
def test_one_district_on_top_of_a_tree_is_cut_alike_on_every_processor(folder, cells, method):
    """Its one child gives logarithms to base 1: infinities, which processors turn into different whole numbers."""
    one = geopandas.GeoDataFrame({"name": ["state"]}, geometry=[shapely.box(0, 0, 4, 2)], crs="EPSG:4326")
    one.to_file("one.geojson")
    options = {"method": method, "cells": cells, "ledger": Ledger(folder / "ledger.sqlite")}
    made = release(folder / "people.parquet", person="user", epsilon=2, stream=Stream.fixed(b"s1"), **options)
    assert made.total().unbiased == pytest.approx(3000, abs=60)
    assert len(made.to_dataframe()) == (1 if cells.endswith("one.geojson") else 2)


def test_districts_inside_a_small_one_are_asked_for_by_name(folder):
    command = ["release", "people.parquet", "-o", "map.parquet", "--person", "user", "-e", "2", "--cells", FILES]
    assert CliRunner().invoke(app, [*command, "--method", "national", "--ledger", "ledger.sqlite"]).exit_code == 0
    opened = Release.open("map.parquet")
    whole = opened.count(shapely.box(0, 0, 2, 2))
    assert opened.count("West").unbiased == pytest.approx(whole.unbiased, abs=1e-6)
    assert opened.count(["West > a", "West > b", "West"]).unbiased == pytest.approx(whole.unbiased, abs=1e-6)
    result = CliRunner().invoke(app, ["ask", "map.parquet", "--cell", "West > a", "--cell", "West > b"])
    assert result.exit_code == 0, result.output
    assert "people" in result.output


def test_rectangles_beside_a_district_are_drawn_and_exported_as_nothing(folder):
    arms = shapely.box(0, 0, 4, 0.1) | shapely.box(0, 0, 0.1, 4)
    corner = geopandas.GeoDataFrame({"name": ["Corner"]}, geometry=[arms])
    corner.set_crs("EPSG:4326").to_file(folder / "corner.geojson")
    along, book = np.linspace(0, 4, 3000), Ledger(folder / "ledger.sqlite")
    table = pa.table({"user": np.arange(6000), "lon": [*along, *along * 0], "lat": [*along * 0, *along]})
    order = {
        "epsilon": 2,
        "cells": "districts:corner.geojson",
        "method": "national",
        "ledger": book,
        "dataset": "people",
    }
    made = release(table, person="user", stream=Stream.fixed(b"beside"), **order)
    beside = made.to_dataframe()["area_km2"] == 0
    assert beside.any()
    assert not beside.all()
    for suffix in ("csv", "fgb", "gpkg", "geojson", "parquet"):
        (made.save if suffix == "parquet" else made.export)(folder / f"corner.{suffix}")
    assert len(pd.read_csv("corner.csv")) == len(beside)
    assert len(geopandas.read_file("corner.fgb")) == len(beside) - beside.sum()
    assert Release.open("corner.parquet").total() == made.total()
    assert made.plot().axes
