"""What the trust costs: one adaptive map of a made-up city, 100,000 people, by who is trusted; L1 and MSE of each.

    python -m research.benchmarks.trust_models

The city is that of the evaluation data (3.5 M people, 1024 × 1024 pixels); each repetition draws its people anew, the
same for all. Sums are in shards of 10,000; nobody drops out or works with the server. All spend ε = 1 against
whoever sees what is opened; with δ = 10⁻⁶ where they may. Results go to results/trust_models.json. It judges nothing.
"""

import json
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np

from hazemap.algorithms import Adaptive
from hazemap.engines.memory import MemoryTable
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.federated.trust.in_memory_secure_aggregation import SimulatedSecureAggregation
from hazemap.federated.trust.local import LocalReports
from hazemap.lab.compare.density_metrics import density, l1, mse
from hazemap.privacy.budget import ApproxDP, Budget, PureDP
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.queries.noisy_queries import Trust
from hazemap.trust.curator import Curator
from research.benchmarks.city import TREE, picture, truth

PEOPLE, SHARD, REPETITIONS, SEED = 100_000, 10_000, 6, 7
LOCAL = Fraction(8)
PURE, APPROXIMATE = PureDP(1), ApproxDP(1, "1e-6")
RESULTS = Path(__file__).with_name("results") / "trust_models.json"


def cohort(shard: int) -> Cohort:
    """Everybody, in shards of this size."""
    return Cohort(PEOPLE, shard, Fraction(0), Fraction(0), Sampling.ONE, Mode.SEMI_HONEST)


def summed(shard: int, local: Fraction | None = None) -> Callable[[MemoryTable], Trust]:
    """Secure sums in shards of this size."""
    return lambda table: SimulatedSecureAggregation(table, cohort(shard), local_epsilon=local)


CASES: tuple[tuple[str, Budget, Callable[[MemoryTable], Trust]], ...] = (
    ("a curator", PURE, Curator),
    ("a curator", APPROXIMATE, Curator),
    ("secure sums, noise in shares", PURE, summed(SHARD)),
    ("secure sums of local reports, ε₀ ≤ 8", APPROXIMATE, summed(SHARD, LOCAL)),
    ("secure sums of local reports, ε₀ ≤ 2", APPROXIMATE, summed(SHARD, Fraction(2))),
    ("local reports that the server sees", PURE, lambda table: LocalReports(table, PEOPLE)),
)


def people(rng: np.random.Generator) -> MemoryTable:
    """A sample without replacement, each in the middle of their pixel."""
    counts = truth().ravel()
    drawn = np.sort(rng.choice(int(counts.sum()), PEOPLE, replace=False))
    at = np.searchsorted(np.cumsum(counts), drawn, "right")
    west, south, east, north = TREE.bounds(TREE.grid(10).ravel()[at])
    return MemoryTable(np.arange(PEOPLE), {"lon": (west + east) / 2, "lat": (south + north) / 2})


def main() -> None:
    """Run, print, write."""
    rng, rows = np.random.default_rng(SEED), []
    true, found = density(truth()), {}
    for _ in range(REPETITIONS):
        table = people(rng)
        for name, budget, trust in CASES:
            start = time.process_time()
            made = run(Adaptive.for_devices(TREE), trust(table), budget, Unrecorded())
            estimate = density(picture(made.value.cells, made.value.values))
            row = (l1(true, estimate), mse(true, estimate), made.value.cells.size, len(made.transcript))
            found.setdefault((name, str(budget)), []).append((*row, time.process_time() - start))
    for (name, budget), runs in found.items():
        mean = np.mean(runs, axis=0).tolist()
        each = {"l1": round(mean[0], 4), "mse_e12": round(1e12 * mean[1], 3), "cells": round(mean[2])}
        each |= {"rounds": round(mean[3], 1), "cpu_seconds": round(mean[4], 1)}
        rows.append({"trust": name, "budget": budget} | each)
        print(rows[-1])
    facts = {"people": PEOPLE, "shard": SHARD, "repetitions": REPETITIONS, "seed": SEED}
    RESULTS.write_text(json.dumps(facts | {"cases": rows}, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
