"""Heatmaps of few people through a shuffler, beside a curator's: what figures 12 and 13 of Ghazi et al. (2022) show.

usage: shuffle_heatmaps.py [REPETITIONS] [LARGEST]   12 and 1,000,000 by default

People with a home in the synthetic city and 1 to 19 places around it share out one vote each, in `scale` whole parts.
Everything is simulated by its law (`ShuffledParts`); bytes are those of the sealed parts that a person would send.
The distance is exact, on the ground (L1, unit square) and seen at 128². Bands are two standard errors of the mean over
draws of people and noise. Writes results/shuffle_heatmaps.json, a figure and the page of the documentation.
"""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hazemap.algorithms import PublishedPyramid, Pyramid
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.report_bytes import of_shuffled_parts
from hazemap.federated.trust.shuffled import ShuffledParts, noise_of, terms_of
from hazemap.lab.compare.density_metrics import density, kl, pearson, similarity
from hazemap.lab.compare.earth_movers_distance import emd
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap, painted
from hazemap.machine_code.arrays import Floats
from hazemap.privacy.budget import Budget, PureDP
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.queries.noisy_queries import Answer, Question, Trust
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import OneVote
from hazemap.trust.curator import Curator
from research.benchmarks.maps import city
from research.benchmarks.shuffle_heatmaps_page import publish
from research.compare.gaussian_blur import heatmap
from research.compare.location_visits import Visits, around_homes

SIDE, SEEN = 256, 128
FEW, SCALE = 200, 1_024
PEOPLE = (200, 1_000, 10_000, 100_000, 1_000_000)
SCALES = (1, 4, 16, 64, 256, 1_024, 4_096)
EPSILONS = ("1", "10")
METHODS: dict[str, Callable[[Quadtree, OneVote], Any]] = {
    "pyramid": Pyramid,
    "pyramid as published, w = 20": PublishedPyramid,
}
Row = dict[str, Any]


def whole(people: int) -> ReportBatch:
    """Everybody answers, and nobody works with the analyser."""
    return ReportBatch(people, people)


def wary(people: int) -> ReportBatch:
    """Three in twenty may say nothing, and a tenth works with the analyser."""
    return ReportBatch(people, people * 17 // 20, Fraction(1, 10))


class CuratorOfSample(Curator):
    """A curator who says over how many people its sums are, as devices do: methods then allow for a sample."""

    people = 0

    def answer(self, question: Question, price: Budget) -> Answer:
        """The curator's answer."""
        return replace(super().answer(question, price), people=self.people)


def of_sample(known: Visits) -> Trust:
    """A curator of these people."""
    made = CuratorOfSample(known.table)
    made.people = known.people
    return made


EVERYBODY = "a curator of everybody"
TRUSTS: dict[str, Callable[[Visits], Trust]] = {
    "a curator": of_sample,
    "a shuffler": lambda known: ShuffledParts(known.table, whole(known.people)),
    "a shuffler, wary": lambda known: ShuffledParts(known.table, wary(known.people), dropping=Fraction(1, 20)),
    EVERYBODY: lambda known: Curator(known.table),
}
COMPARED = tuple(name for name in TRUSTS if name != EVERYBODY)


def seen(map_: Floats) -> Floats:
    """In larger pixels."""
    parts = map_.shape[0] // SEEN
    return map_.reshape(SEEN, parts, SEEN, parts).sum(axis=(1, 3))


def scores(known: Visits, made: Any) -> Row:
    """The distance of densities, and what the paper compares of heatmaps (a standard deviation of 1/64 of the side)."""
    true, found = (seen(density(each)) for each in (known.truth, painted(made, known.tree)[0]))
    blurred = [heatmap(each, (SEEN / 64) ** 2) for each in (true, found)]
    score = {"similarity": similarity(*blurred), "pearson": pearson(*blurred), "kl": kl(*blurred)}
    return {"emd": emd(true, found), **score}


def measured(known: Visits, method: str, trust: str, epsilon: str, scale: int) -> Row:
    """One map: its errors, and the bytes of a person."""
    budget, people = PureDP(epsilon), known.people
    result = run(METHODS[method](known.tree, OneVote(scale)), TRUSTS[trust](known), budget, Unrecorded())
    row: Row = {"people": people, "method": method, "trust": trust, "epsilon": float(epsilon), "scale": scale}
    row |= scores(known, result.value) | {"rounds": len(result.transcript)}
    if "curator" not in trust:
        batch = wary(people) if "wary" in trust else whole(people)
        row["bytes"] = of_shuffled_parts(result.transcript, budget, batch)
        sent = [
            (terms_of(q.encoder, noise_of(q.encoder, budget.part(q.share), batch), batch)) for q, _ in result.transcript
        ]
        row |= {"messages": sum(each.messages for each in sent), "parts": max(each.parts for each in sent)}
        row["bits"] = max(each.bits for each in sent)
    return row


def crowd(place: GroundTruthMap, people: int, repetition: int) -> Visits:
    """The same people at every setting."""
    return around_homes(place, people, 19, 0.01, f"{people} {repetition}".encode()).at(SIDE.bit_length() - 1)


def by_scale(place: GroundTruthMap, repetitions: int) -> Iterator[Row]:
    """Figures 12 and 13: 200 people, and how finely a vote is shared out."""
    for repetition in range(repetitions):
        known = crowd(place, FEW, repetition)
        for method in METHODS:
            for epsilon in EPSILONS:
                for trust in ("a curator", EVERYBODY):
                    yield {"part": "scale"} | measured(known, method, trust, epsilon, SCALES[-1])
                for scale in SCALES:
                    yield {"part": "scale"} | measured(known, method, "a shuffler", epsilon, scale)


def by_people(place: GroundTruthMap, people: int, repetitions: int) -> Iterator[Row]:
    """A crowd, large or small."""
    for repetition in range(max(1, min(repetitions, 200_000 // people))):
        known = crowd(place, people, repetition)
        for method in list(METHODS)[: 1 if people > 200_000 else None]:  # a minute each
            for trust in COMPARED:
                yield {"part": "people"} | measured(known, method, trust, EPSILONS[0], SCALE)


def mean(rows: list[Row]) -> list[Row]:
    """Over draws, with bands of two standard errors; a single draw has none."""
    labels, found = ("part", "people", "method", "trust", "epsilon", "scale"), dict[tuple[Any, ...], list[Row]]()
    for row in rows:
        found.setdefault(tuple(row[label] for label in labels), []).append(row)
    made = []
    for key, same in found.items():
        numbers = {name: np.array([row[name] for row in same], dtype=float) for name in same[0] if name not in labels}
        row = dict(zip(labels, key, strict=True)) | {name: float(each.mean()) for name, each in numbers.items()}
        if len(same) > 1:
            row["band"] = float(2 * numbers["emd"].std(ddof=1) / len(same) ** 0.5)
        made.append(row | {"draws": len(same)})
    return made


def main(repetitions: int, largest: int) -> None:
    """Measure, print, write."""
    known = city()
    place = GroundTruthMap("the city", known.tree, known.truth)
    rows = list(by_scale(place, repetitions))
    for people in (people for people in PEOPLE if people <= largest):
        rows += by_people(place, people, repetitions)
        made = mean(rows)
        path = Path(__file__).with_name("results") / "shuffle_heatmaps.json"
        path.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")
        publish(made)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 12, int(sys.argv[2]) if len(sys.argv) > 2 else PEOPLE[-1])
