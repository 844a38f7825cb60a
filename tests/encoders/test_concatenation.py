"""Several vectors in one: what each part weighs, and how much there may be of it."""

import numpy as np
import pytest

from hazemap.cells import Leaves
from hazemap.encoders import Concatenation, Counts
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, OneVote, Sensitivity

TREE = Quadtree.world(depth=2)
ROOT, QUARTERS = Leaves(TREE, TREE.root), Leaves.at_level(TREE, 1)


def test_fault_12_a_stack_has_1024_parts_at_most_and_weights_up_to_two_to_the_40():
    one = Counts(ROOT)
    assert Concatenation((one,) * 1024, (1,) * 1024).size == 1024
    with pytest.raises(InputError, match="at most 1,024 parts"):
        Concatenation((one,) * 1025, (1,) * 1025)
    assert Concatenation((one, one), (1, 2**40)).sensitivity == Sensitivity(1 + 2**40, 1 + 2**80)
    for weights in ((1, 2**40 + 1), (2**40 + 1, 1)):
        with pytest.raises(InputError, match="at most 1,099,511,627,776: sums must fit 64 bits"):
            Concatenation((one, one), weights)


def test_l1_adds_by_weight_and_l2_squared_by_its_square():
    stack = Concatenation((Counts(ROOT, AtMostRows(3)), Counts(QUARTERS, OneVote(4)), Counts(ROOT)), (2, 5, 7))
    assert stack.sensitivity == Sensitivity(2 * 3 + 5 * 4 + 7, 4 * 9 + 25 * 16 + 49)


def test_what_was_stacked_is_split_into_what_it_was():
    rows = MemoryTable(np.arange(6), {"lon": np.array([-9.0, 9, 9, 9, -9, 9]), "lat": np.array([9.0, 9, -9, 9, 9, 9])})
    parts = (Counts(QUARTERS), Counts(ROOT), Counts(QUARTERS))
    stack = Concatenation(parts, (3, 1, 8))
    sums = stack.total(rows)
    assert sums.shape == (stack.size,) == (9,) and sums.sum() == 6 * (3 + 1 + 8)
    entries = stack.encode(rows)
    assert np.bincount(entries.position, entries.value, stack.size).tolist() == sums.tolist()
    for piece, part in zip(stack.split(sums), parts, strict=True):
        assert piece.tolist() == part.total(rows).tolist()
