"""Measures how fast rows of a table in PostgreSQL become votes, beside the same rows in a Parquet file.

    python research/benchmarks/postgresql.py 'postgresql:///postgres' --rows 1e6

It makes a table `hazemap_benchmark`, with 1,000 rows for each person, in the database that is named, and drops it at
the end. Every rule counts on every tree, and has to give the same votes of both. Each figure is of a process of its
own, without what the server does. Results go to `results/postgresql.json`, with the load of the machine.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "postgresql.json"
RULES = ("one row", "two cells", "one vote", "rows are people")
TREES = ("quadtree", "hexagons", "districts")


def measure(source: str, rule: str, tree: str) -> None:
    """Count the rows of a source once; print the figures, the votes by their digest."""
    import hashlib

    from hazemap.readers.open_table import open_table
    from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, RowIsPerson

    rules = {
        "one row": AtMostRows(1),
        "two cells": AtMostCells(2),
        "one vote": OneVote(),
        "rows are people": RowIsPerson(),
    }
    counted_on = _tree(tree)
    start = time.perf_counter()
    votes = open_table(source, key=1).votes(counted_on, rules[rule])
    seconds, usage = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    digest = hashlib.sha256(votes.cells.tobytes() + votes.weights.tobytes()).hexdigest()
    figures = {"seconds": round(seconds, 2), "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2)}
    print(json.dumps(figures | {"peak_gb": round(usage.ru_maxrss * 1024 / 1e9, 2), "votes": digest}))


def _tree(name: str) -> Any:
    """Cells of some 150 m, hexagons of some 500 m, or a hundred districts that touch one another."""
    from hazemap.spatial.bounding_box import Box
    from hazemap.spatial.h3_hexagons import Hexagons
    from hazemap.spatial.quadtree import Quadtree

    box = Box(115.7, 39.5, 117.2, 40.5)
    if name == "quadtree":
        return Quadtree.around(box, 10)
    if name == "hexagons":
        return Hexagons(box, 5, 8)
    import geopandas
    import shapely

    from hazemap.spatial.district_layers import DistrictLayer
    from hazemap.spatial.districts import Districts

    corners = [(115.7 + 0.15 * i, 39.5 + 0.1 * j) for i in range(10) for j in range(10)]
    shapes = [shapely.box(west, south, west + 0.15, south + 0.1) for west, south in corners]
    names = {"name": [f"{i}" for i in range(len(shapes))]}
    return Districts.of(DistrictLayer(geopandas.GeoDataFrame(names, geometry=shapes, crs="EPSG:4326")))


def apart(source: str, rule: str, tree: str) -> dict[str, object]:
    """The same in a process of its own."""
    command = [sys.executable, str(Path(__file__).resolve()), source, "--measure", rule, tree]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Make the table, measure, print, write."""
    import psycopg

    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("database")
    options.add_argument("--rows", type=float, default=1e6)
    options.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.measure:
        measure(asked.database, *asked.measure)
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
            for tree, rule in product(TREES, RULES):
                found = {}
                for name, source in (("postgresql", url), ("parquet", file)):
                    load = os.getloadavg()[0]
                    found[name] = apart(source, rule, tree) | {"load": round(load, 1)}
                same = found["postgresql"].pop("votes") == found["parquet"].pop("votes")
                figures.append({"rows": rows, "rule": rule, "tree": tree, "same_votes": same, **found})
                print(json.dumps(figures[-1]), flush=True)
                write(figures)
        finally:
            database.execute("DROP TABLE hazemap_benchmark")


def write(figures: list[dict[str, Any]]) -> None:
    """Put figures into the file of results, in the stead of older ones of the same things."""

    def name(figure: dict[str, Any]) -> tuple[int, str, str]:
        return figure["rows"], figure["tree"], figure["rule"]

    old = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    kept = {name(each): each for each in old + figures}
    RESULTS.write_text(json.dumps([kept[each] for each in sorted(kept)], indent=1) + "\n")


def _copied(url: str, file: str) -> None:
    """The same rows in the same order as a Parquet file."""
    from pyarrow import parquet

    from hazemap.readers.postgresql_tables import open_database
    from hazemap.sources.source import DatabaseTable

    (part,) = open_database(DatabaseTable.parse(url)).parts
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
