"""National maps: who is dynamic, who pays what, and whether the numbers are right."""

from fractions import Fraction

import geopandas
import numpy as np
import pytest
import shapely

from hazemap import codec
from hazemap.algorithms import METHODS
from hazemap.algorithms.trees_within_districts import TreesWithinDistricts
from hazemap.cells import NOWHERE, Leaves
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.privacy.budget import PureDP
from hazemap.privacy.parallel_composition import ParallelComposition
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Result, Unrecorded, replay, run
from hazemap.queries.noisy_queries import Measure, Query
from hazemap.spatial.district_layers import DistrictLayer
from hazemap.spatial.districts import Districts
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.subdivided_districts import DistrictQuadtree, SubdividedDistricts
from hazemap.tables.contribution_bounding import AtMostRows, Outside
from hazemap.trust.curator import Curator


def layer(shapes: dict, **columns: list) -> geopandas.GeoDataFrame:
    return geopandas.GeoDataFrame({"name": list(shapes), **columns}, geometry=list(shapes.values()), crs="EPSG:4326")


@pytest.fixture(scope="module")
def district_squares() -> DistrictQuadtree:
    """Two large states, the first with four counties, the second with one in a corner; and a small state."""
    states = {"Big": shapely.box(0, 0, 4, 4), "Wide": shapely.box(4, 0, 8, 4), "Small": shapely.box(8, 0, 10, 2)}
    quarters = {f"q{i}": shapely.box(2 * (i % 2), 2 * (i // 2), 2 * (i % 2) + 2, 2 * (i // 2) + 2) for i in range(4)}
    counties = quarters | {"corner": shapely.box(4, 0, 6, 2), "isle": shapely.box(8, 0, 9, 1)}
    parents = ["Big"] * 4 + ["Wide", "Small"]
    tree = Districts.of(layer(states), DistrictLayer(layer(counties, state=parents), parent="state"), whole="all of it")
    return DistrictQuadtree(tree, Quadtree.world(13))


@pytest.fixture(scope="module")
def table() -> MemoryTable:
    """9,000 people in Big, 5,000 in Wide, 800 in Small, and 200 in the sea; most around a few places."""
    rng = np.random.default_rng(1)
    bounds = [((0, 0, 4, 4), 9_000), ((4, 0, 8, 4), 5_000), ((8, 0, 10, 2), 800), ((20, 0, 30, 5), 200)]
    parts = []
    for (west, south, east, north), people in bounds:
        middles = rng.uniform([west, south], [east, north], (people, 2))
        near = middles[rng.integers(0, 5, people)] + rng.normal(0, 0.2, (people, 2))
        places = np.where(rng.random((people, 1)) < 0.7, near, middles)
        parts.append(np.clip(places, [west + 0.01, south + 0.01], [east - 0.01, north - 0.01]))
    lon, lat = np.vstack(parts).T
    return MemoryTable(np.arange(len(lon)), {"lon": lon, "lat": lat})


def made(method: TreesWithinDistricts, table: MemoryTable, epsilon: str = "1", seed: bytes = b"") -> Result:
    return run(method, Curator(table, Stream.fixed(b"national" + seed)), PureDP(epsilon), Unrecorded())


def asked(result: Result, kind: type = Query) -> list[str]:
    """The names of all districts that were counted."""
    names = []
    for question, _ in result.transcript:
        if isinstance(question, kind):
            cells = question.where[0]
            whole = cells.cells[(cells.cells & np.uint64((1 << 44) - 1)) == 1]
            names += cells.tree.names(whole)
    return names


def within(result: Result, name: str) -> np.ndarray:
    leaves = result.value.cells
    first, last = leaves.tree.base.districts.span(leaves.tree.base.districts.named([name]))
    return (leaves.spans[0] >= first) & (leaves.spans[1] <= last)


def test_shares_are_proportional_to_the_cube_roots_of_the_levels_sizes(district_squares):
    shares = TreesWithinDistricts(district_squares).shares
    assert sum(shares) == 1
    assert district_squares.districts.sizes.tolist() == [1, 3, 8]
    roots = np.cbrt([1, 3, 8])
    np.testing.assert_allclose([float(share) for share in shares], roots / roots.sum(), rtol=1e-9)


def test_every_way_pays_the_whole_budget_and_nobody_more(district_squares, table):
    result = made(
        TreesWithinDistricts(district_squares, dynamic_below=2000, bounding=AtMostRows(1, outside=Outside.PEOPLE)),
        table,
    )
    spent = ParallelComposition()
    for question, _ in result.transcript:
        spent.pay(question.share, question.where)
    leaves = result.value.cells
    rule = AtMostRows(1, outside=Outside.PEOPLE)
    paid = {spent.most((Leaves(leaves.tree, leaves.cells[i : i + 1]), rule)) for i in range(leaves.size)}
    assert paid == {Fraction(1)}


def test_districts_of_few_people_are_cut_and_not_asked_for_their_districts(district_squares, table):
    names = asked(made(TreesWithinDistricts(district_squares, dynamic_below=2000), table, epsilon="100"))
    assert {"all of it", "Big", "Wide", "Small", "Big > q0", "Wide > corner", "Wide > unincorporated"} <= set(names)
    assert not [name for name in names if name.startswith("Small >")]


def test_where_noise_is_next_to_nothing_numbers_are_true(district_squares, table):
    result = made(TreesWithinDistricts(district_squares, dynamic_below=2000), table, epsilon="100000")
    votes = table.votes(result.value.cells.tree, AtMostRows(1))
    true = result.value.cells.total(votes.cells, votes.weights)
    np.testing.assert_allclose(result.value.unbiased, true, atol=0.5)
    assert result.value.values.sum() == pytest.approx(14_800, abs=1)
    assert result.value.values[within(result, "Small")].sum() == pytest.approx(800, abs=1)


def test_cells_are_cut_until_few_people_are_left(district_squares, table):
    result = made(TreesWithinDistricts(district_squares, dynamic_below=2000, stop_at=100), table, epsilon="1000")
    tree: SubdividedDistricts = result.value.cells.tree
    edges = tree.rectangles(result.value.cells.cells)
    pixels = (edges.east - edges.west) * (edges.south - edges.north)
    assert np.mean(result.value.values[pixels > 5] < 102) > 0.98  # some trees are as high as they may be
    assert result.value.cells.size > 100


def test_the_whole_is_known_better_than_the_sum_of_its_cells(district_squares, table):
    result = made(TreesWithinDistricts(district_squares, dynamic_below=2000), table)
    everything = np.ones(result.value.cells.size)
    whole = result.value.noise.of(everything).stddev
    assert whole < 0.5 * float(np.sqrt((result.value.stddev**2).sum()))


def test_trees_that_are_only_halved_ask_for_sums_alone(district_squares, table):
    result = made(TreesWithinDistricts(district_squares, dynamic_below=2000, turns=0), table)
    assert not [question for question, _ in result.transcript if isinstance(question, Measure)]
    assert result.value.unbiased.sum() == pytest.approx(14_800, abs=500)


def test_who_is_nowhere_is_counted_with_the_whole_budget(district_squares, table):
    result = made(
        TreesWithinDistricts(district_squares, bounding=AtMostRows(1, outside=Outside.PEOPLE), dynamic_below=2000),
        table,
    )
    at = int(np.flatnonzero(result.value.cells.cells == NOWHERE)[0])
    assert result.value.unbiased[at] == pytest.approx(200, abs=30)  # discrete Laplace of scale 1: P < 1e-12
    assert result.value.stddev[at] < 1.5


def test_counting_people_outside_leaves_the_total_as_well_known(district_squares, table):
    """It was asked last, and districts' totals asked before were then left out: 50 people instead of 2."""
    error = {}
    for outside in (Outside.DROP, Outside.PEOPLE):
        found = made(
            TreesWithinDistricts(district_squares, bounding=AtMostRows(1, outside), dynamic_below=2000), table
        ).value
        error[outside] = found.noise.of(found.places.astype(float)).stddev
    assert error[Outside.PEOPLE] == pytest.approx(error[Outside.DROP], rel=0.1)


def test_a_national_map_is_made_again_from_its_answers(district_squares, table):
    method = TreesWithinDistricts(district_squares, dynamic_below=2000)
    result = made(method, table)
    text = codec.dumps(result.transcript)
    assert text.count('"labels"') == 1  # the polygons travel once
    known = (*METHODS, TreesWithinDistricts)
    again = codec.loads(codec.dumps(method), known)
    assert again == method
    stored = codec.loads(text)
    trust = Curator(table)
    from hazemap.queries.algorithm_session import Exchange

    repeated = replay(again, trust.prices(PureDP(1)), PureDP(1), tuple(Exchange(*pair) for pair in stored))
    assert repeated.value.cells == result.value.cells
    np.testing.assert_array_equal(repeated.value.unbiased, result.value.unbiased)


def test_a_country_with_few_people_is_one_tree(district_squares, table):
    result = made(TreesWithinDistricts(district_squares), table, epsilon="10")
    assert asked(result) == ["all of it", "all of it"]
    assert result.value.unbiased.sum() == pytest.approx(14_800, abs=20)


@pytest.mark.parametrize("wrong", [{"deciding": Fraction(1)}, {"share_a_level": Fraction(1)}, {"stop_at": 0}])
def test_parameters_that_leave_nothing_are_refused(district_squares, wrong):
    with pytest.raises(InputError):
        TreesWithinDistricts(district_squares, **wrong)


def test_other_cells_than_districts_are_refused():
    with pytest.raises(InputError, match="choose districts as cells"):
        TreesWithinDistricts(Quadtree.world(5))


@pytest.mark.slow
def test_intervals_tell_the_truth_about_districts_of_all_levels(district_squares, table):
    """30 maps × 4 unions: the mean of z² is 1, with a standard error of 0.2 for kurtosis 3 (5 of them: P < 1e-6)."""
    squares = []
    for seed in range(30):
        result = made(TreesWithinDistricts(district_squares, dynamic_below=2000), table, seed=bytes([seed]))
        votes = table.votes(result.value.cells.tree, AtMostRows(1))
        errors = result.value.unbiased - result.value.cells.total(votes.cells, votes.weights)
        for name in ("Big", "Wide", "Small", "Wide > corner"):
            inside = within(result, name).astype(float)
            squares.append((errors @ inside / result.value.noise.of(inside).stddev) ** 2)
    assert 0.5 < np.mean(squares) < 2
    assert not 0.5 < 4 * np.mean(squares) < 2  # with half the standard error
