"""Leaves, against brute force over base cells: any cells of any tree, nested or not, with NOWHERE or without."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.cpu_time import within

from hazemap.cells import NOWHERE, Cells, Leaves, Tree
from hazemap.errors import InputError
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree

BOX = Box(10.0, 64.0, 11.5, 65.0)  # holds a pentagon of H3
QUADTREE = Quadtree.around(BOX, 4)
HEXAGONS = Hexagons(BOX, 2, 5)
EAGER = settings(max_examples=150, deadline=None)
trees = st.sampled_from([QUADTREE, HEXAGONS])


def family(tree: Tree) -> Cells:
    """Every cell of a tree."""
    levels = [tree.root]
    for _ in range(tree.depth):
        levels.append(tree.children(levels[-1]))
    return np.concatenate(levels)


FAMILIES = {tree: family(tree) for tree in (QUADTREE, HEXAGONS)}


def ancestors(tree: Tree, cell: np.uint64) -> list[np.uint64]:
    """A cell and all above it, the deepest first; NOWHERE alone."""
    if cell == NOWHERE:
        return [cell]
    chain = [cell]
    while tree.level(np.array([chain[-1]]))[0] > 0:
        chain.append(tree.parent(np.array([chain[-1]]))[0])
    return chain


@st.composite
def partitions(draw: st.DrawFn) -> Leaves:
    tree = draw(trees)
    every = FAMILIES[tree]
    chosen = draw(st.lists(st.integers(-1, len(every) - 1), unique=True, max_size=40))
    cells = np.array([NOWHERE if i < 0 else every[i] for i in chosen], dtype=np.uint64)
    if draw(st.booleans()) and len(cells):  # with all above them, so that chains are long
        together = np.unique(np.concatenate([np.array(ancestors(tree, cell)) for cell in cells]))
        cells = np.random.default_rng(draw(st.integers(0, 99))).permutation(together)
    leaves = Leaves(tree, cells)
    if draw(st.booleans()):  # one after the other, as in a grid
        alone = cells[leaves.holder < 0]
        leaves = Leaves(tree, alone[np.argsort(leaves.spans[0][leaves.holder < 0])])
        assert leaves.in_order
    return leaves


def base_cells(leaves: Leaves, seed: int, count: int = 60) -> Cells:
    """Sorted base cells, some NOWHERE, most of them in or near the leaves."""
    every = FAMILIES[leaves.tree]  # type: ignore[index]
    base = every[leaves.tree.level(every) == leaves.tree.depth]
    ends = np.concatenate(leaves.spans) if leaves.size else base[:1]
    ends = ends[np.isin(ends, base)]
    rng = np.random.default_rng(seed)
    return np.sort(np.concatenate([rng.choice(base, count), rng.permutation(ends)[:count], np.zeros(2, np.uint64)]))


def deepest(leaves: Leaves, base: Cells) -> list[int]:
    """For each base cell the position of the first listed cell on its way up; -1 for none."""
    position = {int(cell): i for i, cell in enumerate(leaves.cells)}
    return [next((position[int(a)] for a in ancestors(leaves.tree, cell) if int(a) in position), -1) for cell in base]


@given(partitions(), st.integers(0, 2**32 - 1))
@EAGER
def test_a_base_cell_belongs_to_the_deepest_cell_that_holds_it(leaves: Leaves, seed: int) -> None:
    base = base_cells(leaves, seed)
    assert leaves.locate(base).tolist() == deepest(leaves, base)
    shuffled = np.random.default_rng(seed).permutation(base)
    assert leaves.locate(shuffled).tolist() == deepest(leaves, shuffled)
    assert leaves.locate(base[:0]).dtype == np.int64


@pytest.mark.slow
@given(partitions(), st.integers(0, 2**32 - 1))
@EAGER
def test_the_total_of_a_cell_is_the_weight_of_the_base_cells_it_owns(leaves: Leaves, seed: int) -> None:
    base = base_cells(leaves, seed)
    weights = np.random.default_rng(seed).integers(-5, 9, len(base))
    expected = [0] * leaves.size
    for position, weight in zip(deepest(leaves, base), weights, strict=True):
        if position >= 0:
            expected[position] += int(weight)
    assert leaves.total(base, weights).tolist() == expected
    assert leaves.total(base[:0], weights[:0]).tolist() == [0] * leaves.size


@pytest.mark.slow
@given(partitions(), st.integers(0, 2**32 - 1))
@EAGER
def test_stretches_hold_what_the_cells_hold_and_have_gaps_between_them(leaves: Leaves, seed: int) -> None:
    base = base_cells(leaves, seed)
    first, last = leaves.stretches
    held = ((first[:, None] <= base) & (base <= last[:, None])).sum(axis=0)
    assert held.tolist() == [position >= 0 for position in deepest(leaves, base)]
    assert (first <= last).all()
    assert (first[1:] > last[:-1] + np.uint64(1)).all()


def test_a_grid_is_one_stretch() -> None:
    assert [len(ends) for ends in Leaves.at_level(QUADTREE, 3).stretches] == [1, 1]


@given(partitions())
@EAGER
def test_the_holder_is_the_nearest_listed_ancestor(leaves: Leaves) -> None:
    position = {int(cell): i for i, cell in enumerate(leaves.cells)}
    for i, cell in enumerate(leaves.cells):
        above = [position[int(a)] for a in ancestors(leaves.tree, cell)[1:] if int(a) in position]
        assert leaves.holder[i] == (above[0] if above else -1)
    assert leaves.nested == any(holder >= 0 for holder in leaves.holder)


def free(tree: Tree, cell: np.uint64, listed: set[int]) -> float:
    """The area of a cell without the listed cells, which lie in it, by walking down."""
    children = tree.children(np.array([cell]))
    area = 0.0
    for child in children:
        if int(child) in listed:
            continue
        first, last = tree.span(np.array([child]))
        busy = any(first[0] <= tree.span(np.array([c], np.uint64))[0][0] <= last[0] for c in listed)
        area += free(tree, child, listed) if busy else float(tree.area(np.array([child]))[0])
    return area


@given(partitions())
@settings(max_examples=40, deadline=None)
def test_a_cell_owns_the_area_of_the_largest_cells_left_free(leaves: Leaves) -> None:
    holders = set(leaves.holder.tolist())
    for i, cell in enumerate(leaves.cells):
        if cell == NOWHERE:
            assert leaves.areas[i] == 0
        elif i in holders:
            inside = {int(c) for c in leaves.cells if c != cell and cell in ancestors(leaves.tree, c)}
            assert leaves.areas[i] == pytest.approx(free(leaves.tree, cell, inside), rel=1e-12)
        else:
            assert leaves.areas[i] == leaves.tree.area(np.array([cell]))[0]


@given(partitions())
@EAGER
def test_the_areas_of_squares_are_differences_and_never_negative(leaves: Leaves) -> None:
    assert (leaves.areas >= 0).all()
    if leaves.tree == QUADTREE:
        whole = np.zeros(leaves.size)
        real = leaves.cells != NOWHERE
        whole[real] = leaves.tree.area(leaves.cells[real])
        np.testing.assert_allclose(leaves.areas, leaves.own(whole), atol=1e-6 * whole.max(initial=1))


@pytest.mark.parametrize("tree", FAMILIES)
def test_a_cell_that_its_children_fill_owns_no_area_and_no_weight(tree: Tree) -> None:
    leaves = Leaves(tree, np.concatenate([tree.root, tree.children(tree.root)]))
    roots = len(tree.root)
    assert (leaves.areas[:roots] == 0).all()
    assert (leaves.areas[roots:] > 0).all()
    base = np.sort(FAMILIES[tree][tree.level(FAMILIES[tree]) == tree.depth])  # type: ignore[index]
    total = leaves.total(base, np.ones(len(base), dtype=np.int64))
    assert (total[:roots] == 0).all()
    assert total.sum() == len(base)


def test_nowhere_owns_the_rows_that_lie_in_no_cell() -> None:
    leaves = Leaves(QUADTREE, np.array([NOWHERE, 1], dtype=np.uint64))
    base = np.sort(QUADTREE.cell_at({"lon": np.array([10.5, np.nan, 99]), "lat": np.array([64.5, 64, 64])}, 4))
    assert leaves.total(base, np.array([3, 4, 5])).tolist() == [7, 5]
    assert leaves.areas.tolist() == [0, QUADTREE.area(QUADTREE.root)[0]]


def test_repeated_foreign_or_stacked_of_cells_are_refused() -> None:
    with pytest.raises(InputError, match="distinct cells"):
        Leaves(QUADTREE, np.array([4, 4], dtype=np.uint64))
    with pytest.raises(InputError, match="one-dimensional"):
        Leaves(QUADTREE, np.array([[4, 5]], dtype=np.uint64))
    for foreign in (4**5, 2**63):
        with pytest.raises(InputError, match="levels 0 to 4"):
            Leaves(QUADTREE, np.array([1, foreign], dtype=np.uint64))


def test_partitions_are_equal_when_their_tree_and_cells_are() -> None:
    cells = QUADTREE.children(QUADTREE.root)
    first, second = Leaves(QUADTREE, cells), Leaves(Quadtree.around(BOX, 4), cells.copy())
    assert first == second
    assert hash(first) == hash(second)
    assert first != Leaves(QUADTREE, cells[::-1])
    assert first != Leaves(Quadtree.around(BOX, 5), cells)
    assert first != cells.tolist()
    assert first.same_cells(Leaves(QUADTREE, cells[::-1]))
    assert not first.same_cells(Leaves(QUADTREE, cells[1:]))
    assert not first.same_cells(Leaves(QUADTREE, np.append(cells[1:], QUADTREE.root)))


def test_the_cells_of_a_partition_cannot_be_written_and_the_callers_still_can() -> None:
    cells = QUADTREE.children(QUADTREE.root)
    leaves = Leaves(QUADTREE, cells)
    with pytest.raises(ValueError, match="read-only"):
        leaves.cells[0] = 1
    cells[0] = 77
    assert leaves.cells[0] == 4


@dataclass(frozen=True)
class OneChild(Quadtree):
    """A tree whose cells have one child each, which has the same span."""

    def children(self, cells: Cells) -> Cells:
        return np.asarray(cells) << np.uint64(2)

    def span(self, cells: Cells) -> tuple[Cells, Cells]:
        rise = (2 * (self.depth - self.level(cells))).astype(np.uint64)
        return cells << rise, cells << rise


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
def test_an_only_child_lies_in_its_parent_and_not_the_other_way_round(order: list[int]) -> None:
    tree = OneChild(0, 0, 1, 2)
    chain: NDArray[np.uint64] = np.array([1, 4, 16], dtype=np.uint64)
    leaves = Leaves(tree, chain[order])
    assert leaves.cells[leaves.locate(np.array([16], np.uint64))].tolist() == [16]
    assert [chain[order][h] if h >= 0 else 0 for h in leaves.holder] == [[0, 1, 4][i] for i in order]
    assert leaves.areas[order.index(0)] == 0


def test_a_hundred_thousand_nested_cells_find_their_holders_at_once() -> None:
    tree = Quadtree.world(20)
    rng = np.random.default_rng(1)
    cells = tree.cell_at({"lon": rng.uniform(-180, 180, 9000), "lat": rng.uniform(-85, 85, 9000)}, 20)
    chains = [cells]
    for _ in range(20):
        chains.append(tree.parent(chains[-1]))
    leaves = Leaves(tree, rng.permutation(np.unique(np.concatenate(chains)))[:100_000])
    assert leaves.size == 100_000
    with within(1):  # 0.02 s on an idle core
        assert leaves.nested
