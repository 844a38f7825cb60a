"""Looking only at cells near a region gives what looking at all of them gives, to the last bit."""

import numpy as np
import pytest
import shapely

from hazemap.cells import NOWHERE, Leaves
from hazemap.releases.cell_geometry import CellGeometry
from hazemap.releases.region_weights import shares_in
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.plane import Plane, PlaneBox, PlaneQuadtree
from hazemap.spatial.quadtree import Quadtree

from .conftest import BERLIN, flat, hexagons, nested, with_nowhere


def uneven(tree: Quadtree, seed: int) -> Leaves:
    """A tree that was cut at random, its cells in Z-order or level by level, and `NOWHERE` somewhere."""
    rng, done, cells = np.random.default_rng(seed), [], tree.root
    for level in range(tree.depth + 1):
        stop = rng.random(len(cells)) < (0.3 if level < tree.depth else 1)
        done.append(cells[stop])
        cells = tree.children(cells[~stop])
    every = np.concatenate(done)
    every = every[np.argsort(tree.span(every)[0])] if seed % 3 else every
    return Leaves(tree, np.insert(every, len(every) // 2 if seed % 2 else len(every), NOWHERE))


KINDS = {
    "flat": flat(7, depth=8),
    "nested": nested(),
    "hexagons": hexagons(),
    "nowhere": with_nowhere(),
    "uneven": uneven(Quadtree.around(BERLIN, 6), 1),
    "uneven in order": uneven(Quadtree.around(BERLIN, 6), 2),
    "uneven by level": uneven(Quadtree.around(BERLIN, 6), 3),
    "world": uneven(Quadtree.world(7), 4),
    "plane": Leaves.at_level(PlaneQuadtree.over(Plane.parse("1000,800"), PlaneBox(0, 0, 1000, 800), 7), 6),
}


@pytest.mark.parametrize("kind", KINDS)
def test_cells_near_a_region_have_the_shares_that_they_have_among_all(kind):
    leaves, rng = KINDS[kind], np.random.default_rng(7)
    box = PlaneBox if kind == "plane" else Box
    every = CellGeometry(leaves)
    west, south, east, north = every.extent
    _ = every.bounds
    for turn in range(25):
        x = np.sort(rng.uniform(west - 0.1 * (east - west), east + 0.1 * (east - west), 2))
        y = np.sort(rng.uniform(south - 0.1 * (north - south), north + 0.1 * (north - south), 2))
        if kind != "plane":
            x, y = x.clip(-180, 180), y.clip(-85, 85)
        if turn % 5 == 4 and not kind.startswith("hex"):  # the very edges of some cells
            cells = leaves.cells[leaves.cells != NOWHERE]
            edges = leaves.tree.bounds(cells[rng.integers(0, len(cells), 2)])
            x, y = np.array([edges[0].min(), edges[2].max()]), np.array([edges[1].min(), edges[3].max()])
        if min(x[1] - x[0], y[1] - y[0]) <= 0:
            continue
        region = box(*map(float, (x[0], y[0], x[1], y[1])))
        if turn % 3 == 2:
            region = shapely.Polygon([(x[0], y[0]), (x[1], y.mean()), (x.mean(), y[1])])
        fresh = CellGeometry(leaves)
        assert np.array_equal(shares_in(fresh, region), shares_in(every, region))


def test_a_region_in_a_quadtree_is_answered_without_the_bounds_of_all_cells():
    ground = CellGeometry(flat(7, depth=8))
    assert shares_in(ground, Box(13.31, 52.43, 13.52, 52.55)).any()
    assert "bounds" not in vars(ground)


@pytest.mark.parametrize("seed", range(6))
def test_leaves_with_people_outside_are_in_the_order_that_sorting_gives(seed):
    leaves = uneven(Quadtree.around(BERLIN, 5), seed)
    first, last = leaves.spans
    assert np.array_equal(leaves.order, np.lexsort((leaves.levels, ~last, first)))
    assert (leaves.holder == -1).all()
    assert not leaves.nested
    base = leaves.tree.children(leaves.tree.root)
    base = leaves.tree.span(base)[0]
    places = leaves.locate(base)
    assert (leaves.spans[0][places] <= base).all()
    assert (base <= leaves.spans[1][places]).all()


def test_cells_that_stand_in_each_other_are_not_taken_for_places_in_order():
    leaves = nested()
    both = Leaves(leaves.tree, np.append(leaves.cells, NOWHERE))
    assert not both.places_in_order
    assert both.nested
    assert np.array_equal(both.holder[:-1], leaves.holder)
