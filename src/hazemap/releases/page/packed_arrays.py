"""Long arrays in the data of a page, and where cells are: squares by their numbers, others by their outlines.

An array is base64 of raw deflate (RFC 1951) of little-endian numbers.
"""

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Cells, Leaves
from hazemap.errors import FileError
from hazemap.releases.cell_geometry import RECTANGULAR
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.plane import plane_of
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.web_mercator import every_other_bit

TYPES = ("uint8", "int16", "int32", "uint32", "float32", "float64", "uint64")
"""Those that `web/page/src/payload/arrays.ts` reads."""


LEVEL = 6
"""Of zlib: the highest would make pages 5 % smaller in ten times the time."""


def pack(array: NDArray[Any]) -> dict[str, Any]:
    """A one-dimensional array as JSON; the same array always gives the same text.

    >>> pack(np.array([1, 2, 3], dtype=np.uint8))
    {'type': 'uint8', 'length': 3, 'data': 'Y2RiBgA='}
    """
    name = array.dtype.name
    if array.ndim != 1 or name not in TYPES:
        raise TypeError(f"a page holds rows of {', '.join(TYPES)}; found {array.ndim} dimensions of {name}")
    squeeze = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    data = squeeze.compress(little.tobytes()) + squeeze.flush()
    return {"type": name, "length": len(array), "data": base64.b64encode(data).decode()}


def unpack(packed: dict[str, Any]) -> NDArray[Any]:
    """What `pack` wrote; `FileError` for anything else."""
    if packed.get("type") not in TYPES:
        raise FileError(f"an array of a page holds {', '.join(TYPES)}; found {packed.get('type')!r:.40}")
    kind = np.dtype(packed["type"]).newbyteorder("<")
    try:
        data = zlib.decompress(base64.b64decode(packed["data"], validate=True), -zlib.MAX_WBITS)
        array = np.frombuffer(data, dtype=kind)
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise FileError("this is no array of a page") from error
    if len(array) != packed["length"]:
        raise FileError(f"an array of {packed['length']} numbers of a page holds {len(array)}")
    return array.astype(kind.newbyteorder("="))


UNIT = 1e-7
"""Degrees: a centimetre."""


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
    if isinstance(tree, RECTANGULAR):
        edges = zip(("west", "south", "east", "north"), tree.bounds(cells), strict=True)
        return {"shape": "boxes", **{name: pack(np.asarray(edge, dtype=np.float64)) for name, edge in edges}}
    rings = _rings(tree.outlines(cells), lag=12 if isinstance(tree, Hexagons) else 0)
    return {**rings, "h3": pack(cells)} if isinstance(tree, Hexagons) else rings


def names(leaves: Leaves, positions: NDArray[np.int64]) -> list[str] | None:
    """What cells are called, where a page cannot tell from their numbers."""
    tree = leaves.tree
    return None if isinstance(tree, Quadtree | Hexagons) else tree.names(leaves.cells[positions])


def _squares(tree: Quadtree, cells: Cells) -> dict[str, Any]:
    levels = tree.level(cells)
    column = every_other_bit(cells) - (np.uint64(1) << levels.astype(np.uint64))  # without the root's own bit
    row = every_other_bit(cells >> np.uint64(1))
    arrays = {"level": levels.astype(np.uint8), "column": column.astype(np.uint32), "row": row.astype(np.uint32)}
    root = {"left": tree.left, "top": tree.top, "side": tree.side, "plane": plane_of(tree) is not None}
    return {"shape": "squares", **{name: pack(array) for name, array in arrays.items()}, **root}


def _rings(outlines: NDArray[Any], lag: int) -> dict[str, Any]:
    """Points of all rings; the point that each ring begins, and the ring that each cell begins, with the end of all.

    Points are whole `UNIT` degrees, without the last of a ring, which is its first. What is packed is the difference of
    each to the point before; of that, where `lag` is not 0, the difference to the one `lag` numbers before: hexagons
    are so alike that these are small.
    """
    import shapely

    parts, of_part = shapely.get_parts(outlines, return_index=True)
    rings, of_ring = shapely.get_rings(parts, return_index=True)
    points, of_point = shapely.get_coordinates(rings, return_index=True)
    last = np.append(of_point[1:] != of_point[:-1], True)[: len(of_point)]
    steps = np.rint(points[~last] / UNIT).astype(np.int32).ravel()
    lags = [each for each in (lag, 2) if each]
    for each in reversed(lags):
        steps[each:] -= steps[:-each].copy()
    corners = np.bincount(of_point[~last], minlength=len(rings))
    of_cell = np.bincount(of_part[of_ring], minlength=len(outlines))
    return {
        "shape": "rings",
        "points": pack(steps),
        "unit": UNIT,
        "lags": lags,
        "ring": pack(np.concatenate([[0], np.cumsum(corners)]).astype(np.int32)),
        "cell": pack(np.concatenate([[0], np.cumsum(of_cell)]).astype(np.int32)),
    }
