"""What the page of each kind of release is told, as JSON: cells with intervals, scales and colours, the statement.

A map, one with marks, one with time, statistics of a value, or the difference of two releases.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hazemap.base_map import base_map
from hazemap.cellmap import CellMap
from hazemap.draw.cell_densities import DensitySurface
from hazemap.draw.colour_scales import DENSITY_COLOURS, ERROR_BREAKS, ERROR_COLOURS, UNKNOWN, DensityScale, ValueScale
from hazemap.draw.viewport import Viewport
from hazemap.errors import InputError
from hazemap.estimate.confidence_margins import reach
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.privacy.statement_facts import Estimand
from hazemap.releases.estimates import Estimate, PeopleOutside, after_choosing
from hazemap.releases.page.asking_payload import asking_marks_of, asking_of, asking_slots_of
from hazemap.releases.page.packed_arrays import names, pack, painted, places
from hazemap.releases.page.page_file import AROUND
from hazemap.releases.statistic_estimates import records_of
from hazemap.spatial.plane import PlaneQuadtree, ground_unit, plane_of

if TYPE_CHECKING:
    from hazemap.releases.base_release import BaseRelease
    from hazemap.releases.map_release import Release
    from hazemap.releases.marked_release import MarkedRelease
    from hazemap.releases.release_difference import ReleaseDifference
    from hazemap.releases.statistics_release import Statistics
    from hazemap.releases.timed_release import TimedRelease


VERSION = 1
"""The version of the data; a page of another one says so."""


def release_facts(release: "BaseRelease", kind: str, title: str | None) -> dict[str, Any]:
    """Everything of a release's page but its numbers, as JSON; `kind` says which numbers follow."""
    tree, statement = release.cells.tree, release.statement
    plane = plane_of(tree)
    return {
        "page": VERSION,
        "kind": kind,
        "title": statement.dataset if title is None else title,
        "counted": release.counted,
        "estimand": Estimand.of(statement.bounding)._asdict(),
        "line": statement.line(),
        "text": statement.text(),
        "statement": statement.to_json(),
        "method": statement.method,
        "unit": ground_unit(tree).name,
        "plane": None if plane is None else _plane(plane),
        "colours": {
            "density": list(DENSITY_COLOURS),
            "error": list(ERROR_COLOURS),
            "breaks": list(ERROR_BREAKS),
            "unknown": UNKNOWN,
        },
        "base": None if plane is not None else base_map(release.ground.extent, AROUND).to_json(),
    }


def _plane(plane: PlaneQuadtree) -> dict[str, Any]:
    facts = ("unit", "crs", "down", "x", "y", "size")
    return {name: getattr(plane, name) for name in facts}


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


def marks_payload(release: "MarkedRelease", wide: float, title: str | None = None) -> dict[str, Any]:
    """Everything that a page shows of a map with marks; `InputError` for one of more cells than a page can show.

    A share whose interval is wider than `wide` is not shown.
    """
    facts = counts_payload(release, "marks", title)
    positions = painted(release.cells)
    columns = release.columns(positions)
    known = np.concatenate([release.known(mark)[positions] for mark in release.marks])
    scale, whole = ValueScale.of(known), release.share()
    marks = [
        {
            "name": mark,
            **{what: floats(columns[f"{mark}_{what}"]) for what in ("share", "low", "high")},
            "whole": {"value": share.value, "low": share.low, "high": share.high},
        }
        for mark, share in zip(release.marks, whole.shares, strict=True)
    ]
    shares = {"low": max(scale.low, 0.0), "high": min(scale.high, 1.0)}
    return {**facts, "marks": marks, "shares": shares, "wide": wide, "asking": asking_marks_of(release)}


MOST_SLOT_NUMBERS = 1 << 22
"""Of one page, a number for every cell in every slot: some hundred megabytes of a browser's memory."""


def slots_payload(release: "TimedRelease", title: str | None = None) -> dict[str, Any]:
    """Everything that a page shows of a map with time; `InputError` for one of more numbers than a page can hold."""
    numbers = release.maps.cells.size * len(release.slots)
    if numbers > MOST_SLOT_NUMBERS:
        raise InputError(
            f"a page shows at most {MOST_SLOT_NUMBERS:,} numbers, and this map has {numbers:,} of its"
            f" {len(release.slots):,} slots: draw a picture of some slots with `hazemap show --slot`"
        )
    facts = counts_payload(release, "slots", title)
    return {**facts, "slots": _slots(release), "asking": asking_slots_of(release)}


def _slots(release: "TimedRelease") -> dict[str, Any]:
    """The cells that are counted in every slot, and their numbers, one slot after another.

    A slot is painted as finely as it was counted; `holder` says which of its cells each of the total's lies in.
    """
    maps, each = release.maps, release.by_slot
    leaves, total = maps.cells, painted(release.cells)
    positions = painted(leaves)
    at = np.full(leaves.size, -1)
    at[positions] = np.arange(len(positions))
    tables = [made.columns(positions) for made in each]
    surfaces = [DensitySurface.of(made.map) for made in each]
    area = tables[0][f"area_{ground_unit(leaves.tree).column}"]
    numbers = {name: floats([table[name] for table in tables]) for name in ("best_guess", "unbiased", "low", "high")}
    return {
        "names": list(release.slots),
        "cells": {
            "places": places(leaves, positions),
            "names": names(leaves, positions),
            "area": floats(area),
            "stddev": floats(tables[0]["stddev"]),
            **numbers,
        },
        "holder": pack(at[maps.holder[total]].astype(np.int32)),
        "totals": [interval(made.total()) for made in each],
        "densest": [densest(made) for made in each],
        "scales": scales(surfaces, surfaces),
    }


MOST_NUMBERS = 1 << 24
"""Of one page, of all statistics and bins together: 64 megabytes."""


def values_payload(release: "Statistics", title: str | None = None) -> dict[str, Any]:
    """Everything that a page shows of statistics; `InputError` for more numbers than a page can hold.

    Numbers stand one slot after another, those of a slot in the order of the cells' places; NaN where too few people
    are.
    """
    encoding = release.measurements.tree.value_encoding
    numbers = release.measurements.tree.places * (4 * len(release.statistics) + sum(encoding.levels[:1]) + 3)
    if numbers > MOST_NUMBERS:
        raise InputError(
            f"a page shows at most {MOST_NUMBERS:,} numbers, and these statistics are {numbers:,}: draw a picture with"
            " `hazemap show`, or export them"
        )
    leaves, positions = release.cells, painted(release.cells)

    def by_slot(column: Floats) -> dict[str, Any]:
        """Numbers of places, one slot after another."""
        return floats(column.reshape(leaves.size, len(release.slots), -1)[positions].transpose(1, 0, 2))

    found = {statistic: release.found(statistic) for statistic in release.statistics}
    guess, error = release.guesses
    people, stddev, margin = release.measurements.numbers(np.arange(release.measurements.tree.places)[:, None])
    area = release.ground.km2[positions]
    return {
        **release_facts(release, "values", title),
        "value": release.value,
        "slots": list(release.slots),
        "bounds": [encoding.low, encoding.high],
        "threshold": release.measurements.threshold,
        "records": records_of(release.statement.bounding, release.measurements),
        "bin_width": encoding.width / encoding.bins if encoding.bins else None,
        "said": " ".join(filter(None, (release.summary()[1], release.who_counts))),
        "cells": {"places": places(leaves, positions), "names": names(leaves, positions), "area": floats(area)},
        "people": {"count": by_slot(people), "stddev": stddev, "margin": margin, "most": float(people.max())},
        "statistics": [
            {
                "name": name,
                **{what: by_slot(getattr(each, what)) for what in ("value", "stddev", "low", "high")},
                "bias": None if each.bias is None else by_slot(each.bias),
                "scale": _value_scale(each.value, each.stddev, _value_bounds(release, name)),
            }
            for name, each in found.items()
        ],
        "guess": {
            "value": by_slot(guess),
            "stddev": by_slot(error),
            "scale": _value_scale(guess, error, _value_bounds(release, "mean")),
        },
        "histogram": _histogram(release, by_slot),
    }


def _value_bounds(release: "Statistics", statistic: str) -> tuple[float, float]:
    """Between which a statistic lies, whatever people are like."""
    encoding = release.measurements.tree.value_encoding
    return (0.0, encoding.width**2 / 4) if statistic == "variance" else (encoding.low, encoding.high)


def _value_scale(values: Floats, errors: Floats, bounds: tuple[float, float]) -> dict[str, float]:
    """The colours of pictures: see `ValueScale.of`."""
    known = errors[np.isfinite(errors)]
    scale = ValueScale.of(values, bounds, float(np.median(known)) if known.size else 0.0)
    return {"low": scale.low, "high": scale.high}


def _histogram(release: "Statistics", by_slot: Any) -> dict[str, Any] | None:
    """People in bins of the value, NaN in places where nothing was asked; None where there are no bins."""
    encoding = release.measurements.tree.value_encoding
    if not encoding.bins:
        return None
    try:
        people, stddev, kurtosis = release.measurements.histograms
    except InputError:  # an estimator that asked for no bins
        return None
    margin = float(reach(0.95, np.array(kurtosis))) * stddev
    return {"edges": encoding.edges(1).tolist(), "people": by_slot(people), "margin": margin}


def difference_payload(found: "ReleaseDifference", title: str | None = None) -> dict[str, Any]:
    """Everything that a page shows of a difference; `InputError` for one of more cells than a page can show.

    The colours go as far to either side as 99 % of the cells that changed.
    """
    if found.cells.size > MOST_CELLS:
        raise InputError(f"a page shows at most {MOST_CELLS:,} cells, and this difference has {found.cells.size:,}")
    positions, changed, km2 = painted(found.cells), found.changed, found.ground.km2
    low, high = found.interval
    numbers = {"difference": found.difference, "stddev": found.stddev, "low": low, "high": high}
    return {
        **release_facts(found.after, "difference", title),
        "before": {"title": found.before.statement.dataset, "line": found.before.statement.line()},
        "cells": {"places": places(found.cells, positions), "names": names(found.cells, positions)},
        **{name: floats(column[positions]) for name, column in numbers.items()},
        "area": floats(km2[positions]),
        "changed": pack(changed[positions].astype(np.uint8)),
        "most": _most(found.difference, changed),
        "most_density": _most(found.difference / np.where(km2 > 0, km2, np.inf), changed),
    }


def _most(numbers: Floats, changed: NDArray[np.bool_]) -> float:
    """Where the colours of a scale end."""
    seen = np.abs(numbers[changed] if changed.any() else numbers)
    return max(float(np.quantile(seen, 0.99)), 1e-9)
