"""The cells of a map and all above them: against brute force."""

import numpy as np
import pytest

from hazemap.cells import NOWHERE, Leaves
from hazemap.estimate.shrinkage import TreeLevels
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree

SQUARES = Quadtree(0.5, 0.5, 2.0**-12, 5)
HEXES = Hexagons(Box(8.4, 47.3, 8.7, 47.5), 5, 8)


def cut_here_and_there(tree, seed, extra=()):
    """Cells of several levels that tile the tree, in no order."""
    rng = np.random.default_rng(seed)
    cells, kept = tree.root, []
    for _ in range(tree.depth):
        cut = (rng.random(len(cells)) < 0.6) | (tree.level(cells) == 0)
        kept.append(cells[~cut])
        cells = tree.children(cells[cut])
    return Leaves(tree, rng.permutation(np.concatenate([*kept, cells, np.array(extra, dtype=np.uint64)])))


@pytest.mark.parametrize("tree", [SQUARES, HEXES], ids=["squares", "hexagons"])
@pytest.mark.parametrize("seed", range(3))
def test_every_cell_stands_in_its_generation_below_its_parent(tree, seed):
    leaves = cut_here_and_there(tree, seed, [NOWHERE])
    generations = TreeLevels(leaves)
    found = np.concatenate([each.leaf[each.leaf >= 0] for each in generations.levels])
    assert sorted(found) == sorted(np.flatnonzero(leaves.cells != NOWHERE))
    for level, here in enumerate(generations.levels):
        assert (tree.level(here.cells) == level).all()
        own = here.leaf >= 0
        assert (leaves.cells[here.leaf[own]] == here.cells[own]).all()
        if level:
            above = generations.levels[level - 1]
            assert (above.cells[here.parent] == tree.parent(here.cells)).all()
            assert (above.leaf[here.parent] == -1).all()
            summed = np.bincount(here.parent, here.area, len(above.cells))
            assert np.allclose(summed[above.leaf < 0], above.area[above.leaf < 0])


@pytest.mark.parametrize("tree", [SQUARES, HEXES], ids=["squares", "hexagons"])
def test_around_a_cell_are_its_own_parent_and_what_holds_the_cells_beside_it(tree):
    leaves = cut_here_and_there(tree, 1)
    generations = TreeLevels(leaves)
    start, end = leaves.spans
    for level, here in list(enumerate(generations.levels))[1:]:
        above = generations.levels[level - 1].cells
        for cell, places in zip(here.cells, generations.around(level), strict=True):
            beside = tree.neighbours(np.array([cell]))[0]
            for one, place in zip(beside, places, strict=True):
                if one == NOWHERE:
                    assert place == -1
                elif place >= 0:
                    assert above[place] == tree.parent(np.array([one]))[0]
                elif place < -1:
                    first = tree.span(np.array([one]))[0][0]
                    assert leaves.levels[-2 - place] < level - 1
                    assert start[-2 - place] <= first <= end[-2 - place]
                else:
                    assert leaves.locate(tree.span(np.array([one]))[0])[0] == -1


def test_a_map_of_nothing_but_nowhere_has_no_generation():
    assert TreeLevels(Leaves(SQUARES, np.array([NOWHERE]))).levels == []


@pytest.mark.parametrize("seed", range(3))
def test_the_densest_neighbour_is_found_among_cells_of_all_sizes(seed):
    leaves = cut_here_and_there(SQUARES, seed, [NOWHERE])
    values = np.random.default_rng(seed).exponential(1, leaves.size)
    pixels = SQUARES.grid(SQUARES.depth)
    owner = leaves.locate(SQUARES.span(pixels.ravel())[0]).reshape(pixels.shape)
    density = (values / np.maximum(leaves.areas, 1))[owner]
    wanted = np.zeros(leaves.size)
    for leaf in np.flatnonzero(leaves.cells != NOWHERE):
        rows, columns = np.nonzero(owner == leaf)
        size, top, left = np.ptp(rows) + 1, rows.min(), columns.min()
        around = [(top - size, left), (top + size, left), (top, left - size), (top, left + size)]
        beside = [density[r : r + size, c : c + size].mean() for r, c in around if min(r, c) >= 0 and max(r, c) < 32]
        wanted[leaf] = leaves.areas[leaf] * max(beside)
    assert np.allclose(TreeLevels(leaves).fullest_beside(values), wanted, rtol=1e-3)


def test_hexagons_have_neighbours_of_any_size_too():
    leaves = cut_here_and_there(HEXES, 1)
    found = TreeLevels(leaves).fullest_beside(leaves.areas)
    inner = found > 0
    assert inner.any() and np.allclose(found[inner], leaves.areas[inner], rtol=1e-6)  # an even map is even all around
