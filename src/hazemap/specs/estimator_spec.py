"""Statistics by an estimator of user-level means: which places are told, and what their statement says."""

from collections.abc import Iterator

import numpy as np

from hazemap.algorithms.published.place_means import (
    ARRAYS,
    BALANCED,
    GROUPED,
    LEVY,
    PLAIN,
    QUANTILE,
    PlaceNoise,
    PublishedStatistics,
    selected_places,
)
from hazemap.estimate.confidence_margins import reach
from hazemap.privacy.budget import PureDP
from hazemap.privacy.mechanisms import noise_for
from hazemap.specs.statistics_spec import StatisticsSpec
from hazemap.tables.contribution_bounding import OwnMeans, Sensitivity
from hazemap.tables.person_cell_values import PersonCellSamples, PersonCellValues
from hazemap.tables.sample_grouping import UNIT

SAID = {
    PLAIN: "plain: the mean, with noise for whoever has most samples (Laplace)",
    ARRAYS: "array-averaging: the mean of the means of arrays of equal length (Rameshwar et al. 2024)",
    LEVY: "levy: means of arrays, clipped to about a bin with a median of them (Levy et al. 2021)",
    QUANTILE: "quantile: means of arrays, clipped to private quantiles of them (Smith 2011)",
    BALANCED: "balanced: the point where people's means balance (Huber 1964), by permute-and-flip",
}
"""What each estimator does, in a statement."""

BIASED = {
    PLAIN: "",
    ARRAYS: "",
    LEVY: ", or up to half of the arrays being clipped, and by chance more",
    QUANTILE: ", or up to a fifth of the arrays being clipped at either end, and by chance more",
    BALANCED: ", or people's means lying unevenly about where they balance; no standard error of noise is known",
}
"""What beside counting people for less can move an estimate."""


def estimated(spec: StatisticsSpec, pairs: PersonCellValues) -> tuple[PublishedStatistics, PersonCellSamples]:
    """What is asked, and those who answer: chosen from whereabouts alone. `InputError` if no place can be told."""
    rules, where = spec.place_rules, pairs.whereabouts
    chosen = selected_places(where, rules, _noise(spec))
    table = PersonCellSamples(
        pairs, chosen.counting, chosen.length, grouped=rules.estimator in GROUPED, by_people=rules.by_people
    )
    least = int(np.bincount(where.person).max())
    route = f"{SAID[rules.estimator]}; {', '.join(_route(spec, table, least))}"
    return PublishedStatistics(table.places, rules.estimator, spec.variance, route), table


def _noise(spec: StatisticsSpec) -> PlaceNoise:
    """The noise of a number that one person moves by 1 in one place, if it had the whole budget."""
    noise = noise_for(spec.budget, Sensitivity(UNIT, UNIT**2))
    width = float(reach(0.95, np.full(1, noise.kurtosis))[0])
    return PlaceNoise(noise.stddev / UNIT, not isinstance(spec.budget, PureDP), width)


def _route(spec: StatisticsSpec, table: PersonCellSamples, most: int) -> Iterator[str]:
    """How places were chosen, in words."""
    rules, places = spec.place_rules, table.places
    lengths = places.length[places.told]
    rule = f" ({rules.length})" if rules.length and not rules.length.isdecimal() else ""
    ends = f"{lengths.min():,}" if lengths.min() == lengths.max() else f"{lengths.min():,} to {lengths.max():,}"
    yield f"a person counts for at most {ends} sample{'s' * (ends != '1')} of a place{rule}"
    if rules.most_places is not None:
        yield f"in at most {rules.most_places} place{'s' * (rules.most_places != 1)}, drawn by a keyed hash"
    if rules.chopped:
        yield "people left out of places by CHOP-USER (Rameshwar and Tandon 2024)"
    shared = "" if isinstance(spec.budget, PureDP) else "the root of "
    if most > 1:
        yield f"anybody counts in {places.together} places at most, of {most} that anybody is in"
    if places.together > 1:
        yield f"so noise is that of one place times {shared}{places.together}"


def bounding_of(asked: PublishedStatistics) -> OwnMeans:
    """The rule in a statement: in so many places, their own mean, with the weight of so many samples at most."""
    places = asked.places
    return OwnMeans(places.together, int(places.largest.max()), scale=1)


def told_of(spec: StatisticsSpec, asked: PublishedStatistics) -> list[str]:
    """What a statement says of an estimator: what it is, which places it tells, and what its intervals hold."""
    places = asked.places
    parts = places.astray[places.told] / (1 << 30)
    bias = f"{100 * float(parts.max()):.3g} % of the bounds"
    return [
        f"the estimator and who counts where, chosen from whereabouts and the budget ({asked.route})",
        f"that {len(places.told):,} of {int((places.people > 0).sum()):,} occupied places are told, those where noise "
        "leaves at least half of the bounds; others cost nobody anything",
        f"what else may move an estimate, at most: {bias}, by people counting for less than their samples"
        f"{BIASED[asked.estimator]}; intervals of the mean of {spec.mean_told} hold both noise and this",
        "of a person the mean of all their samples in a place counts, not the first ones: the order of rows does not "
        "matter",
    ]
