"""A map of a user's own: a table of points, a GeoTIFF or an array of counts."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hazemap.compare.ground_truth_maps import GroundTruthMap, in_pixels, middles
from hazemap.errors import FileError, InputError
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import DEEPEST, Quadtree
from hazemap.tables.contribution_bounding import RowIsPerson

DEPTH = 10
"""A table of points is seen in 4^DEPTH pixels."""

LARGEST = 4096
"""Pixels along the longer side of a picture."""


def own_map(name: str, path: Path) -> GroundTruthMap:
    """People in pixels: rows of a table with longitudes and latitudes, or the numbers of a raster or an array.

    A picture that is not a square of 2^n pixels lies in the north-west of one. What is not a number, or below 0, is
    nobody; parts of people are rounded. Comparing methods shows the truth of a map, so it should be a public one.
    """
    if not path.is_file():
        raise FileError(f"the map {name} is made of {path}, which is not there")
    origin = f"your own: {path.name}"
    match path.suffix.lower():
        case ".npy":
            return _picture(name, np.load(path, allow_pickle=False), origin)
        case ".tif" | ".tiff":
            import rasterio

            with rasterio.open(path) as raster:
                band = raster.read(1, masked=True)
            return _picture(name, np.ma.filled(band.astype(np.float64), 0.0), origin)
        case _:
            return _table(name, path, origin)


def _picture(name: str, numbers: NDArray[np.generic], origin: str) -> GroundTruthMap:
    if numbers.ndim != 2 or numbers.dtype.kind not in "iufb" or max(numbers.shape) > LARGEST:
        raise InputError(
            f"the map {name} is made of rows and columns of numbers, {LARGEST} × {LARGEST} at most; found "
            f"{' × '.join(map(str, numbers.shape))} of {numbers.dtype}"
        )
    people = np.maximum(np.nan_to_num(numbers.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0), 0.0)
    if people.max(initial=0) > 2**40:
        raise InputError(f"the map {name} has more than {2**40:,} people in a pixel: these are no counts of people")
    return GroundTruthMap.of(name, np.rint(people).astype(np.int64), origin)


def _table(name: str, path: Path, origin: str) -> GroundTruthMap:
    """The rows are read once, into the finest squares of the world; these are laid in the pixels around them all."""
    from hazemap.readers.open_table import open_table

    world = Quadtree.world(DEEPEST)
    votes = open_table(path).votes(world, RowIsPerson())
    if not len(votes.cells):
        raise InputError(f"the map {name} has no row with a longitude and a latitude")
    west, south, east, north = world.bounds(votes.cells)
    box = Box(float(west.min()), float(south.min()), float(east.max()), float(north.max()))
    tree = Quadtree.around(box, DEPTH)
    cells = tree.cell_at(middles(world, votes.cells), tree.depth)
    return in_pixels(name, cells, votes.weights, tree, origin)
