"""Budgets, bounding rules and cells as people write them, on a command line or in a call."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, cast

from hazemap.errors import InputError
from hazemap.privacy.budget import ZCDP, ApproxDP, Budget, Number, PureDP
from hazemap.tables.bounding import AtMostCells, AtMostRows, Bounding, OneVote, RowIsPerson

BOUNDINGS = "one row, rows:K, cells:K, one vote, rows are people"
CELLS = "quadtree, quadtree:DEPTH, h3:COARSEST-FINEST, districts:FILE[:NAMES[:PARENTS]],FILE,… (coarse to fine)"

SQUARES = 17
"""Levels of the world's squares that cut districts further, where nobody says how many: 306 m at the equator."""


def budget(epsilon: Number | None, delta: Number | None, rho: Number | None) -> Budget:
    """Pure ε, (ε, δ), or ρ: whichever numbers are given.

    >>> budget(1, None, None)
    PureDP(epsilon=Fraction(1, 1))
    """
    if rho is not None and epsilon is None and delta is None:
        return ZCDP(rho)
    if rho is None and epsilon is not None:
        return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)
    named = {"epsilon": epsilon, "delta": delta, "rho": rho}
    given = ", ".join(name for name, number in named.items() if number is not None)
    raise InputError(f"a budget is epsilon, epsilon with delta, or rho alone; given: {given or 'none of them'}")


def bounding(text: str, nowhere: bool = False) -> Bounding:
    """The rule that a text names; with `nowhere`, rows that lie in no cell are weighed too.

    >>> bounding("rows:10")
    AtMostRows(most=10, nowhere=False)
    """
    match re.fullmatch(r"(rows|cells):([0-9]{1,9})", text):
        case re.Match() as found:
            rule = AtMostRows if found[1] == "rows" else AtMostCells
            return rule(int(found[2]), nowhere)
    match text:
        case "one row":
            return AtMostRows(1, nowhere)
        case "one vote":
            return OneVote(nowhere=nowhere)
        case "rows are people":
            return RowIsPerson(nowhere)
    refuse("a bounding rule", BOUNDINGS, text)


@dataclass(frozen=True)
class Squares:
    """Squares of a quadtree, the box cut so many times; where `depth` is None, as often as is sensible."""

    depth: int | None

    def __str__(self) -> str:
        return "squares of a quadtree" + ("" if self.depth is None else f", {self.depth} levels deep")


@dataclass(frozen=True)
class Hexes:
    """H3 hexagons from one resolution to another."""

    coarsest: int
    finest: int

    def __str__(self) -> str:
        finer = "" if self.finest == self.coarsest else f" to {self.finest}"
        return f"H3 hexagons of resolution {self.coarsest}{finer}"


@dataclass(frozen=True)
class HexagonList:
    """The H3 hexagons that a file lists."""

    file: str

    def __str__(self) -> str:
        return f"the H3 hexagons listed in {Path(self.file).name}"


@dataclass(frozen=True)
class DistrictFiles:
    """Named polygons in files, coarse to fine, each with its columns of names and of parents, or None to guess them.

    Methods that cut districts further do it along the world's squares of level `squares`.
    """

    layers: tuple[tuple[str, str | None, str | None], ...]
    squares: int = SQUARES

    def __str__(self) -> str:
        return f"districts of {', '.join(Path(file).name for file, _, _ in self.layers)}"


def cells(text: str) -> Squares | Hexes | DistrictFiles:
    """The cells that a text names.

    >>> cells("h3:7-10")
    Hexes(coarsest=7, finest=10)
    >>> cells("districts@12:states.geojson,counties.geojson:geo_id:state").layers[1]
    ('counties.geojson', 'geo_id', 'state')
    """
    if text == "quadtree":
        return Squares(None)
    if found := re.fullmatch(r"quadtree:([0-9]{1,2})", text):
        return Squares(int(found[1]))
    if found := re.fullmatch(r"h3:([0-9]{1,2})(?:-([0-9]{1,2}))?", text):
        return Hexes(int(found[1]), int(found[2] or found[1]))
    if found := re.fullmatch(r"districts(?:@([0-9]{1,2}))?:(.+)", text):
        parts = [layer.split(":") for layer in found[2].split(",")]
        if all(layer[0] and len(layer) <= 3 for layer in parts):
            layers = tuple((*(word or None for word in layer), None, None)[:3] for layer in parts)
            return DistrictFiles(cast(Any, layers), int(found[1] or SQUARES))
    refuse("the cells of a map", CELLS, text)


def cells_of_values(text: str) -> Squares | Hexes | HexagonList | DistrictFiles:
    """The cells that a text names, or the file that lists hexagons, of which a map has no use.

    >>> cells_of_values("hexagons:service_area.csv")
    HexagonList(file='service_area.csv')
    """
    if text.startswith("hexagons:"):
        return HexagonList(text.removeprefix("hexagons:"))
    return cells(text)


def refuse(what: str, choices: str, text: str) -> NoReturn:
    """Say what is understood, and what was found."""
    raise InputError(f"{what} is one of: {choices}; found {text!r}")
