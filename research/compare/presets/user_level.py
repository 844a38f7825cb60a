"""The experiments of the papers on values of people with many records (Rameshwar, Tandon et al. 2024)."""

from dataclasses import replace
from typing import TYPE_CHECKING

from hazemap.draw.figure_layout import INK
from hazemap.lab.compare.charts import (
    BANDS,
    BLUE,
    GREY,
    ORANGE,
    PINK,
    RED,
    SKY,
    ChartPanel,
    Curve,
    Draw,
    PlotStyle,
    draw_curves,
    ranking,
)
from hazemap.lab.compare.map_scores import MEASURES
from hazemap.lab.compare.presets import Preset
from hazemap.lab.compare.result_tables import Table
from hazemap.lab.compare.results import Results, mean_of
from research.compare.parameter_figures import FigurePart, along
from research.compare.user_level.distribution_trees import BINARY, CHOSEN, FLAT, FOUR, SEVENTEEN, Bins
from research.compare.user_level.interval_queries import IntervalQueries
from research.compare.user_level.mean_mechanisms import (
    ARRAYS,
    BALANCED,
    LEVY,
    MECHANISMS,
    PLAIN,
    QUANTILE,
    QUANTILE_OF_EPSILON,
)
from research.compare.user_level.mean_trials import Draws, Scaled
from research.compare.user_level.published_results import PUBLISHED, elsewhere, equalled, surpassed
from research.compare.user_level.user_suppression import CHOP_USER, EVERYBODY, EveryCell
from research.compare.user_level.worst_case_error import WorstCase

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOTE = """Values only are protected: how many samples each person has is public (Rameshwar et al. 2024)."""
AUTHORS = "figures of the authors’ code"
FAMILIES = {"Array-Averaging": ARRAYS, "Levy": LEVY, "Quantile": QUANTILE}


def draw_means(results: Results) -> "Figure":
    """The error of each family of methods along ε, ours and the plain one with each; and what the authors' code has."""
    panels = []
    for family, members in FAMILIES.items():
        names = [PLAIN.name, *(member.name for member in members), BALANCED.name]
        if family == "Quantile":
            names[-1:-1] = [QUANTILE_OF_EPSILON[1].name]
        curves = [Curve(name, results.where(method=name).along("epsilon", "mae")) for name in names]
        figures = [
            (epsilon, mean_of([error]))
            for name, errors in PUBLISHED.items()
            if name in names
            for epsilon, error in errors.items()
        ]
        curves = [curve for curve in curves if curve.points] + [Curve(AUTHORS, figures, PlotStyle(INK, "*", ""))]
        panels.append(ChartPanel(family, curves, MEASURES["mae"], "ε", ticks=(0.1, 0.2, 0.5, 1, 2)))
    caption = f"Mean absolute error, km/h; buses of Surat in one hexagon and hour. {BANDS}"
    return draw_curves(panels, title="The mean speed of one cell", caption=caption)


MEANS = Preset(
    "users-means",
    "means of one cell, ε 0.1 to 2 (Rameshwar et al. 2024, real data)",
    ("surat-cell",),
    MECHANISMS,
    ("0.1", "0.2", "0.5", "1", "2"),
    10,
    ("mae",),
    (Draws(30),),
    (("users-means", draw_means),),
    f"""{NOTE} Errors are in km/h, from the mean of all samples. Arrays hold people's means, as often as they have
    samples there, as in the authors' code, unless they are *of samples*, as in the paper; they are filled by BestFit,
    unless it says WrapAround. Their length m is the median of m_ℓ, that of the largest K√m (117 here), 114, or the
    worst-case optimum.""",
    noun="table",
    verdicts=(equalled, surpassed),
)

CELLS = Preset(
    "users-cells",
    "means of ten cells of two other tables, on which nothing was chosen, ε 0.5, 1, 2",
    tuple(f"{city}-cell-{rank}" for city in ("austin", "san-francisco") for rank in range(1, 6)),
    (ARRAYS[1], LEVY[1], QUANTILE[1], QUANTILE_OF_EPSILON[1], BALANCED),
    ("0.5", "1", "2"),
    4,
    (),
    (Draws(50),),
    (("users-cells", ranking("mae_part", "The mean speed of ten other cells")),),
    NOTE,
    noun="table",
    verdicts=(elsewhere,),
)

SCALES = (1, 2, 5, 10, 20, 50, 100)
SCALED = (PLAIN, ARRAYS[0], ARRAYS[3], LEVY[1], QUANTILE[1], QUANTILE_OF_EPSILON[1], BALANCED)


def _scaled(what: str, word: str) -> Preset:
    parts = [FigurePart("error of the mean", "mae"), FigurePart("noise that is added last", "noise")]
    return Preset(
        f"users-{what}",
        f"means of one cell with λ times as many {word}, independent values, ε = 1 (Rameshwar et al. 2024)",
        ("surat-cell",),
        SCALED,
        ("1",),
        10,
        ("mae",),
        tuple(Scaled(20, **{what: scale}) for scale in SCALES),
        ((f"users-{what}", along(f"set_{what}", "λ", parts, f"λ times as many {word}", columns=2)),),
        f"""{NOTE} Numbers of samples are those of the table; all values are independent, normal with the mean and the
        variance of the table, clipped to the bounds. Every repetition has values of its own, the same for all methods.
        Errors are in km/h. How large the noise of a balanced mean is depends on the values, and no answer says it.
        Values are read in steps of 0.016 km/h; a balanced mean is one of these, and so off by 0.004 on average however
        many people there are.""",
        noun="table",
        across=f"set_{what}",
        verdicts=(),
    )


SAMPLES, PEOPLE = _scaled("samples", "samples of each person"), _scaled("people", "people")

_STEPS = tuple(f"{10 ** (exponent / 4):.3g}" for exponent in range(-12, 9))
_FIXED = tuple(replace(ARRAYS[2], name="Array-Averaging", length=m, at=float(m)) for m in (1, *range(9, 420, 12)))
_CURVES = {"0.01": GREY, "0.03": SKY, "0.1": BLUE, "0.3": PINK, "1": ORANGE, "3": RED}
_RULES = (ARRAYS[3], ARRAYS[0], ARRAYS[1])


def optima(results: Results) -> Table:
    """The best length for some ε, and how wrong it and the other rules are in the worst case."""
    rows, ruled = [], results.where(at=None)
    epsilons = sorted(ruled.named("epsilon"))
    for epsilon in epsilons[:: max(1, len(epsilons) // 5)]:
        best, *others = (ruled.where(epsilon=epsilon, method=method.name) for method in _RULES)
        errors = [f"{part.mean('worst').mean:.2f}" for part in (best, *others)]
        rows.append((f"{epsilon:g}", f"{best.mean('length').mean:.0f}", *errors))
    head = ("ε", "m^(ε)", "its worst case, km/h", "that of the median", "that of K√m")
    return Table("The worst-case optimum", (head, *rows))


def draw_lengths(results: Results) -> "Figure":
    """The best length and its worst case along ε; the worst case of every length for some ε."""
    here, every = results.where(at=None), results.where(method="Array-Averaging")
    panels = [
        ChartPanel(
            words,
            [Curve(method.name, here.where(method=method.name).along("epsilon", score)) for method in _RULES],
            MEASURES[score],
            "ε",
        )
        for words, score in (("length of the arrays", "length"), ("its worst case", "worst"))
    ]
    curves = [
        Curve(f"ε = {epsilon}", every.where(epsilon=float(epsilon)).along("at", "worst"), PlotStyle(colour, "", "-"))
        for epsilon, colour in _CURVES.items()
    ]
    panels.append(
        ChartPanel("the worst case of every length", curves, MEASURES["worst"], "length m", logarithmic=False)
    )
    caption = "Array-Averaging on the numbers of samples of the table; worst cases in km/h."
    return draw_curves(panels, title="The worst-case optimum", caption=caption)


LENGTHS = Preset(
    "users-lengths",
    "the length of arrays that is best in the worst case, m^(ε), and the worst case of every length",
    ("surat-cell",),
    _RULES,
    _STEPS,
    1,
    (),
    (WorstCase(),),
    (("users-lengths", draw_lengths),),
    f"""{NOTE} Errors are in km/h: the largest bias over all tables with these numbers of samples, and the mean size of
    the noise.""",
    more=(Preset("", "", ("surat-cell",), _FIXED, tuple(_CURVES), 1, (), (WorstCase(),)),),
    noun="table",
    verdicts=(optima,),
)

_TABLES = {
    "austin-cells": "buses of Austin",
    "san-francisco-cells": "cabs of San Francisco",
    "one-heavy-person": "one heavy person",
}
_LEASTS = (1, 10)


def _prices(statistics: int) -> Draw:
    """What a release of all cells costs, before and after, a panel for each table."""
    parts = [
        FigurePart(
            f"{words}, {'all cells' if least == 1 else f'cells of {least} people'}",
            "price",
            (("map", place), ("set_least", least), ("set_statistics", statistics)),
        )
        for least in _LEASTS
        for place, words in _TABLES.items()
        if least == 1 or place != "one-heavy-person"
    ]
    title = "What all means cost" if statistics == 1 else "What all means and variances cost"
    return along("epsilon", "ε of a cell", parts, title, bands="Nothing is drawn.")


CHOP = Preset(
    "users-chop",
    "what a release of all cells costs without and with CHOP-USER, at equal worst-case error, ε 0.1 to 2",
    tuple(_TABLES),
    (EVERYBODY, CHOP_USER),
    ("0.1", "0.2", "0.3", "0.5", "0.7", "1", "1.4", "2"),
    1,
    ("factor",),
    tuple(EveryCell(least, statistics) for statistics in (1, 2) for least in _LEASTS),
    (("users-chop", _prices(1)), ("users-chop-variance", _prices(2))),
    f"""{NOTE} A person pays ε for each cell they are in, and the release costs K·ε, K the most cells of anybody.
    CHOP-USER leaves people out of cells as long as no worst-case error rises above the largest that there was. *least*
    is the number of people that a cell has to have, *statistics* are 1 for the mean, 2 for the variance as well.""",
    pairs=tuple(
        (place, EveryCell(least, statistics))
        for place in _TABLES
        for statistics in (1, 2)
        for least in _LEASTS
        if least == 1 or place != "one-heavy-person"
    ),
    noun="table",
    verdicts=(),
)

DISTRIBUTIONS = Preset(
    "users-distributions",
    "distributions over 100, 1,000 and 10,000 bins, from trees of different branchings and part by part, ε = 0.1 and 1",
    ("two-humps",),
    (CHOSEN, BINARY, FOUR, SEVENTEEN, FLAT, IntervalQueries()),
    ("0.1", "1"),
    5,
    ("cdf",),
    tuple(Bins(bins, 20) for bins in (100, 1_000, 10_000)),
    (
        (
            "users-distributions",
            along(
                "set_bins",
                "bins, K",
                [FigurePart(f"ε = {epsilon}", "cdf", (("epsilon", float(epsilon)),)) for epsilon in ("0.1", "1")],
                "Distributions, by the branching of their tree",
                columns=2,
            ),
        ),
    ),
    """Adding or removing a person is protected. All levels of a tree have an equal part of the budget; after least
    squares over the tree, parts are made to rise from 0 to 1. The chosen branchings are 10 × 10, 10 × 10 × 10 and
    22 × 22 × 21. *Interval queries* ask for each of the K parts with a K-th of the budget.""",
    noun="table",
    across="set_bins",
    verdicts=(),
)

PRESETS = (MEANS, CELLS, SAMPLES, PEOPLE, LENGTHS, CHOP, DISTRIBUTIONS)
