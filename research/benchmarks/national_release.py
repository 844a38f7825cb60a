"""The national release of `national.py`'s people: how long it takes, how large it is, and how far it is from the truth.

usage: national_release.py [RUNS] [--timing]   3 by default; writes results/national.json, docs/results/national.md

Figure 9 of the paper on trees of even density (Shaham et al. 2022) holds static levels of states, counties and cities,
ε_i ∝ n_i^(1/3), against two benchmarks: the map halved nine times, or quartered five times, with geometric budgets, and
the same trees in whatever has fewer than a million people. A geometric budget is that very rule for 2^i or 4^i nodes,
so the benchmarks are national releases too, of districts that are rectangles. All three are asked the same: how many
are in each state, county and city, and in 2,000 random rectangles of the 1.2° around six cities, 1024 × 1024 pixels.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import shapely

from hazemap.algorithms import TreesWithinDistricts
from hazemap.cellmap import CellMap
from hazemap.cells import NOWHERE
from hazemap.lab.compare.ground_truth_maps import KnownCounts, middles
from hazemap.lab.compare.map_scores import rectangles, sums
from hazemap.privacy.budget import PureDP
from hazemap.privacy.statement import A_PERSON, Statement
from hazemap.queries.algorithm_session import Session, Unrecorded, run
from hazemap.queries.noisy_queries import Measure
from hazemap.releases import Release
from hazemap.releases.cell_geometry import equal_area
from hazemap.spatial.district_layers import DistrictLayer
from hazemap.spatial.districts import Districts
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_trees import bounds
from hazemap.spatial.subdivided_districts import DistrictQuadtree
from hazemap.specs.parsing import SQUARES
from hazemap.tables.contribution_bounding import AtMostRows
from hazemap.trust.curator import Curator
from research.benchmarks.national import HERE, PEOPLE, cities, districts, people

RULE = AtMostRows(1)
FRAME = (-180.0, 17.5, -65.0, 71.5)
"""What the benchmarks cut: all of the country but the western tip of the Aleutians."""
AROUND = ("New York", "San Francisco", "Seattle", "Denver", "Detroit", "Phoenix")
REACH, SIDE = 0.6, 1024
EPSILONS = ("0.5", "1")
LEVELS = ("states", "counties", "cities")
SMOOTHING = 20


def cut(times: int, ways: int) -> Districts:
    """The frame, cut again and again into two or four: a tree of rectangles for districts."""
    layers, boxes, names = [], [FRAME], [""]
    for level in range(times):
        born, keys, parents = [], [], []
        for (west, south, east, north), name in zip(boxes, names, strict=True):
            x, y = (west + east) / 2, (south + north) / 2
            halves = [(west, south, x, north), (x, south, east, north)]
            if ways == 4:
                halves = [(a, low, b, high) for a, _, b, _ in halves for low, high in ((south, y), (y, north))]
            elif level % 2:
                halves = [(west, south, east, y), (west, y, east, north)]
            born += halves
            keys += [f"{name}{digit}" for digit in range(ways)]
            parents += [name] * ways
        rows = {"name": keys} | ({"parent": parents} if level else {})
        frame = geopandas.GeoDataFrame(rows, geometry=[shapely.box(*box) for box in born], crs="EPSG:4326")
        layers.append(DistrictLayer(frame, name="name", parent="parent" if level else None))
        boxes, names = born, keys
    return Districts.of(*layers, whole="everything")


TREES: dict[str, Callable[[], Districts]] = {
    "states, counties, cities": districts,
    "benchmark 1: halved nine times": cache(partial(cut, 9, 2)),
    "benchmark 2: quartered five times": cache(partial(cut, 5, 4)),
}


def in_finest(made: CellMap) -> np.ndarray:
    """People in each finest district: those of a cell lie evenly in what of it is on land."""
    tree, whole, found = made.cells.tree, districts(), np.zeros(len(districts().finest))
    own = tree.base.districts
    first, last = own.span(made.cells.cells & ~np.uint64((1 << 44) - 1) | np.uint64(1))
    west, south, east, north = bounds(tree.base.square, tree.rectangles(made.cells.cells))
    for start in range(0, made.cells.size, 1 << 18):
        part = slice(start, start + (1 << 18))
        spread = np.column_stack([east[part] - west[part], north[part] - south[part]])
        number = np.clip(spread / (360 / 2**SQUARES), 1, 4).astype(np.int64)  # points in a row, and in a column
        owner = np.repeat(np.arange(len(number)), number.prod(axis=1))
        inner = np.arange(len(owner)) - np.repeat(
            np.cumsum(number.prod(axis=1)) - number.prod(axis=1), number.prod(axis=1)
        )
        x, y = inner % number[owner, 0], inner // number[owner, 0]
        lon = west[part][owner] + (x + 0.5) / number[owner, 0] * spread[owner, 0]
        lat = south[part][owner] + (y + 0.5) / number[owner, 1] * spread[owner, 1]
        at = {"lon": lon, "lat": lat}
        inside = whole.cell_at(at, whole.depth)
        held = inside if own is whole else own.cell_at(at, own.depth)
        kept = (inside != NOWHERE) & (held >= first[part][owner]) & (held <= last[part][owner])
        points = np.bincount(owner[kept], minlength=len(number))
        weight = made.values[part][owner[kept]] / points[owner[kept]]
        np.add.at(found, np.searchsorted(whole.finest, inside[kept]), weight)
        if own is whole:  # slivers in which no point lies
            lost = np.flatnonzero(points == 0)
            at = np.searchsorted(whole.finest, last[part][lost], "right") - 1
            np.add.at(found, at, made.values[part][lost])
    return found


def by_level(finest: np.ndarray) -> dict[str, np.ndarray]:
    """People in each state, county and city, given those in each finest district."""
    tree, until = districts(), np.concatenate([[0.0], np.cumsum(finest)])
    found, cells = {}, tree.root
    for name in LEVELS:
        cells = tree.children(cells)
        if name == "cities":
            cells = cells[[not path.endswith("unincorporated") for path in tree.names(cells)]]
        first, last = tree.span(cells)
        found[name] = until[np.searchsorted(tree.finest, last, "right")] - until[np.searchsorted(tree.finest, first)]
    return found


@cache
def truth() -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """The same of the people themselves, and the six pictures."""
    known, tree = people(), districts()
    place = middles(known.tree, known.cells)
    inside = tree.cell_at(place, tree.depth)
    finest = np.bincount(np.searchsorted(tree.finest, inside), known.people, len(tree.finest))
    pictures = []
    for west, south in corners():
        column = np.floor((place["lon"] - west) / (2 * REACH / SIDE)).astype(int)
        row = np.floor((place["lat"] - south) / (2 * REACH / SIDE)).astype(int)
        here = (column >= 0) & (column < SIDE) & (row >= 0) & (row < SIDE)
        pictures.append(np.bincount(row[here] * SIDE + column[here], known.people[here], SIDE**2).reshape(SIDE, SIDE))
    return by_level(finest), pictures


@cache
def corners() -> list[tuple[float, float]]:
    """South-west of what lies around each of the six cities."""
    table = cities().sort_values("people", ascending=False)
    rows = [table[table.name == name].iloc[0] for name in AROUND]
    return [(row.lon - REACH, row.lat - REACH) for row in rows]


def picture(made: CellMap, west: float, south: float) -> np.ndarray:
    """What the map shows in each pixel of a picture: the density of the cell around it, times its area."""
    step = (np.arange(SIDE) + 0.5) * (2 * REACH / SIDE)
    lon, lat = (grid.ravel() for grid in np.meshgrid(west + step, south + step))
    place = made.cells.locate(made.cells.tree.cell_at({"lon": lon, "lat": lat}, made.cells.tree.depth))
    areas = made.cells.areas
    density = np.divide(made.values, areas, out=np.zeros(len(areas)), where=areas > 0)
    edges = equal_area(
        np.column_stack([np.linspace(west, west + 2 * REACH, SIDE + 1)] * 2) * [1, 0]
        + np.column_stack([np.zeros(SIDE + 1), np.linspace(south, south + 2 * REACH, SIDE + 1)])
    )
    area = np.outer(np.diff(edges[:, 1]), np.diff(edges[:, 0]))
    return np.append(density, 0.0)[place].reshape(SIDE, SIDE) * area


def errors(made: CellMap) -> dict[str, float]:
    """Mean relative error in per cent, smoothed at 20 people, and the median error in people."""
    asked = rectangles(b"national", (SIDE, SIDE))
    levels, pictures = truth()
    found = {name: (estimates, levels[name]) for name, estimates in by_level(in_finest(made)).items()}
    for name, corner, true in zip(AROUND, corners(), pictures, strict=True):
        found[f"rectangles around {name}"] = sums(picture(made, *corner), asked), sums(true, asked)
    scores = {}
    for name, (estimates, true) in found.items():
        off = np.abs(estimates - true)
        scores[f"{name}, %"] = float(100 * np.mean(off / np.maximum(true, SMOOTHING)))
        scores[f"{name}, people"] = float(np.median(off))
    return scores


def timed(path: str) -> dict[str, Any]:
    """One release of the people in a file, in a process of its own: seconds of each part, and memory."""
    stored = np.load(path, allow_pickle=True)
    known = KnownCounts(Quadtree.world(20), stored["cells"], stored["people"])
    tree = DistrictQuadtree(
        Districts(tuple(stored["labels"].tolist()), stored["levels"], str(stored["shapes"])), Quadtree.world(SQUARES)
    )
    made = {"memory before, GB": memory()}
    clock, begin = time.perf_counter(), time.process_time()
    known.votes(tree, RULE)
    made["who is in which district square"] = time.process_time() - begin
    method, trust, parts = (
        TreesWithinDistricts(tree, RULE),
        Curator(known),
        dict.fromkeys(("counts", "costs", "cuts", "numbers"), 0.0),
    )
    price = PureDP("1")
    start = begin_run = time.process_time()
    session = Session(method, trust.prices(price), price, Unrecorded(), trust.answers)
    while session.question:
        question = session.question
        parts["cuts"] += time.process_time() - start
        start = time.process_time()
        answer = trust.answer(question, session.price)
        parts["costs" if isinstance(question, Measure) else "counts"] += time.process_time() - start
        start = time.process_time()
        session.receive(answer)
        if session.result:
            parts["numbers"] = time.process_time() - start
    made |= parts | {"the map": made["who is in which district square"] + time.process_time() - begin_run}
    made["the map, clock"] = time.perf_counter() - clock
    made["memory with the map, GB"] = memory()
    result = session.result
    made |= {"cells": result.value.cells.size, "questions": len(result.transcript)}
    facts = ("one person added or removed", price, RULE, "curator", (), "discrete Laplace", (), (), "national")
    statement = Statement("nobody", A_PERSON, *facts, "2026-01-01T00:00:00Z", "0")
    with tempfile.TemporaryDirectory() as folder:
        clock, begin = time.perf_counter(), time.process_time()
        Release(result.value, statement, method, result.transcript).save(Path(folder) / "map.parquet")
        made["the file"] = time.process_time() - begin
        made["the file, clock"] = time.perf_counter() - clock
        made["file, MB"] = (Path(folder) / "map.parquet").stat().st_size / 1e6
    return made | {"memory with the file, GB": memory()}


def memory() -> float:
    """The most so far, in GB; `ru_maxrss` would be that of whoever started this process, if it had more."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / 1e9


def points(number: int = 10_000_000) -> dict[str, float]:
    """Which of all districts holds each of ten million people."""
    rng, known, public = np.random.default_rng(1), people(), districts()
    tree = Districts(public.labels, public.levels, public.shapes)  # without its index
    at = rng.choice(len(known.cells), number, p=known.people / known.people.sum())
    place = middles(known.tree, known.cells[at])
    place = {name: degrees + rng.normal(0, 1e-4, number) for name, degrees in place.items()}
    begin = time.process_time()
    tree.cell_at({name: degrees[:1000] for name, degrees in place.items()}, tree.depth)
    first = time.process_time() - begin
    clock, begin = time.perf_counter(), time.process_time()
    tree.cell_at(place, tree.depth)
    clock, seconds = time.perf_counter() - clock, time.process_time() - begin
    return {"points": number, "index, s": first, "points, s": seconds, "points, clock": clock}


def measured() -> dict[str, Any]:
    """`timed`, once everything is compiled."""
    with tempfile.TemporaryDirectory() as folder:
        path, tree = str(Path(folder) / "people.npz"), districts()
        np.savez(
            path,
            cells=people().cells,
            people=people().people,
            labels=np.array(tree.labels, dtype=object),
            levels=tree.levels,
            shapes=np.array(tree.shapes),
        )
        for _ in range(2):  # the first compiles
            said = subprocess.run(
                [sys.executable, "-m", "research.benchmarks.national_release", "--timed", path],
                capture_output=True,
                check=True,
                text=True,
            )
        return json.loads(said.stdout)


def main(runs: int) -> None:
    from research.benchmarks.national_page import page

    target = HERE / "results" / "national.json"
    if "--timing" in sys.argv:  # the errors as they are
        known = json.loads(target.read_text()) | {"timed": measured(), "points": points()}
        target.write_text(json.dumps(known, indent=1) + "\n")
        (HERE.parents[1] / "docs" / "results" / "national.md").write_text(page(known))
        return
    known = {"machine": f"{os.cpu_count()} cores, {platform.machine()}", "people": PEOPLE, "rows": []}
    known |= {"inhabited squares": len(people().cells), "districts": districts().sizes.tolist(), "runs": runs}
    known["points"] = points()
    known["timed"] = measured()
    for epsilon in reversed(EPSILONS):
        for name, tree in TREES.items():
            table, found = KnownCounts(people().tree, people().cells, people().people), []
            for _ in range(runs):
                method = TreesWithinDistricts(DistrictQuadtree(tree(), Quadtree.world(SQUARES)), RULE)
                made = run(method, Curator(table), PureDP(epsilon), Unrecorded()).value
                found.append(errors(made))
            mean = {score: float(np.mean([each[score] for each in found])) for score in found[0]}
            band = {score: float(2 * np.std([each[score] for each in found], ddof=1) / runs**0.5) for score in mean}
            known["rows"].append(
                {"method": name, "epsilon": float(epsilon), "cells": made.cells.size, "mean": mean, "band": band}
            )
            print(epsilon, name, made.cells.size, mean, flush=True)
            target.write_text(json.dumps(known, indent=1) + "\n")
            (HERE.parents[1] / "docs" / "results" / "national.md").write_text(page(known))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--timed"]:
        print(json.dumps(timed(sys.argv[2])))
    else:
        main(int(sys.argv[1]) if sys.argv[1:2] and sys.argv[1].isdigit() else 3)
