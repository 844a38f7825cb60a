"""How often intervals of shares hold the truth: both goals, of a curator and over devices.

    python -m research.benchmarks.proportions [--rounds 20] [--page]

A round makes a release of every setting: a table with marks, a goal, an ε, and who answers. The truth is the share in
each cell of those whom the bounding rule left; where devices are a sample, it is that of all people, and the interval
has the chance of the sample. Cells with people count, whether they are shown or not. Standard errors of the part of
intervals that hold are clustered by release. A setting passes if at least 94 %, less three of them, hold. Rounds are
added to results/proportions.json; `--page` writes docs/results/proportions.md.
"""

import argparse
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from hazemap.algorithms.private_bounding_box import over
from hazemap.algorithms.proportion import Narrow, Proportion, Significant
from hazemap.engines.memory import MemoryTable
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.federated.trust.in_memory_secure_aggregation import SimulatedSecureAggregation
from hazemap.privacy.budget import PureDP
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.spatial.bounding_box import Box
from hazemap.tables.contribution_bounding import AtMostRows
from hazemap.trust.curator import Curator
from hazemap.values.boolean_attribute import BinaryAttribute
from hazemap.values.marks import Marks

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[2] / "shared" / "data"
RESULTS = HERE / "results" / "proportions.json"
PAGE = HERE.parents[1] / "docs" / "results" / "proportions.md"
NEW_YORK = Box(-74.27, 40.48, -73.69, 40.93)
TOWN = Box(13.2, 52.4, 13.6, 52.6)
TABLES = {"town": ("ill",), "town, two marks": ("ill", "old"), "gowalla": ("weekend",), "uber": ("base=B02598",)}
GOALS = {"density": Significant(), "width": Narrow()}
TRUSTS = ("curator", "devices", "sample of devices")
EPSILONS = ("0.2", "1")
RULE = AtMostRows(1)
HELD = 0.94


@cache
def table(name: str) -> tuple[MemoryTable, Box]:
    """Rows with sides, one a person: of a made-up town, or of a table whose own columns are the marks."""
    chance = np.random.default_rng(7)
    if name.startswith("town"):
        people = 40_000
        lon, lat = 13.4 + chance.normal(0, 0.06, people), 52.5 + chance.normal(0, 0.03, people)
        near = np.exp(-((lon - 13.36) ** 2 / 0.002 + (lat - 52.49) ** 2 / 0.0006))
        mark = (chance.random(people) < 0.1 + 0.4 * near).astype(np.int64)
        if "two" in name:
            mark += 2 * (chance.random(people) < 0.3)
        return MemoryTable(np.arange(people), {"lon": lon, "lat": lat, "mark": mark}), TOWN
    file = {"gowalla": "gowalla_nyc_2009_2010", "uber": "uber_nyc_2014_apr_jul_partial"}[name]
    rows = pq.read_table(DATA / f"{file}.parquet").to_pandas()
    mark = rows["ts"].dt.day_of_week >= 5 if name == "gowalla" else rows["base"] == "B02598"
    people = rows["user"].to_numpy(np.int64) if name == "gowalla" else np.arange(len(rows))
    columns = {name: rows[name].to_numpy(np.float64) for name in ("lon", "lat")}
    return MemoryTable(people, {**columns, "mark": mark.to_numpy(np.int64)}, key=1), NEW_YORK


def trust_of(name: str, rows: MemoryTable, people: int) -> Any:
    """Who answers."""
    if name == "curator":
        return Curator(rows)
    asked = people if name == "devices" else people // 3
    return SimulatedSecureAggregation(rows, Cohort(asked, min(asked, 1_000), sampling=Sampling.ONE))


def measured(name: str, goal: str, epsilon: str, trust: str) -> dict[str, Any]:
    """One release: how many of its intervals hold, how wide they are."""
    rows, box = table(name)
    marks = Marks.of(*TABLES[name])
    tree = over(box, 100)
    votes = rows.votes(BinaryAttribute(tree, None if marks.sides == 2 else marks.sides), RULE)
    people = len(np.unique(rows.person))
    method = Proportion(tree, RULE, GOALS[goal], marks=TABLES[name])
    result = run(method, trust_of(trust, rows, people), PureDP(epsilon), Unrecorded())
    found = result.value
    question = result.transcript[-1].question
    exact = question.encoder.cells.total(votes.cells, votes.weights).reshape(marks.sides, -1)
    held, width, number = 0, 0.0, 0
    for mark in marks.texts:
        having = marks.having(mark)
        true = exact[having].sum(axis=0) / np.maximum(exact.sum(axis=0), 1)
        low, high = found.shares(mark).interval(0.95, sampled=trust == "sample of devices")
        there = exact.sum(axis=0) > 0
        held += int(((low <= true + 1e-12) & (true <= high + 1e-12))[there].sum())
        width += float((high - low)[there] @ (exact.sum(axis=0)[there] / exact.sum()))
        number += int(there.sum())
    return {"cells": found.cells.size, "intervals": number, "held": held, "width": width / len(marks.texts)}


def settings() -> Iterator[tuple[str, str, str, str]]:
    """Every table, goal, price and trust model; those without their file are left out."""
    for name in TABLES:
        if name in ("gowalla", "uber") and not DATA.is_dir():
            continue
        yield from ((name, goal, epsilon, trust) for goal in GOALS for epsilon in EPSILONS for trust in TRUSTS)


def summed(rounds: list[dict[str, Any]]) -> tuple[float, float, float, float]:
    """The part of intervals that hold, its standard error clustered by release, cells and width on average."""
    number, held = (np.array([each[what] for each in rounds], dtype=np.float64) for what in ("intervals", "held"))
    part = held.sum() / number.sum()
    error = np.sqrt(((held - part * number) ** 2).sum()) / number.sum()
    return part, error, *(float(np.mean([each[what] for each in rounds])) for what in ("cells", "width"))


def page(results: dict[str, list[dict[str, Any]]]) -> str:
    """The page of results."""
    lines = [
        "# Intervals of shares",
        "",
        "How often a 95 % interval of [a share](../how-to/proportions.md) holds the truth, measured by",
        "`python -m research.benchmarks.proportions`: both goals, of a curator and over devices (simulated secure",
        "sums), every cell with people in it. *width* is the mean width of an interval, over people. *devices*: all",
        "people answer. *sample of devices*: a third of them, and the truth is that of all, so that intervals have the",
        "chance of the sample. A setting passes if at least 94 %, less three standard errors (clustered by release),",
        "hold.",
        "",
        "The town is made up: 40,000 people, of whom 10 to 50 % are ill. Gowalla's people check in on weekends or not;",
        "Uber's pick-ups are of the base B02598 or not. For tiny counts tests compute the coverage exactly: it is 95 %",
        "or more for every pair of counts that they try, at every ε from 0.5 to 5",
        "(`tests/estimate/test_share_intervals.py`).",
        "",
        "| table | goal | ε | who answers | releases | cells | intervals hold | standard error | width | |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for key, rounds in results.items():
        part, error, cells, width = summed(rounds)
        passes = "passes" if part >= HELD - 3 * error else "**fails**"
        name, goal, epsilon, trust = key.split("|")
        lines.append(
            f"| {name} | {goal} | {epsilon} | {trust} | {len(rounds)} | {cells:,.0f} | {part:.1%} | {error:.1%} |"
            f" {width:.3f} | {passes} |"
        )
    lines += [
        "",
        "Intervals hold a little more often than they must: margins are of whole people, and where there are few",
        "people an interval ends at 0 or 1.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure some more rounds, then write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--page", action="store_true")
    asked = parser.parse_args()
    results: dict[str, list[dict[str, Any]]] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for setting in settings():
        done = results.setdefault("|".join(setting), [])
        done += [measured(*setting) for _ in range(asked.rounds - len(done))]
        print(*setting, *(f"{number:.3f}" for number in summed(done)), flush=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    if asked.page:
        PAGE.write_text(page(results))


if __name__ == "__main__":
    main()
