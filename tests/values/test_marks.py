"""Marks and sides: what is understood, and how far one person moves the counts of sides, over all small tables."""

from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from hazemap import codec
from hazemap.cells import NOWHERE, Leaves
from hazemap.encoders import Counts, total
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote
from hazemap.values.boolean_attribute import AttributeCells, BinaryAttribute
from hazemap.values.marks import Mark, Marks

TREE = Quadtree.around(Box(13.0, 52.3, 13.8, 52.7), 3)
PLACES = [(13.05, 52.35), (13.2, 52.45), (0.0, 0.0)]
RULES = [AtMostRows(1), AtMostRows(2), AtMostCells(1), AtMostCells(2), OneVote(5)]


@pytest.mark.parametrize("text", ["", "=3", "ill=", "a\nb", "x" * 201, 3])
def test_what_is_no_mark_is_refused(text):
    with pytest.raises(InputError, match="a mark is COLUMN"):
        Mark.parse(text)


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ((), "at least one"),
        (("ill", "ill"), "none of them twice"),
        (("ill", "ill=3"), "not both"),
        (("a", "b", "c", "d"), "16 counts"),
        (tuple(f"a={i}" for i in range(8)), "9 counts"),
    ],
)
def test_marks_that_make_no_sense_together_are_refused(texts, why):
    with pytest.raises(InputError, match=why):
        Marks.of(*texts)


@pytest.mark.parametrize("texts", [("ill",), ("ill", "old"), ("s=1", "s=2"), ("ill", "s=2", "s=3"), ("a", "b", "c")])
def test_each_side_is_one_set_of_marks_that_may_come_together(texts):
    marks = Marks.of(*texts)
    having = np.array([marks.having(text) for text in texts])
    sets = {tuple(side) for side in having.T.tolist()}
    assert len(sets) == marks.sides
    columns = [mark.column for mark in marks.marks]
    for carried in product([False, True], repeat=len(texts)):
        own = [column for column, has in zip(columns, carried, strict=True) if has]
        assert (carried in sets) == (len(own) == len(set(own)))
    with pytest.raises(InputError, match="the marks are"):
        marks.having("none of these")


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("sides", [None, 3, 4, 8])
def test_no_table_of_three_rows_moves_the_sides_by_more_than_the_sensitivity(rule, sides):
    number = sides or 2
    marks = [*range(min(number, 4)), number - 1, np.nan]
    each = [(*place, mark) for place in PLACES for mark in dict.fromkeys(marks)]
    encoder = Counts(AttributeCells(Leaves.at_level(TREE, 1), sides), rule)
    far = square = 0
    tables = [rows for most in (1, 2) for rows in combinations_with_replacement(each, most)]
    tables += combinations_with_replacement(each[:6], 3)
    for rows in tables:
        lon, lat, mark = (np.array(column) for column in zip(*rows, strict=True))
        own = MemoryTable(np.zeros(len(rows), np.int64), {"lon": lon, "lat": lat, "mark": mark})
        moved = np.abs(total(encoder, own))  # others' rows change nothing: what a person adds is of their own rows
        assert np.array_equal(moved, encoder.total(own))
        far, square = max(far, int(moved.sum())), max(square, int((moved**2).sum()))
    assert (far, square) == encoder.sensitivity  # and both are reached


@pytest.mark.parametrize("sides", [None, 3, 6, 8])
def test_a_tree_of_sides_counts_every_row_once(sides):
    rng, number = np.random.default_rng(1), sides or 2
    columns = {"lon": rng.uniform(13, 13.8, 400), "lat": rng.uniform(52.3, 52.7, 400), "mark": rng.integers(0, 9, 400)}
    tree, cells = BinaryAttribute(TREE, sides), Leaves.at_level(TREE, 2)
    base = tree.cell_at(columns, tree.depth)
    assert np.array_equal(base == NOWHERE, columns["mark"] >= number)
    known = np.sort(base[base != NOWHERE])
    found, ones = AttributeCells(cells, sides), np.ones(len(known), np.int64)
    sums = found.total(known, ones)
    assert np.array_equal(sums, np.bincount(found.locate(known), None, found.size))
    places = np.sort(TREE.cell_at(columns, 3)[base != NOWHERE])
    assert np.array_equal(sums.reshape(number, -1).sum(axis=0), cells.total(places, ones))
    children = tree.children(tree.parent(known[:1]))
    first, last = tree.span(children)
    whole = tree.span(tree.parent(known[:1]))
    assert len(children) == number and np.array_equal(first[1:], last[:-1] + np.uint64(1))
    assert (first[0], last[-1]) == (whole[0][0], whole[1][0])
    assert np.array_equal(tree.named(tree.names(known)), known)


def test_two_sides_are_written_as_before_and_more_travel_too():
    cells = Leaves.at_level(TREE, 1)
    assert "sides" not in codec.dumps(AttributeCells(cells)) + codec.dumps(BinaryAttribute(TREE))
    for thing in (AttributeCells(cells, 6), BinaryAttribute(TREE, 3)):
        assert codec.loads(codec.dumps(thing)) == thing
    for sides in (0, 1, 2, 9, -3, True, 3.0):
        with pytest.raises(InputError):
            AttributeCells(cells, sides)
