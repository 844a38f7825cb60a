"""What each rule promises, in numbers and in words; what engines leave: `test_contribution_bounding.py`."""

import numpy as np
import pytest

from hazemap.errors import InputError
from hazemap.privacy.statement_facts import estimand
from hazemap.tables.contribution_bounding import (
    LARGEST_TOTAL,
    AtMostCells,
    AtMostRows,
    OneVote,
    Outside,
    OwnMeans,
    RowIsPerson,
    Sensitivity,
    whole_weights,
)

RULES = [
    (AtMostRows(), 1, 1, "people", "one row a person"),
    (AtMostRows(2), 2, 1, "rows counted, at most 2 each", "at most 2 rows a person"),
    (AtMostRows(7), 7, 1, "rows counted, at most 7 each", "at most 7 rows a person"),
    (AtMostCells(1), 1, 1, "visits counted, at most 1 place each", "at most 1 cells a person"),
    (AtMostCells(5), 5, 1, "visits counted, at most 5 places each", "at most 5 cells a person"),
    (OneVote(), 1024, 1024, "people", "one vote a person, shared out over their rows"),
    (OneVote(1), 1, 1, "people", "one vote a person, shared out over their rows"),
    (OneVote(1 << 16), 1 << 16, 1 << 16, "people", "one vote a person, shared out over their rows"),
    (RowIsPerson(), 1, 1, "rows", "each row is a person of its own"),
    (OwnMeans(1, 1, 1), 1, 1, "people", "one cell and slot a person, in each the mean of theirs with weight 1"),
    (
        *(OwnMeans(3, 5, 7), 3 * 5 * 7, 7, "records counted, at most 5 each in each of 3 places"),
        "at most 3 cells and slots a person, in each the mean of theirs with weight at most 5 records",
    ),
    (
        *(OwnMeans(2, 2), 4 << 20, 1 << 20, "records counted, at most 2 each in each of 2 places"),
        "at most 2 cells and slots a person, in each the mean of theirs with weight at most 2 records",
    ),
]


@pytest.mark.parametrize(("rule", "l1", "unit", "counted", "words"), RULES, ids=lambda each: repr(each)[:40])
def test_a_rule_states_its_norms_its_unit_and_what_it_counts(rule, l1, unit, counted, words):
    assert rule.sensitivity == Sensitivity(l1, l1 * l1), "all of it may lie in one cell"
    assert (rule.unit, estimand(rule), str(rule)) == (unit, counted, words)
    assert rule.outside is Outside.DROP


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: AtMostRows(0), "rows a person must be at least 1, not 0"),
        (lambda: AtMostRows(-1), "rows a person must be at least 1, not -1"),
        (lambda: AtMostCells(0), "cells a person must be at least 1, not 0"),
        (lambda: OneVote(0), "micro-votes a person must be at least 1, not 0"),
        (lambda: OneVote((1 << 16) + 1), "a person can have at most 65536 micro-votes, not 65537"),
        (lambda: OwnMeans(0), "the number of cells a person must be at least 1"),
        (lambda: OwnMeans(1, 0), "the number of records that a person counts for must be at least 1"),
        (lambda: OwnMeans(1, 1, 0), "the number of micro-votes a record must be at least 1"),
        (lambda: OwnMeans((1 << 16) + 1, 1, 1), "a person can count in at most 65536 cells, with at most"),
        (lambda: OwnMeans(1, (1 << 16) + 1, 1), "a person can count in at most 65536 cells, with at most"),
        (lambda: OwnMeans(1 << 17, 1, 1), "a person can count in at most 65536 cells, with at most"),
        (lambda: OwnMeans(1, 1, (1 << 50) + 1), "sums must fit 64 bits"),
        (lambda: OwnMeans(1 << 10, (1 << 10) + 1, 1 << 30), "sums must fit 64 bits"),
        (lambda: OwnMeans(1, outside=Outside.COUNT), "values are measured inside cells, so rows outside must be"),
        (lambda: OwnMeans(1, outside=Outside.PEOPLE), "values are measured inside cells, so rows outside must be"),
        (lambda: Outside.read(1), "must be true, false"),
        (lambda: Outside.read("drop"), "must be true, false"),
        (lambda: Outside.read(None), "must be true, false"),
    ],
)
def test_a_rule_with_numbers_out_of_range_is_refused(made, words):
    with pytest.raises(InputError, match=words):
        made()


def test_a_rule_may_be_as_large_as_its_limits():
    assert OwnMeans(1 << 16, 1, 1).cells == OwnMeans(1, 1 << 16, 1).records == 1 << 16
    assert OwnMeans(1 << 10, 1 << 10, 1 << 30).sensitivity.l1 == OwnMeans(1, 1, 1 << 50).sensitivity.l1 == 1 << 50


def test_what_becomes_of_rows_outside_is_asked_about_and_written_as_it_is():
    assert [each.asked for each in (Outside.DROP, Outside.PEOPLE, Outside.COUNT)] == [False, True, True]
    assert [each.written for each in (Outside.DROP, Outside.PEOPLE, Outside.COUNT)] == [False, "people", True]
    assert all(Outside.read(each.written) is each for each in Outside)


def test_weights_are_whole_1024ths_and_none_where_they_mean_nothing():
    given = np.array([1, 0.5, 1 / 1024, 1 / 4096, 0, -1, np.nan, np.inf, -np.inf, 2.0**43, 2.0**60, 3.0])
    assert whole_weights(given).tolist() == [1024, 512, 1, 0, 0, 0, 0, 0, 0, 2**53, 2**53, 3072]
    assert LARGEST_TOTAL == 2**62 - 1
