"""What the colours mean."""

from typing import TYPE_CHECKING

import numpy as np

from hazemap.draw.colour_scales import ERROR_BREAKS, ERROR_COLOURS, DensityScale, error_labels, short
from hazemap.draw.figure_layout import FigureLayout
from hazemap.draw.text_layout import GREY, height, style, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAR = 0.1  # inches, the height of the bar of densities
ROW = 0.17  # inches, from one class of errors to the next
ERROR_LEGEND_HEIGHT = (len(ERROR_BREAKS) + 1) * ROW + 0.05


def draw_densities(page: FigureLayout, left: float, top: float, width: float, scale: DensityScale, unit: str) -> "Axes":
    """A bar of all colours with round densities below it and the unit above; 0.5 inches high."""
    page.write(left, top + 0.15, unit, va="baseline", gid="unit", **style(8, weight="bold"))
    axes = page.axes(left, top + 0.22, width, BAR, label="density legend")
    # The picture is even in colour, so the densities of its steps are those at even places of the scale.
    place = np.linspace(0, 1, 512)
    density = scale.low * np.sinh(place * np.arcsinh(scale.high / scale.low))
    axes.imshow(scale.colours(density)[None], extent=(0, 1, 0, 1), aspect="auto", interpolation="nearest")
    ticks = scale.ticks()
    axes.set_xticks(scale.position(np.array([value for value, _ in ticks])), [label for _, label in ticks], **style(7))
    if scale.densest > scale.high:
        page.write(left + width + 0.08, top + 0.22 + BAR / 2, f"up to {short(scale.densest)}", va="center", **style(7))
    axes.tick_params(length=2, width=0.5, color=GREY, pad=1.5)
    for spine in axes.spines.values():
        spine.set(linewidth=0.4, color=GREY)
    return axes


def head_errors(page: FigureLayout, left: float, bottom: float, width: float) -> None:
    """What a panel of uncertainty shows, in up to three lines above `bottom`."""
    lines = wrapped("standard error, as a share of the number", width, 7)
    page.write(left, bottom, "\n".join(lines), va="bottom", **style(7))
    above = bottom - height(len(lines), 7) - 0.03
    page.write(left, above, "How sure is each cell?", va="bottom", **style(8, weight="bold"))


def draw_errors(page: FigureLayout, left: float, top: float, width: float) -> "Axes":
    """One swatch a class, surest first, `ERROR_LEGEND_HEIGHT` inches high."""
    from matplotlib.patches import Rectangle

    axes = page.axes(left, top, width, ERROR_LEGEND_HEIGHT, label="uncertainty legend")
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(ERROR_LEGEND_HEIGHT, 0)
    for row, (label, colour) in enumerate(zip(error_labels(), ERROR_COLOURS, strict=True)):
        y = 0.05 + row * ROW
        axes.add_patch(Rectangle((0.01, y), 0.24, 0.12, facecolor=colour, edgecolor=GREY, linewidth=0.4))
        axes.text(0.33, y + 0.06, label, va="center_baseline", **style(7))
    return axes
