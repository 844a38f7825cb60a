"""What a cut costs: the formula, to the last sixteenth, and how far people can move it, over all neighbours."""

from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hazemap.cells import NOWHERE, Leaves
from hazemap.encoders import MedianSplitScores, SplitCosts
from hazemap.encoders.split_scores import PARTS
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.privacy.budget import ZCDP, PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.noisy_queries import Choice
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_trees import BinaryPartition, TwoLevelGrid
from hazemap.tables.contribution_bounding import AtMostRows, OneVote
from hazemap.tables.votes import Votes
from hazemap.trust.curator import Curator

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


BASE = np.sort(SQUARE.grid(2).ravel())
HALVES = BinaryPartition.uncut(SQUARE).cut(
    np.array([1], dtype=np.uint64), np.array([0]), np.array([3])
)  # 3 columns, and 1
BOTH = Leaves(HALVES, HALVES.ends)
AXES = np.array([0, 1])


class Known:
    """A table of votes that are known."""

    def __init__(self, weights):
        weights = np.asarray(weights)
        self.known = Votes(BASE[weights > 0], weights[weights > 0])

    def votes(self, tree, bounding):
        return self.known.redrawn(tree) if isinstance(tree, BinaryPartition) else self.known


def scores_of(medians, weights):
    return np.split(medians.scores(Known(weights)), medians.candidates.starts[1:-1])


def test_a_score_is_how_unequal_the_halves_would_be():
    weights = np.arange(16)
    first, second = scores_of(MedianSplitScores(BOTH, AXES), weights)
    west, _, _, north = SQUARE.bounds(BASE)
    column, row = np.unique(west, return_inverse=True)[1], np.unique(-north, return_inverse=True)[1]
    for at, line in enumerate((1, 2)):
        left, right = weights[column < line].sum(), weights[(line <= column) & (column < 3)].sum()
        assert first[at] == -abs(left - right)
    for at, line in enumerate((1, 2, 3)):
        above, below = weights[(column == 3) & (row < line)].sum(), weights[(column == 3) & (row >= line)].sum()
        assert second[at] == -abs(above - below)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_nobody_moves_the_scores_of_a_cell_by_more_than_their_votes_in_it(most):
    """All neighbours: every way to add so many votes, to many tables; and the bound is reached."""
    rng, medians, reached = np.random.default_rng(most), MedianSplitScores(BOTH, AXES, AtMostRows(most)), 0
    position = BOTH.locate(HALVES.leaves)[HALVES.positions(BASE)]
    for weights in (np.zeros(16, int), np.arange(16), *rng.integers(0, 3, (6, 16))):
        before = scores_of(medians, weights)
        for added in combinations_with_replacement(range(16), most):
            more = weights + np.bincount(added, minlength=16)
            for cell, (old, new) in enumerate(zip(before, scores_of(medians, more), strict=True)):
                moved = np.abs(new - old).max()
                assert moved <= (position[list(added)] == cell).sum()
                reached = max(reached, moved)
    assert reached == medians.sensitivity == most


def law(scores, scale):
    """Permute-and-flip over all subsets of heads: one of them, each as likely."""
    heads = np.exp((scores - scores.max()) / scale)
    chosen = np.zeros(len(scores))
    for shown in product((0, 1), repeat=len(scores)):
        if any(shown):
            chosen += np.prod(np.where(shown, heads, 1 - heads)) * np.array(shown) / sum(shown)
    return chosen


def worst_loss(most, epsilon, scale):
    """The largest log ratio of the chance of any pair of lines, over all neighbours of some tables."""
    medians, worst = MedianSplitScores(BOTH, AXES, AtMostRows(most)), 0.0
    for weights in (np.zeros(16, int), np.arange(16) % 3, np.arange(16)[::-1] % 4):
        laws = [law(scores, scale) for scores in scores_of(medians, weights)]
        for added in combinations_with_replacement(range(16), most):
            more = weights + np.bincount(added, minlength=16)
            others = [law(scores, scale) for scores in scores_of(medians, more)]
            ratios = [np.abs(np.log(new / old)).max() for old, new in zip(laws, others, strict=True)]
            worst = max(worst, sum(ratios))
    return worst / epsilon


@pytest.mark.parametrize("most", [1, 2])
def test_all_cells_together_cost_what_one_does(most):
    epsilon = 0.7
    assert 0.5 < worst_loss(most, epsilon, 2 * most / epsilon) <= 1 + 1e-9


def test_a_scale_without_the_two_is_found_out():
    """The twin that must fail."""
    assert worst_loss(2, 0.7, 1 / 0.7) > 1


@pytest.mark.parametrize("most_lines", [2, 3, 4, 1 << 10])
def test_votes_looked_up_one_by_one_give_the_same_scores(most_lines, monkeypatch):
    square, rng = Quadtree.world(depth=5), np.random.default_rng(3)
    base = np.sort(rng.choice(np.sort(square.grid(5).ravel()), 300, replace=False))
    votes = Votes(np.append(NOWHERE, base), rng.integers(1, 9, 301))
    tree = BinaryPartition.uncut(square).cut(np.array([1, 2, 3], np.uint64), np.array([0, 1, 1]), np.array([11, 7, 30]))
    medians = MedianSplitScores(Leaves(tree, tree.ends[[2, 0, 1]]), np.array([0, 0, 1]), lines=most_lines)

    class Table:
        def votes(self, tree, bounding):
            return Votes(votes.cells, votes.weights)

    summed = medians.scores(Table())
    monkeypatch.setattr("hazemap.tables.votes.LARGEST", 0)
    assert np.array_equal(medians.scores(Table()), summed)
    assert len(summed) == medians.candidates.starts[-1]


def test_a_wide_cell_is_cut_at_equal_parts_of_it():
    tree = BinaryPartition.uncut(Quadtree.world(depth=10))
    found = MedianSplitScores(Leaves(tree, tree.root), np.array([1]), lines=5).candidates
    assert found.lines.tolist() == [204, 409, 614, 819] and found.starts.tolist() == [0, 4]


@pytest.mark.parametrize("budget", [PureDP(20), ZCDP(200)], ids=str)
def test_a_curator_halves_every_cell(budget):
    rng = np.random.default_rng(8)
    square = Quadtree.world(depth=8)
    lon, lat = rng.uniform(-180, 180, 5_000), np.degrees(np.arcsin(rng.uniform(-0.99, 0.99, 5_000)))
    table = MemoryTable(np.arange(5_000), {"lon": lon, "lat": lat})
    tree = BinaryPartition.uncut(square).cut(np.array([1], dtype=np.uint64), np.array([0]), np.array([100]))
    for rule in (AtMostRows(1), OneVote(16)):
        question = Choice(MedianSplitScores(Leaves(tree, tree.ends), np.array([1, 0]), rule), Fraction(1))
        assert question.size == 2 and question.where == (question.scores.cells, rule)
        lines = Curator(table, Stream.fixed(b"halves")).answer(question, budget).sums
        cut = tree.cut(tree.ends, np.array([1, 0]), lines)
        found = table.votes(cut, rule).weights / rule.unit
        assert abs(found[0] - found[1]) < 60 and abs(found[2] - found[3]) < 60


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: MedianSplitScores(Leaves(SQUARE, SQUARE.root), np.array([0])),
        lambda: MedianSplitScores(BOTH, np.array([0, 0])),  # the second is one pixel wide
        lambda: MedianSplitScores(BOTH, np.array([0])),
        lambda: MedianSplitScores(BOTH, np.array([0, 2])),
        lambda: MedianSplitScores(BOTH, AXES, lines=1),
        lambda: MedianSplitScores(Leaves(HALVES, np.append(HALVES.root, HALVES.ends)), np.array([0, 0, 1])),
        lambda: MedianSplitScores(Leaves(HALVES, np.append(HALVES.ends[:1], NOWHERE)), AXES),
    ],
)
def test_what_cannot_be_halved_is_refused(wrong):
    with pytest.raises(InputError):
        wrong()


def test_questions_are_the_same_where_all_of_them_is():
    one, other = MedianSplitScores(BOTH, AXES), MedianSplitScores(BOTH, np.array([1, 1]))
    assert (
        one == MedianSplitScores(BOTH, AXES.copy())
        and hash(one) == hash(MedianSplitScores(BOTH, AXES))
        and one != other
    )
    assert one != MedianSplitScores(BOTH, AXES, AtMostRows(2)) and one != "medians"
