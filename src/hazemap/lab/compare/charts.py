"""Charts of a comparison: curves with bands, and dots with whiskers; and its figures, from results to pictures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf, isfinite, log10
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from hazemap.draw.figure_layout import GREY as EDGE
from hazemap.draw.figure_layout import INK, MARGIN, FigureLayout, style, width
from hazemap.lab.compare.map_scores import MEASURES, MetricLabel
from hazemap.lab.compare.results import ResultMean, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


GREY, RED, BLUE, PINK, ORANGE, GREEN, SKY = [
    "#6a6f78",
    "#c8480a",
    "#0067a8",
    "#b4588e",
    "#c98a00",
    "#00815c",
    "#3d9fd0",
]
"""Okabe and Ito's colours (2008), darkened for thin lines on white: told apart with any colour blindness."""


Dash = Literal["-", "--", "-.", ":", ""]


HTF_LOW, HTF_HIGH = "HTF, ε′ = 0.0005", "HTF, ε′ = 0.001"
"""HTF with so much ε for the cuts of a level, as in the paper."""


class PlotStyle(NamedTuple):
    """Colour, marker and dash; `strong` methods are drawn thicker and above the others."""

    colour: str
    marker: str
    dash: Dash
    strong: bool = False


LENGTHS = ("median", "K√m", "m = 114", "worst case")
ARRAYS, LEVY = (tuple(f"{name}, {length}" for length in LENGTHS) for name in ("Array-Averaging", "Levy"))
"""Means of arrays, by how their length is chosen."""

_QUADTREES = ("quadtree (geometric)", "quadtree (uniform)")

FAMILIES: tuple[tuple[str, bool, tuple[str, ...]], ...] = (
    (
        GREY,
        False,
        (
            "singular",
            "one count",
            "Laplace, clipped",
            "top 0.01 %",
            "top 0.001 %",
            "the best grid of one sample, no privacy",
            "plain Laplace",
            "everybody stays",
            "flat",
        ),
    ),
    (RED, False, ("UG", "AG", "4-ary", "ε-dependent Quantile, K√m", "ε-dependent Quantile, median")),
    (BLUE, False, (*_QUADTREES, "HB", "prefix tree", "PrivTree", "pyramid (published)", "binary", *ARRAYS)),
    (PINK, False, ("Privlet", "DAWA", "17-ary", *(f"Quantile, {length}" for length in LENGTHS))),
    (ORANGE, False, ("kd-tree (geometric)", "kd-tree (uniform)", "kd-tree (hybrid)", "HTF", HTF_LOW, HTF_HIGH, *LEVY)),
    (GREEN, True, ("adaptive", "auto", "pyramid", "HTF+", "HB+", "balanced", "CHOP-USER", "chosen")),
)
"""Colour, whether it is ours, and the methods of each family by name."""

_MARKERS = "osD^vP"
_ROUND = (SKY, GREY, ORANGE, PINK, BLUE, RED)


def plot_style(name: str) -> PlotStyle:
    """The mark of a method; one that is not in a family gets one by the letters of its name, always the same.

    >>> plot_style("AG").colour == plot_style("UG").colour, plot_style("AG").marker == plot_style("UG").marker
    (True, False)
    """
    for colour, strong, names in FAMILIES:
        if name in names:
            at = names.index(name)
            return PlotStyle(colour, _MARKERS[at % len(_MARKERS)], _dash(at), strong)
    turn = sum(name.encode())
    return PlotStyle(_ROUND[turn % len(_ROUND)], _MARKERS[turn % len(_MARKERS)], _dash(turn))


def _dash(at: int) -> Dash:
    dashes: tuple[Dash, ...] = ("-", "--", "-.", ":")
    return dashes[at % len(dashes)]


PAPER = 10.0
"""Inches across; pictures have 200 pixels an inch."""

SMALL, PLAIN = 8.0, 9.0
"""Points of numbers and of names: still read at half the size."""

BETWEEN, ABOVE, BELOW, LEFT = 0.7, 0.36, 0.5, 0.42
"""Inches: from panel to panel, for a panel's heading, for the numbers and the name of its axis, left of the first."""

GRID = "#dfe1e4"
MOST_NUMBERS = 6
"""On an axis."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A method's scores along something, each with its band."""

    name: str
    points: Sequence[tuple[float, ResultMean]]
    mark: PlotStyle | None = None

    @property
    def look(self) -> PlotStyle:
        """Its mark, or that of the method of its name."""
        return self.mark or plot_style(self.name)


@dataclass(frozen=True, eq=False)
class ChartPanel:
    """Curves under a heading; `level` are methods that do not vary along the axis, drawn across."""

    heading: str
    curves: Sequence[Curve]
    measure: MetricLabel
    along: str
    level: Sequence[tuple[str, ResultMean]] = ()
    logarithmic: bool = True
    ticks: Sequence[float] = ()


def draw_curves(panels: Sequence[ChartPanel], *, title: str, caption: str = "", columns: int = 3) -> "Figure":
    """Panels side by side and a legend beneath; bands are 95 % intervals of the mean."""
    names = list(dict.fromkeys(name for panel in panels for name in _names(panel)))
    columns = min(columns, len(panels))
    across = (PAPER - 2 * MARGIN - LEFT - BETWEEN * (columns - 1)) / columns
    tall = min(0.82 * across, 3.4)
    rows = ceil(len(panels) / columns)
    legend = Legend.of(names, {name: _look(panels, name) for name in names})
    page = FigureLayout.ruled(PAPER, rows * (ABOVE + tall + BELOW) + legend.height, title, caption)
    for number, panel in enumerate(panels):
        row, column = divmod(number, columns)
        left, top = MARGIN + LEFT + column * (across + BETWEEN), page.top + row * (ABOVE + tall + BELOW) + ABOVE
        axes = page.axes(left, top, across, tall, f"panel {number}")
        page.write(left, top - 0.07, panel.heading, va="bottom", **style(PLAIN, weight="bold"))
        _fill(axes, panel)
    legend.draw(page, page.top + rows * (ABOVE + tall + BELOW))
    return page.figure


def draw_dots(
    groups: Sequence[tuple[str, Sequence[tuple[str, Sequence[tuple[str, ResultMean]]]]]],
    measure: MetricLabel,
    *,
    title: str,
    caption: str = "",
) -> "Figure":
    """Methods under each other, best first; a panel for each group and a dot with its whisker for each series.

    `groups` are (heading, [(series, [(method, mean)])]); methods are ordered by the mean of their logarithms over all.
    """
    names = _ranked(groups, measure)
    series = list(dict.fromkeys(name for _, parts in groups for name, _ in parts))
    names_wide = max(width(name, PLAIN, "bold" if plot_style(name).strong else "normal") for name in names) + 0.12
    columns = min(3, len(groups))
    across = (PAPER - 2 * MARGIN - names_wide - 0.25 * (columns - 1)) / columns
    tall = 0.21 * len(names) + 0.15
    rows = ceil(len(groups) / columns)
    shades = dict(zip(series, _shades(len(series)), strict=True))
    legend = Legend.of(
        series,
        {name: PlotStyle(shade, marker, "") for (name, shade), marker in zip(shades.items(), "osDv^P", strict=False)},
    )
    page = FigureLayout.ruled(PAPER, rows * (ABOVE + tall + BELOW) + legend.height, title, caption)
    for number, (heading, parts) in enumerate(groups):
        row, column = divmod(number, columns)
        left = MARGIN + names_wide + column * (across + 0.25)
        top = page.top + row * (ABOVE + tall + BELOW) + ABOVE
        axes = page.axes(left, top, across, tall, f"panel {number}")
        page.write(left, top - 0.07, heading, va="bottom", **style(PLAIN, weight="bold"))
        for name, means in parts:
            look = legend.looks[name]
            for method, mean in means:
                if mean.number:
                    at = len(names) - 1 - names.index(method)
                    scale = measure.factor
                    axes.plot(
                        [scale * mean.low, scale * mean.high],
                        [at, at],
                        "-",
                        color=look.colour,
                        linewidth=1.6,
                        alpha=0.7,
                    )
                    axes.plot(
                        [scale * mean.mean],
                        [at],
                        look.marker,
                        color=look.colour,
                        markersize=5,
                        markeredgecolor="white",
                        markeredgewidth=0.5,
                    )
        if measure.logarithmic:
            axes.set_xscale("log")
            _round_ticks(axes, "x")
        axes.set_ylim(-0.7, len(names) - 0.3)
        axes.set_yticks(range(len(names)), names[::-1] if column == 0 else [""] * len(names), **style(PLAIN))
        for label in axes.get_yticklabels():
            label.set_fontweight("bold" if plot_style(label.get_text()).strong else "normal")
        axes.grid(axis="both", color=GRID, linewidth=0.6, zorder=0)
        axes.set_axisbelow(True)
        axes.set_xlabel(measure.words if columns < 3 else measure.short, labelpad=3, **style(SMALL))
        _framed(axes)
    legend.draw(page, page.top + rows * (ABOVE + tall + BELOW))
    return page.figure


def _ranked(groups: Sequence[Any], measure: MetricLabel) -> list[str]:
    """Methods, best first: by the mean of the logarithm of what was found over all panels and series."""
    found: dict[str, list[float]] = {}
    for _, parts in groups:
        for _, means in parts:
            for method, mean in means:
                if mean.number:
                    found.setdefault(method, []).append(log10(mean.mean) if mean.mean > 0 else -9.0)
    sign = -1 if measure.higher else 1
    return sorted(found, key=lambda name: sign * sum(found[name]) / len(found[name]))


def _shades(number: int) -> list[str]:
    """From light to dark, told apart in grey too."""
    steps = ("#e0873a", "#b32b47", "#3c1346")
    return [steps[0], steps[2]] if number == 2 else [steps[i % 3] for i in range(number)]


@dataclass(frozen=True, eq=False)
class Legend:
    """Names with their marks in columns, as long as they need."""

    names: Sequence[str]
    looks: dict[str, PlotStyle]
    columns: int
    height: float

    @classmethod
    def of(cls, names: Sequence[str], looks: dict[str, PlotStyle]) -> "Legend":
        """As many columns as fit."""
        widest = max(width(name, PLAIN) for name in names) + 0.55
        columns = max(1, min(len(names), floor((PAPER - 2 * MARGIN) / widest)))
        return cls(names, looks, columns, 0.2 * ceil(len(names) / columns) + 0.12)

    def draw(self, page: FigureLayout, top: float) -> None:
        """Row by row at this place of the page."""
        from matplotlib.lines import Line2D

        lines = [
            Line2D(
                [],
                [],
                color=look.colour,
                marker=look.marker,
                linestyle=look.dash or "none",
                linewidth=2.4 if look.strong else 1.5,
                markersize=5,
            )
            for look in (self.looks[name] for name in self.names)
        ]
        rows = ceil(len(self.names) / self.columns)
        order = [row * self.columns + column for column in range(self.columns) for row in range(rows)]
        order = [at for at in order if at < len(self.names)]  # matplotlib fills column by column
        made = page.figure.legend(
            [lines[at] for at in order],
            [self.names[at] for at in order],
            loc="upper left",
            bbox_to_anchor=(MARGIN / page.width, 1 - top / page.height),
            borderaxespad=0,
            ncols=self.columns,
            frameon=False,
            handlelength=2.6,
            columnspacing=1.4,
            labelspacing=0.35,
            fontsize=PLAIN,
        )
        for text in made.get_texts():
            text.set(**style(PLAIN))


def _names(panel: ChartPanel) -> list[str]:
    return [curve.name for curve in panel.curves] + [name for name, _ in panel.level]


def _look(panels: Sequence[ChartPanel], name: str) -> PlotStyle:
    found = [curve.look for panel in panels for curve in panel.curves if curve.name == name]
    return found[0] if found else plot_style(name)._replace(marker="")


def _fill(axes: "Axes", panel: ChartPanel) -> None:
    scale = panel.measure.factor
    for curve in panel.curves:
        if not curve.points:
            continue
        look = curve.look
        x = [value for value, _ in curve.points]
        middle, low, high = (
            [scale * getattr(mean, part) for _, mean in curve.points] for part in ("mean", "low", "high")
        )
        axes.fill_between(x, low, high, color=look.colour, alpha=0.16, linewidth=0, zorder=2)
        axes.plot(
            x,
            middle,
            color=look.colour,
            linestyle=look.dash,
            marker=look.marker,
            markersize=4.5,
            markeredgecolor="white",
            markeredgewidth=0.5,
            linewidth=2.2 if look.strong else 1.3,
            zorder=5 if look.strong else 4,
        )
    for name, mean in panel.level:
        look = plot_style(name)
        axes.axhspan(scale * mean.low, scale * mean.high, color=look.colour, alpha=0.16, linewidth=0, zorder=2)
        axes.axhline(
            scale * mean.mean, color=look.colour, linestyle=look.dash, linewidth=2.2 if look.strong else 1.3, zorder=3
        )
    if panel.logarithmic:
        axes.set_xscale("log")
    if panel.ticks:
        axes.set_xticks(list(panel.ticks), [written(tick) for tick in panel.ticks], **style(SMALL))
    elif panel.logarithmic:
        _round_ticks(axes, "x")
    else:
        _plain_ticks(axes, "x")
    if panel.measure.logarithmic:
        axes.set_yscale("log")
        _round_ticks(axes, "y")
    else:
        _plain_ticks(axes, "y")
    axes.set_xlabel(panel.along, labelpad=3, **style(SMALL))
    axes.set_ylabel(panel.measure.short, labelpad=3, **style(SMALL))
    axes.grid(color=GRID, linewidth=0.6, zorder=0)
    _framed(axes)


def _round_ticks(axes: "Axes", which: str) -> None:
    """1, 2, 5 of every decade, or 1 alone where that would be too many; never an exponent."""
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    decades = range(floor(log10(low)) - 1, ceil(log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        ticks = [digit * 10.0**decade for decade in decades for digit in digits]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) <= MOST_NUMBERS:
            break
    while len(ticks) > MOST_NUMBERS:
        ticks = ticks[::2]
    if len(ticks) > 1:
        _set(axes, which, ticks)
    else:  # not a decade: no step is round in logarithms
        _plain_ticks(axes, which)


def _plain_ticks(axes: "Axes", which: str) -> None:
    from matplotlib.ticker import MaxNLocator

    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    ticks = MaxNLocator(MOST_NUMBERS - 1).tick_values(low, high)
    _set(axes, which, [float(tick) for tick in ticks if low <= tick <= high])


def _set(axes: "Axes", which: str, ticks: list[float]) -> None:
    put = axes.set_xticks if which == "x" else axes.set_yticks
    put(ticks, [written(tick) for tick in ticks], **style(SMALL))
    axes.minorticks_off()


def written(tick: float) -> str:
    """A number on an axis, as short as it can be and never with an exponent.

    >>> written(2_000_000.0), written(0.05), written(-0.25), written(0.0)
    ('2,000,000', '0.05', '-0.25', '0')
    """
    digits = 0 if tick == 0 else max(0, 4 - floor(log10(abs(tick))))
    text = f"{tick:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _framed(axes: "Axes") -> None:
    axes.tick_params(length=2.5, width=0.5, color=EDGE, labelcolor=INK)
    for spine in axes.spines.values():
        spine.set(linewidth=0.5, color=EDGE)


Draw = Callable[[Results], "Figure"]

BANDS = "Lines are means over repetitions with fresh noise, bands (whiskers) their 95 % intervals."


def against_epsilon(score: str, title: str) -> Draw:
    """A score against ε, a panel for each map; what has no ε is drawn across."""

    def draw(results: Results) -> "Figure":
        priced = [epsilon for epsilon in sorted(results.named("epsilon")) if isfinite(epsilon)]
        private = results.where(epsilon=priced)
        without = results.where(epsilon=inf)
        panels = [
            ChartPanel(
                heading(results, place),
                [
                    Curve(method, private.where(map=place, method=method).along("epsilon", score))
                    for method in private.named("method")
                ],
                MEASURES[score],
                "ε",
                level=[
                    (name, mean)
                    for name in without.named("method")
                    if (mean := without.where(map=place, method=name).mean(score)).number
                ],
                ticks=priced,
            )
            for place in results.named("map")
        ]
        return draw_curves(panels, title=title, caption=f"{MEASURES[score].words}. {BANDS}")

    return draw


def ranking(score: str, title: str) -> Draw:
    """Every method's score, best first, a panel for each map and a dot for each ε."""

    def draw(results: Results) -> "Figure":
        groups = [
            (
                heading(results, place),
                [
                    (
                        f"ε = {epsilon:g}" if isfinite(epsilon) else "no ε",
                        [
                            (method, results.where(map=place, epsilon=epsilon, method=method).mean(score))
                            for method in results.named("method")
                        ],
                    )
                    for epsilon in sorted(results.named("epsilon"))
                ],
            )
            for place in results.named("map")
        ]
        return draw_dots(groups, MEASURES[score], title=title, caption=f"{MEASURES[score].words}. {BANDS}")

    return draw


def heading(results: Results, place: str) -> str:
    """A map's name and its people."""
    people = results.where(map=place).named("people")
    return f"{place} ({short(people[0])} people)" if people else place


def short(people: float) -> str:
    """A number of people as a heading says it.

    >>> short(3_500_000), short(32_561)
    ('3.5 M', '33 k')
    """
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if people >= size:
            return f"{people / size:.{0 if people >= 10 * size else 1}f} {letter}"
    return f"{people:.0f}"
