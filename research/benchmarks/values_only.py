"""Means under values-only on real tables: which route is chosen, how many places are told, and how near they are.

    python -m research.benchmarks.values_only [--runs 20] [--people 1000000]

Buses of Austin (m/s, 0 to 30) and cabs of San Francisco (km/h, 0 to 120), `../shared/data`: hexagons of resolution 7,
in hours of the day and over all hours. For each budget and each route the best keeping of that route: K, the places
that are told, the expected error per place weighted by people (what the choice is made by; a place that is not told
has 1/2), and the median distance from the exact mean of everybody in the place, in the unit of the value, over all
places that are told and all runs. Beside it the full model's places told, with its own default cap. Written to
results/values_only.json.
"""

import argparse
import json
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

from hazemap.algorithms.contribution_selection import ContributionSelection, selections
from hazemap.cells import Leaves
from hazemap.encoders import KnownCountValues, Values
from hazemap.engines.duckdb import EngineTable
from hazemap.estimate.value_estimates import KnownPeople, Measurements
from hazemap.privacy.budget import ApproxDP, Budget, PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.noisy_queries import Query
from hazemap.readers.open_table import open_table
from hazemap.specs.parsing import HexagonCells
from hazemap.specs.statistics_spec import StatisticsSpec
from hazemap.specs.table_spec import TableSpec
from hazemap.specs.values_only_spec import PublicLocationSpec
from hazemap.tables.contribution_bounding import OwnMeans
from hazemap.tables.person_cell_values import PersonCellValues, SelectedPersonCellValues
from hazemap.temporal.time_slots import Always, Clock
from hazemap.trust.curator import Curator
from hazemap.values.cell_slot_counters import CellTimeSlots
from hazemap.values.value_encoding import KnownCountEncoding

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[2] / "shared" / "data"
RESULTS = HERE / "results" / "values_only.json"
TABLES = {
    "austin_bus_2015": ("speed_ms", 30.0, "America/Chicago"),
    "cabspotting_sf_speed_2008_05_20": ("speed_kmh", 120.0, "America/Los_Angeles"),
}
BUDGETS: tuple[Budget, ...] = (PureDP("0.1"), PureDP("0.5"), PureDP(1), PureDP(2), ApproxDP(1, "1e-6"))


def asked(
    order: PublicLocationSpec, pairs: PersonCellValues, best: ContributionSelection
) -> tuple[KnownCountValues, SelectedPersonCellValues]:
    rule = OwnMeans(best.places, 1, scale=KnownCountEncoding(order.value_encoding).l1)
    question = KnownCountValues(pairs.tree, rule, pairs.whereabouts.people, best.weight, best.most, best.squares)
    return question, SelectedPersonCellValues(pairs, best.kept, 1)


def figures(
    order: PublicLocationSpec, pairs: PersonCellValues, best: ContributionSelection, exact: np.ndarray, runs: int
) -> dict[str, float]:
    question, table = asked(order, pairs, best)
    off = []
    for run in range(runs):
        answer = Curator(table, Stream.fixed(b"%d" % run)).answer(Query(question, Fraction(1)), order.full.budget)
        mean = KnownPeople.of(question, answer).means()
        off += np.abs(mean.value - exact)[~mean.too_few].tolist()
    told = best.weight > 0
    people = pairs.whereabouts.people
    return {
        "K": best.places,
        "told": int(told.sum()),
        "people in places told": float(people[told].sum() / people.sum()),
        "least people there": int(people[told].min()),
        "expected error": best.error,
        "median error": float(np.median(off)),
    }


def full_model(order: PublicLocationSpec, pairs: PersonCellValues, table: EngineTable) -> int:
    """How many of these very places the full model would tell, if it knew where to look."""
    value_encoding, slots = order.value_encoding, order.places.slots
    tree = CellTimeSlots(Leaves(pairs.tree.cells.tree, pairs.tree.cells.cells), slots, value_encoding)
    values = Values(tree, OwnMeans(min(max(len(slots.names), 8), 24), scale=value_encoding.scale))
    answer = Curator(table, Stream.fixed(b"full")).answer(Query(values, Fraction(1)), order.full.budget)
    return int((~Measurements.of(values, answer).means().too_few).sum())


def crowd(people: int) -> None:
    """Everybody in one cell an hour, all over a town."""
    import resource
    import tempfile

    import pyarrow as pa
    import pyarrow.parquet as pq

    import hazemap

    with tempfile.TemporaryDirectory() as folder:
        rng, who = np.random.default_rng(0), np.arange(people)
        writer = None
        for hour in range(24):
            columns = {
                "user": who,
                "lon": 2.0 + 0.4 * ((who * 7919 + hour * 31) % 1000) / 1000,
                "lat": 48.6 + 0.4 * ((who * 104729 + hour * 17) % 997) / 997,
                "ts": pa.array(np.full(people, (1_700_006_400 + 3600 * hour) * 10**6), pa.timestamp("us")),
                "speed": rng.uniform(0, 60, people),
            }
            table = pa.table(columns)
            writer = writer or pq.ParquetWriter(f"{folder}/crowd.parquet", table.schema)
            writer.write_table(table)
        assert writer is not None
        writer.close()
        begin = time.process_time()
        made = hazemap.stats(
            f"{folder}/crowd.parquet",
            value="speed",
            low=0,
            high=60,
            epsilon=1,
            slots="hour-of-day",
            model="values-only",
            ledger=hazemap.Ledger(Path(folder) / "ledger.sqlite"),
            output=f"{folder}/made.parquet",
            no_cap=True,
        )
        row = {
            "people": people,
            "pairs": 24 * people,
            "route": made.algorithm.route,
            "told": int((~made.found("mean").too_few).sum()),
            "occupied places": int((made.measurements.people > 0).sum()),
            "seconds of the processor": time.process_time() - begin,
            "megabytes at the most": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
    RESULTS.with_name("values_only_crowd.json").write_text(json.dumps(row, indent=1) + "\n")
    print(json.dumps(row, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--people", type=int)
    given = parser.parse_args()
    if given.people:
        crowd(given.people)
        return
    runs = given.runs
    rows = []
    for name, (value, high, zone) in TABLES.items():
        for slots in (Clock.hours(zone), Always()):
            for budget in BUDGETS:
                full = StatisticsSpec(
                    TableSpec(None),
                    budget,
                    value,
                    0.0,
                    high,
                    cells=HexagonCells(7, 7),
                    slots="hour-of-day" if slots.timed else "always",
                    time_zone=zone,
                    model="values-only",
                )
                order = PublicLocationSpec.of(full)
                table = open_table(DATA / f"{name}.parquet", measured=value, timed=slots.timed, key=7)
                begin = time.process_time()
                pairs = table.pairs(order.places)
                read = time.process_time() - begin
                where = pairs.whereabouts
                everybody = SelectedPersonCellValues(pairs, np.ones(len(where.place), dtype=bool), 1)
                sums = np.zeros(where.number)
                for place, counters in everybody.counters():
                    np.add.at(sums, place, counters[:, 0] / KnownCountEncoding(order.value_encoding).scales[0])
                exact = high * sums / np.maximum(where.people, 1)
                begin = time.process_time()
                tried = list(selections(where, 1, order._noise_scale))
                chosen = time.process_time() - begin
                best = min(tried, key=lambda each: each.error, default=None)
                routes = {}
                for route in ("drawn", "even", "chopped"):
                    some = min(
                        (each for each in tried if each.route == route), key=lambda each: each.error, default=None
                    )
                    routes[route] = some and figures(order, pairs, some, exact, runs)
                rows.append(
                    {
                        "table": name,
                        "slots": "hour of day" if slots.timed else "always",
                        "budget": str(budget),
                        "people": len(where.counts),
                        "pairs": len(where.place),
                        "occupied places": int((where.people > 0).sum()),
                        "most places of a person": int(where.counts.max()),
                        "spread of exact means": float(exact[where.people >= 10].std()),
                        "chosen": best and best.route,
                        "routes": routes,
                        "full model tells": full_model(order, pairs, table),
                        "seconds to read": read,
                        "seconds to choose": chosen,
                    }
                )
                print(json.dumps(rows[-1]), flush=True)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
