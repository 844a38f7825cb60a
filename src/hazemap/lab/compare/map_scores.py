"""Scores of a released map: how each is computed, its name and its unit."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hazemap.lab.compare import density_metrics as densities
from hazemap.lab.compare.earth_movers_distance import emd
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap
from hazemap.lab.compare.range_query_error import WORKLOADS, QueryRectangles, relative_errors, sums, workloads
from hazemap.machine_code.arrays import Floats

VERSION = 1
"""Raised whenever a score means something else than before: what was measured before is measured again."""

WORKLOAD = b"the queries of comparisons"
"""The seed of the rectangles: everybody asks the same ones."""

EMD_DEPTH = 8
"""The earth mover's distance is taken between maps of 4^8 pixels: exact in about a second."""

DENSITIES = {
    "mse": densities.mse,
    "l1": densities.l1,
    "l2": densities.l2,
    "kl": densities.kl,
    "similarity": densities.similarity,
    "pearson": densities.pearson,
    "mape": densities.mape,
    "smape": densities.smape,
    "maape": densities.maape,
}
"""What is said of the density that a map shows, pixel by pixel; `densities` has the formulas."""

MRE = {"random": "mre", "2%": "mre_2", "6%": "mre_6", "10%": "mre_10"}
"""The column of each workload's mean relative error; `unbiased_` stands before that of the unbiased numbers."""

Scores = dict[str, float]


@dataclass(frozen=True, eq=False)
class Scorer:
    """The truth, and what of it every score asks again and again."""

    truth: GroundTruthMap

    @cached_property
    def asked(self) -> dict[str, QueryRectangles]:
        """The range queries, by workload."""
        return workloads(WORKLOAD, self.truth.counts.shape)

    @cached_property
    def _together(self) -> QueryRectangles:
        """All workloads one after the other, so that a picture is summed up once."""
        return QueryRectangles(*(np.concatenate(parts) for parts in zip(*self.asked.values(), strict=True)))

    @cached_property
    def _exact(self) -> Floats:
        return sums(self.truth.counts, self._together)

    @cached_property
    def _density(self) -> Floats:
        return densities.density(self.truth.counts)

    @cached_property
    def _coarse(self) -> Floats:
        return seen_at(self._density, min(EMD_DEPTH, self.truth.tree.depth))

    def ranges(self, picture: Floats) -> Scores:
        """Mean relative error of each workload, as a fraction, from people in each pixel (perhaps below 0)."""
        errors = relative_errors(self._exact, sums(picture, self._together))
        parts = np.split(errors, np.cumsum([len(one.north) for one in self.asked.values()])[:-1])
        return {MRE[name]: float(part.mean()) for name, part in zip(WORKLOADS, parts, strict=True)}

    def all(self, shown: Floats, unbiased: Floats) -> Scores:
        """Range queries on both readings of a map, and every score of the density that it shows."""
        found = self.ranges(shown)
        found |= {f"unbiased_{name}": error for name, error in self.ranges(unbiased).items()}
        estimate = densities.density(shown)
        return found | {name: score(self._density, estimate) for name, score in DENSITIES.items()}

    def moved(self, shown: Floats) -> Scores:
        """Exact earth mover's distance: ground metric L1, the side of the map is 1; about 1 CPU second."""
        estimate = seen_at(densities.density(shown), min(EMD_DEPTH, self.truth.tree.depth))
        return {"emd": emd(self._coarse, estimate)}


def seen_at(density: Floats, depth: int) -> Floats:
    """A square density in 4^depth larger pixels."""
    side, block = 1 << depth, len(density) >> depth
    return np.asarray(density.reshape(side, block, side, block).sum(axis=(1, 3)))


@dataclass(frozen=True)
class MetricLabel:
    """A column of results: the words of an axis, what it is multiplied by to be shown, and how a table writes it.

    >>> MEASURES["mre"].written(0.0058)
    '0.580'
    """

    score: str
    words: str
    short: str
    factor: float = 1.0
    form: str = ".3f"
    logarithmic: bool = True
    higher: bool = False
    plain: bool = False
    """No score: none is the best, and none needs an interval."""

    def written(self, number: float) -> str:
        """As in a table; empty where nothing was measured."""
        return "" if number != number else format(number * self.factor, self.form)  # noqa: PLR0124 - NaN alone


_EVERY = (
    MetricLabel("mre", "mean relative error of random rectangles, %", "rectangles, %", 100),
    MetricLabel("mre_2", "mean relative error of squares of 2 % of the area, %", "2 % squares, %", 100),
    MetricLabel("mre_6", "mean relative error of squares of 6 % of the area, %", "6 % squares, %", 100),
    MetricLabel("mre_10", "mean relative error of squares of 10 % of the area, %", "10 % squares, %", 100),
    MetricLabel(
        "unbiased_mre", "mean relative error of random rectangles, unbiased numbers, %", "rectangles, unbiased, %", 100
    ),
    MetricLabel("l1", "L1 of the density (0 to 2)", "L1"),
    MetricLabel("l2", "L2 of the density", "L2", form=".4f"),
    MetricLabel("mse", "MSE of the density, 10⁻¹²", "MSE, 10⁻¹²", 1e12, ".3g"),
    MetricLabel("kl", "Kullback–Leibler divergence, nats", "KL, nats"),
    MetricLabel("similarity", "similarity (1 is best)", "similarity", logarithmic=False, higher=True),
    MetricLabel("pearson", "Pearson’s correlation (1 is best)", "Pearson", logarithmic=False, higher=True),
    MetricLabel("emd", "earth mover’s distance (L1, side of the map = 1)", "EMD, sides of the map", form=".4f"),
    MetricLabel(
        "advantage", "how often an attacker tells apart who is there, beyond chance", "told apart", logarithmic=False
    ),
    MetricLabel("bound", "what no attacker exceeds", "at most", form=".2f", logarithmic=False, plain=True),
    MetricLabel("located", "newcomers found between two maps, %", "newcomers found, %", 100, ".0f", logarithmic=False),
    MetricLabel("chance", "newcomers found by chance, %", "by chance, %", 100, ".0f", logarithmic=False, plain=True),
    MetricLabel("seconds", "CPU seconds of a release", "CPU s", form=".3g"),
    MetricLabel("cells", "cells", "cells", form=",.0f", plain=True),
)
MEASURES = {measure.score: measure for measure in _EVERY}
"""Every score that tables and figures show. Experiments that measure more add the labels of theirs."""
