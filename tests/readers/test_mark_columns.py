"""Marks in files: the side of a row, whatever the type of its columns."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from hazemap.engines.memory import MemoryTable
from hazemap.errors import TableError
from hazemap.readers.open_table import open_table
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows
from hazemap.values.boolean_attribute import BinaryAttribute
from hazemap.values.marks import Marks

TREE = Quadtree.around(Box(13.0, 52.3, 13.8, 52.7), 2)
ROWS = 300
RNG = np.random.default_rng(4)
ILL = RNG.integers(0, 2, ROWS)
STATUS = RNG.integers(0, 5, ROWS)  # 4: unknown
PLACE = {"lon": RNG.uniform(13, 13.8, ROWS), "lat": RNG.uniform(52.3, 52.7, ROWS)}


def table(status, ill=None):
    people = {"user": np.arange(ROWS), **PLACE}
    return pa.table({**people, "ill": pa.array(ILL.astype(bool)) if ill is None else ill, "status": status})


def expected(marks, sides):
    own = {**PLACE, "mark": sides}
    tree = BinaryAttribute(TREE, None if marks.sides == 2 else marks.sides)
    return MemoryTable(np.arange(ROWS), own).votes(tree, AtMostRows(1)), tree


KINDS = {
    "whole": (pa.array([int(s) if s < 4 else None for s in STATUS]), ("2", "3")),
    "float": (pa.array([float(s) if s < 4 else np.nan for s in STATUS]), ("2", "3.0")),
    "text": (pa.array([["none", "it's", " b ", "c", " "][s] for s in STATUS]), ("b", "c")),
    "dictionary": (pa.array([["none", "it's", "b", "c", None][s] for s in STATUS]).dictionary_encode(), ("b", "c")),
}


@pytest.mark.parametrize("kind", KINDS)
def test_sides_are_those_of_the_columns(kind, tmp_path):
    column, (second, third) = KINDS[kind]
    marks = Marks.of("ill", f"status={second}", f"status={third}")
    digit = np.select([STATUS == 2, STATUS == 3, STATUS == 4], [1, 2, np.nan], 0.0)
    wanted, tree = expected(marks, ILL + 2 * digit)
    pa.parquet.write_table(table(column), tmp_path / "rows.parquet")
    for source in (table(column), tmp_path / "rows.parquet"):
        found = open_table(source, mark=marks).votes(tree, AtMostRows(1))
        assert np.array_equal(found.cells, wanted.cells) and np.array_equal(found.weights, wanted.weights)


def test_sides_of_csv_are_texts_as_they_are_written(tmp_path):
    column = pa.array([["0", "1", "2", "3", ""][s] for s in STATUS])
    pa.csv.write_csv(table(column), tmp_path / "rows.csv")
    marks = Marks.of("status=2", "ill")
    digit = np.select([STATUS == 2, STATUS == 4], [1, np.nan], 0.0)
    wanted, tree = expected(marks, digit + 2 * ILL)
    found = open_table(tmp_path / "rows.csv", person="user", mark=marks).votes(tree, AtMostRows(1))
    assert np.array_equal(found.cells, wanted.cells) and np.array_equal(found.weights, wanted.weights)


def test_a_quote_in_a_value_is_a_letter():
    column, marks = KINDS["text"][0], Marks.of("status=it's")
    wanted, tree = expected(marks, np.select([STATUS == 1, STATUS == 4], [1, np.nan], 0.0))
    found = open_table(table(column), mark=marks).votes(tree, AtMostRows(1))
    assert np.array_equal(found.cells, wanted.cells) and np.array_equal(found.weights, wanted.weights)


def test_values_of_truth_columns_are_true_and_false():
    marks = Marks.of("ill=no")
    wanted, tree = expected(marks, 1 - ILL)
    assert np.array_equal(
        open_table(table(KINDS["whole"][0]), mark=marks).votes(tree, AtMostRows(1)).cells, wanted.cells
    )
    with pytest.raises(TableError, match="holds true and false"):
        open_table(table(KINDS["whole"][0]), mark=Marks.of("ill=3"))


@pytest.mark.parametrize("value", ["x", "nan", "inf"])
def test_a_number_is_wanted_of_numbers(value):
    with pytest.raises(TableError, match="holds numbers"):
        open_table(table(KINDS["whole"][0]), mark=Marks.of(f"status={value}"))
    with pytest.raises(TableError, match="mark of a row"):
        open_table(table(KINDS["whole"][0]), mark=Marks.of("fever"))


@pytest.mark.parametrize(
    ("marks", "words"),
    [
        (("ill", "ILL"), "of one column, 'ill': write it in one way"),
        (("status=1", "STATUS=2"), "of one column, 'status'"),
        (("status=1", "status=1.0"), "two of the marks of the column 'status' are one value"),
        (("status=0", "status=-0"), "two of the marks of the column 'status' are one value"),
        (("ill=true", "ill=yes"), "two of the marks of the column 'ill' are one value"),
        (("status=9007199254740993",), "cannot be distinguished"),
        (("day",), r"yes or no, or 1 or 0; the column 'day' is DATE: name one of its values, day=VALUE"),
    ],
)
def test_marks_that_would_count_nobody_are_refused(marks, words):
    """A second mark of the same value would be a share of 0 whose interval holds no truth."""
    rows = table(KINDS["whole"][0]).append_column("day", pa.array([0] * ROWS, pa.date32()))
    with pytest.raises(TableError, match=words):
        open_table(rows, mark=Marks.of(*marks))
