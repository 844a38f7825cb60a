"""Numbers drawn toward what lies around them: against brute force on pixels, and what must not change."""

import numpy as np
import pytest

from hazemap.cells import NOWHERE, Leaves
from hazemap.estimate.shrinkage import _held, drawn_together
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.values.boolean_attribute import BinaryAttribute

TREE = Quadtree(0.5, 0.5, 2.0**-12, 5)  # so small that all pixels have nearly one area


def some_leaves(rng, nested):
    """Cells that tile the square; where nested, some inner cells stand beside their parts."""
    cells, kept, inner = TREE.root, [], []
    while len(cells):
        cut = (rng.random(len(cells)) < 0.7) & (TREE.level(cells) < 5) | (cells == 1)
        kept.append(cells[~cut])
        inner.append(cells[cut][rng.random(cut.sum()) < 0.3] if nested else cells[:0])
        parts = TREE.children(cells[cut])
        cells = parts[rng.random(len(parts)) < 0.8] if nested else parts
    return Leaves(TREE, rng.permutation(np.concatenate([*kept, *inner])))


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_what_lies_in_any_cell_is_what_its_pixels_hold(seed, nested):
    rng = np.random.default_rng(seed)
    leaves = some_leaves(rng, nested)
    values = np.where(leaves.areas > 0, rng.uniform(1, 9, leaves.size), 0)  # nobody is where others fill a cell
    base = Leaves.at_level(TREE, 5).cells
    position, pixel = leaves.locate(base), TREE.area(base)
    density = np.where(position >= 0, values[position] / leaves.areas[position], 0)
    every = np.concatenate([Leaves.at_level(TREE, level).cells for level in range(6)])
    mass, area = _held(leaves, values, every)
    first, last = TREE.span(every)
    inside = (base >= first[:, None]) & (base <= last[:, None])
    assert np.allclose(mass, inside @ (density * pixel), rtol=1e-4)
    assert np.allclose(area, inside @ (pixel * (position >= 0)), rtol=1e-4)


def field(cells, rng=None):
    """People in a smooth hill, and as many as a sample finds of them."""
    x, y, side = TREE.square(cells.cells)
    x, y = ((z + side / 2 - start) / TREE.side for z, start in ((x, TREE.left), (y, TREE.top)))
    exact = 40 * np.exp(-((x - 0.5) ** 2 + (y - 0.4) ** 2) / 0.08)
    return exact, exact if rng is None else rng.poisson(exact).astype(float)


def test_a_sample_of_a_smooth_place_is_nearer_to_it_with_the_help_of_neighbours():
    rng, cells = np.random.default_rng(2), Leaves.at_level(TREE, 5)
    for _ in range(20):
        exact, drawn = field(cells, rng)
        better = drawn_together(cells, drawn, exact, drawn)
        assert ((better - exact) ** 2).sum() < 0.65 * ((drawn - exact) ** 2).sum()


def test_what_is_known_for_sure_stays():
    _, drawn = field(Leaves.at_level(TREE, 5), np.random.default_rng(2))
    cells = Leaves.at_level(TREE, 5)
    assert np.allclose(drawn_together(cells, drawn, np.zeros(cells.size), drawn), drawn)


def test_hexagons_have_neighbours_too():
    rng, tree = np.random.default_rng(4), Hexagons(Box(13.0, 52.2, 13.8, 52.8), 6, 8)
    cells = Leaves.at_level(tree, 2)
    exact = cells.areas / cells.areas.mean() * 20
    drawn = rng.poisson(exact).astype(float)
    better = drawn_together(cells, drawn, exact, drawn)
    assert ((better - exact) ** 2).sum() < 0.4 * ((drawn - exact) ** 2).sum()


def test_people_who_stand_out_stay_where_they_are():
    cells = Leaves.at_level(TREE, 5)
    values = np.full(cells.size, 10.0)
    values[500] = 1_000.0
    better = drawn_together(cells, values, np.full(cells.size, 10.0), values)
    assert better[500] > 990


@pytest.mark.parametrize("seed", range(5))
def test_an_even_place_stays_even_whatever_its_cells(seed):
    leaves = some_leaves(np.random.default_rng(seed), nested=False)
    better = drawn_together(leaves, leaves.areas * 7.0, leaves.areas, leaves.areas * 7.0)
    assert np.allclose(better, leaves.areas * 7.0)


def test_the_cells_a_level_up_keep_their_totals():
    rng, cells = np.random.default_rng(7), Leaves.at_level(TREE, 5)
    drawn = rng.uniform(1, 20, cells.size)
    better = drawn_together(cells, drawn, np.full(cells.size, 30.0), drawn)
    group = cells.above(1).locate(cells.cells)
    assert not np.allclose(better, drawn)
    assert np.allclose(np.bincount(group, better), np.bincount(group, drawn))


def test_nowhere_has_no_neighbours():
    cells = Leaves(TREE, np.append(NOWHERE, Leaves.at_level(TREE, 3).cells))
    values = np.random.default_rng(1).uniform(0, 9, cells.size)
    better = drawn_together(cells, values, np.full(cells.size, 4.0), values)
    assert better[0] == values[0]
    assert better[1:].sum() == pytest.approx(values[1:].sum())


def test_a_tree_that_does_not_know_who_touches_whom_leaves_numbers_alone():
    cells = Leaves.at_level(BinaryAttribute(TREE), 2)
    values = np.arange(cells.size, dtype=float)
    assert drawn_together(cells, values, values, values) is values
