"""How long ten million points take to become cells, and a large partition to be understood.

    python -m research.benchmarks.cells

prints the best of three runs of each task and writes them to `results/cells.json`.
"""

import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hazemap.cells import Leaves, Tree
from hazemap.spatial.bounding_box import WORLD, Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree

POINTS = 10_000_000
CITY = Box(-74.05, 40.68, -73.90, 40.80)
RESULTS = Path(__file__).parent / "results" / "cells.json"


def best(task: Callable[[], object], runs: int = 3) -> float:
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        task()
        seconds.append(time.perf_counter() - start)
    return round(min(seconds), 4)


def points(box: Box, count: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {"lon": rng.uniform(box.west, box.east, count), "lat": rng.uniform(box.south, box.north, count)}


def leaves(tree: Tree, count: int) -> Leaves:
    """So many cells on the way to random points: nested chains of all levels."""
    chains = [tree.cell_at(points(WORLD, count), tree.depth)]
    for _ in range(tree.depth):
        chains.append(tree.parent(chains[-1]))
    cells = np.unique(np.concatenate(chains))
    return Leaves(tree, np.random.default_rng(2).permutation(cells)[:count])


def main() -> None:
    load = round(os.getloadavg()[0], 2)  # of other work: the hexagons use every core
    trees: dict[str, tuple[Tree, Box]] = {
        "quadtree of the world, depth 24": (Quadtree.world(24), WORLD),
        "quadtree around a city, depth 14": (Quadtree.around(CITY, 14), CITY),
        "hexagons of the world, resolutions 0 to 8": (Hexagons(WORLD, 0, 8), WORLD),
        "hexagons of a city, resolutions 6 to 10": (Hexagons(CITY, 6, 10), CITY),
        "hexagons of a city, resolutions 6 to 15": (Hexagons(CITY, 6, 15), CITY),
    }
    seconds = {}
    for name, (tree, box) in trees.items():
        rows = points(box, POINTS)
        tree.cell_at({column: values[:1] for column, values in rows.items()}, tree.depth)  # compile, load
        seconds[f"{POINTS:,} points to cells: {name}"] = best(lambda: tree.cell_at(rows, tree.depth))  # noqa: B023
    for name in ("quadtree of the world, depth 24", "hexagons of the world, resolutions 0 to 8"):
        tree, box = trees[name]
        partition = leaves(tree, 100_000)
        base = np.sort(tree.cell_at(points(box, 1_000_000), tree.depth))
        weights = np.ones(len(base), dtype=np.int64)
        tasks: dict[str, Callable[[Leaves], object]] = {
            "holders": lambda fresh: fresh.holder,
            "areas": lambda fresh: fresh.areas,
            "totals of 1,000,000 base cells": lambda fresh: fresh.total(base, weights),  # noqa: B023
            "places of 1,000,000 base cells": lambda fresh: fresh.locate(base),  # noqa: B023
        }
        for task, run in tasks.items():
            seconds[f"100,000 nested cells, {task}: {name}"] = best(lambda: run(Leaves(tree, partition.cells)))  # noqa: B023
    for name, value in seconds.items():
        print(f"{value:8.3f} s  {name}")
    report = {
        "cores": os.cpu_count(),
        "load before": load,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "seconds": seconds,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
