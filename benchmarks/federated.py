"""Maps from devices behind secure sums: error against what a device sends, and a million devices in one process.

usage: federated.py [REPETITIONS]   writes results/federated.json, docs/results/federated.md, docs/images/federated.png

All by the exact law of the secure sums (`SimulatedSecureSum`), a fresh sample of people in every round.
"""

import json
import multiprocessing
import resource
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
from city import shared
from maps import Place, city, new_york

from hazemap.algorithms import Adaptive, PrefixTree
from hazemap.cellmap import Reading
from hazemap.privacy.budget import PureDP
from hazemap.session import Unrecorded, run
from hazemap.trust import Cohort, SimulatedSecureSum

HERE = Path(__file__).parent
PEOPLE, SHARD = 100_000, 10_000
ALL_STAY = Cohort(PEOPLE, SHARD, dropout=Fraction(0), corrupt=Fraction(0))
SOME_LEAVE = Cohort(1_000_000, SHARD, dropout=Fraction(12, 100), corrupt=Fraction(0))
LEAVING = Fraction(1, 10)
C0 = ("0.8", "0.4", "0.2", "0.1", "0.05", "0.025")
NUMBERS = (400, 600, 900, 1_300, 2_000, 3_000, 4_500, None)


def prefix(place: Place, c0: str = "0.1") -> PrefixTree:
    """The published method, with its parameters and its reading."""
    return PrefixTree(place.tree, people=PEOPLE, c0=Fraction(c0), reading=Reading.UNBIASED)


def devices(place: Place, numbers: int | None = None) -> Adaptive:
    """Ours, with at most so many numbers to send."""
    return Adaptive.for_devices(place.tree, most_numbers=numbers)


def once(place: Place, method, cohort: Cohort, dropping: Fraction = Fraction(0)) -> dict[str, float]:
    """One campaign at ε = 1."""
    trust = SimulatedSecureSum(place.table, cohort, dropping=dropping)
    begin = time.perf_counter()
    result = run(method, trust, PureDP(1), Unrecorded())
    seconds = time.perf_counter() - begin
    mse, l1 = shared("range_queries").density_errors(
        place.truth, place.picture(result.value.cells, result.value.values)
    )
    return {
        "mse": mse * 1e12,
        "l1": l1,
        "cells": result.value.cells.size,
        "rounds": len(result.transcript),
        "numbers": sum(exchange.answer.sums.size for exchange in result.transcript),
        "answers": sum(turnout.people for turnout in trust.turnouts),
        "shards lost": sum(turnout.lost for turnout in trust.turnouts),
        "seconds": seconds,
    }


def several(place: Place, method, repetitions: int) -> dict[str, object]:
    """Mean and standard deviation of so many campaigns on the city."""
    found = [once(place, method, ALL_STAY) for _ in range(repetitions)]
    mean = {key: float(np.mean([one[key] for one in found])) for key in found[0]}
    spread = {key: float(np.std([one[key] for one in found], ddof=min(1, repetitions - 1))) for key in found[0]}
    return {"mean": mean, "spread": spread, "repetitions": repetitions}


def million(_: int) -> dict[str, float]:
    """New York in a process of its own, so that its peak memory is its own; loading and compiling are in `process`."""
    begin, place = time.perf_counter(), new_york()
    found = once(place, Adaptive.for_devices(place.tree), SOME_LEAVE, LEAVING)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found | {"process": time.perf_counter() - begin, "peak MB": peak, "people there": int(place.truth.sum())}


def fixed_level(place: Place, repetitions: int) -> tuple[int, float]:
    """The best level without any privacy, of a sample of the same size: its level and MSE."""
    rng, found = np.random.default_rng(1), {}
    for level in range(5, 10):
        pictures = [place.coarse(place.sample(PEOPLE, rng), level) for _ in range(repetitions)]
        errors = [shared("range_queries").density_errors(place.truth, picture)[0] for picture in pictures]
        found[level] = float(np.mean(errors)) * 1e12
    return min(found.items(), key=lambda pair: pair[1])


def main(repetitions: int) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as process:
        york = process.map(million, [0])[0]
    print("New York", york)
    place, some = city(), max(1, repetitions // 2)
    theirs = {c0: several(place, prefix(place, c0), repetitions if c0 == "0.1" else some) for c0 in C0}
    ours = {
        str(most): several(place, devices(place, most), repetitions if most in (1_300, None) else some)
        for most in NUMBERS
    }
    level, floor = fixed_level(place, 3)
    results = {
        "New York, 1,000,000 people a round": york,
        "published, by c0": theirs,
        "ours, by the most numbers": ours,
        "best level without privacy": {"level": level, "mse": floor},
    }
    (HERE / "results" / "federated.json").write_text(json.dumps(results, indent=1) + "\n")
    (HERE.parent / "docs" / "results" / "federated.md").write_text(page(results, repetitions))
    draw(theirs, ours, floor)
    print(page(results, repetitions))


def row(name: str, found: dict) -> str:
    """A line of the table."""
    m, s = found["mean"], found["spread"]
    return (
        f"| {name} | {m['rounds']:.0f} | {m['cells']:,.0f} | {m['numbers']:,.0f} | {m['mse']:.2f} ± {s['mse']:.2f} | "
        f"{m['l1']:.3f} | {m['seconds']:.2f} |"
    )


def page(results: dict, repetitions: int) -> str:
    """The page of the documentation."""
    york, floor = results["New York, 1,000,000 people a round"], results["best level without privacy"]
    theirs, ours = results["published, by c0"], results["ours, by the most numbers"]
    lines = [
        f"The synthetic city (3.5 M people, 1024²): in every round {PEOPLE:,} people drawn afresh, in shards of",
        f"{SHARD:,}, ε = 1 for the whole campaign. Numbers: what a device that is asked in every round sends. MSE",
        f"(× 10⁻¹²) and L1 are of the density against that of all 3.5 M; mean and standard deviation of {repetitions}",
        f"campaigns in the rows in bold, of {max(1, repetitions // 2)} in the others.",
        "",
        "| method | rounds | cells | numbers | MSE | L1 | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for c0, found in theirs.items():
        mark = "**" if c0 == "0.1" else ""
        lines.append(row(f"{mark}published, c₀ = {c0}{mark}", found))
    for most, found in ours.items():
        mark = "**" if most in ("1300", "None") else ""
        name = "no limit" if most == "None" else f"at most {int(most):,}"
        lines.append(row(f"{mark}ours, {name}{mark}", found))
    lines += [
        "",
        f"Without any privacy, the best level of a grid (level {floor['level']}) drawn from one such sample has an MSE",
        f"of {floor['mse']:.2f}. Several fresh samples, and cells of different sizes, can go below it.",
        "",
        "![MSE against numbers sent, published and ours](../images/federated.png)",
        "",
        f"New York (the picture of the paper, {york['people there'] / 1e6:.1f} M people), {SOME_LEAVE.people:,} people",
        f"a round, shards of {SHARD:,} of which 12 % may be missing, {float(100 * LEAVING):.0f} % drop out at random,",
        f"and ε = 1: {york['seconds']:.1f} s for the campaign of {york['rounds']} rounds ({york['process']:.1f} s with",
        f"reading the picture and compiling) and at most {york['peak MB']:,.0f} MB of memory; {york['cells']:,} cells,",
        f"{york['numbers']:,} numbers, {york['shards lost']} shards lost, MSE {york['mse']:.2f}, L1 {york['l1']:.3f}.",
    ]
    return "\n".join(lines) + "\n"


def draw(theirs: dict, ours: dict, floor: float) -> None:
    """MSE against numbers sent."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    styles = (("published (c₀ varied)", theirs, "#b32b47", "o"), ("ours (limit varied)", ours, "#1f7b87", "s"))
    for name, found, colour, marker in styles:
        points = sorted((f["mean"]["numbers"], f["mean"]["mse"], f["spread"]["mse"]) for f in found.values())
        numbers, mse, spread = (np.array(column) for column in zip(*points, strict=True))
        axes.errorbar(numbers, mse, spread, color=colour, marker=marker, markersize=5, capsize=2, label=name)
    axes.axhline(floor, color="#6b6b6b", linewidth=1, linestyle=":", label="best grid of one sample, no privacy")
    axes.set(xscale="log", yscale="log", xlabel="numbers a device sends in all rounds", ylabel="MSE of density (10⁻¹²)")
    axes.set_xticks([300, 1_000, 3_000, 10_000], ["300", "1,000", "3,000", "10,000"])
    axes.set_yticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    axes.minorticks_off()
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_title("The synthetic city: 100,000 of 3.5 M people a round, ε = 1", fontsize=10, loc="left")
    axes.legend(frameon=False)
    images = HERE.parent / "docs" / "images"
    images.mkdir(exist_ok=True)
    figure.savefig(images / "federated.png", dpi=150, metadata={"Software": None})


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
