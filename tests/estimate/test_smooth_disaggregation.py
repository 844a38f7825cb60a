"""How people lie inside cells: every cell keeps its number, and what is known of its noise stays true."""

from dataclasses import replace

import numpy as np
import pytest
from tests.estimate.test_empirical_bayes import hill
from tests.estimate.test_tree_levels import HEXES, SQUARES, cut_here_and_there

from hazemap.cellmap import CellMap, Reading
from hazemap.cells import NOWHERE, Leaves
from hazemap.estimate import shown
from hazemap.estimate.smooth_disaggregation import inside
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree

TREE = Quadtree(0.5, 0.5, 2.0**-12, 7)
COARSE, FINE = Leaves.at_level(TREE, 4), Leaves.at_level(TREE, 7)


def summed(cells, fine, numbers):
    return np.bincount(cells.locate(fine.spans[0]), numbers, cells.size)


@pytest.mark.parametrize("tree", [SQUARES, HEXES], ids=["squares", "hexagons"])
@pytest.mark.parametrize("seed", range(4))
def test_every_cell_keeps_its_number_and_is_tiled_by_its_parts(tree, seed):
    rng, cells = np.random.default_rng(seed), cut_here_and_there(tree, seed, [NOWHERE])
    values = rng.exponential(50, cells.size) * (rng.random(cells.size) < 0.5)
    found = inside(cells, values, np.full(cells.size, 2.0))
    assert found.cells.size > cells.size
    assert (found.values >= 0).all()
    assert np.allclose(np.bincount(found.holder, found.values, cells.size), values)
    real = found.cells.cells != NOWHERE
    assert (cells.locate(found.cells.spans[0][real]) == found.holder[real]).all()
    if tree is SQUARES:
        assert np.allclose(np.bincount(found.holder, found.cells.areas, cells.size), cells.areas)
    assert not found.cells.nested


def test_a_smooth_hill_is_nearer_to_the_truth_than_even_cells():
    truth = hill(FINE)
    values = summed(COARSE, FINE, truth)
    found = inside(COARSE, values, np.full(COARSE.size, 1.0))
    even, smooth = (
        np.abs((numbers / cells.areas)[cells.locate(FINE.cells)] * FINE.areas - truth).sum()
        for cells, numbers in ((COARSE, values), (found.cells, found.values))
    )
    assert smooth < 0.35 * even


def test_what_noise_could_have_made_is_not_shown():
    values = summed(COARSE, FINE, hill(FINE))
    assert inside(COARSE, values, np.full(COARSE.size, 1e9)).cells.size == COARSE.size


def test_an_even_map_stays_as_it_is():
    areas = COARSE.areas / COARSE.areas.sum()
    assert inside(COARSE, 1e5 * areas, np.full(COARSE.size, 1.0)).cells.size == COARSE.size


def test_nested_cells_stay_as_they_are():
    nested = Leaves(TREE, np.append(COARSE.cells, FINE.cells[:3]))
    assert inside(nested, np.arange(float(nested.size)), np.ones(nested.size)).cells is nested


def a_map(reading):
    values = summed(COARSE, FINE, hill(FINE))
    made = CellMap.independent(COARSE, values, np.full(COARSE.size, 3.0), 3.0)
    return replace(made, reading=reading)


def test_only_the_most_plausible_map_is_shown_finer():
    for reading in Reading:
        made = a_map(reading)
        assert (shown(made) is made) == (reading is not Reading.LIKELY)


def test_unions_of_cells_have_the_numbers_and_the_noise_they_had():
    made, fine = a_map(Reading.LIKELY), shown(a_map(Reading.LIKELY))
    inner = COARSE.locate(fine.cells.spans[0])
    rng = np.random.default_rng(0)
    for _ in range(5):
        chosen = rng.random(COARSE.size) < 0.3
        before, after = made.noise.of(chosen.astype(float)), fine.noise.of(chosen[inner].astype(float))
        assert after.stddev == pytest.approx(before.stddev)
        assert after.kurtosis == pytest.approx(before.kurtosis)
        assert fine.unbiased[chosen[inner]].sum() == pytest.approx(made.unbiased[chosen].sum())
        assert fine.values[chosen[inner]].sum() == pytest.approx(made.values[chosen].sum())


def test_a_single_hexagon_of_many_is_drawn_toward_its_neighbours():
    tree = Hexagons(Box(8.4, 47.3, 8.7, 47.5), 5, 7)
    cells = Leaves.at_level(tree, 0)
    values = np.where(np.arange(cells.size) == 0, 1000.0, 0.0)
    values[tree.neighbours(cells.cells[:1])[0][0] == cells.cells] = 900.0
    found = inside(cells, values, np.ones(cells.size))
    own = found.holder == 0
    density = found.values[own] / found.cells.areas[own]
    assert density.max() > 1.2 * density.min()
