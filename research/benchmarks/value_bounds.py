"""How good are bounds that a share of the budget finds? Made-up values of so many people, one record each, ε = 1.

    python -m research.benchmarks.value_bounds [--runs 100]

For each distribution, number of people and share: how often bounds were found; the median of their width as a part of
the width between the 1 % and 99 % quantiles, over what is left of the budget (which is how much wider intervals get,
against these quantiles declared); and which part of people's values was clipped, in the mean, and in 9 of 10 runs at
most. Results are written to results/value_bounds.json.
"""

import argparse
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np

from hazemap.algorithms import PrivateValueBounds
from hazemap.cells import Tree
from hazemap.errors import InputError
from hazemap.privacy.budget import PureDP
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.tables.contribution_bounding import Bounding
from hazemap.tables.votes import Votes
from hazemap.trust.curator import Curator
from hazemap.values.histogram_bins import FloatGrid

RESULTS = Path(__file__).resolve().parent / "results" / "value_bounds.json"
Made = Callable[[np.random.Generator, int], np.ndarray]
VALUES: dict[str, Made] = {
    "speeds, a fifth of them 0": lambda rng, n: np.where(rng.random(n) < 0.2, 0, np.clip(rng.normal(30, 15, n), 0, 65)),
    "delays of both signs": lambda rng, n: rng.normal(0, 60, n) + rng.exponential(60, n),
    "kelvins": lambda rng, n: rng.normal(290, 8, n),
    "log-normal": lambda rng, n: rng.lognormal(1, 1, n),
    "1 of 200 impossible": lambda rng, n: np.where(rng.random(n) < 0.005, 1e9, rng.normal(20, 5, n)),
}


class OneRecordEach:
    """Votes of people who have one record each, without the rows."""

    def __init__(self, line: FloatGrid, values: np.ndarray) -> None:
        cells, counts = np.unique(line.cells_of(values), return_counts=True)
        self.counted = Votes(cells, counts * 1024)

    def votes(self, tree: Tree, bounding: Bounding) -> Votes:  # noqa: ARG002 - there is one line and one rule
        """The same for every question."""
        return self.counted


def tried(made: Made, people: int, share: Fraction, runs: int) -> dict[str, float]:
    rng, line = np.random.default_rng(people), FloatGrid()
    method = PrivateValueBounds(line, shares=(share, Fraction(1, 5)))
    found = []
    for _ in range(runs):
        values = made(rng, people)
        try:
            bounds = run(method, Curator(OneRecordEach(line, values)), PureDP(1), Unrecorded()).value
        except InputError:
            continue
        first, last = np.quantile(values, [0.01, 0.99])
        width = (bounds.high - bounds.low) / (last - first) / float(1 - bounds.spent)
        found.append((width, (values < bounds.low).mean() + (values > bounds.high).mean()))
    if not found:
        return {"found": 0.0}
    widths, clipped = np.array(found).T
    return {
        "found": len(found) / runs,
        "width": float(np.median(widths)),
        "clipped": float(clipped.mean()),
        "clipped, nine of ten": float(np.quantile(clipped, 0.9)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    asked = parser.parse_args()
    results = []
    for name, made in VALUES.items():
        for people in (300, 1_000, 3_000, 10_000, 100_000):
            for share in (Fraction(1, 20), Fraction(1, 10), Fraction(1, 5)):
                result = {"values": name, "people": people, "share": float(share)}
                results.append(result | tried(made, people, share, asked.runs))
                print(json.dumps(results[-1]), flush=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
