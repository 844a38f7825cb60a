"""Cells cut where half of their people are on either side, as Cormode and others published it."""

from fractions import Fraction
from itertools import product
from math import log2

import numpy as np
import pyarrow as pa
import pytest
from tests.algorithms.conftest import BOX, PEOPLE, TREE, people

from hazemap.algorithms import PrivateBoundingBox
from hazemap.cellmap import Reading
from hazemap.cells import NOWHERE, Leaves
from hazemap.errors import InputError, Unanswerable
from hazemap.lab.methods import KDTree
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Session, Unrecorded, run
from hazemap.queries.noisy_queries import Choice, Query
from hazemap.readers.open_table import open_table
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_trees import BinaryPartition
from hazemap.tables.contribution_bounding import AtMostRows, OneVote, Outside
from hazemap.trust.curator import Curator


def counted(nowhere):
    """A curator who reads the rows of the town once, whatever is asked."""
    table = people(nowhere=nowhere)
    rows = pa.table({"person": table.person} | dict(table.columns))
    return Curator(open_table(rows, person="person"), Stream.fixed(b"town"))


@pytest.fixture(scope="module")
def curator():
    return counted(0)


@pytest.fixture(scope="module")
def lost():
    return counted(5_000)


def made(method, curator, epsilon="1"):
    return run(method, curator, PureDP(epsilon), Unrecorded())


def paid_by_each_leaf(result):
    """What everybody in a leaf has paid, question by question."""
    cells = result.value.cells
    paid = np.zeros(cells.size, dtype=object)
    for question, _ in result.transcript:
        if isinstance(question, Choice):
            holder = Leaves(cells.tree, question.scores.cells.cells)
            paid += np.where(holder.locate(cells.tree.leaves) >= 0, question.share, 0)
        else:
            paid += question.share
    return set(paid)


@pytest.mark.slow
def test_everybody_pays_the_whole_budget_and_nobody_more(curator):
    for method in (KDTree(TREE), KDTree.hybrid(TREE), KDTree(TREE, cuts=5), KDTree(TREE, people=PEOPLE)):
        result = made(method, curator, "0.05")
        paid = paid_by_each_leaf(result)
        assert max(paid) == 1 and min(paid) > Fraction(17, 20)  # a pixel is not cut, and so pays for fewer cuts
        medians = sum(q.share for q, _ in result.transcript if isinstance(q, Choice))
        counts = result.transcript[-1].question.share
        assert medians / (medians + counts) == Fraction(3, 20)


def test_the_number_of_cuts_is_that_of_its_rule(curator):
    for epsilon, number in (("0.05", PEOPLE), ("1", PEOPLE), ("1", 600)):
        result = made(KDTree(TREE, people=number), curator, epsilon)
        wanted = round(log2(number * float(epsilon) / 10) / 2) * 2
        choices = [q for q, _ in result.transcript if isinstance(q, Choice)]
        assert len(choices) == wanted
        assert result.value.cells.size <= 2**wanted


def test_the_axis_alternates_and_cells_of_one_pixel_are_cut_no_more(curator):
    result = made(KDTree(Quadtree.around(BOX, 3), cuts=14), curator)
    cells = result.value.cells
    assert cells.size == 64  # all pixels: seven cuts of each axis will do, wherever they are
    for depth, (question, _) in enumerate(q for q in result.transcript if isinstance(q.question, Choice)):
        west, north, east, south = question.scores.cells.tree.rectangles(question.scores.cells.cells)
        wide = np.stack([east - west, south - north]) > 1
        assert np.array_equal(question.scores.axis, np.where(wide[depth % 2], depth % 2, 1 - depth % 2))
        assert wide.any(axis=0).all()


def test_with_money_enough_every_cut_halves_its_people(curator):
    method = KDTree(Quadtree.around(BOX, 12), cuts=4)
    result = made(method, curator, "100000")
    assert result.value.cells.size == 16
    assert np.allclose(result.value.unbiased, PEOPLE / 16, rtol=0.05)


@pytest.mark.parametrize(("growth", "weights"), [(Fraction(1, 3), (8, 6, 5, 4)), (Fraction(0), (4, 4, 4, 4))])
def test_a_level_is_two_cuts_and_finer_levels_get_more(growth, weights, curator):
    result = made(KDTree(TREE, cuts=6, growth=growth), curator)
    stack = result.transcript[-1].question.encoder
    assert stack.weights == weights
    assert [part.cells.size for part in stack.parts] == [64, 16, 4, 1]
    odd = made(KDTree(TREE, cuts=5), curator).transcript[-1].question.encoder
    assert [part.cells.size for part in odd.parts] == [32, 8, 2, 1]


def test_every_level_speaks_for_the_cells_by_least_squares(curator):
    """The published estimate is the least squares solution over all levels (ibid., section 5)."""
    result = made(KDTree(TREE, cuts=6, reading=Reading.UNBIASED), curator, "0.1")
    question, answer = result.transcript[-1]
    cells, rows, numbers = result.value.cells, [], []
    sums = question.encoder.split(answer.sums)
    for part, weight, found in zip(question.encoder.parts, question.encoder.weights, sums, strict=True):
        holder = part.cells.locate(cells.tree.leaves)
        rows.append(weight * (holder[None, :] == np.arange(part.size)[:, None]))
        numbers.append(weight * found)
    solved = np.linalg.lstsq(np.concatenate(rows).astype(float), np.concatenate(numbers), rcond=None)[0]
    assert np.allclose(result.value.values, solved)


def test_a_hybrid_is_a_quadtree_below(curator):
    result = made(KDTree(TREE, cuts=8, below=Fraction(1, 2)), curator)
    assert sum(isinstance(q, Choice) for q, _ in result.transcript) == 4
    tree = result.value.cells.tree
    west, _, east, _ = tree.rectangles(Leaves.at_level(tree, 4).cells)
    across = dict(zip(tree.cells.tolist(), tree.at.tolist(), strict=True))
    fifth = Leaves.at_level(tree, 4).cells
    assert [across[cell] for cell in fifth.tolist()] == ((west + east) // 2).tolist()


def test_a_hybrid_can_be_a_quadtree_above(curator):
    result = made(KDTree(TREE, cuts=8, above=Fraction(1, 4)), curator)
    tree = result.value.cells.tree
    assert tree.at[:3].tolist() == [128, 128, 128]
    assert sum(isinstance(q, Choice) for q, _ in result.transcript) == 6


def test_a_quadtree_alone_asks_for_no_median(curator):
    result = made(KDTree(TREE, cuts=6, below=Fraction(1)), curator)
    assert [type(q) for q, _ in result.transcript] == [Query]
    assert result.transcript[0].question.share == 1


def test_its_best_guess_has_no_minus_signs_and_its_intervals_hold_the_truth(curator):
    """30 releases, 64 cells each: a 6-standard-error deviation of Laplace sums has probability below 1e-3 · 2,000."""
    method = KDTree(TREE, cuts=6)
    off = []
    for _ in range(30):
        result = made(method, curator, "0.1").value
        assert result.values.min() >= 0
        truth = curator.table.votes(result.cells.tree, AtMostRows(1))
        exact = result.cells.total(truth.cells, truth.weights)
        off.append((result.unbiased - exact) / result.stddev)
    assert np.std(off) == pytest.approx(1, abs=0.1) and abs(np.mean(off)) < 0.15


def test_people_nowhere_and_shared_votes_are_counted(curator, lost):
    kept = made(KDTree(TREE, AtMostRows(1, outside=Outside.PEOPLE)), lost).value
    assert kept.unbiased[kept.cells.cells == NOWHERE] == pytest.approx(5_000, abs=60)
    shared = made(KDTree(TREE, OneVote(1024)), curator).value
    assert shared.unbiased.sum() == pytest.approx(PEOPLE, rel=0.02)


def test_a_town_of_nobody_has_few_cells():
    empty = Curator(people().of(-1), Stream.fixed(b"nobody"))
    assert made(KDTree(TREE), empty, "0.1").value.cells.size <= 64


@pytest.mark.slow
def test_a_found_box_is_cut_too(curator):
    found = made(PrivateBoundingBox(KDTree(Quadtree.world(0))), curator, "10").value
    assert isinstance(found.cells.tree, BinaryPartition) and found.unbiased.sum() == pytest.approx(PEOPLE, rel=0.02)


def test_only_a_curator_can_answer(curator):
    with pytest.raises(Unanswerable, match="only a curator can"):
        Session(
            KDTree(TREE, people=PEOPLE),
            curator.prices(PureDP(1)),
            PureDP(1),
            Unrecorded(),
            lambda question: question is Query,
        )


@pytest.mark.parametrize(
    "wrong",
    [
        {"medians": Fraction(0)},
        {"growth": Fraction(2)},
        {"above": Fraction(2, 3), "below": Fraction(1, 2)},
        {"below": Fraction(-1, 2)},
        {"cuts": 0},
        {"cuts": 43},
        {"grain": 0},
        {"people_a_cell": 0},
        {"tree": Hexagons(Box(13, 52, 14, 53), 5, 7)},
    ],
)
def test_what_it_cannot_cut_is_refused(wrong):
    with pytest.raises(InputError):
        KDTree(**({"tree": TREE} | wrong))


def test_named_kinds_are_what_they_say():
    assert KDTree.uniform(TREE).growth == 0
    for kind, cuts in product((KDTree.hybrid(TREE),), (2, 5, 8)):
        assert sum(kind._halved(cuts)) in {cuts // 4 * 2, 2 * ((cuts + 2) // 4), cuts // 2}
