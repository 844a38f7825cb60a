"""Opening and reading CSV: seconds, processor seconds and peak memory, beside another checkout of hazemap.

    python -m research.benchmarks.csv_reading [--rows 1e7] [--folder DIR] [--before DIR] [--repeat 5]

Tables that are not in the folder are made there by `../shared/bench/big_table.py`: five columns, 62 bytes a line. One
run is `open_table` and the votes of at most one row a person over a quadtree of depth 10, in a process of its own; runs
of the two checkouts take turns, so that what else the machine does falls on both. `--before` names the folder `src` of
a checkout that still let DuckDB sniff the dialect. Every run is in results/csv_reading.json, with the load.
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
from importlib.metadata import version
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
MAKER = HERE.parents[2] / "shared" / "bench" / "big_table.py"
RESULTS = HERE / "results" / "csv_reading.json"
TOLD = ("seconds", "opening", "cpu_seconds", "peak_gb")
KINDS = ("plain", "quoted", "latin-1", "multiline", "packed")
OPTIONS = {"latin-1": {"encoding": "latin-1"}, "multiline": {"multiline": True}}


def measure(path: str, kind: str, rule: str) -> None:
    """In a process of its own: open, read, print what it took."""
    from hazemap.readers.csv_files import CsvDialect
    from hazemap.readers.open_table import open_table
    from hazemap.spatial.bounding_box import Box
    from hazemap.spatial.quadtree import Quadtree
    from hazemap.tables.contribution_bounding import AtMostRows, RowIsPerson

    tree = Quadtree.around(Box(115.7, 39.5, 117.2, 40.5), 10)
    options = {"dialect": CsvDialect(**OPTIONS[kind])} if kind in OPTIONS else {}
    start = time.perf_counter()
    table = open_table(path, key=1, **options)
    opened = time.perf_counter() - start
    votes = table.votes(tree, AtMostRows(1) if rule == "one row" else RowIsPerson())
    seconds = time.perf_counter() - start
    usage = resource.getrusage(resource.RUSAGE_SELF)
    figures = {"seconds": seconds, "opening": opened, "cpu_seconds": usage.ru_utime + usage.ru_stime}
    print(json.dumps(figures | {"peak_gb": usage.ru_maxrss * 1024 / 1e9, "votes": int(votes.weights.sum())}))


def apart(source: Path, path: Path, kind: str, rule: str) -> dict[str, float]:
    command = [sys.executable, str(Path(__file__).resolve()), "--measure", str(path), kind, rule]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(source)}
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(folder: Path, rows: int, kind: str) -> Path:
    """The same rows, written as a kind needs."""
    import pyarrow.csv as pc
    from pyarrow import CompressedOutputStream, parquet

    name = f"big_1e{len(str(rows)) - 1}"
    path = folder / {"quoted": f"{name}-quoted.csv", "packed": f"{name}.csv.gz"}.get(kind, f"{name}.csv")
    if path.exists():
        return path
    made = folder / f"{name}.parquet"
    if not made.exists():
        subprocess.run([sys.executable, str(MAKER), str(made), str(rows)], check=True)
    whole = parquet.read_table(made)
    if kind == "quoted":
        text = whole.column("user_id").cast("string")
        whole = whole.set_column(0, "user_id", text)  # which pyarrow writes in quotes
    partial = path.with_suffix(".partial")
    with CompressedOutputStream(str(partial), "gzip") if kind == "packed" else partial.open("wb") as out:
        pc.write_csv(whole, out)
    return partial.replace(path)


def main() -> None:
    """Measure, print, write."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rows", type=float, default=1e7)
    options.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "hazemap-benchmarks")
    options.add_argument("--before", type=Path)
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.measure:
        measure(*asked.measure)
        return
    asked.folder.mkdir(parents=True, exist_ok=True)
    sources = {"now": HERE.parents[1] / "src"} | ({"before": asked.before.resolve()} if asked.before else {})
    load, figures = [round(os.getloadavg()[0], 2)], []
    for kind, rule in [("plain", "one row"), ("plain", "rows are people"), *((kind, "one row") for kind in KINDS[1:])]:
        path = table(asked.folder, int(asked.rows), kind)
        compared = sources if kind in {"plain", "quoted"} else {"now": sources["now"]}
        for source in compared.values():
            apart(source, table(asked.folder, 100_000, kind), kind, rule)  # compile once
        runs: dict[str, list[dict[str, float]]] = {which: [] for which in compared}
        for _ in range(asked.repeat if kind == "plain" else max(1, asked.repeat // 2)):
            for which, source in compared.items():
                runs[which].append(apart(source, path, kind, rule))
        figure: dict[str, object] = {"rows": int(asked.rows), "file": kind, "rule": rule}
        for which, found in runs.items():
            figure[which] = {
                name: [round(run[name], 3) for run in found]
                for name in ("seconds", "opening", "cpu_seconds", "peak_gb")
            }
        if "before" in runs:
            figure["same_votes"] = runs["now"][0]["votes"] == runs["before"][0]["votes"]
            for name in ("seconds", "cpu_seconds"):
                now, before = ([run[name] for run in runs[which]] for which in ("now", "before"))
                figure[f"{name}_median_of_ratios"] = round(
                    median(one / other for one, other in zip(now, before, strict=True)), 3
                )
                figure[f"{name}_ratio_of_fastest"] = round(min(now) / min(before), 3)
        print(json.dumps(figure), flush=True)
        figures.append(figure)
        load.append(round(os.getloadavg()[0], 2))
    result = {
        "figures": figures,
        "machine": {"processor": platform.machine(), "cores": os.cpu_count(), "load_before_and_after": load},
        "versions": {name: version(name) for name in ("numpy", "numba", "duckdb", "pyarrow")},
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print(f"written to {RESULTS.name}")


if __name__ == "__main__":
    main()
