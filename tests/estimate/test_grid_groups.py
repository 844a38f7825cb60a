"""A grid of any number of parts is shown by groups of its cells, as a level of a quadtree is."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.algorithms.conftest import BOX

from hazemap.algorithms import UniformGrid
from hazemap.cellmap import Reading
from hazemap.cells import NOWHERE, Leaves
from hazemap.encoders import Counts
from hazemap.estimate import nonnegative, postprocess, read
from hazemap.estimate.grid_groups import GridGroups
from hazemap.estimate.shrinkage import TreeLevels
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap, painted
from hazemap.lab.compare.map_scores import Scorer
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.queries.noisy_queries import Answer, Query
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_trees import TwoLevelGrid
from hazemap.tables.contribution_bounding import AtMostRows, Outside, RowIsPerson
from hazemap.trust.curator import Curator

SQUARE = Quadtree.around(BOX, 9)
seeds = st.integers(0, 2**32 - 1)


def a_grid(rng, most_blocks=12, most_parts=6) -> TwoLevelGrid:
    first = int(rng.integers(1, most_blocks + 1))
    return TwoLevelGrid(SQUARE, first, rng.integers(1, most_parts + 1, first * first))


@given(seeds)
def test_groups_tile_the_grid_and_numbers_come_back_to_their_cells(seed):
    rng = np.random.default_rng(seed)
    grid = a_grid(rng)
    tree, cells = GridGroups(grid), Leaves.at_level(grid, 2)
    grouped = tree.grouped(cells)
    assert grouped.cells.in_order and np.allclose(grouped.back(grouped.cells.areas), cells.areas)
    numbers, blocks = rng.normal(size=cells.size), tree.grouped(Leaves.at_level(grid, 1))
    by_block = np.bincount(blocks.cells.locate(grouped.cells.spans[0]), numbers[grouped.order])
    assert np.allclose(blocks.back(by_block), np.add.reduceat(numbers, np.cumsum(grid.second**2) - grid.second**2))
    generations = TreeLevels(grouped.cells).levels
    for upper, lower in pairwise(generations):
        assert np.array_equal(tree.parent(lower.cells), upper.cells[lower.parent])
        assert np.bincount(lower.parent).max() <= 4
    for level in generations:
        assert np.allclose(tree.area(level.cells), level.area)


def test_cells_of_a_plain_grid_have_the_neighbours_that_they_touch():
    tree = GridGroups(TwoLevelGrid.regular(SQUARE, 5))
    cells = tree.grouped(Leaves.at_level(tree.grid, 2))
    around = tree.neighbours(cells.cells.cells)
    beside = cells.cells.locate(around.ravel()).reshape(around.shape)
    row, column = np.divmod(cells.order, 5)
    for side, (down, right) in enumerate(((0, -1), (0, 1), (-1, 0), (1, 0))):
        there = np.isin(row + down, range(5)) & np.isin(column + right, range(5))
        assert np.array_equal(around[:, side] != NOWHERE, there)
        assert np.array_equal(cells.order[beside[there, side]], ((row + down) * 5 + column + right)[there])


@given(seeds)
def test_without_minus_signs_totals_of_positive_groups_are_kept(seed):
    rng = np.random.default_rng(seed)
    grid = a_grid(rng)
    cells = Leaves.at_level(grid, 2)
    numbers = rng.normal(0.5, 3, cells.size)
    numbers[0] += abs(numbers.sum()) + 1
    found, grouped = nonnegative(cells, numbers), GridGroups(grid).grouped(cells)
    assert found.min() >= 0 and found.sum() == pytest.approx(numbers.sum())
    generations, order = TreeLevels(grouped.cells), grouped.order
    kept = np.ones(1, dtype=bool)  # groups of which none around, and none beside one of these, is negative
    for level, before, after in zip(
        generations.levels, generations.held(numbers[order]), generations.held(found[order]), strict=True
    ):
        kept = (kept & (np.bincount(level.parent, before < 0, len(kept)) == 0))[level.parent]
        assert np.allclose(before[kept], after[kept])


@pytest.mark.parametrize("reading", [Reading.NONNEGATIVE, Reading.LIKELY])
def test_a_grid_of_a_power_of_two_parts_is_shown_as_that_level_of_a_quadtree_is(reading):
    """The law that groups come from: with rows that lie nowhere, too."""
    rng, bounding = np.random.default_rng(7), AtMostRows(1, outside=Outside.PEOPLE)
    people = rng.poisson(np.where(rng.random((16, 16)) < 0.2, 60, 0))
    noisy = np.append(np.rint(people + rng.normal(0, 15, people.shape)).astype(np.int64), 500)
    made = []
    for tree, places in (
        (TwoLevelGrid.regular(SQUARE, 16), np.arange(256)),
        (SQUARE, np.argsort(SQUARE.grid(4).ravel())),
    ):
        level = 2 if isinstance(tree, TwoLevelGrid) else 4
        cells = Leaves(tree, np.append(Leaves.at_level(tree, level).cells, NOWHERE))
        order = np.append(places, 256)
        asked = [(Query(Counts(cells, bounding), Fraction(1)), Answer(noisy[order], np.array([15.0]), 0.0))]
        found = np.empty(257)
        found[order] = read(asked, cells, reading).values
        made.append(found)
    assert np.allclose(*made) and made[0].min() >= 0


@pytest.mark.parametrize("first", [1, 3])
def test_grids_of_few_cells_and_of_nobody_are_shown(first):
    cells = Leaves.at_level(TwoLevelGrid.regular(SQUARE, first), 2)
    for sums in (np.zeros(first**2), np.full(first**2, -5), np.arange(first**2) + 1):
        asked = [(Query(Counts(cells), Fraction(1)), Answer(sums.astype(np.int64), np.array([2.0]), 3.0))]
        made = read(asked, cells, Reading.LIKELY)
        assert np.array_equal(made.unbiased, sums) and made.values.sum() == pytest.approx(sums.sum())


def test_more_cells_than_memory_bears_are_shown_without_minus_signs(monkeypatch):
    cells = Leaves.at_level(TwoLevelGrid.regular(SQUARE, 5), 2)
    sums = np.arange(-5, 20)
    asked = [(Query(Counts(cells), Fraction(1)), Answer(sums, np.array([4.0]), 3.0))]
    monkeypatch.setattr(postprocess, "MOST_LIKELY", 24)
    made = read(asked, cells, Reading.LIKELY)
    assert made.reading is Reading.UNBIASED and np.array_equal(made.values, nonnegative(cells, sums * 1.0))


def test_a_uniform_grid_of_a_sparse_map_is_shown_as_well_as_it_is_counted():
    """2,000 rectangles: within 1.1 times; without groups and minus signs, 2.5 times as much as the numbers."""
    rng = np.random.default_rng(5)
    counts = np.zeros((128, 128), dtype=np.int64)
    counts[20:60, 30:80] = rng.poisson(60, (40, 50))
    truth = GroundTruthMap.of("one town", counts)
    for reading in (Reading.LIKELY, Reading.NONNEGATIVE):
        method = UniformGrid(truth.tree, RowIsPerson(), reading=reading)
        made = run(method, Curator(truth.table, Stream.fixed(b"one town")), PureDP("0.5"), Unrecorded()).value
        shown, counted = (Scorer(truth).ranges(each)["mre"] for each in painted(made, truth.tree))
        assert made.values.min() >= 0 and shown < 1.1 * counted
