"""How good a released map is: what each trial is scored by."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hazemap.arrays import Floats
from hazemap.compare import density_metrics as densities
from hazemap.compare.earth_movers_distance import emd
from hazemap.compare.ground_truth_maps import GroundTruthMap
from hazemap.compare.range_query_error import WORKLOADS, Rectangles, relative_errors, sums, workloads

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
    def asked(self) -> dict[str, Rectangles]:
        """The range queries, by workload."""
        return workloads(WORKLOAD, self.truth.counts.shape)

    @cached_property
    def _together(self) -> Rectangles:
        """All workloads one after the other, so that a picture is summed up once."""
        return Rectangles(*(np.concatenate(parts) for parts in zip(*self.asked.values(), strict=True)))

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
