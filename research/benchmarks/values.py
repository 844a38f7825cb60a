"""Statistics of a value in every hexagon and hour of the day, from files of many rows: seconds and peak memory.

    python -m research.benchmarks.values [--rows 1e7 1e8] [--people 1e6] [--folder DIR] [--threads N] [--memory MB]

A table is made once by DuckDB (people around homes of their own, 30 days) and read in a process of its own: counters of
means (and, with --variance, of variances) in 24 slots × about 20,000 hexagons, with noise, from the file to the table
of means with intervals. Wall and processor seconds and peak memory are added to results/values.json, with the load.
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
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "values.json"

MAKE = """
COPY (
    SELECT user_id, 115.8 + 1.3 * home_x + 0.1 * (random() + random() - 1) AS lon,
        39.6 + 0.8 * home_y + 0.1 * (random() + random() - 1) AS lat,
        TIMESTAMP '2026-01-01' + to_seconds(floor(random() * 2592000)::BIGINT) AS ts,
        (20 + 20 * home_x + 20 * (random() + random() - 1))::FLOAT AS speed
    FROM (
        SELECT user_id, hash(user_id * 2) % 100003 / 100003.0 AS home_x,
            hash(user_id * 2 + 1) % 100003 / 100003.0 AS home_y
        FROM (SELECT (hash(range) % {people})::INTEGER AS user_id FROM range({rows}))
    )
) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 1000000)
"""


def make(path: Path, rows: int, people: int) -> None:
    import duckdb

    duckdb.connect(config={"memory_limit": "1GB"}).sql(MAKE.format(rows=rows, people=people, path=path))


def measure(path: str, degree: int, threads: int | None, memory: int) -> dict[str, float]:
    """One read, in this process."""
    from fractions import Fraction

    import numpy as np

    from hazemap.cells import Leaves
    from hazemap.encoders import Values
    from hazemap.estimate.value_estimates import Measurements
    from hazemap.privacy.budget import PureDP
    from hazemap.queries.noisy_queries import Query
    from hazemap.readers.open_table import open_table
    from hazemap.spatial.bounding_box import Box
    from hazemap.spatial.h3_hexagons import Hexagons
    from hazemap.tables.contribution_bounding import OwnMeans
    from hazemap.temporal.time_slots import Clock
    from hazemap.trust.curator import Curator
    from hazemap.values.cell_slot_counters import CellTimeSlots
    from hazemap.values.value_encoding import ValueEncoding

    value_encoding = ValueEncoding(0, 65, degree=degree)
    box = Box(115.7, 39.5, 117.2, 40.5)
    warm = CellTimeSlots(Leaves.at_level(Hexagons(box, 8, 8), 0), Clock.hours("Asia/Shanghai"), value_encoding)
    values = Values(warm, OwnMeans(24, scale=value_encoding.scale))
    began, worked = time.perf_counter(), time.process_time()
    table = open_table(
        path, person="user_id", measured="speed", timed=True, box=box, threads=threads, memory_limit=memory << 20
    )
    answer = Curator(table).answer(Query(values, Fraction(1)), PureDP(1))
    found = Measurements.of(values, answer).means()
    return {
        "cells": values.tree.cells.size,
        "slots": len(values.tree.slots.names),
        "passes": table.report.passes,
        "known": float(np.mean(~found.too_few)),
        "wall": time.perf_counter() - began,
        "cpu": time.process_time() - worked,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="+", type=float, default=[1e7])
    parser.add_argument("--people", type=float, default=1e6)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--threads", type=int)
    parser.add_argument("--memory", type=int, default=1024, help="megabytes for what is kept of people")
    parser.add_argument("--variance", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measure(asked.one, 1 + asked.variance, asked.threads, asked.memory)))
        return
    for rows in map(int, asked.rows):
        people = int(asked.people)
        path = asked.folder / f"values_{rows}_{people}.parquet"
        if not path.exists():
            make(path, rows, people)
        command = [sys.executable, __file__, "--one", str(path)]
        command += (
            ["--memory", str(asked.memory)]
            + ["--variance"] * asked.variance
            + (["--threads", str(asked.threads)] if asked.threads else [])
        )
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        known = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
        run = {"rows": rows, "people": people, "memory_mb": asked.memory, "variance": asked.variance, **found}
        run |= {"load": os.getloadavg()[0], "processors": os.cpu_count(), "python": platform.python_version()}
        RESULTS.write_text(json.dumps([*known, run], indent=1) + "\n")
        print(run)


if __name__ == "__main__":
    main()
