"""Where cells are, as a page is told: squares by their numbers, hexagons by their indices, others by their outlines."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Cells, Leaves
from hazemap.releases.cell_geometry import RECTANGULAR
from hazemap.releases.page.packed_arrays import pack
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.mercator_and_morton import every_other_bit
from hazemap.spatial.quadtree import Quadtree


def painted(leaves: Leaves) -> NDArray[np.int64]:
    """The positions of cells that own ground, those first on which others are painted; int64[places]."""
    shown = np.flatnonzero(leaves.areas > 0)
    found: NDArray[np.int64] = shown[np.lexsort((leaves.cells[shown], leaves.levels[shown]))]
    return found


def places(leaves: Leaves, positions: NDArray[np.int64]) -> dict[str, Any]:
    """The places of some cells, as JSON."""
    tree, cells = leaves.tree, leaves.cells[positions]
    if isinstance(tree, Quadtree):
        return _squares(tree, cells)
    if isinstance(tree, Hexagons):
        return {"shape": "hexagons", "h3": pack(cells)}
    if isinstance(tree, RECTANGULAR):
        edges = zip(("west", "south", "east", "north"), tree.bounds(cells), strict=True)
        return {"shape": "boxes", **{name: pack(np.asarray(edge, dtype=np.float64)) for name, edge in edges}}
    return _rings(tree.outlines(cells))


def names(leaves: Leaves, positions: NDArray[np.int64]) -> list[str] | None:
    """What cells are called, where a page cannot tell from their numbers."""
    tree = leaves.tree
    return None if isinstance(tree, Quadtree | Hexagons) else tree.names(leaves.cells[positions])


def _squares(tree: Quadtree, cells: Cells) -> dict[str, Any]:
    levels = tree.level(cells)
    column = every_other_bit(cells) - (np.uint64(1) << levels.astype(np.uint64))  # without the root's own bit
    row = every_other_bit(cells >> np.uint64(1))
    arrays = {"level": levels.astype(np.uint8), "column": column.astype(np.uint32), "row": row.astype(np.uint32)}
    root = {"left": tree.left, "top": tree.top, "side": tree.side}
    return {"shape": "squares", **{name: pack(array) for name, array in arrays.items()}, **root}


def _rings(outlines: NDArray[Any]) -> dict[str, Any]:
    """Points of all rings; the ring that each begins, and the cell that each ring begins, with the end of all."""
    import shapely

    parts, of_part = shapely.get_parts(outlines, return_index=True)
    rings, of_ring = shapely.get_rings(parts, return_index=True)
    points = shapely.get_coordinates(rings)
    corners = shapely.get_num_coordinates(rings)
    each = np.bincount(of_part[of_ring], minlength=len(outlines))
    return {
        "shape": "rings",
        "points": pack(points.astype(np.float64).ravel()),
        "ring": pack(np.concatenate([[0], np.cumsum(corners)]).astype(np.int32)),
        "cell": pack(np.concatenate([[0], np.cumsum(each)]).astype(np.int32)),
    }
