"""People pay for questions about where they are: the step function, and the bound itself by brute force."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hazemap.cells import Leaves
from hazemap.privacy.parallel_composition import ParallelComposition, Steps
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_trees import BinaryPartition
from hazemap.tables.contribution_bounding import AtMostRows, OneVote

TREE = Quadtree.world(depth=3)
RULE = AtMostRows(3)
CELLS = [int(cell) for level in range(4) for cell in Leaves.at_level(TREE, level).cells]
shares = st.fractions(0, Fraction(1, 3), max_denominator=12).filter(bool)
questions = st.lists(
    st.tuples(shares, st.lists(st.sampled_from(CELLS), min_size=1, max_size=6, unique=True)), max_size=8
)


def covered(cells: list[int]) -> set[int]:
    first, last = TREE.span(np.array(cells, dtype=np.uint64))
    return {base for a, b in zip(first.tolist(), last.tolist(), strict=True) for base in range(a, b + 1)}


@given(questions, st.lists(st.sampled_from(CELLS), min_size=1, max_size=4, unique=True))
@settings(deadline=None)
def test_what_a_place_has_paid_is_the_sum_of_the_questions_about_it(asked, place):
    spent, paid = ParallelComposition(), dict.fromkeys(range(64, 128), Fraction(0))
    for share, cells in asked:
        spent.pay(share, (Leaves(TREE, np.array(cells)), RULE))
        for base in covered(cells):
            paid[base] += share
    assert spent.most(None) == max(paid.values())
    assert spent.most((Leaves(TREE, np.array(place)), RULE)) == max(paid[base] for base in covered(place))


@given(questions)
@settings(deadline=None, max_examples=40)
def test_nobody_loses_more_than_the_place_that_paid_most(asked):
    """Brute force over all ways to have three votes in four places, in pure ε and in ρ."""
    spent, places = ParallelComposition(), [64, 65, 80, 127]
    for share, cells in asked:
        spent.pay(share, (Leaves(TREE, np.array(cells)), RULE))
    parts = [(share, Leaves(TREE, np.array(cells))) for share, cells in asked]
    for votes in product(range(4), repeat=4):
        if sum(votes) <= RULE.most:
            moved = [(s, p.total(np.array(places, np.uint64), np.array(votes))) for s, p in parts]
            assert sum((s * int(np.abs(v).sum()) / RULE.most for s, v in moved), Fraction(0)) <= spent.most(None)
            assert sum((s * int((v * v).sum()) / RULE.most**2 for s, v in moved), Fraction(0)) <= spent.most(None)


def test_a_tree_that_grows_is_the_same_ground():
    spent, tree = ParallelComposition(), BinaryPartition.uncut(Quadtree.world(depth=4))
    spent.pay(Fraction(1, 4), (Leaves(tree, tree.root), RULE))
    grown = tree.cut(tree.root, np.array([0]), np.array([5]))
    west, east = (Leaves(grown, half) for half in grown.ends[:, None])
    spent.pay(Fraction(1, 2), (west, RULE))
    assert (spent.most((west, RULE)), spent.most((east, RULE))) == (Fraction(3, 4), Fraction(1, 4))
    other = tree.cut(tree.root, np.array([0]), np.array([6]))
    assert spent.most((Leaves(other, other.ends[1:]), RULE)) == Fraction(3, 4)


@pytest.mark.parametrize(
    "strange", [None, (Leaves(TREE, TREE.root), OneVote()), (Leaves(Quadtree.world(2), TREE.root), RULE)]
)
def test_after_a_question_of_another_kind_everybody_has_paid_what_anybody_has(strange):
    quarters = TREE.children(TREE.root)
    spent = ParallelComposition()
    spent.pay(Fraction(1, 2), (Leaves(TREE, quarters[:1]), RULE))
    assert spent.most(strange) == Fraction(1, 2)
    spent.pay(Fraction(1, 8), strange)
    assert spent.most((Leaves(TREE, quarters[1:]), RULE)) == Fraction(5, 8)
    spent.pay(Fraction(1, 8), (Leaves(TREE, quarters[1:2]), RULE))
    assert spent.most((Leaves(TREE, quarters[2:]), RULE)) == Fraction(5, 8)
    assert spent.most(None) == Fraction(3, 4)


ENDS = np.array([0, 1, 5, 2**64 - 2, 2**64 - 1], dtype=np.uint64)
"""Numbers next to each other and apart, and both ends of them all."""


def stretched(chosen: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """These places of `ENDS` as stretches: neighbours are one."""
    cells = ENDS[list(chosen)]
    gap = np.append(True, cells[1:] != cells[:-1] + np.uint64(1)) if len(cells) else np.zeros(0, dtype=bool)
    return cells[gap], cells[np.append(gap[1:], True)] if len(cells) else cells


@pytest.mark.parametrize("other", [(Quadtree.world(depth=2), RULE), (TREE, OneVote(3))], ids=["tree", "rule"])
def test_places_are_told_apart_from_the_first_question_of_another_kind_on(other):
    """That question itself was paid by everybody once: a method that found its box first then had too little left."""
    tree, rule = other
    spent, quarters = ParallelComposition(), tree.children(tree.root)
    spent.pay(Fraction(1, 2), (Leaves(TREE, TREE.children(TREE.root)[:1]), RULE))
    spent.pay(Fraction(1, 3), (Leaves(tree, quarters[:1]), rule))
    assert spent.most((Leaves(tree, quarters[1:]), rule)) == Fraction(1, 2)
    assert spent.most((Leaves(tree, quarters[:1]), rule)) == spent.most(None) == Fraction(5, 6)
    assert spent.most((Leaves(TREE, TREE.children(TREE.root)[1:]), RULE)) == Fraction(5, 6)  # back again


def test_steps_are_those_of_a_slow_twin_wherever_stretches_begin_and_end():
    """All pairs of sets of five numbers: a dearer step that begins with the last number of a stretch is met, too."""
    every = [chosen for size in range(1, 6) for chosen in combinations(range(5), size)]
    for one, other in product(every, repeat=2):
        paid = [Fraction(1, 3) * (place in one) + Fraction(1, 4) * (place in other) for place in range(5)]
        steps = Steps.level(Fraction(0)).raised(*stretched(one), Fraction(1, 3))
        steps = steps.raised(*stretched(other), Fraction(1, 4))
        for place in range(5):
            assert steps.most(*stretched((place,))) == paid[place]
        for asked in ((0, 1), (3, 4), (0, 1, 3, 4), one, other):
            assert steps.most(*stretched(asked)) == max(paid[place] for place in asked)
        levelled = steps.levelled(*stretched((0, 1, 3, 4)))
        wanted = [max(paid[:2])] * 2 + [paid[2]] + [max(paid[3:])] * 2
        assert [levelled.most(*stretched((place,))) for place in range(5)] == wanted


def test_fault_12_a_dearer_step_at_the_last_cell_of_a_stretch_counts():
    spent, first = ParallelComposition(), TREE.children(TREE.root)[:1]
    last = Leaves(TREE, TREE.span(first)[1])
    spent.pay(Fraction(3, 4), (last, RULE))
    assert spent.most((Leaves(TREE, first), RULE)) == Fraction(3, 4)
