"""Answers become measurements: whole queries, and every part of a stack by its own weight."""

from fractions import Fraction

import numpy as np

from hazemap.cells import Leaves
from hazemap.encoders import Concatenation, CountMinSketch, Counts
from hazemap.estimate import measurements
from hazemap.estimate.transcript_measurements import parts
from hazemap.queries.noisy_queries import Answer, Query
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import OneVote

TREE = Quadtree.world(depth=3)
QUARTERS, WHOLE = Leaves.at_level(TREE, 1), Leaves.at_level(TREE, 0)
OTHER = Leaves.at_level(Quadtree.world(depth=4), 1)


def test_the_parts_of_a_stack_are_measured_each_by_its_weight_and_unit():
    rule = OneVote(8)
    stack = Concatenation((Counts(QUARTERS, rule), Counts(WHOLE)), (1, 4))
    answer = Answer(np.array([8, 16, 24, 32, 40]), np.array([2.0]), 3.0)
    first, second = measurements([(Query(stack, Fraction(1)), answer)], QUARTERS)
    assert first.cells == QUARTERS and first.numbers.tolist() == [1, 2, 3, 4]
    assert np.allclose(first.variances, (2 / 8) ** 2) and first.variances.shape == (4,)
    assert second.cells == WHOLE and second.numbers.tolist() == [10]
    assert second.variances.tolist() == [0.25]


def test_a_stack_in_a_stack_multiplies_weights_and_error_bars_of_each_sum_stay_its_own():
    inner = Concatenation((Counts(WHOLE), Counts(QUARTERS)), (2, 3))
    outer = Concatenation((Counts(OTHER), inner), (1, 5))
    assert [(part.start, part.weight) for part in parts(outer)] == [(0, 1), (4, 10), (5, 15)]
    answer = Answer(np.arange(9) * 30, np.arange(1.0, 10.0), 3.0)
    whole, quarters = measurements([(Query(outer, Fraction(1)), answer)], QUARTERS)
    assert whole.numbers.tolist() == [12] and whole.variances.tolist() == [0.25]
    assert quarters.numbers.tolist() == [10, 12, 14, 16]
    assert np.allclose(quarters.variances, (np.arange(6, 10) / 15) ** 2)


def test_sketches_and_other_trees_are_no_measurements():
    stack = Concatenation((CountMinSketch(TREE, 2, 3, 1), Counts(OTHER)), (1, 1))
    answer = Answer(np.arange(7), np.array([1.0]), 3.0)
    assert measurements([(Query(stack, Fraction(1)), answer)], QUARTERS) == []
