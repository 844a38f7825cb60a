"""What a page is told of a map, as JSON: cells with their intervals, scales and colours of pictures, the statement."""

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from hazemap.cellmap import CellMap
from hazemap.draw.cell_densities import DensitySurface
from hazemap.draw.colour_scales import DensityScale
from hazemap.draw.viewport import Viewport
from hazemap.errors import InputError
from hazemap.machine_code.arrays import Ints
from hazemap.releases.estimates import Estimate, PeopleOutside, after_choosing
from hazemap.releases.page.asking_payload import asking_of
from hazemap.releases.page.cell_places import names, painted, places
from hazemap.releases.page.packed_arrays import pack
from hazemap.releases.page.release_facts import release_facts
from hazemap.spatial.plane import ground_unit

if TYPE_CHECKING:
    from hazemap.releases.map_release import Release

MOST_LISTED = 10

MOST_CELLS = 1 << 20
"""Of one page: a browser would be busy with more for a minute."""


def map_payload(release: "Release", title: str | None = None) -> dict[str, Any]:
    """Everything that a page shows of a map; `InputError` for one of more cells than a page can show."""
    return {**counts_payload(release, "map", title), "asking": asking_of(release)}


def counts_payload(release: "Release", kind: str, title: str | None) -> dict[str, Any]:
    """What a page shows of the counts of a map of some kind, without what it needs for questions.

    First its total, which tells whether error bars are those of the answers: with forged ones of next to nothing a map
    would be cut into millions of cells.
    """
    total = interval(release.total())
    if release.shown.cells.size > MOST_CELLS:
        raise InputError(
            f"a page shows at most {MOST_CELLS:,} cells, and this map has {release.shown.cells.size:,}: draw a picture"
            " with `hazemap show`, or export a .pmtiles"
        )
    shown = DensitySurface.of(release.shown)
    counted = shown if release.shown is release.map else DensitySurface.of(release.map)
    return {
        **release_facts(release, kind, title),
        "total": total,
        "nowhere": None if release.nowhere is None else interval(release.nowhere),
        "said": str(PeopleOutside.of(release)),
        "densest": densest(release),
        "scales": scales([shown], [counted]),
        "cells": _cells(release),
    }


def scales(shown: list[DensitySurface], counted: list[DensitySurface]) -> dict[str, dict[str, float]]:
    """The scale of the densities of some maps as they are shown, and of the numbers of their cells."""
    counts = [replace(each, density=each.values, noise=each.error) for each in counted]
    return {"density": _scale(shown), "count": _scale(counts)}


def _cells(release: "Release") -> dict[str, Any]:
    """Numbers of all cells that own ground, those first on which others are painted; the finer map that is shown."""
    leaves = release.cells
    positions = painted(leaves)
    columns: Mapping[str, Any] = release.columns(positions)
    numbers = {name: floats(columns[name]) for name in ("best_guess", "unbiased", "stddev", "low", "high")}
    found = {"places": places(leaves, positions), "names": names(leaves, positions), **numbers}
    area = floats(columns[f"area_{ground_unit(leaves.tree).column}"])
    return {**found, "area": area, "fine": _fine(release.shown, release, positions)}


def densest(release: "Release") -> list[dict[str, float]]:
    """The densest cells, with the intervals of `Release.top`; `cell` is a place among those painted."""
    positions, km2 = painted(release.cells), release.ground.km2
    order = np.argsort(-release.map.values[positions] / km2[positions], kind="stable")[:MOST_LISTED]
    columns = release.columns(positions[order], after_choosing(0.95, len(order), len(positions)))
    numbers = zip(order, *(columns[name] for name in ("best_guess", "stddev", "low", "high")), strict=True)
    names = ("cell", "best_guess", "stddev", "low", "high")
    return [{name: number.item() for name, number in zip(names, row, strict=True)} for row in numbers]


def _fine(shown: CellMap, release: "Release", positions: Ints) -> dict[str, Any] | None:
    """The map cut finer: parts of cells, each with the place of its cell among `positions`."""
    if shown is release.map:
        return None
    parts, leaves = painted(shown.cells), release.cells
    first = shown.cells.tree.span(shown.cells.cells[parts])[0]
    at = np.full(leaves.size, -1)
    at[positions] = np.arange(len(positions))
    return {
        "places": places(shown.cells, parts),
        "cell": pack(at[leaves.locate(first)].astype(np.int32)),
        "best_guess": floats(shown.values[parts]),
        "area": floats(shown.cells.areas[parts] / ground_unit(leaves.tree).per),
    }


def floats(numbers: Any) -> dict[str, Any]:
    """Numbers of one dimension or several, in single precision, row by row."""
    return pack(np.asarray(numbers, dtype=np.float32).ravel())


def _scale(surfaces: list[DensitySurface]) -> dict[str, float]:
    scale = DensityScale.of(surfaces, reduce(Viewport.joined, (each.whole for each in surfaces)))
    return {"low": scale.low, "high": scale.high, "densest": scale.densest}


def interval(found: Estimate) -> dict[str, float]:
    """An estimate as the page takes it."""
    return {"best_guess": found.best_guess, "stddev": found.stddev, "low": found.low, "high": found.high}
