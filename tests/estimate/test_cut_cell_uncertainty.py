"""Where people are inside cells: what the map tells of it, and the law that follows."""

import numpy as np
import pytest

from hazemap.cellmap import CellMap, Spread
from hazemap.cells import Leaves
from hazemap.estimate.cut_cell_uncertainty import held, placed
from hazemap.estimate.overdispersion import DEEPER, EDGES, Overdispersion
from hazemap.spatial.quadtree import Quadtree

TREE, SILENT = Quadtree(0.25, 0.25, 2.0**-6, 8), Spread(0.0, 0.0)


def one(part: float, people: float, clumped: float, noise: Spread = SILENT, confidence: float = 0.95):
    return placed(np.array([part]), np.array([people]), np.array([clumped]), noise, confidence)


def test_people_in_one_place_are_all_inside_or_all_outside():
    found = one(0.3, 100.0, 1.0)
    assert (found.low, found.high) == pytest.approx((-30, 70), abs=0.5)
    assert found.stddev == pytest.approx(100 * (0.3 * 0.7) ** 0.5)


def test_an_interval_is_as_skewed_as_the_guess():
    found = one(0.1, 100.0, 0.2)
    assert 0 < -found.low <= 10.5 < found.high < 90
    evenly = one(0.5, 100.0, 0.3)
    assert -evenly.low == pytest.approx(evenly.high, abs=0.5)


def test_without_cut_cells_there_is_the_noise_alone():
    nobody = np.empty(0)
    for kurtosis, reach in ((0.0, 1.960), (3.0, 2.118)):
        found = placed(nobody, nobody, nobody, Spread(10.0, kurtosis), 0.95)
        assert found.stddev == 0
        assert found.high == pytest.approx(10 * reach, rel=0.03) == -found.low
    assert placed(nobody, nobody, nobody, SILENT, 0.95) == (0, 0, 0)


def test_many_cut_cells_come_to_a_gaussian_law():
    part, people, clumped = np.full(400, 0.4), np.full(400, 50.0), np.full(400, 0.3)
    found = placed(part, people, clumped, Spread(40.0, 0.0), 0.95)
    spread = np.hypot(found.stddev, 40.0)
    assert found.stddev == pytest.approx((400 * 0.3 * 0.24) ** 0.5 * 50)
    assert found.high == pytest.approx(1.96 * spread, rel=0.03)
    assert found.low == pytest.approx(-1.96 * spread, rel=0.03)


@pytest.mark.parametrize("cells", [1, 3, 20])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_law_is_that_of_drawn_parts_and_noise(cells, confidence):
    """100,000 draws: a share is within 0.0082 of the confidence but for 1 run in 10⁶; steps make intervals longer.

    By either law, every cell uneven or some of them towers; and no longer than the worse of them needs.
    """
    rng = np.random.default_rng(cells)
    part, people, clumped = rng.uniform(0.1, 0.9, cells), rng.uniform(5, 80, cells), rng.uniform(0.05, 0.8, cells)
    size = (100_000, cells)
    alike, own = 1 / clumped - 1, 1 / people
    towers = np.where(rng.random(size) < part, 1, 0)
    evenly = rng.beta(part * (people - 1), (1 - part) * (people - 1), size)
    uneven = rng.beta(part * alike, (1 - part) * alike, size)
    some = np.where(rng.random(size) < np.clip((clumped - own) / (1 - own), 0, 1), towers, evenly)
    found = placed(part, people, clumped, Spread(4.0, 3.0), confidence)
    inside = []
    for shares in (uneven, some):
        drawn = (people * shares).sum(axis=1) - part @ people + rng.laplace(0, 4.0 / 2**0.5, 100_000)
        inside.append(((found.low <= drawn) & (drawn <= found.high)).mean())
        assert found.stddev == pytest.approx((drawn.var() - 16) ** 0.5, rel=0.03)
    assert confidence - 0.0082 <= min(inside) <= confidence + 0.03


def test_a_tower_is_held_where_other_cells_made_the_map_look_half_even():
    """412 was the end, and everybody's number 429: 78 % of the regions around somebody held."""
    tower = placed(np.array([0.005]), np.array([429.0]), np.array([0.5]), SILENT, 0.95, (0.0, 0.0))
    assert tower.high == pytest.approx(429 * 0.995, abs=1)


def test_a_region_that_was_chosen_for_somebody_may_hold_all_who_are_in_one_place_with_them():
    part, people, clumped = np.array([0.005]), np.array([100.0]), np.ones(1)
    anywhere = placed(part, people, clumped, SILENT, 0.95)
    around = placed(part, people, clumped, SILENT, 0.95, (0.0, 100.0))
    assert anywhere.high < 1 and around.high == pytest.approx(99.5, abs=0.5)
    assert around.stddev == anywhere.stddev, "that of a region which is anywhere"
    assert placed(part, people, clumped, SILENT, 0.95, (1e6, 1e6)).high == pytest.approx(anywhere.high, abs=0.5)
    without = placed(1 - part, people, clumped, SILENT, 0.95, (100.0, 0.0))
    assert (without.low, without.high) == pytest.approx((-around.high, -around.low), abs=0.5)


def test_a_region_that_was_chosen_for_somebody_is_like_any_other_where_people_are_spread_evenly():
    part, people, clumped = np.array([0.3]), np.array([1000.0]), np.array([0.001])
    anywhere, around = (placed(part, people, clumped, SILENT, 0.95, (whole, whole)) for whole in (np.inf, 0.0))
    assert around.high == pytest.approx(anywhere.high, rel=0.1) and around.low == pytest.approx(anywhere.low, rel=0.1)


def test_a_cell_holds_no_fewer_than_its_own_number_says_where_the_guess_drew_them_away():
    stddev = np.array([2.0])
    assert held(np.array([9.0]), np.array([46.0]), stddev) == pytest.approx(np.sqrt(46**2 - 4))
    assert held(np.array([9.0]), np.array([-46.0]), stddev) == pytest.approx(np.sqrt(9**2 + 2))


def clumped_map(parts: float, people: float, seed: int = 1) -> CellMap:
    """1,024 families of four cells, whose people are shared out by a Dirichlet law of this D; noise of 5."""
    rng = np.random.default_rng(seed)
    leaves = Leaves.at_level(TREE, 6)
    shares = (
        rng.dirichlet(np.full(4, (1 / parts - 1) / 4), leaves.size // 4)
        if parts
        else np.full((leaves.size // 4, 4), 0.25)
    )
    numbers = (people * shares).ravel() + rng.normal(0, 5, leaves.size)
    return CellMap.independent(leaves, numbers, np.full(leaves.size, 5.0), 0.0)


@pytest.mark.parametrize("parts", [0.05, 0.2, 0.4])
def test_how_people_clump_is_learnt_from_noisy_numbers(parts):
    clumping = Overdispersion.of(clumped_map(parts, 200.0))
    assert clumping.at(np.array([200.0]))[0] == pytest.approx(DEEPER * parts, rel=0.2)


def test_people_who_are_spread_evenly_are_not_taken_to_clump_because_of_the_noise():
    assert Overdispersion.of(clumped_map(0, 200.0)).at(np.array([200.0]))[0] < 0.1


def test_what_is_not_known_is_taken_to_be_all_in_one_place():
    alone = Leaves(TREE, TREE.root)
    found = Overdispersion.of(CellMap.independent(alone, np.array([100.0]), np.array([1.0]), 3.0))
    assert found.at(np.array([1.0, 100, 1e6])) == pytest.approx([1, 1, 1])
    within = Leaves(TREE, np.concatenate([TREE.root, TREE.children(TREE.root)[:2]]))
    assert Overdispersion.of(CellMap.independent(within, np.ones(3), np.ones(3), 3.0)).parts.tolist() == [1.0] * len(
        EDGES
    )


def test_a_person_alone_is_here_or_there():
    assert Overdispersion.of(clumped_map(0.05, 200.0)).at(np.array([0.2, 1.0])) == pytest.approx([1, 1])
