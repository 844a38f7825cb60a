"""What a method that users select by name says of itself; hazemap's own are in `built_in_methods`.

Parameters that may follow a name, as in `htf:threshold=50,T=3`, are typed, bounded and refused in words.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

from hazemap.algorithms.private_bounding_box import MethodOfBox
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


class CellKind(Enum):
    """The kinds of cells that a method may be asked to cut."""

    SQUARES = "squares of a quadtree"
    HEXAGONS = "H3 hexagons"
    DISTRICTS = "districts"
    DISTRICT_SQUARES = "districts, and squares inside them"


SQUARES, USUAL = (CellKind.SQUARES,), (CellKind.SQUARES, CellKind.HEXAGONS)
EVERYWHERE = (*USUAL, CellKind.DISTRICTS)


@dataclass(frozen=True)
class Parameter:
    """What may follow a method's name, as in NAME:WORD: the field it sets, the texts it may be and how to read them."""

    word: str
    field: str
    pattern: str
    value: Callable[[str], Any] = int


LEVEL = Parameter("LEVEL", "level", "[0-9]{1,2}")
CELLS = Parameter("CELLS", "kept", "[1-9][0-9]{0,4}")
PERCENT = Parameter("PERCENT", "kept", r"100|[0-9]{1,2}(?:\.[0-9]{1,6})?", lambda text: Fraction(text) / 100)
PEOPLE = Parameter("PEOPLE", "dynamic_below", "[1-9][0-9]{0,10}")


@dataclass(frozen=True)
class NamedMethod:
    """A method by its name: all that the command line, specifications, campaigns and files need to know of it.

    `build` makes the algorithm from `tree`, `bounding=` and, if it is `levelled`, `level=`, if it is `priced`,
    `epsilon=`; a `parameter` and `settings` are passed on under the names of their fields. `cells` are the kinds of
    cells that it cuts. `types` are the classes beside hazemap's own that its files hold: the algorithm's, which is
    `build` unless you say otherwise, and those of trees and encoders that come with it. `what` it does and the `paper`
    that describes it are for `hazemap methods`.

    >>> from hazemap.algorithms.single_level import Flat
    >>> NamedMethod("flat", Flat, levelled=True, parameter=LEVEL).spellings
    ('flat', 'flat:LEVEL')
    """

    name: str
    build: Callable[..., MethodOfBox]
    levelled: bool = False
    parameter: Parameter | None = None
    cells: tuple[CellKind, ...] = USUAL
    types: tuple[type, ...] = ()
    settings: tuple[Setting, ...] = ()
    what: str = ""
    paper: str = ""
    priced: bool = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9+-]*", self.name):
            raise InputError(
                f"a method's name may contain a-z, 0-9, + and -, and must begin with a letter; found {self.name!r}"
            )
        if self.parameter is not None and not isinstance(self.parameter, Parameter):
            raise InputError(
                f"the parameter of the method {self.name} must be a Parameter, such as LEVEL or "
                f'Parameter("CELLS", "fullest", "[1-9][0-9]*"); found {self.parameter!r:.80}'
            )
        names = [each.name for each in self.settings if isinstance(each, Setting)]
        if len(set(names)) < len(self.settings):
            raise InputError(f"the settings of the method {self.name} must be Settings, each with a name of its own")
        if not self.types and isinstance(self.build, type):
            object.__setattr__(self, "types", (self.build,))
        if not self.types or not all(is_dataclass(each) for each in self.types):
            raise InputError(f"the method {self.name} must list in `types` the dataclasses that its files hold")

    @property
    def spellings(self) -> tuple[str, ...]:
        """How it is asked for."""
        return (self.name, f"{self.name}:{self.parameter.word}") if self.parameter else (self.name,)

    def argument(self, text: str) -> str | None:
        """What a text gives for the parameter, '' for the bare name; None if the text does not spell this method."""
        name, colon, rest = text.partition(":")
        argument, given = split(rest)
        fits = self.parameter and re.fullmatch(self.parameter.pattern, argument)
        if name != self.name or (colon and not fits and (argument or not given)):
            return None
        return argument

    def options(self, text: str) -> dict[str, Any]:
        """The fields that a text sets, and to what; `InputError` for a parameter that is unknown, or out of bounds.

        >>> from hazemap.algorithms.single_level import Flat
        >>> NamedMethod("flat", Flat, settings=(Setting("deep", "level", "the level", 0, 24),)).options("flat:deep=3")
        {'level': 3}
        """
        argument, given = split(text.partition(":")[2])
        found: dict[str, Any] = {}
        if argument and self.parameter not in (None, LEVEL):
            found[self.parameter.field] = self.parameter.value(argument)
        known = {each.name: each for each in self.settings}
        for name, value in given:
            if name not in known:
                has = f"it has {', '.join(known)}" if known else "it has none"
                raise InputError(f"the method {self.name} has no parameter {name!r:.40}: {has}")
            setting = known[name]
            if setting.field in found:
                raise InputError(f"the method {self.name} is told {name} twice: once is enough")
            try:
                found[setting.field] = setting.value(value)
            except InputError as error:
                raise InputError(f"of the method {self.name}, {error}") from error
        return found
