"""Pictures of shares: for every mark the share of people in each cell, and beside it how sure it is or how many."""

import math
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from hazemap.cellmap import CellMap
from hazemap.draw.cell_densities import DensitySurface
from hazemap.draw.cell_painting import shapes_of
from hazemap.draw.colour_scales import DensityScale, ValueScale
from hazemap.draw.figure_layout import MARGIN, FigureLayout, PageSize, paged, wrapped
from hazemap.draw.figure_layout import width as text_width
from hazemap.draw.ground import Ground
from hazemap.draw.legends import (
    DENSITY_LEGEND_HEIGHT,
    bar_width,
    draw_bar,
    draw_densities,
    draw_graticule,
    draw_values,
    fitting,
)
from hazemap.draw.panel_layout import Layout, Room, grid, grown, may_grow
from hazemap.draw.themes import LIGHT, Theme
from hazemap.draw.viewport import MapExtent, Viewport
from hazemap.errors import InputError
from hazemap.machine_code.arrays import Floats
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.plane import ground_unit

if TYPE_CHECKING:
    from pathlib import Path

    from geopandas import GeoDataFrame
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STRIP = DENSITY_LEGEND_HEIGHT + 0.06  # inches above each panel: legend, scale bar
GAP, EDGE = 0.35, 0.22  # inches between panels, and left of and below one with degrees
MOST_ACROSS = 3
LEAST = 1.9  # inches: a panel with its legend
WIDEST_INTERVAL = 50.0  # per cent: shares that are known less well are not shown
NOT_KNOWN = f"not known: the interval is wider than {WIDEST_INTERVAL:g} points"


class Beside(Enum):
    """What stands beside the map of a share."""

    WIDTH = "width"
    DENSITY = "density"
    NOTHING = "nothing"


def draw_shares(
    cellmap: CellMap,
    shares: Mapping[str, Floats],
    widths: Mapping[str, Floats],
    *,
    beside: Beside = Beside.WIDTH,
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
) -> "Figure":
    """A map of the share of each mark, all in one scale; cells of which it is not known (NaN) are grey.

    `beside` them are the `widths` of their 95 % intervals, or the density of people (`cellmap`), or nothing. Shares and
    widths are float64[cells]. Other options are those of `draw_map`. Looks at released numbers alone.
    """
    if not shares:
        raise InputError("a picture of shares needs at least one mark")
    theme, size = paged(theme, size, width)
    surface = DensitySurface.of(cellmap)
    second = {Beside.WIDTH: list(widths), Beside.DENSITY: [""], Beside.NOTHING: []}[beside]
    panels = [(name, "share") for name in shares] + [(name, beside.value) for name in second]
    room = FigureLayout.room(width, size, title, caption, note)
    layout = partial(_rows, panels=len(panels), marks=len(shares), room=room)
    view = surface.framed(frame, box)
    view = grown(view, layout) if size and may_grow(view, frame, box) else view
    ground, made = Ground.of(view, outlines, base, theme), layout(view.aspect)
    page = FigureLayout.ruled(made.width + 2 * MARGIN, made.height, title, caption, note, theme=theme, size=size)
    known = np.concatenate([each[np.isfinite(each)] for each in shares.values()])
    scale = replace(share_scale(known), steps=theme.densities[:-1], unknown=theme.unknown)
    doubt = ValueScale(0.0, WIDEST_INTERVAL, theme.errors, theme.unknown)
    density = replace(DensityScale.of([surface], view), steps=theme.densities)
    for number, ((name, what), spot) in enumerate(zip(panels, made.spots, strict=True)):
        left, above, across = page.left + spot.left, page.top + spot.top - STRIP, spot.across
        axes = page.panel(left, above + STRIP, across, view, f"{name} {what}".strip())
        bar, under = bar_width(across), (left, above + 0.59)
        if what == "density":
            surface.shapes.fill(axes, view, surface.density, density.colours)
            draw_densities(page, left, above, bar, density, counted, ground_unit(cellmap.cells.tree).name)
        elif what == "share":
            fill_shares(axes, cellmap, 100 * shares[name], view, scale)
            unit = fitting_heading(across, f"{name}, % of {counted}", f"{name}, %", name)
            draw_values(
                page, left, above, bar, scale, unit, fitting(0.67 * across - 0.32, NOT_KNOWN, "not known"), under
            )
        else:
            fill_shares(axes, cellmap, np.minimum(100 * widths[name], WIDEST_INTERVAL), view, doubt)
            unit = fitting_heading(
                across, f"{name}: width of the 95 % interval, points", f"{name}: 95 % interval", name
            )
            draw_values(page, left, above, bar, doubt, unit, more=True)
        ground.draw(axes, 0.6 if what == "share" else 0.35, names=number == 0)
        if number == 0:
            draw_graticule(axes, view, theme=theme)
            draw_bar(axes, view, across / view.aspect, theme=theme)
    return page.figure


def _rows(aspect: float, panels: int, marks: int, room: Room) -> Layout:
    """Shares in one row and what is beside them in the next, or each mark with what is beside it."""
    free = marks == 1 or panels <= marks
    columns = tuple(range(1, min(panels, MOST_ACROSS) + 1)) if free else tuple(range(1, min(marks, MOST_ACROSS) + 1))
    return grid(panels, aspect, room, left=EDGE, gap=GAP, above=STRIP, below=EDGE, columns=columns, least=LEAST)


def share_scale(known: Floats) -> ValueScale:
    """From the least share to the greatest, in per cent, in even steps: at least 5 points, and within 0 … 100."""
    if not known.size:
        return ValueScale(0.0, 100.0)
    low, high = (100 * float(np.quantile(known, rank)) for rank in (0.01, 0.99))
    low, high = 5 * math.floor(low / 5), 5 * math.ceil(high / 5)
    return ValueScale(float(low if low < high else max(low - 5, 0)), float(high if low < high else min(low + 5, 100)))


def fitting_heading(across: float, *words: str) -> str:
    """The first of some words that fit over a panel this wide; of the last, as many as fit."""
    return next(
        (each for each in words if text_width(each, 8, "bold") <= across), wrapped(words[-1], across, 8, "bold")[0]
    )


def fill_shares(axes: "Axes", cellmap: CellMap, numbers: Floats, view: Viewport, scale: ValueScale) -> None:
    """Cells without a number first, so that none of them is averaged with one that has one."""
    places, known = cellmap.places, np.isfinite(numbers)
    for some in (places & ~known, places & known):
        if some.any():
            shapes = shapes_of(cellmap.cells.tree, cellmap.cells.cells[some])
            colours = scale.colours if known[some].all() else scale.of_unknown
            shapes.fill(axes, view, np.where(known, numbers, 0)[some], colours)
