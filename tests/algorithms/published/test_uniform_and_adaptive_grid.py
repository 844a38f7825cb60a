"""Blocks, parts, and the weighted average of both, as Qardaji, Yang and Li published it."""

from dataclasses import replace
from fractions import Fraction
from math import ceil, sqrt

import numpy as np
import pytest
from tests.algorithms.conftest import BOX, PEOPLE, TREE

from hazemap.algorithms import AdaptiveGrid, PrivateBoundingBox
from hazemap.cellmap import Reading
from hazemap.cells import NOWHERE
from hazemap.errors import InputError
from hazemap.privacy.budget import PureDP
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_trees import TwoLevelGrid
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, Outside

FINE = Quadtree.around(BOX, 12)


@pytest.mark.slow
def test_the_grid_of_blocks_is_as_its_rule_says(curator):
    grid = run(AdaptiveGrid(FINE, people=PEOPLE), curator, PureDP("0.5"), Unrecorded()).value.cells.tree
    assert isinstance(grid, TwoLevelGrid) and grid.first == ceil(sqrt(PEOPLE * 0.5 / 10) / 4) == 13
    few = run(AdaptiveGrid(FINE, people=PEOPLE), curator, PureDP("0.01"), Unrecorded()).value.cells.tree
    assert few.first == 10


def test_a_block_is_cut_as_its_noisy_count_deserves(curator):
    result = run(AdaptiveGrid(FINE, people=PEOPLE), curator, PureDP(1), Unrecorded())
    counts = result.transcript[0].answer.sums
    noise = result.transcript[1].answer.stddev[0]
    wanted = np.maximum(np.ceil(np.sqrt(np.maximum(counts, 0) * (sqrt(2) / noise) / 5)), 1)
    assert np.array_equal(result.value.cells.tree.second, wanted)
    assert sqrt(2) / noise == pytest.approx(0.5, rel=0.02)


def test_the_estimate_is_the_published_weighted_average(curator):
    """n'' = (α²m² n' + (1−α)² Σu)/((1−α)² + α²m²), and what is missing is shared out evenly (section IV-B)."""
    alpha = Fraction(2, 5)
    method = AdaptiveGrid(FINE, people=PEOPLE, blocks=alpha, reading=Reading.UNBIASED)
    result = run(method, curator, PureDP("0.01"), Unrecorded())
    (_, first), (_, second) = result.transcript
    grid = result.value.cells.tree
    block = np.repeat(np.arange(grid.first**2), grid.second**2)
    parts = np.bincount(block, second.sums)
    # The discrete noise of α = 0.4 has not quite 3/2 of the other's deviation: weigh by what they are.
    weight = grid.second**2 * second.stddev[0] ** 2
    weight = weight / (weight + first.stddev[0] ** 2)
    assert np.allclose(weight, 0.4**2 * grid.second**2 / (0.6**2 + 0.4**2 * grid.second**2), rtol=1e-3)
    better = weight * first.sums + (1 - weight) * parts
    expected = second.sums + ((better - parts) / grid.second**2)[block]
    assert np.allclose(result.value.values, expected)


def test_numbers_with_intervals_come_from_the_parts_alone(curator):
    result = run(AdaptiveGrid(FINE), curator, PureDP(1), Unrecorded())
    last = result.transcript[-1].answer
    assert np.array_equal(result.value.unbiased, last.sums) and np.allclose(result.value.stddev, last.stddev)
    assert result.value.values.min() >= 0
    assert result.value.values.sum() == pytest.approx(last.sums.sum())


def test_the_number_of_people_is_paid_for_unless_it_is_public(curator):
    shares = [
        exchange.question.share for exchange in run(AdaptiveGrid(FINE), curator, PureDP(1), Unrecorded()).transcript
    ]
    assert shares == [Fraction(1, 50), Fraction(49, 100), Fraction(49, 100)]
    public = run(AdaptiveGrid(FINE, people=PEOPLE), curator, PureDP(1), Unrecorded()).transcript
    assert [exchange.question.share for exchange in public] == [Fraction(1, 2), Fraction(1, 2)]


def test_no_cell_is_finer_than_the_base_cells_of_the_tree(curator):
    coarse = Quadtree.around(BOX, 5)
    grid = run(AdaptiveGrid(coarse), curator, PureDP(100), Unrecorded()).value.cells.tree
    assert grid.first * grid.second.max() <= 32


def test_an_empty_town_has_ten_blocks_on_a_side(curator):
    empty = replace(curator, table=curator.table.of(-1))
    made = run(AdaptiveGrid(FINE), empty, PureDP(1), Unrecorded()).value
    assert made.cells.tree.first == 10 and made.unbiased.sum() == pytest.approx(0, abs=200)


def test_rows_that_lie_nowhere_are_counted_beside_the_cells(lost):
    made = run(AdaptiveGrid(FINE, AtMostRows(1, outside=Outside.PEOPLE)), lost, PureDP(1), Unrecorded()).value
    assert made.unbiased[made.cells.cells == NOWHERE] == pytest.approx(5_000, abs=50)


@pytest.mark.slow
def test_a_vote_shared_out_is_counted_in_people(curator):
    made = run(AdaptiveGrid(TREE, OneVote(1024)), curator, PureDP(1), Unrecorded()).value
    assert made.unbiased.sum() == pytest.approx(PEOPLE, rel=0.02)


def test_a_found_box_is_cut_too(curator):
    made = run(PrivateBoundingBox(AdaptiveGrid(Quadtree.world(0))), curator, PureDP(10), Unrecorded()).value
    assert made.unbiased.sum() == pytest.approx(PEOPLE, rel=0.02)


@pytest.mark.parametrize(
    "make",
    [
        lambda: AdaptiveGrid(Hexagons(Box(13, 52, 14, 53), 5, 7)),
        lambda: AdaptiveGrid(TREE, AtMostCells(3)),
        lambda: AdaptiveGrid(TREE, blocks=Fraction(1)),
        lambda: AdaptiveGrid(TREE, people_a_cell=0),
    ],
)
def test_what_it_cannot_cut_or_count_is_refused(make):
    with pytest.raises(InputError):
        make()
