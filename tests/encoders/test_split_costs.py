"""What a cut costs: the formula, to the last sixteenth, and how far people can move it, over all neighbours."""

from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hazemap.cells import NOWHERE, Leaves
from hazemap.encoders import SplitCosts
from hazemap.encoders.cell_splits import PARTS
from hazemap.errors import InputError
from hazemap.spatial.binary_partition import BinaryPartition
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.two_level_grid import TwoLevelGrid
from hazemap.tables.contribution_bounding import AtMostRows, OneVote
from hazemap.tables.votes import Votes

SQUARE = Quadtree.world(depth=2)
ROOT = BinaryPartition.uncut(SQUARE)
QUARTERS = ROOT.cut(np.array([1, 2, 3], dtype=np.uint64), np.array([0, 1, 1]), np.array([2, 2, 2]))


class Picture:
    """A table of which only the votes in the pixels are known."""

    def __init__(self, picture):
        picture = np.asarray(picture, dtype=np.int64)
        grid = Quadtree.world(depth=picture.shape[0].bit_length() - 1).grid(picture.shape[0].bit_length() - 1)
        order = np.argsort(grid.ravel())
        self.cells, self.weights = grid.ravel()[order], picture.ravel()[order]

    def votes(self, tree, bounding):
        """Where people are."""
        there = self.weights > 0
        return Votes(self.cells[there], self.weights[there])


def by_the_formula(costs: SplitCosts, picture) -> list[int]:
    """Equation 5 with rationals, a side at a time."""
    found = []
    edges = costs.cells.tree.rectangles(costs.cells.cells)
    for west, north, east, south, axis, lines in zip(*edges, costs.axis, costs.lines, strict=True):
        for line in lines:
            part = np.asarray(picture, dtype=object)[north:south, west:east]
            cut = line - (north if axis else west)
            total = 0
            for side in (part[:cut], part[cut:]) if axis else (part[:, :cut], part[:, cut:]):
                pixels = [Fraction(int(c)) for c in side.ravel()]
                mean = sum(pixels) / len(pixels)
                total += floor(PARTS * sum(abs(c - mean) for c in pixels))
            found.append(total)
    return found


def whole(axis: int = 0) -> SplitCosts:
    """All lines through the square."""
    return SplitCosts(Leaves(ROOT, ROOT.root), np.array([axis]), np.array([[1, 2, 3]]))


pictures = st.lists(st.integers(0, 9), min_size=16, max_size=16).map(lambda c: np.array(c).reshape(4, 4))


@given(pictures, st.integers(0, 1))
def test_a_cost_is_the_distance_from_the_mean_on_both_sides_with_empty_pixels_too(picture, axis):
    assert whole(axis).total(Picture(picture)).tolist() == by_the_formula(whole(axis), picture)


@given(pictures)
def test_every_cell_is_cut_in_its_own_direction(picture):
    leaves = Leaves(QUARTERS, QUARTERS.ends)
    west, north, east, south = QUARTERS.rectangles(leaves.cells)
    axis = np.array([0, 1, 0, 1])
    costs = SplitCosts(leaves, axis, np.where(axis == 0, (west + east) // 2, (north + south) // 2)[:, None])
    assert costs.total(Picture(picture)).tolist() == by_the_formula(costs, picture)


@given(pictures)
def test_a_cell_that_was_cut_can_be_asked_about_as_before(picture):
    before = whole().total(Picture(picture))
    after = SplitCosts(Leaves(QUARTERS, QUARTERS.root), np.array([0]), np.array([[1, 2, 3]])).total(Picture(picture))
    assert np.array_equal(before, after)


def test_the_example_of_the_paper_costs_0_6_or_8():
    """Figure 2b: rows [0, 0], [3, 3], [3, 3]; its third way, no cut at all, costs 8."""
    picture = np.zeros((4, 4), dtype=np.int64)
    picture[1:3, :2] = 3
    block = ROOT.cut(np.array([1, 2], dtype=np.uint64), np.array([0, 1]), np.array([2, 3]))
    costs = SplitCosts(Leaves(block, np.array([4], dtype=np.uint64)), np.array([1]), np.array([[1, 2]]))
    assert (costs.total(Picture(picture)) / PARTS).tolist() == [0.0, 6.0]


def test_all_neighbours_of_all_small_pictures_stay_within_the_sensitivity():
    """Every picture of 0 to 2 votes in 2 × 2 pixels, every vote more in any pixel, every line, both directions."""
    square = Quadtree.world(depth=1)
    tree = BinaryPartition.uncut(square)
    most = 0
    for axis in (0, 1):
        costs = SplitCosts(Leaves(tree, tree.root), np.array([axis]), np.array([[1]]))
        for counts in product(range(3), repeat=4):
            picture = np.array(counts).reshape(2, 2)
            before = costs.total(Picture(picture))
            for pixel in range(4):
                more = picture.copy()
                more.flat[pixel] += 1
                most = max(most, int(np.abs(costs.total(Picture(more)) - before).sum()))
    assert most == PARTS  # 2(n − 1)/n of a vote on a side of n = 2 pixels
    assert most <= costs.sensitivity.l1 == 2 * PARTS


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=16, max_size=16), st.integers(0, 1), st.integers(1, 2))
def test_no_person_with_any_rows_moves_the_costs_further(counts, axis, rows):
    """All ways to add one or two rows to a picture, at three lines at once and in four cells at once."""
    picture, rule = np.array(counts).reshape(4, 4), AtMostRows(rows)
    leaves = Leaves(QUARTERS, QUARTERS.ends)
    west, north, east, south = QUARTERS.rectangles(leaves.cells)
    middle = (west + east) // 2 if axis == 0 else (north + south) // 2
    for costs in (
        SplitCosts(Leaves(ROOT, ROOT.root), np.array([axis]), np.array([[1, 2, 3]]), rule),
        SplitCosts(leaves, np.full(4, axis), np.stack([middle, middle], axis=1), rule),
    ):
        before = costs.total(Picture(picture))
        for pixels in combinations_with_replacement(range(16), rows):
            more = picture.copy()
            np.add.at(more.reshape(-1), list(pixels), 1)
            moved = np.abs(costs.total(Picture(more)) - before)
            assert moved.sum() <= costs.sensitivity.l1 and (moved**2).sum() <= costs.sensitivity.l2_squared


def test_the_sensitivity_is_not_a_vote_too_large():
    """One vote among 8,192 empty pixels moves each of three costs by 2(n − 1)/n: 31.99 sixteenths, and more."""
    tree = BinaryPartition.uncut(Quadtree.world(depth=7))
    costs = SplitCosts(Leaves(tree, tree.root), np.array([0]), np.array([[32, 64, 96]]))
    empty, one = np.zeros((128, 128), dtype=np.int64), np.zeros((128, 128), dtype=np.int64)
    one[3, 5] = 1
    moved = np.abs(costs.total(Picture(one)) - costs.total(Picture(empty)))
    assert moved.sum() == costs.sensitivity.l1 - 3


def test_a_vote_moves_no_cost_of_another_cell():
    leaves = Leaves(QUARTERS, QUARTERS.ends)
    west, _, east, _ = QUARTERS.rectangles(leaves.cells)
    costs = SplitCosts(leaves, np.zeros(4), ((west + east) // 2)[:, None])
    picture = np.arange(16).reshape(4, 4)
    more = picture.copy()
    more[0, 0] += 5
    moved = costs.total(Picture(more)) != costs.total(Picture(picture))
    assert moved.tolist() == [True, False, False, False]


@pytest.mark.parametrize("votes", [2**40, 2**55])
def test_costs_that_do_not_fit_64_bits_on_the_way_are_exact(votes):
    picture = np.zeros((4, 4), dtype=np.int64)
    picture[0, 0], picture[1, 1], picture[3, 2] = votes + 1, votes // 3, votes // 7
    assert whole().total(Picture(picture)).tolist() == by_the_formula(whole(), picture)


def test_costs_end_where_64_bits_would():
    picture = np.zeros((4, 4), dtype=np.int64)
    picture[0, 0] = picture[3, 3] = 2**60
    assert whole().total(Picture(picture)).tolist() == [2**62] * 3


def test_an_empty_map_costs_nothing():
    assert whole().total(Picture(np.zeros((4, 4)))).tolist() == [0, 0, 0]


def test_a_vote_in_parts_is_measured_in_its_parts():
    costs = SplitCosts(Leaves(ROOT, ROOT.root), np.array([0]), np.array([[1, 2]]), OneVote(1024))
    assert costs.sensitivity.l1 == 2 * 2 * PARTS * 1024
    assert costs.sensitivity.l2_squared == 2 * (2 * PARTS * 1024) ** 2


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: SplitCosts(Leaves(SQUARE, SQUARE.root), np.array([0]), np.array([[1]])),
        lambda: SplitCosts(
            Leaves(TwoLevelGrid.regular(SQUARE, 2), np.array([1], dtype=np.uint64)), np.zeros(1), np.array([[1]])
        ),
        lambda: SplitCosts(Leaves(ROOT, np.array([1, NOWHERE])), np.zeros(2), np.ones((2, 1))),
        lambda: SplitCosts(Leaves(QUARTERS, np.array([1, 2], dtype=np.uint64)), np.zeros(2), np.ones((2, 1))),
        lambda: SplitCosts(Leaves(ROOT, ROOT.root), np.array([2]), np.array([[1]])),
        lambda: SplitCosts(Leaves(ROOT, ROOT.root), np.array([0]), np.array([[0]])),
        lambda: SplitCosts(Leaves(ROOT, ROOT.root), np.array([0]), np.array([[4]])),
        lambda: SplitCosts(Leaves(ROOT, ROOT.root), np.array([0]), np.array([[2, 1, 0]])),
        lambda: SplitCosts(Leaves(ROOT, ROOT.root), np.array([0]), np.array([[2, 1, 4]])),
        lambda: SplitCosts(Leaves(ROOT, ROOT.root), np.array([0]), np.zeros((1, 0))),
        lambda: SplitCosts(Leaves(ROOT, ROOT.root), np.array([0]), np.array([1])),
    ],
)
def test_what_cannot_be_cut_is_refused(wrong):
    with pytest.raises(InputError):
        wrong()


def test_questions_are_the_same_where_cells_axes_lines_and_rules_are():
    lines = np.array([[1, 2, 3]])
    one = SplitCosts(Leaves(ROOT, ROOT.root), np.array([0]), lines)
    assert one == SplitCosts(Leaves(ROOT, ROOT.root), np.array([0]), lines.copy(), AtMostRows(1)) and hash(one) == hash(
        whole()
    )
    assert (one.size, whole(1).size) == (3, 3) and one != "costs"
    others = [
        whole(1),
        SplitCosts(one.cells, one.axis, lines[:, :2]),
        SplitCosts(one.cells, one.axis, np.array([[1, 3, 2]])),
    ]
    others += [SplitCosts(one.cells, one.axis, lines, rule) for rule in (AtMostRows(2), OneVote())]
    block = ROOT.cut(np.array([1], dtype=np.uint64), np.array([0]), np.array([2]))
    others += [SplitCosts(Leaves(block, block.root), np.array([0]), lines)]
    assert all(one != other for other in others)
