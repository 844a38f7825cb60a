"""Pictures of a value: a small map for every slot, the profile of one cell over all slots, and histograms."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hazemap.draw.cell_painting import CellShapes, Palette, shapes_of
from hazemap.draw.colour_scales import ValueScale, error_classes, error_palette
from hazemap.draw.figure_layout import MARGIN, FigureLayout, PageSize, paged
from hazemap.draw.figure_layout import width as text_width
from hazemap.draw.ground import Ground
from hazemap.draw.legends import ROW, SWATCH, degrees, draw_error_row, draw_values, error_rows, round_steps
from hazemap.draw.panel_layout import grid
from hazemap.draw.themes import LIGHT, Theme
from hazemap.draw.viewport import MapExtent, Viewport
from hazemap.errors import InputError
from hazemap.machine_code.arrays import Bools, Floats
from hazemap.spatial.bounding_box import Box
from hazemap.values.cell_slot_counters import CellTimeSlots

if TYPE_CHECKING:
    from pathlib import Path

    from geopandas import GeoDataFrame
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MOST_PANELS = 48
LEGEND = 0.62  # inches, for the scale above the panels
NAME = 0.2  # inches, for the name above each panel
GAP = 0.12  # inches between panels
OF_SCALE = "uncertainty: standard error, as a share of the colour scale"
MEDIAN = "; median of the slots"
LEAST = 4.4  # inches between the margins
LEAST_CHART = 4.0  # inches, for the width of a chart
PROFILE = 0.42  # of a profile's width
MOST_LABELS = 13
ROOM = 0.06  # of the extent, around what is known


def draw_slots(
    tree: CellTimeSlots,
    values: Floats,
    *,
    errors: Floats | None = None,
    unit: str = "",
    few: str = "too few people to say",
    bounds: tuple[float, float] = (0.0, 1.0),
    title: str | None = None,
    caption: str = "",
    outlines: "Path | str | GeoDataFrame | None" = None,
    base: bool = True,
    frame: MapExtent = MapExtent.MAP,
    box: Box | None = None,
    note: str = "",
    width: float = 10.0,
    size: PageSize | tuple[float, float] | None = None,
    theme: Theme | str = LIGHT,
    uncertainty: bool = True,
) -> "Figure":
    """A map for every slot, all in one scale and one view; cells of which nothing is known (NaN) are grey.

    `values` and their standard `errors` are float64[cells × slots], as `CellTimeSlots` orders places. The colour scale
    is at least four times as wide as the usual error, and that of `bounds` where all is grey. With errors, and unless
    `uncertainty` is False, a last map shows how sure each cell is: its median error over the slots, as a share of the
    colour scale. The view is `box`, or all cells, or as `frame` says those of which something is known; `note` is the
    place to say which (`extent_of`), and `few` is said of grey cells. Looks at released numbers alone. `InputError`
    for more than 48 slots.
    """
    slots, cells = tree.slots.names, tree.cells
    if len(slots) > MOST_PANELS:
        raise InputError(f"{len(slots):,} slots are too many for one page, which holds {MOST_PANELS}: ask for profiles")
    theme, size = paged(theme, size, width)
    by_slot = values.reshape(cells.size, len(slots))
    view = _view(_shapes(tree), values, frame, box)
    ground = Ground.of(view, outlines, base, theme)
    known = np.array([]) if errors is None else errors[np.isfinite(errors)]
    scale = ValueScale.of(values, bounds, float(np.median(known)) if known.size else 0.0)
    scale = replace(scale, steps=theme.densities[:-1], unknown=theme.unknown)
    panels: list[tuple[str, Floats, Palette]] = [(name, by_slot[:, at], scale.colours) for at, name in enumerate(slots)]
    sure = errors is not None and uncertainty
    if errors is not None and sure:
        share = _medians(errors.reshape(by_slot.shape)) / (scale.high - scale.low)
        panels.append(("uncertainty", np.where(np.isnan(share), np.nan, error_classes(share)), error_palette(theme)))

    room = FigureLayout.room(width, size, title, caption, note)
    head, rows = _head(room.wide, sure, few), error_rows(room.wide) if sure else []
    room = replace(room, high=room.high - head)
    made = grid(len(panels), view.aspect, room, gap=GAP, above=NAME, below=GAP)
    page_width = min(max(made.width, _legends(room.wide, sure, few), LEAST) + 2 * MARGIN, room.wide + 2 * MARGIN)
    page = FigureLayout.ruled(page_width, head + made.height, title, caption, note, theme=theme, size=size)
    left, top = MARGIN, page.top
    beneath = (left, top + 0.59) if _beneath(room.wide, few) else None
    draw_values(page, left, top, min(2.8, room.wide / 2), scale, unit, few, beneath)
    if sure:
        foot = top + head - (len(rows) * ROW + 0.08)
        page.write(left, foot - 0.04, OF_SCALE + MEDIAN * (len(slots) > 1), va="bottom", **page.style(7))
        draw_error_row(page, left, foot, room.wide)
    for (name, numbers, palette), spot in zip(panels, made.spots, strict=True):
        left, top = page.left + spot.left, page.top + head + spot.top
        axes = page.panel(left, top, spot.across, view, name)
        page.write(left, top - 0.05, name, va="bottom", **page.style(7, weight="bold"))
        _fill(axes, tree, numbers, view, palette, scale)
        ground.draw(axes, 0.35, names=len(panels) == 1)
    return page.figure


def _beneath(wide: float, few: str) -> bool:
    """Whether what is said of grey cells stands below the colours, because there is no room beside them."""
    return bool(few) and min(2.8, wide / 2) + 0.6 + text_width(few, 7) > wide


def _legends(wide: float, sure: bool, few: str) -> float:
    """Inches that the legends above the panels are wide."""
    colours = min(2.8, wide / 2) + (0.6 + text_width(few, 7)) * (bool(few) and not _beneath(wide, few))
    rows = [sum(SWATCH + 0.28 + text_width(label, 7) for label in row) for row in error_rows(wide)] if sure else []
    return max(colours, *rows, text_width(OF_SCALE + MEDIAN, 7) if sure else 0.0)


def _head(wide: float, sure: bool, few: str) -> float:
    """Inches for the legends above the panels: colours, what grey is, and classes of errors with their heading."""
    return LEGEND + ROW * _beneath(wide, few) + (0.3 + len(error_rows(wide)) * ROW if sure else 0)


def draw_profile(
    slots: Sequence[str],
    values: Floats,
    low: Floats,
    high: Floats,
    *,
    bounds: tuple[float, float],
    unit: str = "",
    title: str | None = None,
    caption: str = "",
    width: float = 8.0,
    size: PageSize | tuple[float, float] | None = None,
    theme: Theme | str = LIGHT,
) -> "Figure":
    """One cell over all slots: values as dots on a line, intervals as a band; where too few people are, a grey one.

    All float64[slots]; `values` may hold NaN. The axis runs over what the intervals of known values need, within
    `bounds`. Looks at released numbers alone.
    """
    known, place = np.isfinite(values), np.arange(len(slots), dtype=np.float64)
    below = 0.45 if known.all() else 0.75
    theme, size = paged(theme, size, width, LEAST_CHART)
    page, axes, left, foot = _chart(width, below, title, caption, unit, "profile", theme, size)
    ends = (float(low[known].min()), float(high[known].max())) if known.any() else bounds
    room = ROOM * (ends[1] - ends[0])
    axes.set_ylim(max(bounds[0], ends[0] - room), min(bounds[1], ends[1] + room))
    axes.set_xlim(-0.5, len(slots) - 0.5)
    axes.bar(
        place, high - low, 1.0, low, color=np.where(known, theme.band, theme.unknown), alpha=0.45, linewidth=0, zorder=2
    )
    axes.plot(place, values, "-o", color=theme.curve, linewidth=1.4, markersize=4, zorder=4, gid="profile")
    every = math.ceil(len(slots) / MOST_LABELS)
    axes.set_xticks(place[::every], [slots[int(at)] for at in place[::every]], **page.style(7))
    if max(map(len, slots)) * len(slots) / every > 90:
        axes.tick_params(axis="x", rotation=30)
    ticks = round_steps(*axes.get_ylim())
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks], **page.style(7))
    if not known.all():
        words = "grey: too few people to say more than the interval"
        page.write(left, foot + below - 0.12, words, **page.style(7, faint=True))
    return page.figure


def draw_histogram(
    edges: Floats,
    people: Floats,
    low: Floats,
    high: Floats,
    *,
    unit: str = "",
    heading: str = "people",
    title: str | None = None,
    caption: str = "",
    width: float = 8.0,
    size: PageSize | tuple[float, float] | None = None,
    theme: Theme | str = LIGHT,
) -> "Figure":
    """People in each bin of a value as bars, with a line for each interval; noise may take them below 0.

    `edges` are float64[bins + 1], the others float64[bins]. Looks at released numbers alone.
    """
    theme, size = paged(theme, size, width, LEAST_CHART)
    page, axes, _, foot = _chart(width, 0.55, title, caption, heading, "histogram", theme, size)
    middle = (edges[:-1] + edges[1:]) / 2
    axes.bar(middle, people, np.diff(edges) * 0.94, color=theme.band, linewidth=0, zorder=2)
    axes.vlines(middle, low, high, color=theme.curve, linewidth=1.2, zorder=4)
    room = ROOM * (high.max() - min(low.min(), 0.0))
    axes.set_ylim(min(low.min(), 0.0) - room, high.max() + room)
    axes.set_xlim(edges[0], edges[-1])
    for ticks, put in (
        (round_steps(*axes.get_xlim()), axes.set_xticks),
        (round_steps(*axes.get_ylim()), axes.set_yticks),
    ):
        put(ticks, [f"{tick:g}" for tick in ticks], **page.style(7))
    axes.axhline(0, linewidth=0.5, color=theme.grey, zorder=3)
    page.write((page.width + 0.5) / 2, foot + 0.38, unit, ha="center", **page.style(8))
    return page.figure


def _chart(
    width: float,
    below: float,
    title: str | None,
    caption: str,
    heading: str,
    label: str,
    theme: Theme,
    size: PageSize | None,
) -> tuple[FigureLayout, "Axes", float, float]:
    """A page with one chart: its axes, and where on the page they begin and end."""
    left, above = MARGIN + 0.5, 0.3
    room = FigureLayout.room(width, size, title, caption)
    across = room.wide + MARGIN - left
    high = room.high - above - below if size else PROFILE * across
    page = FigureLayout.ruled(room.wide + 2 * MARGIN, above + high + below, title, caption, theme=theme, size=size)
    page.write(MARGIN, page.top + 0.1, heading, va="center", **page.style(8, weight="bold"))
    axes = page.axes(left, page.top + above, across, high, label)
    axes.tick_params(length=2.5, width=0.5, color=theme.grey)
    axes.grid(axis="y", linewidth=0.4, color=theme.unknown, zorder=0)
    return page, axes, left, page.top + above + high


def _shapes(tree: CellTimeSlots, some: Bools | slice = slice(None)) -> CellShapes:
    return shapes_of(tree.cells.tree, tree.cells.cells[some])


def _medians(errors: Floats) -> Floats:
    """The median of each row's known numbers, NaN where none is known."""
    medians, some = np.full(len(errors), np.nan), np.isfinite(errors).any(axis=1)
    medians[some] = np.nanmedian(np.where(np.isfinite(errors), errors, np.nan)[some], axis=1)
    return medians


def _view(shapes: CellShapes, values: Floats, frame: MapExtent, box: Box | None) -> Viewport:
    if box is not None:
        return Viewport.of(box).shaped()
    known: Bools = np.asarray(np.isfinite(values.reshape(len(shapes.bounds[0]), -1)).any(axis=1))
    some = known if frame is MapExtent.PEOPLE and known.any() else np.ones_like(known)
    west, south, east, north = (edge[some] for edge in shapes.bounds)
    across, up = ROOM * (east.max() - west.min()), ROOM * (north.max() - south.min())
    return Viewport(west.min() - across, south.min() - up, east.max() + across, north.max() + up).shaped()


def extent_of(tree: CellTimeSlots, values: Floats, *, frame: MapExtent = MapExtent.MAP, box: Box | None = None) -> str:
    """Which part of the world, and how many of the cells, `draw_slots` shows: a sentence."""
    shapes = _shapes(tree)
    view = _view(shapes, values, frame, box)
    west, south, east, north = view.degrees
    digits = max(0, 1 - math.floor(math.log10(min(east - west, north - south)) + 1e-6))
    across = " to ".join(degrees(edge, "E", "W", digits) for edge in (west, east))
    up = " to ".join(degrees(edge, "N", "S", digits) for edge in (south, north))
    touched, whole, every = view.touches(shapes.bounds).sum(), view.contains(shapes.bounds).sum(), tree.cells.size
    one = "the one cell" if every == 1 else f"all {every:,} cells"
    cells = one if whole == every else f"{whole:,} of {every:,} cells"
    cells += f" and parts of {touched - whole:,} more" if touched > whole else ""
    return f"Shown {'is' if whole == every == 1 else 'are'} {cells}, from {across} and from {up}."


def _fill(
    axes: "Axes", tree: CellTimeSlots, numbers: Floats, view: Viewport, palette: Palette, scale: ValueScale
) -> None:
    """Cells without a number first, so that none of them is averaged with one that has one."""
    known = np.isfinite(numbers)
    for some, colours in ((~known, scale.of_unknown), (known, palette)):
        if some.any():
            _shapes(tree, some).fill(axes, view, np.where(known, numbers, 0)[some], colours)
