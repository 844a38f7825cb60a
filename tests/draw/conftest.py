"""Cell maps to draw, and the pixels of what was drawn."""

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from hazemap.cellmap import CellMap
from hazemap.cells import Cells, Leaves, Tree
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree

MakeMap = Callable[..., CellMap]


@pytest.fixture
def make() -> MakeMap:
    """A cell map of some cells with these values, all with one standard error."""

    def of(tree: Tree, cells: Cells, values: object, stddev: float = 1.0) -> CellMap:
        numbers = np.broadcast_to(np.asarray(values, dtype=np.float64), cells.shape).copy()
        return CellMap.independent(Leaves(tree, cells), numbers, np.full(len(cells), stddev), 3.0)

    return of


@pytest.fixture
def tree() -> Quadtree:
    """A square around Oslo, at 60° north."""
    return Quadtree.around(Box(10.3, 59.8, 11.1, 60.2), 8)


@pytest.fixture
def town(make: MakeMap, tree: Quadtree) -> CellMap:
    """64 × 64 cells, denser toward the middle."""
    row, column = np.mgrid[-32:32, -32:32] + 0.5
    values = 4000 * np.exp(-(row**2 + column**2) / 150)
    return make(tree, tree.grid(6).ravel(), values.ravel(), 3.0)


@pytest.fixture
def pixel() -> Callable[[Figure, str, float, float], np.ndarray]:
    """The colour (0 to 255) that a panel of a picture has at a place of the sheet, as a mean over 5 × 5 pixels."""

    def at(figure: Figure, panel: str, x: float, y: float) -> np.ndarray:
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        image = np.asarray(canvas.buffer_rgba())[..., :3].astype(float)
        axes = next(a for a in figure.axes if a.get_label() == panel)
        column, row = axes.transData.transform((x, y))
        column, row = round(column), image.shape[0] - round(row)
        return image[row - 2 : row + 3, column - 2 : column + 3].mean(axis=(0, 1))

    return at
