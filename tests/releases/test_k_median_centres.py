"""The places that people have the least way to, from a map."""

from dataclasses import replace

import geopandas
import numpy as np
import pytest
import shapely

from hazemap.algorithms import Pyramid
from hazemap.cellmap import CellMap
from hazemap.cells import NOWHERE, Leaves
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.releases import Release
from hazemap.releases.k_median_centres import FINE, RADIUS, Centres
from hazemap.spatial.districts import Districts
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.subdivided_districts import DistrictQuadtree
from hazemap.tables.contribution_bounding import OneVote
from hazemap.trust.curator import Curator

from .conftest import BERLIN, STATEMENT

HOMES = np.array([[13.25, 52.45], [13.41, 52.52], [13.55, 52.56]])


def of(leaves, values):
    numbers = np.asarray(values, float)
    return Release(CellMap.independent(leaves, numbers, np.full(leaves.size, 2.0), 0.0), STATEMENT, None, ())


def metres(lon, lat, other):
    lon, lat, there = np.radians(lon), np.radians(lat), np.radians(other)
    cosine = np.sin(lat) * np.sin(there[1]) + np.cos(lat) * np.cos(there[1]) * np.cos(lon - there[0])
    return RADIUS * np.arccos(np.minimum(cosine, 1))


def test_people_in_three_cells_have_their_middles_as_centres():
    tree = Quadtree.around(BERLIN, 10)
    cells = tree.cell_at({"lon": HOMES[:, 0], "lat": HOMES[:, 1]}, 10)
    west, south, east, north = tree.bounds(cells)
    found = of(Leaves(tree, cells), [30, 50, 20]).centres(3)
    assert found.best_guess.tolist() == [50, 30, 20]
    assert found.metres.max() < 0.01
    assert found.lon == pytest.approx(((west + east) / 2)[[1, 0, 2]], abs=1e-9)
    assert found.lat == pytest.approx(((south + north) / 2)[[1, 0, 2]], abs=1e-9)
    assert found.cost < 1


def test_fewer_centres_than_cells_are_where_most_are():
    tree = Quadtree.around(BERLIN, 10)
    cells = tree.cell_at({"lon": HOMES[:, 0], "lat": HOMES[:, 1]}, 10)
    found = of(Leaves(tree, cells), [30, 50, 20]).centres(2)
    assert found.best_guess.sum() == pytest.approx(100)
    assert found.cost == pytest.approx(20 * metres(*HOMES[1], HOMES[2]), rel=0.05)
    assert of(Leaves(tree, cells), [30, 50, 20]).centres(9).best_guess.tolist() == [50, 30, 20]


def test_people_are_spread_evenly_in_a_large_cell():
    tree = Quadtree.around(BERLIN, 8)
    found = of(Leaves(tree, tree.root), [64]).centres(4)
    assert found.best_guess == pytest.approx(16, rel=0.1)  # a quarter of the square each
    side = float(np.sqrt(tree.area(tree.root)[0]))
    assert found.metres.mean() == pytest.approx(
        0.3826 / 2 * side, rel=0.01
    )  # from the middle of a square: 0.3826 sides
    assert FINE == 1024


def test_minus_signs_hollow_cells_and_nowhere_hold_nobody(nested_release, hexagon_release):
    for release in (nested_release, hexagon_release):
        found = release.centres(3)
        assert found.best_guess.sum() == pytest.approx(
            np.maximum(release.map.values[release.map.places], 0).sum(), rel=0.2
        )
    tree = Quadtree.around(BERLIN, 4)
    leaves = Leaves(tree, np.append(Leaves.at_level(tree, 1).cells, NOWHERE))
    assert of(leaves, [-5, 0, 7, 0, 1000]).centres(2).best_guess.sum() == pytest.approx(7)
    with pytest.raises(InputError, match="nobody"):
        of(leaves, [-5, 0, 0, 0, 1000]).centres(2)
    with pytest.raises(InputError, match="1 centre"):
        of(leaves, [-5, 0, 7, 0, 1000]).centres(0)


def test_any_places_cost_what_they_truly_do_give_or_take_the_earth_movers_distance():
    tree = Quadtree.around(BERLIN, 6)
    rng = np.random.default_rng(2)
    lon, lat = (HOMES[rng.choice(3, 200)] + rng.normal(0, 0.01, (200, 2))).T
    rows, rule = MemoryTable(np.arange(200), {"lon": lon, "lat": lat}), OneVote()
    made = run(Pyramid(tree, rule), Curator(rows, Stream.fixed(b"k")), PureDP(10), Unrecorded()).value
    release = Release(made, STATEMENT, None, ())
    found = release.centres(3)

    def true_cost(places: Centres):
        ways = [metres(lon, lat, place) for place in zip(places.lon, places.lat, strict=True)]
        return np.min(ways, axis=0).sum()

    best = true_cost(replace(found, lon=HOMES.T[0], lat=HOMES.T[1]))
    assert best <= true_cost(found) * 1.02
    assert true_cost(found) < 1.5 * best
    assert found.best_guess.sum() == pytest.approx(200, rel=0.1)


def test_a_map_across_the_date_line_has_its_centre_there():
    tree = Quadtree.world(depth=8)
    cells = tree.cell_at({"lon": np.array([179.9, -179.9]), "lat": np.array([10.0, 10.0])}, 8)
    found = of(Leaves(tree, cells), [10, 10]).centres(1)
    assert abs(abs(found.lon[0]) - 180) < 1.5


def test_intervals_and_ways_are_those_of_the_numbers():
    tree = Quadtree.around(BERLIN, 10)
    cells = tree.cell_at({"lon": HOMES[:, 0], "lat": HOMES[:, 1]}, 10)
    found = of(Leaves(tree, cells), [30, 50, 20]).centres(2)
    assert found.ways.unbiased == pytest.approx(found.cost / 1e3)
    far = metres(*HOMES[1], HOMES[2]) / 1e3
    assert found.ways.stddev == pytest.approx(2.0 * far, rel=0.05)
    side = np.sqrt(tree.area(cells).max()) / 1e3
    assert 100 * 0.7 * side < found.placement < 100 * 0.8 * side
    assert (found.high - found.low).tolist() == pytest.approx([2 * np.ceil(1.96 * 8**0.5), 2 * 4])
    assert ((found.low <= found.best_guess) & (found.best_guess <= found.high)).all()


def test_cells_without_ground_hold_nobody_and_have_no_place():
    """Trees in districts cut some cells to nothing at the border."""
    west = geopandas.GeoDataFrame({"name": ["West"]}, geometry=[shapely.box(0, 0, 1, 1)], crs="EPSG:4326")
    tree = DistrictQuadtree(Districts.of(west), Quadtree.world(12))
    cells = tree.root
    for _ in range(9):
        cells = tree.children(cells)
    empty = shapely.is_empty(tree.outlines(cells))
    assert empty.any() and not empty.all()
    found = of(Leaves(tree, cells), np.where(empty, 3.0, 20.0)).centres(3)
    assert np.isfinite([found.lon, found.lat, found.metres]).all() and (abs(found.lon - 0.5) < 0.6).all()
