"""Values of people with many samples each: means of one cell, CHOP-USER, distributions, and what grouping costs.

usage: user_level.py [DRAWS]   writes results/user_level.json; reads the shared tables, and skips those that are absent
"""

import json
import sys
import time
from fractions import Fraction
from itertools import product
from math import log2
from pathlib import Path

import numpy as np

from hazemap.algorithms.chop_user import Asked, Presence, chop_user
from hazemap.algorithms.distribution import CumulativeTree, best_branchings
from hazemap.algorithms.means import (
    ArrayAveraging,
    BalancedMean,
    LevyMean,
    PlainMean,
    QuantileMean,
    median_length,
    most_arrays,
    worst_case_length,
)
from hazemap.domains.intervals import Intervals
from hazemap.domains.ruler import Ruler
from hazemap.privacy.budget import PureDP
from hazemap.session import Unrecorded, run
from hazemap.tables.contributions import Contributions
from hazemap.tables.grouping import BestFit, Filling, WrapAround
from hazemap.tables.samples import Samples
from hazemap.trust import Curator

DATA = Path(__file__).parents[2] / "shared" / "data"
BUDGETS = ("0.5", "1", "2")
RULER = Ruler(0, 65)
PUBLISHED = {  # mean absolute errors of the authors' code, 300 draws
    "plain Laplace": {"1": 1.62},
    "Array-Averaging, median": dict(zip(BUDGETS, (1.10, 0.76, 0.69), strict=True)),
    "Array-Averaging, m = 114": dict(zip(BUDGETS, (1.23, 0.64, 0.42), strict=True)),
    "Levy, median": dict(zip(BUDGETS, (1.59, 0.88, 0.69), strict=True)),
    "Levy, m = 114": dict(zip(BUDGETS, (1.36, 0.69, 0.41), strict=True)),
    "Quantile, median": dict(zip(BUDGETS, (1.16, 0.81, 0.70), strict=True)),
    "Quantile, m = 114": dict(zip(BUDGETS, (1.33, 0.80, 0.47), strict=True)),
}


def error(method, trust: Curator, epsilon: str, true: float, draws: int) -> dict[str, float]:
    """The mean absolute error, and its own standard error."""
    found = [abs(run(method, trust, PureDP(epsilon), Unrecorded()).value.value - true) for _ in range(draws)]
    return {"error": round(float(np.mean(found)), 3), "of it": round(float(np.std(found)) / draws**0.5, 3)}


def means(draws: int) -> dict:
    """One hexagon and hour of Surat's buses: what is published, the variants, and ours."""
    import pandas as pd

    rows = pd.read_parquet(DATA / "itms_surat_cell.parquet")
    table, true = Samples(rows.user.to_numpy(), rows.speed_kmh.to_numpy()), float(rows.speed_kmh.mean())
    some, trust = table.contributions, Curator(table)
    lengths = {"median": median_length(some), "m = 114": 114, "K√m": most_arrays(some)}
    methods = {"plain Laplace": PlainMean(RULER, some), "balanced": BalancedMean(RULER, some)}
    methods |= {f"balanced, reach U/{n}": BalancedMean(RULER, some, Fraction(1, n)) for n in (8, 32)}
    for name, length in lengths.items():
        groups = BestFit(length, Filling.MEANS)
        methods[f"Array-Averaging, {name}"] = ArrayAveraging(RULER, some, groups)
        methods[f"Array-Averaging of wrapped arrays, {name}"] = ArrayAveraging(
            RULER, some, WrapAround(length, Filling.MEANS)
        )
        methods[f"Array-Averaging of samples, {name}"] = ArrayAveraging(RULER, some, BestFit(length))
        methods[f"Levy, {name}"] = LevyMean(RULER, some, groups)
        methods[f"Quantile, {name}"] = QuantileMean(RULER, some, groups)
        methods[f"Quantile of a rank from ε, {name}"] = QuantileMean(RULER, some, groups, rank=None)
    found = {name: {e: error(m, trust, e, true, draws) for e in BUDGETS} for name, m in methods.items()}
    for epsilon in BUDGETS:
        length = worst_case_length(some, float(epsilon))
        best = ArrayAveraging(RULER, some, BestFit(length, Filling.MEANS))
        found.setdefault("Array-Averaging, worst-case optimum", {})[epsilon] = error(best, trust, epsilon, true, draws)
    for name, each in found.items():
        for epsilon, published in PUBLISHED.get(name, {}).items():
            each[epsilon]["published"] = published
        print(
            f"{name:44}", *(f"{e}: {v['error']:.3f} ± {v['of it']:.3f} ({v.get('published')})" for e, v in each.items())
        )
    best = {e: min(each[e] for name, each in PUBLISHED.items() if e in each) for e in BUDGETS}
    lower = {e: round(1 - found["balanced"][e]["error"] / best[e], 3) for e in BUDGETS}
    print("balanced is lower than the best published one by", lower)
    return {"draws": draws, "true": true, "found": found, "lower than the best published": lower}


def scaling(draws: int) -> dict:
    """The paper's synthetic tables: more samples a person, or more people, all values independent."""
    import pandas as pd

    rows = pd.read_parquet(DATA / "itms_surat_cell.parquet")
    counts = rows.groupby("user").size().to_numpy()
    chance, found = np.random.default_rng(2), {}
    for kind, factor in product(("samples", "people"), (1, 10)):
        number = counts * factor if kind == "samples" else np.repeat(counts, factor)
        value = np.clip(chance.normal(rows.speed_kmh.mean(), rows.speed_kmh.std(), number.sum()), 0, 65)
        table, some = Samples(np.repeat(np.arange(len(number)), number), value), Contributions(number)
        groups = BestFit(most_arrays(some), Filling.MEANS)
        methods = {
            "balanced": BalancedMean(RULER, some),
            "Array-Averaging": ArrayAveraging(RULER, some, groups),
            "Levy": LevyMean(RULER, some, groups),
            "Quantile": QuantileMean(RULER, some, groups),
        }
        trust, true = Curator(table), float(value.mean())
        found[f"{factor} × {kind}"] = each = {n: error(m, trust, "1", true, draws) for n, m in methods.items()}
        print(f"{factor} × {kind}, ε = 1:", {name: value["error"] for name, value in each.items()})
    return found


def elsewhere(draws: int) -> dict:
    """The five fullest cells of two other tables, on which nothing was chosen: error in parts of the range."""
    import pandas as pd

    found: dict = {}
    files = ("austin_bus_2015", "speed_ms", 30.0), ("cabspotting_sf_speed_2008_05_20", "speed_kmh", 100.0)
    for file, column, width in files:
        rows = pd.read_parquet(DATA / f"{file}.parquet").dropna(subset=[column])
        cells = rows.groupby([rows.lon.round(2), rows.lat.round(2), rows.ts.dt.hour], sort=False)
        for number, place in enumerate(cells.size().nlargest(5).index):
            cell = cells.get_group(place)
            table, ruler = Samples(cell.user.to_numpy(), cell[column].to_numpy()), Ruler(0, width)
            some, trust, true = table.contributions, Curator(table), float(cell[column].clip(0, width).mean())
            groups = BestFit(most_arrays(some), Filling.MEANS)
            methods = {
                "balanced": BalancedMean(ruler, some),
                "Array-Averaging": ArrayAveraging(ruler, some, groups),
                "Levy": LevyMean(ruler, some, groups),
                "Quantile": QuantileMean(ruler, some, groups),
            }
            title = f"{file}, cell {number + 1}: {some.people} people, {some.total} samples"
            found[title] = {
                epsilon: {
                    n: round(error(m, trust, epsilon, true, draws)["error"] / width, 4) for n, m in methods.items()
                }
                for epsilon in BUDGETS
            }
            print(title, found[title])
    return found


def presences() -> dict[str, tuple[Presence, float]]:
    """Who was in which H3 hexagon and hour of the day, and the range of the value."""
    import h3
    import pandas as pd

    def presence(rows, zone: str) -> Presence:
        hours = rows.ts.dt.tz_convert(zone).dt.hour.to_numpy()
        cells = [h3.str_to_int(h3.latlng_to_cell(*place, 7)) for place in zip(rows.lat, rows.lon, strict=True)]
        return Presence.counted(rows.user.to_numpy(), np.unique(cells, return_inverse=True)[1] * 24 + hours)

    buses = pd.read_parquet(DATA / "austin_bus_2015.parquet")
    cabs = pd.read_parquet(DATA / "cabspotting_sf_speed_2008_05_20.parquet").dropna(subset=["speed_kmh"])
    return {
        "austin_bus_2015, m/s": (presence(buses, "America/Chicago"), 30.0),
        "cabspotting_sf_speed, km/h": (presence(cabs, "America/Los_Angeles"), 100.0),
    }


def of_ten(presence: Presence) -> Presence:
    """Only cells with ten people or more: a public condition, for their numbers are."""
    kept = np.bincount(presence.cell)[presence.cell] >= 10
    person, cell = (np.unique(codes[kept], return_inverse=True)[1] for codes in (presence.person, presence.cell))
    return Presence(person, cell, presence.samples[kept])


def chopped() -> dict:
    """K before and after, at equal worst-case error."""
    heavy = Presence(  # one person with most samples in 12 cells, 30 others in one each
        np.concatenate([np.zeros(12, np.int64), np.arange(1, 361)]),
        np.concatenate([np.arange(12), np.repeat(np.arange(12), 30)]),
        np.concatenate([np.full(12, 60), np.full(360, 10)]),
    )
    tables = presences() if (DATA / "austin_bus_2015.parquet").exists() else {}
    every = {f"{name}, all cells": pair for name, pair in tables.items()}
    every |= {f"{name}, cells of 10 people or more": (of_ten(p), width) for name, (p, width) in tables.items()}
    every["one heavy person, 12 cells"] = heavy, 65.0
    found: dict = {}
    for (name, (presence, width)), variance in product(every.items(), (False, True)):
        title = f"{name}, {'mean and variance' if variance else 'mean'}"
        found[title] = {"pairs": len(presence.person), "cells": int(presence.cell.max()) + 1}
        for epsilon in (0.1, 0.2, 0.5, 1.0, 2.0):
            result = chop_user(presence, Asked(width, variance), epsilon)
            found[title][epsilon] = {
                "K": [result.before, result.after],
                "left out": int((~result.kept).sum()),
                "worst error": [round(result.threshold, 2), round(result.error, 2)],
            }
        print(title, len(presence.person), {e: v["K"] for e, v in found[title].items() if isinstance(e, float)})
    chance = np.random.default_rng(0)
    keys = np.unique(chance.integers(0, 20_000 * 5_000, 1_010_000))[:1_000_000]
    million = Presence(keys // 5_000, keys % 5_000, chance.integers(1, 100, len(keys)))
    begin = time.process_time()
    result = chop_user(million, Asked(65.0), 0.1)
    found["a million pairs"] = {"K": [result.before, result.after], "seconds": round(time.process_time() - begin, 2)}
    print("a million pairs", found["a million pairs"])
    return found


def distributions(draws: int) -> dict:
    """ℓ₂ error of 20,000 people's values in two humps, at ε = 0.1."""
    chance = np.random.default_rng(0)
    slow = chance.random(20_000) < 0.3
    value = np.clip(np.where(slow, chance.normal(15, 4, 20_000), chance.normal(35, 9, 20_000)), 0, 65)
    trust, found = Curator(Samples(np.arange(20_000), value)), {}
    for bins in (100, 1_000, 10_000):
        trees = {"chosen": best_branchings(bins), "binary": (2,) * int(np.ceil(log2(bins))), "flat": (bins,)}
        for name, branchings in trees.items():
            tree = Intervals(0, 65, bins, branchings)
            true = np.cumsum(np.histogram(value, tree.edges)[0]) / len(value)
            errors = []
            for _ in range(draws):
                parts = run(CumulativeTree(tree), trust, PureDP("0.1"), Unrecorded()).value.parts
                assert (np.diff(parts, prepend=0, append=1) >= 0).all()
                errors.append(float(np.sqrt(np.mean((parts - true) ** 2))))
            found[f"{bins} bins, {name}"] = {
                "branchings": list(branchings),
                "error": round(float(np.mean(errors)), 6),
                "of it": round(float(np.std(errors)) / draws**0.5, 6),
            }
            print(f"{bins} bins, {name}", found[f"{bins} bins, {name}"])
    return found


def grouping() -> dict:
    """CPU seconds from a table in memory to the means of its arrays."""
    import pandas as pd

    counts = pd.read_parquet(DATA / "itms_surat_cell.parquet", columns=["user"]).groupby("user").size().to_numpy()
    chance, found = np.random.default_rng(0), {}
    Samples(np.array([1, 2]), np.zeros(2)).array_means(BestFit(1), RULER)  # compiles
    for factor in (1, 10, 1000):
        number = np.tile(counts, factor)
        person = chance.permutation(np.repeat(np.arange(len(number)), number))
        value = chance.normal(20, 10, len(person))
        for rule in (BestFit(114), WrapAround(114)):
            seconds = []
            for _ in range(3):
                begin = time.process_time()
                Samples(person, value).array_means(rule, RULER)
                seconds.append(time.process_time() - begin)
            found[f"{len(number)} people, {len(person)} rows, {type(rule).__name__}"] = round(min(seconds), 4)
    print(found)
    return found


def main(draws: int) -> None:
    results = {
        "distributions, ε = 0.1": distributions(max(draws // 3, 1)),
        "chop user": chopped(),
    }
    if (DATA / "itms_surat_cell.parquet").exists():
        results |= {
            "other tables": elsewhere(max(draws // 3, 1)),
            "means": means(draws),
            "scaled": scaling(max(draws // 3, 1)),
            "grouping, CPU seconds": grouping(),
        }
    else:
        print("skipped: the table of Surat's buses is not here")
    out = Path(__file__).parent / "results" / "user_level.json"
    out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
