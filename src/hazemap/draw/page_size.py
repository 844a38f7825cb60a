"""The size of a whole picture: inches across and up."""

import math
import re
from dataclasses import dataclass

from hazemap.errors import InputError

DPI = 200
"""Pixels an inch, of a PNG."""
NARROWEST, WIDEST = 5.0, 24.0
LOWEST, HIGHEST = 3.0, 24.0
INCHES_OF = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "px": 1 / DPI}


@dataclass(frozen=True)
class PageSize:
    """So many inches across and up; a PNG has 200 pixels for each.

    >>> PageSize.parse("1600x900px"), PageSize.parse("10x7")
    (PageSize(width=8.0, height=4.5), PageSize(width=10.0, height=7.0))
    """

    width: float
    height: float

    def __post_init__(self) -> None:
        for what, inches, least, most in (
            ("wide", self.width, NARROWEST, WIDEST),
            ("high", self.height, LOWEST, HIGHEST),
        ):
            if not (isinstance(inches, int | float) and math.isfinite(inches) and least <= inches <= most):
                raise InputError(
                    f"a picture is {least:g} to {most:g} inches {what} ({least * DPI:,.0f} to {most * DPI:,.0f} pixels)"
                    f"; found {inches!s:.20}"
                )

    @classmethod
    def of(cls, size: "PageSize | tuple[float, float]") -> "PageSize":
        """A size, or its width and height in inches."""
        if isinstance(size, PageSize):
            return size
        if not isinstance(size, tuple | list) or len(size) != 2:
            raise InputError(f"a picture's size is its width and height in inches, such as (10, 7); found {size!s:.40}")
        return cls(*size)

    @classmethod
    def parse(cls, text: str) -> "PageSize":
        """`10x7` in inches, or with a unit at the end: `1600x900px`, `25x18cm`, `250x180mm`, `10x7in`."""
        number = r"([0-9]{1,6}(?:\.[0-9]{1,6})?)"
        found = re.fullmatch(rf"\s*{number}\s*[x×]\s*{number}\s*(in|cm|mm|px)?\s*", text, re.ASCII | re.IGNORECASE)
        if found is None:
            raise InputError(
                f"a picture's size is WIDTHxHEIGHT, such as 10x7 (inches) or 1600x900px; found {text!r:.40}"
            )
        inches = INCHES_OF[(found[3] or "in").lower()]
        return cls(float(found[1]) * inches, float(found[2]) * inches)
