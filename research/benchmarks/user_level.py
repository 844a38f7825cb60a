"""What grouping samples of many people, and CHOP-USER on many cells, cost. Errors: the comparison users-means

usage: user_level.py   writes results/user_level.json; grouping is of the shared table of buses, or skipped without it
"""

import json
import time
from pathlib import Path

import numpy as np

from hazemap.algorithms.published.chop_user import CellVisits, ChopUserQuery, chop_user
from hazemap.engines.memory import SingleCellSamples
from hazemap.tables.sample_grouping import BestFit, WrapAround
from hazemap.values.quantizer import Quantizer

DATA = Path(__file__).parents[3] / "shared" / "data"
QUANTIZER = Quantizer(0, 65)


def chopping() -> dict:
    """CPU seconds for a million pairs of a person and a cell."""
    chance = np.random.default_rng(0)
    chop_user(CellVisits(np.array([0, 0]), np.array([0, 1]), np.array([1, 1])), ChopUserQuery(65.0), 0.1)  # compiles
    keys = np.unique(chance.integers(0, 20_000 * 5_000, 1_010_000))[:1_000_000]
    million = CellVisits(keys // 5_000, keys % 5_000, chance.integers(1, 100, len(keys)))
    begin = time.process_time()
    result = chop_user(million, ChopUserQuery(65.0), 0.1)
    return {"K": [result.before, result.after], "seconds": round(time.process_time() - begin, 2)}


def grouping() -> dict:
    """CPU seconds from a table in memory to the means of its arrays."""
    import pandas as pd

    counts = pd.read_parquet(DATA / "itms_surat_cell.parquet", columns=["user"]).groupby("user").size().to_numpy()
    chance, found = np.random.default_rng(0), {}
    SingleCellSamples(np.array([1, 2]), np.zeros(2)).array_means(BestFit(1), QUANTIZER)  # compiles
    for factor in (1, 10, 1000):
        number = np.tile(counts, factor)
        person = chance.permutation(np.repeat(np.arange(len(number)), number))
        value = chance.normal(20, 10, len(person))
        for rule in (BestFit(114), WrapAround(114)):
            seconds = []
            for _ in range(3):
                begin = time.process_time()
                SingleCellSamples(person, value).array_means(rule, QUANTIZER)
                seconds.append(time.process_time() - begin)
            found[f"{len(number)} people, {len(person)} rows, {type(rule).__name__}"] = round(min(seconds), 4)
    return found


def main() -> None:
    results = {"CHOP-USER, a million pairs": chopping()}
    if (DATA / "itms_surat_cell.parquet").exists():
        results["grouping, CPU seconds"] = grouping()
    else:
        print("skipped: the table of Surat's buses is not here")
    print(results)
    out = Path(__file__).parent / "results" / "user_level.json"
    out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
