"""The k places with the least total distance to people (k-median), from a published map."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hazemap.cells import Cells
from hazemap.errors import InputError
from hazemap.estimate.confidence_margins import leading
from hazemap.estimate.k_median import k_median
from hazemap.machine_code.arrays import Bools, Floats, Ints
from hazemap.releases.cell_geometry import CellGeometry
from hazemap.releases.estimates import Estimate

if TYPE_CHECKING:
    from hazemap.releases.map_release import Release

RADIUS = 6371008.8
"""Metres: the mean radius of the Earth. On the ellipsoid, ways are up to 0.6 % longer or shorter."""

AT_ONCE = 1 << 15
"""Cells whose ways are computed at a time."""

CORNER = 0.5412
"""Of the diagonal: the mean way from a corner of a square to the places in it; of longer rectangles it is less."""

FINE = 1024
"""Cells are cut until there are about so many, since people are taken to be spread evenly in them."""


@dataclass(frozen=True, eq=False)
class Centres:
    """Places with the people who are nearest to them, the most first; float64[k] each.

    `lon`, `lat` in degrees; `best_guess` in what the release counts; `metres` their mean way, as the crow flies. `low`
    … `high` is the interval of the number nearest to each, in which the best guess lies, and `ways` that of all ways
    together, in kilometres: for these places as if they had been chosen beforehand. They hold for noise, with people
    spread evenly in their cells; where in their cells people are can change `ways` by no more than `placement`
    (kilometres) either way.
    """

    lon: Floats
    lat: Floats
    best_guess: Floats
    metres: Floats
    low: Floats
    high: Floats
    ways: Estimate
    placement: float

    def columns(self) -> dict[str, Floats]:
        """A row for each place."""
        return {name: getattr(self, name) for name in ("lon", "lat", "best_guess", "low", "high", "metres")}

    @property
    def cost(self) -> float:
        """All ways together: people · metres."""
        return float(self.best_guess @ self.metres)


def centres(release: "Release", k: int, confidence: float = 0.95) -> Centres:
    """See `Release.centres`."""
    if k < 1:
        raise InputError(f"ask for at least 1 centre, not {k}")
    values = np.maximum(release.map.values, 0)
    parts = _spread(release.ground, values)
    points, weights = _middles(release.ground, parts.cells), values[parts.owner] * parts.share
    people = weights > 0
    if not people.any():
        raise InputError("this map shows nobody, so no centre can be near to anybody")
    found = k_median(points[people], weights[people], k).centres
    nearest, metres = _nearest(points, found)
    count, ways = (np.bincount(nearest, each, len(found)).astype(np.float64) for each in (weights, weights * metres))
    order = np.argsort(-count, kind="stable")
    order = order[count[order] > 0]
    x, y, z = found[order].T
    numbers = [
        release.estimate(parts.sums(nearest == place, release.cells.size), release.counted, confidence)
        for place in order.tolist()
    ]
    far = parts.sums(metres / 1e3, release.cells.size)
    return Centres(
        np.degrees(np.arctan2(y, x)),
        np.degrees(np.arctan2(z, np.hypot(x, y))),
        count[order],
        ways[order] / count[order],
        *leading(count[order], np.array([each.low for each in numbers]), np.array([each.high for each in numbers])),
        release.estimate(far, f"{release.counted} · km", confidence),
        float(values @ parts.sums(_doubt(release.ground, parts.cells), release.cells.size)),
    )


class _Parts(NamedTuple):
    """Parts of cells: what each owns, or a part of that; the cell it is of, and its share of what the cell owns."""

    cells: Cells
    owner: Ints
    share: Floats

    def sums(self, numbers: "Floats | Bools", cells: int) -> Floats:
        """Means of numbers of parts over each cell, float64[cells]."""
        mean: Floats = np.bincount(self.owner, numbers * self.share, cells).astype(np.float64)
        return mean


def _nearest(points: Floats, places: Floats) -> tuple[Ints, Floats]:
    """Which place is nearest to each point, and how far away it is, in metres."""
    nearest, metres = np.empty(len(points), dtype=np.int64), np.empty(len(points))
    for start in range(0, len(points), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        chord = np.sqrt(np.maximum(2 - 2 * points[some] @ places.T, 0))
        nearest[some] = chord.argmin(axis=1)
        straight = np.linalg.norm(points[some] - places[nearest[some]], axis=1)
        metres[some] = 2 * np.arcsin(np.minimum(straight / 2, 1)) * RADIUS
    return nearest, metres


def _doubt(ground: CellGeometry, cells: Cells) -> Floats:
    """How far the mean way from a part can be from the way from any place in it, in kilometres: `CORNER` of its
    diagonal, as ways change by no more than one moves. Of cells that are no rectangles, of a square of their area.
    """
    tree = ground.leaves.tree
    diagonal = np.sqrt(2 * tree.area(cells)) / 1e3
    if ground.rectangles:
        west, south, east, north = np.radians(tree.bounds(cells))  # type: ignore[attr-defined] # rectangles have bounds
        wide = (east - west) * np.cos(np.clip(0, south, north))
        diagonal = np.hypot(wide, north - south) * RADIUS / 1e3
    return np.asarray(CORNER * diagonal)


def _spread(ground: CellGeometry, values: Floats) -> _Parts:
    """What cells own; of large full cells in parts."""
    tree, (cells, owner) = ground.leaves.tree, ground.pieces
    room = ground.owned[owner]
    share = np.where(room > 0, ground.areas / np.where(room > 0, room, 1), 0)
    while 0 < len(cells) < FINE:
        blur = values[owner] * share * np.sqrt(tree.area(cells)) * (tree.level(cells) < tree.depth)
        cut = blur > blur.sum() / FINE
        if not cut.any():
            break
        parts, upper = tree.children(cells[cut]), cells[cut]
        order = np.argsort(upper)
        place = order[np.searchsorted(upper[order], tree.parent(parts))]
        area = tree.area(parts)
        smaller = share[cut][place] * area / np.bincount(place, area)[place]
        cells, owner, share = (
            np.concatenate([whole[~cut], new])
            for whole, new in ((cells, parts), (owner, owner[cut][place]), (share, smaller))
        )
    there = share > 0  # others have no outline, and so no middle
    return _Parts(cells[there], owner[there], share[there])


def _middles(ground: CellGeometry, cells: "np.ndarray[tuple[int], np.dtype[np.uint64]]") -> Floats:
    import shapely

    tree = ground.leaves.tree
    if ground.rectangles:
        west, south, east, north = tree.bounds(cells)  # type: ignore[attr-defined] # rectangles have bounds
        lon, lat = np.radians((west + east) / 2), np.radians((south + north) / 2)
    else:
        middle = shapely.centroid(tree.outlines(cells))
        lon, lat = np.radians(shapely.get_x(middle)), np.radians(shapely.get_y(middle))
    return np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])
