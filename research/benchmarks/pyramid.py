"""Maps of few people in earth mover's distance: pyramids, as published and ours, and what they are compared with.

usage: pyramid.py [REPETITIONS] [LARGEST]   20 and 1024 by default; writes results/pyramid.json, docs/results/pyramid.md

200 people with a home in the synthetic city and 1 to 19 places around it (σ = 1 % of the side), one vote each, shared
out; the distance is exact, on the ground (L1, unit square), at full resolution or, of finer maps, seen at 512² (which
changes it by 0.002 at most). Bands are two standard errors of the mean over draws of people and of noise. Seconds
are of one run of one thread in CPU time, noise included.
"""

import json
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hazemap.algorithms import Adaptive, DensePyramid, PublishedPyramid, Pyramid
from hazemap.lab.compare.density_metrics import density
from hazemap.lab.compare.earth_movers_distance import emd
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap, painted
from hazemap.lab.methods import LaplaceClip, TopCells
from hazemap.privacy.budget import PureDP
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import OneVote
from hazemap.trust.curator import Curator
from research.benchmarks.maps import city
from research.compare.location_visits import Visits, around_homes

VOTE = OneVote()
EPSILONS, SIDES = ("1", "5", "10"), (64, 256, 512, 1024)
PYRAMIDS: dict[str, Callable[[Quadtree], Any]] = {
    "pyramid, w = 20": lambda tree: Pyramid(tree, VOTE, kept=20),
    "pyramid": lambda tree: Pyramid(tree, VOTE),
    "dense pyramid": lambda tree: DensePyramid(tree, VOTE),
    "pyramid as published, w = 20": lambda tree: PublishedPyramid(tree, VOTE),
}
OTHERS: dict[str, Callable[[Quadtree], Any]] = {
    "adaptive": lambda tree: Adaptive(tree, VOTE),
    "top 0.01 %": lambda tree: TopCells(tree, tree.depth, VOTE, Fraction(1, 10_000)),
    "Laplace, clipped": lambda tree: LaplaceClip(tree, tree.depth, VOTE),
}
FINE = ("pyramid, w = 20", "pyramid as published, w = 20")
"""What is measured on finer maps too, where the distance itself takes seconds."""
PEERS = {"pyramid (public code), w = 20": (0.124, 0.070, 0.058), "top 0.01 % (public code)": (0.28, 0.28, 0.22)}
"""PEERS.md, at 256²."""


def people(place: GroundTruthMap, depth: int, repetition: int) -> Visits:
    """The same 200 people at every resolution."""
    return around_homes(place, 200, 19, 0.01, str(repetition).encode()).at(depth)


def measured(known: Visits, make: Callable[[Quadtree], Any], epsilon: str) -> tuple[float, float]:
    """The distance of one map, and the seconds it took."""
    trust = Curator(known.table)
    begin = time.process_time()
    made = run(make(known.tree), trust, PureDP(epsilon), Unrecorded()).value
    seconds = time.process_time() - begin
    shown, _ = painted(made, known.tree)
    return emd(seen(density(known.truth)), seen(density(shown))), seconds


def seen(map_: np.ndarray) -> np.ndarray:
    """In pixels of at most 512²."""
    parts = max(map_.shape[0] // 512, 1)
    return map_.reshape(map_.shape[0] // parts, parts, -1, parts).sum(axis=(1, 3))


def main(repetitions: int, largest: int) -> None:
    truth = city().truth
    place = GroundTruthMap("the city", city().tree, truth)
    measured(people(place, 6, 0), PYRAMIDS["pyramid"], "1")  # compile first
    measured(people(place, 6, 0), PYRAMIDS["pyramid as published, w = 20"], "1")
    rows = []
    for side in (side for side in SIDES if side <= largest):
        methods = PYRAMIDS | OTHERS if side <= 256 else {name: PYRAMIDS[name] for name in FINE}
        found: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for repetition in range(repetitions):
            known = people(place, side.bit_length() - 1, repetition)
            for name, make in methods.items():
                for epsilon in EPSILONS:
                    found.setdefault((name, epsilon), []).append(measured(known, make, epsilon))
        for (name, epsilon), pairs in found.items():
            distances, seconds = np.array(pairs).T
            row = {"method": name, "side": side, "epsilon": float(epsilon), "emd": float(distances.mean())}
            row |= {"band": float(2 * distances.std(ddof=1) / len(pairs) ** 0.5), "seconds": float(np.median(seconds))}
            rows.append(row | {"repetitions": repetitions})
            print(*rows[-1].values(), flush=True)
        here = Path(__file__).parent
        (here / "results" / "pyramid.json").write_text(json.dumps(rows, indent=1) + "\n")
        (here.parents[1] / "docs" / "results" / "pyramid.md").write_text(page(rows))


def page(rows: list[dict[str, Any]]) -> str:
    """The page of the documentation."""
    sides = sorted({row["side"] for row in rows})
    known = {(row["method"], row["side"], row["epsilon"]): row for row in rows}
    lines = [
        "# Maps of few people in earth mover's distance",
        "",
        f"200 people with homes in the synthetic city and 1 to 19 places each around them, {rows[0]['repetitions']}",
        "draws of people and noise; one vote a person. The distance of the normalised maps is exact (L1, unit square;",
        "maps of 1024² are seen at 512²), ± two standard errors. A pyramid costs as much however fine the pixels are,",
        "and is as near.",
        "",
        "| method | ε | " + " | ".join(f"{side}²" for side in sides) + " | seconds |",
        "|---|---|" + "---|" * (len(sides) + 1),
    ]
    for name in (*PYRAMIDS, *OTHERS):
        for epsilon in EPSILONS:
            cells = [known.get((name, side, float(epsilon))) for side in sides]
            shown = [f"{row['emd']:.4f} ± {row['band']:.4f}" if row else "" for row in cells]
            last = [row for row in cells if row][-1]
            seconds = f"{last['seconds']:.2f} at {last['side']}²"
            lines.append(f"| {name} | {epsilon} | " + " | ".join(shown) + f" | {seconds} |")
    for name, figures in PEERS.items():
        for epsilon, figure in zip(EPSILONS, figures, strict=True):
            lines.append(
                f"| {name} | {epsilon} | " + " | ".join(f"{figure}" if side == 256 else "" for side in sides) + " | |"
            )
    return "\n".join([*lines, "", "`research/benchmarks/pyramid.py` makes this page.", ""])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20, int(sys.argv[2]) if len(sys.argv) > 2 else 1024)
