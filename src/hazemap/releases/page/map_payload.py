"""What a page is told of a map, as JSON: cells with their intervals, scales and colours of pictures, the statement."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hazemap.arrays import Ints
from hazemap.base_map import base_map
from hazemap.cellmap import CellMap
from hazemap.draw.cell_densities import DensitySurface
from hazemap.draw.colour_scales import DENSITY_COLOURS, ERROR_BREAKS, ERROR_COLOURS, UNKNOWN, DensityScale
from hazemap.errors import InputError
from hazemap.releases.estimates import Estimate, PeopleOutside, after_choosing
from hazemap.releases.page.asking_payload import asking_of
from hazemap.releases.page.cell_places import names, painted, places
from hazemap.releases.page.packed_arrays import pack
from hazemap.spatial.plane import PlaneQuadtree, ground_unit, plane_of

if TYPE_CHECKING:
    from hazemap.releases.map_release import Release

VERSION = 1
"""The version of the data; a page of another one says so."""

MOST_LISTED = 10

AROUND = 1.0
"""Of the sides of a map: so much of the base map is on either side of it, for wide windows and for zooming out."""

MOST_CELLS = 1 << 20
"""Of one page: a browser would be busy with more for a minute."""


def map_payload(release: "Release", title: str | None = None) -> dict[str, Any]:
    """Everything that a page shows of a map; `InputError` for one of more cells than a page can show."""
    tree, surface = release.cells.tree, DensitySurface.of(release.shown)
    if release.shown.cells.size > MOST_CELLS:
        raise InputError(
            f"a page shows at most {MOST_CELLS:,} cells, and this map has {release.shown.cells.size:,}: draw a picture"
            " with `hazemap show`, or export a .pmtiles"
        )
    plane = plane_of(tree)
    return {
        "page": VERSION,
        "kind": "map",
        "title": release.statement.dataset if title is None else title,
        "counted": release.counted,
        "line": release.statement.line(),
        "text": release.statement.text(),
        "statement": release.statement.to_json(),
        "method": release.statement.method,
        "unit": ground_unit(tree).name,
        "plane": None if plane is None else _plane(plane),
        "total": _interval(release.total()),
        "nowhere": None if release.nowhere is None else _interval(release.nowhere),
        "said": str(PeopleOutside.of(release)),
        "densest": _densest(release),
        "colours": {
            "density": list(DENSITY_COLOURS),
            "error": list(ERROR_COLOURS),
            "breaks": list(ERROR_BREAKS),
            "unknown": UNKNOWN,
        },
        "scales": {
            "density": _scale(surface),
            "count": _scale(
                replace(counts := DensitySurface.of(release.map), density=counts.values, noise=counts.error)
            ),
        },
        "cells": _cells(release),
        "base": None if plane is not None else base_map(release.ground.extent, AROUND).to_json(),
        "asking": asking_of(release),
    }


def _cells(release: "Release") -> dict[str, Any]:
    """Numbers of all cells that own ground, those first on which others are painted; the finer map that is shown."""
    leaves = release.cells
    positions = painted(leaves)
    columns: Mapping[str, Any] = release.columns(positions)
    numbers = {name: _floats(columns[name]) for name in ("count", "unbiased", "stddev", "low", "high")}
    found = {"places": places(leaves, positions), "names": names(leaves, positions), **numbers}
    area = _floats(columns[f"area_{ground_unit(leaves.tree).column}"])
    return {**found, "area": area, "fine": _fine(release.shown, release, positions)}


def _densest(release: "Release") -> list[dict[str, float]]:
    """The densest cells, with the intervals of `Release.top`; `cell` is a place among those painted."""
    positions, km2 = painted(release.cells), release.ground.km2
    order = np.argsort(-release.map.values[positions] / km2[positions], kind="stable")[:MOST_LISTED]
    columns = release.columns(positions[order], after_choosing(0.95, len(order), len(positions)))
    numbers = zip(order, *(columns[name] for name in ("unbiased", "stddev", "low", "high")), strict=True)
    names = ("cell", "value", "stddev", "low", "high")
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
        "count": _floats(shown.values[parts]),
        "area": _floats(shown.cells.areas[parts] / ground_unit(leaves.tree).per),
    }


def _floats(numbers: Any) -> dict[str, Any]:
    return pack(np.asarray(numbers, dtype=np.float32))


def _scale(surface: DensitySurface) -> dict[str, float]:
    scale = DensityScale.of([surface], surface.whole)
    return {"low": scale.low, "high": scale.high, "densest": scale.densest}


def _as_counts(surface: DensitySurface) -> DensitySurface:
    """Counts in the place of densities."""
    return replace(surface, density=surface.values, noise=surface.error)


def _interval(found: Estimate) -> dict[str, float]:
    return {"value": found.value, "stddev": found.stddev, "low": found.low, "high": found.high}


def _plane(plane: PlaneQuadtree) -> dict[str, Any]:
    facts = ("unit", "crs", "down", "x", "y", "size")
    return {name: getattr(plane, name) for name in facts}
