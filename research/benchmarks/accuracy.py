"""Errors of our methods on the city, side by side: range queries, L1 and MSE of the density.

usage: accuracy.py [REPETITIONS [METHOD …]]   writes results/accuracy.json and docs/results/accuracy.md

Of METHODs alone ("uniform grid"), what was measured of the others is kept.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

from hazemap.algorithms import Adaptive, AdaptiveGrid, AdaptiveHierarchicalHistogram, Flat, UniformGrid
from hazemap.cellmap import Reading
from hazemap.estimate import shown
from hazemap.privacy.budget import PureDP
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.tables.contribution_bounding import RowIsPerson
from hazemap.trust.curator import Curator
from research.benchmarks.city import TREE, picture, shared, table, truth

ROWS = RowIsPerson()
METHODS = {
    "flat, level 7": Flat(TREE, 7, ROWS),
    "flat, level 8": Flat(TREE, 8, ROWS),
    "uniform grid": UniformGrid(TREE, ROWS),
    "adaptive grid": AdaptiveGrid(TREE, ROWS),
    "prefix tree, as published": AdaptiveHierarchicalHistogram(TREE, ROWS, reading=Reading.UNBIASED),
    "adaptive": Adaptive(TREE, ROWS),
}
EPSILONS = ("0.1", "0.3", "0.5")
PUBLIC_CODE = {  # PEERS.md: random rectangles in %, L1, MSE (e-12) of the adaptive and the uniform grid
    "adaptive grid (public code)": {
        "0.1": (0.59, 0.414, 0.78),
        "0.3": (0.285, 0.350, 0.44),
        "0.5": (0.205, 0.327, 0.31),
    },
    "uniform grid (public code)": {"0.1": (1.05, 0.352, None), "0.3": (0.64, 0.314, None), "0.5": (0.52, 0.296, None)},
}


def measure(method, epsilon: str, repetitions: int) -> dict:
    queries = shared("range_queries")
    trust, found = Curator(table()), []
    run(method, trust, PureDP(epsilon), Unrecorded())  # votes are counted and loops compiled before anything is timed
    for _ in range(repetitions):
        begin = time.process_time()
        result = run(method, trust, PureDP(epsilon), Unrecorded()).value
        seconds = time.process_time() - begin
        fine = shown(result)
        best, unbiased = picture(fine.cells, fine.values), picture(result.cells, result.unbiased)
        mse, l1 = queries.density_errors(truth(), best)
        ranges = queries.relative_errors(truth(), unbiased)
        guessed = queries.relative_errors(truth(), best)
        found.append(
            {"cells": result.cells.size, "seconds": seconds, "mse": mse * 1e12, "l1": l1}
            | {f"range {name}": value for name, value in ranges.items()}
            | {f"shown {name}": value for name, value in guessed.items()}
        )
    keys = found[0]
    mean = {key: float(np.mean([one[key] for one in found])) for key in keys}
    spread = {key: float(np.std([one[key] for one in found], ddof=min(1, repetitions - 1))) for key in keys}
    return {"mean": mean, "spread": spread, "repetitions": repetitions}


def main(repetitions: int, chosen: list[str]) -> None:
    here = Path(__file__).parent
    (here / "results").mkdir(exist_ok=True)
    file = here / "results" / "accuracy.json"
    known = json.loads(file.read_text()) if chosen and file.exists() else {}
    for name in chosen or METHODS:
        known[name] = {epsilon: measure(METHODS[name], epsilon, repetitions) for epsilon in EPSILONS}
    results = {name: known[name] for name in METHODS if name in known}
    file.write_text(json.dumps(results, indent=1) + "\n")
    text = page(results, repetitions)
    (here.parents[1] / "docs" / "results").mkdir(exist_ok=True)
    (here.parents[1] / "docs" / "results" / "accuracy.md").write_text(text)
    print(text)


def page(results: dict, repetitions: int) -> str:
    """The table of the documentation."""
    lines = [
        f"Mean of {repetitions} releases of the synthetic city (3.5 M people, 1024²) for each row and ε. Rectangles:",
        "mean relative error in % of 2,000 random rectangles, from the unbiased estimate, and in brackets from the",
        "map that is shown. L1 and MSE (× 10⁻¹²) are of the density that is shown. The last rows are measured figures",
        "of public code. Uniform and adaptive grids are shown by the most plausible map, as the adaptive method is;",
        "unbiased numbers of an adaptive grid come from the parts of its blocks alone.",
        "",
        "| method | ε | cells | rectangles | 2 % squares | L1 | MSE | CPU seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, by_epsilon in results.items():
        for epsilon, found in by_epsilon.items():
            m = found["mean"]
            lines.append(
                f"| {name} | {epsilon} | {m['cells']:,.0f} | {m['range random']:.3f} ({m['shown random']:.3f}) | "
                f"{m['range 2%']:.2f} ({m['shown 2%']:.2f}) | {m['l1']:.3f} | {m['mse']:.2f} | {m['seconds']:.3f} |"
            )
    for name, by_epsilon in PUBLIC_CODE.items():
        for epsilon, (rectangles, l1, mse) in by_epsilon.items():
            lines.append(f"| {name} | {epsilon} | | {rectangles:.2f} | | {l1:.3f} | {mse or ''} | |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5, sys.argv[2:])
