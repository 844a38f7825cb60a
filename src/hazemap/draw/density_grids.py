"""Grids of densities as plain pictures: a pixel for each plot, without a frame."""

import io
from collections.abc import Sequence

import numpy as np

from hazemap.draw.colour_scales import DensityScale
from hazemap.errors import InputError
from hazemap.machine_code.arrays import Floats


def draw_grids(grids: Sequence[Floats], low: float, high: float) -> list[bytes]:
    """Each grid as a PNG in one scale, which begins at `low` and is darkest from `high` on.

    Grids are float64[rows, columns] of one shape, people per km², north at the top. NaN is transparent, and rows and
    columns that hold nothing else in all of them are cut off.
    """
    from matplotlib.image import imsave

    if not (0 < low < high and np.isfinite(high)):
        raise InputError(f"a scale goes from a number above 0 to a larger one; found {low} and {high}")
    if not grids or len({grid.shape for grid in grids}) > 1 or grids[0].ndim != 2:
        raise InputError("grids in one scale are numbers in rows and columns, all of one shape")
    known = np.any([np.isfinite(grid) for grid in grids], axis=0)
    if not known.any():
        raise InputError("a grid without a number has no picture")
    rows, columns = (np.flatnonzero(known.any(axis=axis)) for axis in (1, 0))
    part = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
    scale, pictures = DensityScale(low, high, high), []
    for grid in grids:
        shown = grid[part]
        colours = scale.colours(np.nan_to_num(shown, nan=0.0, posinf=high))
        colours[~np.isfinite(shown), 3] = 0
        content = io.BytesIO()
        imsave(content, colours, format="png")
        pictures.append(content.getvalue())
    return pictures
