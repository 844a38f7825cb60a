"""How soon a page of a map is ready in Chromium, and how it moves: 1,000 to 500,000 cells, squares and hexagons.

    python -m research.benchmarks.page_ready

Needs `make studio` and `make system`. Each page is opened from the disk, without a network, in a Chromium that draws in
software; `ready` counts from the beginning of navigation to the map standing there, frames are those while the map is
dragged by 240 pixels, `repaint` is each painting of all cells. `work` is processor time, of the page's main thread and
of all its threads, until it is ready and for a frame: what others do on the machine does not lengthen it. The bundle is
the page without a release. Figures go to results/page_ready.json, with the load of the machine before (a page is one
process among others).
"""

import argparse
import gzip
import json
import os
import subprocess
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np

from hazemap import AtMostRows, Box, Counts, Leaves, PureDP, Quadtree, Query, Release, Statement
from hazemap.algorithms import Flat
from hazemap.estimate import from_transcript
from hazemap.privacy.statement import A_PERSON
from hazemap.queries.algorithm_session import Exchange
from hazemap.queries.noisy_queries import Answer
from hazemap.releases.page.page_file import template
from hazemap.spatial.h3_hexagons import Hexagons

PAGE = Path(__file__).resolve().parents[2] / "web" / "page"
RESULTS = Path(__file__).with_name("results") / "page_ready.json"
AROUND = Box(-74.3, 40.4, -73.6, 41.0)
SIZES = (1_000, 20_000, 100_000, 500_000)


def leaves(kind: str, cells: int) -> Leaves:
    """The first cells of the level that has enough."""
    if kind == "squares":
        level = int(np.ceil(np.log2(cells) / 2))
        tree = Quadtree.around(AROUND, level)
        return Leaves(tree, Leaves.at_level(tree, level).cells[:cells])
    finest = next(fine for fine in range(5, 12) if Hexagons(AROUND, 5, fine).root.size * 7 ** (fine - 5) >= cells)
    hexagons = Hexagons(AROUND, 5, finest)
    return Leaves(hexagons, Leaves.at_level(hexagons, hexagons.depth).cells[:cells])


def release(kind: str, cells: int) -> Release:
    """A map of people who do not exist."""
    found = leaves(kind, cells)
    rng = np.random.default_rng(1)
    sums = rng.poisson(rng.gamma(0.1, 20, found.size)) + np.rint(rng.laplace(0, 1, found.size)).astype(np.int64)
    asked = Query(Counts(found, AtMostRows(1)), Fraction(1))
    transcript = (Exchange(asked, Answer(sums, np.array([1.4]), 3.0)),)
    said = Statement(
        dataset="made up",
        unit=A_PERSON,
        neighbours="one person added or removed",
        budget=PureDP(1),
        bounding=AtMostRows(1),
        trust="curator",
        assumptions=(),
        noise="discrete Laplace",
        public=(),
        charged=(),
        method="flat",
        created="2026-01-02T03:04:05Z",
        version="0.1.0",
    )
    return Release(from_transcript(transcript, found), said, Flat(found.tree, found.tree.depth), transcript)


def main() -> None:
    """Measure every size once, in a browser of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    sizes = parser.parse_args().sizes
    bundle = template().encode()
    figures: dict[str, object] = {"bundle_bytes": len(bundle), "bundle_gzipped": len(gzip.compress(bundle, 9))}
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("squares", "hexagons"):
            for size in sizes:
                file = Path(folder) / f"{kind}-{size}.html"
                file.write_text(release(kind, size).to_html())
                load = round(os.getloadavg()[0], 1)
                command = ["node", "browser/measure_page.mjs", str(file)]
                done = subprocess.run(command, cwd=PAGE, check=True, capture_output=True, text=True)
                found = json.loads(done.stdout)[str(file)]
                figures[file.stem] = {
                    **found,
                    "page_megabytes": round(file.stat().st_size / 1e6, 2),
                    "load_before": load,
                }
                print(file.stem, figures[file.stem], flush=True)
    RESULTS.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
