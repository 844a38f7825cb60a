"""How the cells of a tree lie on the sheet: squares are painted into an image, others are drawn as polygons."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from hazemap.draw.viewport import Viewport, ViewportBounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Colours = NDArray[np.uint8]  # red, green, blue, alpha along the last axis
HAIRLINE = 0.35  # points, the width of the outline of a cell
MOST_VECTORS = 20_000  # shapes of one layer that an SVG or a PDF holds as shapes; more become an image in it
Palette = Callable[[NDArray[np.float64]], Colours]


class CellShapes(Protocol):
    """Cells on the sheet, in the order of the numbers that are drawn of them."""

    @property
    def bounds(self) -> ViewportBounds:
        """West, south, east and north of each cell, in metres of the sheet."""
        ...

    def fill(self, axes: "Axes", view: Viewport, numbers: NDArray[np.float64], palette: Palette) -> None:
        """Paint each cell by its number; cells too small to be seen are averaged by area first."""
        ...

    def lines(self, axes: "Axes", view: Viewport, colours: NDArray[np.float64]) -> None:
        """Outline each cell as a hairline; float64[cells, 4], cells with alpha 0 are left out."""
        ...


def points_across(axes: "Axes") -> float:
    """The width of a panel on paper, in points."""
    figure = cast("Figure", axes.get_figure(root=True))
    return float(axes.get_window_extent().width / figure.dpi * 72)
