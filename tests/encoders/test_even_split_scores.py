"""One of all lines by the cost of cutting there: the scores, how far people move them, and the law of the choice."""

from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.cells import NOWHERE, Leaves
from hazemap.encoders import EvenSplitScores, SplitCosts
from hazemap.encoders.split_scores import PARTS
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.privacy.budget import ZCDP, PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.noisy_queries import Choice
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_trees import BinaryPartition
from hazemap.tables.contribution_bounding import AtMostRows, OneVote
from hazemap.tables.votes import Votes
from hazemap.trust.curator import Curator

SQUARE = Quadtree.world(depth=2)
BASE = np.sort(SQUARE.grid(2).ravel())
ROOT = BinaryPartition.uncut(SQUARE)
HALVES = ROOT.cut(np.array([1], np.uint64), np.array([0]), np.array([3]))  # 3 columns, and 1
BOTH, AXES = Leaves(HALVES, HALVES.ends), np.array([0, 1])


class Known:
    """A table of votes that are known, in order of the cells' numbers."""

    def __init__(self, weights, base=BASE):
        weights = np.asarray(weights)
        self.known = Votes(base[weights > 0], weights[weights > 0])

    def votes(self, tree, bounding):
        """Where people are."""
        return self.known


def scores_of(asked, weights):
    return np.split(asked.scores(Known(weights)), asked.candidates.starts[1:-1])


@given(st.lists(st.integers(0, 9), min_size=16, max_size=16))
def test_a_score_is_the_cost_that_is_measured_on_each_line(weights):
    first, second = scores_of(EvenSplitScores(BOTH, AXES), weights)
    west = SplitCosts(Leaves(HALVES, HALVES.ends[:1]), AXES[:1], np.array([[1, 2]])).total(Known(weights))
    east = SplitCosts(Leaves(HALVES, HALVES.ends[1:]), AXES[1:], np.array([[1, 2, 3]])).total(Known(weights))
    assert np.array_equal(-first, west) and np.array_equal(-second, east)


@pytest.mark.parametrize("axis", [0, 1])
def test_many_votes_and_cells_that_were_cut_are_scored_as_they_are_measured(axis):
    square, rng = Quadtree.world(depth=5), np.random.default_rng(axis)
    base = np.sort(square.grid(5).ravel())
    weights = rng.poisson(0.7, len(base)) * rng.integers(1, 2**40, len(base))
    tree = BinaryPartition.uncut(square).cut(np.array([1, 2, 3], np.uint64), np.array([0, 1, 1]), np.array([11, 7, 30]))
    for cell, (low, high) in ((1, (0, 32)), (2, (0, 11) if axis == 0 else (0, 32))):
        leaves, lines = Leaves(tree, np.array([cell], np.uint64)), np.arange(low + 1, high)
        asked = EvenSplitScores(leaves, np.array([axis]))
        assert np.array_equal(asked.candidates.lines, lines)
        measured = SplitCosts(leaves, np.array([axis]), lines[None]).total(Known(weights, base))
        assert np.array_equal(-asked.scores(Known(weights, base)), measured)


def test_a_wide_cell_is_cut_at_equal_parts_of_it():
    tree = BinaryPartition.uncut(Quadtree.world(depth=10))
    asked = EvenSplitScores(Leaves(tree, tree.root), np.array([1]), lines=5)
    assert asked.candidates.lines.tolist() == [204, 409, 614, 819] and asked.choices == 1


def test_an_empty_map_has_no_better_line():
    assert not EvenSplitScores(BOTH, AXES).scores(Known(np.zeros(16, int))).any()


@pytest.mark.parametrize("most", [1, 2, 3])
def test_nobody_moves_the_scores_of_a_cell_by_more_than_32_for_each_vote_in_it(most):
    """All neighbours: every way to add so many votes, to many tables; and one vote comes near the bound."""
    rng, asked, reached = np.random.default_rng(most), EvenSplitScores(BOTH, AXES, AtMostRows(most)), 0
    position = BOTH.locate(HALVES.leaves)[HALVES.positions(BASE)]
    for weights in (np.zeros(16, int), np.arange(16), *rng.integers(0, 3, (6, 16))):
        before = scores_of(asked, weights)
        for added in combinations_with_replacement(range(16), most):
            more = weights + np.bincount(added, minlength=16)
            for cell, (old, new) in enumerate(zip(before, scores_of(asked, more), strict=True)):
                moved = np.abs(new - old).max()
                assert moved <= 2 * PARTS * (position[list(added)] == cell).sum()
                reached = max(reached, moved)
    assert 0.8 * asked.sensitivity < reached <= asked.sensitivity == 2 * PARTS * most


def law(scores, scale):
    """Permute-and-flip over all subsets of heads: one of them, each as likely."""
    heads = np.exp((scores - scores.max()) / scale)
    chosen = np.zeros(len(scores))
    for shown in product((0, 1), repeat=len(scores)):
        if any(shown):
            chosen += np.prod(np.where(shown, heads, 1 - heads)) * np.array(shown) / sum(shown)
    return chosen


def worst_loss(most, epsilon, scale):
    """The largest log ratio of the chance of any pair of lines, over all neighbours of some tables, of ε."""
    asked, worst = EvenSplitScores(BOTH, AXES, AtMostRows(most)), 0.0
    for weights in (np.zeros(16, int), np.arange(16) % 3, np.eye(1, 16, 6, dtype=int)[0] * 40):
        laws = [law(scores, scale) for scores in scores_of(asked, weights)]
        for added in combinations_with_replacement(range(16), most):
            more = weights + np.bincount(added, minlength=16)
            others = [law(scores, scale) for scores in scores_of(asked, more)]
            ratios = [np.abs(np.log(new / old)).max() for old, new in zip(laws, others, strict=True)]
            worst = max(worst, sum(ratios))
    return worst / epsilon


@pytest.mark.parametrize("most", [1, 2])
def test_a_line_for_every_cell_costs_what_one_does(most):
    epsilon = 0.7
    assert 0.3 < worst_loss(most, epsilon, 2 * 2 * PARTS * most / epsilon) <= 1 + 1e-9


def test_coins_for_a_sensitivity_of_1_are_found_out():
    """The twin that must fail: a vote counted for half of what it moves, at half of the scale."""
    assert worst_loss(1, 0.7, PARTS / 0.7) > 1


def blocks(depth):
    """A square of 4^depth pixels, cut into cells of 4 × 4."""
    tree = BinaryPartition.uncut(Quadtree.world(depth))
    for _ in range(depth - 2):
        for axis in (0, 1):
            west, north, east, south = tree.rectangles(tree.ends)
            middle = (west + east) // 2 if axis == 0 else (north + south) // 2
            tree = tree.cut(tree.ends, np.full(len(middle), axis), middle)
    return tree


@pytest.mark.parametrize("budget", [PureDP(1), ZCDP(Fraction(1, 2))], ids=str)
def test_a_curator_chooses_by_that_law_exactly(budget):
    """In 4,096 cells alike, within 6 standard errors; by the law of coins for half the scale it would be far off."""
    tree = blocks(8)
    grid = np.arange(256)[:, None] % 4 < 2  # one person in each pixel of the upper two rows of each cell
    base = tree.base.grid(8).ravel()
    order = np.argsort(base)
    table = Known(np.broadcast_to(grid, (256, 256)).ravel()[order].astype(np.int64), base[order])
    asked = EvenSplitScores(Leaves(tree, tree.ends), np.ones(4096, np.int8))
    each = asked.scores(table).reshape(-1, 3)
    assert (each == each[0]).all() and each[0].tolist() == [-85, 0, -85]
    lines = Curator(table, Stream.fixed(b"lines")).answer(Choice(asked, Fraction(1)), budget).sums
    found = np.bincount(lines - asked.rectangles.north, minlength=4)[1:] / 4096
    wanted, twin = law(each[0], 2 * asked.sensitivity), law(each[0], asked.sensitivity)
    assert np.abs(found - wanted).max() < 6 * 0.5 / np.sqrt(4096) < np.abs(found - twin).max()


def test_a_line_between_a_crowd_and_nobody_is_found():
    rng, square = np.random.default_rng(8), Quadtree.world(depth=8)
    lon, lat = rng.uniform(-180, -60, 20_000), np.degrees(np.arcsin(np.tanh(rng.uniform(-np.pi, np.pi, 20_000))))
    tree = BinaryPartition.uncut(square)
    table = MemoryTable(np.arange(20_000), {"lon": lon, "lat": lat})
    for rule in (AtMostRows(1), OneVote(16)):
        question = Choice(EvenSplitScores(Leaves(tree, tree.root), np.array([0]), rule), Fraction(1))
        assert question.where == (question.scores.cells, rule) and question.only_a_curator
        line = Curator(table, Stream.fixed(b"crowd")).answer(question, PureDP(2)).sums
        assert abs(int(line[0]) - 256 // 3) <= 2


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: EvenSplitScores(Leaves(SQUARE, SQUARE.root), np.array([0])),
        lambda: EvenSplitScores(BOTH, np.array([0, 0])),  # the second is one pixel wide
        lambda: EvenSplitScores(BOTH, np.array([0])),
        lambda: EvenSplitScores(BOTH, np.array([0, 2])),
        lambda: EvenSplitScores(BOTH, AXES, lines=1),
        lambda: EvenSplitScores(Leaves(HALVES, np.append(HALVES.root, HALVES.ends)), np.array([0, 0, 1])),
        lambda: EvenSplitScores(Leaves(HALVES, np.append(HALVES.ends[:1], NOWHERE)), AXES),
    ],
)
def test_what_cannot_be_cut_is_refused(wrong):
    with pytest.raises(InputError):
        wrong()


def test_questions_are_the_same_where_all_of_them_is():
    one = EvenSplitScores(BOTH, AXES)
    assert one == EvenSplitScores(BOTH, AXES.copy()) and hash(one) == hash(EvenSplitScores(BOTH, AXES))
    assert one not in (EvenSplitScores(BOTH, np.array([1, 1])), EvenSplitScores(BOTH, AXES, AtMostRows(2)), "scores")
