"""What people wait for, beside the most that it may take: each in a process of its own, with the load of the machine.

    python -m research.benchmarks.performance_limits [--folder DIR] [--rows 1e8] [--runs 3] [--only vote files national]

One vote a person over 100 million rows (the table of `counting.py`, made in DIR if it is not there: 2 GB); `ask`,
`show` and `export` on a map of 1,048,576 cells (`files.py`); a national release of 300 million people, map and file
(`national_release.py`). CPU seconds are user and system, of the least run; seconds by the clock say something on a
quiet machine only, so the load stands beside them. Figures that are not measured again stay. Writes
results/performance_limits.json; `methods.py` puts it on the page of speed.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from research.benchmarks import counting, files, national_release
from research.benchmarks.methods import RESULTS as METHODS
from research.benchmarks.methods import page

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "performance_limits.json"
VOTE = "one vote a person, hazemap"
Figures = dict[str, float]


def of_runs(runs: list[Figures], limit: Figures) -> Figures:
    """The least seconds of some runs, the most memory, and what they may be."""
    least = {name: round(min(run[name] for run in runs), 2) for name in ("cpu_seconds", "seconds")}
    return {**least, "peak_gb": round(max(run["peak_gb"] for run in runs), 2), **limit}


def vote(folder: Path, rows: int, runs: int) -> dict[str, Figures]:
    path = counting.table(folder, rows)
    counting.apart(VOTE, path)  # compiles, and warms the disk
    found = [counting.apart(VOTE, path) for _ in range(runs)]
    return {f"one vote a person, {rows:,} rows": of_runs(found, {"most_seconds": 15, "most_gb": 1.3})}


def of_files(folder: Path, _: int, runs: int) -> dict[str, Figures]:
    hazemap = str(Path(sys.executable).with_name("hazemap"))
    for name, level, cells in (("map", 10, 1 << 20), ("part", 9, 100_000)):
        made = f"{folder}/{name}.parquet"
        files.took([sys.executable, "-c", files.MAKE, made, str(level), str(cells)], files.SRC)
    tasks: dict[str, tuple[list[str], float]] = {
        "ask, all of 1,048,576 cells": (["ask", f"{folder}/map.parquet"], 0.7),
        "ask, a box of them": (["ask", f"{folder}/map.parquet", files.BOX], 0.7),
        "show them": (["show", f"{folder}/map.parquet", "-o", f"{folder}/map.png"], 4),
        "export 100,000 cells as .pmtiles": (
            ["export", f"{folder}/part.parquet", "-o", f"{folder}/map.pmtiles", "--force"],
            10,
        ),
    }
    found = {}
    for task, (words, most) in tasks.items():
        each = list[Figures]()
        for run in range(1 + runs):
            begin = time.perf_counter()
            cpu, peak = files.took([hazemap, *words], files.SRC)
            figures = {"cpu_seconds": cpu, "seconds": time.perf_counter() - begin, "peak_gb": peak * 1.024}
            each += [figures] if run else []  # the first one compiles
        found[task] = of_runs(each, {"most_cpu_seconds": most})
    return found


def national(_: Path, __: int, ___: int) -> dict[str, Figures]:
    timed = national_release.measured()
    run = {
        "cpu_seconds": timed["the map"] + timed["the file"],
        "seconds": timed["the map, clock"] + timed["the file, clock"],
        "peak_gb": timed["memory with the file, GB"],
    }
    return {"a national release, map and file": of_runs([run], {"most_cpu_seconds": 60})}


TASKS: dict[str, Callable[[Path, int, int], dict[str, Figures]]] = {
    "vote": vote,
    "files": of_files,
    "national": national,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--rows", type=float, default=1e8)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=TASKS, default=list(TASKS))
    asked = parser.parse_args()
    known: dict[str, Figures] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    with tempfile.TemporaryDirectory() as scratch:
        for name in asked.only:
            before = os.getloadavg()[0]
            for task, figures in TASKS[name](asked.folder or Path(scratch), int(asked.rows), asked.runs).items():
                load = {"load_before": round(before, 1), "load_after": round(os.getloadavg()[0], 1)}
                known[task] = figures | load
                print(task, known[task], flush=True)
            RESULTS.write_text(json.dumps(known, indent=1) + "\n")
    (HERE.parents[1] / "docs" / "results" / "speed.md").write_text(page(json.loads(METHODS.read_text())))


if __name__ == "__main__":
    main()
