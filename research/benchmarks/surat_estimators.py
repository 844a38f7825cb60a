"""The mean speed of one hexagon and hour by every estimator, as `hazemap stats` publishes it.

    python -m research.benchmarks.surat_estimators [--runs 300]

Buses of Surat (`../shared/data/itms_surat_cell.parquet`), the cell that Rameshwar et al. 2024 measured their estimators
on. The command's specification reads the file by its H3 column, with several sampling keys; then each figure is a mean
of so many draws of what the command asks and is answered. One whole run of each variant, with a ledger and a journal,
must ask the same. Told are the distance from the exact mean of all samples, its standard error, how often the interval
holds the mean, and how wide it is. Beside it what the authors' code reached in 300 draws. Writes
results/surat_estimators.json and docs/results/estimators.md.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from hazemap.execution.run import opened
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.random_stream import Stream
from hazemap.publish import stats
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.specs.estimator_spec import estimated
from hazemap.specs.statistics_spec import StatisticsSpec
from hazemap.specs.values_only_spec import PublicLocationSpec
from hazemap.tables.person_cell_values import PersonCellValues
from hazemap.trust.curator import Curator
from research.compare.user_level.published_results import DRAWS as PUBLISHED_DRAWS
from research.compare.user_level.published_results import EPSILONS, PUBLISHED

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[2] / "shared" / "data" / "itms_surat_cell.parquet"
RESULTS = HERE / "results" / "surat_estimators.json"
PAGE = HERE.parents[1] / "docs" / "results" / "estimators.md"

LOW, HIGH = 0.0, 65.0
VARIANTS: tuple[tuple[str, str | None, str], ...] = (
    ("plain", None, "plain Laplace"),
    ("array-averaging", "median", "Array-Averaging, median"),
    ("array-averaging", "114", "Array-Averaging, m = 114"),
    ("array-averaging", "k-root-m", ""),
    ("array-averaging", "worst-case", ""),
    ("levy", "median", "Levy, median"),
    ("levy", "114", "Levy, m = 114"),
    ("levy", "k-root-m", ""),
    ("quantile", "median", "Quantile, median"),
    ("quantile", "114", "Quantile, m = 114"),
    ("quantile", "k-root-m", ""),
    ("balanced", None, ""),
)
"""Estimator, length, and what the published figure is called."""

Row = dict[str, Any]
KEYS = 10
"""The table is read with so many sampling keys, which order people: arrays differ."""


def asked(estimator: str, length: str | None, epsilon: float) -> Row:
    """What the command is asked for."""
    where = {"cell_column": "h3", "cells": "h3:6", "model": "values-only"}
    bounds = {"value": "speed_kmh", "low": LOW, "high": HIGH}
    return {"person": "user", **bounds, **where, "estimator": estimator, "length": length, "epsilon": epsilon}


def tables() -> list[PersonCellValues]:
    """The table as a run reads it, for each key."""
    spec = StatisticsSpec.of(str(DATA), **asked("plain", None, 1.0))
    places = PublicLocationSpec.of(spec).places
    return [opened(spec, None, bytes([key]) * 16, None, lambda *_: None).pairs(places) for key in range(KEYS)]


def drawn(estimator: str, length: str | None, epsilon: float, pairs: list[PersonCellValues], runs: int) -> Row:
    """Means, their intervals and what is public, of what a run asks and answers once it is paid."""
    spec = StatisticsSpec.of(str(DATA), **asked(estimator, length, epsilon))
    found: dict[str, list[float]] = {name: [] for name in ("value", "stddev", "low", "high", "bias")}
    for key, each in enumerate(pairs):
        algorithm, table = estimated(spec, each)
        for seed in range(runs // KEYS):
            stream = Stream.fixed(f"surat {estimator} {length} {epsilon} {key} {seed}".encode())
            mean: Any = run(algorithm, Curator(table, stream), spec.budget, Unrecorded()).value.means()
            for name, numbers in found.items():
                numbers.append(float(getattr(mean, name)[0]))
    return {name: np.array(numbers) for name, numbers in found.items()} | {
        "m": int(algorithm.places.length[0]),
        "arrays": int(algorithm.places.arrays[0]),
    }


def measured(runs: int) -> list[Row]:
    """A row for each variant and ε; one whole run of each variant must tell the mean, with the same m."""
    speed = np.clip(pq.read_table(DATA)["speed_kmh"].to_numpy(), LOW, HIGH).astype(np.float64)
    truth, pairs, rows = float(speed.mean()), tables(), list[Row]()
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.sqlite")
        for estimator, length, name in VARIANTS:
            for epsilon in EPSILONS:
                found = drawn(estimator, length, epsilon, pairs, runs)
                errors = np.abs(found["value"] - truth)
                rows.append(
                    {
                        "estimator": estimator,
                        "rule": length,
                        "epsilon": epsilon,
                        "m": found["m"],
                        "arrays": found["arrays"],
                        "mae": float(errors.mean()),
                        "error": float(errors.std(ddof=1) / runs**0.5),
                        "held": float(np.mean((found["low"] <= truth) & (truth <= found["high"]))),
                        "width": float((found["high"] - found["low"]).mean()),
                        "bias": float(found["bias"].mean()),
                        "stddev": None if np.isnan(found["stddev"][0]) else float(found["stddev"].mean()),
                        "published": PUBLISHED.get(name, {}).get(epsilon),
                    }
                )
                print(json.dumps(rows[-1]), flush=True)
            whole = stats(DATA, **asked(estimator, length, EPSILONS[-1]), ledger=ledger, no_cap=True)
            places: Any = whole.algorithm.places  # type: ignore[attr-defined]  # of an estimator
            if whole.found("mean").too_few[0] or int(places.length[0]) != rows[-1]["m"]:
                raise AssertionError(f"a whole run of {estimator} {length} is another one than those measured")
    return rows


HEAD = r"""# Published estimators on their own cell

The mean speed of one hexagon and hour in Surat: 217 buses, 17,166 samples, bounds of 0 and 65 km/h. The file runs as it
is by this command, for each estimator and length:

```console
$ hazemap stats itms_surat_cell.parquet --person user --value speed_kmh --low 0 --high 65 --cell-column h3 \
    --cells h3:6 --model values-only --estimator array-averaging --length 114 --epsilon 1 -o surat.parquet
```

`python -m research.benchmarks.surat_estimators` makes this page. [How to use
them](../how-to/values-only.md#published-estimators).

## How far the mean is off

Mean absolute error in km/h of {runs} draws of what the command asks, ± its standard error; in brackets what the
authors' code reached in 300 draws. The length m is that at ε = 1. Draws share ten orders in which people fill arrays,
so where arrays are made their standard error leaves a part of the doubt out.

| estimator | length | m | ε = 0.5 | 1 | 2 |
|---|---|---|---|---|---|
"""

INTERVALS = """
Of the {number} published figures {near} are within two standard errors of the difference from ours; the farthest is
{far:.1f} of them away.

## What the intervals hold

An interval holds the mean of all samples, whatever they are: noise, people who count for less than their samples,
arrays that are not equally full, and clipping to private ends. At ε = 1:

| estimator | length | held, of all draws | mean width, km/h | standard error | bias at most, mean |
|---|---|---|---|---|---|
"""

END = """
Only `plain` has no bias worth mentioning, and its interval is as wide as its noise asks. The others are nearer the mean
on these buses, and nobody can tell from the release that they are: for other values they would be off by as much as the
interval says. The papers give no intervals.
"""


def page(facts: dict[str, Any]) -> str:
    """docs/results/estimators.md."""
    rows, text = facts["rows"], HEAD.format(runs=facts["runs"])
    for estimator, rule, _ in VARIANTS:
        own = {row["epsilon"]: row for row in rows if (row["estimator"], row["rule"]) == (estimator, rule)}
        figures = []
        for epsilon in EPSILONS:
            row = own[epsilon]
            published = "" if row["published"] is None else f" ({row['published']:.2f})"
            figures.append(f"{row['mae']:.2f} ± {row['error']:.2f}{published}")
        text += f"| `{estimator}` | {rule or 'its own'} | {own[1.0]['m']} | {' | '.join(figures)} |\n"
    known = [row for row in rows if row["published"] is not None]
    both = (1 + facts["runs"] / PUBLISHED_DRAWS) ** 0.5
    apart = [abs(row["mae"] - row["published"]) / (row["error"] * both) for row in known]
    text += INTERVALS.format(number=len(apart), near=sum(each <= 2 for each in apart), far=max(apart))
    for row in rows:
        if row["epsilon"] == 1.0:
            figures = [f"{100 * row['held']:.1f} %", f"{row['width']:.1f}"]
            figures += ["not known" if row["stddev"] is None else f"{row['stddev']:.2f}", f"{row['bias']:.2f}"]
            text += f"| `{row['estimator']}` | {row['rule'] or 'its own'} | {' | '.join(figures)} |\n"
    return text + END


def main() -> None:
    """Measure, and write both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=300)
    runs = parser.parse_args().runs
    facts = {"runs": runs, "rows": measured(runs)}
    RESULTS.write_text(json.dumps(facts, indent=1) + "\n")
    PAGE.write_text(page(facts))


if __name__ == "__main__":
    main()
