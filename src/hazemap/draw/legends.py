"""Legends, scale bar and graticule."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hazemap.draw.colour_scales import (
    ERROR_BREAKS,
    DensityScale,
    ValueScale,
    error_labels,
    short,
)
from hazemap.draw.figure_layout import FigureLayout, height, style, wrapped
from hazemap.draw.figure_layout import width as text_width
from hazemap.draw.themes import LIGHT, Theme
from hazemap.draw.viewport import Viewport, ground, latitude, sheet
from hazemap.files.number_text import per

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOBODY = "nobody, or too few to tell"
FEW = "nobody, or too few"
MOSTLY_NOISE = "mostly noise"
FREE = 1.6  # of the bar of densities: what the scale bar leaves free above the panel
APART = 0.27  # inches between the numbers below a bar of colours
DENSITY_LEGEND_HEIGHT = 0.67
BAR = 0.1  # inches, the height of the bar of densities
ROW = 0.17  # inches, from one class of errors to the next
ERROR_LEGEND_HEIGHT = (len(ERROR_BREAKS) + 1) * ROW + 0.05
ERROR_LEGEND_WIDTH = 1.75
SWATCH = 0.24
LONGEST_BAR = 0.25  # of the panel's width
VARIES = 1.05  # scale between the northern and the southern edge above which the bar names its latitude
STEPS = (1, 2, 5)
DEGREES = 6.0  # points
CORNER = 0.03  # of the panel: no label so near to a corner


def draw_densities(
    page: FigureLayout, left: float, top: float, width: float, scale: DensityScale, counted: str, area: str = ""
) -> "Axes":
    """A bar of all colours with round densities below it and the unit above, 0.5 inches high; below what no colour is.

    `counted` stands before the unit of `area`, and what follows a comma in that after it. In all it is
    `DENSITY_LEGEND_HEIGHT` inches high. Without an area it is numbers that the scale is of, and nothing stands below.
    """
    name, _, rest = area.partition(", ")
    scale, name = scale.per(name)
    unit = (per(counted, name) if area else counted) + (f", {rest}" if rest else "")
    page.write(left, top + 0.15, unit, va="baseline", gid="unit", **page.style(8, weight="bold"))
    axes = page.axes(left, top + 0.22, width, BAR, label="density legend", line=0.4)
    # The picture is even in colour, so the densities of its steps are those at even places of the scale.
    place = np.linspace(0, 1, 512)
    density = scale.low * np.sinh(place * np.arcsinh(scale.high / scale.low))
    axes.imshow(scale.colours(density)[None], extent=(0, 1, 0, 1), aspect="auto", interpolation="nearest")
    ticks = scale.ticks(max(0.14, APART / width))
    axes.set_xticks(
        scale.position(np.array([value for value, _ in ticks])), [label for _, label in ticks], **page.style(7)
    )
    if scale.densest > scale.high:
        page.write(
            left + width + 0.08, top + 0.22 + BAR / 2, f"up to {short(scale.densest)}", va="center", **page.style(7)
        )
    axes.tick_params(length=2, width=0.5, color=page.theme.grey, pad=1.5)
    if area:
        draw_swatch(page, left, top + 0.59, scale.steps[0], fitting(FREE * width - SWATCH - 0.08, NOBODY, FEW))
    return axes


def draw_values(
    page: FigureLayout,
    left: float,
    top: float,
    width: float,
    scale: ValueScale,
    unit: str,
    few: str = "",
    few_at: tuple[float, float] | None = None,
    more: bool = False,
) -> None:
    """A bar of even steps of colour with the unit above; beside it what is said of grey cells, if anything.

    `few_at` is another place for that: its left end and its middle. `more` is whether the last step holds all above.
    """
    page.write(left, top + 0.15, unit, va="baseline", gid="unit", **page.style(8, weight="bold"))
    axes = page.axes(left, top + 0.22, width, BAR, "value legend", 0.4)
    axes.imshow(
        scale.colours(np.linspace(scale.low, scale.high, 512))[None],
        extent=(scale.low, scale.high, 0, 1),
        aspect="auto",
        interpolation="nearest",
    )
    ticks = round_steps(scale.low, scale.high)
    every = math.ceil(APART * (scale.high - scale.low) / (ticks[1] - ticks[0]) / width) if len(ticks) > 1 else 1
    ticks = ticks[::-1][::every][::-1] if more else ticks[::every]
    names = [f"{tick:g}" for tick in ticks]
    axes.set_xticks(ticks, [*names[:-1], f"{names[-1]}+"] if more else names, **page.style(7))
    axes.tick_params(length=2, width=0.5, color=page.theme.grey, pad=1.5)
    if few:
        draw_swatch(page, *(few_at or (left + width + 0.25, top + 0.27)), page.theme.unknown, few)


def round_steps(low: float, high: float) -> list[float]:
    """Round numbers from one end to the other, three to eight of them."""
    rough = (high - low) / 5
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(times * size for times in (1, 2, 5, 10) if times * size >= rough)
    return [round(each * step, 12) for each in range(math.ceil(low / step), math.floor(high / step) + 1)]


def head_errors(
    page: FigureLayout,
    left: float,
    bottom: float,
    width: float,
    question: str = "How sure is each cell?",
    said: str = "standard error, as a share of the number",
) -> None:
    """What a panel of uncertainty shows, in up to three lines above `bottom`."""
    lines = wrapped(said, width, 7)
    page.write(left, bottom, "\n".join(lines), va="bottom", **page.style(7))
    above = bottom - height(len(lines), 7) - 0.03
    page.write(left, above, question, va="bottom", **page.style(8, weight="bold"))


def fitting(across: float, *words: str) -> str:
    """The first of some words that fit in so many inches; else the last."""
    return next((each for each in words if text_width(each, 7) <= across), words[-1])


def bar_width(across: float) -> float:
    """Inches that the bar of densities takes above a panel this wide: the scale bar stands at the panel's other end."""
    return min(2.8, 0.42 * across)


def draw_swatch(page: FigureLayout, left: float, middle: float, colour: str, words: str) -> float:
    """A colour and what it says, at this height of the page; gives how many inches it is wide."""
    swatch = page.axes(left, middle - BAR / 2, SWATCH, BAR, f"legend: {words}", 0.4)
    swatch.set_facecolor(colour)
    page.write(left + SWATCH + 0.08, middle, words, va="center", **page.style(7))
    return SWATCH + 0.08 + text_width(words, 7)


def draw_errors(
    page: FigureLayout, left: float, top: float, width: float, labels: Sequence[str] | None = None
) -> "Axes":
    """One swatch a class, surest first, `ERROR_LEGEND_HEIGHT` inches high and up to `ERROR_LEGEND_WIDTH` wide.

    Without `labels` the errors are shares of the number, and those over all of it are said to be mostly noise.
    """
    from matplotlib.patches import Rectangle

    axes = page.axes(left, top, width, ERROR_LEGEND_HEIGHT, label="uncertainty legend")
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(ERROR_LEGEND_HEIGHT, 0)
    for row, (label, colour) in enumerate(zip(labels or of_shares(), page.theme.errors, strict=True)):
        y = 0.05 + row * ROW
        axes.add_patch(Rectangle((0.01, y), 0.24, 0.12, facecolor=colour, edgecolor=page.theme.grey, linewidth=0.4))
        axes.text(0.33, y + 0.06, label, va="center_baseline", **page.style(7))
    return axes


def draw_error_row(page: FigureLayout, left: float, top: float, width: float) -> None:
    """The classes of errors that are shares side by side, in as many rows as they need: see `error_rows`."""
    for row, labels in enumerate(error_rows(width)):
        at = left
        for label in labels:
            colour = page.theme.errors[of_shares().index(label)]
            at += draw_swatch(page, at, top + (row + 0.5) * ROW, colour, label) + 0.2


def error_rows(width: float) -> list[list[str]]:
    """The labels of `draw_error_row` in rows of so many inches."""
    rows, at = list[list[str]]([[]]), 0.0
    for label in of_shares():
        wide = SWATCH + 0.08 + text_width(label, 7)
        if rows[-1] and at + wide > width:
            rows.append([])
            at = 0.0
        rows[-1].append(label)
        at += wide + 0.2
    return rows


def of_shares() -> list[str]:
    """What each class of errors says that are shares of the number."""
    *surer, last = error_labels()
    return [*surer, f"{last}: {MOSTLY_NOISE}"]


def bar(view: Viewport) -> tuple[float, str]:
    """A round length in metres on the ground, at the latitude of the view's middle, and its label.

    >>> from hazemap.spatial.bounding_box import Box
    >>> bar(Viewport.of(Box(-74.1, 40.6, -73.9, 40.8)))
    (2000.0, '2 km')
    """
    most = LONGEST_BAR * view.width * (view.unit if view.plane else ground(view.latitude))
    unit = 10.0 ** math.floor(math.log10(most))
    length = max(digit * unit for digit in (1, 2, 5) if digit * unit <= most)
    if view.plane and view.plane.unit != "m":
        return length, f"{length:,g} {view.plane.unit}"
    label = f"{length / 1000:,.0f} km" if length >= 1000 else f"{length:g} m"
    if view.plane:
        return length, label
    scales = [ground(latitude(y)) for y in (view.south, view.north, (view.south + view.north) / 2)]
    if max(scales) > VARIES * min(scales):
        label += f" at {degrees(view.latitude, 'N', 'S', 0)}"
    return length, label


def draw_bar(axes: "Axes", view: Viewport, height: float, lift: float = 0.0, theme: Theme = LIGHT) -> None:
    """The bar, `lift` inches over the right end of a panel of this height in inches (gid `scalebar`)."""
    length, label = bar(view)
    west, east = view.east - length / (view.unit if view.plane else ground(view.latitude)), view.east
    above = axes.get_xaxis_transform()  # metres across, shares of the panel's height up
    foot, tip, words = (1 + (lift + inches) / height for inches in (0.09, 0.14, 0.16))
    axes.plot(
        [west, west, east, east],
        [tip, foot, foot, tip],
        transform=above,
        clip_on=False,
        color=theme.ink,
        linewidth=0.9,
        solid_joinstyle="miter",
        solid_capstyle="butt",
        gid="scalebar",
    )
    axes.text((west + east) / 2, words, label, transform=above, ha="center", va="bottom", **style(7, colour=theme.ink))


def degrees(value: float, positive: str, negative: str, decimals: int) -> str:
    """A latitude or longitude as maps write it, also where a view goes on beyond the antimeridian.

    >>> degrees(40.7, "N", "S", 1), degrees(200, "E", "W", 0), degrees(-200, "E", "W", 0), degrees(-180, "E", "W", 0)
    ('40.7° N', '160° W', '160° E', '180°')
    """
    rounded = round(value - 360 * math.ceil((value - 180) / 360), decimals)
    side = "" if rounded in (-180, 0, 180) else f" {positive}" if rounded > 0 else f" {negative}"
    return f"{abs(rounded):.{decimals}f}°{side}"


def rounds(low: float, high: float, most: int) -> tuple[list[float], int]:
    """At most this many round degrees between two, and the decimals they need.

    >>> rounds(40.52, 40.97, 3)
    ([40.6, 40.8], 1)
    """
    finest = math.floor(math.log10((high - low) / most))
    for exponent in (finest, finest + 1):
        for digit in STEPS:
            step = digit * 10.0**exponent
            first, last = math.ceil(low / step), math.floor(high / step)
            if last - first + 1 <= most:
                decimals = max(0, -exponent)
                return [round(n * step, decimals) for n in range(first, last + 1)], decimals
    raise AssertionError("a step of ten times the finest leaves few enough")


def _draw_coordinates(axes: "Axes", view: Viewport, most: int, theme: Theme) -> None:
    """Ticks of a plane, in its own unit."""
    box, unit = view.box, view.unit
    across, up = CORNER * (box.east - box.west), CORNER * (box.north - box.south)
    xs, x_decimals = rounds(box.west + across, box.east - across, most)
    ys, y_decimals = rounds(box.south + up, box.north - up, most)
    first, sign = view.y_at(view.south), -1.0 if view.plane and view.plane.down else 1.0
    look = style(DEGREES, colour=theme.grey)
    axes.set_xticks([view.west + (x - box.west) / unit for x in xs], [f"{x:.{x_decimals}f}" for x in xs], **look)
    heights = [view.south + sign * (y - first) / unit for y in ys]
    axes.set_yticks(heights, [f"{y:.{y_decimals}f}" for y in ys], rotation=90, va="center", **look)
    axes.tick_params(length=2.5, width=0.5, color=theme.grey, pad=1.5, direction="out")


def draw_graticule(axes: "Axes", view: Viewport, most: int = 5, theme: Theme = LIGHT) -> None:
    """Short ticks and labels: longitudes below the panel, latitudes left of it; or x and y of a plane."""
    if view.plane:
        _draw_coordinates(axes, view, most, theme)
        return
    west, south, east, north = view.degrees
    across, up = CORNER * (east - west), CORNER * (north - south)
    first, last = west + across, east - across
    if last - first >= 360:  # all of the Earth: nothing is seen beyond the antimeridian
        first, last = max(first, -180), min(last, 180)
    lons, lon_decimals = rounds(first, last, most)
    lats, lat_decimals = rounds(south + up, north - up, most)
    x, _ = sheet(np.array(lons), np.zeros(len(lons)))
    _, y = sheet(np.zeros(len(lats)), np.array(lats))
    axes.set_xticks(x, [degrees(lon, "E", "W", lon_decimals) for lon in lons], **style(DEGREES, colour=theme.grey))
    axes.set_yticks(
        y,
        [degrees(lat, "N", "S", lat_decimals) for lat in lats],
        rotation=90,
        va="center",
        **style(DEGREES, colour=theme.grey),
    )
    axes.tick_params(length=2.5, width=0.5, color=theme.grey, pad=1.5, direction="out")
