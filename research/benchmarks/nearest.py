"""The exact solver on trees against HiGHS, side by side in one run: the same optimum, and how much sooner.

usage: nearest.py [LARGEST]   the largest side of a dense map, 1024 by default; writes results/nearest.json

Both solve Σ 2^−i |ŷ − mass| over the quadtree of a dense map whose noisy sums are drawn here (Laplace noise, scale 5).
HiGHS, through SciPy, is given the sparser of two ways to write it: masses of all nodes, of which parents hold their
children's; and each of its methods, of which the fastest counts. Times are CPU seconds of one thread, the median of
three; memory is what a process of its own grows by during the call, beyond its input.
"""

import json
import sys
import time
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from hazemap.estimate.tree_emd_projection import nearest
from research.benchmarks.nearest_grid import nearest_grid

RNG = np.random.default_rng(4)
Levels = list[np.ndarray]
SMALL, SIDES = 64, (64, 128, 256, 512, 1024, 2048, 4096)
HIGHS = 256
"""The largest side that HiGHS is given."""


def problem(side: int, filled: float) -> tuple[Levels, list[float]]:
    """Noisy sums of a map of which so much is filled, in Z-order, from the 16 cells of level 2 on."""
    true = RNG.pareto(1.5, side * side) * 3 * (RNG.random(side * side) < filled)
    levels = []
    while len(true) >= 16:
        levels.append(np.rint(true + RNG.laplace(0, 5, len(true))))
        true = true.reshape(-1, 4).sum(axis=1)
    return levels[::-1], [2.0 ** -(i + 2) for i in range(len(levels))]


def parents(levels: Levels) -> np.ndarray:
    """The same tree for the solver of any tree."""
    starts = np.cumsum([0, *map(len, levels)])
    inner = [np.repeat(np.arange(a, b), 4) for a, b in pairwise(starts[:-1])]
    return np.concatenate([np.full(len(levels[0]), -1), *inner])


def cost(levels: Levels, weights: list[float], mass: np.ndarray) -> float:
    """Σ weight · |ŷ − mass| of a solution."""
    total = 0.0
    for level, weight in zip(levels[::-1], weights[::-1], strict=True):
        total += weight * float(np.abs(level - mass).sum())
        mass = mass.reshape(-1, 4).sum(axis=1)
    return total


def programme(levels: Levels, weights: list[float]) -> dict:
    """Masses m ≥ 0 and u, l ≥ 0 for each node: m − u + l = ŷ, m is the Σ of the children's, and least w (u + l)."""
    from scipy.sparse import coo_array, eye_array, hstack, vstack  # here, since it counts in a process's memory

    parent, wanted = parents(levels), np.concatenate(levels)
    n, roots = len(wanted), len(levels[0])
    weight = np.repeat(weights, [len(level) for level in levels])
    inner = n - len(levels[-1])
    own = hstack([eye_array(n), -eye_array(n), eye_array(n)])
    rows = np.concatenate([np.arange(inner), parent[roots:]])
    columns = np.concatenate([np.arange(inner), np.arange(roots, n)])
    signs = np.concatenate([np.ones(inner), -np.ones(n - roots)])
    adds = hstack([coo_array((signs, (rows, columns)), shape=(inner, n)), coo_array((inner, 2 * n))])
    return {
        "c": np.concatenate([np.zeros(n), weight, weight]),
        "A_eq": vstack([own, adds]).tocsr(),
        "b_eq": np.concatenate([wanted, np.zeros(inner)]),
    }


def seconds(work: Callable[[], object], times: int = 3) -> float:
    """CPU seconds, the median."""
    found = []
    for _ in range(times):
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return float(np.median(found))


def resident() -> float:
    """The most memory that this process has had, in MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def memory(side: int, filled: float, any_tree: bool) -> float:
    """MB that this process grows by during a call, beyond its input."""
    small, (levels, weights) = problem(SMALL, filled), problem(side, filled)
    nearest_grid(*small)
    nearest(*flat(*small))
    whole = flat(levels, weights) if any_tree else None
    Path("/proc/self/clear_refs").write_text("5")  # the peak from here on
    before = resident()
    if whole:
        nearest(*whole)
    else:
        nearest_grid(levels, weights)
    return resident() - before


def grown(side: int, filled: float, any_tree: bool) -> float:
    """`memory` in a process of its own."""
    with get_context("spawn").Pool(1) as alone:
        return alone.apply(memory, (side, filled, any_tree))


def flat(levels: Levels, weights: list[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same problem for the solver of any tree."""
    return parents(levels), np.concatenate(levels), np.repeat(weights, [len(level) for level in levels])


def allocated(work: Callable[[], object]) -> float:
    """MB that NumPy allocates at its peak during a call."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return peak


def main(largest: int) -> None:
    small = problem(SMALL, 1.0)  # compile first
    nearest_grid(*small)
    nearest(*flat(*small))
    rows = []
    for side in (side for side in SIDES if side <= largest):
        for filled in (0.05, 1.0):
            levels, weights = problem(side, filled)
            row = {"side": side, "filled": filled, "MB": grown(side, filled, False)}
            row["MB allocated"] = allocated(lambda: nearest_grid(levels, weights))  # noqa: B023
            row["seconds"] = seconds(lambda: nearest_grid(levels, weights))  # noqa: B023
            row["cost"] = cost(levels, weights, nearest_grid(levels, weights))
            if side <= 1024:
                every = flat(levels, weights)
                row["MB, any tree"] = grown(side, filled, True)
                row["seconds, any tree"] = seconds(lambda: nearest(*every))  # noqa: B023
                inner = nearest(*every)[-(side**2) :]
                row["cost, any tree"] = cost(levels, weights, inner)
            if side <= HIGHS:
                row |= _highs(levels, weights)
                row["ratio"] = row["seconds, HiGHS"] / row["seconds"]
                row["ratio, any tree"] = row["seconds, HiGHS"] / row["seconds, any tree"]
            rows.append(row)
            print(
                json.dumps({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()})
            )
    path = Path(__file__).parent / "results" / "nearest.json"
    path.write_text(json.dumps(rows, indent=1) + "\n")


def _highs(levels: Levels, weights: list[float]) -> dict:
    """The fastest of its methods, and the optimum that it finds."""
    from scipy.optimize import linprog

    found: dict[str, tuple[float, float]] = {}
    for method in ("highs-ds", "highs-ipm"):
        given = programme(levels, weights)
        begin = time.process_time()
        result = linprog(**given, method=method)
        found[method] = time.process_time() - begin, float(result.fun)
    best = min(found, key=lambda method: found[method][0])
    return {"seconds, HiGHS": found[best][0], "HiGHS": best, "cost, HiGHS": found[best][1]}


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1024)
