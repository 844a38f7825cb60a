"""Draws a blurred density beside its uncertainty."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hazemap.draw.cell_densities import region_of
from hazemap.draw.cell_painting import Colours, Palette
from hazemap.draw.colour_scales import (
    FEWEST_DECADES,
    MOST_DECADES,
    DensityScale,
    error_classes,
    error_palette,
    quantile,
)
from hazemap.draw.figure_layout import MARGIN, FigureLayout, PageSize, paged
from hazemap.draw.ground import Ground
from hazemap.draw.legends import (
    ERROR_LEGEND_WIDTH,
    bar_width,
    draw_bar,
    draw_densities,
    draw_errors,
    draw_graticule,
    head_errors,
)
from hazemap.draw.maps import GAP, LEGEND_GAP, STRIP, MapPanel, panels_of
from hazemap.draw.panel_layout import grown, may_grow
from hazemap.draw.themes import LIGHT, Theme
from hazemap.draw.viewport import MapExtent, Viewport
from hazemap.machine_code.arrays import Floats
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.plane import ground_unit

if TYPE_CHECKING:
    from geopandas import GeoDataFrame
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CLEAR = 3.0  # standard errors above nothing
ROOM = 0.05  # of the extent, around what is clear


def draw_heatmap(
    density: Floats,
    stddev: Floats,
    view: Viewport,
    *,
    metres: float,
    title: str | None = None,
    caption: str = "",
    counted: str = "people",
    outlines: "Path | str | GeoDataFrame | None" = None,
    base: bool = True,
    uncertainty: bool = True,
    frame: MapExtent = MapExtent.MAP,
    box: Box | None = None,
    note: str = "",
    width: float = 10.0,
    size: PageSize | tuple[float, float] | None = None,
    theme: Theme | str = LIGHT,
) -> "Figure":
    """Densities per km² (on a plane, `ground_unit`) of the pixels of a view, float64[rows, columns], and their errors.

    The picture is of `box`, or of all, or as `frame` says. Other options are those of `draw_map`.
    """
    theme, size = paged(theme, size, width)
    room = FigureLayout.room(width, size, title, caption, note)
    layout = partial(panels_of, panels=list(MapPanel)[: 1 + uncertainty], room=room)
    seen = Viewport.of(box, view.plane) if box is not None else view
    seen = _clear(density, stddev, view) if box is None and frame is MapExtent.PEOPLE else seen.shaped()
    seen = grown(seen, layout) if size and may_grow(seen, frame, box) else seen
    ground, made = Ground.of(seen, outlines, base, theme), layout(seen.aspect)
    page = FigureLayout.ruled(made.width + 2 * MARGIN, made.height, title, caption, note, theme=theme, size=size)
    spot, scale = made.spots[0], replace(_scale(density, stddev), steps=theme.densities)
    left, top = page.left + spot.left, page.top + spot.top
    axes = page.panel(left, top, spot.across, seen, "density")
    _paint(axes, density, view, scale.colours)
    area = f"{ground_unit(view.plane).name}, blurred by {_length(metres, view)}"
    draw_densities(page, left, top - STRIP, bar_width(spot.across), scale, counted, area)
    ground.draw(axes, 0.6, names=True)
    draw_graticule(axes, seen, theme=theme)
    draw_bar(axes, seen, spot.across / seen.aspect, theme=theme)
    if uncertainty:
        spot = made.spots[1]
        left, top, high = page.left + spot.left, page.top + spot.top, spot.across / seen.aspect
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            relative = np.where(density > 0, stddev / density, np.where(stddev > 0, np.inf, 0.0))
        axes = page.panel(left, top, spot.across, seen, "uncertainty")
        classes = np.where(np.isnan(density), np.nan, error_classes(np.nan_to_num(relative, nan=np.inf)))
        _paint(axes, classes, view, error_palette(theme))
        head_errors(page, left, top - 0.07, spot.across, "How sure is it?")
        under = (left + spot.across + GAP, top) if made.stacked else (left, top + high + LEGEND_GAP)
        draw_errors(page, *under, ERROR_LEGEND_WIDTH)
        ground.draw(axes, 0.35)
    return page.figure


def _scale(density: Floats, stddev: Floats) -> DensityScale:
    """As that of cells: shades begin above the noise of half of the ground, and the darkest where 1 % is denser."""
    known = density[np.isfinite(density)]
    if not (known > 0).any():
        return DensityScale(1.0, 10.0, 0.0)
    weight = np.sqrt(known)
    high = quantile(known, weight, 0.995)
    low = max(quantile(known, weight, 0.25), 2 * float(np.nanmedian(stddev)))
    return DensityScale(
        float(np.clip(low, high / 10**MOST_DECADES, high / 10**FEWEST_DECADES)), high, float(known.max())
    )


def shown_of_heatmap(
    density: Floats, stddev: Floats, view: Viewport, frame: MapExtent = MapExtent.MAP, box: Box | None = None
) -> Any:
    """The region that a picture of a heatmap shows; None where it shows all of the map. See `shown_part`."""
    if box is not None:
        return region_of(Viewport.of(box, view.plane).shaped(), view)
    return region_of(_clear(density, stddev, view), view) if frame is MapExtent.PEOPLE else None


def _clear(density: Floats, stddev: Floats, view: Viewport) -> Viewport:
    """Where the density stands clear of its noise, with a margin, as pictures are shaped; all where it does nowhere."""
    clear = np.nan_to_num(density) > CLEAR * np.nan_to_num(stddev, nan=np.inf)
    if not clear.any():
        return view.shaped()
    rows, columns = (np.flatnonzero(clear.any(axis=axis)) for axis in (1, 0))
    west, east = (view.west + part / density.shape[1] * view.width for part in (columns[0], columns[-1] + 1))
    north, south = (view.north - part / density.shape[0] * view.height for part in (rows[0], rows[-1] + 1))
    across, up = ROOM * (east - west), ROOM * (north - south)
    return replace(
        view,
        west=max(west - across, view.west),
        south=max(south - up, view.south),
        east=min(east + across, view.east),
        north=min(north + up, view.north),
    ).shaped()


def _paint(axes: "Axes", numbers: Floats, view: Viewport, palette: Palette) -> None:
    colours: Colours = palette(np.nan_to_num(numbers))
    colours[np.isnan(numbers), 3] = 0
    extent = (view.west, view.east, view.south, view.north)
    axes.imshow(colours, extent=extent, origin="upper", interpolation="bilinear", aspect="auto", zorder=1)


def _length(metres: float, view: Viewport) -> str:
    if view.plane and view.plane.unit != "m":
        return f"{metres:,.3g} {view.plane.unit}"
    return f"{metres / 1000:.3g} km" if metres >= 1000 else f"{metres:.3g} m"
