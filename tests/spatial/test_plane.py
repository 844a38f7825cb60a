"""Squares of any plane: pixels of a screen, metres of a floor, coordinates of a projection."""

import json
from dataclasses import replace
from itertools import pairwise, product

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import hazemap
from hazemap import Box, Leaves, Ledger, MemoryTable
from hazemap.algorithms.count_queries import with_nowhere
from hazemap.cells import NOWHERE
from hazemap.draw import MapExtent
from hazemap.encoders import Counts
from hazemap.errors import FileError, InputError
from hazemap.federated.server.campaign_spec import Campaign
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.device_tasks import askable
from hazemap.releases.cell_geometry import CellGeometry
from hazemap.spatial.plane import Plane, PlaneBox, PlaneQuadtree, ground_unit
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.tables.contribution_bounding import AtMostRows, Outside
from hazemap.values.boolean_attribute import AttributeCells

SCREEN = Plane.parse("1000,800")
FLOOR = Plane.parse("40,30,m")


@st.composite
def trees(draw):
    plane = draw(st.sampled_from([SCREEN, FLOOR, Plane("m", "EPSG:2154")]))
    x, y = (draw(st.floats(-1e7, 1e7)) for _ in "xy")
    size = draw(st.floats(1, 1e6))
    return PlaneQuadtree.over(plane, PlaneBox(x, y, x + size, y + size / 2), draw(st.integers(0, 12)))


@given(trees(), st.data())
def test_a_point_lies_in_the_cell_that_is_said_to_hold_it_and_edges_belong_to_one(tree, data):
    part = data.draw(st.lists(st.floats(0, 1), min_size=1, max_size=8))
    west, south, east, north = (float(edge[0]) for edge in tree.bounds(tree.root))
    x = np.array([west + each * (east - west) for each in part]).clip(west, east)
    y = np.array([south + each * (north - south) for each in part[::-1]]).clip(south, north)
    some = tree.cell_at({"lon": x, "lat": y}, tree.depth)
    assert (some != NOWHERE).all()
    left, low, right, high = tree.bounds(some)
    assert ((left <= x) & (x <= right) & (low <= y) & (y <= high)).all()
    # an edge between two cells belongs to the later column and the later row
    corners = {"lon": left, "lat": low if tree.down else high}
    assert np.array_equal(tree.cell_at(corners, tree.depth), some)
    assert np.array_equal(tree.cell_at({"lon": x, "lat": y}, 0), np.ones(len(x), dtype=np.uint64))


def test_squares_tile_the_plane_and_nothing_beyond_it_is_in_one():
    tree = PlaneQuadtree.over(SCREEN, SCREEN.box, 3)
    grid = Leaves.at_level(tree, 3)
    assert tree.area(grid.cells).sum() == 1_000_000 == tree.area(tree.root)[0]
    west, south, east, north = tree.bounds(grid.cells)
    assert shapely.union_all(shapely.box(west, south, east, north)).equals(shapely.box(0, 0, 1000, 1000))
    places = {"lon": [-0.1, 1000.1, np.nan, 5, 1000], "lat": [5, 5, 5, -1e-9, 1000]}
    found = tree.cell_at({name: np.array(column) for name, column in places.items()}, 3)
    assert (found[:4] == NOWHERE).all() and found[4] == grid.cells.max()
    assert tree.named(tree.names(grid.cells)).tolist() == grid.cells.tolist()


def test_rows_run_down_a_screen_and_up_a_floor():
    for plane, first in ((SCREEN, "root-0"), (FLOOR, "root-2")):
        tree = PlaneQuadtree.over(plane, plane.box, 2)
        low = tree.cell_at({"lon": np.array([1.0]), "lat": np.array([plane.box.south + 1.0])}, 1)
        assert tree.names(low) == [first]
    assert PlaneQuadtree.over(SCREEN, SCREEN.box).depth == 10 and PlaneQuadtree.over(FLOOR, FLOOR.box).depth == 9


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1000", "a plane is WIDTH,HEIGHT"),
        ("1000,800,miles", "a plane is WIDTH,HEIGHT"),
        ("1000,800,yd", "one of the units px"),
        ("0,800", "a box of a plane"),
        ("1e3,800", "a plane is WIDTH,HEIGHT"),
        ("1.2.3,5", "a plane is WIDTH,HEIGHT"),
        ("9999999999,5", "a box of a plane"),
        ("EPSG:4326", "in degree: a plane needs metres or feet"),
        ("EPSG:999999", "no reference system is called EPSG:999999"),
        ("EPSG:21; drop", "a plane is WIDTH,HEIGHT"),
    ],
)
def test_other_planes_are_refused_in_words(text, words):
    with pytest.raises(InputError, match=words):
        Plane.parse(text)


def test_units_are_those_of_the_plane():
    assert ground_unit(PlaneQuadtree.over(SCREEN, SCREEN.box, 1)).column == "px2"
    assert ground_unit(PlaneQuadtree.over(FLOOR, FLOOR.box, 1)) == (1.0, "m²", "m2")
    lambert = Plane.parse("EPSG:2154")
    assert ground_unit(PlaneQuadtree.over(lambert, PlaneBox(0, 0, 9, 9), 1)) == (1e6, "km²", "km2")
    assert Plane.parse("EPSG:2263").unit == "ft"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A release of where people look on a screen."""
    folder = tmp_path_factory.mktemp("screen")
    chance = np.random.default_rng(3)
    x, y = chance.normal([[300], [150]], 60, (2, 3_000)).clip(0, [[1000], [800]])
    table = pa.table({"user": np.arange(3_000), "x": x, "y": y})
    release = hazemap.release(
        table,
        person="user",
        epsilon=1,
        plane="1000,800",
        dataset="screen",
        method="flat:4",
        ledger=Ledger(folder / "ledger.sqlite"),
        output=folder / "screen.parquet",
    )
    return folder, table, release


def test_a_release_on_a_plane_answers_in_its_own_unit(made):
    folder, table, _ = made
    opened = hazemap.Release.open(folder / "screen.parquet")
    x, y = table["x"].to_numpy(), table["y"].to_numpy()
    for region, inside in (
        (PlaneBox(250, 0, 500, 250), (x >= 250) & (x < 500) & (y < 250)),
        (shapely.box(0, 0, 500, 1000), x < 500),
    ):
        answer = opened.count(region, confidence=0.999999)
        assert answer.low <= inside.sum() <= answer.high and answer.stddev < 60
    assert opened.density(300, 150).counted == "people per px²"
    assert opened.top(1).geometry.iloc[0].contains(shapely.Point(300, 150))
    assert {"area_px2", "per_px2"} <= set(opened.columns()) and opened.columns()["area_px2"].sum() == 1_000_000
    assert opened.ground.extent == (0, 0, 1000, 1000) and opened.ground.owned.sum() == pytest.approx(1_000_000)
    assert "the coordinates: a plane in px" in opened.statement.public and "map of screen" in opened._repr_html_()
    with pytest.raises(InputError, match=r"covers 0,0,1000,1000 \(x,y,x,y\)"):
        opened.count(PlaneBox(2000, 0, 3000, 10))
    with pytest.raises(InputError, match="a plane has none"):
        opened.centres(3)


def test_files_say_that_there_is_no_reference_system_and_others_are_refused(made, tmp_path):
    folder, _, release = made
    geo = json.loads(pq.read_metadata(folder / "screen.parquet").metadata[b"geo"])
    assert geo["columns"]["geometry"]["crs"] is None
    assert geopandas.read_parquet(folder / "screen.parquet").crs is None and release.to_geodataframe().crs is None
    release.export(tmp_path / "a.csv")
    assert {"x", "y", "per_px2"} <= set((tmp_path / "a.csv").read_text().partition("\n")[0].split(","))
    release.export(tmp_path / "a.gpkg")
    for name in ("a.geojson", "a.pmtiles", "a.tif"):
        with pytest.raises(FileError, match="this map is on a plane"):
            release.export(tmp_path / name)
    with pytest.raises(FileError, match="this map is on a plane"):
        release.save(tmp_path / "b.tif")


def test_a_picture_of_a_plane_has_its_coordinates_and_no_coast(made):
    _, _, release = made
    figure = release.plot()
    words = {text.get_text() for text in figure.findobj(lambda each: hasattr(each, "get_text"))}
    assert "people per 10 × 10 px" in words and {"200", "400", "200 px"} <= words
    assert not any("°" in word or "km" in word for word in words)
    part = release.plot(box=PlaneBox(200, 100, 400, 300)).axes[0]
    labels = [label.get_text() for label in part.get_yticklabels()]
    assert labels and list(map(float, labels)) == sorted(map(float, labels))
    ticks = part.get_yticks()
    assert all(later < earlier for earlier, later in pairwise(ticks))  # y runs down
    with pytest.raises(InputError, match="outlines are in degrees"):
        release.plot(outlines="coast.geojson")


def test_a_plane_is_blurred_in_its_own_unit(made, tmp_path):
    _, _, release = made
    heat = release.heatmap(30)
    rows, columns = heat.density.shape
    assert (heat.unbiased.sum() * 1_000_000 / rows / columns) == pytest.approx(release.total().unbiased, rel=0.02)
    row, column = np.unravel_index(heat.density.argmax(), heat.density.shape)
    assert abs(1000 * column / columns - 300) < 60 and abs(1000 * row / rows - 150) < 60  # y runs down
    figure = heat.plot(frame=MapExtent.PEOPLE)
    words = {text.get_text() for text in figure.findobj(lambda each: hasattr(each, "get_text"))}
    assert "people per 10 × 10 px, blurred by 30 px" in words and not any("km" in word for word in words)
    assert isinstance(heat.shown_part(frame=MapExtent.PEOPLE), PlaneBox)
    with pytest.raises(InputError, match="as wide as the map, 1,000 px"):
        release.heatmap(2_000)
    with pytest.raises(FileError, match="this map is on a plane"):
        heat.export(tmp_path / "heat.tif")


def test_a_projection_is_named_in_the_file(tmp_path):
    chance = np.random.default_rng(4)
    x, y = chance.normal([[652_000], [6_862_000]], 800, (2, 1_000))
    table = pa.table({"user": np.arange(1_000), "x": x, "y": y})
    release = hazemap.release(
        table,
        person="user",
        epsilon=2,
        plane="EPSG:2154",
        box="648000,6858000,656000,6866000",
        dataset="paris",
        ledger=Ledger(tmp_path / "l.sqlite"),
        output=tmp_path / "paris.parquet",
        method="flat:3",
    )
    assert (
        abs(release.total().unbiased - 1_000) < 60 and release.density(652_000, 6_862_000).counted == "people per km²"
    )
    assert geopandas.read_parquet(tmp_path / "paris.parquet").crs.to_epsg() == 2154
    assert release.ground.km2.sum() == pytest.approx(64)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"plane": "EPSG:2154"}, "say which part of EPSG:2154 is mapped"),
        ({"plane": "1000,800", "cells": "h3:7"}, "cut in squares of a box"),
        ({"plane": "1000,800", "method": "adaptive-grid"}, "cuts rectangles of the ground: on a plane choose auto"),
        ({"plane": "1000,800", "method": "htf"}, "cuts rectangles of the ground"),
        ({"plane": "1000,800", "method": "privlet:4"}, "a wavelet is of squares on the ground"),
        ({"box": "0,0,1000,800"}, "in degrees"),
    ],
)
def test_what_a_plane_cannot_be_is_refused_before_anything_is_paid(asked, words):
    with pytest.raises(InputError, match=words):
        ReleaseSpec.of("t.csv", epsilon=1, **asked)


def test_a_specification_keeps_its_plane():
    spec = ReleaseSpec.of("t.csv", epsilon=1, plane="1000,800", box="100,100,300,300")
    assert ReleaseSpec.from_toml(spec.to_toml()) == spec and 'plane = "1000,800"' in spec.to_toml()
    assert (spec.table.lon, spec.table.lat) == ("x", "y") and spec.algorithm.tree.size == 200
    assert isinstance(spec.box, PlaneBox)


def test_devices_are_asked_nothing_about_a_plane():
    spec = ReleaseSpec.of(epsilon=1, plane="1000,800", outside="drop", dataset="x")
    with pytest.raises(InputError, match="devices know where they are in degrees"):
        Campaign.of(spec, most_numbers=20_000, name="a", purpose="b", cohort=Cohort(500, 500))
    tree = PlaneQuadtree.over(SCREEN, SCREEN.box, 3)
    assert not askable(Counts(Leaves.at_level(tree, 2), AtMostRows(1)))
    assert not askable(Counts(AttributeCells(Leaves.at_level(tree, 2)), AtMostRows(1)))


def test_areas_and_shares_of_nested_cells_are_the_planes_own():
    tree = PlaneQuadtree.over(FLOOR, FLOOR.box, 4)
    ground = CellGeometry(Leaves(tree, np.append(tree.root, tree.children(tree.root)[:1])))
    assert ground.owned.tolist() == [1200.0, 400.0]
    assert not isinstance(Box(0, 0, 1, 1), PlaneBox)


def test_the_command_line_releases_asks_and_draws_a_plane(made, tmp_path, monkeypatch, capsys):
    from hazemap.cli.main import main

    _, table, _ = made
    monkeypatch.chdir(tmp_path)
    pq.write_table(table, "looks.parquet")
    order = ["release", "looks.parquet", "--person", "user", "-e", "1", "--plane", "1000,800", "--ledger", "l.sqlite"]
    assert main([*order, "-o", "m.parquet", "--method", "flat:4", "--json"]) == 0
    capsys.readouterr()
    assert main(["ask", "m.parquet", "--box=0,0,500,500", "--json"]) == 0
    assert 2_000 < json.loads(capsys.readouterr().out)["best_guess"] < 4_000
    assert main(["ask", "m.parquet", "--top", "2", "--json"]) == 0
    assert {"x", "y", "per_px2"} <= set(json.loads(capsys.readouterr().out)["top"][0])
    assert main(["show", "m.parquet", "--box=0,0,500,500", "-o", "m.png"]) == 0


@pytest.mark.parametrize("outside", list(Outside))
def test_one_row_of_one_person_moves_the_counts_of_a_plane_by_no_more_than_is_stated(outside):
    """All tables of up to three people on five places, on edges and beyond them, with and without any one of them."""
    tree = PlaneQuadtree.over(SCREEN, SCREEN.box, 2)
    cells = with_nowhere(Leaves.at_level(tree, 2), AtMostRows(1, outside))
    encoder = Counts(cells, AtMostRows(1, outside))
    places = [(0.0, 0.0), (500.0, 500.0), (250.0, 10.0), (1000.0, 1000.0), (-1.0, 5.0)]

    def counted(people):
        lon, lat = np.array([places[each] for each in people], dtype=float).reshape(-1, 2).T
        return encoder.total(MemoryTable(np.arange(len(people)), {"lon": lon, "lat": lat}))

    for people in (each for size in range(1, 4) for each in product(range(5), repeat=size)):
        whole = counted(people)
        assert whole.sum() == sum(each != 4 or outside is not Outside.DROP for each in people)
        for gone in range(len(people)):
            assert np.abs(whole - counted(people[:gone] + people[gone + 1 :])).sum() <= encoder.sensitivity.l1 == 1


def test_a_file_that_names_a_system_which_nobody_knows_is_refused_in_words(made):
    _, _, release = made
    tree = replace(release.cells.tree, crs="EPSG:999999", unit="m")
    strange = replace(release, map=replace(release.map, cells=Leaves(tree, release.cells.cells)))
    with pytest.raises(InputError, match="no reference system is called EPSG:999999"):
        strange.to_geodataframe()


def test_a_file_of_the_ground_is_refused_before_a_plane_has_paid(tmp_path):
    table = pa.table({"user": [1], "x": [3.0], "y": [4.0]})
    book = Ledger(tmp_path / "l.sqlite")
    ask = {"person": "user", "epsilon": 1, "plane": "1000,800", "method": "flat:3", "dataset": "screen"}
    with pytest.raises(FileError, match="this map is on a plane"):
        hazemap.release(table, ledger=book, output=tmp_path / "a.tif", **ask)
    assert not book.history()
