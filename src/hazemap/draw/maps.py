"""Draws a release: density beside its uncertainty."""

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hazemap.cellmap import CellMap
from hazemap.draw.cell_densities import DensitySurface
from hazemap.draw.cell_painting import points_across
from hazemap.draw.colour_scales import DensityScale, ErrorClasses, error_colours
from hazemap.draw.figure_layout import DPI, MARGIN, FigureLayout, height, style, wrapped
from hazemap.draw.ground import Ground
from hazemap.draw.legends import ERROR_LEGEND_HEIGHT, draw_bar, draw_densities, draw_errors, draw_graticule, head_errors
from hazemap.draw.viewport import MapExtent, Viewport
from hazemap.errors import InputError
from hazemap.estimate import shown
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.plane import ground_unit, plane_of

if TYPE_CHECKING:
    from geopandas import GeoDataFrame
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAIN = 0.64  # of the width between the margins, for the first of several panels
GAP = 0.35  # inches between panels
STRIP = 0.56  # inches above the panels: legend, scale bar, headings
EDGE = 0.22  # inches left of and below a panel with a graticule
LEGEND_GAP = 0.08  # inches between a smaller panel and its legend
TALLEST = 0.85  # of the page's width: no panel is higher
MOST_PANELS = 4  # side by side
NARROWEST_PAGE, WIDEST_PAGE = 5.0, 24.0  # inches
NAME = 9.0  # points
SMALLEST_OUTLINED, FULLY_OUTLINED = 1.5, 14.0  # points on paper: smaller cells would drown in their outlines
DARK, PALE = np.array([0.17, 0.11, 0.09, 1.0]), np.array([1.0, 0.96, 0.9, 1.0])


class MapPanel(Enum):
    """What one panel of a map shows."""

    DENSITY = "density"
    UNCERTAINTY = "uncertainty"


def draw_map(
    cellmap: CellMap,
    *,
    title: str | None = None,
    caption: str = "",
    counted: str = "people",
    panels: Sequence[MapPanel] = (MapPanel.DENSITY, MapPanel.UNCERTAINTY),
    outlines: "Path | str | GeoDataFrame | None" = None,
    base: bool = True,
    cell_lines: float | None = None,
    frame: MapExtent = MapExtent.MAP,
    box: Box | None = None,
    note: str = "",
    width: float = 10.0,
    fine: CellMap | None = None,
) -> "Figure":
    """A map of density (`values` per km², negative ones as zero), with a smaller one of its standard error.

    `caption` stands beneath, whole: it is the place of the privacy statement; `note` stands above it, and is the place
    to say whom the picture does not show (`shown_part` tells which part it does). `cell_lines` is the opacity of the
    cells' outlines, 0 to 1; by default it falls with their number. The view is `box`, or all of the map, or as `frame`
    says; a ribbon of a view is widened. `width` is in inches (200 pixels each). Looks at nothing but the released
    numbers, so it is post-processing. `base` is whether the base map is drawn: shores, rivers, borders and places under
    the `outlines`. `fine` is what is painted inside the cells, where somebody knows that better.
    Raises `InputError` for a cell map without places, `FileError` for outlines that cannot be read.
    """
    panels = tuple(dict.fromkeys(panels))
    if not panels:
        raise InputError("a map needs at least one panel: density, uncertainty")
    _check(width, cell_lines)
    surface, painted = _surfaces(cellmap, fine)
    view = surface.framed(frame, box)
    ground = Ground.of(view, outlines, base)

    several = len(panels) > 1
    inner = width - 2 * MARGIN - EDGE - GAP * several
    first = min(inner * (MAIN if several else 1), TALLEST * width * view.aspect)
    widths = [first, first * (1 - MAIN) / MAIN][: len(panels)]
    feet = [EDGE, LEGEND_GAP][: len(panels)]  # the first panel has degrees below it
    legends = [ERROR_LEGEND_HEIGHT if panel is MapPanel.UNCERTAINTY else 0.0 for panel in panels]
    heights = [w / view.aspect + foot + legend for w, foot, legend in zip(widths, feet, legends, strict=True)]
    body = STRIP + max(heights)
    page = FigureLayout.ruled(sum(widths) + GAP * several + EDGE + 2 * MARGIN, body, title, caption, note)

    left, top, area = MARGIN + EDGE, page.top + STRIP, ground_unit(cellmap.cells.tree).name
    for place, (panel, across, foot) in enumerate(zip(panels, widths, feet, strict=True)):
        axes = page.panel(left, top, across, view, panel.value)
        if panel is MapPanel.DENSITY:
            scale = DensityScale.of([painted], view)
            _fill_densities(axes, surface, painted, view, scale, cell_lines)
            draw_densities(page, left, page.top, min(2.8, 0.42 * across), scale, counted, area)
        else:
            errors = ErrorClasses.of(surface, view, area)
            surface.shapes.fill(axes, view, errors.classes(surface), error_colours)
            head_errors(page, left, top - 0.07, 0.72 * across if place == 0 else across, said=errors.question)
            draw_errors(page, left, top + across / view.aspect + foot, across, errors.labels())
        ground.draw(axes, 0.6 if place == 0 else 0.35, names=place == 0)
        if place == 0:
            draw_graticule(axes, view)
            draw_bar(axes, view, across / view.aspect)
        left += across + GAP
    return page.figure


def draw_side_by_side(
    maps: Sequence[tuple[str, CellMap]],
    *,
    title: str | None = None,
    caption: str = "",
    counted: str = "people",
    outlines: "Path | str | GeoDataFrame | None" = None,
    base: bool = True,
    cell_lines: float | None = None,
    frame: MapExtent = MapExtent.MAP,
    box: Box | None = None,
    note: str = "",
    width: float = 10.0,
) -> "Figure":
    """Densities of several cell maps, each under its name, in one scale and one view: two methods, two years.

    The scale and the view come from all of them together; `frame`, `box` and `note` are those of `draw_map`.
    So truth beside a release is for people who are not real: the picture of a truth is not private, nor is the scale
    that it takes part in. Otherwise `draw_map`.
    """
    if not 1 <= len(maps) <= MOST_PANELS:
        raise InputError(f"a comparison can show 1 to {MOST_PANELS} cell maps; found {len(maps)}")
    _check(width, cell_lines)
    surfaces, fines = zip(*(_surfaces(cellmap) for _, cellmap in maps), strict=True)
    view = reduce(Viewport.joined, (surface.framed(frame, box) for surface in surfaces)).shaped()
    view = replace(view, plane=plane_of(maps[0][1].cells.tree))
    ground = Ground.of(view, outlines, base)
    scale = DensityScale.of(fines, view)

    gaps = GAP * (len(maps) - 1)
    across = min((width - 2 * MARGIN - EDGE - gaps) / len(maps), TALLEST * width * view.aspect)
    names = [wrapped(name, across, NAME, "bold") for name, _ in maps]
    heading = height(max(map(len, names)), NAME) + 0.16
    page = FigureLayout.ruled(
        across * len(maps) + gaps + EDGE + 2 * MARGIN,
        STRIP + heading + across / view.aspect + EDGE,
        title,
        caption,
        note,
    )
    area = ground_unit(maps[0][1].cells.tree).name
    draw_densities(page, MARGIN + EDGE, page.top, min(2.8, 0.42 * across * len(maps)), scale, counted, area)
    left, top = MARGIN + EDGE, page.top + STRIP + heading
    for (name, _), surface, fine, words in zip(maps, surfaces, fines, names, strict=True):
        axes = page.panel(left, top, across, view, name)
        _fill_densities(axes, surface, fine, view, scale, cell_lines)
        ground.draw(axes, 0.5, names=surface is surfaces[0])
        page.write(left, top - 0.08, "\n".join(words), va="bottom", **style(NAME, weight="bold"))
        if surface is surfaces[0]:
            draw_graticule(axes, view, most=3)
        if surface is surfaces[-1]:
            draw_bar(axes, view, across / view.aspect, lift=heading)
        left += across + GAP
    return page.figure


def _surfaces(cellmap: CellMap, fine: CellMap | None = None) -> tuple[DensitySurface, DensitySurface]:
    """Of the cells, and of how people seem to lie inside them."""
    surface, fine = DensitySurface.of(cellmap), shown(cellmap) if fine is None else fine
    return surface, surface if fine is cellmap else DensitySurface.of(fine)


def _check(width: float, cell_lines: float | None) -> None:
    if not NARROWEST_PAGE <= width <= WIDEST_PAGE:
        raise InputError(
            f"a picture is {NARROWEST_PAGE:g} to {WIDEST_PAGE:g} inches wide (of {DPI} pixels each); found {width}"
        )
    if cell_lines is not None and not 0 <= cell_lines <= 1:
        raise InputError(f"the opacity of cell lines must be from 0 (none) to 1; found {cell_lines}")


def _fill_densities(
    axes: "Axes",
    surface: DensitySurface,
    fine: DensitySurface,
    view: Viewport,
    scale: DensityScale,
    opacity: float | None,
) -> None:
    """Paint the densities inside cells; then the cells that are large enough on paper get a hairline."""
    fine.shapes.fill(axes, view, fine.density, scale.colours)
    west, south, east, north = surface.shapes.bounds
    points = np.sqrt((east - west) * (north - south)) / view.width * points_across(axes)
    drawn = view.touches(surface.shapes.bounds) & (points > SMALLEST_OUTLINED)
    if opacity is None:
        opacity = min(0.4, 0.4 * (4000 / max(int(drawn.sum()), 1)) ** 0.25)
    if opacity > 0 and drawn.any():
        dark = scale.position(surface.density) > 0.5
        colours = np.where(dark[:, None], PALE, DARK)
        fade = np.clip((points - SMALLEST_OUTLINED) / (FULLY_OUTLINED - SMALLEST_OUTLINED), 0, 1)
        colours[:, 3] = np.where(drawn, opacity * fade * np.where(dark, 0.5, 1), 0)
        surface.shapes.lines(axes, view, colours)
