"""Names of many squares are read as the names of one are."""

import numpy as np
import pytest

from hazemap.spatial import quadtree
from hazemap.spatial.plane import Plane, PlaneBox, PlaneQuadtree
from hazemap.spatial.quadtree import Quadtree

TREES = {
    "world": Quadtree.world(24),
    "square": Quadtree(0.25, 0.25, 0.5, 20),
    "flat": Quadtree.world(0),
    "plane": PlaneQuadtree.over(Plane.parse("1000,800"), PlaneBox(0, 0, 1000, 800), 9),
}


def read(tree: Quadtree, names: list[str]) -> list[int] | None:
    texts = [name.encode() for name in names]
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    found = tree.named_in(lengths, np.frombuffer(b"".join(texts), np.uint8))
    return None if found is None else found.tolist()


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_names_one_after_another_are_the_cells_that_each_names(tree, monkeypatch):
    monkeypatch.setattr(quadtree, "AT_ONCE", 7)
    rng = np.random.default_rng(1)
    for level in range(1, tree.depth + 1):
        cells = rng.integers(4**level, 2 * 4**level, 20, dtype=np.uint64)
        assert read(tree, tree.names(cells)) == cells.tolist()
    levels = rng.integers(1, tree.depth, 100, endpoint=True) if tree.depth else np.empty(0, int)
    mixed = np.array([rng.integers(4**level, 2 * 4**level) for level in levels.tolist()], dtype=np.uint64)
    assert read(tree, tree.names(mixed)) == mixed.tolist()
    assert read(tree, []) == []


@pytest.mark.parametrize("bad", ["root", "4", "root-", "", "00x", "0 1", "0" * 25, "root-0", "²", "0\0", "/01", ":01"])
def test_what_is_no_name_is_left_to_who_says_why(bad):
    tree = Quadtree.world(24)
    assert read(tree, [bad]) is None
    assert read(tree, ["012", bad, "0"]) is None
    assert read(Quadtree(0.25, 0.25, 0.5, 20), ["root-012", bad.removeprefix("root-") or "x"]) is None


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_one_wrong_letter_anywhere_makes_a_name_none(tree):
    for level in range(1, tree.depth + 1):
        [name] = tree.names(np.array([2 * 4**level - 1], dtype=np.uint64))
        for place, right in enumerate(name):
            for wrong in {chr(ord(right) ^ bit) for bit in (1, 2, 4, 8, 16, 32, 64)} - set("0123"):
                assert read(tree, ["".join([name[:place], wrong, name[place + 1 :]]), name]) is None


def test_the_levels_of_a_grid_are_those_of_its_cells():
    tree = Quadtree.world(24)
    for level in range(25):
        ends = np.array([4**level, 2 * 4**level - 1], dtype=np.uint64)
        assert tree.level(ends).tolist() == [level, level]
        assert tree.level(np.append(ends, np.uint64(2 * 4**level))).tolist() == [level, level, -1]
        assert tree.level(np.append(ends, np.uint64(0))).tolist() == [level, level, -1]
    assert tree.level(np.empty(0, np.uint64)).tolist() == []
