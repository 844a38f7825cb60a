"""What a release costs: CPU seconds and memory of every method, noise included, as maps grow from 512² to 4096².

usage: methods.py [METHOD …]   writes results/methods.json and docs/results/speed.md; of METHODs alone, the rest is kept

Every line is a process of its own on one thread, which is handed the people counted already: in each pixel of the
synthetic city. (Its own pixels are 1024²; for more each person is somewhere in theirs.) It makes one small release, so
that all is loaded, and then those that are measured: the median of their CPU seconds, and how far the peak of memory is
above what the process held before. The yardstick is measured in the same process: 1,048,576 two-sided geometric
numbers of NumPy's, which are neither exact nor secure. Machines differ, and a busy one is slower; ratios move less.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "methods.json"
SIDES = (512, 1024, 2048, 4096)
EPSILON = "0.1"
METHODS = {  # as tables call them, as orders do, and whether they show the published estimate
    "total": ("total", True),
    "singular": ("singular", True),
    "UG": ("uniform-grid", True),
    "AG": ("adaptive-grid", True),
    "Privlet": ("privlet", True),
    "quadtree (uniform)": ("hierarchical", True),
    "quadtree (geometric)": ("geometric", True),
    "HB": ("hb", True),
    "HB, least variance": ("hb-least", True),
    "kd-tree (geometric)": ("kd-tree", True),
    "kd-tree (hybrid)": ("kd-hybrid", True),
    "PrivTree": ("privtree", True),
    "HTF": ("htf", True),
    "HTF+": ("htf+", False),
    "pyramid": ("pyramid", False),
    "prefix tree": ("prefix", True),
    "geometric, shrunk": ("geometric", False),
    "singular, without minus signs": ("flat", False),
    "adaptive": ("adaptive", False),
    "auto": ("auto", False),
}
PUBLIC_CODE = {  # PEERS.md: seconds of public code at 1024²
    "UG": "8–900",
    "AG": "1–3",
    "quadtree (geometric)": "21–29",
    "Privlet": "0.6–1",
    "HB": "23–28",
    "HTF": "5–17",
    "kd-tree (geometric)": "2.3",
}
THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARROW_NUM_THREADS")


def people(side: int) -> tuple[np.ndarray, np.ndarray]:
    """Pixels of the city with someone (numbers of base cells, in order), and how many."""
    from city import shared

    from hazemap.lab.compare.ground_truth_maps import GroundTruthMap

    counts, points = shared("synthetic_city").build()
    if side > len(counts):
        part = side // len(counts)
        spots = points.astype(np.int64) * part + np.random.default_rng(5).integers(0, part, points.shape)
        counts = np.zeros((side, side), dtype=np.int64)
        np.add.at(counts, tuple(spots.T), 1)
    else:
        part = len(counts) // side
        counts = counts.reshape(side, part, side, part).sum(axis=(1, 3))
    table = GroundTruthMap.of("city", counts).table
    return table.cells, table.people


def memory(line: str) -> float:
    """Megabytes, from a line of what Linux knows of this process (its peak survives no exec, as getrusage's does)."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(found.split()[1]) for found in status if found.startswith(f"{line}:")) / 1024


def one(name: str, side: int, stored: str, repetitions: int) -> dict:
    """The figures of one method, in this process."""
    from hazemap.lab.compare.ground_truth_maps import SQUARE, KnownCounts
    from hazemap.lab.compare.practices import Method
    from hazemap.privacy.budget import PureDP
    from hazemap.queries.algorithm_session import Unrecorded, run
    from hazemap.spatial.quadtree import Quadtree
    from hazemap.tables.contribution_bounding import RowIsPerson
    from hazemap.trust.curator import Curator

    spelled, published = METHODS[name]

    def released(depth: int, cells: np.ndarray, counts: np.ndarray, epsilon: str) -> tuple[float, int]:
        tree, rule = Quadtree(SQUARE.left, SQUARE.top, SQUARE.side, depth), RowIsPerson()
        table = KnownCounts(tree, cells, counts)
        table.votes(tree, rule)
        algorithm = Method(name, spelled, published).algorithm(tree, rule, epsilon)
        begin = time.process_time()
        result = run(algorithm, Curator(table), PureDP(epsilon), Unrecorded())
        return time.process_time() - begin, result.value.cells.size

    small = np.random.default_rng(1).integers(0, 400, 4**6)
    released(6, np.arange(4**6, 2 * 4**6, dtype=np.uint64), small, EPSILON)
    with np.load(stored) as city:
        cells, counts = city["cells"], city["people"]
    before = memory("VmRSS")
    found = [released(side.bit_length() - 1, cells, counts, EPSILON) for _ in range(repetitions)]
    peak = memory("VmHWM")
    rng, begin = np.random.default_rng(2), time.process_time()
    for _ in range(5):
        _ = rng.geometric(0.1, 1 << 20) - rng.geometric(0.1, 1 << 20)
    return {
        "seconds": float(np.median([seconds for seconds, _ in found])),
        "least": min(seconds for seconds, _ in found),
        "cells": int(np.median([size for _, size in found])),
        "megabytes": peak - before,
        "peak": peak,
        "yardstick": (time.process_time() - begin) / 5,
    }


def main(wanted: list[str]) -> None:
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() and wanted else {}
    environment = os.environ | dict.fromkeys(THREADS, "1")
    with tempfile.TemporaryDirectory() as folder:
        for side in SIDES:
            cells, counts = people(side)
            stored = str(Path(folder) / "city.npz")
            np.savez(stored, cells=cells, people=counts)
            for name in wanted or METHODS:
                command = [sys.executable, __file__, "--one", name, str(side), stored, "5" if side < 4096 else "3"]
                made = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
                if made.returncode:
                    last = (made.stderr.strip().splitlines() or [f"ended with {made.returncode}"])[-1]
                    print(f"{name}, {side}²: {last}", flush=True)
                    continue
                results.setdefault(name, {})[str(side)] = json.loads(made.stdout)
                print(name, side, results[name][str(side)], flush=True)
    results = {name: results[name] for name in METHODS if name in results}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    text = page(results)
    (HERE.parents[1] / "docs" / "results" / "speed.md").write_text(text)
    print(text)


FILES = HERE / "results" / "files.json"


def of_files() -> list[str]:
    """The section about published files, from what files.py measured."""
    if not FILES.exists():
        return []
    figures = json.loads(FILES.read_text())
    lines = [
        "",
        "## What a published file takes",
        "",
        "CPU seconds (user and system) and peak gigabytes of whole processes, imports included, of a map of 1,048,576",
        "cells; the same command of the version before files were read by column, in turn, on a machine of two cores",
        "that did much else, so that both are slower than alone. Answers are the same to the last bit. Tippecanoe,",
        "which people use for vector tiles, cannot be installed here; before, GDAL wrote them.",
        "",
        "| command | before | now |",
        "|---|---|---|",
    ]
    for task, found in figures.items():
        cells = [
            f"{found[f'{name}_cpu_seconds']:.2f} s ({found[f'{name}_peak_gb']:.2f} GB)" for name in ("before", "after")
        ]
        lines.append(f"| {task} | {cells[0]} | {cells[1]} |")
    return [*lines, "", "`research/benchmarks/files.py` measures them."]


LIMITS = HERE / "results" / "performance_limits.json"


def of_limits() -> list[str]:
    """The section about what may not take longer, from what performance_limits.py measured."""
    if not LIMITS.exists():
        return []
    lines = [
        "",
        "## What people wait for, and the most that it may take",
        "",
        "Whole processes; CPU seconds are user and system. Seconds by the clock are longer than on a quiet machine",
        "where more than two programs ran (the load) on its two cores.",
        "",
        "| | CPU s | s | GB | at most | load |",
        "|---|---|---|---|---|---|",
    ]
    for task, found in json.loads(LIMITS.read_text()).items():
        limits = [
            f"{found[name]:g} {unit}"
            for name, unit in (("most_seconds", "s"), ("most_cpu_seconds", "CPU s"), ("most_gb", "GB"))
            if name in found
        ]
        took = f"{found['cpu_seconds']:.2f} | {found['seconds']:.2f} | {found['peak_gb']:.2f}"
        lines.append(f"| {task} | {took} | {', '.join(limits)} | {found['load_before']} to {found['load_after']} |")
    return [*lines, "", "`research/benchmarks/performance_limits.py` measures them."]


def page(results: dict) -> str:
    """The table of the documentation."""
    yard = np.median([found["yardstick"] for sides in results.values() for found in sides.values()])
    lines = [
        "# What a release costs",
        "",
        "CPU seconds of one release of the synthetic city (3.5 M people, counted already) on one thread, noise",
        f"included; in brackets the megabytes that it needs at its peak. ε = {EPSILON}. As a yardstick, 1,048,576",
        f"two-sided geometric numbers of NumPy's took {yard:.3f} s here, and 0.016 s where the last column was",
        "measured: seconds of public code at 1024².",
        "",
        "| method | " + " | ".join(f"{side}²" for side in SIDES) + " | public code |",
        "|---" * (len(SIDES) + 2) + "|",
    ]
    for name, sides in results.items():
        cells = (sides.get(str(side)) for side in SIDES)
        numbers = [f"{found['seconds']:.3f} ({found['megabytes']:,.0f})" if found else "" for found in cells]
        lines.append(f"| {name} | " + " | ".join(numbers) + f" | {PUBLIC_CODE.get(name, '')} |")
    return "\n".join([*lines, *of_files(), *of_limits()]) + "\n"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one(sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]))))
    else:
        main(sys.argv[1:])
