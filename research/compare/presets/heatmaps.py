"""The experiments of the paper on heatmaps under the earth mover's distance (Ghazi et al. 2022), on public data.

Our copy of the paper has lost its numbers (ε of figures 2 and 4 to 7, the numbers of clusters and sparsities of 10 and
11, the blur): what stands here instead is said on each page.
"""

from fractions import Fraction

from hazemap.lab.compare.charts import Draw
from hazemap.lab.compare.practices import ADAPTIVE, Method
from hazemap.lab.compare.presets import Preset
from research.compare.multi_location_trials import Dealt, MultiLocationSetting
from research.compare.parameter_figures import FigurePart, along
from research.compare.presets import heatmaps_claims

LAPLACE = Method("Laplace, clipped", "laplace-clip", published=True)
TOP = Method("top 0.01 %", "top", True, (("kept", Fraction(1, 10_000)),))
TOP_FEWER = Method("top 0.001 %", "top", True, (("kept", Fraction(1, 100_000)),))
PYRAMID_PUBLISHED = Method("pyramid (published)", "pyramid-published", published=True)
PYRAMID = Method("pyramid", "pyramid")
METHODS = (LAPLACE, TOP, TOP_FEWER, PYRAMID_PUBLISHED, PYRAMID, ADAPTIVE)
EPSILONS = ("0.1", "0.5", "1", "2", "5", "10")
SCORES = ("emd", "heat_similarity", "heat_pearson", "heat_kl")
PLACES = ("city", "gowalla-people", "tokyo-people")
PEOPLE, SIDES = (50, 100, 200, 300, 400, 500), (64, 128, 256, 512, 1024)
SPARSITIES = (0.003, 0.01, 0.03, 0.1)

NOTE = """Every person has one vote, shared out over their places; w = 20. In the city 200 people have homes and 1 to 19
places around them (a normal distance, 1 % of the side in each direction); elsewhere people are drawn from those of the
data. The earth mover's distance is of distributions, on at most 256² pixels, its ground metric L1, the side of the map
1. Heatmaps are blurred with a standard deviation of 1/64 of the side. A band is over maps and draws of people too."""


def _all(column: str, words: str, title: str, logarithmic: bool = True) -> Draw:
    """The four metrics of the paper."""
    heads = ("earth mover’s distance", "similarity", "Pearson’s correlation", "Kullback–Leibler divergence")
    parts = [FigurePart(head, score) for head, score in zip(heads, SCORES, strict=True)]
    return along(column, words, parts, title, logarithmic=logarithmic, columns=2)


def _moved(column: str, words: str, where: tuple[str, object], title: str) -> Draw:
    """The earth mover's distance alone."""
    return along(column, words, [FigurePart("ε = 10", "emd", (where,))], title, columns=2)


HEATMAPS_1 = Preset(
    "heatmaps-1",
    "heatmaps of 200 people, ε 0.1 to 10 (Ghazi et al. 2022, figure 1)",
    PLACES,
    METHODS,
    EPSILONS,
    10,
    SCORES,
    (MultiLocationSetting(),),
    (("heatmaps-1", _all("epsilon", "ε", "Heatmaps of 200 people, 256 × 256")),),
    NOTE,
    verdicts=(heatmaps_claims.HEATMAPS_1,),
)

_BY_PEOPLE, _BY_SIDE = (
    tuple(MultiLocationSetting(people=people) for people in PEOPLE),
    tuple(MultiLocationSetting(side=side) for side in SIDES),
)

HEATMAPS_2 = Preset(
    "heatmaps-2",
    "the earth mover's distance, by the number of people and by the resolution, ε = 10 (Ghazi et al. 2022, figure 2)",
    ("city",),
    METHODS,
    ("10",),
    10,
    ("emd",),
    (*_BY_PEOPLE, *(setting for setting in _BY_SIDE if setting not in _BY_PEOPLE)),
    (
        ("heatmaps-2-people", _moved("set_people", "people", ("set_side", 256), "More people, 256 × 256 pixels")),
        ("heatmaps-2-pixels", _moved("set_side", "pixels a side", ("set_people", 200), "More pixels, 200 people")),
    ),
    NOTE,
    verdicts=(heatmaps_claims.HEATMAPS_2,),
)


def _people(figure: int, epsilon: str) -> Preset:
    return Preset(
        f"heatmaps-{figure}",
        f"heatmaps of 50 to 500 people, ε = {epsilon} (Ghazi et al. 2022, figure {figure})",
        ("city",),
        METHODS,
        (epsilon,),
        10,
        SCORES,
        _BY_PEOPLE,
        ((f"heatmaps-{figure}", _all("set_people", "people", f"More people, ε = {epsilon}")),),
        NOTE,
        verdicts=(heatmaps_claims.people(figure),),
    )


def _sides(figure: int, epsilon: str) -> Preset:
    return Preset(
        f"heatmaps-{figure}",
        f"heatmaps of 64² to 1024² pixels, ε = {epsilon} (Ghazi et al. 2022, figure {figure})",
        ("city",),
        METHODS,
        (epsilon,),
        10,
        SCORES,
        _BY_SIDE,
        ((f"heatmaps-{figure}", _all("set_side", "pixels a side", f"More pixels, ε = {epsilon}")),),
        NOTE,
        verdicts=(heatmaps_claims.sides(figure),),
    )


HEATMAPS_8 = Preset(
    "heatmaps-8",
    "where people look in ten pictures, ε 0.1 to 10 (Ghazi et al. 2022, figure 8, on other pictures)",
    tuple(f"fixations-{number}" for number in range(10)),
    METHODS,
    EPSILONS,
    4,
    SCORES,
    (MultiLocationSetting(people=50),),
    (("heatmaps-8", _all("epsilon", "ε", "Where people look")),),
    f"{NOTE} The pictures are FIGRIM’s, with 11 to 22 people each; the paper’s have 50.",
    verdicts=(heatmaps_claims.HEATMAPS_8,),
)


def _sparse(figure: int, what: str, cases: tuple[tuple[str, Dealt], ...], why: str) -> Preset:
    axis, title = "part of the pixels that is touched", f"{what[0].upper()}{what[1:]}"
    return Preset(
        f"heatmaps-{figure}",
        f"{what} (Ghazi et al. 2022, figure {figure})",
        tuple(dict.fromkeys(place for place, _ in cases)),
        METHODS,
        ("10",),
        10,
        SCORES,
        tuple(dict.fromkeys(setting for _, setting in cases)),
        ((f"heatmaps-{figure}", _all("set_sparsity", axis, title)),),
        NOTE,
        cases,
        verdicts=(heatmaps_claims.sparse(figure, why),),
    )


_DEALT = tuple(Dealt(sparsity=sparsity) for sparsity in SPARSITIES)
_FIVE = tuple(("mixture-5", setting) for setting in _DEALT)
_MORE = tuple(zip(("mixture-2", "mixture-5", "mixture-20", "mixture-50"), _DEALT, strict=True))

PRESETS = (
    HEATMAPS_1,
    HEATMAPS_2,
    _people(4, "10"),
    _sides(5, "10"),
    _people(6, "1"),
    _sides(7, "1"),
    HEATMAPS_8,
    _sparse(10, "points of five Gaussians, ever more of them", _FIVE, heatmaps_claims.WHY_10),
    _sparse(11, "points of ever more Gaussians", _MORE, heatmaps_claims.WHY_11),
)
