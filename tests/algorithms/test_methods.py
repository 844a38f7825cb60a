"""What each method asks, and what it makes of the answers. Trust is a table of numbers with seeded noise."""

from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import pytest

from hazemap.algorithms import (
    Adaptive,
    AdaptiveHierarchicalHistogram,
    FittedLevel,
    Flat,
    LocateBox,
    PrivateBoundingBox,
    UniformGrid,
)
from hazemap.algorithms.cell_cutting import bordering, cut
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import NOWHERE, Leaves
from hazemap.errors import InputError
from hazemap.estimate import Measurement, consistent
from hazemap.privacy.budget import PureDP
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.queries.noisy_queries import Answer
from hazemap.spatial.bounding_box import WORLD, Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, OneVote, Outside

TREE = Quadtree.around(Box(13.2, 52.4, 13.6, 52.6), 8)
HEXAGONS = Hexagons(Box(13.2, 52.4, 13.6, 52.6), 6, 9)


class Laplacian:
    """The prices of Laplace noise for a pure ε."""

    def __init__(self, epsilon):
        self.epsilon = epsilon

    def stddev(self, encoder, share):
        return 2**0.5 * encoder.sensitivity.l1 / (self.epsilon * float(share))

    def share(self, encoder, stddev):
        return Fraction(str(round(2**0.5 * encoder.sensitivity.l1 / (self.epsilon * stddev), 9)))


@dataclass
class Seeded:
    """People at given points, and noise that is the same every time."""

    lon: np.ndarray
    lat: np.ndarray
    epsilon: float = 1.0
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(3))
    asked: list = field(default_factory=list)

    def prices(self, budget):
        return Laplacian(self.epsilon)

    def answers(self, question):
        return True

    def answer(self, question, price):
        cells = question.encoder.cells
        base = cells.tree.cell_at({"lon": self.lon, "lat": self.lat}, cells.tree.depth)
        unique, numbers = np.unique(base, return_counts=True)
        exact = cells.total(unique, numbers * question.encoder.bounding.unit)
        stddev = Laplacian(self.epsilon).stddev(question.encoder, question.share)
        noise = np.rint(self.rng.laplace(0, stddev / 2**0.5, cells.size)).astype(np.int64)
        self.asked.append(question)
        return Answer(exact + noise, np.array([stddev]), 3.0)


def town(n=50_000, seed=7):
    rng = np.random.default_rng(seed)
    centre = np.where(rng.random(n) < 0.8, 0.3, 0.7)
    spot = np.clip(centre[:, None] + rng.normal(0, 0.04, (n, 2)), 0.001, 0.999)
    return Seeded(13.2 + 0.4 * spot[:, 0], 52.4 + 0.2 * spot[:, 1])


def tiles(cells: Leaves) -> bool:
    """Whether the cells cover the root, and nothing twice."""
    first, last = cells.spans
    root_first, root_last = cells.tree.span(cells.tree.root)
    real = cells.cells != NOWHERE
    return cells.own((last - first).astype(float) + 1)[real].sum() == ((root_last - root_first).astype(float) + 1).sum()


EVERY = [
    Flat(TREE, 5),
    FittedLevel(TREE),
    UniformGrid(TREE),
    Adaptive(TREE),
    AdaptiveHierarchicalHistogram(TREE),
    AdaptiveHierarchicalHistogram(TREE, people=50_000, reading=Reading.NONNEGATIVE),
]
OVER_HEXAGONS = [Flat(HEXAGONS, 1), FittedLevel(HEXAGONS), Adaptive(HEXAGONS), AdaptiveHierarchicalHistogram(HEXAGONS)]


@pytest.mark.parametrize("method", EVERY + OVER_HEXAGONS, ids=lambda m: f"{type(m).__name__}-{type(m.tree).__name__}")
def test_every_method_ends_in_cells_that_tile_the_domain_and_sum_to_the_people(method):
    result = run(method, town(), PureDP(1), Unrecorded())
    assert isinstance(result.value, CellMap)
    if isinstance(method.tree, Quadtree):
        assert tiles(result.value.cells)
    total = result.value.noise.of(np.ones(result.value.cells.size)).stddev
    assert result.value.unbiased.sum() == pytest.approx(50_000, abs=6 * total)
    assert result.value.values.sum() == pytest.approx(result.value.unbiased.sum())
    assert result.value.values.min() >= 0


@pytest.mark.parametrize("method", EVERY, ids=lambda m: type(m).__name__)
def test_rows_that_lie_nowhere_are_counted_beside_the_cells_at_no_price(method):
    trust = town()
    trust.lon = np.append(trust.lon, np.full(5_000, np.nan))
    trust.lat = np.append(trust.lat, np.full(5_000, np.nan))
    result = run(replace(method, bounding=AtMostRows(1, outside=Outside.PEOPLE)), trust, PureDP(1), Unrecorded())
    nowhere = result.value.unbiased[result.value.cells.cells == NOWHERE]
    assert nowhere == pytest.approx(5_000, abs=100)
    assert sum(question.share for question in trust.asked) == 1


def test_a_vote_shared_out_is_counted_in_people():
    result = run(Adaptive(TREE, OneVote(1024)), town(), PureDP(1), Unrecorded())
    assert result.value.unbiased.sum() == pytest.approx(50_000, rel=0.01)


def test_the_adaptive_tree_is_finer_where_people_are():
    cells = run(Adaptive(TREE), town(), PureDP(1), Unrecorded()).value.cells
    level = TREE.level(cells.cells)
    assert level.max() - level.min() >= 2
    centre = cells.locate(TREE.cell_at({"lon": np.array([13.32]), "lat": np.array([52.46])}, 8))
    corner = cells.locate(TREE.cell_at({"lon": np.array([13.59]), "lat": np.array([52.41])}, 8))
    assert level[centre] > level[corner]


def test_a_cell_is_cut_until_its_parts_hold_what_was_asked():
    quarters = Leaves(TREE, TREE.children(TREE.root))
    numbers = np.array([1600.0, 400.0, 99.0, -50.0])
    parts = cut(quarters, numbers, 100.0)
    assert np.bincount(TREE.level(parts.cells)).tolist() == [0, 2, 4, 16]


def test_the_cells_above_tile_as_the_cells_do():
    cells = Leaves(TREE, np.append(TREE.children(np.array([4, 5, 6, 28], dtype=np.uint64)), [29, 30, 31, NOWHERE]))
    assert sorted(cells.above(1).cells.tolist()) == [0, 4, 5, 6, 7]
    assert sorted(cells.above(9).cells.tolist()) == [0, 1]
    assert cells.above(0) is cells


def test_the_cells_are_asked_first_and_then_coarser_ones():
    trust = town()
    result = run(Adaptive(TREE), trust, PureDP(1), Unrecorded())
    *_, cells, everything = (question.encoder.size for question in trust.asked)
    assert cells == result.value.cells.size > everything == 1


def test_every_run_spends_all_of_the_budget_with_or_without_the_last_deciding_round():
    """On even ground, with a lake or without, the cells get the share of the last deciding round; on a street not, and
    not where places of people are rounded to a lattice, which looks even from afar.
    """
    even = np.random.default_rng(3).uniform(0, 1, (200_000, 2))
    street = even * np.array([1.0, 0.003])
    lake = even[np.hypot(*(even - [0.55, 0.4]).T) > 0.3]
    rounded = (np.floor(even * 40) + 0.5) / 40
    asked = {}
    for name, spots in (("even", even), ("lake", lake), ("street", street), ("rounded", rounded)):
        trust = Seeded(2 * spots[:, 0], 2 * spots[:, 1])
        run(Adaptive(Quadtree.around(Box(0, 0, 2, 2), 9)), trust, PureDP(1), Unrecorded())
        assert sum(question.share for question in trust.asked) == 1
        asked[name] = len(trust.asked)
    assert asked == {"even": 5, "lake": 5, "street": 5, "rounded": 6}


def test_a_map_that_only_looked_even_is_counted_where_people_are():
    """100,000 people at 3,000 stops: most are in cells of the finest level, where few are without a second look."""
    rng, tree = np.random.default_rng(5), Quadtree.around(Box(0, 0, 2, 2), 8)
    lon, lat = 2 * rng.uniform(0, 1, (2, 3_000))[:, rng.integers(0, 3_000, 100_000)]
    finest = {}
    for look in (None, Fraction(3, 100)):
        made = run(Adaptive(tree, second_look=look), Seeded(lon, lat), PureDP(1), Unrecorded()).value.cells
        finest[look] = np.mean(made.levels[made.locate(tree.cell_at({"lon": lon, "lat": lat}, 8))] == 8)
    assert finest[Fraction(3, 100)] > 0.6 and finest[None] < 0.2


def test_a_cell_across_a_border_is_cut_as_the_full_ones_beside_it_are():
    grid = Leaves.at_level(TREE, 3)
    west = np.empty(64, dtype=np.int64)
    west[grid.locate(TREE.span(TREE.grid(3).ravel())[0])] = np.tile(np.arange(8), 8)
    numbers = np.select([west < 4, west == 4], [1000.0, 300.0], 0.0)
    asked = [Measurement(grid, numbers, np.full(64, 25.0), 0.0)]
    found = bordering(asked, consistent(asked, grid))
    full, border, empty = (found[numbers == number] for number in (1000, 300, 0))
    assert np.allclose(full, 1000, rtol=0.05) and (border > 600).all() and (empty < 20).all()
    assert (bordering(asked, consistent([Measurement(grid, -numbers, np.full(64, 25.0), 0.0)], grid)) <= 0).all()


def test_a_prior_replaces_the_first_grid():
    prior = Leaves(TREE, TREE.children(TREE.root))
    trust = town()
    run(Adaptive(TREE, prior=prior), trust, PureDP(1), Unrecorded())
    assert trust.asked[0].encoder.cells == prior


def test_a_prior_of_another_tree_or_with_cells_inside_each_other_is_refused():
    with pytest.raises(InputError, match="same tree"):
        Adaptive(TREE, prior=Leaves(HEXAGONS, HEXAGONS.root))
    with pytest.raises(InputError, match="inside another"):
        Adaptive(TREE, prior=Leaves(TREE, np.array([1, 4], dtype=np.uint64)))


def test_a_collapsed_cell_gives_its_people_to_its_parent():
    tree = Quadtree.world(depth=3)
    method = AdaptiveHierarchicalHistogram(tree, people=1000, split_above=100)
    level_two = Leaves(tree, tree.children(tree.children(tree.root)))
    counts = np.full(16, 50)
    counts[0] = 10  # at most a quarter of the threshold
    grown = method._grown(level_two, Answer(counts, np.ones(1)), 1.0)
    assert 16 not in grown.cells and 4 in grown.cells
    assert grown.locate(tree.span(np.array([16], dtype=np.uint64))[0]).tolist() == [grown.cells.tolist().index(4)]
    assert tiles(grown)


def test_a_partly_split_cell_is_completed_and_then_owns_nothing():
    tree = Quadtree.world(depth=3)
    method = AdaptiveHierarchicalHistogram(tree, people=1000, split_above=100)
    partly = Leaves(tree, np.array([4, 16, 5, 6, 7], dtype=np.uint64))
    grown = method._grown(partly, Answer(np.array([500, 50, 50, 50, 50]), np.ones(1)), 1.0)
    assert sorted(grown.cells.tolist()) == [5, 6, 7, 16, 17, 18, 19]


def test_the_children_of_a_collapsed_cell_stay_as_orphans():
    tree = Quadtree.world(depth=3)
    method = AdaptiveHierarchicalHistogram(tree, people=1000, split_above=100)
    cells = Leaves(tree, np.array([4, 16, 64, 5, 6, 7], dtype=np.uint64))
    grown = method._grown(cells, Answer(np.array([50, 1, 50, 50, 50, 50]), np.ones(1)), 1.0)
    assert sorted(grown.cells.tolist()) == [4, 5, 6, 7, 64]
    assert tiles(grown)


def test_a_cell_of_the_first_level_never_collapses():
    tree = Quadtree.world(depth=3)
    method = AdaptiveHierarchicalHistogram(tree, people=1000, split_above=100)
    quarters = Leaves(tree, tree.children(tree.root))
    assert method._grown(quarters, Answer(np.zeros(4, dtype=np.int64), np.ones(1)), 1.0) == quarters


def test_the_published_schedule_spends_what_a_round_needs_and_then_the_rest():
    trust = town()
    run(AdaptiveHierarchicalHistogram(TREE, people=50_000), trust, PureDP(1), Unrecorded())
    shares = [question.share for question in trust.asked]
    assert sum(shares) == 1 and shares == sorted(shares)
    first = trust.asked[0].encoder
    assert Laplacian(1.0).stddev(first, shares[0]) == pytest.approx(0.1 / 2 * 50_000 / first.size, rel=1e-3)


def test_the_uniform_grid_has_about_as_many_cells_as_its_rule_says():
    result = run(FittedLevel(TREE), town(), PureDP(1), Unrecorded())
    assert result.value.cells.size == 4**6  # 50,000 · 0.98/10 = 4,900, nearest power of four in ratio: 4,096


def test_a_box_is_found_where_the_people_are():
    box = run(LocateBox(), town(), PureDP(1), Unrecorded()).value
    assert box.west < 13.25 and box.east > 13.5 and box.south < 52.43 and box.north > 52.57
    assert box.east - box.west < 3


def test_a_found_box_costs_its_share_and_the_method_spends_the_rest():
    trust = town()
    result = run(PrivateBoundingBox(Adaptive(Quadtree.world(depth=0))), trust, PureDP(1), Unrecorded())
    assert sum(question.share for question in trust.asked) == 1
    assert sum(question.share for question in trust.asked[:2]) == Fraction(1, 25)
    assert result.value.unbiased.sum() == pytest.approx(50_000, rel=0.01)
    hexagons = run(
        PrivateBoundingBox(Adaptive(replace(HEXAGONS, box=Box(-1, -1, 1, 1)))), town(), PureDP(1), Unrecorded()
    )
    assert hexagons.value.unbiased.sum() == pytest.approx(50_000, rel=0.02)


def test_hexagons_start_coarser_where_the_found_box_holds_too_many():
    far = PrivateBoundingBox(Flat(Hexagons(Box(0, 0, 1e-5, 1e-5), 9, 9), 0))
    assert far.tree(Box(13, 52, 13.5, 52.5)).coarsest == 9
    wide = far.tree(Box(-170, -60, 170, 70))
    assert (wide.coarsest, wide.finest) == (3, 9)
    assert far.over(Box(13, 52, 13.5, 52.5)).level == 0
    assert far.over(Box(-170, -60, 170, 70)).level == 1  # finer ones are too many at once


def test_where_no_place_stands_out_the_box_is_the_world_and_the_rest_of_the_budget_makes_a_map():
    nobody = Seeded(np.zeros(0), np.zeros(0))
    assert run(LocateBox(), nobody, PureDP(1), Unrecorded()).value == WORLD
    for method, level in ((Adaptive(TREE), None), (Flat(TREE, 3), 3), (Flat(replace(HEXAGONS, finest=9), 3), 3)):
        found = PrivateBoundingBox(method)
        done = run(found, nobody, PureDP(1), Unrecorded())
        assert sum(exchange.question.share for exchange in done.transcript) == 1 - found.share / 2
        assert not found.found_in(done.transcript)
        cells = done.value.cells
        assert cells.size > 1 and abs(done.value.unbiased.sum()) < 6 * done.value.noise.of(np.ones(cells.size)).stddev
        assert level is None or set(cells.levels.tolist()) <= {level, -1}
        assert not isinstance(cells.tree, Hexagons) or cells.tree.coarsest + level <= 5
    somebody = town()
    found = PrivateBoundingBox(Adaptive(TREE))
    assert found.found_in(run(found, somebody, PureDP(1), Unrecorded()).transcript)


def test_fault_6_a_thousand_people_all_over_the_world_get_a_map_without_a_box():
    """Found fault 6: they paid ε = 1 and got nothing, in 12 of 12 runs."""
    chance = np.random.default_rng(3)
    world = Seeded(chance.uniform(-180, 180, 1_000), chance.uniform(-60, 70, 1_000))
    for epsilon in ("0.5", "1", "2"):
        done = run(PrivateBoundingBox(Adaptive(TREE)), world, PureDP(epsilon), Unrecorded())
        error = done.value.noise.of(np.ones(done.value.cells.size)).stddev
        assert abs(done.value.unbiased.sum() - 1_000) < 6 * error


@pytest.mark.parametrize("reading", Reading)
def test_a_reading_changes_the_best_guess_and_never_the_unbiased_estimate(reading):
    plain = run(Adaptive(TREE), town(), PureDP(1), Unrecorded()).value
    other = run(Adaptive(TREE, reading=reading), town(), PureDP(1), Unrecorded()).value
    assert np.array_equal(plain.unbiased, other.unbiased)
    assert (other.values.min() < 0) == (reading is Reading.UNBIASED)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Adaptive(TREE, deciding=(Fraction(1),), fullness=(5,)),
        lambda: Adaptive(TREE, deciding=(Fraction(1, 2),), fullness=()),
        lambda: Adaptive(TREE, coarser=((1, Fraction(0)),)),
        lambda: AdaptiveHierarchicalHistogram(TREE, c0=Fraction(0)),
        lambda: AdaptiveHierarchicalHistogram(TREE, most_rounds=0),
    ],
)
def test_impossible_parameters_are_refused(make):
    with pytest.raises(InputError):
        make()


def test_a_level_that_the_tree_does_not_have_is_refused():
    with pytest.raises(InputError, match="levels 0 to 8"):
        run(Flat(TREE, 9), town(), PureDP(1), Unrecorded())
