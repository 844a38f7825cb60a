"""Pictures of a value: a small map for every slot, the profile of one cell over all slots, and histograms."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hazemap.arrays import Bools, Floats
from hazemap.draw.cell_painting import CellShapes, Colours, Palette, shapes_of
from hazemap.draw.colour_scales import UNKNOWN, ValueScale, error_classes, error_colours
from hazemap.draw.figure_layout import GREY, MARGIN, FigureLayout, height, style, wrapped
from hazemap.draw.ground import Ground
from hazemap.draw.legends import ERROR_LEGEND_HEIGHT, degrees, draw_errors, draw_values, round_steps
from hazemap.draw.viewport import MapExtent, Viewport
from hazemap.errors import InputError
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
WIDEST = 5.0  # inches, for one of several panels
TALLEST = 0.85  # of the page's width, for a panel alone
CLASSES = 1.1  # inches across, for the legend of the uncertainty
PROFILE = 0.42  # of a profile's width
BAND, LINE = "#e99846", "#8d1d4e"
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
    _check(width, 5)
    by_slot = values.reshape(cells.size, len(slots))
    view = _view(_shapes(tree), values, frame, box)
    ground = Ground.of(view, outlines, base)
    known = np.array([]) if errors is None else errors[np.isfinite(errors)]
    scale = ValueScale.of(values, bounds, float(np.median(known)) if known.size else 0.0)
    panels: list[tuple[str, Floats, Palette]] = [(name, by_slot[:, at], scale.colours) for at, name in enumerate(slots)]
    sure = errors is not None and uncertainty
    if errors is not None and sure:
        share = _medians(errors.reshape(by_slot.shape)) / (scale.high - scale.low)
        panels.append(("uncertainty", np.where(np.isnan(share), np.nan, error_classes(share)), error_colours))

    inner = width - 2 * MARGIN
    columns = min(len(panels), max(2, round(math.sqrt(len(panels) * 2.2 / view.aspect))))
    widest = WIDEST if len(panels) > 1 else min(inner, TALLEST * width * view.aspect)
    across = min((inner - GAP * (columns - 1)) / columns, widest)
    high = across / view.aspect + NAME
    rows = math.ceil(len(panels) / columns)
    words = "standard error, as a share of the colour scale" + ("; median of the slots" if len(slots) > 1 else "")
    said = wrapped(words, max(across, CLASSES), 7) if sure else []
    foot = height(len(said), 7) + 0.05 + ERROR_LEGEND_HEIGHT if sure else 0.0
    page = FigureLayout.ruled(width, LEGEND + rows * (high + GAP) + foot, title, caption, note)
    draw_values(page, MARGIN, page.top, min(2.8, inner / 2), scale, unit, few)
    for number, (name, numbers, palette) in enumerate(panels):
        left = MARGIN + (number % columns) * (across + GAP)
        top = page.top + LEGEND + (number // columns) * (high + GAP) + NAME
        axes = page.panel(left, top, across, view, name)
        page.write(left, top - 0.05, name, va="bottom", **style(7, weight="bold"))
        _fill(axes, tree, numbers, view, palette)
        ground.draw(axes, 0.35, names=len(panels) == 1)
    if sure:
        left, under = min(left, width - MARGIN - CLASSES), top + across / view.aspect + 0.05
        page.write(left, under, "\n".join(said), va="top", **style(7))
        draw_errors(page, left, under + height(len(said), 7), max(across, CLASSES))
    return page.figure


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
) -> "Figure":
    """One cell over all slots: values as dots on a line, intervals as a band; where too few people are, a grey one.

    All float64[slots]; `values` may hold NaN. The axis runs over what the intervals of known values need, within
    `bounds`. Looks at released numbers alone.
    """
    known, place = np.isfinite(values), np.arange(len(slots), dtype=np.float64)
    below = 0.45 if known.all() else 0.75
    page, axes, left, foot = _chart(width, below, title, caption, unit, "profile")
    ends = (float(low[known].min()), float(high[known].max())) if known.any() else bounds
    room = ROOM * (ends[1] - ends[0])
    axes.set_ylim(max(bounds[0], ends[0] - room), min(bounds[1], ends[1] + room))
    axes.set_xlim(-0.5, len(slots) - 0.5)
    axes.bar(place, high - low, 1.0, low, color=np.where(known, BAND, UNKNOWN), alpha=0.45, linewidth=0, zorder=2)
    axes.plot(place, values, "-o", color=LINE, linewidth=1.4, markersize=4, zorder=4, gid="profile")
    every = math.ceil(len(slots) / MOST_LABELS)
    axes.set_xticks(place[::every], [slots[int(at)] for at in place[::every]], **style(7))
    if max(map(len, slots)) * len(slots) / every > 90:
        axes.tick_params(axis="x", rotation=30)
    ticks = round_steps(*axes.get_ylim())
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks], **style(7))
    if not known.all():
        words = "grey: too few people to say more than the interval"
        page.write(left, foot + below - 0.12, words, **style(7, colour=GREY))
    return page.figure


def draw_histogram(
    edges: Floats,
    people: Floats,
    low: Floats,
    high: Floats,
    *,
    unit: str = "",
    title: str | None = None,
    caption: str = "",
    width: float = 8.0,
) -> "Figure":
    """People in each bin of a value as bars, with a line for each interval; noise may take them below 0.

    `edges` are float64[bins + 1], the others float64[bins]. Looks at released numbers alone.
    """
    page, axes, _, foot = _chart(width, 0.55, title, caption, "people", "histogram")
    middle = (edges[:-1] + edges[1:]) / 2
    axes.bar(middle, people, np.diff(edges) * 0.94, color=BAND, linewidth=0, zorder=2)
    axes.vlines(middle, low, high, color=LINE, linewidth=1.2, zorder=4)
    room = ROOM * (high.max() - min(low.min(), 0.0))
    axes.set_ylim(min(low.min(), 0.0) - room, high.max() + room)
    axes.set_xlim(edges[0], edges[-1])
    for ticks, put in (
        (round_steps(*axes.get_xlim()), axes.set_xticks),
        (round_steps(*axes.get_ylim()), axes.set_yticks),
    ):
        put(ticks, [f"{tick:g}" for tick in ticks], **style(7))
    axes.axhline(0, linewidth=0.5, color=GREY, zorder=3)
    page.write((width + 0.5) / 2, foot + 0.38, unit, ha="center", **style(8))
    return page.figure


def _chart(
    width: float, below: float, title: str | None, caption: str, heading: str, label: str
) -> tuple[FigureLayout, "Axes", float, float]:
    """A page with one chart: its axes, and where on the page they begin and end."""
    _check(width, 4)
    left, above = MARGIN + 0.5, 0.3
    across = width - left - MARGIN
    page = FigureLayout.ruled(width, above + PROFILE * across + below, title, caption)
    page.write(MARGIN, page.top + 0.1, heading, va="center", **style(8, weight="bold"))
    axes = page.axes(left, page.top + above, across, PROFILE * across, label)
    axes.tick_params(length=2.5, width=0.5, color=GREY)
    axes.grid(axis="y", linewidth=0.4, color=UNKNOWN, zorder=0)
    return page, axes, left, page.top + above + PROFILE * across


def _check(width: float, least: float) -> None:
    if not least <= width <= 24:
        raise InputError(f"a picture is {least:g} to 24 inches wide; found {width}")


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
    cells = f"all {every:,} cells" if whole == every else f"{whole:,} of {every:,} cells"
    cells += f" and parts of {touched - whole:,} more" if touched > whole else ""
    return f"Shown are {cells}, from {across} and from {up}."


def _fill(axes: "Axes", tree: CellTimeSlots, numbers: Floats, view: Viewport, palette: Palette) -> None:
    """Cells without a number first, so that none of them is averaged with one that has one."""
    known = np.isfinite(numbers)
    for some, colours in ((~known, _unknown), (known, palette)):
        if some.any():
            _shapes(tree, some).fill(axes, view, np.where(known, numbers, 0)[some], colours)


def _unknown(values: Floats) -> Colours:
    return ValueScale(0.0, 1.0).colours(np.full(values.shape, np.nan))
