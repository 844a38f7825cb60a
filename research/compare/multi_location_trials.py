"""Settings of few people with several places each: heatmaps near the truth in earth mover's distance."""

from dataclasses import dataclass
from typing import Any, ClassVar

from hazemap.errors import InputError
from hazemap.lab.compare.density_metrics import density, kl, pearson, similarity
from hazemap.lab.compare.earth_movers_distance import emd
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap, painted, square
from hazemap.lab.compare.map_scores import EMD_DEPTH, seen_at
from hazemap.lab.compare.practices import Method
from hazemap.lab.compare.trial_settings import Row, timed
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import Bounding, OneVote
from hazemap.trust.curator import Curator
from research.compare.gaussian_blur import heatmap
from research.compare.location_visits import Visits, around_homes, dealt

SPREAD = 0.01
"""How far from home people go: the standard deviation in each direction, of the side of the map."""

BLUR = 1 / 64
"""The standard deviation of a heatmap's Gaussian, of the side of the map."""


@dataclass(frozen=True)
class MultiLocationSetting:
    """So many people, each with one vote shared out over their places, in `side`² pixels; a curator holds them.

    Of people with visits some are drawn; of a map, homes are drawn, and 1 to `most` places around each. Which they are
    depends on the repetition alone, so all methods at all ε have the same people.
    """

    places: ClassVar[tuple[type, ...]] = (GroundTruthMap, Visits)
    methods: ClassVar[tuple[type, ...]] = (Method,)

    people: int = 200
    side: int = 256
    most: int = 19

    @property
    def rule(self) -> Bounding:
        """A person's own distribution."""
        return OneVote()

    def visits(self, place: GroundTruthMap | Visits, repetition: int) -> Visits:
        """The people of a repetition."""
        seed = str(repetition).encode()
        if isinstance(place, Visits):
            return place.some(self.people, seed).at(_depth(self.side))
        return around_homes(place, self.people, self.most, SPREAD, seed).at(_depth(self.side))

    def algorithm(self, place: GroundTruthMap | Visits, method: Method, epsilon: str) -> Any:
        """The method over so many pixels."""
        return method.algorithm(Quadtree(*square(place.tree), _depth(self.side)), self.rule, epsilon)

    def measured(self, place: GroundTruthMap | Visits, method: Method, epsilon: str, repetition: int) -> Row:
        """Earth mover's distance of the distributions, and what is said of their heatmaps."""
        known = self.visits(place, repetition)
        table = known.table
        made, row = timed(self.algorithm(known, method, epsilon), Curator(table), epsilon)
        shown, _ = painted(made.value, known.tree)
        return row | {"sparsity": float((known.truth > 0).mean())} | heat_scores(known, density(shown))


@dataclass(frozen=True)
class Dealt(MultiLocationSetting):
    """Points of a map's density are drawn until the part `sparsity` of all pixels is touched, and dealt to people."""

    sparsity: float = 0.01

    def visits(self, place: GroundTruthMap | Visits, repetition: int) -> Visits:
        """The people of a repetition."""
        if not isinstance(place, GroundTruthMap):
            raise InputError("points of a sparsity are drawn from a map of people with one row each")
        seed = str(repetition).encode()
        return dealt(place, self.people, self.sparsity, self.side, seed).at(_depth(self.side))


def heat_scores(known: Visits, shown: Any) -> Row:
    """EMD of the distributions (L1, side = 1, on at most 256² pixels); the rest of heatmaps of variance (side/64)²."""
    depth = min(EMD_DEPTH, known.tree.depth)
    variance = (BLUR * known.side) ** 2
    true, ours = heatmap(known.truth, variance), heatmap(shown, variance)
    true, ours = true / true.sum(), ours / ours.sum()
    return {
        "emd": emd(seen_at(known.truth, depth), seen_at(shown, depth)),
        "heat_similarity": similarity(true, ours),
        "heat_pearson": pearson(true, ours),
        "heat_kl": kl(true, ours),
    }


def _depth(side: int) -> int:
    if side < 2 or side & (side - 1):
        raise InputError(f"a heatmap has 2, 4, 8, … pixels a side; found {side}")
    return side.bit_length() - 1
