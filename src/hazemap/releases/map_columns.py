"""A map as columns: what a table, a file and an export say of each cell."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Tree
from hazemap.releases.estimates import bounds
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree

if TYPE_CHECKING:
    from hazemap.releases.map_release import Release


def name_column(tree: Tree) -> str:
    """What the column of names is called, so that other tools know them: `h3`, `quadkey`, else `cell`.

    >>> name_column(Quadtree.world(depth=3)), name_column(Quadtree(0.25, 0.25, 0.5, 3))
    ('quadkey', 'cell')
    """
    if isinstance(tree, Hexagons):
        return "h3"
    if isinstance(tree, Quadtree) and (tree.left, tree.top, tree.side) == (0, 0, 1):
        return "quadkey"
    return "cell"


def columns(release: "Release", positions: NDArray[np.int64], confidence: float = 0.95) -> dict[str, NDArray[Any]]:
    """Name, level, numbers, error bars and owned area of some places, in this order; geometry is apart.

    `low` … `high` are of each cell on its own.
    """
    cellmap, leaves = release.map, release.map.cells
    values, unbiased, stddev = (numbers[positions] for numbers in (cellmap.values, cellmap.unbiased, cellmap.stddev))
    low, high = bounds(unbiased, stddev, release.kurtosis, confidence)
    km2 = release.ground.km2[positions]
    return {
        name_column(leaves.tree): np.array(leaves.tree.names(leaves.cells[positions]), dtype=object),
        "level": leaves.levels[positions].astype(np.int16),
        "count": values,
        "unbiased": unbiased,
        "stddev": stddev,
        "low": low,
        "high": high,
        "area_km2": km2,
        "per_km2": np.divide(values, km2, out=np.full(len(km2), np.nan), where=km2 > 0),
    }
