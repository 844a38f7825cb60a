"""Rows to votes on Spark, ours beside the plain Spark SQL that counts the same, in one session after the other.

    python -m research.benchmarks.spark [--rows 1e6 1e7 1e8] [--folder DIR]

Tables are made by `../shared/bench/big_table.py`, and written anew without the encoding that Spark does not read.
Spark has two threads (`local[2]`), or is a Connect server of the same machine (`--connect`). Plain SQL counts per cell
of a linear 1024 × 1024 grid: without a cap; of at most 10 random rows a person; of one vote that a person's rows share.
Ours are the same rules over a Web-Mercator quadtree of depth 10, and have to give the votes of the engine in process
(DuckDB). Both bring their cells to the driver. Each is run once on the smallest table before anything is measured.
CPU seconds are of all processes: driver, Java and Python workers. The machine's load is told too, because seconds
depend on it. Results go to `results/spark.json`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hazemap.readers.open_table import open_table
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, OneVote, RowIsPerson
from hazemap.tables.votes import Votes

HERE = Path(__file__).resolve().parent
MAKER = HERE.parents[2] / "shared" / "bench" / "big_table.py"
RESULTS = HERE / "results" / "spark.json"
TREE = Quadtree.around(Box(115.7, 39.5, 117.2, 40.5), 10)
CELL = "CAST(floor((lon - 115.7D) / 1.5D * 1024) * 1024 + floor((lat - 39.5D) * 1024) AS INT)"
ROWS = f"SELECT user_id, {CELL} AS cell FROM visits WHERE lon BETWEEN 115.7 AND 117.2 AND lat BETWEEN 39.5 AND 40.5"
DRAWN = f"SELECT cell, row_number() OVER (PARTITION BY user_id ORDER BY rand()) AS place FROM ({ROWS})"
SHARED = f"SELECT cell, 1.0D / count(*) OVER (PARTITION BY user_id) AS vote FROM ({ROWS})"
RULES = {
    "no cap": (RowIsPerson(), f"SELECT cell, count(*) FROM ({ROWS}) GROUP BY cell"),
    "10 rows": (AtMostRows(10), f"SELECT cell, count(*) FROM ({DRAWN}) WHERE place <= 10 GROUP BY cell"),
    "one vote": (OneVote(), f"SELECT cell, sum(vote) FROM ({SHARED}) GROUP BY cell"),
}


def session(connect: bool) -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    maker: Any = SparkSession.builder
    maker = maker.remote("local[2]") if connect else maker.master("local[2]").config("spark.driver.memory", "4g")
    return maker.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false").getOrCreate()


def processes() -> dict[int, tuple[str, float, float]]:
    """This process and all that descend from it: name, CPU seconds and peak memory in GB."""
    parents, tick = {}, os.sysconf("SC_CLK_TCK")
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = entry.read_text().partition("(")[2].rpartition(")")
            peak = next(line for line in (entry.parent / "status").read_text().splitlines() if line.startswith("VmHWM"))
        except (OSError, StopIteration):
            continue
        fields = rest.split()
        cpu = sum(int(each) for each in fields[11:15]) / tick
        parents[int(entry.parent.name)] = int(fields[1]), (name, cpu, int(peak.split()[1]) / 1e6)
    ours = {os.getpid()}
    while more := {pid for pid, (parent, _) in parents.items() if parent in ours} - ours:
        ours |= more
    return {pid: about for pid, (_, about) in parents.items() if pid in ours}


def measured(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    before = {pid: cpu for pid, (_, cpu, _) in processes().items()}
    load, start = os.getloadavg()[0], time.perf_counter()
    made = work()
    seconds, after = time.perf_counter() - start, processes()
    spent = sum(cpu - before.get(pid, 0.0) for pid, (_, cpu, _) in after.items())
    peaks = dict.fromkeys(("driver_gb", "java_gb", "worker_gb"), 0.0)
    for pid, (name, _, peak) in after.items():
        kind = "driver_gb" if pid == os.getpid() else "java_gb" if "java" in name else "worker_gb"
        peaks[kind] = round(max(peaks[kind], peak), 2)
    return made, {"seconds": round(seconds, 2), "cpu_seconds": round(spent, 2), "load": round(load, 1)} | peaks


def table(folder: Path, rows: int) -> Path:
    path = folder / f"spark_1e{len(str(rows)) - 1}.parquet"
    if not path.exists():
        import pyarrow
        from pyarrow import parquet

        with tempfile.TemporaryDirectory(dir=folder) as place:
            made, written = Path(place) / "made.parquet", Path(place) / "written.parquet"
            subprocess.run([sys.executable, str(MAKER), str(made), str(rows)], check=True)
            with parquet.ParquetFile(made) as source:
                schema = source.schema_arrow
                times = schema.get_field_index("ts")
                schema = schema.set(times, schema.field(times).with_type(pyarrow.timestamp("us", "UTC")))
                with parquet.ParquetWriter(written, schema, use_dictionary=False) as writer:
                    for group in range(source.num_row_groups):
                        writer.write_table(source.read_row_group(group).cast(schema))
            written.replace(path)
    return path


def same(one: Votes, other: Votes) -> bool:
    return one.cells.tobytes() == other.cells.tobytes() and one.weights.tobytes() == other.weights.tobytes()


def write(figures: list[dict[str, Any]]) -> None:
    """Put figures into the file of results, in the stead of older ones of the same things."""

    def name(figure: dict[str, Any]) -> tuple[str, int, str]:
        return figure["spark"], figure["rows"], figure["rule"]

    old = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    kept = {name(each): each for each in old + figures}
    RESULTS.write_text(json.dumps([kept[each] for each in sorted(kept)], indent=1) + "\n")


def main() -> None:
    """Measure, print, write."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rows", type=float, nargs="+", default=[1e6, 1e7, 1e8])
    options.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "hazemap-benchmarks")
    options.add_argument("--connect", action="store_true")
    asked = options.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    spark, figures, where = session(asked.connect), [], "connect" if asked.connect else "classic"

    def read(path: Path) -> Any:
        frame = spark.read.parquet(str(path))
        frame.createOrReplaceTempView("visits")
        return frame

    warm = table(asked.folder, int(asked.rows[0]))
    for rule, sql in RULES.values():
        frame = read(warm)
        open_table(frame, key=1).votes(TREE, rule)
        spark.sql(sql).toArrow()
    for rows in map(int, asked.rows):
        path = table(asked.folder, rows)
        for name, (rule, sql) in RULES.items():
            frame = read(path)
            _, plain = measured(lambda sql=sql: spark.sql(sql).toArrow())
            found, ours = measured(lambda rule=rule, frame=frame: open_table(frame, key=1).votes(TREE, rule))
            equal = same(found, open_table(str(path), key=1).votes(TREE, rule))
            ratio = {kind: round(ours[kind] / plain[kind], 2) for kind in ("seconds", "cpu_seconds")}
            figures.append(
                {"spark": where, "rows": rows, "rule": name, "same_votes_as_duckdb": equal}
                | {"plain_sql": plain, "hazemap": ours, "times_plain_sql": ratio}
            )
            print(json.dumps(figures[-1]), flush=True)
            write(figures)
    spark.stop()


if __name__ == "__main__":
    main()
