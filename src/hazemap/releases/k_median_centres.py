"""The k places with the least total distance to people (k-median), from a published map."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hazemap.arrays import Floats
from hazemap.errors import InputError
from hazemap.releases.cell_geometry import CellGeometry

if TYPE_CHECKING:
    from hazemap.releases.map_release import Release

RADIUS = 6371008.8
"""Metres: the mean radius of the Earth. On the ellipsoid, ways are up to 0.6 % longer or shorter."""

FINE = 1024
"""Cells are cut until there are about so many, since people are taken to be spread evenly in them."""


@dataclass(frozen=True, eq=False)
class Centres:
    """Places with the people who are nearest to them, the most first; float64[k] each.

    `lon`, `lat` in degrees; `count` in what the release counts; `metres` their mean way, as the crow flies.
    """

    lon: Floats
    lat: Floats
    count: Floats
    metres: Floats

    @property
    def cost(self) -> float:
        """All ways together: people · metres."""
        return float(self.count @ self.metres)


def centres(release: "Release", k: int) -> Centres:
    """See `Release.centres`."""
    from hazemap.estimate.k_median import k_median

    if k < 1:
        raise InputError(f"ask for at least 1 centre, not {k}")
    points, weights = _spread(release.ground, np.maximum(release.map.values, 0))
    if not len(points):
        raise InputError("this map shows nobody, so no centre can be near to anybody")
    found = k_median(points, weights, k)
    count, ways = (
        np.bincount(found.nearest, each, len(found.centres)).astype(np.float64)
        for each in (weights, weights * found.distance * RADIUS)
    )
    order = np.argsort(-count, kind="stable")
    order = order[count[order] > 0]
    x, y, z = found.centres[order].T
    return Centres(
        np.degrees(np.arctan2(y, x)),
        np.degrees(np.arctan2(z, np.hypot(x, y))),
        count[order],
        ways[order] / count[order],
    )


def _spread(ground: CellGeometry, values: Floats) -> tuple[Floats, Floats]:
    """The middles of the cells as unit vectors, and how many people are there; large full cells in parts."""
    tree, (cells, owner) = ground.leaves.tree, ground.pieces
    room = ground.owned[owner]
    weights = values[owner] * np.where(room > 0, ground.areas / np.where(room > 0, room, 1), 0)
    cells, weights = cells[weights > 0], weights[weights > 0]
    while 0 < len(cells) < FINE:
        blur = weights * np.sqrt(tree.area(cells)) * (tree.level(cells) < tree.depth)
        cut = blur > blur.sum() / FINE
        if not cut.any():
            break
        parts, upper = tree.children(cells[cut]), cells[cut]
        order = np.argsort(upper)
        place = order[np.searchsorted(upper[order], tree.parent(parts))]
        area = tree.area(parts)
        share = weights[cut][place] * area / np.bincount(place, area)[place]
        cells, weights = np.concatenate([cells[~cut], parts]), np.concatenate([weights[~cut], share])
    return _middles(ground, cells), weights


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
