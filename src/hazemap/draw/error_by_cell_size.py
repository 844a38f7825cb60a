"""Charts for planning: the error of cells of each size, before any data is touched."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hazemap.draw.colour_scales import ERROR_BREAKS, ERROR_COLOURS, error_labels
from hazemap.draw.figure_layout import GREY, INK, MARGIN, FigureLayout, style
from hazemap.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

LINES = (("#b32b47", "-", "o"), ("#3c1346", "--", "s"), ("#e56e30", "-.", "^"), ("#1f7b87", ":", "D"))
HEIGHT = 0.52  # of the chart's width
MOST_LABELS = 9  # on an axis
BEST, WORST = 1e-3, 10.0  # relative errors beyond which nobody needs to see a curve


@dataclass(frozen=True, eq=False)
class ErrorCurve:
    """What one way of measuring promises: for cells of each side (metres) the expected relative standard error.

    Both are float64[levels] and positive; 1 is 100 %.

    >>> ErrorCurve("a busy place", np.array([100.0, 400.0]), np.array([0.8, 0.05])).error_at(200.0)
    0.2
    """

    name: str
    sides: NDArray[np.float64]
    errors: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.sides.ndim != 1 or self.sides.shape != self.errors.shape or not self.sides.size:
            raise InputError("a curve of errors needs one error for each cell size, and at least one")
        for numbers in (self.sides, self.errors):
            if not (np.isfinite(numbers) & (numbers > 0)).all():
                raise InputError("cell sizes and relative errors must be finite and positive")

    def error_at(self, side: float) -> float:
        """The error for cells of a side, on the straight line between its neighbours in logarithms."""
        order = np.argsort(self.sides)
        logarithm = np.interp(np.log(side), np.log(self.sides[order]), np.log(self.errors[order]))
        return float(round(np.exp(logarithm), 12))


def draw_plan(
    curves: Sequence[ErrorCurve],
    *,
    chosen: float | None = None,
    title: str | None = None,
    caption: str = "",
    width: float = 8.0,
) -> "Figure":
    """Errors against the size of cells, on the classes that maps of uncertainty use.

    `chosen` is the side in metres that would be used, marked on the first curve. `width` is in inches.
    """
    if not 1 <= len(curves) <= len(LINES):
        raise InputError(f"a chart can show 1 to {len(LINES)} curves; found {len(curves)}")
    if chosen is not None and not chosen > 0:
        raise InputError(f"the chosen cell size must be a positive number of metres; found {chosen}")
    left, right, above, below = MARGIN + 0.45, MARGIN + 0.85, 0.46, 0.48
    across = width - left - right
    page = FigureLayout.ruled(width, above + HEIGHT * across + below, title, caption)
    heading = "standard error, as a share of a cell’s number"
    page.write(MARGIN, page.top + 0.12, heading, va="center", **style(8, weight="bold"))
    axes = page.axes(left, page.top + above, across, HEIGHT * across, "plan")

    _frame(axes, curves, chosen)
    drawn: list[Line2D] = []
    for curve, (colour, line, marker) in zip(curves, LINES, strict=False):
        order = np.argsort(curve.sides)
        drawn += axes.plot(
            curve.sides[order],
            curve.errors[order],
            color=colour,
            linestyle=line,
            linewidth=1.8,
            marker=marker,
            markersize=4.5,
            markeredgecolor="white",
            markeredgewidth=0.6,
            zorder=4,
        )
    if chosen is not None:
        _mark(axes, curves[0], chosen)
    if any(curve.name for curve in curves):
        names = [curve.name for curve in curves]
        legend = axes.legend(drawn, names, loc="upper right", frameon=False, handlelength=3, fontsize=8)
        for text in legend.get_texts():
            text.set(**style(8))
    return page.figure


def _frame(axes: "Axes", curves: Sequence[ErrorCurve], chosen: float | None) -> None:
    """Limits, bands of the classes with their names at the right, and round numbers on both axes."""
    errors = np.concatenate([curve.errors for curve in curves])
    low = min(max(float(errors.min()) / 1.6, BEST), ERROR_BREAKS[0] / 2, float(errors.max()) / 2)
    high = max(min(float(errors.max()) * 1.6, WORST), 2 * ERROR_BREAKS[-1], 2 * float(errors.min()))
    sides = np.concatenate([curve.sides for curve in curves])[(low < errors) & (errors < high)]
    sides = np.append(sides, [] if chosen is None else [chosen])
    axes.set(xscale="log", yscale="log")
    margin = max(1.25, 2.2 / (sides.max() / sides.min()) ** 0.5)  # in all a factor of 4.8 or more
    axes.set_xlim(float(sides.min()) / margin, float(sides.max()) * margin)
    axes.set_ylim(low, high)
    edges = (low, *ERROR_BREAKS, high)
    for (bottom, top), colour, label in zip(pairwise(edges), ERROR_COLOURS, error_labels(), strict=True):
        axes.axhspan(bottom, top, color=colour, alpha=0.35, linewidth=0, zorder=0)
        axes.text(1.015, (bottom * top) ** 0.5, label, transform=axes.get_yaxis_transform(), va="center", **style(7))
    rungs = [digit * 10.0**power for power in range(-6, 2) for digit in (1, 2, 5)]
    shown = [rung for rung in rungs if low < rung < high]
    if len(shown) > MOST_LABELS:
        shown = [rung for rung in shown if f"{rung:e}"[0] == "1"]
    axes.set_yticks(shown, [f"{100 * rung:g} %" for rung in shown], **style(7))
    sizes = [digit * 10.0**power for power in range(-6, 9) for digit in (1, 2, 5)]
    shown = [size for size in sizes if axes.get_xlim()[0] < size < axes.get_xlim()[1]]
    if len(shown) > MOST_LABELS:
        shown = [size for size in shown if f"{size:e}"[0] == "1"]
    axes.set_xticks(shown, [_metres(size) for size in shown], **style(7))
    axes.set_xlabel("side of a cell", labelpad=4, **style(8, weight="bold"))
    axes.minorticks_off()
    axes.tick_params(length=2.5, width=0.5, color=GREY)


def _mark(axes: "Axes", curve: ErrorCurve, chosen: float) -> None:
    """A line at the chosen size, and what the first curve promises there."""
    error = curve.error_at(chosen)
    low, high = axes.get_ylim()
    axes.axvline(chosen, color=INK, linewidth=0.8, zorder=3)
    axes.plot([chosen], [min(max(error, low), high)], "o", color=INK, markersize=7, zorder=5, gid="chosen")
    west, east = np.log(axes.get_xlim())
    place = (np.log(chosen) - west) / (east - west)
    axes.annotate(
        f"chosen: {_metres(chosen)}, ± {100 * error:.2g} %",
        (chosen, high),
        xytext=(0, 3),
        textcoords="offset points",
        ha="left" if place < 0.2 else "right" if place > 0.8 else "center",
        va="bottom",
        **style(8, weight="bold"),
    )


def _metres(length: float) -> str:
    """A length to two digits: 250 m, 1.2 km."""
    rounded = float(f"{length:.2g}")
    return f"{rounded / 1000:g} km" if rounded >= 1000 else f"{rounded:g} m"
