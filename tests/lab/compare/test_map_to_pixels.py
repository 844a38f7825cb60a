"""Cell maps as pictures, against a loop over pixels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.algorithms import AdaptiveGrid
from hazemap.cellmap import CellMap
from hazemap.cells import NOWHERE, Leaves
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap, middles, owners, painted
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_trees import TwoLevelGrid
from hazemap.tables.contribution_bounding import RowIsPerson
from hazemap.trust.curator import Curator

TREE = Quadtree.world(4)


def cut(rng, tree, nested):
    """Cells of a tree cut at random; where they may be nested, some that were cut are kept too."""
    cells, kept = tree.root, []
    for _ in range(tree.depth):
        split = rng.random(len(cells)) < 0.6
        kept.append(cells[~split])
        if nested:
            kept.append(cells[split][rng.random(split.sum()) < 0.4])
        cells = tree.children(cells[split])
    found = np.concatenate([*kept, cells])
    return found[rng.random(len(found)) < 0.95] if nested else found


@given(st.integers(0, 10_000), st.booleans(), st.booleans(), st.integers(2, 4))
def test_every_pixel_is_painted_by_the_deepest_cell_around_it(seed, nested, nowhere, depth):
    rng = np.random.default_rng(seed)
    tree = Quadtree(TREE.left, TREE.top, TREE.side, depth)
    cells = rng.permutation(cut(rng, tree, nested))
    leaves = Leaves(tree, np.append(cells, [NOWHERE] if nowhere else np.zeros(0, np.uint64)))
    numbers = rng.normal(size=(2, leaves.size))
    made = CellMap(leaves, numbers[0], numbers[1], np.ones(leaves.size), None)
    base = tree.cell_at(middles(TREE, TREE.grid(4).ravel()), depth)
    slow = leaves.locate(base).reshape(16, 16)
    assert (owners(leaves, TREE) == slow).all()
    pixels = np.bincount(slow[slow >= 0], minlength=leaves.size + 1)
    for picture, own in zip(painted(made, TREE), numbers, strict=True):
        expected = np.append(own, 0.0)[slow] / np.maximum(pixels[slow], 1)
        assert (picture == expected).all()


def test_cells_of_a_deeper_tree_and_of_other_trees_are_found_by_the_middle_of_a_pixel():
    deeper = Quadtree(0.0, 0.0, 1.0, 6)
    leaves = Leaves.at_level(deeper, 6)
    west, south, east, north = deeper.bounds(leaves.cells[owners(leaves, TREE)].ravel())
    middle = middles(TREE, TREE.grid(4).ravel())
    assert (
        (west <= middle["lon"]) & (middle["lon"] <= east) & (south <= middle["lat"]) & (middle["lat"] <= north)
    ).all()
    thirds = TwoLevelGrid.regular(TREE, 3)
    found = owners(Leaves(thirds, thirds.children(thirds.root)), TREE)
    assert found[0, 0] == 0 and found[15, 15] == 8 and found[0, 15] == 2


def test_a_release_of_rectangles_keeps_its_total():
    place = GroundTruthMap.of("some", np.random.default_rng(3).poisson(20.0, (32, 32)))
    method = AdaptiveGrid(place.tree, RowIsPerson())
    made = run(method, Curator(place.table, Stream.fixed(b"rectangles")), PureDP(1), Unrecorded()).value
    shown, _ = painted(made, place.tree)
    assert shown.shape == (32, 32) and shown.sum() == pytest.approx(made.values.sum(), rel=0.02)
