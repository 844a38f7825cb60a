"""Hourly maps of taxis in San Francisco: one release with slots beside a release for every hour.

    python -m research.benchmarks.slots [RULE,RULE… [RUNS]]

The truth is what the unbounded table holds in each hour. Four ways to the same price, ε = 1, under the same bounding
rule, all by the default method, of pure ε and (1, 10⁻⁶) whichever errs less:

* "a release an hour": 24 releases of an hour's rows, of which each bounds people anew and may spend a 24th of ε or ρ;
* "a release an hour, drawn as finely": the same, in a picture with as fine detail inside cells as that of slots;
* "one bound": the rule is applied once to all rows, and 24 maps of an hour each have the noise of all of the budget, as
  a person's rows in all of them together are bounded (what a careful steward can do without slots);
* "one release": `AdaptiveSlots`; pictures of its slots borrow their detail inside cells from all slots together
  (`--borrow-detail`), which is off by default since 28 November 2026.

What a rule leaves of an hour is less than all, so the best guess of a map is scaled to the rows of its hour: errors
are those of the shape. Rectangles err by a part of the hour's rows (mean) and relatively (MRE). Intervals are checked
against the bounded rows, which they are about. Results go to results/slots.json and two pages of docs/results.
"""

import json
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from hazemap.algorithms import Adaptive, AdaptiveSlots
from hazemap.cellmap import CellMap
from hazemap.cells import Leaves
from hazemap.encoders import Counts
from hazemap.engines.memory import MemoryTable
from hazemap.estimate.slot_maps import SHOWS
from hazemap.estimate.smooth_disaggregation import finer
from hazemap.lab.compare import density_metrics as densities
from hazemap.lab.compare.ground_truth_maps import painted
from hazemap.lab.compare.map_scores import mre, rectangles, sums
from hazemap.privacy.budget import ApproxDP, Budget, PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.statement import A_PERSON, A_ROW, Statement
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.releases import Release, TimedRelease
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.specs.parsing import bounding
from hazemap.tables.contribution_bounding import AtMostRows, Bounding, Outside, RowIsPerson
from hazemap.temporal.time_slots import Clock
from hazemap.trust.curator import Curator

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[2] / "shared" / "data" / "cabspotting_sf_pickups_2008.parquet"
RESULTS, DOCS = HERE / "results" / "slots.json", HERE.parents[1] / "docs" / "results"
BOX = Box(-122.52, 37.70, -122.36, 37.83)
HOURS = Clock.hours("America/Los_Angeles")
TREE = Quadtree.around(BOX, 10)
GRIDS = (64, 128, 256)
BUDGETS: dict[str, Budget] = {"ε = 1": PureDP(1), "(1, 10⁻⁶)": ApproxDP(1, Fraction(1, 10**6))}
PARTS = 24
DATE = "2026-01-02T03:04:05Z"
REGIONS = 40
KNOWN = "the day counted with all of ε in cells that it cut itself"
FULL = 5
WAYS = ("a release an hour", "a release an hour, drawn as finely", "one bound", "one release")


def taxis() -> MemoryTable:
    """All rows."""
    import pyarrow.parquet as pq

    rows = pq.read_table(DATA)
    columns = {name: rows[name].to_numpy() for name in ("lon", "lat")}
    columns["time"] = rows["ts"].to_numpy().astype("datetime64[us]").astype(np.int64) / 1e6
    return MemoryTable(rows["user"].to_numpy().astype(np.int64), columns, key=7)


def some(table: MemoryTable, chosen: np.ndarray, key: int) -> MemoryTable:
    """Some rows, of which a rule draws others."""
    return MemoryTable(table.person[chosen], {name: each[chosen] for name, each in table.columns.items()}, key)


def pixels(table: MemoryTable, chosen: np.ndarray) -> np.ndarray:
    """Rows in each base cell, as a picture."""
    cells = TREE.cell_at({name: table.columns[name][chosen] for name in ("lon", "lat")}, TREE.depth)
    x, y = TREE.pixels(cells[cells > 0])
    counts = np.zeros((1 << TREE.depth, 1 << TREE.depth))
    np.add.at(counts, (y, x), 1)
    return counts


def at(picture: np.ndarray, side: int) -> np.ndarray:
    block = len(picture) // side
    return picture.reshape(side, block, side, block).sum(axis=(1, 3))


def scores(picture: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Errors of the shape of an hour: the picture is scaled to the hour's rows."""
    found = {}
    for side in GRIDS:
        found[f"L1, {side}²"] = densities.l1(densities.density(at(truth, side)), densities.density(at(picture, side)))
    guess, exact = densities.density(at(picture, 256)) * truth.sum(), at(truth, 256)
    asked = rectangles(b"hourly maps", (256, 256))
    found["rectangles"] = float(np.abs(sums(exact, asked) - sums(guess, asked)).mean() / truth.sum())
    return found | {"MRE": mre(exact, guess, asked)}


def hours_alone(
    tables: list[MemoryTable], truths: list, rule: Bounding, budget: Budget, seed: str, shows: float | None = None
) -> list[dict]:
    """The scores of 24 maps, cut where `shows` of a standard error would show in a picture; None for the usual."""
    found = []
    for hour, (table, truth) in enumerate(zip(tables, truths, strict=True)):
        trust = Curator(table, Stream.fixed(f"{seed} {hour}".encode()))
        made = run(Adaptive(TREE, rule), trust, budget, Unrecorded()).value
        found.append(scores(painted(made if shows is None else finer(made, shows), TREE)[0], truth))
    return found


def hours_together(table: MemoryTable, truths: list, rule: Bounding, budget: Budget, seed: str) -> list[dict]:
    """The scores of the slots of one release."""
    trust = Curator(table, Stream.fixed(seed.encode()))
    made = run(AdaptiveSlots(TREE, HOURS, rule), trust, budget, Unrecorded()).value
    return [scores(painted(made.finer([hour]), TREE)[0], truth) for hour, truth in enumerate(truths)]


def limits(table: MemoryTable, truths: list, rule: Bounding, budget: Budget, runs: int) -> dict[str, dict]:
    """What no sharing between slots can better: maps of the day, shown for every hour.

    Two have no noise. One is of cells that the exact day has cut, until each holds `FULL` standard errors at most, and
    that all of the budget counts: nothing was spent on deciding on them, or on hours.
    """
    day = sum(truths)
    cells = TREE.cell_at({name: table.columns[name] for name in ("lon", "lat")}, TREE.depth)
    rows = [scores(day, truth) for truth in truths]
    found = {"the exact day": rows, "exact counts of the day in the release's cells": list[dict]()}
    for number in range(runs):
        trust = Curator(table, Stream.fixed(f"limits {number}".encode()))
        total = run(AdaptiveSlots(TREE, HOURS, rule), trust, budget, Unrecorded()).value.total
        place = total.cells.locate(cells)
        exact = np.bincount(place[place >= 0], minlength=total.cells.size).astype(float)
        shown = painted(replace(total, values=exact, unbiased=exact), TREE)[0]
        found["exact counts of the day in the release's cells"] += [scores(shown, truth) for truth in truths]
    known, found[KNOWN] = exactly_cut(table, rule, FULL * budget_noise(table, rule, budget)), []
    for number in range(runs):
        trust = Curator(table, Stream.fixed(f"known cells {number}".encode()))
        method = Adaptive(TREE, rule, deciding=(), fullness=(), prior=known)
        shown = painted(finer(run(method, trust, budget, Unrecorded()).value), TREE)[0]
        found[KNOWN] += [scores(shown, truth) for truth in truths]
    return {way: {name: float(np.mean([row[name] for row in each])) for name in rows[0]} for way, each in found.items()}


def budget_noise(table: MemoryTable, rule: Bounding, budget: Budget) -> float:
    """The standard error in rows of a number that all of a budget counts."""
    counts = Counts(Leaves.at_level(TREE, 1), rule)
    return Curator(table).prices(budget).stddev(counts, Fraction(1)) / rule.unit


def exactly_cut(table: MemoryTable, rule: Bounding, most: float) -> Leaves:
    """Cells that hold at most so many of the rows that the rule leaves, as the exact day says."""
    _, base, weights = table.bounded(TREE, rule)
    order = np.argsort(base)
    base, sums = base[order], np.concatenate([[0.0], np.cumsum(weights[order] / rule.unit)])
    todo, done = np.asarray(TREE.root, dtype=np.uint64), list[np.ndarray]()
    while len(todo):
        first, last = TREE.span(todo)
        held = sums[np.searchsorted(base, last, "right")] - sums[np.searchsorted(base, first, "left")]
        cut = (held > most) & (TREE.level(todo) < TREE.depth)
        done.append(todo[~cut])
        todo = TREE.children(todo[cut]) if cut.any() else todo[:0]
    return Leaves(TREE, np.concatenate(done))


def bounded(table: MemoryTable, rule: Bounding) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Base cell, hour and weight of what a rule leaves of all rows."""
    from hazemap.values.timed_tree import TimedTree

    timed = TimedTree(TREE, HOURS)
    _, base, weights = table.bounded(timed, rule)
    where = timed.taken_apart(base)
    return where.cells, where.slots, weights / rule.unit


def bounded_hours(table: MemoryTable, rule: Bounding) -> list[MemoryTable]:
    """A table of what is left of everybody in each hour, every vote a row of its own: for rules of rows."""
    if not isinstance(rule, AtMostRows):
        return []
    cells, slots, _ = bounded(table, rule)
    west, south, east, north = TREE.bounds(cells)
    middle = {"lon": (west + east) / 2, "lat": (south + north) / 2}
    every = MemoryTable(np.arange(len(cells)), middle)
    return [some(every, slots == hour, hour) for hour in range(PARTS)]


def one_bound(hours: list[MemoryTable], truths: list, rule: AtMostRows, budget: Budget, seed: str) -> list[dict]:
    """24 maps of bounded rows, of which each has the noise of all of the budget and of K rows a person."""
    return hours_alone(hours, truths, RowsOf(rule.most), budget, seed) if hours else []


class RowsOf(RowIsPerson):
    """Rows that are counted one by one, of which a person has so many in all: their noise."""

    def __init__(self, most: int) -> None:
        super().__init__(Outside.DROP)
        object.__setattr__(self, "largest", most)

    def __hash__(self) -> int:
        return hash(("rows of", self.largest))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowsOf) and other.largest == self.largest


def held(table: MemoryTable, rule: Bounding, runs: int) -> dict[str, float]:
    """How often 95 % intervals hold what the rule leaves: of cells in slots, of boxes in some slots, of whole slots."""
    cells, slots, weights = bounded(table, rule)
    rng, found = np.random.default_rng(1), {"cells": [], "boxes": [], "slots": []}
    for number in range(runs):
        trust = Curator(table, Stream.fixed(f"held {number}".encode()))
        done = run(AdaptiveSlots(TREE, HOURS, rule), trust, PureDP(1), Unrecorded())
        made = TimedRelease.of(done.value, released(done.value.total, rule, done.transcript))
        own = made.maps.cells.locate(cells)
        for hour, one in enumerate(made.by_slot):
            exact = np.bincount(own[slots == hour], weights[slots == hour], made.maps.cells.size)
            columns = one.columns()
            found["cells"] += ((columns["low"] <= exact) & (exact <= columns["high"])).tolist()
        for _ in range(REGIONS):
            first, number_of = int(rng.integers(PARTS)), int(rng.choice([1, 1, 3, 12]))
            chosen = [(first + each) % PARTS for each in range(number_of)]
            here = np.isin(slots, chosen)
            one = made.during(chosen)
            centre, size = cells[rng.integers(len(cells))], rng.integers(1, 6)
            for _ in range(size):
                centre = TREE.parent(np.array([centre]))[0]
            around = rng.integers(0, 400, 4)
            (x,), (y,) = (axis[:1] for axis in TREE.pixels(TREE.span(np.array([centre]))[0]))
            sides = np.clip([x - around[0], y - around[1], x + 1 + around[2], y + 1 + around[3]], 0, 1 << TREE.depth)
            box, inside = boxed(sides.tolist(), cells)
            answer, exact = one.count(box), float(weights[here & inside].sum())
            found["boxes"].append(answer.low <= exact <= answer.high)
            answer, exact = one.total(), float(weights[here].sum())
            found["slots"].append(answer.low <= exact <= answer.high)
    return {name: float(np.mean(each)) for name, each in found.items()} | {f"of {k}": len(v) for k, v in found.items()}


def boxed(sides: list[int], cells: np.ndarray) -> tuple[Box, np.ndarray]:
    """A box along the lines of pixels, and which base cells are in it."""
    left, top, right, bottom = sides
    scale = TREE.side / (1 << TREE.depth)
    from hazemap.spatial.web_mercator import latitude, longitude

    x, y = TREE.pixels(cells)
    inside = (x >= left) & (x < right) & (y >= top) & (y < bottom)
    west, east = (longitude(TREE.left + scale * edge) for edge in (left, right))
    north, south = (latitude(TREE.top + scale * edge) for edge in (top, bottom))
    return Box(float(west), float(south), float(east), float(north)), inside


def released(total: CellMap, rule: Bounding, transcript) -> Release:
    """A release of nobody's, for its intervals."""
    unit = A_ROW if isinstance(rule, RowIsPerson) else A_PERSON
    of = Statement("taxis", unit, "one added", PureDP(1), rule, "curator", (), "Laplace", (), (), "auto", DATE, "0.1.0")
    return Release(total, of, None, transcript)


def measured(rule_text: str, runs: int) -> dict:
    """All ways under one rule: the mean of 24 hours and of the runs, and the better budget of each."""
    table, rule = taxis(), bounding(rule_text, Outside.DROP)
    slots = HOURS.at(table.columns["time"])
    truths = [pixels(table, slots == hour) for hour in range(PARTS)]
    each = [some(table, slots == hour, hour) for hour in range(PARTS)]
    bound = bounded_hours(table, rule)
    found: dict[str, dict] = {}
    errors: dict[str, dict] = {}
    for budget_text, budget in BUDGETS.items():
        part = budget.part(Fraction(1, PARTS))
        for way in WAYS:
            rows = []
            for number in range(runs):
                seed = f"{rule_text} {budget_text} {way} {number}"
                if way == "a release an hour":
                    rows += hours_alone(each, truths, rule, part, seed)
                elif way == "a release an hour, drawn as finely":
                    rows += hours_alone(each, truths, rule, part, seed, SHOWS)
                elif way == "one bound" and isinstance(rule, AtMostRows):
                    rows += one_bound(bound, truths, rule, budget, seed)
                elif way == "one release":
                    rows += hours_together(table, truths, rule, budget, seed)
            if rows:
                each_run = {name: np.reshape([r[name] for r in rows], (runs, PARTS)).mean(axis=1) for name in rows[0]}
                found.setdefault(way, {})[budget_text] = {name: float(v.mean()) for name, v in each_run.items()}
                errors.setdefault(way, {})[budget_text] = {name: standard_error(v) for name, v in each_run.items()}
                print(rule_text, budget_text, way, found[way][budget_text], errors[way][budget_text], flush=True)
    best = {way: {m: min(of[m] for of in by.values()) for m in next(iter(by.values()))} for way, by in found.items()}
    bare = limits(table, truths, rule, PureDP(1), runs)
    checked = held(table, rule, runs)
    return {
        "runs": runs,
        "by budget": found,
        "standard errors": errors,
        "best": best,
        "limits": bare,
        "intervals": checked,
    }


def standard_error(runs: np.ndarray) -> float:
    """Of the mean of independent runs; 0 of a single one, which cannot tell."""
    return float(runs.std(ddof=1) / len(runs) ** 0.5) if len(runs) > 1 else 0.0


def ratio(line: dict, way: str, measure: str) -> tuple[float, float]:
    """What one release errs as a part of another way, each with its better budget, and the standard error of that."""
    parts = []
    for each in ("one release", way):
        budget = min(line["by budget"][each], key=lambda b: line["by budget"][each][b][measure])
        value = line["by budget"][each][budget][measure]
        parts.append((value, line["standard errors"][each][budget][measure] / value))
    (ours, ours_error), (theirs, theirs_error) = parts
    return ours / theirs, ours / theirs * (ours_error**2 + theirs_error**2) ** 0.5


def pages(results: dict) -> tuple[str, str]:
    """The page, and the few lines that the how-to shows."""
    from textwrap import dedent

    intro = dedent(__doc__.split("\n\n", 2)[2].rsplit("Results go to", 1)[0]).strip()
    measures = list(next(iter(results.values()))["best"]["one release"])
    runs = ", ".join(f"{line['runs']} under {rule}" for rule, line in results.items())
    lines = [
        "# Maps over time, measured",
        "",
        "463,902 pickups of 536 taxis in San Francisco (cabspotting), by hours of the day.",
        "`research/benchmarks/slots.py` makes this page.",
        "",
        intro,
        "",
        f"Mean over 24 hours and all runs ({runs}); below, what one release errs as a part of the other ways.",
        "± is a standard error over runs.",
        "",
    ]
    head = "| rule | way | " + " | ".join(measures) + " |"
    lines += [head, "|---" * (2 + len(measures)) + "|"]
    for rule, line in results.items():
        for way, best in line["best"].items():
            lines.append(f"| {rule} | {way} | " + " | ".join(f"{best[m]:.3f}" for m in measures) + " |")
        for way in WAYS[:-1]:
            if way in line["best"]:
                parts = [ratio(line, way, m) for m in measures]
                shown = " | ".join(f"**{part:.2f}** ± {error:.3f}" for part, error in parts)
                lines.append(f"| {rule} | **one release ÷ {way}** | {shown} |")
    lines += ["", "By budget:", "", head.replace("| way", "| way, budget"), "|---" * (2 + len(measures)) + "|"]
    for rule, line in results.items():
        for way, by in line["by budget"].items():
            for budget, row in by.items():
                error = line["standard errors"][way][budget]
                shown = " | ".join(f"{row[m]:.3f} ± {error[m]:.3f}" for m in measures)
                lines.append(f"| {rule} | {way}, {budget} | {shown} |")
    lines += [
        "",
        "Three maps that look the same in every hour. Two have no noise: the day itself, and what is left of it in the",
        "cells that one release of ε = 1 decided on; an hour that can hardly be told from the day is not shown better",
        f"than by the second. The third is of cells that the exact day has cut until none holds over {FULL} standard",
        "errors, and that all of ε counts: what deciding on the cells costs, and counting hours.",
        "",
        head.replace("| way", "| map"),
        "|---" * (2 + len(measures)) + "|",
    ]
    for rule, line in results.items():
        for way, row in line.get("limits", {}).items():
            lines.append(f"| {rule} | {way} | " + " | ".join(f"{row[m]:.3f}" for m in measures) + " |")
    lines += ["", "How many 95 % intervals of one release (ε = 1) hold what the rule leaves, in percent:", ""]
    lines += ["| rule | cells in a slot | boxes in some slots | whole slots |", "|---|---|---|---|"]
    for rule, line in results.items():
        own = line["intervals"]
        held_ = " | ".join(f"{100 * own[k]:.1f} (of {own[f'of {k}']:,})" for k in ("cells", "boxes", "slots"))
        lines.append(f"| {rule} | {held_} |")
    short = ["| rule | L1 of an hour, 128² pixels | one ÷ 24 | rectangles, % of the hour's rows | one ÷ 24 |"]
    short.append("|---|---|---|---|---|")
    for rule, line in results.items():
        ours, theirs = line["best"]["one release"], line["best"]["a release an hour"]
        l1 = f"{theirs['L1, 128²']:.2f} → {ours['L1, 128²']:.2f} | {ours['L1, 128²'] / theirs['L1, 128²']:.2f}"
        part = f"{100 * theirs['rectangles']:.1f} → {100 * ours['rectangles']:.1f}"
        short.append(f"| {rule} | {l1} | {part} | {ours['rectangles'] / theirs['rectangles']:.2f} |")
    return "\n".join(lines) + "\n", "\n".join(short) + "\n"


def main(rules: str = "rows:36,one vote,one row", runs: str = "4") -> None:
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for rule in rules.split(","):
        results[rule] = measured(rule, int(runs))
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
        page, short = pages(results)
        (DOCS / "slots.md").write_text(page)
        (DOCS / "slots-summary.md").write_text(short)


if __name__ == "__main__":
    main(*sys.argv[1:])
