"""What people may write, and what they are told when they write something else."""

from fractions import Fraction

import pytest

from hazemap.errors import InputError
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.specs.parsing import HexagonCells, QuadtreeCells, bounding, budget, cells
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, Outside, RowIsPerson


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("one row", AtMostRows(1)),
        ("rows:10", AtMostRows(10)),
        ("cells:5", AtMostCells(5)),
        ("one vote", OneVote()),
        ("rows are people", RowIsPerson()),
    ],
)
def test_every_bounding_rule_has_a_spelling(text, rule):
    assert bounding(text) == rule
    assert bounding(text, Outside.PEOPLE).outside is Outside.PEOPLE


@pytest.mark.parametrize("text", ["", "rows", "rows:", "rows:-1", "rows:1.5", "One row", "cells:5 ", "rows:0"])
def test_other_bounding_rules_are_refused(text):
    with pytest.raises(InputError):
        bounding(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("quadtree", QuadtreeCells(None)),
        ("quadtree:12", QuadtreeCells(12)),
        ("h3:7-10", HexagonCells(7, 10)),
        ("h3:9", HexagonCells(9, 9)),
    ],
)
def test_every_kind_of_cells_has_a_spelling(text, found):
    assert cells(text) == found
    assert str(found)


@pytest.mark.parametrize("text", ["", "quad", "quadtree:", "h3", "h3:", "h3:7-", "h3:a-b", "H3:7-10"])
def test_other_cells_are_refused_with_the_choices(text):
    with pytest.raises(InputError, match="quadtree:DEPTH, h3:COARSEST-FINEST"):
        cells(text)


def test_a_budget_is_what_its_digits_say():
    assert budget("0.1", None, None) == PureDP(Fraction(1, 10))
    assert budget(1, "1e-6", None) == ApproxDP(1, Fraction(1, 10**6))
    assert budget(None, None, 0.5) == ZCDP(Fraction(1, 2))


@pytest.mark.parametrize(
    "numbers", [(None, None, None), (1, None, 1), (None, 1e-6, None), (None, 1e-6, 1), (1, 1e-6, 1)]
)
def test_a_budget_in_two_currencies_is_refused(numbers):
    with pytest.raises(InputError, match="give epsilon, epsilon and delta, or rho alone; found"):
        budget(*numbers)
