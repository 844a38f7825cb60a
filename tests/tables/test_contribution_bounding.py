"""What one person can do to the votes, by brute force over neighbouring tables."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hazemap.engines import memory
from hazemap.engines.memory import MemoryTable, divided
from hazemap.errors import InputError
from hazemap.tables.contribution_bounding import (
    LARGEST_TOTAL,
    AtMostCells,
    AtMostRows,
    OneVote,
    Outside,
    RowIsPerson,
    whole_weights,
)
from hazemap.tables.votes import Votes

from .people import IDS, PERSONAL, QUADTREE, RULES, TREES, coarser, minus, same, table, tables, without

ENDS = (Outside.DROP, Outside.COUNT)
TINY = [rule(k, outside) for rule, k in ((AtMostRows, 2), (AtMostCells, 2), (OneVote, 3)) for outside in Outside]


def moved(whole: Votes, rest: Votes, tree) -> list[tuple[int, int]]:
    """L1 and L2² of the difference, at the base and at every level above."""
    difference, norms = minus(whole, rest), []
    for _ in range(tree.depth + 1):
        norms.append((int(np.abs(difference.weights).sum()), int((difference.weights**2).sum())))
        difference = coarser(difference, tree) if len(norms) <= tree.depth else difference
    return norms


def check_every_neighbour(whole: MemoryTable, rule, tree) -> None:
    votes = whole.votes(tree, rule)
    for person in np.unique(whole.person):
        for l1, l2_squared in moved(votes, without(whole, person).votes(tree, rule), tree):
            assert l1 <= rule.sensitivity.l1
            assert l2_squared <= rule.sensitivity.l2_squared


@pytest.mark.parametrize("rule", PERSONAL, ids=repr)
@pytest.mark.parametrize("tree", TREES, ids=["quadtree", "hexagons"])
@settings(max_examples=20)
@given(whole=tables(weighted=True))
def test_no_person_moves_the_votes_by_more_than_the_rule_says(tree, rule, whole):
    check_every_neighbour(whole, rule, tree)


@pytest.mark.slow
@pytest.mark.parametrize("rule", TINY, ids=repr)
def test_no_person_moves_the_votes_of_any_tiny_table_by_more(rule):
    places = [(13.05, 52.35), (13.75, 52.65), (0.0, 0.0)]
    rows = list(product([1, 2], places, [1.0, 0.4]))
    for chosen in product(rows, repeat=3):
        check_every_neighbour(table(list(chosen)), rule, QUADTREE)


@pytest.mark.parametrize("outside", Outside)
@given(whole=tables())
def test_no_row_moves_the_votes_by_more_where_each_is_a_person(outside, whole):
    rule = RowIsPerson(outside)
    votes = whole.votes(QUADTREE, rule)
    for i in range(len(whole.person)):
        others = np.arange(len(whole.person)) != i
        rest = MemoryTable(whole.person[others], {n: c[others] for n, c in whole.columns.items()}, whole.key)
        assert all(norms <= (1, 1) for norms in moved(votes, rest.votes(QUADTREE, rule), QUADTREE))


@pytest.mark.parametrize("rule", PERSONAL, ids=repr)
@settings(max_examples=30)
@given(whole=tables())
def test_removing_a_person_changes_nothing_about_what_is_left_of_the_others(rule, whole):
    def rows_of(table: MemoryTable, but: int) -> list[tuple[int, int, int]]:
        return sorted(
            row for row in zip(*(c.tolist() for c in table.bounded(QUADTREE, rule)), strict=True) if row[0] != but
        )

    for person in np.unique(whole.person):
        assert rows_of(whole, person) == rows_of(without(whole, person), person)


@pytest.mark.parametrize("rule", RULES, ids=repr)
@settings(max_examples=30)
@given(whole=tables())
def test_the_votes_of_all_are_the_sum_of_the_votes_of_each(rule, whole):
    each = [whole.of(person).votes(QUADTREE, rule) for person in np.unique(whole.person)]
    total = Votes.gathered(
        np.concatenate([np.empty(0, np.uint64), *(v.cells for v in each)]),
        np.concatenate([np.empty(0, np.int64), *(v.weights for v in each)]),
    )
    assert same(whole.votes(QUADTREE, rule), total)


def test_brute_force_finds_a_vote_whose_parts_are_rounded_alone(monkeypatch):
    """The twin that must fail: Bagdasaryan et al. round each entry on its own, so two halves of 1 become 2."""
    halves = table([(1, place, 1.0) for place in ((13.05, 52.35), (13.75, 52.65))])
    check_every_neighbour(halves, OneVote(1), QUADTREE)
    monkeypatch.setattr(memory, "divided", lambda weights, scale, _: [-(-scale * w // sum(weights)) for w in weights])
    with pytest.raises(AssertionError):
        check_every_neighbour(halves, OneVote(1), QUADTREE)


def test_brute_force_finds_a_sample_that_looks_at_other_people(monkeypatch):
    """The twin that must fail: codes that are ranks among all people change when one of them leaves."""
    seeds = memory.seeds
    monkeypatch.setattr(
        memory, "seeds", lambda who, words: seeds(np.unique(who, return_inverse=True)[1].astype("u8"), words)
    )
    crowd = table([(who, (13.05 + 0.09 * ((who + i) % 8), 52.5), 1.0) for who in range(9) for i in range(3)])
    with pytest.raises(AssertionError):
        check_every_neighbour(crowd, AtMostRows(1), QUADTREE)


@given(
    st.lists(st.integers(0, LARGEST_TOTAL), min_size=1, max_size=8).filter(any),
    st.integers(1, 2**16),
    st.integers(0, 2**64 - 1),
)
def test_a_divided_vote_is_whole_and_close_to_its_weights(weights, scale, drawn):
    parts = divided(weights, scale, drawn)
    assert sum(parts) == scale
    assert min(parts) >= 0
    if sum(weights) <= LARGEST_TOTAL:
        assert all(abs(part - scale * w / sum(weights)) < 1.001 for part, w in zip(parts, weights, strict=True))


def test_a_divided_vote_is_unbiased():
    """Over a grid of draws that falls evenly on the starts 0 … 6, the mean part is the exact one."""
    weights, scale, grid = [1, 2, 4], 5, 700
    draws = [(2 * i + 1) * 2**64 // (2 * grid) for i in range(grid)]
    sums = np.sum([divided(weights, scale, drawn) for drawn in draws], axis=0)
    assert sums.tolist() == [scale * grid * w // 7 for w in weights]


def test_rows_without_a_usable_weight_do_not_count():
    weights = whole_weights(np.array([1.0, 0.0, -1.0, np.nan, np.inf, 1e300, 0.0004, 0.0005]))
    assert weights.tolist() == [1024, 0, 0, 0, 0, 2**53, 0, 1]


@pytest.mark.parametrize("rule", [AtMostRows(3), AtMostCells(3), OneVote(3)], ids=repr)
@settings(max_examples=30)
@given(whole=tables(weighted=True))
def test_who_has_a_row_inside_is_counted_as_if_there_were_no_outside_and_all_others_once(rule, whole):
    """Votes of one person are all in cells, as with `DROP`, or all in `NOWHERE`, as with `COUNT`."""
    people, dropped, counted = (replace(rule, outside=outside) for outside in (Outside.PEOPLE, *ENDS))
    for person in np.unique(whole.person):
        own = whole.of(person)
        inside, everything = own.votes(QUADTREE, dropped), own.votes(QUADTREE, counted)
        assert same(own.votes(QUADTREE, people), inside if len(inside.cells) else everything)


def test_brute_force_finds_people_outside_who_are_counted_inside_too(monkeypatch):
    """The twin that must fail: votes in cells, and as many outside, of everybody with rows in both."""
    kept = memory._counting
    rows = table([(1, (13.05, 52.35), 1.0), (1, (0.0, 0.0), 1.0)])
    rule = AtMostRows(1, Outside.PEOPLE)
    check_every_neighbour(rows, rule, QUADTREE)
    assert rows.votes(QUADTREE, rule).weights.tolist() == [1]
    monkeypatch.setattr(memory, "_some_rows", lambda person, cells, *_: (person, cells, np.ones(len(cells), np.int64)))
    monkeypatch.setattr(memory, "_counting", lambda *given: kept(*given[:3], AtMostRows(1, Outside.COUNT)))
    with pytest.raises(AssertionError):
        check_every_neighbour(rows, rule, QUADTREE)


def test_a_person_without_usable_coordinates_is_outside():
    rows = table([(1, (float("nan"), 52.5), 1.0), (2, (13.3, 95.0), 1.0), (3, (13.3, 52.5), 1.0), (3, (0.0, 0.0), 1.0)])
    assert rows.votes(QUADTREE, AtMostRows(9, Outside.PEOPLE)).weights.tolist() == [2, 1]


def test_rows_nowhere_use_up_nobodys_allowance_unless_they_are_kept():
    lost = (0.0, 0.0)
    rows = table([(1, lost, 1.0)] * 50 + [(1, (13.05, 52.35), 1.0)])
    assert rows.votes(QUADTREE, AtMostRows(1)).weights.tolist() == [1]
    assert rows.votes(QUADTREE, AtMostRows(51, outside=Outside.COUNT)).weights.tolist() == [50, 1]
    assert rows.votes(QUADTREE, AtMostCells(2, outside=Outside.COUNT)).weights.tolist() == [1, 1]


@pytest.mark.parametrize(
    "make", [lambda: AtMostRows(0), lambda: AtMostCells(0), lambda: OneVote(0), lambda: OneVote(2**17)]
)
def test_a_rule_that_allows_nothing_or_too_much_is_refused(make):
    with pytest.raises(InputError):
        make()


def test_ids_at_the_ends_of_their_range_are_people_like_others():
    rows = table([(who, (13.3, 52.5), 1.0) for who in IDS])
    assert rows.votes(QUADTREE, AtMostRows(1)).weights.tolist() == [len(IDS)]
