"""The kinds of figure that a comparison can be drawn as: each takes results and gives a picture."""

from collections.abc import Callable
from math import inf, isfinite
from typing import TYPE_CHECKING

from hazemap.lab.compare.charts import ChartPanel, Curve, draw_curves, draw_dots
from hazemap.lab.compare.map_scores import MEASURES
from hazemap.lab.compare.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
