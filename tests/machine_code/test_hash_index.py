"""Positions are those of a dictionary."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hazemap.machine_code.hash_index import HashIndex

NUMBERS = st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 40), max_size=60)


@given(NUMBERS, NUMBERS)
def test_every_number_is_where_it_stands_and_others_are_nowhere(numbers, asked):
    known = list(dict.fromkeys(numbers))
    found = HashIndex(np.array(known, dtype=np.uint64)).of(np.array(asked + known, dtype=np.uint64))
    places = {number: place for place, number in enumerate(known)}
    assert found.tolist() == [places.get(number, -1) for number in asked + known]


def test_numbers_that_share_their_lower_and_upper_halves_are_told_apart():
    numbers = (np.arange(1 << 16, dtype=np.uint64) << np.uint64(48)) | np.uint64(7)
    assert np.array_equal(HashIndex(numbers).of(numbers), np.arange(1 << 16))
