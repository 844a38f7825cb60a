"""Arrays in the data of a page."""

import numpy as np
import pytest

from hazemap.errors import FileError
from hazemap.releases.page.packed_arrays import TYPES, pack, unpack


@pytest.mark.parametrize("name", TYPES)
def test_numbers_come_back_as_they_were(name):
    whole = np.iinfo(name) if np.dtype(name).kind in "iu" else np.finfo(name)
    for numbers in ([whole.max, 0, whole.min, 7], []):
        array = np.array(numbers, dtype=name)
        found = unpack(pack(array))
        assert found.dtype == array.dtype
        assert np.array_equal(found, array)


def test_the_order_of_bytes_of_a_machine_is_not_seen():
    numbers = np.arange(5, dtype=np.float64)
    assert pack(numbers.astype(">f8")) == pack(numbers) == pack(np.repeat(numbers, 2)[::2])


def test_other_numbers_and_damaged_arrays_are_refused():
    for wrong in (np.zeros((2, 2)), np.zeros(2, dtype=bool), np.array(["a"]), np.array([object()])):
        with pytest.raises(TypeError):
            pack(wrong)
    good = pack(np.arange(3.0))
    for damaged in ({"data": "////"}, {"data": "?"}, {"type": "object"}, {"length": 2}, {"type": "uint64x"}):
        with pytest.raises(FileError):
            unpack({**good, **damaged})
    with pytest.raises(FileError):
        unpack({})
