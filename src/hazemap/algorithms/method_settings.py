"""Parameters that may follow a method's name, as in `htf:threshold=50,T=3`: typed, bounded and refused in words."""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hazemap.errors import InputError
from hazemap.field_types import check_fields

Number = int | Fraction

_WHOLE = re.compile(r"0|[1-9][0-9]{0,11}", re.ASCII)
_DECIMAL = re.compile(r"(?:0|[1-9][0-9]{0,11})(?:\.[0-9]{1,12})?", re.ASCII)

_RATIO = re.compile(r"[1-9][0-9]{0,11}/[1-9][0-9]{0,11}", re.ASCII)

MOST_ITEMS = 16
"""Numbers of a list, as in `fullness=20/6/6`."""


@dataclass(frozen=True)
class Setting:
    """One parameter of a method: NAME=NUMBER sets a field to a number between two bounds.

    Numbers are whole; with `part` they are decimals or ratios (1/3), read exactly. `many` are several decimals, with a
    slash between. `none` is a text that stands for no number.

    >>> Setting("c0", "c0", "the noise that a round wants", Fraction(1, 1000), 10, part=True).value("0.2")
    Fraction(1, 5)
    """

    name: str
    field: str
    what: str
    least: Number
    most: Number
    part: bool = False
    many: bool = False
    none: str | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,30}", self.name) or not self.field.isidentifier():
            raise InputError(f"a parameter's name is a word and its field a name of Python; found {self.name!r:.40}")
        if not self.least <= self.most:
            raise InputError(f"the bounds of the parameter {self.name} must be in order")

    @property
    def allowed(self) -> str:
        """What it may be, in words.

        >>> Setting("T", "turns", "turns of the search", 0, 9).allowed
        'a whole number from 0 to 9'
        """
        between = f"from {_said(self.least)} to {_said(self.most)}"
        kind = "numbers" if self.part else "whole numbers"
        words = f"{kind} {between}, with / between them" if self.many else f"a {kind[:-1]} {between}"
        return words if self.none is None else f"{words}, or {self.none!r}"

    def value(self, text: str) -> Any:
        """What a text stands for; `InputError` for one that is not allowed."""
        if text == self.none:
            return None
        parts = text.split("/") if self.many else [text]
        pattern = _DECIMAL if self.part else _WHOLE
        ratio = self.part and not self.many and _RATIO.fullmatch(text)
        if len(parts) > MOST_ITEMS or not (ratio or all(map(pattern.fullmatch, parts))):
            self._refuse(text)
        numbers: list[Number] = [Fraction(each) if self.part else int(each) for each in parts]
        if not all(self.least <= number <= self.most for number in numbers):
            self._refuse(text)
        return tuple(numbers) if self.many else numbers[0]

    def text(self, value: Any) -> str:
        """A value as it is written; '' for None that has no word.

        >>> Setting("shares", "deciding", "deciding", 0, 1, part=True, many=True).text((Fraction(1, 5), Fraction(1, 4)))
        '0.2/0.25'
        """
        if value is None:
            return self.none or ""
        return "/".join(_said(each) for each in (value if self.many else (value,)))

    def _refuse(self, text: str) -> None:
        raise InputError(f"{self.name} is {self.allowed}; found {text!r:.60}")


def _said(number: Number) -> str:
    decimal = f"{float(number):.12f}".rstrip("0").rstrip(".") if isinstance(number, Fraction) else ""
    return decimal if decimal and Fraction(decimal) == number else str(number)


def split(text: str) -> tuple[str, list[tuple[str, str]]]:
    """What follows a method's name: the word that has no name of its own, and pairs of NAME and VALUE.

    >>> split("20,gamma=0.7")
    ('20', [('gamma', '0.7')])
    """
    first, *rest = text.split(",")
    if "=" in first:
        first, rest = "", [first, *rest]
    pairs = [each.partition("=") for each in rest]
    if not all(sign and name and value for name, sign, value in pairs):
        raise InputError(f"parameters are NAME=VALUE with commas between; found {text!r:.80}")
    return first, [(name, value) for name, _, value in pairs]
