"""Arrow arrays as NumPy arrays."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hazemap.engines.arrow_arrays import floats, numbers, valid


@given(st.lists(st.none() | st.floats(allow_nan=False), max_size=40), st.integers(0, 40), st.integers(0, 40))
def test_slices_with_and_without_gaps_keep_their_values(values, begin, length):
    column = pa.array(values, pa.float64()).slice(min(begin, len(values)), length)
    assert [None if np.isnan(value) else value for value in floats(column)] == column.to_pylist()
    assert valid(column).tolist() == [value is not None for value in column.to_pylist()]


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=40), st.integers(0, 40))
def test_whole_numbers_keep_all_their_bits(values, begin):
    column = pa.array(values, pa.int64()).slice(min(begin, len(values)))
    known = valid(column)
    assert numbers(column, np.int64)[known].tolist() == [value for value in column.to_pylist() if value is not None]


def test_a_column_of_nothing_has_no_values():
    assert np.isnan(floats(pa.nulls(3, pa.float64()))).all()
