"""Measures how fast rows of a table in PostgreSQL become votes, beside the same rows in a Parquet file.

    python research/benchmarks/postgresql.py 'postgresql:///postgres' --rows 1e6

It makes a table `hazemap_benchmark`, with 1,000 rows for each person, in the database that is named, and drops it at
the end. Each figure is of a process of its own. Results go to `results/postgresql.json`, with the load of the machine.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
RULES = ("one row", "one vote", "rows are people")


def measure(source: str, rule: str) -> None:
    """Count the rows of a source once; print the figures, the votes by their digest."""
    import hashlib

    from hazemap.readers.open_table import open_table
    from hazemap.spatial.bounding_box import Box
    from hazemap.spatial.quadtree import Quadtree
    from hazemap.tables.contribution_bounding import AtMostRows, OneVote, RowIsPerson

    rules = {"one row": AtMostRows(1), "one vote": OneVote(), "rows are people": RowIsPerson()}
    tree = Quadtree.around(Box(115.7, 39.5, 117.2, 40.5), 10)
    start = time.perf_counter()
    votes = open_table(source, key=1).votes(tree, rules[rule])
    seconds, usage = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    digest = hashlib.sha256(votes.cells.tobytes() + votes.weights.tobytes()).hexdigest()
    figures = {"seconds": round(seconds, 2), "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2)}
    print(json.dumps(figures | {"peak_gb": round(usage.ru_maxrss * 1024 / 1e9, 2), "votes": digest}))


def apart(source: str, rule: str) -> dict[str, object]:
    """The same in a process of its own."""
    command = [sys.executable, str(Path(__file__).resolve()), source, "--measure", rule]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Make the table, measure, print, write."""
    import psycopg

    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("database")
    options.add_argument("--rows", type=float, default=1e6)
    options.add_argument("--measure", choices=RULES, help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.measure:
        measure(asked.database, asked.measure)
        return
    rows, figures = int(asked.rows), []
    with (
        psycopg.connect(asked.database, autocommit=True) as database,
        tempfile.TemporaryDirectory(prefix="hazemap-") as folder,
    ):
        database.execute("DROP TABLE IF EXISTS hazemap_benchmark")
        database.execute("SELECT setseed(0.5)")
        database.execute(
            f'CREATE TABLE hazemap_benchmark AS SELECT (i::bigint * 7919) % {rows // 1000} AS "user", 115.7 + 1.5 * random() AS lon,'  # noqa: E501
            f" 39.5 + random() AS lat FROM generate_series(1, {rows}) i"
        )
        try:
            sign = "&" if "?" in asked.database else "?"
            url, file = f"{asked.database}{sign}table=hazemap_benchmark", str(Path(folder) / "rows.parquet")
            _copied(url, file)
            for rule in RULES:
                found = {}
                for name, source in (("postgresql", url), ("parquet", file)):
                    load = os.getloadavg()[0]
                    found[name] = apart(source, rule) | {"load": round(load, 1)}
                same = found["postgresql"].pop("votes") == found["parquet"].pop("votes")
                figures.append({"rows": rows, "rule": rule, "same_votes": same, **found})
                print(json.dumps(figures[-1]), flush=True)
        finally:
            database.execute("DROP TABLE hazemap_benchmark")
    results = HERE / "results" / "postgresql.json"
    kept = [each for each in json.loads(results.read_text()) if each["rows"] != rows] if results.exists() else []
    results.write_text(json.dumps(kept + figures, indent=1) + "\n")


def _copied(url: str, file: str) -> None:
    """The same rows in the same order as a Parquet file."""
    from pyarrow import parquet

    from hazemap.readers.postgresql_tables import open_database

    (part,) = open_database(url).parts
    feed = part.feed
    if feed is None:
        raise TypeError("a table in a database has a feed")
    writer = None
    for batch in feed.batches(["user", "lon", "lat"]):
        writer = writer or parquet.ParquetWriter(file, batch.schema)
        writer.write_batch(batch)
    if writer is not None:
        writer.close()


if __name__ == "__main__":
    main()
