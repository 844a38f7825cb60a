"""Rows to votes, ours beside plain DuckDB SQL, each in a process of its own: seconds and peak memory.

    python -m research.benchmarks.counting [--rows 1e6 1e7 1e8] [--folder DIR] [--repeat 5]

Tables that are not in the folder are made there by `../shared/bench/big_table.py`. Peers: DuckDB counts per
cell of a linear 1024 × 1024 grid, without a cap, and with at most 10 random rows a person, by `arg_min` and
by eight hash passes under a memory limit of 1 GB. Ours: a Web-Mercator quadtree of depth 10. All tasks run in
turn, again and again, ours right after its peer. Two ratios: fastest to fastest, which a quiet moment of one of
the two can move, and the median over the rounds. Every run is in results/counting.json, with the load.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from statistics import median

from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree

HERE = Path(__file__).resolve().parent
MAKER = HERE.parents[2] / "shared" / "bench" / "big_table.py"
RESULTS = HERE / "results" / "counting.json"
BOX = Box(115.7, 39.5, 117.2, 40.5)
CAP = 10
WITHIN = "lon BETWEEN 115.7 AND 117.2 AND lat BETWEEN 39.5 AND 40.5"
CELL = "floor((lon - 115.7) / 1.5 * 1024)::INT * 1024 + floor((lat - 39.5) * 1024)::INT"


def sql(path: str, *queries: str, limit: str = "") -> int:
    import duckdb

    database = duckdb.connect(config={"memory_limit": limit} if limit else {})
    return sum(database.sql(query.format(rows=f"'{path}'")).to_arrow_table().num_rows for query in queries)


def sql_count(path: str) -> int:
    return sql(path, f"SELECT {CELL} AS cell, count(*) FROM {{rows}} WHERE {WITHIN} GROUP BY cell")


def kept(where: str) -> str:
    sample = f"SELECT unnest(arg_min({CELL}, random(), {CAP})) AS cell FROM {{rows}} WHERE {where} GROUP BY user_id"
    return f"SELECT cell, count(*) FROM ({sample}) GROUP BY cell"


def sql_cap(path: str) -> int:
    return sql(path, kept(WITHIN))


def sql_cap_in_passes(path: str) -> int:
    passes = (kept(f"{WITHIN} AND hash(user_id) % 8 = {i}") for i in range(8))
    return sql(path, *passes, limit="1GB")


def ours(rule: str) -> Callable[[str], int]:
    def count(path: str) -> int:
        from hazemap.readers.open_table import open_table
        from hazemap.tables import contribution_bounding as tables

        bounding = {
            "no cap": tables.RowIsPerson(),
            "one row": tables.AtMostRows(1),
            "cap": tables.AtMostRows(CAP),
            "cells": tables.AtMostCells(CAP),
            "vote": tables.OneVote(),
        }[rule]
        return len(open_table(path).votes(Quadtree.around(BOX, 10), bounding).cells)

    return count


TASKS: dict[str, tuple[Callable[[str], int], str | None]] = {
    "count, plain SQL": (sql_count, None),
    "count, hazemap": (ours("no cap"), "count, plain SQL"),
    "10 rows a person, SQL in 8 passes, 1 GB": (sql_cap_in_passes, None),
    "10 rows a person, plain SQL": (sql_cap, None),
    "10 rows a person, hazemap": (ours("cap"), "10 rows a person, plain SQL"),
    "1 row a person, hazemap": (ours("one row"), None),
    "10 cells a person, hazemap": (ours("cells"), None),
    "one vote a person, hazemap": (ours("vote"), None),
}


def measure(task: str, path: str) -> None:
    """In a process of its own: run one task and print what it took."""
    start = time.perf_counter()
    cells = TASKS[task][0](path)
    seconds = time.perf_counter() - start
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu = usage.ru_utime + usage.ru_stime
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu, "peak_gb": usage.ru_maxrss * 1024 / 1e9, "cells": cells}))


def apart(task: str, path: Path) -> dict[str, float]:
    command = [sys.executable, str(Path(__file__).resolve()), "--task", task, "--table", str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(folder: Path, rows: int) -> Path:
    path = folder / f"big_1e{len(str(rows)) - 1}.parquet"
    if not path.exists():
        print(f"making {path.name} ...", flush=True)
        partial = path.with_suffix(".partial")
        subprocess.run([sys.executable, str(MAKER), str(partial), str(rows)], check=True)
        partial.replace(path)
    return path


def compare(path: Path, rows: int, repeat: int) -> list[dict[str, object]]:
    """All tasks on one table, in turn, so that what else the machine does falls on all of them."""
    runs: dict[str, list[dict[str, float]]] = {task: [] for task in TASKS}
    for _ in range(repeat):
        for task in TASKS:
            runs[task].append(apart(task, path))
    best = {task: min(found, key=lambda run: run["seconds"]) for task, found in runs.items()}
    figures = []
    for task, (_, peer) in TASKS.items():
        run = best[task]
        figure: dict[str, object] = {"rows": rows, "task": task} | {k: round(v, 3) for k, v in run.items()}
        figure["peak_gb"] = round(max(each["peak_gb"] for each in runs[task]), 3)
        took = f"{run['seconds']:7.2f} s {run['cpu_seconds']:7.2f} CPU s {figure['peak_gb']:6.2f} GB"
        line = f"{rows:>11,} {task:<42} {took}"
        figure["all_seconds"] = [round(each["seconds"], 3) for each in runs[task]]
        figure["all_cpu_seconds"] = [round(each["cpu_seconds"], 3) for each in runs[task]]
        if peer:
            rounds = [one["seconds"] / other["seconds"] for one, other in zip(runs[task], runs[peer], strict=True)]
            figure["ratio_of_fastest"] = round(run["seconds"] / best[peer]["seconds"], 2)
            figure["ratio_median_of_rounds"] = round(median(rounds), 2)
            figure["cpu_ratio_of_fastest"] = round(run["cpu_seconds"] / best[peer]["cpu_seconds"], 2)
            line += f"  × plain SQL: {figure['ratio_of_fastest']:.2f}, median {figure['ratio_median_of_rounds']:.2f}"
        print(line, flush=True)
        figures.append(figure)
    return figures


def main() -> None:
    """Measure, print, write."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rows", type=float, nargs="+", default=[1e6, 1e7, 1e8])
    options.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "hazemap-benchmarks")
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    options.add_argument("--table", help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.task:
        measure(asked.task, asked.table)
        return
    asked.folder.mkdir(parents=True, exist_ok=True)
    load = [round(os.getloadavg()[0], 2)]
    figures = []
    for number in asked.rows:
        path = table(asked.folder, int(number))
        for task in TASKS:
            if not figures and "hazemap" in task:
                apart(task, path)  # compile once, as an installation does at its first use
        figures += compare(path, int(number), asked.repeat)
        load.append(round(os.getloadavg()[0], 2))
    result = {
        "figures": figures,
        "machine": {"processor": platform.machine(), "cores": os.cpu_count(), "load_before_and_after_each_table": load},
        "versions": {name: version(name) for name in ("numpy", "numba", "duckdb", "pyarrow")},
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print(f"written to {RESULTS.name}")


if __name__ == "__main__":
    main()
