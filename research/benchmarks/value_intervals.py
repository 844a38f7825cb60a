"""Do 95 % intervals of means hold in 94 to 96 of 100 places? Buses like Austin's, of whose speeds the truth is known.

    python -m research.benchmarks.value_intervals [--runs 50] [--copies 60] [--epsilon 1] [--delta 1e-6]

Every bus of `../shared/data/austin_bus_2015.parquet` is there `copies` times, each copy with the places and times of
all its records and speeds of its own: a mean of the cell and the hour, a bus's own habit, and chance. Every run adds
fresh noise. Held against: what was asked for (the statistic of the records as the bounding rule leaves them), and the
same without a cap on cells. Counted over the places that are told. Results are added to results/value_intervals.json.
"""

import argparse
import json
from fractions import Fraction
from pathlib import Path

import numpy as np

from hazemap.cells import Leaves
from hazemap.encoders import Values
from hazemap.engines.duckdb import EngineTable
from hazemap.estimate.value_estimates import Measurements
from hazemap.privacy.budget import ApproxDP, PureDP
from hazemap.queries.noisy_queries import Answer, Query
from hazemap.readers.open_table import open_table
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.tables.contribution_bounding import OwnMeans
from hazemap.temporal.time_slots import Clock
from hazemap.trust.curator import Curator
from hazemap.values.cell_slot_counters import CellTimeSlots
from hazemap.values.value_encoding import ValueEncoding

HERE = Path(__file__).resolve().parent
BUSES = HERE.parents[2] / "shared" / "data" / "austin_bus_2015.parquet"
RESULTS = HERE / "results" / "value_intervals.json"
BOX = Box(-97.95, 30.1, -97.55, 30.55)


def buses(copies: int, rng: np.random.Generator, slots: Clock, resolution: int) -> tuple[EngineTable, Leaves]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = pq.read_table(BUSES)
    user, lon, lat = (rows[name].to_numpy() for name in ("user", "lon", "lat"))
    time = rows["ts"].cast("timestamp[us]").to_numpy().astype("datetime64[us]").astype(np.int64) / 1e6
    cells = Leaves.at_level(Hexagons(BOX, resolution, resolution), 0)
    place = cells.locate(cells.tree.cell_at({"lon": lon, "lat": lat}, 0)) * len(slots.names) + slots.at(time)
    usual = rng.uniform(4, 20, place.max() + 1)
    person = np.concatenate([user.astype(np.int64) * copies + copy for copy in range(copies)])
    habit = rng.normal(0, 2, person.max() + 1)
    mean = np.tile(usual[place], copies) + habit[person]
    speed = np.clip(rng.normal(mean, 5), 0, 30)
    moments = pa.array((np.tile(time, copies) * 1e6).astype(np.int64), pa.timestamp("us"))
    columns = {"lon": np.tile(lon, copies), "lat": np.tile(lat, copies), "ts": moments, "speed": speed}
    arrow = pa.table({"user": person, **columns})
    return open_table(arrow, measured="speed", timed=True), cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--copies", type=int, default=60)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--delta")
    parser.add_argument("--resolution", type=int, default=7)
    parser.add_argument("--cells", type=int, default=24)
    asked = parser.parse_args()
    budget = ApproxDP(asked.epsilon, asked.delta) if asked.delta else PureDP(asked.epsilon)
    slots, value_encoding = Clock.hours("America/Chicago"), ValueEncoding(0, 30, 2)
    table, cells = buses(asked.copies, np.random.default_rng(1), slots, asked.resolution)
    tree = CellTimeSlots(cells, slots, value_encoding)
    rule = OwnMeans(asked.cells, scale=value_encoding.scale)
    values = Values(tree, rule)
    quiet = np.zeros(1)
    exact = Measurements.of(values, Answer(values.total(table), quiet + 1e-9))
    every = Values(tree, OwnMeans(1 << 12, scale=value_encoding.scale))
    whole = Measurements.of(every, Answer(every.total(table), quiet + 1e-9))
    truths = {"mean": exact.means().value, "mean, no cap": whole.means().value, "variance": exact.variances().value}
    held: dict[str, list[int]] = {name: [0, 0] for name in truths}
    told = []
    for _ in range(asked.runs):
        found = Measurements.of(values, Curator(table).answer(Query(values, Fraction(1)), budget))
        for name, truth in truths.items():
            statistic = found.variances() if name == "variance" else found.means()
            known = ~statistic.too_few
            inside = (statistic.low <= truth) & (truth <= statistic.high) & known
            held[name][0] += int(inside.sum())
            held[name][1] += int(known.sum())
        told.append(int((~found.means().too_few).sum()))
    run = {
        **vars(asked),
        "people": 348 * asked.copies,
        "places": tree.places,
        "places with people": int((exact.people > 0.5).sum()),
        "told": float(np.mean(told)),
        "threshold": found.threshold,
        "held": {name: inside / max(known, 1) for name, (inside, known) in held.items()},
        "known": {name: known for name, (_, known) in held.items()},
    }
    known_runs = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    RESULTS.write_text(json.dumps([*known_runs, run], indent=1) + "\n")
    print(json.dumps(run, indent=1))


if __name__ == "__main__":
    main()
