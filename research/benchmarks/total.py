"""What a share of the budget for the total buys, and what it costs the map: always 9.5 %, and as the default has it.

    python -m research.benchmarks.total [MAP,MAP… [EPSILON,EPSILON… [RUNS]]]

Every release is made with the same noise seeds either way. "l1" is that of the density that the map shows; the
"total" is its standard error in people. "gowalla-one-row" are 7,115 people with one of their rows each. A line a map
and ε is added to results/total.json, in place of one that is there, and docs/results/total.md is written.
"""

import json
import sys
from pathlib import Path

import numpy as np

from hazemap.algorithms import Adaptive
from hazemap.lab.compare import density_metrics as densities
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap, in_pixels, painted
from hazemap.lab.compare.map_scores import Scorer
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import RowIsPerson
from hazemap.trust.curator import Curator
from research.compare.evaluation_datasets import NEW_YORK, evaluation_datasets

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[2] / "shared" / "data"
RESULTS = HERE / "results" / "total.json"
FIXED = {"total_within": None}
MAPS = "few,gowalla-one-row,stroke,twitter,cabs,beijing,city"


def people_of_gowalla() -> GroundTruthMap:
    """One row a person, drawn at random."""
    import pyarrow.parquet as pq

    rows, tree = pq.read_table(DATA / "gowalla_nyc_2009_2010.parquet"), Quadtree.around(NEW_YORK, 10)
    order = np.random.default_rng(1).permutation(rows.num_rows)
    _, first = np.unique(rows["user"].to_numpy()[order], return_index=True)
    lon, lat = (rows[name].to_numpy()[order[first]] for name in ("lon", "lat"))
    return in_pixels("gowalla", tree.cell_at({"lon": lon, "lat": lat}, 10), np.ones(len(first), np.int64), tree, "")


def few_people() -> GroundTruthMap:
    """1,083 made-up people in three clusters."""
    rng = np.random.default_rng(4)
    spot = np.clip(rng.normal(0, 0.03, (1083, 2)) + rng.random((3, 2))[rng.choice(3, 1083)], 0, 0.999)
    counts = np.zeros((1024, 1024), dtype=np.int64)
    np.add.at(counts, tuple((spot * 1024).astype(int).T), 1)
    return GroundTruthMap.of("few", counts)


def measured(place: GroundTruthMap, epsilon: str, runs: int) -> dict:
    truth, table, scorer = densities.density(place.counts), place.table, Scorer(place)
    found = {"fixed": [], "default": []}
    for number in range(runs):
        for name, parameters in (("fixed", FIXED), ("default", {})):
            trust = Curator(table, Stream.fixed(f"{place.name} {epsilon} {number}".encode()))
            made = run(Adaptive(place.tree, RowIsPerson(), **parameters), trust, PureDP(epsilon), Unrecorded()).value
            best, unbiased = painted(made, place.tree)
            total = made.noise.of(np.ones(made.cells.size)).stddev
            ranges = list(scorer.ranges(unbiased).values())
            found[name].append([densities.l1(truth, densities.density(best)), total, made.cells.size, *ranges])
    names = ("l1", "total", "cells", "rectangles", "2 % squares", "6 % squares", "10 % squares")
    mean = {name: dict(zip(names, np.mean(each, axis=0).tolist(), strict=True)) for name, each in found.items()}
    apart = np.array([own[0] - fixed[0] for own, fixed in zip(found["default"], found["fixed"], strict=True)])
    apart /= mean["fixed"]["l1"]
    return {"people": place.people, "runs": runs, "l1, default/fixed": 1 + float(apart.mean())} | {
        "standard error of that": float(apart.std(ddof=1) / runs**0.5),
        **mean,
    }


def page(results: dict) -> str:
    """The table of the documentation."""
    lines = [
        "| map | people | ε | releases | L1, 9.5 % | L1, default | ratio | total ±, 9.5 % | total ±, default |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, line in results.items():
        place, _, epsilon = name.partition(", ε = ")
        fixed, default = line["fixed"], line["default"]
        sure = f"{line['l1, default/fixed']:.3f} ± {line['standard error of that']:.3f}"
        cells = (
            place,
            f"{line['people']:,}",
            epsilon,
            str(line["runs"]),
            f"{fixed['l1']:.4f}",
            f"{default['l1']:.4f}",
            sure,
        )
        lines.append("| " + " | ".join((*cells, f"{fixed['total']:.1f}", f"{default['total']:.1f}")) + " |")
    return "\n".join(lines) + "\n"


def main(maps: str = MAPS, epsilons: str = "0.1,0.3,1", runs: str = "12") -> None:
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    made_up = {"few": few_people, "gowalla-one-row": people_of_gowalla}
    for name in maps.split(","):
        place = made_up[name]() if name in made_up else evaluation_datasets(DATA).map(name)
        for epsilon in epsilons.split(","):
            line = measured(place, epsilon, int(runs))
            results[f"{name}, ε = {epsilon}"] = line
            RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
            (HERE.parents[1] / "docs" / "results" / "total.md").write_text(page(results))
            print(name, epsilon, f"L1 × {line['l1, default/fixed']:.3f} ± {line['standard error of that']:.3f}, total")
            print("   ", *(f"{line[way]['total']:.1f}" for way in ("fixed", "default")), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
