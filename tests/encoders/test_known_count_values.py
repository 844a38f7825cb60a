"""The counters of a known-count encoding: by brute force over all neighbours of small tables, whose values of one
person differ."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from hazemap.encoders import KnownCountValues
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError, TableError
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import OwnMeans, Sensitivity
from hazemap.tables.person_cell_values import SelectedPersonCellValues
from hazemap.temporal.time_slots import Always
from hazemap.values.cell_slot_counters import ObservedCellSlots
from hazemap.values.value_encoding import KnownCountEncoding, ValueEncoding

SQUARE = Quadtree.around(Box(0.0, 0.0, 1.0, 1.0), 1)
VALUE_ENCODINGS = [
    ValueEncoding(0, 60),
    ValueEncoding(0, 60, 2),
    ValueEncoding(0, 60, 1, (3,)),
    ValueEncoding(0, 60, 2, (2, 2), (6, 2, 1)),
]
every_value_encoding = pytest.mark.parametrize("value_encoding", VALUE_ENCODINGS, ids=str)
WHO = np.array([1, 1, 1, 2, 2, 3])
WHERE = np.array([0.1, 0.1, 0.9, 0.1, 0.9, 0.9])
"""Three people in two places: one with two records in one of them."""
VALUES = (0.0, 20.03, 59.94, 60.0)


def asked(
    value_encoding: ValueEncoding, values: tuple[float, ...], kept: np.ndarray, records: int
) -> tuple[KnownCountValues, SelectedPersonCellValues]:
    columns = {"lon": WHERE, "lat": np.full(6, 0.3), "value": np.array(values)}
    pairs = MemoryTable(WHO, columns, 11).pairs(ObservedCellSlots(SQUARE, Always(), value_encoding))
    table = SelectedPersonCellValues(pairs, kept, records)
    weight, most, squares = table.weights()
    own = int(np.add.reduceat(kept, pairs.whereabouts.firsts[:-1], dtype=int).max())
    rule = OwnMeans(own, records, KnownCountEncoding(value_encoding).l1)
    return KnownCountValues(pairs.tree, rule, pairs.whereabouts.people, weight, most, squares), table


def is_within(sensitivity: Sensitivity, difference: np.ndarray) -> bool:
    exact = difference.astype(object)
    return abs(exact).sum() <= sensitivity.l1 and (exact**2).sum() <= sensitivity.l2_squared


@every_value_encoding
@pytest.mark.parametrize("records", [1, 2])
@pytest.mark.parametrize("kept", [[1, 1, 1, 1, 1], [1, 0, 1, 1, 0]])
def test_no_other_values_of_one_person_move_the_sums_by_more_and_some_by_as_much(value_encoding, records, kept):
    """Person 1's three values and person 2's two, each one of four: all pairs of tables."""
    kept = np.array(kept, dtype=bool)
    others = (30.0, 7.0)
    for fixed, own in (((3, 4, 5), (0, 1, 2)), ((0, 1, 2, 5), (3, 4))):
        totals, claimed = [], None
        for chosen in product(VALUES, repeat=len(own)):
            values = np.empty(6)
            values[list(own)], values[list(fixed)] = chosen, (others * 2)[: len(fixed)]
            question, table = asked(value_encoding, tuple(values), kept, records)
            assert claimed in (None, question.sensitivity)
            claimed = question.sensitivity
            totals.append(question.total(table))
        moved = [one - other for one in totals for other in totals]
        assert all(is_within(claimed, difference) for difference in moved)
        if own == (0, 1, 2):
            weights = np.where(kept, table.pairs.whereabouts.weights(records), 0)
            heaviest = np.add.reduceat(weights, table.pairs.whereabouts.firsts[:-1]).max()
            reached = max(int(abs(difference).sum()) for difference in moved)
            assert reached in (claimed.l1, claimed.l1 * (heaviest - 1) // heaviest)  # somebody else may be the heaviest


@every_value_encoding
def test_the_sensitivity_is_reached_so_a_smaller_one_is_found_out(value_encoding):
    """The twin that must fail: everything of person 1 goes from one end to the other."""
    everybody = np.ones(5, dtype=bool)
    question, table = asked(value_encoding, (0.0,) * 6, everybody, 2)
    other = asked(value_encoding, (60.0, 60.0, 60.0, 0.0, 0.0, 0.0), everybody, 2)[1]
    moved = question.total(other) - question.total(table)
    l1, l2_squared = question.sensitivity
    assert is_within(question.sensitivity, moved)
    assert not is_within(Sensitivity(l1 - 1, l2_squared), moved)
    assert not is_within(Sensitivity(l1, l2_squared - 1), moved)


def test_the_sums_are_those_of_the_people_who_count():
    question, table = asked(VALUE_ENCODINGS[0], (10.0, 30.0, 60.0, 60.0, 0.0, 30.0), np.ones(5, dtype=bool), 1)
    sums = question.total(table) / question.unit
    assert question.people.tolist() == question.weight.tolist() == [2, 3]
    assert 60 * sums == pytest.approx([20 + 60, 60 + 0 + 30], abs=0.1)


def test_a_table_in_which_others_count_is_refused():
    question, table = asked(VALUE_ENCODINGS[0], (0.0,) * 6, np.array([1, 0, 1, 1, 0], dtype=bool), 1)
    everybody = SelectedPersonCellValues(table.pairs, np.ones(5, dtype=bool), 1)
    with pytest.raises(TableError, match="other people count"):
        question.total(everybody)
    with pytest.raises(TableError, match="other people count"):
        question.total(SelectedPersonCellValues(table.pairs, table.kept, 2))
    rows = MemoryTable(WHO, {"lon": WHERE, "lat": WHERE, "value": WHERE})
    with pytest.raises(TableError, match="person_cell_values"):
        question.total(rows)
    with pytest.raises(TableError, match="for a curator"):
        question.encode(rows)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"most": 3}, "at least 1 and at most places times records"),
        ({"most": 0}, "at least 1 and at most places times records"),
        ({"squares": 0}, "at least 1 and at most places times records"),
        ({"squares": 1}, "at least 1 and at most places times records"),
        ({"squares": 3}, "at least 1 and at most places times records"),
        ({"weight": np.zeros(2)}, "places per person must be at least 1"),
        ({"weight": np.array([-1, 3])}, "places per person must be at least 1"),
        ({"weight": np.array([3, -1])}, "places per person must be at least 1"),
        ({"weight": np.ones(3)}, "a number of people and a weight"),
        ({"people": np.ones(3)}, "a number of people and a weight"),
        ({"bounding": OwnMeans(2, scale=7)}, "scale=known_encoding.l1"),
    ],
    ids=str,
)
def test_numbers_that_cannot_be_are_refused(wrong, words):
    question, _ = asked(VALUE_ENCODINGS[0], (0.0,) * 6, np.ones(5, dtype=bool), 1)
    with pytest.raises(InputError, match=words):
        replace(question, **wrong)


def test_questions_are_equal_where_all_of_their_numbers_are():
    one, _ = asked(VALUE_ENCODINGS[0], (0.0,) * 6, np.ones(5, dtype=bool), 1)
    other, _ = asked(VALUE_ENCODINGS[0], (60.0,) * 6, np.ones(5, dtype=bool), 1)
    less, _ = asked(VALUE_ENCODINGS[0], (0.0,) * 6, np.array([1, 0, 1, 1, 0], dtype=bool), 1)
    assert one == other and hash(one) == hash(other)
    assert one not in (less, 3)


def test_there_are_as_many_sums_as_counters_of_places_where_somebody_counts():
    for kept in ([1, 1, 1, 1, 1], [1, 0, 1, 0, 0]):
        for value_encoding in VALUE_ENCODINGS:
            question, table = asked(value_encoding, (0.0,) * 6, np.array(kept, dtype=bool), 1)
            assert len(question.total(table)) == question.size
    question, _ = asked(VALUE_ENCODINGS[0], (0.0,) * 6, np.ones(5, dtype=bool), 1)
    assert replace(question, weight=np.array([3, 0])).told.tolist() == [0], "nobody has to count in a place"
    with pytest.raises(InputError, match="a number of people and a weight"):
        replace(question, weight=np.ones(1))


def test_fault_12_a_table_in_which_somebody_weighs_more_is_refused_though_each_place_weighs_the_same():
    """Somebody counts in more places, or twice in one: the noise would be for less than they move."""
    question, table = asked(VALUE_ENCODINGS[0], (0.0,) * 6, np.ones(5, dtype=bool), 3)
    assert (question.most, question.squares) == (3, 5)
    question.total(table)
    for less in ({"most": 2}, {"squares": 4}, {"squares": 3}, {"most": 2, "squares": 2}):
        with pytest.raises(TableError, match="other people count"):
            replace(question, **less).total(table)
    replace(question, most=4, squares=6).total(table)  # more is safe


def test_fault_12_a_table_of_other_places_or_records_is_refused_though_the_same_people_count():
    question, table = asked(VALUE_ENCODINGS[0], (0.0,) * 6, np.ones(5, dtype=bool), 1)
    other = asked(ValueEncoding(0, 61), (0.0,) * 6, np.ones(5, dtype=bool), 1)[0]
    with pytest.raises(TableError, match="other people count"):
        other.total(table)
    once = np.ones(5, dtype=bool)
    once[table.pairs.whereabouts.records.argmax()] = False
    question, table = asked(VALUE_ENCODINGS[0], (0.0,) * 6, once, 1)  # nobody has a second record where they count
    more = replace(question, bounding=OwnMeans(2, 2, question.known_encoding.l1))
    assert np.array_equal(SelectedPersonCellValues(table.pairs, once, 2).weights()[0], question.weight)
    with pytest.raises(TableError, match="other people count"):
        more.total(table)
