"""What a page needs to count people in regions as `Release.count` does: numbers, ground and noise of cells, as JSON.

Whatever does not depend on a region is worked out here, once; the rest is `web/page/src/asking`. The format is
described in docs/reference/page-questions.md.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hazemap.cellmap import Independent, Noise
from hazemap.cells import Leaves
from hazemap.estimate.shrinkage import TreeLevels
from hazemap.estimate.slot_maps import SlotNoise
from hazemap.estimate.smooth_disaggregation import EvenDisaggregation
from hazemap.estimate.tree_least_squares import ConsistentEstimate, RegularTreeEstimate
from hazemap.estimate.wavelet_reconstruction import WaveletNoise
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.releases.cell_geometry import CellGeometry
from hazemap.releases.file_metadata import Remembered
from hazemap.releases.page.packed_arrays import pack
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.plane import plane_of

if TYPE_CHECKING:
    from hazemap.releases.map_release import Release
    from hazemap.releases.marked_release import MarkedRelease
    from hazemap.releases.timed_release import TimedRelease


GRAIN = 1e10
"""Corners of polygons are whole numbers of 1/GRAIN degrees, where they are: then they take fewer bytes."""


def asking_of(release: "Release") -> dict[str, Any] | None:
    """Everything that questions about regions of a map need; None where its noise is of a kind that no page knows."""
    cellmap, fine, noise = release.map, release._finer, packed_noise(release.map.noise)
    if noise is None:
        return None
    laws = {exchange.answer.chances for exchange in release.transcript}
    return {
        "version": 1,
        "counted": release.counted,
        "plane": plane_of(release.cells.tree) is not None,
        "extent": list(release.ground.extent),
        "values": packed_floats(cellmap.values),
        "unbiased": packed_floats(cellmap.unbiased),
        "stddev": packed_floats(cellmap.stddev),
        "ground": packed_ground(release.ground),
        "finer": _finer(fine.noise, fine.values, release._finer_ground, fine is release.shown)
        if isinstance(fine.noise, EvenDisaggregation)
        else None,
        "clumping": {"error": release.clumping.error, "parts": release.clumping.parts.tolist()},
        "kurtosis": release.kurtosis,
        "chances": sorted([list(law) for law in laws if law is not None]),
        "noise": noise,
    }


def packed_floats(numbers: NDArray[Any]) -> dict[str, Any]:
    """Float64 numbers, as whole ones where they are: those take fewer bytes."""
    whole = np.rint(np.clip(numbers, -(2.0**31), 2.0**31 - 1))
    return pack(whole.astype(np.int32) if (whole == numbers).all() else np.asarray(numbers, dtype=np.float64))


def packed_steps(numbers: Ints) -> dict[str, Any]:
    """Whole numbers as differences, of which deflate makes few bytes."""
    return pack(np.diff(numbers, prepend=0).astype(np.int32))


def _finer(noise: EvenDisaggregation, values: Floats, ground: CellGeometry, shown: bool) -> dict[str, Any]:
    """How the best guess is spread inside cells, and whether it is what pictures show."""
    return {
        "shown": shown,
        "values": packed_floats(np.maximum(values, 0)),
        "holder": packed_steps(noise.holder),
        "ground": packed_ground(ground),
    }


def packed_ground(ground: CellGeometry) -> dict[str, Any]:
    """The pieces that cells own: rectangles of the equal-area plane, hexagons of H3, or rings of points."""
    cells, owner = ground.pieces
    same = {"owner": packed_steps(owner)}
    if ground.rectangles:
        (west, east), (south, north) = ground.bounds[::2], ground.bounds[1::2]
        x, column = np.unique(np.concatenate([west, east]), return_inverse=True)
        y, row = np.unique(np.concatenate([south, north]), return_inverse=True)
        n = len(cells)
        return {
            "kind": "rectangles",
            **same,
            "x": pack(x),
            "y": pack(y),
            "west": packed_steps(column[:n]),
            "wide": pack((column[n:] - column[:n]).astype(np.int32)),
            "south": packed_steps(row[:n]),
            "high": pack((row[n:] - row[:n]).astype(np.int32)),
        }
    outlines = ground.leaves.tree.outlines(cells)
    if isinstance(ground.leaves.tree, Hexagons) and not _is_cut(outlines):
        return {"kind": "hexagons", **same, "cells": pack(np.diff(cells, prepend=np.uint64(0)))}
    return {"kind": "rings", **same, **_rings(outlines)}


def _is_cut(outlines: NDArray[Any]) -> bool:
    """Whether some hexagons cross the antimeridian or hold a pole, so that they are not what H3 says."""
    import shapely

    west, _, east, _ = shapely.bounds(outlines).T
    return bool(
        (shapely.get_type_id(outlines) != 3).any() or (east - west > 90).any() or (np.abs([west, east]) == 180).any()
    )


def _rings(outlines: NDArray[Any]) -> dict[str, Any]:
    """Corners of all rings in degrees; how many each has, below 0 for a hole; and of which piece it is."""
    import shapely

    parts, of_part = shapely.get_parts(outlines, return_index=True)
    rings, of_ring = shapely.get_rings(parts, return_index=True)
    outer = np.diff(of_ring, prepend=-1) > 0
    some = ~shapely.is_empty(rings)
    rings, of_ring, outer = rings[some], of_ring[some], outer[some]
    corners = shapely.get_coordinates(rings)
    found = {
        "corners": pack((shapely.get_num_coordinates(rings) * np.where(outer, 1, -1)).astype(np.int32)),
        "piece": packed_steps(of_part[of_ring]),
    }
    grains = np.rint(corners * GRAIN)
    if (grains / GRAIN == corners).all():
        steps = np.diff(grains.astype(np.int64), axis=0, prepend=np.zeros((1, 2), dtype=np.int64))
        return {**found, "steps": pack(_zigzag(steps.ravel()))}
    return {**found, "degrees": pack(corners.ravel())}


def _zigzag(numbers: Ints) -> NDArray[np.uint64]:
    """Small numbers of either sign as small ones: 0, −1, 1, −2 … are 0, 1, 2, 3 …"""
    return ((numbers << 1) ^ (numbers >> 63)).astype(np.uint64)


def packed_noise(noise: Noise) -> dict[str, Any] | None:
    """How the errors of cells hang together: see `Noise.of` of each class. None for a class that is not ours."""
    if isinstance(noise, Remembered):
        return packed_noise(noise.found)
    if isinstance(noise, Independent):
        return {"kind": "independent", "kurtosis": noise.kurtosis}
    if isinstance(noise, WaveletNoise):
        wavelet = {"side": noise.wavelet.side, "places": packed_steps(noise.wavelet.places.ravel())}
        return {"kind": "wavelet", **wavelet, "stddev": noise.stddev, "kurtosis": noise.kurtosis}
    if isinstance(noise, SlotNoise):
        both = {"total": _forest(noise.total), "slot": _forest(noise.slot)}
        return {"kind": "slots", **both, "chosen": noise.chosen, "slots": noise.slots}
    if isinstance(noise, RegularTreeEstimate):
        levels = [
            {"size": len(level.numbers), "variance": _or_none(level.measured), "kurtosis": level.kurtosis}
            for level in noise.levels
        ]
        return {"kind": "levels", "levels": levels}
    return _forest(noise) if isinstance(noise, ConsistentEstimate) else None


def _forest(noise: ConsistentEstimate) -> dict[str, Any]:
    """Regions, parents first: where the parent of each stands (−1 for none), whether some of it is in none of its
    children, which of the measurements it has, and where the cells are among them.
    """
    regions = noise.regions
    parent, missing, _ = regions.forest
    laws = np.stack([regions.measured, regions.kurtosis[regions.turn]])
    different, law = np.unique(laws, axis=1, return_inverse=True)
    return {
        "kind": "forest",
        "parent": packed_steps(parent),
        "missing": pack(missing.astype(np.uint8)),
        "law": pack(law.ravel().astype(np.uint8 if different.shape[1] < 256 else np.int32)),
        "laws": [[_or_none(variance), kurtosis] for variance, kurtosis in different.T.tolist()],
        "cells": packed_steps(regions.at),
    }


def _or_none(variance: float) -> float | None:
    """JSON has no infinity."""
    return float(variance) if np.isfinite(variance) else None


def asking_marks_of(release: "MarkedRelease") -> dict[str, Any] | None:
    """What questions about people need (`asking_of`), and with it the numbers with and without each mark (`marks`).

    Each is a sum of some of the `sides` noisy counts of a cell, all of one `stddev` and `kurtosis`.
    """
    asking, counts = asking_of(release), release.counts
    if asking is None:
        return None
    marks = []
    for mark in release.marks:
        having = counts.marks.having(mark)
        with_, without = counts.sides[having].sum(axis=0), counts.sides[~having].sum(axis=0)
        marks.append(
            {
                "name": mark,
                "sides": int(having.sum()),
                "marked": packed_floats(with_),
                "without": packed_floats(without),
            }
        )
    law = {"stddev": counts.stddev, "kurtosis": counts.kurtosis, "grain": counts.grain}
    return {**asking, "marks": {**law, "sides": counts.marks.sides, "each": marks}}


def asking_slots_of(release: "TimedRelease") -> dict[str, Any] | None:
    """What questions about all slots need (`asking_of`), and with it what those about some of them need (`slots`)."""
    maps, asking = release.maps, asking_of(release)
    if asking is None:
        return None
    ground = CellGeometry(maps.cells)
    slots = {
        "names": list(release.slots),
        "ground": packed_ground(ground),
        "extent": list(ground.extent),
        "unbiased": packed_floats(maps.unbiased.ravel()),
        "values": packed_floats(maps.guess.ravel()),
        "day": _least_squares(maps.day),
        "slot": _least_squares(maps.slot),
        "generations": _generations(maps.cells),
    }
    return {**asking, "slots": slots}


def _least_squares(found: ConsistentEstimate) -> dict[str, Any]:
    return {"stddev": packed_floats(found.stddev), "noise": packed_noise(found)}


def _generations(cells: Leaves) -> list[dict[str, Any]] | None:
    """The cells and all around them, from the coarsest cell of the map down, which tell how unevenly people lie."""
    if cells.nested:
        return None
    levels = TreeLevels(cells).levels
    coarsest = next((level for level, here in enumerate(levels) if (here.leaf >= 0).any()), 0)
    return [
        {"parent": packed_steps(here.parent), "leaf": packed_steps(here.leaf), "area": packed_floats(here.area)}
        for here in levels[coarsest:]
    ]
