"""Values of several kinds in one column, each as the text of what it is: equal values are equal texts."""

import math
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from numbers import Integral, Real
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

LARGEST = 2**53
"""From here on, whole numbers next to each other are the same in floating point."""


_DIGITS = 10_000
_AT_ONCE = 1 << 16


def text_of(value: Any) -> str | None:  # noqa: PLR0911 - one answer a kind
    """The text of a value by itself, whatever else its column holds; None for what is missing or has none.

    Whole numbers are the same text as integers, floats and decimals.

    >>> text_of(7), text_of(7.0), text_of("7"), text_of(float("nan")), text_of([7])
    ('7', '7', '7', None, None)
    """
    match value:
        case str():
            return value if _encodable(value) else None
        case bool() | np.bool_():
            return "true" if value else "false"
        case Integral():
            return str(int(value)) if int(value).bit_length() < _DIGITS else None
        case Decimal():
            return _plain(value) if value.is_finite() and abs(value.adjusted()) < _DIGITS else None
        case Real():
            return _floating(value)
        case bytes():
            return text_of(value.decode(errors="replace")) if _decodable(value) else None
        case date() | UUID() if value == value:  # noqa: PLR0124 - NaT is no time
            return str(value)
    return None


def numbers_of(texts: Sequence[str | None]) -> NDArray[np.float64]:
    """The number in each text, as in CSV; NaN where there is none, and for a text of more than 10,000 letters."""
    found = [_numbers(texts[begin : begin + _AT_ONCE]) for begin in range(0, len(texts), _AT_ONCE)]
    return np.concatenate([np.empty(0), *found])


def _numbers(texts: Sequence[str | None]) -> NDArray[np.float64]:
    from hazemap.readers.csv_numbers import numbers_in

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


def _decodable(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
