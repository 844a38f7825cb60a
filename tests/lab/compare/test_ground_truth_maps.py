"""Maps of which all is known: their tables are those of their people, and names lead to them."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.algorithms import AdaptiveGrid
from hazemap.cells import Leaves
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.lab.compare.datasets import MADE_UP, Datasets
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap, in_pixels, middles, places
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_trees import TwoLevelGrid
from hazemap.tables.contribution_bounding import AtMostRows, OneVote, RowIsPerson


def some_map(seed=1, depth=4, mean=2.0):
    return GroundTruthMap.of("some", np.random.default_rng(seed).poisson(mean, (1 << depth, 1 << depth)))


def rows_of(place):
    """The same people as rows of a table, one by one."""
    at = middles(place.tree, place.tree.grid(place.tree.depth).ravel())
    times = place.counts.ravel()
    return MemoryTable(np.arange(place.people), {name: np.repeat(column, times) for name, column in at.items()})


@pytest.mark.parametrize("rule", [RowIsPerson(), AtMostRows(1), OneVote(16)], ids=str)
@pytest.mark.parametrize("depth", [4, 2, 0])
def test_the_table_of_a_map_gives_the_votes_of_its_rows(rule, depth):
    place = some_map()
    tree = Quadtree(place.tree.left, place.tree.top, place.tree.side, depth)
    ours, slow = place.table.votes(tree, rule), rows_of(place).votes(tree, rule)
    assert (ours.cells == slow.cells).all() and (ours.weights == slow.weights).all()


def test_another_tree_sees_people_in_the_middle_of_their_pixels():
    place = some_map()
    tree = TwoLevelGrid.regular(place.tree, 3)
    ours, slow = place.table.votes(tree, RowIsPerson()), rows_of(place).votes(tree, RowIsPerson())
    assert (ours.cells == slow.cells).all() and (ours.weights == slow.weights).all()


def test_a_map_without_people_has_a_table():
    place = GroundTruthMap.of("nobody", np.zeros((4, 4), dtype=int))
    for depth in (2, 1):
        tree = Quadtree(place.tree.left, place.tree.top, place.tree.side, depth)
        assert place.table.votes(tree, RowIsPerson()).cells.size == 0


def test_every_pixel_has_a_place_of_its_own_in_the_order_of_cells():
    cells = np.sort(Quadtree.world(3).grid(3).ravel())
    assert (cells[places(3)] == Quadtree.world(3).grid(3)).all()


@given(st.integers(1, 9), st.integers(1, 9))
def test_a_picture_of_any_shape_lies_in_the_north_west_of_a_square(rows, columns):
    picture = np.random.default_rng(rows).integers(0, 5, (rows, columns))
    place = GroundTruthMap.of("any", picture)
    assert place.side >= max(rows, columns) > place.side // 2 or place.side == 1
    assert (place.counts[:rows, :columns] == picture).all() and place.people == picture.sum()


def test_larger_pixels_hold_what_is_in_them():
    place = some_map()
    coarse = place.coarser(2)
    assert coarse.counts[1, 3] == place.counts[4:8, 12:16].sum()
    cells = Leaves.at_level(place.tree, 2)
    votes = place.table.votes(place.tree, RowIsPerson())
    assert (coarse.table.people == cells.total(votes.cells, votes.weights)[coarse.table.cells - np.uint64(16)]).all()


def test_a_sample_is_of_the_people_there_and_the_same_for_a_seed():
    place = some_map(mean=30.0)
    one, again, other = (place.sample(1000, seed) for seed in (b"a", b"a", b"b"))
    assert one.people == 1000 and (one.counts <= place.counts).all()
    assert (one.counts == again.counts).all() and (one.counts != other.counts).any()
    assert (place.sample(place.people, b"a").counts == place.counts).all()
    with pytest.raises(InputError, match="cannot be drawn"):
        place.sample(place.people + 1, b"a")


def test_a_sample_takes_everybody_with_the_same_chance():
    place = GroundTruthMap.of("two", np.array([[9_000, 0], [0, 1_000]]))
    drawn = [place.sample(1_000, bytes([seed])).counts[1, 1] for seed in range(40)]
    # hypergeometric: mean 100, variance 81; the mean of 40 is 5 of its standard deviations off with chance 6e-7
    assert abs(np.mean(drawn) - 100) < 5 * 9 / 40**0.5


def test_a_digest_tells_people_and_places_apart_but_not_names():
    place = some_map()
    moved = GroundTruthMap(place.name, Quadtree.world(4), place.counts)
    more = GroundTruthMap(place.name, place.tree, place.counts + 1)
    assert GroundTruthMap("renamed", place.tree, place.counts, "elsewhere").digest == place.digest
    assert len({place.digest, moved.digest, more.digest}) == 3


def test_cells_become_pixels_and_those_nowhere_are_left_out():
    tree = Quadtree.world(2)
    place = in_pixels("p", tree.grid(2)[[0, 3, 0], [1, 2, 1]], np.array([2, 5, 1]), tree, "")
    assert place.counts[0, 1] == 3 and place.counts[3, 2] == 5 and place.people == 8
    assert in_pixels("p", np.zeros(3, np.uint64), np.ones(3, np.int64), tree, "").people == 0


def test_what_is_no_map_of_people_is_refused():
    for wrong in (np.zeros((2, 2)), np.zeros(4, dtype=int), np.zeros((0, 0), dtype=int)):
        with pytest.raises(InputError, match="made of rows and columns"):
            GroundTruthMap.of("wrong", wrong)
    with pytest.raises(InputError, match="none below 0"):
        GroundTruthMap.of("wrong", np.array([[-1]]))


def test_made_up_maps_need_no_data_and_are_the_same_every_time():
    for name in MADE_UP:
        place = Datasets().map(name)
        assert place.side in (256, 1024) and place.people > 1_000
    fresh = MADE_UP["gaussian-20"].make()
    assert fresh.digest == Datasets().map("gaussian-20").digest
    rows, columns = np.nonzero(fresh.counts)
    people = fresh.counts[rows, columns]
    off = rows - np.average(rows, weights=people)
    assert np.sqrt(np.average(off**2, weights=people)) == pytest.approx(20, rel=0.01)


def test_names_ask_for_fewer_people_and_larger_pixels():
    place = Datasets().map("gaussian-20/64@5000")
    assert place.side == 64 and place.people == 5000 and place.name == "gaussian-20/64@5000"


@pytest.mark.parametrize("name", ["gaussian-20@many", "gaussian-20/100", "gaussian-20@0", "gaussian-20/4096"])
def test_other_names_are_refused(name):
    with pytest.raises(InputError):
        Datasets().map(name)


def test_a_map_that_is_not_there_is_told_with_those_that_are():
    with pytest.raises(InputError, match=r"there are city, gaussian-20.*--map NAME=FILE"):
        Datasets().map("atlantis")


def test_a_map_of_ones_own_is_a_table_a_raster_or_an_array(tmp_path, points):
    import rasterio
    from rasterio.transform import from_origin

    counts = np.arange(12).reshape(3, 4)
    np.save(tmp_path / "a.npy", counts + 0.2)
    pq.write_table(pa.table({"lon": points["lon"], "lat": points["lat"]}), tmp_path / "b.parquet")
    profile = {"driver": "GTiff", "width": 4, "height": 3, "count": 1, "dtype": "float32", "nodata": -1}
    with rasterio.open(tmp_path / "c.tif", "w", **profile, transform=from_origin(13, 53, 0.1, 0.1)) as raster:
        raster.write(np.where(counts == 5, -1, counts).astype(np.float32), 1)
    ends = (("a", "npy"), ("b", "parquet"), ("c", "tif"))
    atlas = Datasets(tuple((name, tmp_path / f"{name}.{end}") for name, end in ends))
    assert (atlas.map("a").counts[:3] == counts).all() and "your own" in atlas.map("a").origin
    table = atlas.map("b")
    cells, times = np.unique(table.tree.cell_at(points, 10), return_counts=True)
    exact = in_pixels("b", cells, times, table.tree, "").counts
    assert table.people == len(points["lon"]) and np.abs(table.counts - exact).sum() < 0.08 * table.people  # 2 m of 27
    assert atlas.map("c").people == counts.sum() - 5


def test_a_file_that_is_no_map_is_refused(tmp_path):
    np.save(tmp_path / "cube.npy", np.zeros((2, 2, 2)))
    np.save(tmp_path / "huge.npy", np.full((2, 2), 1e30))
    for name, words in (("cube", "rows and columns"), ("huge", "no counts"), ("missing", "not there")):
        with pytest.raises(InputError, match=words):
            Datasets(((name, tmp_path / f"{name}.npy"),)).map(name)


def test_the_grid_of_grids_is_released_from_a_map():
    place = some_map(depth=5, mean=10.0)
    assert AdaptiveGrid(place.tree, RowIsPerson()).tree == place.tree
