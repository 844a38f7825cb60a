"""How often 95 % intervals hold the truth: releases of the city × unions of released cells.

usage: intervals.py [RELEASES] [UNIONS]   writes results/intervals.json
"""

import json
import sys
from pathlib import Path

import numpy as np

from hazemap.algorithms import Adaptive, Flat
from hazemap.privacy.budget import ZCDP, PureDP
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.releases.estimates import estimate
from hazemap.tables.contribution_bounding import RowIsPerson
from hazemap.trust.curator import Curator
from research.benchmarks.city import TREE, table, truth


def held(method, budget, releases: int, unions: int) -> float:
    """The part of intervals that hold the true count; unions of 1 to all cells, sizes spread evenly in logarithm."""
    rng, base = np.random.default_rng(), TREE.grid(10).ravel()
    order = np.argsort(base)
    trust, hits = Curator(table()), 0
    for _ in range(releases):
        cells = run(method, trust, budget, Unrecorded()).value
        true = cells.cells.total(base[order], truth().ravel()[order].astype(np.int64))
        for _ in range(unions):
            size = int(np.exp(rng.uniform(0, np.log(cells.cells.size))))
            weights = np.zeros(cells.cells.size)
            weights[rng.choice(cells.cells.size, size, replace=False)] = 1.0
            found = estimate(cells, weights, "people", 0.95)
            hits += found.low <= weights @ true <= found.high
    return hits / (releases * unions)


def main(releases: int, unions: int) -> None:
    rows = RowIsPerson()
    results = {
        f"{name}, {budget}": held(method, budget, releases, unions)
        for name, method, budget in [
            ("adaptive", Adaptive(TREE, rows), PureDP("0.5")),
            ("adaptive", Adaptive(TREE, rows), PureDP("0.1")),
            ("adaptive", Adaptive(TREE, rows), ZCDP("0.01")),
            ("flat, level 6", Flat(TREE, 6, rows), PureDP("0.1")),
        ]
    }
    for name, part in results.items():
        print(f"{name:32} {100 * part:.2f} % of {releases} × {unions} intervals hold the truth")
    out = Path(__file__).parent / "results" / "intervals.json"
    out.write_text(json.dumps({"releases": releases, "unions": unions, "held": results}, indent=1) + "\n")


if __name__ == "__main__":
    main(*(int(n) for n in sys.argv[1:3]) if len(sys.argv) > 2 else (50, 2000))
