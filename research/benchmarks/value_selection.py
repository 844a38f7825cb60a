"""Of how many more places do statistics tell if cells are selected first? Buses like Austin's, and Austin's themselves.

    python -m research.benchmarks.value_selection [--runs 5] [--copies 60]

As in value_intervals.py every bus of `../shared/data/austin_bus_2015.parquet` is there `copies` times, with speeds of
its own. For every case the number of places told without and with a selection (a tenth of the budget), at the same
price; and of those told with a selection, how often their 95 % intervals hold the mean of the records as they were
bounded. Results are written to results/value_selection.json.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from hazemap.algorithms import CellStatistics, PartitionSelection, TwoStageStatistics
from hazemap.engines.duckdb import EngineTable
from hazemap.estimate.value_estimates import Measurements
from hazemap.privacy.budget import ApproxDP, Budget, PureDP
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.queries.noisy_queries import Answer
from hazemap.readers.open_table import open_table
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.tables.contribution_bounding import OwnMeans
from hazemap.temporal.time_slots import Always, Clock, Slots
from hazemap.trust.curator import Curator
from hazemap.values.value_encoding import ValueEncoding
from research.benchmarks.value_intervals import BOX, BUSES, HERE, buses

RESULTS = HERE / "results" / "value_selection.json"
HOURS = Clock.hours("America/Chicago")
MADE_UP: list[tuple[int, Slots, int, Budget]] = [
    (7, HOURS, 24, PureDP(1)),
    (8, HOURS, 24, PureDP(1)),
    (6, HOURS, 24, PureDP(1)),
    (7, HOURS, 24, ApproxDP(1, "1e-6")),
    (8, HOURS, 24, ApproxDP(1, "1e-6")),
    (7, Always(), 8, PureDP(1)),
]
REAL: list[tuple[int, Slots, int, Budget]] = [
    (6, Always(), 8, PureDP(1)),
    (7, Always(), 8, PureDP(2)),
    (7, Always(), 8, PureDP(4)),
    (7, HOURS, 24, PureDP(8)),
    (7, Always(), 8, ApproxDP(2, "1e-6")),
    (7, HOURS, 24, ApproxDP(4, "1e-6")),
]


def case(table: EngineTable, of: tuple[int, Slots, int, Budget], runs: int) -> dict[str, object]:
    resolution, slots, cap, budget = of
    value_encoding = ValueEncoding(0, 30)
    plain = CellStatistics(
        Hexagons(BOX, resolution, resolution), 0, slots, value_encoding, OwnMeans(cap, scale=value_encoding.scale)
    )
    votes = 1 if isinstance(budget, PureDP) else min(8, cap)
    chosen = TwoStageStatistics(plain, None, PartitionSelection(most=votes))
    told: dict[str, list[int]] = {"plain": [], "selected": []}
    cells, inside = [], 0
    for _ in range(runs):
        found = run(plain, Curator(table), budget, Unrecorded()).value
        told["plain"].append(int((~found.means().too_few).sum()))
        done = run(chosen, Curator(table), budget, Unrecorded())
        mean, asked = done.value.means(), done.transcript[-1].question.encoder
        truth = Measurements.of(asked, Answer(asked.total(table), np.full(1, 1e-9))).means().value
        known = ~mean.too_few
        told["selected"].append(int(known.sum()))
        inside += int(((mean.low <= truth) & (truth <= mean.high) & known).sum())
        cells.append(done.value.tree.cells.size)
    return {
        "resolution": resolution,
        "slots": len(slots.names),
        "max_cells_per_person": cap,
        "budget": str(budget),
        "told": float(np.mean(told["plain"])),
        "told, selected": float(np.mean(told["selected"])),
        "cells": plain.measured.cells.size,
        "cells kept": float(np.mean(cells)),
        "held, selected": inside / max(sum(told["selected"]), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--copies", type=int, default=60)
    asked = parser.parse_args()
    found = []
    for name, cases in (("austin_bus_2015", REAL), (f"{asked.copies} of each bus", MADE_UP)):
        for of in cases:
            if name == "austin_bus_2015":
                table = open_table(BUSES, person="user", measured="speed_ms", timed=True)
            else:
                table, _ = buses(asked.copies, np.random.default_rng(1), HOURS, of[0])
            found.append({"table": name, "runs": asked.runs} | case(table, of, asked.runs))
            print(json.dumps(found[-1]), flush=True)
    Path(RESULTS).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
