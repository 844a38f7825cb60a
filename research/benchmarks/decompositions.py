"""Trees that only a curator can cut, on the city: errors of rectangles and densities, and seconds.

usage: decompositions.py [REPETITIONS]   writes results/decompositions.json

Seconds are of the processor, one thread, noise included, votes already counted (as they are after the first question).
"""

import json
import os
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

from hazemap.algorithms import AdaptiveGrid, PrivTree
from hazemap.cellmap import Reading
from hazemap.lab.methods import KDTree
from hazemap.privacy.budget import PureDP
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.tables.contribution_bounding import RowIsPerson
from hazemap.trust.curator import Curator
from research.benchmarks.city import TREE, picture, shared, table, truth

ROWS = RowIsPerson()
METHODS = {
    "AG, as published": AdaptiveGrid(TREE, ROWS, reading=Reading.UNBIASED),
    "kd-tree (geometric)": KDTree(TREE, ROWS),
    "kd-tree (uniform)": KDTree.uniform(TREE, ROWS),
    "kd-hybrid": KDTree.hybrid(TREE, ROWS),
    "PrivTree": PrivTree(TREE, ROWS),
}
EPSILONS = ("0.1", "0.3", "0.5")
PUBLIC_CODE = {"kd-tree (geometric)": {"0.1": {"range random": 2.8, "l1": 0.65, "seconds": 2.3}}}  # PEERS.md


def measure(method, epsilon: str, repetitions: int) -> dict:
    queries, trust, found = shared("range_queries"), Curator(table()), []
    once = partial(run, method, trust, PureDP(epsilon), Unrecorded())
    once()
    for _ in range(repetitions):
        begin = time.process_time()
        made = once().value
        one = {"seconds": time.process_time() - begin, "cells": made.cells.size}
        for name, values in (("range", made.unbiased), ("shown", made.values)):
            shown = picture(made.cells, values)
            one |= {f"{name} {kind}": error for kind, error in queries.relative_errors(truth(), shown).items()}
            mse, l1 = queries.density_errors(truth(), shown)
            one |= {"mse": mse * 1e12, "l1": l1} if name == "range" else {"shown mse": mse * 1e12, "shown l1": l1}
        found.append(one)
    return {
        "repetitions": repetitions,
        "mean": {key: float(np.mean([one[key] for one in found])) for key in found[0]},
        "spread": {key: float(np.std([one[key] for one in found], ddof=1)) for key in found[0]},
    }


def main(repetitions: int) -> None:
    before = os.getloadavg()[0]
    results: dict = {"cores": os.cpu_count(), "load before": round(before, 2), "public code": PUBLIC_CODE}
    for name, method in METHODS.items():
        results[name] = {epsilon: measure(method, epsilon, repetitions) for epsilon in EPSILONS}
        for epsilon, one in results[name].items():
            m, s = one["mean"], one["spread"]
            print(
                f"{name:20} {epsilon}: {m['cells']:8,.0f} cells, rectangles {m['range random']:.2f} ± "
                f"{s['range random']:.2f} % (shown {m['shown random']:.2f}), 2 % {m['range 2%']:.2f}, L1 {m['l1']:.3f} "
                f"(shown {m['shown l1']:.3f}), MSE {m['mse']:.2f}, {m['seconds']:.3f} s"
            )
    path = Path(__file__).parent / "results" / "decompositions.json"
    path.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
