"""Small multiples: a map for every slot of time, in one scale and one view."""

import math
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from hazemap.cellmap import CellMap
from hazemap.draw.cell_densities import DensitySurface
from hazemap.draw.colour_scales import DensityScale
from hazemap.draw.figure_layout import DPI, MARGIN, FigureLayout, style
from hazemap.draw.ground import Ground
from hazemap.draw.legends import draw_bar, draw_densities
from hazemap.draw.viewport import MapExtent, Viewport
from hazemap.errors import InputError
from hazemap.spatial.bounding_box import Box

if TYPE_CHECKING:
    from geopandas import GeoDataFrame
    from matplotlib.figure import Figure

GAP, NAME, LEGEND = 0.12, 0.2, 0.6  # inches: between maps, above each, above all
MOST_MAPS = 60
"""On one page."""


def draw_small_maps(
    maps: Sequence[tuple[str, CellMap]],
    *,
    title: str | None = None,
    caption: str = "",
    counted: str = "people",
    outlines: "Path | str | GeoDataFrame | None" = None,
    base: bool = True,
    frame: MapExtent = MapExtent.MAP,
    box: Box | None = None,
    note: str = "",
    width: float = 10.0,
    only: int | None = None,
    dpi: int = DPI,
) -> "Figure":
    """Densities of several cell maps of one place, each under its name: hours of the day, days of the week.

    Scale and view come from all of them together; options are those of `draw_map`. Every cell map is painted as it is.
    With `only`, one of them is drawn, in the scale and view of all: a frame of a moving picture. Looks at released
    numbers alone. `InputError` for more than 60 on a page.
    """
    if not maps or (only is None and len(maps) > MOST_MAPS):
        raise InputError(
            f"a page holds 1 to {MOST_MAPS} small maps; found {len(maps):,}: draw some slots, or a .gif of all"
        )
    if not 5 <= width <= 24:
        raise InputError(f"a picture is 5 to 24 inches wide; found {width}")
    surfaces = [DensitySurface.of(cellmap) for _, cellmap in maps]
    view = reduce(Viewport.joined, (surface.framed(frame, box) for surface in surfaces)).shaped()
    scale = DensityScale.of(surfaces, view)
    ground = Ground.of(view, outlines, base)

    drawn = list(zip(maps, surfaces, strict=True))
    drawn = drawn if only is None else drawn[only : only + 1]
    inner = width - 2 * MARGIN
    columns = min(len(drawn), max(2, round(math.sqrt(len(drawn) * 1.6 / view.aspect))))
    across = (inner - GAP * (columns - 1)) / columns
    high = across / view.aspect + NAME
    page = FigureLayout.ruled(width, LEGEND + math.ceil(len(drawn) / columns) * (high + GAP), title, caption, note)
    page.figure.set_dpi(dpi)
    draw_densities(page, MARGIN, page.top, min(2.8, inner / 2), scale, counted, "km²")
    for number, ((name, _), surface) in enumerate(drawn):
        left = MARGIN + (number % columns) * (across + GAP)
        top = page.top + LEGEND + (number // columns) * (high + GAP) + NAME
        axes = page.panel(left, top, across, view, name)
        page.write(left, top - 0.05, name, va="bottom", **style(7 if only is None else 11, weight="bold"))
        surface.shapes.fill(axes, view, surface.density, scale.colours)
        ground.draw(axes, 0.35, names=len(drawn) == 1)
        if number == len(drawn) - 1:
            draw_bar(axes, view, across / view.aspect)
    return page.figure
