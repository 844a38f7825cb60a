"""The evaluation of the location-heatmap paper (Bagdasaryan et al. 2022), with its baselines and with our methods.

usage: heatmap_paper.py [REPETITIONS] [--only EXPERIMENT,…] [--pictures FOLDER]

Writes every measurement to results/heatmap_paper.parquet, their means to results/heatmap_paper.json, figures of made-up
data and of numbers to docs/images, and the page docs/results/heatmap_paper.md. Pictures of the evaluation data, which
may not be passed on, are drawn only where FOLDER says. Everything runs on the exact law of the secure sum
(`SimulatedSecureAggregation`), with a fresh sample of people in every round.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from hazemap.algorithms import Adaptive, AdaptiveGrid, AdaptiveHierarchicalHistogram, Flat, Proportion, UniformGrid
from hazemap.algorithms.proportion import Narrow, Significant
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import Leaves
from hazemap.estimate import measurements
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.in_memory_secure_aggregation import SimulatedSecureAggregation
from hazemap.federated.trust.local import LocalReports
from hazemap.lab.methods import CountMin, Geometric, Hierarchical
from hazemap.lab.methods.one_level_baselines import evidence
from hazemap.privacy.budget import PureDP
from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.queries.algorithm_session import Transcript, Unrecorded, run
from hazemap.queries.noisy_queries import Answer, Query, Trust
from hazemap.tables.contribution_bounding import AtMostRows, Bounding, OneVote, RowIsPerson
from hazemap.trust.curator import Curator
from research.benchmarks import maps
from research.benchmarks.heatmap_page import publish
from research.benchmarks.maps import Pixels, Place
from research.benchmarks.published import EvenRounds, PublishedRounding, Wrapping

ROWS = RowIsPerson()
PUBLISHED = Reading.UNBIASED
RNG = np.random.default_rng(20221107)
Row = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """Who is asked: so many people in shards, of whom a part drops out."""

    name: str
    people: int
    shard: int = 10_000
    dropping: Fraction = Fraction(0)
    allowed: Fraction = Fraction(0)

    @property
    def cohort(self) -> Cohort:
        """Nobody is assumed to work with the server, as in the paper."""
        return Cohort(self.people, self.shard, dropout=self.allowed, corrupt=Fraction(0), mode=Mode.SEMI_HONEST)

    def trust(self, table: Any) -> SimulatedSecureAggregation:
        """The secure sum over a table."""
        return SimulatedSecureAggregation(table, self.cohort, dropping=self.dropping)


FEW = Setting("10,000", 10_000)
MANY = Setting("100,000", 100_000)
LOSSY = Setting("100,000, 10 % drop out", 100_000, dropping=Fraction(1, 10), allowed=Fraction(12, 100))
SETTINGS = (FEW, MANY, LOSSY)


def sent(transcript: Transcript, budget: PureDP, cohort: Cohort) -> Row:
    """What a person sends who is asked in every round: numbers, and bytes of masked vectors as the wire packs them."""
    numbers, octets, widest = 0, 0, 0
    for question, _ in transcript:
        encoder = question.encoder
        size, clients = encoder.size, cohort.shards[0]
        noise = DistributedNoise(encoder.sensitivity.l1 / budget.part(question.share).epsilon, cohort.honest(clients))
        bits = noise.bits(clients, encoder.sensitivity.l1, size)
        numbers, octets, widest = numbers + size, octets + -(-size * bits // 8), max(widest, bits)
    return {"numbers": numbers, "bytes": octets, "bits": widest, "rounds": len(transcript)}


def measured(place: Place, method: Any, trust: Trust, epsilon: str, cohort: Cohort) -> tuple[Row, CellMap, Transcript]:
    """One run and its errors."""
    begin = time.perf_counter()
    result = run(method, trust, PureDP(epsilon), Unrecorded())
    made, seconds = result.value, time.perf_counter() - begin
    row = {"cells": made.cells.size, "seconds": seconds, **sent(result.transcript, result.budget, cohort)}
    return row | maps.errors(place, place.picture(made.cells, made.values)), made, result.transcript


def best_of(place: Place, pictures: dict[int, np.ndarray]) -> Row:
    """The errors of the picture that is nearest to the truth, and its level: a choice that only the truth can make."""
    found = [maps.errors(place, picture) | {"level": level} for level, picture in pictures.items()]
    return min(found, key=lambda row: row["mse"])


def levels_of(place: Place, question: Query, answer: Answer) -> Iterator[tuple[int, np.ndarray]]:
    """Each level of a stack, alone."""
    for part, numbers in zip(question.encoder.parts, question.encoder.split(answer.sums), strict=True):
        yield int(part.cells.levels.max()), place.picture(part.cells, numbers)


def without_privacy(place: Place, people: int) -> Row:
    """The best level of a sample sent in the clear: two numbers a person."""
    sample = place.sample(people, RNG)
    pictures = {level: place.coarse(sample, level) for level in range(1, place.tree.depth + 1)}
    return best_of(place, pictures) | {"numbers": 2, "bytes": 4, "rounds": 1}


def table_1(repetitions: int) -> Iterator[Row]:
    """Methods × settings, on New York and on the city, ε = 1."""
    for place in (maps.new_york(), maps.city()):
        tree, depth = place.tree, place.tree.depth
        for setting in SETTINGS:
            label = {"map": place.name, "setting": setting.name, "people": setting.people}
            for repetition in range(repetitions):
                yield label | {"method": "no privacy, best level"} | without_privacy(place, setting.people)
                light = {
                    "flat, level 7": Flat(tree, 7, ROWS),
                    "adaptive grid": AdaptiveGrid(tree, ROWS, people=setting.people, reading=PUBLISHED),
                    "uniform grid": UniformGrid(tree, ROWS, reading=Reading.NONNEGATIVE),
                    "count-min, then counts (ours)": CountMin(tree, bounding=ROWS),
                    "prefix tree as published": AdaptiveHierarchicalHistogram(
                        tree, ROWS, setting.people, reading=PUBLISHED
                    ),
                    "prefix tree, all rounds shrunk (ours)": AdaptiveHierarchicalHistogram(tree, ROWS, setting.people),
                    "adaptive (ours)": Adaptive(tree, ROWS),
                }
                for name, method in light.items():
                    row, _, _ = measured(place, method, setting.trust(place.table), "1", setting.cohort)
                    yield label | {"method": name} | row
                    if isinstance(method, CountMin):
                        yield label | {"method": "count-min alone"} | _sketch_alone(place, method, setting)
                if repetition < 1:  # a million numbers each
                    yield from (label | row for row in _all_levels(place, setting))
        if repetitions:
            methods = {"hierarchical": Hierarchical(tree, depth, ROWS), "geometric": Geometric(tree, depth, ROWS)}
            for name, method in methods.items():
                row, _, _ = measured(place, method, MANY.trust(place.table), "1", MANY.cohort)
                label = {"map": place.name, "setting": MANY.name, "people": MANY.people}
                yield label | {"method": f"{name}, least squares (ours)"} | row


def _sketch_alone(place: Place, method: CountMin, setting: Setting) -> Row:
    """As in the paper: the whole budget for the sketches, and their numbers are the map."""
    trust, budget, question = setting.trust(place.table), PureDP(1), replace(method.question, share=Fraction(1))
    answer = trust.answer(question, budget)
    cells, numbers = method.decided(answer, 0.0)
    row = maps.errors(place, place.picture(cells, numbers)) | {"cells": cells.size}
    return row | sent(((question, answer),), budget, setting.cohort)


def _all_levels(place: Place, setting: Setting) -> Iterator[Row]:
    """The methods that ask for every pixel."""
    depth = place.tree.depth
    row, _, _ = measured(place, Flat(place.tree, depth, ROWS), setting.trust(place.table), "1", setting.cohort)
    yield {"method": "flat, every pixel"} | row
    for name, method in (
        ("hierarchical", Hierarchical(place.tree, depth, ROWS)),
        ("geometric", Geometric(place.tree, depth, ROWS)),
    ):
        trust, budget = setting.trust(place.table), PureDP(1)
        question = next(method.rounds(trust.prices(budget)))
        answer = trust.answer(question, budget)
        costs = sent(((question, answer),), budget, setting.cohort)
        pictures = dict(levels_of(place, question, answer))
        yield {"method": f"{name}, best level by the truth"} | costs | best_of(place, pictures)
        levels = measurements([(question, answer)], question.encoder.parts[0].cells)
        chosen = int(max(levels, key=evidence).cells.levels.max())
        best = {"method": f"{name}, best level by the answers (ours)", "level": chosen}
        yield best | costs | maps.errors(place, pictures[chosen])
        eight = replace(method, level=8)
        row, _, _ = measured(place, eight, setting.trust(place.table), "1", setting.cohort)
        yield {"method": f"{name} to level 8, least squares (ours)"} | row


def table_2(repetitions: int) -> Iterator[Row]:
    """Several places a person: Tokyo, ε = 1, all 2,173 people in one shard."""
    here = maps.tokyo()
    setting = Setting("2,173", 2_173)
    for _ in range(repetitions):
        cases: list[tuple[str, int, int | None, Any, Bounding]] = [
            ("single location", 1, None, setting.trust(here.single), AtMostRows(1)),
        ]
        for scale in (16, 64, 256, 1024):
            vote = OneVote(scale)
            cases.append(("dependent rounding (ours)", scale, None, setting.trust(here.rows), vote))
            for bits in (16, 32):
                rounding = PublishedRounding(here.rows, setting.cohort)
                cases.append(("independent rounding", scale, bits, Wrapping(rounding, bits), vote))
        for name, scale, bits, trust, rule in cases:
            for kind in ("prefix tree as published", "adaptive (ours)"):
                tree = here.place.tree
                published = AdaptiveHierarchicalHistogram(tree, rule, setting.people, reading=PUBLISHED)
                method = published if kind.startswith("prefix") else Adaptive(tree, rule, first_cells=16)
                row, _, _ = measured(here.place, method, trust, "1", setting.cohort)
                yield {"map": "Tokyo", "method": name, "tree": kind, "scale": scale, "clip": bits} | row
        yield {"map": "Tokyo", "method": "no privacy", "tree": "every pixel", "scale": None} | maps.errors(
            here.place, _everyone(here)
        )


def _everyone(here: maps.Checkins) -> np.ndarray:
    """All people's micro-votes without noise, at the finest of scales."""
    votes = here.rows.votes(here.place.tree, OneVote(1024))
    cells = Leaves.at_level(here.place.tree, here.place.tree.depth)
    return here.place.picture(cells, cells.total(votes.cells, votes.weights).astype(float))


def table_3(repetitions: int) -> Iterator[Row]:
    """Variants of the algorithm and all measures of error: New York and the city, 100,000 people."""
    for place in (maps.new_york(), maps.city()):
        tree, people = place.tree, MANY.people
        variants = {
            "no noise, T = 10": (EvenRounds(tree, 10, 10), "1000000"),
            "even ε, fixed T = 2σ of a round": (EvenRounds(tree, 10), "1"),
            "scheduled ε, fixed T = 50": (
                AdaptiveHierarchicalHistogram(tree, ROWS, people, split_above=50, reading=PUBLISHED),
                "1",
            ),
            "scheduled ε, adaptive T (published)": (
                AdaptiveHierarchicalHistogram(tree, ROWS, people, reading=PUBLISHED),
                "1",
            ),
            "the same, shrunk over all rounds (ours)": (AdaptiveHierarchicalHistogram(tree, ROWS, people), "1"),
            "adaptive (ours)": (Adaptive(tree, ROWS), "1"),
        }
        for _ in range(repetitions):
            for name, (method, epsilon) in variants.items():
                row, _, _ = measured(place, method, MANY.trust(place.table), epsilon, MANY.cohort)
                yield {"map": place.name, "method": name} | row


def figure_1(_: int) -> Iterator[Row]:
    """One method, three trust models, 100,000 people of the city; the pictures are kept."""
    place = maps.city()
    some = place.some(place.sample(MANY.people, RNG))
    trusts = {
        "a curator": Curator(some),
        "secure sums of 10,000": MANY.trust(place.table),
        "local randomised response": LocalReports(some, MANY.people),
    }
    PICTURES["figure 1"] = [("the city", place.truth.astype(float))]
    for name, trust in trusts.items():
        row, made, _ = measured(place, Adaptive(place.tree, ROWS), trust, "1", MANY.cohort)
        PICTURES["figure 1"].append((name, place.picture(made.cells, made.values)))
        yield {"map": place.name, "method": "adaptive (ours)", "trust": name} | row


def figure_6(repetitions: int) -> Iterator[Row]:
    """Maps of other kinds: published, even ε, ours."""
    for place in (maps.new_york(), maps.city(), maps.lagos(), maps.coast()):
        methods = {
            "even ε, fixed T": EvenRounds(place.tree, place.tree.depth),
            "prefix tree as published": AdaptiveHierarchicalHistogram(place.tree, ROWS, MANY.people, reading=PUBLISHED),
            "adaptive (ours)": Adaptive(place.tree, ROWS),
        }
        shown = [("truth", place.truth.astype(float))]
        for repetition in range(repetitions):
            for name, method in methods.items():
                row, made, _ = measured(place, method, MANY.trust(place.table), "1", MANY.cohort)
                if not repetition:
                    shown.append((name, place.picture(made.cells, made.values)))
                yield {"map": place.name, "method": name} | row
        PICTURES[f"figure 6, {place.name}"] = shown


def figure_7(repetitions: int) -> Iterator[Row]:
    """How many people, at which ε; and the calibration c₀ of the published schedule."""
    for place in (maps.new_york(), maps.city()):
        for people in (1_000, 10_000, 100_000, 1_000_000):
            setting = Setting(f"{people:,}", people)
            for epsilon in ("0.1", "1"):
                methods = {
                    "prefix tree as published": AdaptiveHierarchicalHistogram(
                        place.tree, ROWS, people, reading=PUBLISHED
                    ),
                    "adaptive (ours)": Adaptive(place.tree, ROWS),
                }
                for _ in range(repetitions):
                    for name, method in methods.items():
                        row, _, _ = measured(place, method, setting.trust(place.table), epsilon, setting.cohort)
                        yield {"map": place.name, "method": name, "people": people, "epsilon": float(epsilon)} | row
        for c0 in ("0.01", "0.03", "0.1", "0.3", "1", "3"):
            method = AdaptiveHierarchicalHistogram(place.tree, ROWS, MANY.people, c0=Fraction(c0), reading=PUBLISHED)
            for _ in range(repetitions):
                row, made, _ = measured(place, method, MANY.trust(place.table), "1", MANY.cohort)
                deepest = int(made.cells.levels.max())
                yield {"map": place.name, "method": "published", "c0": float(c0), "level": deepest} | row


def figure_8(repetitions: int) -> Iterator[Row]:
    """The secure sum: the size of its shards, the dropouts it allows for, the bits of its modulus."""
    place = maps.new_york()
    flat = Flat(place.tree, 6, ROWS)
    for _ in range(repetitions):
        for people in (10_000, 100_000):
            for shard in (100, 300, 1_000, 3_000, 10_000):
                setting = Setting(f"{people:,}", people, shard)
                row, _, _ = measured(place, flat, setting.trust(place.table), "1", setting.cohort)
                yield {"map": place.name, "method": "flat, level 6", "people": people, "shard": shard} | row
            for allowed in (0, 5, 10, 20, 30, 40):
                setting = Setting("", people, allowed=Fraction(allowed, 100))
                row, _, _ = measured(place, flat, setting.trust(place.table), "1", setting.cohort)
                yield {"map": place.name, "method": "flat, level 6", "people": people, "allowed": allowed} | row
        methods = {
            "prefix tree as published": AdaptiveHierarchicalHistogram(place.tree, ROWS, FEW.people, reading=PUBLISHED),
            "adaptive (ours)": Adaptive(place.tree, ROWS),
        }
        for bits in (6, 8, 9, 10, 11, 12, 13, 14, 16, 20):
            for name, method in methods.items():
                row, _, _ = measured(place, method, Wrapping(FEW.trust(place.table), bits), "1", FEW.cohort)
                chosen = row.pop("bits")
                yield {"map": place.name, "method": name, "modulus": bits, "chosen": chosen} | row


def figure_9(repetitions: int) -> Iterator[Row]:
    """Proportions: a bit that is set more often around one place of the city, 100,000 people."""
    place = maps.city()
    side = place.truth.shape[0]
    y, x = np.mgrid[:side, :side] / side
    kernel = np.exp(-((x - 0.45) ** 2 + (y - 0.55) ** 2) / (2 * 0.1**2))
    infected = np.random.default_rng(9).binomial(place.truth, 0.05 + 0.5 * kernel)
    both = [place.some(place.truth - infected), place.some(infected)]
    columns = {name: np.concatenate([part.columns[name] for part in both]) for name in ("lon", "lat")}
    columns["mark"] = np.repeat([0, 1], [len(part.people) for part in both])
    table = Pixels(columns, np.concatenate([part.people for part in both]))
    goals = {
        "significant: 4 σ on both sides": Significant(),
        "narrow: interval of 0.2": Narrow(Fraction(1, 5)),
        "narrow: interval of 0.1": Narrow(Fraction(1, 10)),
    }
    with np.errstate(invalid="ignore"):
        PICTURES["figure 9"] = [("the proportion in each pixel", infected / place.truth)]
    for repetition in range(repetitions):
        for name, goal in goals.items():
            trust, budget = MANY.trust(table), PureDP(1)
            result = run(Proportion(place.tree, ROWS, goal), trust, budget, Unrecorded())
            made = result.value
            base = made.cells.locate(place.tree.grid(place.tree.depth).ravel())
            people = np.bincount(base, place.truth.ravel(), made.cells.size)
            true = np.bincount(base, infected.ravel(), made.cells.size) / np.maximum(people, 1)
            found = made.shares("mark")
            low, high = found.interval(0.95, sampled=True)
            known, weight = ~np.isnan(found.values), people / people.sum()
            if not repetition:
                PICTURES["figure 9"].append((name, found.values[base].reshape(side, side)))
            yield {
                "map": place.name,
                "method": name,
                "cells": made.cells.size,
                "error": float((weight * np.abs(found.values - true))[known].sum()),
                "width": float((weight * (high - low)).sum()),
                "held": float(((low <= true) & (true <= high))[people > 0].mean()),
                **sent(result.transcript, budget, MANY.cohort),
            }


EXPERIMENTS = {
    "table 1": table_1,
    "table 2": table_2,
    "table 3": table_3,
    "figure 1": figure_1,
    "figure 6": figure_6,
    "figure 7": figure_7,
    "figure 8": figure_8,
    "figure 9": figure_9,
}
PICTURES: dict[str, list[tuple[str, np.ndarray]]] = {}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("repetitions", nargs="?", type=int, default=3)
    options.add_argument("--only", default=",".join(EXPERIMENTS))
    options.add_argument("--pictures", help="a folder for pictures of data that may not be passed on")
    chosen = options.parse_args()
    rows: list[Row] = []
    for name in chosen.only.split(","):
        begin = time.perf_counter()
        rows += [{"experiment": name} | row for row in EXPERIMENTS[name](chosen.repetitions)]
        print(f"{name}: {time.perf_counter() - begin:.0f} s", flush=True)
    publish(rows, PICTURES, chosen.pictures)


if __name__ == "__main__":
    main()
