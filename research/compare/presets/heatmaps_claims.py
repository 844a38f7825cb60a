"""The claims of Ghazi et al. (2022, section 4 and appendix E) about their figures, each with how it is checked here."""

from collections.abc import Callable

import numpy as np

from hazemap.lab.compare.result_tables import Table
from hazemap.lab.compare.results import Results
from research.compare.claims import Claim, Finding, claimed, percent, score_of

OWN, BASELINE, THRESHOLDS = "pyramid (published)", "Laplace, clipped", ("top 0.01 %", "top 0.001 %")
METRICS = {"emd": "distance", "heat_similarity": "similarity", "heat_pearson": "correlation", "heat_kl": "KL"}
HIGHER = ("heat_similarity", "heat_pearson")
Verdict = Callable[[Results], Table | None]

WHY_KL = """The published algorithm keeps few cells, so its map says 0 where some people are: KL, and similarity at a
small ε, are worse for it than a map that is noise everywhere. `pyramid`, ours, is ahead of it from ε = 0.5 on."""
WHY_PEOPLE = """A map of 20 cells a level cannot get nearer than these: with more people what it leaves out remains.
`pyramid`, ours, goes on falling."""


def _better(score: str, one: float, other: float) -> bool:
    return one > other if score in HIGHER else one < other


def _ahead(others: tuple[str, ...], column: str) -> Callable[[Results], Finding]:
    """In which metrics it is ahead of others at every place of the axis, and in how many places."""

    def check(results: Results) -> Finding:
        words, every = [], True
        for score, name in METRICS.items():
            cases = [
                _better(score, mean.mean, score_of(results, other, score, **{column: at}))
                for at, mean in results.where(method=OWN).along(column, score)
                for other in others
            ]
            every &= all(cases)
            words.append(f"{name} {sum(cases)}")
        return Finding(f"ahead in {', '.join(words)} of {len(cases)} each", every)

    return check


def _ends(results: Results, method: str, score: str, column: str) -> tuple[float, float]:
    found = results.where(method=method).along(column, score)
    return found[0][1].mean, found[-1][1].mean


def _improves(method: str, column: str, scores: tuple[str, ...] = tuple(METRICS)) -> Callable[[Results], Finding]:
    """From the first place of the axis to the last."""

    def check(results: Results) -> Finding:
        ends = [(score, *_ends(results, method, score, column)) for score in scores]
        words = ", ".join(f"{METRICS[score]} {first:.3g} to {last:.3g}" for score, first, last in ends)
        return Finding(words, all(_better(score, last, first) for score, first, last in ends))

    return check


def _worsens(method: str, column: str, scores: tuple[str, ...] = tuple(METRICS)) -> Callable[[Results], Finding]:
    def check(results: Results) -> Finding:
        ends = [(score, *_ends(results, method, score, column)) for score in scores]
        words = ", ".join(f"{METRICS[score]} {first:.3g} to {last:.3g}" for score, first, last in ends)
        return Finding(words, all(_better(score, first, last) for score, first, last in ends))

    return check


def _constant(column: str, scores: tuple[str, ...] = tuple(METRICS)) -> Callable[[Results], Finding]:
    """No value is further from the mean of all than a quarter."""

    def check(results: Results) -> Finding:
        widest = 0.0
        for score in scores:
            means = np.array([mean.mean for _, mean in results.where(method=OWN).along(column, score)])
            widest = max(widest, float(np.abs(means / means.mean() - 1).max()))
        return Finding(f"at most {percent(widest)} from the mean over all resolutions", widest <= 0.25)

    return check


def _below_baseline(column: str) -> Callable[[Results], Finding]:
    """In how many cases a threshold is worse than the baseline."""

    def check(results: Results) -> Finding:
        cases = [
            _better(score, mean.mean, score_of(results, other, score, **{column: at}))
            for score in METRICS
            for at, mean in results.where(method=BASELINE).along(column, score)
            for other in THRESHOLDS
        ]
        return Finding(f"in {sum(cases)} of {len(cases)} cases", sum(cases) > len(cases) / 2)

    return check


def _by_epsilon(figure: int) -> Verdict:
    return claimed(
        f"Figure {figure}",
        Claim("ahead of the baseline in every metric", _ahead((BASELINE,), "epsilon")),
        Claim("ahead of both thresholds in every metric", _ahead(THRESHOLDS, "epsilon")),
        why=WHY_KL,
    )


HEATMAPS_1, HEATMAPS_8 = _by_epsilon(1), _by_epsilon(8)


def _where(check: Callable[[Results], Finding], **labels: int) -> Callable[[Results], Finding]:
    """A check of some of the trials."""
    return lambda results: check(results.where(**labels))


HEATMAPS_2 = claimed(
    "Figure 2",
    Claim("better with more people", _where(_improves(OWN, "set_people", ("emd",)), set_side=256)),
    Claim("the baseline too", _where(_improves(BASELINE, "set_people", ("emd",)), set_side=256)),
    Claim("nearly constant in the resolution", _where(_constant("set_side", ("emd",)), set_people=200)),
    Claim("the baseline suffers from more pixels", _where(_worsens(BASELINE, "set_side", ("emd",)), set_people=200)),
    why=WHY_PEOPLE,
)


def _thresholds(column: str, wanted: bool) -> list[Claim]:
    if not wanted:
        return []
    return [Claim("thresholds are worse than the baseline in most cases", _below_baseline(column))]


def people(figure: int) -> Verdict:
    """Of figures 4 and 6."""
    return claimed(
        f"Figure {figure}",
        Claim("better with more people, in every metric", _improves(OWN, "set_people")),
        Claim("the baseline too", _improves(BASELINE, "set_people")),
        *_thresholds("set_people", figure == 6),
        why=WHY_PEOPLE,
    )


def sides(figure: int) -> Verdict:
    """Of figures 5 and 7."""
    return claimed(
        f"Figure {figure}",
        Claim("nearly constant in the resolution, in every metric", _constant("set_side")),
        Claim("the baseline suffers from more pixels", _worsens(BASELINE, "set_side")),
        *_thresholds("set_side", figure == 7),
        why="Only children of kept cells are shown, so further levels add little, whatever their number.",
    )


def sparse(figure: int, why: str) -> Verdict:
    """Of figures 10 and 11."""
    return claimed(
        f"Figure {figure}",
        Claim("worse where more of the pixels are touched", _worsens(OWN, "set_sparsity")),
        Claim("the baseline is better there", _improves(BASELINE, "set_sparsity")),
        why=why,
    )


WHY_10 = """With the same five Gaussians 20 cells a level hold them however many points are drawn of them, and what the
baseline adds is as large. Which Gaussians the paper drew is not in our copy."""
WHY_11 = """With ever more Gaussians 20 cells a level do not hold them, and the noise of the baseline counts for less
beside people who are everywhere: it is better in all metrics but correlation."""
