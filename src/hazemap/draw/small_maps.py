"""Small multiples in one scale and one view: a map for every slot, or of shares for every mark in every slot."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hazemap.cellmap import CellMap
from hazemap.draw.cell_densities import DensitySurface
from hazemap.draw.colour_scales import DensityScale
from hazemap.draw.figure_layout import DPI, MARGIN, FigureLayout, PageSize, paged
from hazemap.draw.figure_layout import width as text_width
from hazemap.draw.ground import Ground
from hazemap.draw.legends import DENSITY_LEGEND_HEIGHT, draw_bar, draw_densities, draw_values, fitting
from hazemap.draw.panel_layout import Spot, grid, grown, may_grow
from hazemap.draw.share_maps import NOT_KNOWN, fill_shares, fitting_heading, share_scale
from hazemap.draw.themes import LIGHT, Theme
from hazemap.draw.viewport import MapExtent, Viewport
from hazemap.errors import InputError
from hazemap.machine_code.arrays import Floats
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.plane import ground_unit, plane_of

if TYPE_CHECKING:
    from pathlib import Path

    from geopandas import GeoDataFrame
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


GAP, NAME, LEGEND = 0.12, 0.2, DENSITY_LEGEND_HEIGHT + 0.12  # inches: between maps, above each, above all
LEAST = 4.0  # inches: no page is narrower
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
    size: PageSize | tuple[float, float] | None = None,
    theme: Theme | str = LIGHT,
    only: int | None = None,
    dpi: int = DPI,
) -> "Figure":
    """Densities of several cell maps of one place, each under its name: hours of the day, days of the week.

    Scale and view come from all of them together; options are those of `draw_map`. Every cell map is painted as it is.
    With `only`, one of them is drawn, in the scale and view of all: a frame of a moving picture. Looks at released
    numbers alone. `InputError` for more than 60 on a page.
    """
    check_number(len(maps), only)
    theme, size = paged(theme, size, width)
    surfaces = [DensitySurface.of(cellmap) for _, cellmap in maps]
    view = reduce(Viewport.joined, (surface.framed(frame, box) for surface in surfaces)).shaped()
    view = replace(view, plane=plane_of(maps[0][1].cells.tree))
    drawn = list(zip(maps, surfaces, strict=True))
    drawn = drawn if only is None else drawn[only : only + 1]
    room = FigureLayout.room(width, size, title, caption, note)
    room = replace(room, high=room.high - LEGEND)
    layout = partial(grid, len(drawn), room=room, gap=GAP, above=NAME, below=GAP)
    view = grown(view, layout) if size and may_grow(view, frame, box) else view
    scale = replace(DensityScale.of(surfaces, view), steps=theme.densities)
    ground, made = Ground.of(view, outlines, base, theme), layout(view.aspect)

    page_width = max(made.width + 2 * MARGIN, LEAST)
    page = FigureLayout.ruled(page_width, LEGEND + made.height, title, caption, note, theme=theme, size=size)
    page.figure.set_dpi(dpi)
    area = ground_unit(maps[0][1].cells.tree).name
    draw_densities(page, page.left, page.top, min(2.8, (page_width - 2 * MARGIN) / 2), scale, counted, area)
    for number, (((name, _), surface), spot) in enumerate(zip(drawn, made.spots, strict=True)):
        axes = panel_under_name(page, spot, LEGEND, view, name, only)
        surface.shapes.fill(axes, view, surface.density, scale.colours)
        ground.draw(axes, 0.35, names=len(drawn) == 1)
        if number == made.columns - 1:
            draw_bar(axes, view, spot.across / view.aspect, theme=theme)
    return page.figure


def check_number(maps: int, only: int | None) -> None:
    """Refuse with `InputError` no map, and more than a page holds where all are drawn."""
    if not maps or (only is None and maps > MOST_MAPS):
        raise InputError(f"a page holds 1 to {MOST_MAPS} small maps; found {maps:,}: draw some slots, or a .gif of all")


def panel_under_name(
    page: FigureLayout, spot: Spot, below: float, view: Viewport, name: str, only: int | None
) -> "Axes":
    """The axes of one map, so far below what stands above all of them; the name is larger where it is the only one."""
    left, top = page.left + spot.left, page.top + below + spot.top
    axes = page.panel(left, top, spot.across, view, name)
    page.write(left, top - 0.05, name, va="bottom", **page.style(7 if only is None else 11, weight="bold"))
    return axes


SHARES_LEGEND, BENEATH = 0.62, 0.17  # inches above all maps: the scale, and what grey is where it has no room beside it
WIDEST_SCALE = 2.8  # inches, of the scale


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
    bar = min(WIDEST_SCALE, room.wide / 2)
    beneath = bar + 0.6 + text_width(NOT_KNOWN, 7) > room.wide
    head = SHARES_LEGEND + BENEATH * beneath
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
