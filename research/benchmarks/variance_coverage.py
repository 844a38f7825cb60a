"""Do 95 % intervals of variances hold in every cell that is told, near the bounds too?

    python -m research.benchmarks.variance_coverage [--runs 3]

A setting is one kind of values in a cell, Laplace or Gaussian noise, and how many people are there: of what is needed
for a variance to be told, a half to twenty times; with values only, where the number of people is known, 10 to 1,000.
A run adds fresh noise to 4,096 such cells. Counted over the cells that are told, where 300 or more are. Written to
results/variance_coverage.json.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from hazemap.cells import Leaves
from hazemap.estimate.mean_intervals import IntervalEstimates
from hazemap.estimate.value_estimates import Measurements, variances_known
from hazemap.spatial.quadtree import Quadtree
from hazemap.temporal.time_slots import Always
from hazemap.values.cell_slot_counters import CellTimeSlots
from hazemap.values.value_encoding import ValueEncoding

RESULTS = Path(__file__).resolve().parent / "results" / "variance_coverage.json"
PLACES = CellTimeSlots(Leaves.at_level(Quadtree.world(depth=6), 6), Always(), ValueEncoding(0, 1, degree=2))
RNG = np.random.default_rng(1)
VALUES = {
    "all at the low bound": np.zeros(1),
    "all near the low bound": np.array([0.02]),
    "all in the middle": np.array([0.5]),
    "all at the high bound": np.ones(1),
    **{f"1 in {number} at the other bound": np.arange(number) == 0 for number in (1000, 100, 20, 5)},
    "2 in 5 at the other bound": np.repeat([0.0, 1], [3, 2]),
    "half at either bound": np.array([0.0, 1]),
    "half near either bound": np.array([0.02, 0.98]),
    "half in the middle, half at a bound": np.array([0.5, 1]),
    "close together": np.linspace(0.85, 0.95, 11),
    "anywhere": np.linspace(0, 1, 101),
    "more at the bounds": RNG.beta(0.4, 0.4, 500),
    "most near one bound": RNG.beta(0.3, 3, 500),
}
NOISE = {"Laplace": 3.0, "Gaussian": 0.0}
FULL = (0.5, 0.6, 0.75, 0.9, 1.0, 1.1, 1.3, 1.6, 2, 4, 20)
PEOPLE = (10, 25, 40, 60, 200, 1000)


def counted(y: np.ndarray, kurtosis: float, full: float, drawn: np.ndarray) -> tuple[np.ndarray, IntervalEstimates]:
    """Which cells are told, and what of them."""
    needed = Measurements(PLACES, drawn, 1.0, kurtosis).variance_threshold
    parts = np.array([((1 - y) ** 2).mean(), (2 * y * (1 - y)).mean(), (y * y).mean()])
    found = Measurements(PLACES, full * needed * parts + drawn, 1.0, kurtosis).variances()
    return ~found.too_few, IntervalEstimates(found.value, found.stddev, found.low, found.high)


def known(y: np.ndarray, kurtosis: float, people: float, drawn: np.ndarray) -> tuple[np.ndarray, IntervalEstimates]:
    """The same with values only."""
    sums, bent = people * y.mean() + drawn[:, 0], people * (y * (1 - y)).mean() + drawn[:, 1]
    told = np.full(PLACES.places, True)
    return told, variances_known(sums, bent, np.full(PLACES.places, float(people)), (1.0, kurtosis), 0.95)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    runs, rng, settings = parser.parse_args().runs, np.random.default_rng(2), list[dict]()
    for law, kurtosis in NOISE.items():
        for kind, y in VALUES.items():
            values = np.asarray(y, dtype=np.float64)
            truth = values.var()
            for way, numbers in ((counted, FULL), (known, PEOPLE)):
                for number in numbers:
                    held = told = 0
                    for _ in range(runs):
                        shape = (PLACES.places, 3)
                        drawn = rng.laplace(0, 0.5**0.5, shape) if law == "Laplace" else rng.normal(0, 1, shape)
                        some, found = way(values, kurtosis, number, drawn)
                        inside = (found.low <= truth + 1e-12) & (truth <= found.high + 1e-12)
                        held, told = held + int(inside[some].sum()), told + int(some.sum())
                    if told >= 300:
                        each = {"law": law, "values": kind, "people": way.__name__, "number": number}
                        settings.append({**each, "told": told, "held": held / told})
    least = sorted(settings, key=lambda each: each["held"])
    low = [each for each in settings if each["held"] < 0.94]
    summary = {"settings": len(settings), "below 94 %": len(low), "told": sum(each["told"] for each in settings)}
    lines = ",\n ".join(json.dumps(each, ensure_ascii=False) for each in least)
    RESULTS.write_text(f'{{"summary": {json.dumps(summary)}, "settings": [\n {lines}\n]}}\n')
    print(json.dumps(summary), *(json.dumps(each) for each in least[:5]), sep="\n")


if __name__ == "__main__":
    main()
