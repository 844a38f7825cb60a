"""Trials of maps, of which more is told: how many cells are below 0, and how long questions take."""

import time
from dataclasses import dataclass
from typing import Any

from hazemap.lab.compare.ground_truth_maps import GroundTruthMap, painted
from hazemap.lab.compare.map_scores import rectangles, sums
from hazemap.lab.compare.practices import Method
from hazemap.lab.compare.trial_settings import Everyone, Row, scorer, timed
from hazemap.trust.curator import Curator

QUESTIONS = 200
"""Rectangles of random shape and size that are asked of a map (Shaham et al. 2022, figure 8)."""


@dataclass(frozen=True)
class MeasuredLeaves(Everyone):
    """A curator's map, as `Everyone`; beside the scores the part of cells whose number is below 0, and CPU seconds.

    `with_queries` are those of the release and of `QUESTIONS` rectangles, each asked by itself of the map's pixels,
    which are painted and summed up once for all.
    """

    def measured(self, place: GroundTruthMap, method: Method, epsilon: str, repetition: int) -> Row:  # noqa: ARG002 - noise differs
        """One release and its scores."""
        table = place.table
        table.votes(place.tree, self.rule)
        made, row = timed(self.algorithm(place, method, epsilon), Curator(table), epsilon)
        begin = time.process_time()
        shown, unbiased = painted(made.value, place.tree)
        sums(shown, rectangles(b"figure 8", place.counts.shape, QUESTIONS))
        asked: dict[str, Any] = {"with_queries": row["seconds"] + time.process_time() - begin}
        asked["negative"] = float((made.value.unbiased < 0).mean())
        return row | asked | scorer(place).all(shown, unbiased)
