"""Small multiples of shares: a map for every mark in every slot of time, in one scale and one view."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from hazemap.cellmap import CellMap
from hazemap.draw.cell_densities import DensitySurface
from hazemap.draw.figure_layout import MARGIN, FigureLayout, paged
from hazemap.draw.figure_layout import width as text_width
from hazemap.draw.ground import Ground
from hazemap.draw.legends import draw_bar, draw_values, fitting
from hazemap.draw.page_size import DPI, PageSize
from hazemap.draw.panel_layout import grid, grown, may_grow
from hazemap.draw.share_maps import NOT_KNOWN, fill_shares, fitting_heading, share_scale
from hazemap.draw.small_maps import GAP, LEAST, NAME, check_number, panel_under_name
from hazemap.draw.themes import LIGHT, Theme
from hazemap.draw.viewport import MapExtent
from hazemap.machine_code.arrays import Floats
from hazemap.spatial.bounding_box import Box

if TYPE_CHECKING:
    from pathlib import Path

    from geopandas import GeoDataFrame
    from matplotlib.figure import Figure

LEGEND, BENEATH = 0.62, 0.17  # inches above all maps: the scale, and what grey is where it has no room beside it
WIDEST = 2.8  # inches, of the scale


def draw_small_shares(
    cellmap: CellMap,
    shares: Sequence[tuple[str, Floats]],
    *,
    marks: str = "share",
    title: str | None = None,
    caption: str = "",
    counted: str = "people",
    outlines: "Path | str | GeoDataFrame | None" = None,
    base: bool = True,
    frame: MapExtent = MapExtent.MAP,
    box: Box | None = None,
    note: str = "",
    width: float = 10.0,
    size: PageSize | tuple[float, float] | None = None,
    theme: Theme | str = LIGHT,
    only: int | None = None,
    dpi: int = DPI,
) -> "Figure":
    """A map of shares under each name, all in one scale; cells of which the share is not known (NaN) are grey.

    Shares are float64[cells], 0 to 1, of the cells of `cellmap`; `marks` says above the scale what they are shares of.
    With `only`, one of them is drawn in the scale of all: a frame of a moving picture. Other options are those of
    `draw_small_maps`. Looks at released numbers alone. `InputError` for more than 60 on a page.
    """
    check_number(len(shares), only)
    theme, size = paged(theme, size, width)
    surface = DensitySurface.of(cellmap)
    view = surface.framed(frame, box)
    drawn = list(shares) if only is None else [shares[only]]
    room = FigureLayout.room(width, size, title, caption, note)
    bar = min(WIDEST, room.wide / 2)
    beneath = bar + 0.6 + text_width(NOT_KNOWN, 7) > room.wide
    head = LEGEND + BENEATH * beneath
    room = replace(room, high=room.high - head)
    layout = partial(grid, len(drawn), room=room, gap=GAP, above=NAME, below=GAP)
    view = grown(view, layout) if size and may_grow(view, frame, box) else view
    ground, made = Ground.of(view, outlines, base, theme), layout(view.aspect)
    known = np.concatenate([each[np.isfinite(each)] for _, each in shares])
    scale = replace(share_scale(known), steps=theme.densities[:-1], unknown=theme.unknown)

    legend = bar if beneath else bar + 0.6 + text_width(NOT_KNOWN, 7)
    page_width = min(max(made.width, legend, LEAST - 2 * MARGIN) + 2 * MARGIN, room.wide + 2 * MARGIN)
    page = FigureLayout.ruled(page_width, head + made.height, title, caption, note, theme=theme, size=size)
    page.figure.set_dpi(dpi)
    unit = fitting_heading(room.wide, f"{marks}, % of {counted}", f"{marks}, %", marks)
    below = (page.left, page.top + 0.59) if beneath else None
    draw_values(page, page.left, page.top, bar, scale, unit, fitting(room.wide - 0.32, NOT_KNOWN, "not known"), below)
    for number, ((name, numbers), spot) in enumerate(zip(drawn, made.spots, strict=True)):
        axes = panel_under_name(page, spot, head, view, name, only)
        fill_shares(axes, cellmap, 100 * numbers, view, scale)
        ground.draw(axes, 0.35, names=len(drawn) == 1)
        if number == made.columns - 1:
            draw_bar(axes, view, spot.across / view.aspect, theme=theme)
    return page.figure
