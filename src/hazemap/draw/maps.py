"""Draws a release: density beside its uncertainty."""

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hazemap.cellmap import CellMap
from hazemap.draw.cell_densities import DensitySurface
from hazemap.draw.cell_painting import PolygonCells, points_across
from hazemap.draw.colour_scales import DensityScale, ErrorClasses, error_palette
from hazemap.draw.figure_layout import MARGIN, FigureLayout, PageSize, height, paged, wrapped
from hazemap.draw.ground import Ground
from hazemap.draw.legends import (
    DENSITY_LEGEND_HEIGHT,
    ERROR_LEGEND_HEIGHT,
    ERROR_LEGEND_WIDTH,
    bar_width,
    draw_bar,
    draw_densities,
    draw_errors,
    draw_graticule,
    head_errors,
)
from hazemap.draw.panel_layout import Layout, Room, grid, grown, may_grow, one, two
from hazemap.draw.themes import LIGHT, Theme
from hazemap.draw.viewport import MapExtent, Viewport
from hazemap.errors import InputError
from hazemap.estimate import shown
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.plane import ground_unit, plane_of

if TYPE_CHECKING:
    from geopandas import GeoDataFrame
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEAST = 1.2  # inches: a panel of several
GAP = 0.35  # inches between panels
STRIP = DENSITY_LEGEND_HEIGHT + 0.06  # inches above the panels: legend, scale bar, headings
EDGE = 0.22  # inches left of and below a panel with a graticule
LEGEND_GAP = 0.08  # inches between a smaller panel and its legend
MOST_PANELS = 4  # side by side
NAME = 9.0  # points
HATCH_OPACITY = 0.55
SMALLEST_OUTLINED, FULLY_OUTLINED = 1.5, 14.0  # points on paper: smaller cells would drown in their outlines


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
    size: PageSize | tuple[float, float] | None = None,
    theme: Theme | str = LIGHT,
    fine: CellMap | None = None,
    hatched: NDArray[np.bool_] | None = None,
) -> "Figure":
    """A map of density (`values` per km², negative ones as zero), with a smaller one of its standard error.

    `caption` stands beneath, whole: it is the place of the privacy statement; `note` stands above it, and is the place
    to say whom the picture does not show (`shown_part` tells which part it does). `cell_lines` is the opacity of the
    cells' outlines, 0 to 1; by default it falls with their number. The view is `box`, or all of the map, or as `frame`
    says; a ribbon of a view is widened. `width` is in inches (200 pixels each); the page is as high as it needs to be,
    unless `size` gives its width and height. Where that leaves room beside all of a map, more ground is shown around
    it. `theme` is light or dark. `base` is whether the base map is drawn: shores, rivers, borders and places under the
    `outlines`. `fine` is what is painted inside the cells, where somebody knows that better; `hatched` cells have
    lines over it, bool[cells]. Looks at nothing but the released numbers, so it is post-processing.
    Raises `InputError` for a cell map without places, `FileError` for outlines that cannot be read.
    """
    panels = tuple(dict.fromkeys(panels))
    if not panels:
        raise InputError("a map needs at least one panel: density, uncertainty")
    theme, size = paged(theme, size, width)
    _check(cell_lines)
    surface, painted = _surfaces(cellmap, fine)
    room = FigureLayout.room(width, size, title, caption, note)
    layout = partial(panels_of, panels=panels, room=room)
    view = surface.framed(frame, box)
    view = grown(view, layout) if size and may_grow(view, frame, box) else view
    ground = Ground.of(view, outlines, base, theme)

    made = layout(view.aspect)
    page = FigureLayout.ruled(made.width + 2 * MARGIN, made.height, title, caption, note, theme=theme, size=size)
    area = ground_unit(cellmap.cells.tree).name
    for place, (panel, spot) in enumerate(zip(panels, made.spots, strict=True)):
        left, top, across = page.left + spot.left, page.top + spot.top, spot.across
        axes = page.panel(left, top, across, view, panel.value)
        if panel is MapPanel.DENSITY:
            scale = replace(DensityScale.of([painted], view), steps=theme.densities)
            _fill_densities(axes, surface, painted, view, scale, cell_lines, theme)
            if hatched is not None:
                _hatch(axes, surface, view, hatched[cellmap.places], theme)
            draw_densities(page, left, top - STRIP, bar_width(across), scale, counted, area)
        else:
            errors = ErrorClasses.of(surface, view, area)
            surface.shapes.fill(axes, view, errors.classes(surface), error_palette(theme))
            head_errors(page, left, top - 0.07, 0.72 * across if place == 0 else across, said=errors.question)
            foot = EDGE if place == 0 else LEGEND_GAP
            under = (left + across + GAP, top) if place and made.stacked else (left, top + across / view.aspect + foot)
            draw_errors(page, *under, ERROR_LEGEND_WIDTH, errors.labels() if errors.unit else None)
        ground.draw(axes, 0.6 if place == 0 else 0.35, names=place == 0)
        if place == 0:
            draw_graticule(axes, view, theme=theme)
            draw_bar(axes, view, across / view.aspect, theme=theme)
    return page.figure


def _hatch(axes: "Axes", surface: DensitySurface, view: Viewport, chosen: NDArray[np.bool_], theme: Theme) -> None:
    """Slanting lines over some cells (gid `hatched`)."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgb

    seen = surface.shapes.cells[chosen & view.touches(surface.shapes.bounds)]
    rings: Any = PolygonCells(surface.shapes.tree, seen).pieces[0] if len(seen) else []
    ink = (*to_rgb(theme.ink), HATCH_OPACITY)
    axes.add_collection(
        PolyCollection(rings, facecolors="none", edgecolors=ink, linewidths=0, hatch="////", zorder=2, gid="hatched"),
        autolim=False,
    )


def panels_of(aspect: float, panels: Sequence[MapPanel], room: Room) -> Layout:
    """Where one map stands, or two of which the first is larger; the first has degrees below it."""
    feet = [0.0 if panel is MapPanel.DENSITY else ERROR_LEGEND_HEIGHT for panel in panels]
    if len(panels) == 1:
        return one(aspect, room, left=EDGE, above=STRIP, below=EDGE + feet[0])
    below = EDGE + feet[0], feet[1] and LEGEND_GAP + feet[1]
    return two(aspect, room, left=EDGE, above=STRIP, below=below, gap=GAP, beside=ERROR_LEGEND_WIDTH)


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
    size: PageSize | tuple[float, float] | None = None,
    theme: Theme | str = LIGHT,
) -> "Figure":
    """Densities of several cell maps, each under its name, in one scale and one view: two methods, two years.

    The scale and the view come from all of them together; `frame`, `box` and `note` are those of `draw_map`.
    So truth beside a release is for people who are not real: the picture of a truth is not private, nor is the scale
    that it takes part in. Otherwise `draw_map`.
    """
    if not 1 <= len(maps) <= MOST_PANELS:
        raise InputError(f"a comparison can show 1 to {MOST_PANELS} cell maps; found {len(maps)}")
    theme, size = paged(theme, size, width)
    _check(cell_lines)
    surfaces, fines = zip(*(_surfaces(cellmap) for _, cellmap in maps), strict=True)
    view = reduce(Viewport.joined, (surface.framed(frame, box) for surface in surfaces)).shaped()
    view = replace(view, plane=plane_of(maps[0][1].cells.tree))

    room = FigureLayout.room(width, size, title, caption, note)
    room = replace(room, high=room.high - STRIP)
    layout = partial(_named_panels, names=[name for name, _ in maps], room=room)
    view = grown(view, layout) if size and may_grow(view, frame, box) else view
    ground, made = Ground.of(view, outlines, base, theme), layout(view.aspect)
    heading = made.spots[0].top
    scale = replace(DensityScale.of(fines, view), steps=theme.densities)
    page = FigureLayout.ruled(
        made.width + 2 * MARGIN, STRIP + made.height, title, caption, note, theme=theme, size=size
    )
    area = ground_unit(maps[0][1].cells.tree).name
    draw_densities(page, page.left + EDGE, page.top, bar_width(made.width - EDGE), scale, counted, area)
    for number, ((name, _), surface, fine, spot) in enumerate(zip(maps, surfaces, fines, made.spots, strict=True)):
        left, top, across = page.left + spot.left, page.top + STRIP + spot.top, spot.across
        axes = page.panel(left, top, across, view, name)
        _fill_densities(axes, surface, fine, view, scale, cell_lines, theme)
        ground.draw(axes, 0.5, names=number == 0)
        words = "\n".join(wrapped(name, across, NAME, "bold"))
        page.write(left, top - 0.08, words, va="bottom", **page.style(NAME, weight="bold"))
        if number == 0:
            draw_graticule(axes, view, 3, theme)
        if number == made.columns - 1:
            draw_bar(axes, view, across / view.aspect, heading, theme)
    return page.figure


def _named_panels(aspect: float, names: Sequence[str], room: Room) -> Layout:
    """Panels of one size under their names, in as many lines as the longest name needs in so narrow a panel."""
    lines = 1
    while True:
        above = height(lines, NAME) + 0.16
        made = grid(len(names), aspect, room, left=EDGE, gap=GAP, above=above, below=EDGE, least=LEAST)
        needed = max(len(wrapped(name, made.across, NAME, "bold")) for name in names)
        if needed <= lines:
            return made
        lines = needed


def _surfaces(cellmap: CellMap, fine: CellMap | None = None) -> tuple[DensitySurface, DensitySurface]:
    """Of the cells, and of how people seem to lie inside them."""
    surface, fine = DensitySurface.of(cellmap), shown(cellmap) if fine is None else fine
    return surface, surface if fine is cellmap else DensitySurface.of(fine)


def _check(cell_lines: float | None) -> None:
    if cell_lines is not None and not 0 <= cell_lines <= 1:
        raise InputError(f"the opacity of cell lines must be from 0 (none) to 1; found {cell_lines}")


def _fill_densities(
    axes: "Axes",
    surface: DensitySurface,
    fine: DensitySurface,
    view: Viewport,
    scale: DensityScale,
    opacity: float | None,
    theme: Theme,
) -> None:
    """Paint the densities inside cells; then the cells that are large enough on paper get a hairline."""
    fine.shapes.fill(axes, view, fine.density, scale.colours)
    west, south, east, north = surface.shapes.bounds
    points = np.sqrt((east - west) * (north - south)) / view.width * points_across(axes)
    drawn = view.touches(surface.shapes.bounds) & (points > SMALLEST_OUTLINED)
    if opacity is None:
        opacity = min(0.4, 0.4 * (4000 / max(int(drawn.sum()), 1)) ** 0.25)
    if opacity > 0 and drawn.any():
        many = scale.position(surface.density) > 0.5
        colours = np.where(many[:, None], (*theme.on_many, 1.0), (*theme.on_few, 1.0))
        fade = np.clip((points - SMALLEST_OUTLINED) / (FULLY_OUTLINED - SMALLEST_OUTLINED), 0, 1)
        colours[:, 3] = np.where(drawn, opacity * fade * np.where(many, 0.5, 1), 0)
        surface.shapes.lines(axes, view, colours)
