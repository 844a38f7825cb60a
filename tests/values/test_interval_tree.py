"""Intervals obey the laws of trees, and hold the values they should."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.cells import NOWHERE, Leaves
from hazemap.errors import InputError
from hazemap.values.interval_tree import IntervalTree

trees = st.tuples(st.integers(1, 60), st.lists(st.integers(1, 6), min_size=0, max_size=3)).map(
    lambda pair: IntervalTree(-2.0, 65.0, pair[0], (*pair[1], -(-pair[0] // max(int(np.prod(pair[1])), 1))))
)
VALUES = np.array([-np.inf, -2.0, -1.99, 0.0, 13.7, 31.5, 64.999, 65.0, 1e9, np.nan])


def levels(tree: IntervalTree):
    """The cells of every level, each made of the ones above."""
    cells = [tree.root]
    for _ in range(tree.depth):
        cells.append(tree.children(cells[-1]))
    return cells


@given(trees)
def test_children_tile_their_parents_and_know_them(tree):
    every = levels(tree)
    for level, cells in enumerate(every):
        first, last = tree.span(cells)
        assert (tree.level(cells) == level).all() and (cells != NOWHERE).all() and (first <= last).all()
        assert (first[1:] == last[:-1] + np.uint64(1)).all()
        assert (first[0], last[-1]) == (every[-1][0], every[-1][-1])
        if level:
            number = [len(tree.children(np.array([cell]))) for cell in every[level - 1]]
            assert tree.parent(cells).tolist() == np.repeat(every[level - 1], number).tolist()
    assert len(every[-1]) == tree.bins


@given(trees)
def test_a_value_lies_in_its_interval_on_every_level(tree):
    bins = tree.cell_at({"value": VALUES}, tree.depth)
    edges = np.concatenate([tree.edges[:-1], [np.inf]])
    clipped = np.clip(VALUES[:-1], -2, 65)
    at = (bins[:-1] - levels(tree)[-1][0]).astype(int)
    assert (edges[at] <= clipped + 1e-12).all() and (clipped < edges[at + 1] + 1e-12).all()
    for level in range(tree.depth, 0, -1):
        cells = tree.cell_at({"value": VALUES}, level)
        assert cells[-1] == NOWHERE
        above = tree.cell_at({"value": VALUES[:-1]}, level - 1)
        assert tree.parent(cells[:-1]).tolist() == above.tolist()


@given(trees)
def test_names_come_back_and_widths_add_up(tree):
    for cells in levels(tree):
        assert tree.named(tree.names(cells)).tolist() == cells.tolist()
        assert tree.area(cells).sum() == pytest.approx(67)
        assert Leaves(tree, cells).size == len(cells)


@pytest.mark.parametrize("name", ["3/0", "1/10", "x", "1", "1/2/3", "-1/0", "1/-1", "01/1"])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(InputError, match="such as"):
        IntervalTree(0, 1, 100, (10, 10)).named([name])


@pytest.mark.parametrize(
    "impossible",
    [(0, 0, 4, (2, 2)), (0, 1, 5, (2, 2)), (0, 1, 0, (2,)), (0, 1, 4, ()), (0, 1, 4, (0, 4)), (0, np.inf, 4, (4,))],
)
def test_trees_that_cannot_be_are_refused(impossible):
    with pytest.raises(InputError):
        IntervalTree(*impossible)


def test_intervals_are_no_places_and_end_somewhere():
    tree = IntervalTree(0, 1, 4, (2, 2))
    for wrong in (
        lambda: tree.outlines(tree.root),
        lambda: tree.parent(tree.root),
        lambda: tree.children(tree.cell_at({"value": np.zeros(1)}, 2)),
        lambda: tree.cell_at({"lon": np.zeros(1)}, 1),
    ):
        with pytest.raises(InputError):
            wrong()
    assert tree.level(np.array([0, 1 << 62], dtype=np.uint64)).tolist() == [-1, -1]
