"""Fault 8: intervals of regions whose border cuts cells hold, and every form of an answer has the doubt about them."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import shapely
from tests.cpu_time import least_cpu

from hazemap.algorithms import Adaptive, Flat
from hazemap.engines.memory import MemoryTable
from hazemap.lab.methods import CountMin
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.releases import Release
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import RowIsPerson
from hazemap.trust.curator import Curator

from .conftest import BERLIN, STATEMENT

TREE = Quadtree.around(BERLIN, 11)
RELEASES, REGIONS = 5, 40


def people(number: int) -> tuple[np.ndarray, np.ndarray]:
    """A town: half in neighbourhoods, a quarter along two roads, a quarter in forty towers of 20 m."""
    rng = np.random.default_rng(8)
    quarters = rng.random((12, 2))[rng.choice(12, number // 2)] + rng.normal(0, 0.05, (number // 2, 2))
    along = rng.random((number // 4, 1))
    roads = np.where(rng.random((number // 4, 1)) < 0.5, [[0.1, 0.2]], [[0.2, 0.9]]) + along * [[0.7, 0.3]]
    towers = rng.random((40, 2))[rng.choice(40, number - number // 2 - number // 4, p=rng.dirichlet(np.ones(40)))]
    spot = np.concatenate([quarters, roads + rng.normal(0, 0.001, roads.shape), towers])
    spot = np.clip(spot + rng.normal(0, 0.0005, spot.shape), 0.001, 0.999)
    return BERLIN.west + 0.4 * spot[:, 0], BERLIN.south + 0.2 * spot[:, 1]


def released(lon, lat, epsilon: str, seed: int, method=None) -> Release:
    method = method or Adaptive(TREE)
    trust = Curator(MemoryTable(np.arange(len(lon)), {"lon": lon, "lat": lat}), Stream.fixed(b"regions %d" % seed))
    made = run(method, trust, PureDP(epsilon), Unrecorded())
    return Release(made.value, replace(STATEMENT, budget=PureDP(epsilon)), method, made.transcript)


def regions(rng):
    """Boxes and triangles from a hundredth of the map to all of it, anywhere."""
    while True:
        half = np.array([0.2, 0.1]) * np.exp(rng.uniform(np.log(0.02), 0)) * np.exp(rng.normal(0, 0.3, 2))
        middle = np.array([13.2, 52.4]) + rng.random(2) * [0.4, 0.2]
        if rng.random() < 0.5:
            yield Box(*(middle - half), *(middle + half))
        else:
            turn = np.sort(rng.uniform(0, 2 * np.pi, 3))
            shape = shapely.Polygon(middle + half * np.column_stack([np.cos(turn), np.sin(turn)]))
            if shape.intersects(shapely.box(BERLIN.west, BERLIN.south, BERLIN.east, BERLIN.north)):
                yield shape


def held(epsilon: str, releases: int, each: int, number: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    """Of each release the part of regions whose interval holds the truth, and whose noise alone would."""
    lon, lat = people(number)
    with_doubt, noise_alone = np.zeros((2, releases))
    for one in range(releases):
        release, some = released(lon, lat, epsilon, one), regions(np.random.default_rng(one))
        for _ in range(each):
            region = next(some)
            shape = (
                shapely.box(region.west, region.south, region.east, region.north) if isinstance(region, Box) else region
            )
            shapely.prepare(shape)
            true = shapely.contains_xy(shape, lon, lat).sum()
            found = release.count(region)
            with_doubt[one] += found.low <= true <= found.high
            noise_alone[one] += abs(true - found.unbiased) <= 2.17 * found.noise_stddev
    return with_doubt / each, noise_alone / each


@pytest.mark.parametrize("epsilon", [pytest.param("0.1", marks=pytest.mark.slow), "1"])
def test_fault_8_intervals_of_regions_hold_where_borders_cut_cells(epsilon):
    """81 % of the "95 %" held. The noise is fixed, so this cannot fail by chance on the same code."""
    with_doubt, noise_alone = held(epsilon, RELEASES, REGIONS)
    assert with_doubt.mean() >= 0.94 - 3 * with_doubt.std(ddof=1) / RELEASES**0.5
    assert with_doubt.mean() >= 0.93
    assert noise_alone.mean() < 0.92, "the twin that must fail: the noise alone"


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.05", "0.3", "3"])
def test_fault_8_intervals_of_many_regions_hold(epsilon):
    """480 regions of 8 releases, at budgets from tight to loose; `region_coverage` of the benchmarks asks thousands."""
    with_doubt, _ = held(epsilon, 8, 60)
    assert with_doubt.mean() >= 0.94 - 3 * with_doubt.std(ddof=1) / 8**0.5


@pytest.fixture(scope="module")
def release():
    return released(*people(5_000), "1", 1, Flat(TREE, 4))


CUTS = Box(13.31, 52.44, 13.47, 52.53)


def test_fault_8_the_doubt_about_people_in_cut_cells_is_in_every_form_of_an_answer(release, tmp_path):
    found = release.count(CUTS)
    assert found.stddev == pytest.approx(np.hypot(found.noise_stddev, found.placement_stddev))
    assert found.placement_stddev > 3 * found.noise_stddev, "cells of a 16th of the map hold many people"
    assert found.high - found.low > 3 * 2 * 1.96 * found.noise_stddev
    assert f"stddev={found.stddev}" in repr(found) and f"high={found.high}" in repr(found)
    assert "±" not in str(found) and f"{found.low:,.0f} … {found.high:,.0f}" in str(found)
    told = json.loads(json.dumps(found.to_json()))
    assert told["stddev"] == found.stddev and told["noise_stddev"] == found.noise_stddev
    assert release.beyond(CUTS).placement_stddev == pytest.approx(found.placement_stddev)


def test_fault_8_the_command_says_it_too(release, tmp_path, capsys):
    from hazemap.cli.ask import told

    found = release.count(CUTS)
    told(found, as_json=True)
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(found.to_json())), "noise_stddev too"
    told(found, as_json=False)
    words = " ".join(capsys.readouterr().out.split())
    assert f"the noise is {found.noise_stddev:,.0f}" in words and "±" not in words
    assert f"standard error {found.placement_stddev:,.0f}" in words


def test_a_region_of_whole_cells_has_the_doubt_of_the_noise_alone(release):
    for found in (release.total(), release.count("root-03"), release.density(13.3, 52.5)):
        assert found.placement_stddev == 0 and found.noise_stddev == found.stddev


def test_inside_and_outside_of_a_region_are_all_of_the_map(release):
    inside, outside = release.count(CUTS), release.beyond(CUTS)
    assert inside.unbiased + outside.unbiased == pytest.approx(release.map.unbiased.sum())
    assert inside.best_guess + outside.best_guess == pytest.approx(release.map.values.sum())


def test_a_region_in_one_cell_may_hold_all_of_its_people_or_none(release):
    found = release.count(Box(13.301, 52.501, 13.302, 52.502))
    assert found.low <= 0 and found.high >= 1


@pytest.mark.parametrize(
    ("number", "method"), [pytest.param(5_000, Flat(TREE, 3), marks=pytest.mark.slow), (50, Adaptive(TREE))]
)
def test_intervals_hold_for_regions_that_were_chosen_for_the_people_in_one_place(number, method):
    """66 and 72 % held, and some did not hold their own value. The noise is fixed, so chance cannot make it fail."""
    spot = BERLIN.west + 0.4 * 0.3712, BERLIN.south + 0.2 * 0.6123
    lon, lat = np.full(number, spot[0]), np.full(number, spot[1])
    rng, held, zeros = np.random.default_rng(3), [], []
    for seed in range(3):
        release = released(lon, lat, "1", seed, method)
        for _ in range(40):
            half = np.array([0.2, 0.1]) * np.exp(rng.uniform(np.log(0.01), 0)) * np.exp(rng.normal(0, 0.3, 2))
            for middle in (spot + rng.uniform(-1, 1, 2) * half, spot + np.array([2, 2]) * half):
                low, high = np.maximum(middle - half, [13.2, 52.4]), np.minimum(middle + half, [13.6, 52.6])
                if (low >= high).any():
                    continue
                found, true = release.count(Box(*low, *high)), number * bool((low < spot).all() and (spot < high).all())
                assert found.low <= found.best_guess <= found.high
                (held if true else zeros).append(found.low <= true <= found.high)
    assert np.mean(held) >= 0.94 and np.mean(zeros) >= 0.94


def test_intervals_around_somebody_hold_for_a_sketch_of_few_dense_towers():
    """78 % held: among empty cells a tower's looked half even. The noise is fixed, so chance cannot make it fail."""
    rng = np.random.default_rng(8)
    towers = rng.random((20, 2))[rng.choice(20, 5_000, p=rng.dirichlet(np.ones(20)))]
    spots = np.clip(towers + rng.normal(0, 0.0005, (5_000, 2)), 0.001, 0.999)
    lon, lat = spots.T * [[0.4], [0.2]] + [[BERLIN.west], [BERLIN.south]]
    held = np.zeros((6, 15))
    for one, some in enumerate(held):
        release, rng = released(lon, lat, "1", one, CountMin(TREE)), np.random.default_rng(one)
        for k in range(len(some)):
            half = np.array([0.2, 0.1]) * np.exp(rng.uniform(np.log(0.004), 0)) * np.exp(rng.normal(0, 0.3, 2))
            who = rng.integers(len(lon))
            middle = np.array([lon[who], lat[who]]) + rng.uniform(-1, 1, 2) * half
            (west, south), (east, north) = middle - half, middle + half
            true = ((west < lon) & (lon < east) & (south < lat) & (lat < north)).sum()
            found = release.count(Box(west, south, east, north))
            some[k] = found.low <= true <= found.high
    each = held.mean(axis=1)
    assert each.mean() >= 0.94 - 3 * each.std(ddof=1) / len(each) ** 0.5 and each.mean() >= 0.93


@pytest.mark.parametrize("cut", [True, False])
def test_more_confidence_never_gives_a_shorter_interval(release, cut):
    region = CUTS if cut else "root-03"
    found = [release.count(region, each) for each in (0.01, 0.5, 0.9, 0.95, 0.99, 0.999, 0.999999)]
    assert all(wide.low <= narrow.low and narrow.high <= wide.high for narrow, wide in pairwise(found))


@pytest.mark.slow
def test_a_question_about_100_000_cells_takes_less_than_a_second():
    rng = np.random.default_rng(1)
    lon, lat = 13.2 + 0.4 * rng.random(400_000), 52.4 + 0.2 * rng.random(400_000)
    fine = released(lon, lat, "4", 1, Adaptive(TREE, RowIsPerson()))
    assert fine.map.cells.size > 50_000
    fine.count(CUTS)
    assert least_cpu(lambda: fine.count(CUTS)) < 1


def test_intervals_of_the_fullest_cells_hold_though_luck_made_some_of_them_the_fullest():
    """18 % held where a map is even. The noise is fixed, so this cannot fail by chance on the same code."""
    rng, held, alone = np.random.default_rng(5), [], []
    for seed in range(3):
        lon, lat = 13.2 + 0.4 * rng.random(5_000), 52.4 + 0.2 * rng.random(5_000)
        release = released(lon, lat, "0.3", seed, Flat(TREE, 5))
        cells = release.map.cells
        truth = np.bincount(cells.locate(TREE.cell_at({"lon": lon, "lat": lat}, TREE.depth)), minlength=cells.size)
        true = dict(zip(TREE.names(cells.cells), truth, strict=True))
        table = release.to_dataframe().set_index("cell")
        for _, row in release.top(10).iterrows():
            held.append(row["low"] <= true[row.iloc[0]] <= row["high"])
            own = table.loc[row.iloc[0]]
            alone.append(own["low"] <= true[row.iloc[0]] <= own["high"])
    assert np.mean(held) >= 0.94
    assert np.mean(alone) < 0.6, "the twin that must fail: intervals of cells that nobody chose"


def test_the_top_of_all_cells_has_the_intervals_of_the_table(release):
    frame = release.to_dataframe().sort_values("best_guess", ascending=False, kind="stable")
    everything = release.top(len(frame))
    assert np.array_equal(everything["low"], frame["low"]) and np.array_equal(everything["high"], frame["high"])
    some, sure = release.top(3), release.top(3, confidence=0.999)
    assert (sure["low"] < some["low"]).all() and (some["low"] < everything["low"][:3]).all()


@pytest.mark.parametrize("epsilon", ["0.8", "1", "1.5", "3", "20"])
def test_the_interval_of_a_cell_holds_where_noise_comes_in_few_whole_numbers(epsilon):
    """90.5 % held at ε = 3: ± 0.7 is ± 0. By the law of discrete Laplace noise, so not by chance: a = e^−ε."""
    a, release = np.exp(-float(epsilon)), released(np.full(9, 13.3), np.full(9, 52.5), epsilon, 1, Flat(TREE, 3))
    found, row = release.count("root-123"), release.to_dataframe().set_index("cell").loc["root-123"]
    for low, high in ((found.low, found.high), (row["low"], row["high"])):
        margin = high - found.unbiased
        assert low == min(max(found.unbiased - margin, 0), found.best_guess)
        assert 1 - 2 * a ** (np.floor(margin + 1e-9) + 1) / (1 + a) >= 0.945
