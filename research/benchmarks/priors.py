"""Asking again with a prior: rounds and error of a second period's map, begun with the first period's release.

usage: python -m research.benchmarks.priors [REPETITIONS]   8 by default; writes priors.json and docs/results/priors.md

Two periods each of two public data sets, one row a person: Uber pickups in New York in May and June 2014 (a row is a
person), and Gowalla check-ins in New York, halves of the time. Each repetition releases the first period's map and then
the second's: without a prior, and begun with that release. L1 is of the second map at 256² against its truth, as a part
of all people, ± two standard errors of the mean over repetitions.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hazemap.algorithms import Adaptive, AdaptiveHierarchicalHistogram
from hazemap.cells import NOWHERE, Leaves
from hazemap.engines.memory import MemoryTable
from hazemap.lab.compare.ground_truth_maps import painted
from hazemap.privacy.budget import PureDP
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.specs.prior_cells import middles_of, tiled
from hazemap.trust.curator import Curator

DATA = Path(__file__).parents[3] / "shared" / "data"
BOX, DEPTH, SEEN = Box(-74.05, 40.58, -73.75, 40.88), 11, 8
EPSILONS = ("0.1", "0.5", "1", "5")
TREE = Quadtree.around(BOX, DEPTH)
NONE, PRIOR, CUT = "no prior", "prior", "prior, cut once more"


def periods() -> dict[str, tuple[MemoryTable, MemoryTable]]:
    """The first and the second period of each data set."""
    uber = pq.read_table(DATA / "uber_nyc_2014_apr_jul_partial.parquet")
    month = pc.month(uber["ts"]).to_numpy()
    gowalla = pq.read_table(DATA / "gowalla_nyc_2009_2010.parquet").sort_by("ts")
    half = gowalla.num_rows // 2
    return {
        "Uber, May and June": tuple(_people(uber.filter(month == each), None) for each in (5, 6)),
        "Gowalla, two halves": tuple(_people(each, "user") for each in (gowalla[:half], gowalla[half:])),
    }


def _people(rows: Any, person: str | None) -> MemoryTable:
    ids = np.arange(rows.num_rows) if person is None else rows[person].to_numpy()
    places = {name: rows[name].to_numpy() for name in ("lon", "lat")}
    inside = BOX.holds(places["lon"], places["lat"])
    return MemoryTable(ids[inside], {name: column[inside] for name, column in places.items()})


def methods(prior: Leaves | None) -> dict[str, Any]:
    """Each method without a prior, or begun with one."""
    ours, prefix = Adaptive(TREE), AdaptiveHierarchicalHistogram(TREE)
    if prior is None:
        return {f"auto, {NONE}": ours, f"prefix, {NONE}": prefix}
    return {
        f"auto, {PRIOR}": replace(ours, prior=prior, **Adaptive.FROM_MAP),
        f"auto, {CUT}": replace(ours, prior=prior, **Adaptive.FROM_LIST),
        f"prefix, {PRIOR}": replace(prefix, prior=prior),
    }


def truth_of(table: MemoryTable) -> np.ndarray:
    """One row of each person, in pixels."""
    _, first = np.unique(table.person, return_index=True)
    cells = TREE.cell_at({name: column[first] for name, column in table.columns.items()}, DEPTH)
    column, row = TREE.pixels(cells[cells != NOWHERE])
    return seen(np.histogram2d(row, column, bins=1 << DEPTH, range=[[0, 1 << DEPTH]] * 2)[0])


def seen(map_: np.ndarray) -> np.ndarray:
    """In pixels of 256²."""
    parts = map_.shape[0] >> SEEN
    return map_.reshape(1 << SEEN, parts, -1, parts).sum(axis=(1, 3))


def main(repetitions: int) -> None:
    found: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
    for name, (first, second) in periods().items():
        truth = truth_of(second)
        for epsilon in EPSILONS:
            for _ in range(repetitions):
                for method, algorithm in methods(None).items():
                    released = run(algorithm, Curator(first), PureDP(epsilon), Unrecorded()).value.cells
                    prior = tiled(TREE, middles_of(TREE, released.cells[released.cells != NOWHERE]))
                    begun = {text: each for text, each in methods(prior).items() if text[:4] == method[:4]}
                    for text, each in {method: algorithm, **begun}.items():
                        made = run(each, Curator(second), PureDP(epsilon), Unrecorded())
                        shown = seen(painted(made.value, TREE)[0])
                        error = float(np.abs(shown - truth).sum() / truth.sum())
                        found.setdefault((name, epsilon, text), []).append((len(made.transcript), error))
            print(name, epsilon, flush=True)
    rows = []
    for (name, epsilon, text), pairs in found.items():
        rounds, errors = np.array(pairs).T
        band = 2 * errors.std(ddof=1) / len(errors) ** 0.5
        row = {"data": name, "epsilon": epsilon, "method": text, "rounds": float(rounds.mean())}
        rows.append(row | {"l1": float(errors.mean()), "band": float(band), "repetitions": len(errors)})
    here = Path(__file__).parent
    (here / "results" / "priors.json").write_text(json.dumps(rows, indent=1) + "\n")
    (here.parents[1] / "docs" / "results" / "priors.md").write_text(page(rows))


def page(rows: list[dict[str, Any]]) -> str:
    """The page of the documentation."""
    lines = [
        "# Asking again with a prior",
        "",
        "Section 7 of Bagdasaryan et al. (2022) says that the previous result can be where a new query begins, and",
        "leaves it to future work. Here the second period's map is begun with the first period's release, which",
        "[`--prior`](../how-to/priors.md) names. Rounds are questions to people; L1 is of the second map at 256²",
        f"against its truth, as a part of all people, ± two standard errors of {rows[0]['repetitions']} repetitions.",
        "All maps have the same budget.",
        "",
        "The settings with which `auto` begins from a prior were chosen on these very periods. So its figures are",
        "in-sample, and elsewhere it may gain less.",
        "",
    ]
    for name in dict.fromkeys(row["data"] for row in rows):
        ours = [row for row in rows if row["data"] == name]
        lines += [f"## {name}", "", "| method | " + " | ".join(f"ε = {epsilon}" for epsilon in EPSILONS) + " |"]
        lines.append("|---" * (len(EPSILONS) + 1) + "|")
        for method in dict.fromkeys(row["method"] for row in ours):
            known = {row["epsilon"]: row for row in ours if row["method"] == method}
            cells = [
                f"{row['rounds']:.3g} rounds, {row['l1']:.3f} ± {row['band']:.3f}" if row else ""
                for row in (known.get(epsilon) for epsilon in EPSILONS)
            ]
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
        lines.append("")
    lines.append("`python -m research.benchmarks.priors` measures this again.")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 8)
