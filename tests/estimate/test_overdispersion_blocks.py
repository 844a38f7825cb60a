"""Families that are looked at block by block tell what they tell together, to the last bit."""

import numpy as np
import pytest

from hazemap.cellmap import CellMap
from hazemap.cells import NOWHERE, Leaves
from hazemap.estimate import overdispersion
from hazemap.estimate.overdispersion import Overdispersion
from hazemap.spatial.quadtree import Quadtree


def cellmap(levels: tuple[int, ...], seed: int) -> CellMap:
    """Some quarters cut more often than others, and people outside."""
    tree, rng = Quadtree.world(8), np.random.default_rng(seed)
    quarters = tree.children(tree.children(tree.root))
    cells = list[int]()
    for quarter, level in zip(quarters, np.resize(levels, 16), strict=True):
        part = np.array([quarter])
        for _ in range(level):
            part = tree.children(part)
        cells += part.tolist()
    leaves = Leaves(tree, np.append(np.array(cells, dtype=np.uint64), NOWHERE))
    return CellMap.independent(leaves, rng.normal(20, 30, leaves.size), rng.uniform(1, 2, leaves.size), 3.0)


@pytest.mark.parametrize("levels", [(3,), (0, 1, 2, 3), (4, 0), (0,)])
def test_blocks_of_families_tell_what_all_do(levels, monkeypatch):
    made = cellmap(levels, 3)
    whole = Overdispersion.of(made)
    for size in (1, 7, 64):
        monkeypatch.setattr(overdispersion, "AT_ONCE", size)
        some = Overdispersion.of(made)
        assert some.error == whole.error
        assert np.array_equal(some.parts, whole.parts)


def half(made: CellMap, less: int) -> CellMap:
    """The second half of a map, without some of its cells in the end: the last family is not whole."""
    kept = slice(made.cells.size // 2, made.cells.size - less)
    leaves, numbers = Leaves(made.cells.tree, made.cells.cells[kept]), (made.unbiased[kept], made.stddev[kept])
    return CellMap.independent(leaves, *numbers, 3.0)


@pytest.mark.parametrize("made", [cellmap((3,), 4), half(cellmap((3,), 4), 1), half(cellmap((3,), 4), 3)])
def test_a_map_of_one_level_tells_what_it_tells_among_its_ancestors(made, monkeypatch):
    alone = Overdispersion.of(made)
    assert overdispersion._of_one_level(made) is not None
    assert overdispersion._of_one_level(cellmap((0, 1), 4)) is None
    monkeypatch.setattr(overdispersion, "_of_one_level", lambda _: None)
    whole = Overdispersion.of(made)
    assert alone.error == whole.error
    assert np.array_equal(alone.parts, whole.parts)
