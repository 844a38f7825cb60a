"""The experiments of the paper on trees of even density (Shaham et al. 2022, section 7), on public maps.

The paper's maps are of phones in Los Angeles, which nobody else has: the city, of as many people, stands for it.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from hazemap.lab.compare.charts import HTF_HIGH, HTF_LOW, Draw, ranking
from hazemap.lab.compare.practices import (
    AG,
    HTF,
    HTF_PLUS,
    KD_GEOMETRIC,
    KD_UNIFORM,
    METHODS,
    QUADTREE,
    QUADTREE_UNIFORM,
    UG,
    Epsilons,
    Method,
)
from hazemap.lab.compare.presets import Preset
from hazemap.lab.compare.result_tables import Table
from hazemap.lab.compare.results import Results
from hazemap.lab.compare.trial_settings import Everyone
from research.compare.leaf_trials import MeasuredLeaves
from research.compare.parameter_figures import FigurePart, along
from research.compare.presets import htf_claims

EPSILONS = ("0.1", "0.3", "0.5")
SCORES = ("mre", "mre_2", "mre_6", "mre_10")
NOTE = "The paper's own map is not public: the city has as many people, in as many pixels."


def _searching(name: str, amount: str) -> Method:
    """HTF with this ε for the cuts of a level."""
    return replace(HTF.but(share_a_level=Epsilons(amount)), name=name)


LOW, HIGH = _searching(HTF_LOW, "0.0005"), _searching(HTF_HIGH, "0.001")


def _by_epsilon(score: str = "mre") -> list[FigurePart]:
    """Random rectangles, a panel for each ε."""
    return [FigurePart(f"rectangles, ε = {epsilon}", score, (("epsilon", float(epsilon)),)) for epsilon in EPSILONS]


def _by_size(*where: tuple[str, object]) -> list[FigurePart]:
    """Squares, a panel for each size."""
    return [FigurePart(f"squares of {size} %", f"mre_{size}", where) for size in (2, 6, 10)]


_SIX = [
    *_by_epsilon(),
    *(FigurePart(f"{part.heading}, ε = 0.1", part.score, (("epsilon", 0.1),)) for part in _by_size()),
]

HTF_4 = Preset(
    "htf-4",
    "HTF and kd-trees of every height (Shaham et al. 2022, figure 4)",
    ("city",),
    (
        *(tree.but(cuts=cuts).placed(cuts) for tree in (KD_GEOMETRIC, KD_UNIFORM) for cuts in range(4, 21, 2)),
        *(LOW, HIGH, HTF_PLUS),
    ),
    EPSILONS,
    5,
    SCORES,
    figures=(("htf-4", along("at", "height of the tree", _SIX, "HTF and kd-trees", logarithmic=False)),),
    note=NOTE,
    verdicts=(htf_claims.HTF_4,),
)

STOPS = (10, 50, 100)

_FIVE = [
    *(FigurePart(f"rectangles, stop at {stop}", "mre", (("set_stop_at", [stop, None]),)) for stop in STOPS),
    *_by_size(("set_stop_at", [50, None])),
]

HTF_5 = Preset(
    "htf-5",
    "HTF with three thresholds and grids (Shaham et al. 2022, figure 5)",
    ("city",),
    (UG, AG, *(tree.but(stop_at=stop) for stop in STOPS for tree in (LOW, HIGH)), HTF_PLUS),
    EPSILONS,
    5,
    SCORES,
    figures=(("htf-5", along("epsilon", "ε", _FIVE, "HTF and grids")),),
    note=f"{NOTE} Squares are asked of trees that stop at 50 people.",
    verdicts=(htf_claims.HTF_5,),
)

HTF_6 = Preset(
    "htf-6",
    "HTF and quadtrees of every height (Shaham et al. 2022, figure 6)",
    ("city",),
    (
        *(tree.but(level=level).placed(2 * level) for tree in (QUADTREE, QUADTREE_UNIFORM) for level in range(2, 11)),
        *(LOW, HIGH, HTF_PLUS),
    ),
    EPSILONS,
    5,
    SCORES,
    figures=(("htf-6", along("at", "height of the tree (cuts in two)", _SIX, "HTF and quadtrees", logarithmic=False)),),
    note=NOTE,
    verdicts=(htf_claims.HTF_6,),
)

HTF_7 = Preset(
    "htf-7",
    "every method on maps of different sparsity, ε = 0.1 (Shaham et al. 2022, figure 7)",
    ("city", "gaussian-20", "gaussian-50", "gaussian-100"),
    (*METHODS, LOW, HIGH),
    ("0.1",),
    5,
    SCORES,
    figures=(("htf-7", ranking("mre", "Every method on sparse and dense maps")),),
    note=NOTE,
    verdicts=(htf_claims.HTF_7,),
)

HTF_8 = Preset(
    "htf-8",
    "the time that every method takes, ε = 0.1 (Shaham et al. 2022, figure 8)",
    ("city",),
    (*METHODS, LOW, HIGH),
    ("0.1",),
    5,
    ("with_queries", "seconds", "cells", "mre"),
    (MeasuredLeaves(),),
    figures=(("htf-8", ranking("with_queries", "How long do a release and 200 rectangles take?")),),
    note=f"{NOTE} Seconds are of one core, noise included.",
    verdicts=(htf_claims.HTF_8,),
)

_BOTH = (HTF, HTF_PLUS)


def _one(
    name: str,
    what: str,
    methods: tuple[Method, ...],
    epsilons: tuple[str, ...],
    drawing: Draw,
    verdict: Callable[[Results], Table | None],
) -> Preset:
    """A parameter, varied alone."""
    return Preset(
        f"htf-{name}",
        f"{what} (Shaham et al. 2022, figure {name})",
        ("city",),
        methods,
        epsilons,
        5,
        ("mre", "mre_2", "l1", "negative"),
        (MeasuredLeaves(),),
        figures=((f"htf-{name}", drawing),),
        note=NOTE,
        verdicts=(verdict,),
    )


def _for_height(height: int) -> int:
    """People to a cell that give a tree of this height, h = ⌊log₂(Nε/people)⌋, for the city at ε = 0.1."""
    return max(1, round(3_500_000 * 0.1 / 2 ** (height + 0.5)))


_RANDOM = [
    FigurePart("rectangles, ε = 0.1", "mre"),
    FigurePart("squares of 2 %", "mre_2"),
    FigurePart("the density", "l1"),
]

HTF_10A = _one(
    "10a",
    "HTF with more or less of the budget for its cuts",
    tuple(
        HTF.but(share_a_level=Epsilons(amount)).placed(float(amount))
        for amount in ("0.0001", "0.0002", "0.0005", "0.001", "0.002", "0.005")
    ),
    ("0.1",),
    along("at", "ε′ for the cuts of a level", _RANDOM, "HTF: the budget for cuts"),
    htf_claims.HTF_10A,
)

HTF_10B = replace(
    _one(
        "10b",
        "HTF with more or fewer turns of its search",
        (
            *(method.but(turns=turns).placed(turns) for method in _BOTH for turns in range(1, 7)),
            replace(HTF.but(turns=None), name="HTF, every line"),
        ),
        EPSILONS,
        along("at", "turns T of the search", _by_epsilon(), "HTF: turns of the search", logarithmic=False),
        htf_claims.HTF_10B,
    ),
    settings=(Everyone(),),
    scores=("mre", "mre_2", "l1"),
)

HTF_10C = _one(
    "10c",
    "HTF of every height",
    tuple(HTF.but(people_a_cell=_for_height(height)).placed(height) for height in range(4, 19, 2)),
    ("0.1",),
    along("at", "height of the tree", _RANDOM, "HTF: height", logarithmic=False),
    htf_claims.HTF_10C,
)

HTF_10D = _one(
    "10d",
    "HTF with other thresholds",
    (
        *(HTF.but(stop_at=stop).placed(stop) for stop in (5, 10, 20, 50, 100, 200, 500, 1000)),
        replace(HTF.but(stop_at=None), name="HTF, equation 31"),
        replace(HTF.but(negative=Fraction(1, 50)), name="HTF, negative = 0.02"),
    ),
    ("0.1",),
    along("at", "threshold, people", _RANDOM, "HTF: when a cell is cut no more"),
    htf_claims.HTF_10D,
)

HTF_10E = Preset(
    "htf-10e",
    "HTF with fewer people (Shaham et al. 2022, figure 10e)",
    tuple(f"city@{people}" for people in (500_000, 1_000_000, 1_500_000, 2_000_000, 2_500_000, 3_000_000)),
    (*_BOTH, AG),
    ("0.1",),
    5,
    ("mre", "mre_2", "l1"),
    figures=(("htf-10e", along("people", "people", _RANDOM, "HTF: how many people there are")),),
    note=NOTE,
    verdicts=(htf_claims.HTF_10E,),
)

PRESETS = (HTF_4, HTF_5, HTF_6, HTF_7, HTF_8, HTF_10A, HTF_10B, HTF_10C, HTF_10D, HTF_10E)
