"""Charts of releases over time: totals with intervals, errors, and how likely noise alone is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hazemap.draw.figure_layout import GREY, INK, MARGIN, FigureLayout, style
from hazemap.errors import InputError
from hazemap.machine_code.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE, SECOND, ALARM = "#1f7b87", "#e56e30", "#b32b47"
PANEL, BETWEEN = 1.55, 0.5  # inches
MOST_LABELS = 8
LEAST = 1e-9


@dataclass(frozen=True)
class SeriesNumbers:
    """What is drawn of each release; `places` are rising numbers of periods, between which releases may be missing."""

    places: Sequence[int]
    names: Sequence[str]
    totals: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]
    total_errors: Sequence[float]
    cell_errors: Sequence[float]
    total_ps: Sequence[float | None]
    cell_ps: Sequence[float | None]


def draw_series(
    numbers: SeriesNumbers, *, alpha: float, title: str | None = None, caption: str = "", width: float = 9.0
) -> "Figure":
    """One chart above the other, over the same periods; p-values up to `alpha` are marked. `width` is in inches."""
    if not numbers.places:
        raise InputError("a chart of a series needs one release at least")
    left = MARGIN + 0.6
    across = width - left - MARGIN
    page = FigureLayout.ruled(width, 3 * (PANEL + BETWEEN) + 0.1, title, caption)
    places = np.array(numbers.places, dtype=float)
    panels = []
    for number, heading in enumerate(
        ("people in all, with 95 % intervals", "standard errors", "p: how often noise alone changes as much, or more")
    ):
        top = page.top + number * (PANEL + BETWEEN) + 0.34
        page.write(left, top - 0.12, heading, va="center", **style(8, weight="bold"))
        axes = page.axes(left, top, across, PANEL, f"series {number}")
        axes.set_xlim(places[0] - 0.7, places[-1] + 0.7)
        _label(axes, numbers)
        panels.append(axes)
    _totals(panels[0], places, numbers)
    _errors(panels[1], places, numbers)
    _chances(panels[2], places, numbers, alpha)
    return page.figure


def _totals(axes: "Axes", places: Floats, numbers: SeriesNumbers) -> None:
    axes.vlines(places, numbers.lows, numbers.highs, color=LINE, linewidth=_thin(places), alpha=0.55, gid="intervals")
    axes.plot(places, numbers.totals, "o", color=LINE, markersize=_dot(places), markeredgewidth=0)
    low, high = min(numbers.lows), max(numbers.highs)
    room = 0.06 * (high - low) or 1.0
    axes.set_ylim(min(low, 0.0) - room, high + room)
    axes.axhline(0, color=GREY, linewidth=0.5)
    _ticks(axes)


def _errors(axes: "Axes", places: Floats, numbers: SeriesNumbers) -> None:
    drawn = [
        axes.plot(places, errors, shape, color=colour, markersize=_dot(places), markeredgewidth=0, linewidth=0.8)[0]
        for errors, shape, colour in ((numbers.total_errors, "o-", LINE), (numbers.cell_errors, "s-", SECOND))
    ]
    axes.set_yscale("log")
    both = [each for each in (*numbers.total_errors, *numbers.cell_errors) if each > 0]
    if both:
        axes.set_ylim(min(both) / 2, max(both) * 2)
    legend = axes.legend(drawn, ["of the total", "of a cell (median)"], frameon=False, ncols=2, loc="upper right")
    for text in legend.get_texts():
        text.set(**style(7))
    _ticks(axes)


def _chances(axes: "Axes", places: Floats, numbers: SeriesNumbers, alpha: float) -> None:
    axes.set_yscale("log")
    axes.set_ylim(LEAST / 3, 3)
    axes.axhline(alpha, color=ALARM, linewidth=0.8, linestyle="--", zorder=1)
    drawn = []
    for chances, shape, colour in ((numbers.total_ps, "o", LINE), (numbers.cell_ps, "s", SECOND)):
        known = np.array([np.nan if chance is None else max(chance, LEAST) for chance in chances])
        drawn += axes.plot(places, known, shape, color=colour, markersize=_dot(places), markeredgewidth=0)
        far = known <= alpha
        axes.plot(
            places[far], known[far], shape, color="none", markeredgecolor=ALARM, markersize=_dot(places) + 3, gid="far"
        )
    legend = axes.legend(drawn, ["the total", "the cells"], frameon=False, ncols=2, loc="lower right")
    for text in legend.get_texts():
        text.set(**style(7))
    _ticks(axes)


def _label(axes: "Axes", numbers: SeriesNumbers) -> None:
    """Names of some releases, evenly chosen."""
    chosen = range(0, len(numbers.places), -(-len(numbers.places) // MOST_LABELS))
    axes.set_xticks([numbers.places[each] for each in chosen], [numbers.names[each] for each in chosen], **style(7))
    axes.tick_params(length=2.5, width=0.5, color=GREY)


def _ticks(axes: "Axes") -> None:
    axes.minorticks_off()
    axes.tick_params(axis="y", labelsize=7, labelcolor=INK, length=2.5, width=0.5, color=GREY, left=True)
    if axes.get_yscale() == "linear":
        from matplotlib.ticker import MaxNLocator

        axes.yaxis.set_major_locator(MaxNLocator(5))
    else:
        from matplotlib.ticker import LogLocator

        axes.yaxis.set_major_locator(LogLocator(numticks=6))
        axes.minorticks_off()


def _dot(places: Floats) -> float:
    return 4.0 if len(places) <= 60 else 2.0


def _thin(places: Floats) -> float:
    return 1.4 if len(places) <= 60 else 0.7
