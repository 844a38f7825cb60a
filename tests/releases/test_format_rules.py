"""Files keep the rules of the validators of their formats, wherever their cells lie."""

import json
import struct

import numpy as np
import pytest
import rasterio
import shapely
from tests.releases.format_rules import faults

from hazemap.algorithms import CellStatistics
from hazemap.cells import Leaves
from hazemap.engines.memory import MemoryTable
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.releases import Statistics
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import OwnMeans
from hazemap.temporal.time_slots import Clock
from hazemap.trust.curator import Curator
from hazemap.values.value_encoding import ValueEncoding

from .conftest import BERLIN, STATEMENT, flat, hexagons, nested, released
from .test_timed_release import released as released_by_slot

ENCODING = ValueEncoding(0, 60, 1, (8,), (10, 9))
EARTH = Box(-180, -90, 180, 90)


def finest(tree, level=0):
    return Leaves.at_level(tree, level)


CELLS = {
    "city": flat,
    "city of few cells": lambda: Leaves(
        tree := Quadtree.around(BERLIN, 12), finest(tree, 4).cells[:3] << np.uint64(16)
    ),
    "nested": nested,
    "hexagons of a city": hexagons,
    "world": lambda: finest(Quadtree.world(4), 2),
    "one cell": lambda: finest(Quadtree.world(4)),
    "world of hexagons": lambda: finest(Hexagons(EARTH, 1, 1)),
    "antimeridian": lambda: finest(Hexagons(Box(178, -20, 180, 0), 3, 3)),
    "north pole": lambda: finest(Hexagons(Box(-180, 86, 180, 90), 2, 2)),
    "south pole": lambda: finest(Hexagons(Box(-180, -90, 180, -84), 2, 2)),
}
LARGE = {
    "world of hexagons, finer": lambda: finest(Hexagons(EARTH, 2, 2)),
    "world of small hexagons": lambda: finest(Hexagons(EARTH, 3, 3)),
}


def statistics(tree, level=0) -> Statistics:
    rng = np.random.default_rng(3)
    places = {"lon": rng.uniform(-180, 180, 5000), "lat": rng.uniform(-90, 90, 5000)}
    values = {"value": rng.normal(30, 8, 5000), "time": rng.uniform(0, 1e8, 5000)}
    slots = Clock("Europe/Berlin", (0, 43200))
    method = CellStatistics(tree, level, slots, ENCODING, OwnMeans(2, scale=ENCODING.scale))
    table = MemoryTable(np.arange(5000) % 2500, places | values)
    done = run(method, Curator(table, Stream.fixed(b"file")), PureDP(2), Unrecorded())
    return Statistics(done.value, "speed", (), STATEMENT, method, done.transcript)


def checked(release, folder, suffixes):
    found = {}
    for suffix in suffixes:
        path = folder / f"map{suffix}"
        (release.save if suffix == ".parquet" else release.export)(path)
        found[suffix] = faults(path)
    return {suffix: broken for suffix, broken in found.items() if broken}


@pytest.mark.parametrize("name", CELLS)
def test_a_map_keeps_the_rules_of_its_formats_wherever_it_lies(name, tmp_path):
    release = released(CELLS[name]())
    pictures = [".tif"] if isinstance(release.cells.tree, Quadtree) else []
    assert checked(release, tmp_path, [".geojson", ".parquet", ".pmtiles", *pictures]) == {}


def test_statistics_by_slot_keep_the_rules_of_their_formats(tmp_path):
    assert checked(statistics(Hexagons(EARTH, 0, 0)), tmp_path, [".geojson", ".parquet", ".pmtiles"]) == {}
    assert checked(statistics(Quadtree.world(3), 2), tmp_path, [".geojson", ".parquet", ".pmtiles", ".tif"]) == {}


@pytest.mark.slow
def test_a_map_by_slot_keeps_the_rules_of_its_formats(tmp_path):
    made = released_by_slot(tmp_path)
    assert checked(made, tmp_path, [".geojson", ".parquet", ".pmtiles", ".tif"]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_a_world_of_many_hexagons_keeps_the_rules_of_its_formats(name, tmp_path):
    cells = LARGE[name]()
    assert checked(released(cells), tmp_path, [".geojson", ".parquet", ".pmtiles"]) == {}
    assert checked(statistics(cells.tree), tmp_path, [".geojson", ".parquet", ".pmtiles"]) == {}


@pytest.mark.parametrize("box", [Box(170, 60, 180, 80), Box(-180, -70, -170, -50), EARTH])
@pytest.mark.parametrize("resolution", [0, 1, 2])
def test_a_hexagon_over_the_antimeridian_is_areas_alone(box, resolution):
    shapes = Hexagons(box, resolution, resolution).outlines(Hexagons(box, resolution, resolution).root)
    assert {shape.geom_type for shape in shapes} <= {"Polygon", "MultiPolygon"}
    assert shapely.is_valid(shapes).all() and not shapely.is_empty(shapes).any()


def test_files_that_break_a_rule_are_found(tmp_path):
    release = released(flat())
    for suffix in (".pmtiles", ".geojson", ".tif"):
        release.export(tmp_path / f"map{suffix}")
    content = bytearray((tmp_path / "map.pmtiles").read_bytes())
    for at, value, fault in (
        (118, 0, "the first zoom is one of the tiles"),
        (100, 0, "zooms are those of the tiles"),
        (72, 1, "addressed tiles are counted"),
    ):
        broken = content.copy()
        broken[at] = value
        (tmp_path / "map.pmtiles").write_bytes(broken)
        assert fault in faults(tmp_path / "map.pmtiles")
    broken = content.copy()
    broken[110:114] = struct.pack("<i", struct.unpack("<i", content[102:106])[0])
    (tmp_path / "map.pmtiles").write_bytes(broken)
    assert "bounds have an area" in faults(tmp_path / "map.pmtiles")
    data = json.loads((tmp_path / "map.geojson").read_text())
    [ring] = data["features"][0]["geometry"]["coordinates"]
    for other, fault in (
        (ring[::-1], "areas are to the left"),
        ([ring[0], ring[1], ring[0], ring[0]], "rings are no lines"),
        ([[170, 0], [-170, 1], [170, 1], [170, 0]], "nothing crosses the antimeridian"),
    ):
        data["features"][0]["geometry"]["coordinates"] = [other]
        (tmp_path / "map.geojson").write_text(json.dumps(data))
        assert fault in faults(tmp_path / "map.geojson")
    with rasterio.open(tmp_path / "map.tif") as picture:
        profile, pixels = (
            {**picture.profile, "tiled": False, "driver": "GTiff", "width": 600, "height": 600},
            picture.read(1),
        )
    del profile["blockxsize"], profile["blockysize"]
    with rasterio.open(tmp_path / "plain.tif", "w", **profile) as picture:
        picture.write(np.resize(pixels, (600, 600)), 1)
    assert {"a large one has overviews", "its layout is said"} <= set(faults(tmp_path / "plain.tif"))
