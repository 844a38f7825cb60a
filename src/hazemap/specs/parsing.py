"""Parses and formats budgets, bounding rules and cells as people write them: in a command, a call or a file."""

import re
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn, cast

from hazemap.errors import InputError
from hazemap.privacy.budget import ZCDP, ApproxDP, Budget, Number, PureDP
from hazemap.privacy.privacy_unit import FULL, VALUES_ONLY
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, Bounding, OneVote, Outside, RowIsPerson

BOUNDINGS = "one row, rows:K, cells:K, one vote, rows are people"
CELLS = "quadtree, quadtree:DEPTH, h3:COARSEST-FINEST, districts:FILE[:NAMES[:PARENTS]],FILE,… (coarse to fine)"

CELLS_OF_VALUES = "h3:RESOLUTION, hexagons:FILE (a list), quadtree:DEPTH or districts:FILE[:NAMES[:PARENTS]]"

MODELS = f"{FULL}, {VALUES_ONLY}"

SQUARES = 17
"""Levels of the world's squares that cut districts further, where nobody says how many: 306 m at the equator."""


LEAST_EPSILON, LARGEST_EPSILON = Fraction(1, 10**9), Fraction(10**6)
"""Beyond these no release is made: the noise does not fit, or there is none to speak of."""

USUAL_EPSILON = (Fraction(1, 1000), Fraction(20))
"""Outside of these a release is made with a warning."""

_DIGITS = 150
_WRITTEN = re.compile(r"[^eE]{1,320}(?:[eE][+-]?[0-9]{1,3})?")


def budget(epsilon: Number | None, delta: Number | None, rho: Number | None) -> Budget:
    """Pure ε, (ε, δ), or ρ: whichever numbers are given.

    >>> budget(1, None, None)
    PureDP(epsilon=Fraction(1, 1))
    """
    named = {"epsilon": epsilon, "delta": delta, "rho": rho}
    for name, number in named.items():
        if isinstance(number, str) and not _WRITTEN.fullmatch(number):  # 1e999999999 would take a day to write out
            raise InputError(f"{name} must be a finite number of at most {_DIGITS} digits")
    if rho is not None and epsilon is None and delta is None:
        return ZCDP(rho)
    if rho is None and epsilon is not None:
        return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)
    given = ", ".join(name for name, number in named.items() if number is not None)
    raise InputError(f"give epsilon, epsilon and delta, or rho alone; found {given or 'none of them'}")


def refuse_absurd(budget: Budget) -> None:
    """Raise `InputError` for a budget of which no release could make sense.

    >>> refuse_absurd(PureDP(1))
    """
    squared = _epsilon_squared(budget)
    numbers = [number for name in ("epsilon", "delta", "rho") if (number := vars(budget).get(name)) is not None]
    if any(max(number.numerator, number.denominator) >= 10**_DIGITS for number in numbers):
        raise InputError(f"a budget has at most {_DIGITS} digits above and below its fraction's bar: round it")
    if squared < LEAST_EPSILON**2:
        raise InputError(f"{budget} is so small that the noise would exceed the world's population: ask for {_range()}")
    if squared > LARGEST_EPSILON**2:
        raise InputError(f"{budget} is so large that it protects nobody: ask for {_range()}")


def warning_about(budget: Budget) -> str | None:
    """A plain sentence about a budget that is hardly ever meant; None for a usual one.

    >>> warning_about(PureDP(50))
    'ε = 50 protects hardly anybody: whoever gets the release can tell with near certainty whether somebody is in it'
    """
    squared, (least, largest) = _epsilon_squared(budget), USUAL_EPSILON
    if squared < least**2:
        return f"{budget} buys so little that the noise will be larger than most numbers of people"
    if squared > largest**2:
        return (
            f"{budget} protects hardly anybody: whoever gets the release can tell with near certainty whether "
            "somebody is in it"
        )
    return None


def _epsilon_squared(budget: Budget) -> Fraction:
    """ε², or 2ρ: the ρ of a pure ε is ε²/2."""
    return 2 * budget.rho if isinstance(budget, ZCDP) else budget.epsilon**2


def _range() -> str:
    return f"an ε from 1e-9 to 1e6 (usual are {float(USUAL_EPSILON[0]):g} to {float(USUAL_EPSILON[1]):g})"


def budget_texts(budget: Budget) -> dict[str, str]:
    """The numbers of a budget as `budget` reads them, exactly.

    >>> budget_texts(PureDP("0.1"))
    {'epsilon': '0.1'}
    """
    match budget:
        case PureDP(epsilon=epsilon):
            return {"epsilon": _exactly(epsilon)}
        case ZCDP(rho=rho):
            return {"rho": _exactly(rho)}
        case ApproxDP(epsilon=epsilon, delta=delta):
            return {"epsilon": _exactly(epsilon), "delta": _exactly(delta)}


def _exactly(number: Fraction) -> str:
    """As a decimal where there is one, else as a fraction."""
    with localcontext(prec=40):
        decimal = Decimal(number.numerator) / Decimal(number.denominator)
    return f"{decimal}" if Fraction(decimal) == number else str(number)


def bounding(text: str, outside: Outside = Outside.DROP) -> Bounding:
    """The rule that a text names; `outside` says what becomes of rows that lie in no cell.

    >>> bounding("rows:10")
    AtMostRows(most=10, outside=<Outside.DROP: 'drop'>)
    """
    match re.fullmatch(r"(rows|cells):([0-9]{1,9})", text):
        case re.Match() as found:
            rule = AtMostRows if found[1] == "rows" else AtMostCells
            return rule(int(found[2]), outside)
    match text:
        case "one row":
            return AtMostRows(1, outside)
        case "one vote":
            return OneVote(outside=outside)
        case "rows are people":
            return RowIsPerson(outside)
    refuse("a bounding rule", BOUNDINGS, text)


def outside(text: str) -> Outside:
    """What becomes of rows outside the map.

    >>> outside("people")
    <Outside.PEOPLE: 'people'>
    """
    found = next((each for each in Outside if each.value == text), None)
    if found is None:
        raise InputError(
            "outside the map there are people (counted where none of their rows is inside), or rows to drop or to "
            f"count: say people, drop or count, not {text!r}"
        )
    return found


def bounding_text(rule: Bounding) -> str:
    """A rule as `bounding` reads it, whatever it does with rows outside; `InputError` for one that has no name.

    >>> bounding_text(AtMostCells(5))
    'cells:5'
    """
    match rule:
        case AtMostRows(most=1):
            text = "one row"
        case AtMostRows(most=most):
            text = f"rows:{most}"
        case AtMostCells(most=most):
            text = f"cells:{most}"
        case OneVote():
            text = "one vote"
        case RowIsPerson():
            text = "rows are people"
        case _:
            text = ""
    if not text or bounding(text, rule.outside) != rule:
        raise InputError(f"the bounding rule of a release is one of: {BOUNDINGS}; found {type(rule).__name__}")
    return text


@dataclass(frozen=True)
class QuadtreeCells:
    """Squares of a quadtree, the box cut so many times; where `depth` is None, as often as is sensible."""

    depth: int | None

    @property
    def text(self) -> str:
        """As `cells` reads it."""
        return "quadtree" if self.depth is None else f"quadtree:{self.depth}"

    def __str__(self) -> str:
        return "squares of a quadtree" + ("" if self.depth is None else f", {self.depth} levels deep")


@dataclass(frozen=True)
class HexagonCells:
    """H3 hexagons from one resolution to another."""

    coarsest: int
    finest: int

    @property
    def text(self) -> str:
        """As `cells` reads it."""
        return f"h3:{self.coarsest}-{self.finest}"

    def __str__(self) -> str:
        finer = "" if self.finest == self.coarsest else f" to {self.finest}"
        return f"H3 hexagons of resolution {self.coarsest}{finer}"


@dataclass(frozen=True)
class HexagonList:
    """The H3 hexagons that a file lists."""

    file: str

    @property
    def absolute(self) -> "HexagonList":
        """The same with the whole path."""
        return HexagonList(str(Path(self.file).absolute()))

    @property
    def text(self) -> str:
        """As `cells_of_values` reads it."""
        return f"hexagons:{self.file}"

    def __str__(self) -> str:
        return f"the H3 hexagons listed in {Path(self.file).name}"


@dataclass(frozen=True)
class DistrictFiles:
    """Named polygons in files, coarse to fine, each with its columns of names and of parents, or None to guess them.

    Methods that cut districts further do it along the world's squares of level `squares`.
    """

    layers: tuple[tuple[str, str | None, str | None], ...]
    squares: int = SQUARES

    @property
    def absolute(self) -> "DistrictFiles":
        """The same with whole paths."""
        layers = ((str(Path(file).absolute()), name, parent) for file, name, parent in self.layers)
        return DistrictFiles(tuple(layers), self.squares)

    @property
    def text(self) -> str:
        """As `cells` reads it."""
        layers = (":".join(word or "" for word in layer).rstrip(":") for layer in self.layers)
        return f"districts@{self.squares}:{','.join(layers)}"

    def __str__(self) -> str:
        return f"districts of {', '.join(Path(file).name for file, _, _ in self.layers)}"


def cells(
    text: str, what: str = "the cells of a map", choices: str = CELLS
) -> QuadtreeCells | HexagonCells | DistrictFiles:
    """The cells that a text names.

    >>> cells("h3:7-10")
    HexagonCells(coarsest=7, finest=10)
    >>> cells("districts@12:states.geojson,counties.geojson:geo_id:state").layers[1]
    ('counties.geojson', 'geo_id', 'state')
    """
    if text == "quadtree":
        return QuadtreeCells(None)
    if found := re.fullmatch(r"quadtree:([0-9]{1,2})", text):
        return QuadtreeCells(int(found[1]))
    if found := re.fullmatch(r"h3:([0-9]{1,2})(?:-([0-9]{1,2}))?", text):
        return HexagonCells(int(found[1]), int(found[2] or found[1]))
    if found := re.fullmatch(r"districts(?:@([0-9]{1,2}))?:(.+)", text):
        parts = [layer.split(":") for layer in found[2].split(",")]
        if all(layer[0] and len(layer) <= 3 for layer in parts):
            layers = tuple((*(word or None for word in layer), None, None)[:3] for layer in parts)
            return DistrictFiles(cast(Any, layers), int(found[1] or SQUARES))
    raise InputError(f"{what} are one of: {choices}; found {text!r}")


def cells_of_values(text: str) -> QuadtreeCells | HexagonCells | HexagonList | DistrictFiles:
    """The cells that a text names, or the file that lists hexagons, of which a map has no use.

    >>> cells_of_values("hexagons:service_area.csv")
    HexagonList(file='service_area.csv')
    """
    if text.startswith("hexagons:"):
        return HexagonList(text.removeprefix("hexagons:"))
    return cells(text, "the cells of values", CELLS_OF_VALUES)


def values_only(model: str) -> bool:
    """Whether a text names the model of values only, and not the full one.

    >>> values_only("values-only"), values_only("full")
    (True, False)
    """
    if model not in (FULL, VALUES_ONLY):
        refuse("a model of privacy", MODELS, model)
    return model == VALUES_ONLY


def refuse(what: str, choices: str, text: str) -> NoReturn:
    """Say what is understood, and what was found."""
    raise InputError(f"{what} is one of: {choices}; found {text!r}")
