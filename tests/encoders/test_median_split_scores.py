"""Lines that halve cells: what a person moves, brute-forced over all neighbours, and the choice as a whole."""

from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from hazemap.cells import NOWHERE, Leaves
from hazemap.encoders import MedianSplitScores
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.privacy.budget import ZCDP, PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries import Choice
from hazemap.spatial.binary_partition import BinaryPartition
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, OneVote
from hazemap.tables.votes import Votes
from hazemap.trust.curator import Curator

SQUARE = Quadtree.world(depth=2)
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
