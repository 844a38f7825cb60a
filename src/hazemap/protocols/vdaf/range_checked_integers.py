"""Whole numbers as measurements: checked, and as bits with weights that no number out of range has."""

from typing import Any

import numpy as np

from hazemap.errors import InputError


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


def bits_of(value: int, most: int) -> list[int]:
    """The bits with these weights of a number from 0 to `most`: the last is 1 only where it must be.

    >>> bits_of(3, 5), bits_of(4, 5)
    ([1, 1, 0], [0, 1, 1])
    """
    last = weights_of(most)[-1]
    bits = most.bit_length()
    above = int(value >> bits - 1 != 0)
    rest = value - last * above
    return [rest >> i & 1 for i in range(bits - 1)] + [above]
