"""How trees of even density grow: where lines are looked for, what every way costs, which cells are leaves."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hazemap.algorithms.published.homogeneous_tree import BudgetAllotment, TreeGrower
from hazemap.cellmap import Reading
from hazemap.cells import Leaves
from hazemap.errors import InputError
from hazemap.estimate import read
from hazemap.privacy.parallel_composition import ParallelComposition
from hazemap.queries.noisy_queries import Answer, Measure, Query
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_trees import BinaryPartition
from hazemap.tables.contribution_bounding import AtMostRows, OneVote

RULE = AtMostRows(1)
SQUARE = Quadtree.world(depth=4)
TREE = BinaryPartition.uncut(SQUARE)
NOISE = np.array([1.0])


def allotment(height: int, counting="1/50", cutting="1/100", fullness=10.0, left="1") -> BudgetAllotment:
    """The same for every level."""
    return BudgetAllotment(
        Fraction(left), (Fraction(counting),) * height, (Fraction(cutting),) * height, (fullness,) * height
    )


def grow(grower, tree, roots, allotments, counted, cost):
    """Grow a tree with answers from `counted(cells, question)` and `cost(lines)`; what was asked, and the end."""
    asked, rounds = [], grower.grown(tree, roots, allotments)
    try:
        question = next(rounds)
        while True:
            asked.append(question)
            searching = isinstance(question, Measure)
            numbers = cost(question.scores) if searching else counted(question.encoder.cells.cells)
            question = rounds.send(Answer(np.asarray(numbers, dtype=np.int64).ravel(), NOISE))
    except StopIteration as end:
        return asked, end.value


def searched(low: int, high: int, turns: int, cost) -> tuple[int, list[int]]:
    """Algorithm 1 with its index lines corrected, word by word: the line, and all that were evaluated."""
    left, right = low, high
    k = (left + right) // 2
    evaluated, best = [k], cost(k)
    for _ in range(turns):
        k1, k2 = left + (k - left) // 2, k + (right - k) // 2
        o1, o2 = cost(k1), cost(k2)
        evaluated += [k1, k2]
        least = min(best, o1, o2)
        if least == best:
            left, right = k1, k2
        elif least == o1:
            right, k, best = k, k1, o1
        else:
            left, k, best = k, k2, o2
    return k, evaluated


@given(st.lists(st.integers(-1000, 1000), min_size=15, max_size=15), st.integers(0, 5))
def test_the_search_is_algorithm_1(costs, turns):
    asked, grown = grow(
        TreeGrower(RULE, turns),
        TREE,
        TREE.root,
        [allotment(1)],
        lambda cells: [99] * len(cells),
        lambda s: np.array(costs)[s.lines - 1],
    )
    line, evaluated = searched(1, 15, turns, lambda k: costs[k - 1])
    assert grown.tree.at.tolist() == [line]
    lines = [s for question in asked if isinstance(question, Measure) for s in question.scores.lines.ravel().tolist()]
    assert lines == (evaluated if turns else [])


def test_a_search_begins_in_the_middle_and_goes_toward_the_least_cost():
    _, grown = grow(
        TreeGrower(RULE),
        TREE,
        TREE.root,
        [allotment(1)],
        lambda cells: [99] * len(cells),
        lambda s: np.abs(s.lines - 5),
    )
    assert grown.tree.at.tolist() == [5] and grown.tree.axis.tolist() == [0]  # an odd height: west from east


def test_the_axis_alternates_and_a_strip_is_cut_along_its_other_one():
    grower = TreeGrower(RULE, turns=0, least_pixels=1)
    _, grown = grow(grower, TREE, TREE.root, [allotment(8)], lambda cells: [99] * len(cells), None)
    assert grown.tree.axis[:3].tolist() == [1, 0, 0]  # an even height: north from south
    assert len(grown.leaves) == 256  # every pixel
    narrow = BinaryPartition(
        SQUARE, np.array([[0, 0, 1, 16]]), *(np.zeros(0, dtype=kind) for kind in (np.uint64, np.int8, np.int64))
    )
    _, grown = grow(grower, narrow, narrow.root, [allotment(4)], lambda cells: [99] * len(cells), None)
    assert grown.tree.axis.tolist() == [1] * 15


def test_a_cell_with_one_line_is_not_searched_and_does_not_pay():
    pair = BinaryPartition(
        SQUARE, np.array([[0, 0, 2, 4]]), *(np.zeros(0, dtype=kind) for kind in (np.uint64, np.int8, np.int64))
    )
    asked, grown = grow(TreeGrower(RULE), pair, pair.root, [allotment(1)], lambda cells: [99] * len(cells), None)
    assert [type(question) for question in asked] == [Query, Query]
    assert grown.tree.at.tolist() == [1]
    assert asked[-1].share == 1 - Fraction(1, 50)


@pytest.mark.parametrize(("count", "leaves"), [(10, 1), (11, 2)])
def test_a_cell_is_a_leaf_where_few_people_are(count, leaves):
    _, grown = grow(
        TreeGrower(RULE),
        TREE,
        TREE.root,
        [allotment(1, fullness=10.0)],
        lambda cells: [count] * len(cells),
        lambda s: s.lines,
    )
    assert len(grown.leaves) == leaves


def test_few_pixels_are_a_leaf_without_a_question():
    """16 × 16 is halved 6 times to 4 pixels: these are counted once, as leaves, with all that is left."""
    asked, grown = grow(
        TreeGrower(RULE, turns=0), TREE, TREE.root, [allotment(8)], lambda cells: [99] * len(cells), None
    )
    assert len(grown.leaves) == 64 and len(asked) == 7
    assert asked[-1].share == 1 - 6 * Fraction(1, 50)


def test_votes_in_parts_are_counted_in_people():
    _, grown = grow(
        TreeGrower(OneVote(100)), TREE, TREE.root, [allotment(1)], lambda cells: [999] * len(cells), lambda s: s.lines
    )
    assert len(grown.leaves) == 1


def paths(asked, tree, leaves) -> list[Fraction]:
    """What was asked about each leaf, or a cell around it."""
    paid = [Fraction(0)] * len(leaves)
    first, last = tree.span(leaves)
    for question in asked:
        cells, _ = question.where
        low, high = tree.span(cells.cells)
        for i in range(len(leaves)):
            if ((low <= first[i]) & (last[i] <= high)).any():
                paid[i] += question.share
    return paid


@settings(max_examples=30)
@given(st.data(), st.integers(0, 4), st.integers(0, 2))
def test_every_way_from_a_root_to_a_leaf_costs_what_the_root_was_allotted_whatever_is_answered(data, height, turns):
    drawn = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    frames = np.array([[0, 0, 16, 7], [0, 7, 5, 16], [5, 7, 16, 16]])
    forest = BinaryPartition(SQUARE, frames, *(np.zeros(0, dtype=kind) for kind in (np.uint64, np.int8, np.int64)))
    allotments = [allotment(height), allotment(2, cutting="1/7", left="9/10"), allotment(height)]
    asked, grown = grow(
        TreeGrower(RULE, turns, least_pixels=3),
        forest,
        forest.root,
        allotments,
        lambda cells: drawn.integers(-5, 40, len(cells)),
        lambda s: drawn.integers(-100, 100, s.size),
    )
    frame = (np.sort(grown.leaves) >> np.uint64(44)).astype(int)
    wanted = [allotments[i].left for i in frame]
    assert paths(asked, grown.tree, np.sort(grown.leaves)) == wanted
    spent = ParallelComposition()
    for question in asked:
        spent.pay(question.share, question.where)
    assert spent.most(None) == max(wanted)
    assert np.array_equal(np.sort(grown.leaves), np.sort(grown.tree.ends))


def test_roots_with_the_same_shares_are_asked_together():
    frames = np.array([[0, 0, 16, 8], [0, 8, 16, 16]])
    forest = BinaryPartition(SQUARE, frames, *(np.zeros(0, dtype=kind) for kind in (np.uint64, np.int8, np.int64)))
    answers = (lambda cells: [99] * len(cells), lambda s: s.lines)
    together, _ = grow(TreeGrower(RULE, 1), forest, forest.root, [allotment(2), allotment(2)], *answers)
    apart, _ = grow(TreeGrower(RULE, 1), forest, forest.root, [allotment(2), allotment(2, left="1/2")], *answers)
    assert [question.size for question in together] == [2, 6, 4, 12, 8]
    assert [question.size for question in apart] == [2, 6, 4, 12, 4, 4]  # only the leaves are left different sums


def test_last_counts_are_unbiased_though_first_ones_decided_what_is_a_leaf():
    """Ten people a pixel. Five standard errors of hundreds of leaves: wrong with probability 6e-7.

    The first counts must fail it: a leaf is one because its first count was low.
    """
    rng, tree = np.random.default_rng(2022), BinaryPartition.uncut(Quadtree.world(depth=6))
    last, first = [], []
    for _ in range(5):
        rounds = TreeGrower(RULE, turns=0).grown(tree, tree.root, [allotment(12, fullness=300.0)])
        question, asked = next(rounds), []
        try:
            while True:
                cells, noise = question.where[0], 100.0 if question.share < Fraction(1, 4) else 20.0
                west, north, east, south = cells.tree.rectangles(cells.cells)
                truth = 10 * (east - west) * (south - north)
                sums = np.rint(truth + rng.laplace(0, noise / np.sqrt(2), cells.size)).astype(np.int64)
                asked.append((question, Answer(sums, np.array([noise]))))
                if noise == 100:
                    first += ((sums - truth) / noise)[sums <= 300].tolist()
                question = rounds.send(asked[-1][1])
        except StopIteration as end:
            leaves = Leaves(end.value.tree, np.sort(end.value.leaves))
        west, north, east, south = leaves.tree.rectangles(leaves.cells)
        made = read(asked, leaves, Reading.UNBIASED)
        last += ((made.unbiased - 10 * (east - west) * (south - north)) / made.stddev).tolist()
    assert len(last) > 300
    assert abs(sum(last)) < 5 * np.sqrt(len(last))
    assert sum(first) < -5 * np.sqrt(len(first))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: BudgetAllotment(Fraction(1), (Fraction(1),), (Fraction(0),), (1.0,)),
        lambda: BudgetAllotment(Fraction(1), (Fraction(1, 2),), (Fraction(1, 2),), (1.0,)),
        lambda: BudgetAllotment(Fraction(1), (Fraction(1, 2),), (), (1.0,)),
        lambda: BudgetAllotment(Fraction(1), (Fraction(-1, 2),), (Fraction(0),), (1.0,)),
        lambda: TreeGrower(RULE, turns=-1),
        lambda: TreeGrower(RULE, least_pixels=0),
    ],
)
def test_what_leaves_nothing_for_leaves_is_refused(wrong):
    with pytest.raises(InputError):
        wrong()
