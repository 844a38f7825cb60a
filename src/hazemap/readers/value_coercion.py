"""Converts values one by one, so that no value changes how another is read.

Values of several kinds in one column become texts; equal values are equal texts. Values that a type does not have
become missing: anybody can put bytes that are no UTF-8 where a file declares text, and milliseconds that no calendar
reaches where it declares times. DuckDB would then refuse the whole column, and that would tell of one row.
"""

import math
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from numbers import Integral, Real
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from hazemap.readers.csv_parser import numbers_in

LARGEST = 2**53
"""From here on, whole numbers next to each other are the same in floating point."""

LATEST = np.iinfo(np.int64).max
"""The last microsecond that 64 bits reach."""

_FINER = {"s": 10**6, "ms": 10**3}
_DIGITS = 10_000
_AT_ONCE = 1 << 16


def text_of(value: Any) -> str | None:
    """The text of a value by itself, whatever else its column holds; None for what is missing or has none.

    Whole numbers are the same text as integers, floats and decimals.

    >>> text_of(7), text_of(7.0), text_of("7"), text_of(float("nan")), text_of([7])
    ('7', '7', '7', None, None)
    """
    try:
        return _text(value)
    except Exception:  # an object of a frame may raise anything: that concerns its own row alone
        return None


def _text(value: Any) -> str | None:  # noqa: PLR0911 - one answer a kind
    match value:
        case str():
            return value if _encodable(value) else None
        case bool() | np.bool_():
            return "true" if value else "false"
        case np.timedelta64():  # which says that it is a whole number, and is none
            return None
        case Integral():
            return str(int(value)) if int(value).bit_length() < _DIGITS else None
        case Decimal():
            return _plain(value) if value.is_finite() and abs(value.adjusted()) < _DIGITS else None
        case Real():
            return _floating(value)
        case bytes() | bytearray() | memoryview():
            return _decoded(bytes(value))
        case date() | UUID() if value == value:  # noqa: PLR0124 - NaT is no time
            return str(value)
    return None


def numbers_of(texts: Sequence[str | None]) -> NDArray[np.float64]:
    """The number in each text, as in CSV; NaN where there is none, and for a text of more than 10,000 letters."""
    found = [_numbers(texts[begin : begin + _AT_ONCE]) for begin in range(0, len(texts), _AT_ONCE)]
    return np.concatenate([np.empty(0), *found])


def _numbers(texts: Sequence[str | None]) -> NDArray[np.float64]:
    written = [text.encode() if text and text.isascii() and len(text) <= _DIGITS else b"" for text in texts]
    ends = np.cumsum([0, *(len(text) for text in written)]).astype(np.int32)  # below 2³¹, whatever the texts are
    return numbers_in(np.frombuffer(b"".join(written) or b" ", dtype=np.uint8), ends, ".")


def _floating(value: Real) -> str | None:
    try:
        number = float(value)
    except (OverflowError, ValueError, TypeError, ArithmeticError):  # a fraction may be larger than any float
        return None
    if not math.isfinite(number):
        return None
    return str(int(number)) if number.is_integer() and abs(number) < LARGEST else repr(number)


def _plain(value: Decimal) -> str:
    text = format(value if value else Decimal(0), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_checked(kind: Any) -> bool:
    """Whether a column of this Arrow type may hold values that the type does not have."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return is_checked(kind.value_type)
    return _is_text(kind) or (types.is_timestamp(kind) and kind.unit in _FINER)


def sound(column: Any) -> Any:
    r"""An Arrow array, chunked or not, in which values that its type does not have are missing.

    It is the same array if there are none. O(bytes): under 1 ns a byte of text, and 1 ns a time.

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
