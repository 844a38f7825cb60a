"""How a GIS draws the cells of a release: classes of colour, and a hatch where a number says little.

Classes are cut at round numbers of the scale that hazemap's own pictures have (`draw.colour_scales`), and a style is
made from released numbers alone. `qml` and `sld` write it down.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from hazemap.cellmap import CellMap
from hazemap.draw.cell_densities import DensitySurface
from hazemap.draw.colour_scales import ERROR_BREAKS, DensityScale, ValueScale, short
from hazemap.draw.themes import LIGHT
from hazemap.files.number_text import per
from hazemap.machine_code.arrays import Floats
from hazemap.spatial.plane import ground_unit

Sign = Literal["<", ">", ">=", "="]
Rgb = tuple[int, int, int]

UNSURE, PURE_NOISE = ERROR_BREAKS[-2:]
"""Of a number: standard errors above the first are hatched, above the second densely."""

WIDE_HATCH, DENSE_HATCH = 2.4, 1.2
"""Millimetres from one line of a hatch to the next."""

NARROWEST, VALUE_CLASSES = 0.09, 7
"""Of the length of a scale of densities, and how many even classes of a value."""
MOST_STYLES = 60
"""Of one layer: a style for every slot, up to so many."""

NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Comparison:
    """Whether `column` is less (more, …) than `number` + `times` · `other`; or, with `=`, a text."""

    column: str
    sign: Sign
    number: float = 0.0
    other: str | None = None
    times: float = 1.0
    text: str = ""


@dataclass(frozen=True)
class IsEmpty:
    """Whether there is no number in `column`."""

    column: str


Condition = Comparison | IsEmpty


@dataclass(frozen=True)
class Fill:
    """One colour."""

    colour: Rgb


@dataclass(frozen=True)
class Hatch:
    """Slanting lines, so many millimetres apart; what is beneath stays to be seen."""

    apart: float
    colour: Rgb


@dataclass(frozen=True)
class StyleRule:
    """What cells that meet all conditions look like, and what a legend says of them."""

    label: str
    conditions: tuple[Condition, ...]
    look: Fill | Hatch


@dataclass(frozen=True)
class LayerStyle:
    """A named style: every rule that a cell meets is drawn, in this order."""

    name: str
    rules: tuple[StyleRule, ...]

    def only(self, name: str, column: str, text: str) -> "LayerStyle":
        """The same under another name, for rows of which a column has this text."""
        alone = Comparison(column, "=", text=text)
        rules = tuple(replace(each, conditions=(alone, *each.conditions)) for each in self.rules)
        return LayerStyle(name, rules)

    @property
    def writable(self) -> bool:
        """Whether XML can hold all of its words: names in a file may be anybody's."""
        words = [self.name]
        for rule in self.rules:
            words.append(rule.label)
            for each in rule.conditions:
                words.append(each.column)
                if isinstance(each, Comparison):
                    words += [each.text, each.other or ""]
        return not any(NOT_IN_XML.search(word) for word in words)


def density_style(maps: Sequence[CellMap], counted: str) -> LayerStyle:
    """Classes of density, with a hatch where the standard error of a count is over half of it, or over all of it.

    Several maps, of one tree, have one scale.

    >>> from hazemap.cells import Leaves
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> leaves = Leaves.at_level(Quadtree.world(depth=1), 1)
    >>> cellmap = CellMap.independent(leaves, np.array([4e8, 3e8, 2e9, 1e9]), np.full(4, 2.0), 0.0)
    >>> [rule.label for rule in density_style([cellmap], "people").rules][:2]
    ['0 to 1 people per km²', '1 to 2 people per km²']
    """
    surfaces = [DensitySurface.of(each) for each in maps]
    scale = DensityScale.of(surfaces, surfaces[0].whole)
    unit = ground_unit(maps[0].cells.tree)
    column, words = f"per_{unit.column}", per(counted, unit.name)
    cuts = [density for density, _ in scale.ticks(NARROWEST)]
    places = scale.position(np.array(cuts))
    middles = np.append((places[:-1] + places[1:]) / 2, 1.0)
    colours = scale.colours(scale.low * np.sinh(middles * math.asinh(scale.high / scale.low)))
    rules = _classes(column, cuts, colours[:, :3].tolist(), words, above=True)
    unsure = Comparison("stddev", ">", 0, "best_guess", UNSURE)
    unknown = Comparison("stddev", ">", 0, "best_guess", PURE_NOISE)
    return LayerStyle(
        "density",
        (
            *rules,
            hatched(f"standard error over {100 * UNSURE:g} % of the number", unsure),
            hatched(f"standard error over {100 * PURE_NOISE:g} % of the number", unknown, DENSE_HATCH),
        ),
    )


def value_style(
    name: str, column: str, values: Floats, bounds: tuple[float, float], conditions: Sequence[StyleRule] = ()
) -> LayerStyle:
    """Even classes of a value, grey where there is none, and then what the `conditions` add."""
    scale = ValueScale.of(values, bounds)
    cuts = np.linspace(scale.low, scale.high, VALUE_CLASSES + 1)
    colours = scale.colours((cuts[:-1] + cuts[1:]) / 2)[:, :3].tolist()
    grey = StyleRule("not known", (IsEmpty(column),), Fill(_rgb(scale.unknown)))
    return LayerStyle(name, (*_classes(column, cuts.tolist(), colours, name, above=False), grey, *conditions))


def unless_known(label: str, *conditions: Condition) -> StyleRule:
    """Grey over all else: cells of which too little is known."""
    return StyleRule(label, conditions, Fill(_rgb(LIGHT.unknown)))


def for_each_slot(style: LayerStyle, slots: Sequence[str]) -> tuple[LayerStyle, ...]:
    """The style once for every slot, which other slots' rows would hide."""
    return tuple(style.only(f"{style.name} {slot}", "slot", slot) for slot in slots[:MOST_STYLES])


def _classes(column: str, cuts: list[float], colours: list[list[int]], words: str, *, above: bool) -> list[StyleRule]:
    """A rule for what lies between two cuts; the first holds all below too, and the last all above.

    With `above`, the last class begins at the last cut.
    """
    ends: list[tuple[float, float]] = [*pairwise(cuts), *([(cuts[-1], math.inf)] if above else [])]
    rules = []
    for number, ((low, high), colour) in enumerate(zip(ends, colours, strict=True)):
        last = number == len(ends) - 1
        conditions = [Comparison(column, ">=", low)] if number else []
        conditions += [] if last else [Comparison(column, "<", high)]
        label = f"{_number(low)} or more" if last and above else f"{_number(low)} to {_number(high)}"
        fill = Fill((colour[0], colour[1], colour[2]))
        rules.append(StyleRule(f"{label} {words}", tuple(conditions or [Comparison(column, ">=", low)]), fill))
    return rules


def _number(value: float) -> str:
    return "0" if value == 0 else f"-{short(-value)}" if value < 0 else short(value)


def hatched(label: str, condition: Condition, apart: float = WIDE_HATCH) -> StyleRule:
    """Lines over the colours of cells that meet a condition."""
    return StyleRule(label, (condition,), Hatch(apart, _rgb(LIGHT.ink)))


def _rgb(colour: str) -> Rgb:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
