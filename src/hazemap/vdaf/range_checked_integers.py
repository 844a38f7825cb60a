"""Whole numbers as measurements: checked, and as bits with weights that no number out of range has."""

from typing import Any

import numpy as np

from hazemap.errors import InputError
from hazemap.machine_code.arrays import Bytes


def whole_number(value: Any, most: int, what: str) -> int:
    """A measurement that is a whole number from 0 to `most`; `InputError` for anything else, NaN too."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not 0 <= value <= most:
        raise InputError(f"{what} is a whole number from 0 to {most}")
    return int(value)


def whole_numbers(values: Any, length: int, most: int, what: str) -> list[int]:
    """A measurement that is a list or an array of `length` whole numbers from 0 to `most`."""
    array = values if isinstance(values, np.ndarray) else None
    if array is not None:
        values = array.tolist() if array.ndim == 1 and array.dtype.kind in "biu" else None
    wrong = not isinstance(values, list | tuple) or len(values) != length
    if wrong or not all(isinstance(x, int | np.integer) and 0 <= x <= most for x in values):
        raise InputError(f"{what} is a list of {length} whole numbers from 0 to {most}")
    return [int(x) for x in values]


def weights_of(most: int) -> list[int]:
    """Weights of bits of which the sums are exactly the numbers from 0 to `most`.

    >>> weights_of(5), weights_of(7)
    ([1, 2, 2], [1, 2, 4])
    """
    bits = most.bit_length()
    return [1 << i for i in range(bits - 1)] + [most - (1 << bits - 1) + 1]


def bits_of(values: list[int], most: int) -> Bytes:
    """The bits with these weights of numbers from 0 to `most` < 2^64: a last bit is 1 only where it must be.

    >>> bits_of([3, 4], 5).tolist()
    [1, 1, 0, 0, 1, 1]
    """
    bits = most.bit_length()
    numbers = np.array(values, dtype=np.uint64)
    above = numbers >> np.uint64(bits - 1)
    rest = numbers - above * np.uint64(weights_of(most)[-1])
    found = np.empty((len(values), bits), dtype=np.uint8)
    for i in range(bits - 1):
        found[:, i] = rest >> np.uint64(i) & np.uint64(1)
    found[:, -1] = above
    return found.reshape(-1)
