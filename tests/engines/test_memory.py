"""Tables in memory."""

import os
import subprocess
import sys

import numpy as np
import pytest
from tests.tables.people import QUADTREE, crowd, table

from hazemap.engines.memory import MemoryTable
from hazemap.errors import TableError
from hazemap.tables.contribution_bounding import AtMostRows


def test_a_table_of_one_person_keeps_their_codes_and_draws():
    whole = crowd(50, 1_000)
    person = int(whole.person[3])
    own = whole.of(person)
    kept = whole.bounded(QUADTREE, AtMostRows(3))
    assert set(own.person) == {person} and own.key == whole.key
    assert own.bounded(QUADTREE, AtMostRows(3))[1].tolist() == kept[1][kept[0] == person].tolist()


def test_another_key_draws_another_sample():
    one, other = crowd(50, 1_000, key=1), crowd(50, 1_000, key=2)
    assert not np.array_equal(one.votes(QUADTREE, AtMostRows(1)).weights, other.votes(QUADTREE, AtMostRows(1)).weights)


def test_unsigned_codes_are_people_too():
    lon, lat = np.full(2, 13.3), np.full(2, 52.5)
    codes = np.array([2**64 - 1, 2**63], dtype=np.uint64)
    rows = MemoryTable(codes, {"lon": lon, "lat": lat})
    assert rows.votes(QUADTREE, AtMostRows(1)).weights.tolist() == [2]


def test_no_rows_give_no_votes():
    assert len(table([]).votes(QUADTREE, AtMostRows(1)).cells) == 0


@pytest.mark.parametrize(
    ("person", "columns", "says"),
    [
        ([1.5], {"lon": [1.0], "lat": [1.0]}, "whole numbers"),
        ([1], {"lon": [1.0]}, "lon and lat"),
        ([1], {"lon": [1.0, 2.0], "lat": [1.0]}, "every column needs one value per row"),
        ([1], {"lon": [1.0], "lat": [1.0], "weight": [1.0, 2.0]}, "'weight'"),
        ([[1]], {"lon": [[1.0]], "lat": [[1.0]]}, "one-dimensional"),
    ],
)
def test_columns_that_do_not_fit_are_refused(person, columns, says):
    with pytest.raises(TableError, match=says):
        MemoryTable(np.array(person), {name: np.array(column) for name, column in columns.items()})


def test_the_light_path_loads_no_engine():
    heavy = "{'duckdb', 'numba', 'pyarrow', 'pandas', 'scipy', 'shapely', 'pyproj'}"
    code = f"import sys, hazemap.engines.memory, hazemap.tables.votes; print(sorted({heavy} & set(sys.modules)))"
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=path)
    assert done.stdout.strip() == "[]"
