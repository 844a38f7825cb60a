"""The synthetic city of the evaluation data as a table: 3.5 M people, 1024 × 1024 pixels, somewhere on Earth."""

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa

from hazemap.cells import Leaves, Redrawn
from hazemap.readers.open_table import open_table
from hazemap.spatial.quadtree import Quadtree

SHARED = Path(__file__).parents[2] / ".." / "shared"
TREE = Quadtree(0.2939453125, 0.3759765625, 2.0**-10, 10)  # a tile of level 10 near New York


def shared(name: str) -> ModuleType:
    """A script of the evaluation data, as a module."""
    path = SHARED / "bench" / f"{name}.py"
    if not path.exists():
        sys.exit(f"skipped: {name}.py of the evaluation data (../shared/bench) is not here")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def truth() -> np.ndarray:
    """People in each pixel, int32[1024, 1024]."""
    counts, _ = shared("synthetic_city").build()
    return counts


@cache
def table():
    """A row a person, in the middle of their pixel."""
    rows, columns = np.nonzero(truth())
    west, south, east, north = TREE.bounds(TREE.grid(10)[rows, columns])
    times = truth()[rows, columns]
    lon, lat = np.repeat((west + east) / 2, times), np.repeat((south + north) / 2, times)
    return open_table(pa.table({"lon": lon, "lat": lat}))


def picture(cells: Leaves, values: np.ndarray) -> np.ndarray:
    """A map as a number a pixel: every cell spread evenly over the pixels it owns."""
    tree, grid = cells.tree, TREE.grid(10)
    drawn = isinstance(tree, Redrawn)
    at = cells.locate(tree.leaves)[tree.positions(grid.ravel())] if drawn else cells.locate(grid.ravel())
    return (values / np.maximum(np.bincount(at, minlength=cells.size), 1))[at].reshape(grid.shape)
