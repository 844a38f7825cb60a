"""What it takes to ask a published file, draw it and export it, before and after, each command a process of its own.

    python -m research.benchmarks.files [--before SRC] [--runs 3] [--tiles 100000]

SRC is the `src` folder of an older hazemap: it makes the same map, and answers the same questions of its own file, in
turn with this one, so that what else the machine does falls on both. Files are made in a scratch folder: a map of
1,048,576 cells of people who do not exist. CPU seconds (user and system) and peak memory of whole processes, the least
of the runs, go to results/files.json; `methods.py` puts them on the page of speed. Each command runs once before, which
compiles hazemap's modules as installing it does. For vector tiles the peer that people use is tippecanoe, which this
machine cannot install; the older hazemap had GDAL write them.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from research.benchmarks.methods import RESULTS as METHODS
from research.benchmarks.methods import page

SRC = Path(__file__).resolve().parents[2] / "src"
RESULTS = Path(__file__).with_name("results") / "files.json"
BOX = "--box=-74.02,40.70,-73.93,40.80"
MAKE = """
import sys
import numpy as np
import hazemap
from fractions import Fraction
from hazemap import AtMostRows, Box, Counts, Leaves, PureDP, Quadtree, Query, Release, Statement
from hazemap.queries.algorithm_session import Exchange
from hazemap.algorithms import Flat
from hazemap.estimate import from_transcript
from hazemap.queries.noisy_queries import Answer
from hazemap.privacy.statement import A_PERSON

path, level, cells = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
tree = Quadtree.around(Box(-74.1, 40.6, -73.8, 40.9), level)
leaves = Leaves(tree, Leaves.at_level(tree, level).cells[:cells])
rng = np.random.default_rng(1)
sums = rng.poisson(rng.gamma(0.1, 20, leaves.size)) + np.rint(rng.laplace(0, 1, leaves.size)).astype(np.int64)
asked = Query(Counts(leaves, AtMostRows(1)), Fraction(1))
transcript = (Exchange(asked, Answer(sums, np.array([1.4]), 3.0)),)
said = Statement("made up", A_PERSON, "one person added or removed", PureDP(1), AtMostRows(1), "curator", (),
                 "discrete Laplace", (), (), "flat", "2026-01-02T03:04:05Z", "0.1.0")
Release(from_transcript(transcript, leaves), said, Flat(tree, level), transcript).save(path)
"""


def took(command: list[str], src: Path) -> tuple[float, float]:
    """CPU seconds and peak gigabytes of a command with this hazemap."""
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(command, env={**surroundings, "PYTHONPATH": str(src)}, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"failed: {' '.join(command)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--before", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--tiles", type=int, default=100_000)
    asked = parser.parse_args()
    sources = {"after": SRC} | ({"before": asked.before} if asked.before else {})
    hazemap = str(Path(sys.executable).with_name("hazemap"))
    figures = dict[str, dict[str, float]]()
    with tempfile.TemporaryDirectory() as folder:
        tasks = {
            "ask, all of the map": ["ask", "{}/map.parquet"],
            "ask, a box": ["ask", "{}/map.parquet", BOX],
            "show": ["show", "{}/map.parquet", "-o", "{}/map.png"],
            f"export {asked.tiles:,} cells as .pmtiles": [
                "export",
                "{}/part.parquet",
                "-o",
                "{}/map.pmtiles",
                "--force",
            ],
        }
        for name, src in sources.items():
            (Path(folder) / name).mkdir()
            for file, level, cells in (("map", 10, 1 << 20), ("part", 9, asked.tiles)):
                took([sys.executable, "-c", MAKE, f"{folder}/{name}/{file}.parquet", str(level), str(cells)], src)
        for task, words in tasks.items():
            runs: dict[str, list[tuple[float, float]]] = {name: [] for name in sources}
            for run in range(1 + (asked.runs if "export" not in task else 1)):
                for name, src in sources.items():
                    command = [hazemap, *(word.format(f"{folder}/{name}") for word in words)]
                    found = took(command, src)
                    runs[name] += [found] if run else []  # the first one compiles
            figures[task] = {}
            for name, each in runs.items():
                figures[task][f"{name}_cpu_seconds"] = round(min(seconds for seconds, _ in each), 2)
                figures[task][f"{name}_peak_gb"] = round(max(peak for _, peak in each), 2)
            print(task, figures[task], flush=True)
    RESULTS.write_text(json.dumps(figures, indent=2) + "\n")
    methods = json.loads(METHODS.read_text())
    (SRC.parent / "docs" / "results" / "speed.md").write_text(page(methods))


if __name__ == "__main__":
    main()
