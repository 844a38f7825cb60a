"""Which numbers may stand for the base cells of a tree: found without listing places in slots, which are billions."""

import numpy as np
import pytest

from hazemap.engines.streaming.cell_counter import base_cells
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.temporal.time_slots import Clock
from hazemap.values.boolean_attribute import BinaryAttribute
from hazemap.values.histogram_bins import FloatGrid
from hazemap.values.timed_tree import TimedTree

BOX, HOURS = Box(13.0, 52.3, 13.8, 52.7), Clock.hours("UTC")
COARSE, HEXAGONS = Quadtree.around(BOX, 2), Hexagons(BOX, 3, 4)


@pytest.mark.parametrize(
    "tree",
    [
        *(COARSE, HEXAGONS, FloatGrid(), TimedTree(COARSE, HOURS), TimedTree(HEXAGONS, HOURS)),
        *(BinaryAttribute(inner, sides) for inner in (COARSE, TimedTree(COARSE, HOURS)) for sides in (None, 3, 8)),
    ],
    ids=repr,
)
def test_they_begin_and_end_where_base_cells_do(tree):
    first, size = base_cells(tree)
    low, high = tree.span(tree.root)
    assert first <= int(low.min()) and int(high.max()) < first + size <= 2 * (int(high.max()) + 1)


def test_a_fine_map_in_many_slots_takes_no_memory():
    deep = TimedTree(Quadtree.around(BOX, 20), HOURS)
    assert base_cells(deep) == (1, deep.size) and base_cells(BinaryAttribute(deep, 8))[1] == 16 * deep.size
    assert "root" not in vars(deep) and deep.size == 24 * 4**20
    assert np.iinfo(np.uint64).max > base_cells(BinaryAttribute(deep, 8))[1]
