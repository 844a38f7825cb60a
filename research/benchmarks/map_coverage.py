"""Do 95 % intervals of cells, slots, shares and totals hold in maps by the default methods?

    python -m research.benchmarks.map_coverage [--releases 400] [--only "map with slots, ε = 1"]

A made-up town: 3,000 people in five crowds and nowhere else, one row each, at an hour of the day; 3 in 10 carry a mark,
twice as many in the west as in the east. Every release is `hazemap.release` from the table to the columns, with the
product's own noise. The truth is what the number names: how many of these people are in the cell, in the slot; of the
people in the cell the share that carries the mark. Told apart: cells where nobody is, cells with people, the ten with
the most people, the ten that `top` names (with its intervals, which are longer, as they are chosen by their numbers),
and all that a map shows (of shares those with a number). Standard errors are clustered by release.

Written to results/map_coverage.json, and to the page of the statistics (`statistic_coverage`).
"""

import argparse
import json
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).resolve().parent / "results" / "map_coverage.json"
BOX = "13.2,52.4,13.6,52.6"
CROWDS = np.array([[13.25, 52.45], [13.3, 52.5], [13.5, 52.55], [13.42, 52.52], [13.55, 52.42]])
SLOTS = {"slots": "clock:0:00,6:00,12:00,18:00", "time_zone": "UTC"}
KINDS: dict[str, dict[str, str]] = {
    "map": {},
    "map with slots": SLOTS,
    "map with a mark": {"mark": "carer"},
    "map with a mark and slots": {"mark": "carer", **SLOTS},
}
PEOPLE, DEPTH = 3000, 12


def town():
    """The table, the path of each person's cell, their slot, and whether they carry the mark."""
    import pyarrow as pa

    from hazemap.spatial.quadtree import Quadtree

    rng = np.random.default_rng(1)
    crowd, hour = rng.integers(0, 5, PEOPLE), rng.integers(0, 24, PEOPLE)
    lon = np.clip(CROWDS[crowd, 0] + rng.normal(0, 0.02, PEOPLE), 13.2001, 13.5999)
    lat = np.clip(CROWDS[crowd, 1] + rng.normal(0, 0.01, PEOPLE), 52.4001, 52.5999)
    mark = rng.random(PEOPLE) < np.where(lon < 13.4, 0.4, 0.2)
    ts = pa.array((hour * 3600 + 1_700_006_400) * 10**6, pa.timestamp("us"))
    table = pa.table({"user": np.arange(PEOPLE), "lon": lon, "lat": lat, "ts": ts, "carer": mark})

    def paths(tree: Quadtree) -> list[str]:
        return tree.names(tree.cell_at({"lon": lon, "lat": lat}, min(DEPTH, tree.depth)))

    return table, paths, hour // 6, mark


def prefixes(paths: list[str], among: np.ndarray) -> Counter[str]:
    """How many of these people are in each cell of any level, by its name."""
    found: Counter[str] = Counter()
    for path in np.array(paths, dtype=object)[among].tolist():
        stem, _, digits = path.partition("-")
        found[stem] += 1
        for size in range(1, len(digits) + 1):
            found[f"{stem}-{digits[:size]}"] += 1
    return found


def held(release, truth: dict[str, Counter[str]], marked: dict[str, Counter[str]]) -> Iterator[tuple[str, int, int]]:
    """How many intervals of each kind hold in a release, and how many there are."""
    columns = release.columns()
    slots = columns.pop("slot", np.full(len(columns["cell"]), "all", dtype=object))
    if hasattr(release, "total_release"):  # its table is apart
        total = release.total_release.columns()
        columns = {name: np.concatenate([total[name], each]) for name, each in columns.items()}
        slots = np.concatenate([np.full(len(total["cell"]), "all", dtype=object), slots])
    cells = columns["cell"]
    people = np.array([truth[slot][cell] for cell, slot in zip(cells, slots, strict=True)])
    inside = (columns["low"] <= people + 1e-9) & (people - 1e-9 <= columns["high"])
    for name, some in (("all slots", slots == "all"), ("slots", slots != "all")):
        if some.any():
            largest = np.zeros(len(cells), dtype=bool)
            largest[np.flatnonzero(some)[np.argsort(-people[some], kind="stable")[:10]]] = True
            for kind, among in (("empty", people == 0), ("people", people > 0), ("ten largest", largest)):
                yield f"counts of {name}|{kind}", int(inside[some & among].sum()), int((some & among).sum())
            yield f"counts of {name}|shown", int(inside[some].sum()), int(some.sum())
            if "carer_share" in columns:
                carried = np.array([marked[slot][cell] for cell, slot in zip(cells, slots, strict=True)])
                share = carried / np.maximum(people, 1)
                fits = (columns["carer_low"] <= share + 1e-9) & (share - 1e-9 <= columns["carer_high"])
                shown = np.isfinite(columns["carer_share"])
                for kind, among in (("people", True), ("ten largest", largest), ("shown", shown)):
                    which = some & (people > 0) & among
                    yield f"shares of {name}|{kind}", int(fits[which].sum()), int(which.sum())
    top = release.top(10)
    people = np.array([truth["all"][cell] for cell in top["cell"]])
    yield "counts of all slots|ten of top", int(((top["low"] <= people) & (people <= top["high"])).sum()), len(top)
    total = release.total()
    yield "total|people", int(total.low <= PEOPLE <= total.high), 1


def main() -> None:
    import hazemap

    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=400)
    parser.add_argument("--only", help="one setting, by its name; the others stay as they were measured")
    asked = parser.parse_args()
    table, paths, slot, mark = town()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for kind, more in KINDS.items():
        for epsilon in ("0.3", "1"):
            if asked.only not in (None, f"{kind}, ε = {epsilon}"):
                continue
            book = hazemap.Ledger(Path(tempfile.mkdtemp()) / "ledger.sqlite")
            found: dict[str, list[tuple[int, int]]] = {}
            truth: dict[str, Counter[str]] = {}
            for number in range(asked.releases):
                made = hazemap.release(
                    table, person="user", epsilon=epsilon, box=BOX, cells=f"quadtree:{DEPTH}", ledger=book,
                    dataset=f"town {number}", **more,
                )  # fmt: skip
                if not truth:
                    where = paths(_tree(made))
                    names = {"all": np.full(PEOPLE, True)}
                    names |= {name: slot == at for at, name in enumerate(getattr(made, "slots", ()))}
                    truth = {name: prefixes(where, among) for name, among in names.items()}
                    marked = {name: prefixes(where, among & mark) for name, among in names.items()}
                for name, inside, many in held(made, truth, marked):
                    found.setdefault(name, []).append((inside, many))
            coverage: dict[str, dict[str, list[float]]] = {}
            for name, pairs in found.items():
                inside, many = np.array(pairs, dtype=float).T
                if many.sum():
                    part = inside.sum() / many.sum()
                    error = float(np.sqrt(((inside - part * many) ** 2).sum()) / many.sum())
                    statistic, which = name.split("|")
                    coverage.setdefault(statistic, {})[which] = [round(part, 5), round(error, 5), int(many.sum())]
            results[f"{kind}, ε = {epsilon}"] = {"releases": asked.releases, "coverage": coverage}
            RESULTS.write_text(json.dumps(results, ensure_ascii=False, indent=1) + "\n")
            print(kind, epsilon, json.dumps(coverage), flush=True)


def _tree(made):
    """The squares of a map, which a tree with slots holds."""
    tree = made.cells.tree
    while not hasattr(tree, "left"):
        tree = tree.tree
    return tree


if __name__ == "__main__":
    main()
