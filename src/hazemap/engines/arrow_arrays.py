"""Arrow arrays as NumPy arrays, without a copy where nothing is missing (and without loading pandas)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def valid(column: Any) -> NDArray[np.bool_]:
    """Where an Arrow array has a value."""
    if not column.null_count:
        return np.ones(len(column), dtype=bool)
    bits = np.unpackbits(np.frombuffer(column.buffers()[0], dtype=np.uint8), bitorder="little")
    return bits[column.offset : column.offset + len(column)].view(bool)


def numbers(column: Any, kind: Any) -> NDArray[Any]:
    """The values of an Arrow array of numbers of this type; anything where there is none."""
    values = column.buffers()[1]
    if values is None:
        return np.zeros(len(column), dtype=kind)
    return np.frombuffer(values, dtype=kind)[column.offset : column.offset + len(column)]


def texts(column: Any) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """The bytes of an Arrow array of texts or binary, as one run, and where each begins and the last one ends."""
    binary = column.cast("binary")
    _, ends, letters = binary.buffers()
    data = np.frombuffer(letters, dtype=np.uint8) if letters and letters.size else np.zeros(1, dtype=np.uint8)
    return data, np.frombuffer(ends, dtype=np.int32)[binary.offset : binary.offset + len(binary) + 1]


def floats(column: Any) -> NDArray[np.float64]:
    """The values of an Arrow array of float64; NaN where there is none.

    >>> import pyarrow
    >>> floats(pyarrow.array([1.5, None]))
    array([1.5, nan])
    """
    found = numbers(column, np.float64)
    return np.where(valid(column), found, np.nan) if column.null_count else found
