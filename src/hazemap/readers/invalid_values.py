"""Values that a type does not have, made missing one by one, so that they stop nobody else's from being read.

Whoever makes a file or a table can put bytes that are no UTF-8 where it declares text, and milliseconds that no
calendar reaches where it declares times. DuckDB then refuses the whole column, and that would tell of one row.
"""

from typing import Any

import numpy as np

LATEST = np.iinfo(np.int64).max
"""The last microsecond that 64 bits reach."""

_FINER = {"s": 10**6, "ms": 10**3}


def is_checked(kind: Any) -> bool:
    """Whether a column of this Arrow type may hold values that the type does not have."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return is_checked(kind.value_type)
    return _is_text(kind) or (types.is_timestamp(kind) and kind.unit in _FINER)


def sound(column: Any) -> Any:
    r"""An Arrow array, chunked or not, with what its type does not have missing; the same one if there is nothing such.

    O(bytes): under 1 ns a byte of text, and 1 ns a time.

    >>> import pyarrow
    >>> text = pyarrow.array([b"a", b"\xff"]).view("string")
    >>> sound(text).to_pylist()
    ['a', None]
    """
    import pyarrow

    kind = column.type
    if not is_checked(kind):
        return column
    if isinstance(column, pyarrow.ChunkedArray):
        return pyarrow.chunked_array([sound(chunk) for chunk in column.chunks], type=kind)
    if pyarrow.types.is_dictionary(kind):
        words = sound(column.dictionary)
        return column if words is column.dictionary else words.take(column.indices).dictionary_encode().cast(kind)
    return _times(column) if pyarrow.types.is_timestamp(kind) else _texts(column)


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _times(column: Any) -> Any:
    import pyarrow
    from pyarrow import compute

    numbers, most = column.cast(pyarrow.int64()), int(LATEST) // _FINER[column.type.unit]
    ends = compute.min_max(numbers).as_py()
    if ends["min"] is None or -most < ends["min"] <= ends["max"] < most:
        return column
    inside = compute.and_(compute.greater(numbers, -most), compute.less(numbers, most))
    return compute.if_else(inside, column, pyarrow.scalar(None, column.type))


def _texts(column: Any) -> Any:
    import pyarrow

    try:
        column.validate(full=True)
    except pyarrow.ArrowInvalid:
        large = column.cast(pyarrow.large_binary() if not pyarrow.types.is_string_view(column.type) else "binary_view")
        return pyarrow.array([_decoded(data) for data in large.to_pylist()], type=column.type)
    return column


def _decoded(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None
