"""From rows to a published map, file and picture, as a steward types it; beside an unprotected heatmap by hand.

    python -m research.benchmarks.end_to_end [--rows 1e6 1e7 1e8] [--folder DIR]

Ours: `hazemap release` (at most 10 rows a person, a quadtree of depth 10) and `hazemap show`, each a process of its
own, numba's cache warm. The peer: DuckDB counts a 1024 × 1024 grid, matplotlib draws it; no cap, no privacy, no
error bars. Tables that are not in the folder are made there by `../shared/bench/big_table.py`. Wall seconds and
peak memory go to results/end_to_end.json.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from research.benchmarks.counting import BOX, CELL, HERE, MAKER, WITHIN

BY_HAND = f"""
import sys, duckdb, numpy as np
from matplotlib.figure import Figure
rows, picture = sys.argv[1:]
query = "SELECT {CELL} AS cell, count(*) AS number FROM '" + rows + "' WHERE {WITHIN} GROUP BY cell"
cells = duckdb.connect().sql(query).to_arrow_table()
grid = np.zeros(1025 * 1025)
grid[cells["cell"].to_numpy()] = cells["number"].to_numpy()
figure = Figure(figsize=(10, 7))
figure.subplots().imshow(np.log1p(grid[: 1024 * 1024].reshape(1024, 1024)), origin="lower")
figure.savefig(picture, dpi=200)
"""


def timed(command: list[str], home: str) -> tuple[float, float]:
    """Wall seconds and peak gigabytes of a command."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, env={**os.environ, "HAZEMAP_HOME": home}, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"failed: {' '.join(command)}")
    return time.perf_counter() - begin, usage.ru_maxrss / 1e6


def measure(table: Path, folder: str) -> dict[str, float]:
    hazemap = str(Path(sys.executable).with_name("hazemap"))
    release = [hazemap, "release", str(table), "--person", "user_id", "--lon", "lon", "--lat", "lat", "--epsilon", "1"]
    release += [
        "--bounding",
        "rows:10",
        f"--box={BOX}",
        "--cells",
        "quadtree:10",
        "-o",
        f"{folder}/map.parquet",
        "--force",
    ]
    release_seconds, release_peak = timed(release, folder)
    show_seconds, show_peak = timed([hazemap, "show", f"{folder}/map.parquet", "-o", f"{folder}/map.png"], folder)
    peer_seconds, peer_peak = timed([sys.executable, "-c", BY_HAND, str(table), f"{folder}/peer.png"], folder)
    return {
        "release_seconds": round(release_seconds, 2),
        "show_seconds": round(show_seconds, 2),
        "peak_gb": round(max(release_peak, show_peak), 3),
        "peer_seconds": round(peer_seconds, 2),
        "peer_peak_gb": round(peer_peak, 3),
        "ratio": round((release_seconds + show_seconds) / peer_seconds, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", default=["1e6", "1e7", "1e8"])
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    figures = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        for rows in options.rows:
            table = folder / f"big_{rows}.parquet"
            if not table.exists():
                if not MAKER.exists():
                    sys.exit(f"skipped: {table} is not there, nor ../shared/bench/big_table.py to make it")
                subprocess.run([sys.executable, str(MAKER), str(table), rows], check=True)
            measure(table, scratch) if rows == options.rows[0] else None  # the first run compiles and warms the disk
            figures[rows] = measure(table, scratch)
            print(rows, figures[rows])
    (HERE / "results" / "end_to_end.json").write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
