"""Figures of scores against a parameter of methods, maps or settings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hazemap.lab.compare.charts import BANDS, ChartPanel, Curve, Draw, draw_curves
from hazemap.lab.compare.map_scores import MEASURES
from hazemap.lab.compare.results import ResultMean, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_TICKS = 8


@dataclass(frozen=True)
class FigurePart:
    """A panel: its heading, the score that it shows, and which trials are in it."""

    heading: str
    score: str
    where: tuple[tuple[str, Any], ...] = ()


def along(
    column: str,
    words: str,
    parts: Sequence[FigurePart],
    title: str,
    *,
    logarithmic: bool = True,
    columns: int = 3,
    bands: str = BANDS,
) -> Draw:
    """Scores against a column, a panel for each part; methods that have no value there are drawn across.

    `bands` ends the caption: what lines and bands are.
    """

    def draw(results: Results) -> "Figure":
        panels = []
        for part in parts:
            here = results.where(**dict(part.where))
            curves, level = list[Curve](), list[tuple[str, ResultMean]]()
            for method in here.named("method"):
                own = here.where(method=method)
                if own.named(column):
                    curves.append(Curve(method, own.along(column, part.score)))
                else:
                    level.append((method, own.mean(part.score)))
            ticks = sorted({x for curve in curves for x, _ in curve.points})
            panels.append(
                ChartPanel(
                    part.heading,
                    curves,
                    MEASURES[part.score],
                    words,
                    level,
                    logarithmic,
                    ticks if len(ticks) < MOST_TICKS else (),
                )
            )
        shown = "; ".join(dict.fromkeys(MEASURES[part.score].words for part in parts))
        return draw_curves(panels, title=title, caption=f"{shown}. {bands}", columns=columns)

    return draw
