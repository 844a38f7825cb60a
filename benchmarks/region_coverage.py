"""How often intervals of random regions hold the truth, with everything that a question goes through.

    python benchmarks/region_coverage.py [--rounds 10] [--releases 4] [--regions 50] [--sets gowalla,cabs,uber,city]

A setting is a data set, a bounding rule, squares or hexagons, and ε. A round makes fresh releases of every setting
by the default method and asks each about fresh regions: boxes, triangles, convex polygons and others, from the size
of a cell to the whole map (log-uniform), half of them anywhere and half around somebody's place. The truth is what
the bounding rule left, everybody anywhere in their finest cell (10 to 25 m). The noise alone is ± 1.96 standard
errors. Errors of shares are clustered by release. Regions that cut few people are those whose cut cells hold at
most 1 % of what is asked about. Every round is added to results/region_coverage.json, so it can be stopped at any
time and goes on where it was; docs/results/coverage.md is the table. The sets "foursquare", "geolife" and
"accidents" were not looked at before the method was done.
"""

import argparse
import json
from functools import cache
from pathlib import Path

import numpy as np
import shapely
from city import TREE, truth

from hazemap.algorithms import Adaptive
from hazemap.algorithms.found_box import over
from hazemap.cells import NOWHERE
from hazemap.domains import Box, Hexagons
from hazemap.errors import InputError
from hazemap.privacy.budget import PureDP
from hazemap.privacy.statement import A_PERSON, A_ROW, Statement
from hazemap.privacy.stream import Stream
from hazemap.releases import Release
from hazemap.session import Unrecorded, run
from hazemap.tables import open_table
from hazemap.tables.bounding import AtMostCells, AtMostRows, OneVote, RowIsPerson
from hazemap.tables.votes import Votes
from hazemap.trust import Curator

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[1] / "shared" / "data"
RESULTS = HERE / "results" / "region_coverage.json"
PAGE = HERE.parent / "docs" / "results" / "coverage.md"
NEW_YORK, SAN_FRANCISCO = Box(-74.27, 40.48, -73.69, 40.93), Box(-122.52, 37.59, -122.28, 37.83)
SETS = {  # file, box, resolutions of H3
    "gowalla": ("gowalla_nyc_2009_2010", NEW_YORK, (6, 11)),
    "cabs": ("cabspotting_sf_pickups_2008", SAN_FRANCISCO, (6, 11)),
    "uber": ("uber_nyc_2014_apr_jul_partial", NEW_YORK, (6, 11)),
    "city": (None, Box(*(float(edge[0]) for edge in TREE.bounds(TREE.root))), (6, 11)),
    "foursquare": ("foursquare_us_2012_2013", Box(-125, 24.4, -66.9, 49.4), (3, 9)),
    "geolife": ("geolife_beijing_1min", Box(116.0, 39.6, 116.8, 40.2), (6, 11)),
    "accidents": ("uk_road_accidents", Box(-7.6, 49.8, 1.9, 60.9), (4, 9)),
}
PEOPLE = ("gowalla", "cabs", "foursquare", "geolife")
RULES = {
    "one row": AtMostRows(1),
    "rows:10": AtMostRows(10),
    "cells:10": AtMostCells(10),
    "one vote": OneVote(),
    "rows are people": RowIsPerson(),
}
FEW = 0.01


class Kept:
    """A table of which only what a rule left is known, and remembered."""

    def __init__(self, name: str, cells: str, rule: str) -> None:
        _, self.box, (coarsest, finest) = SETS[name]
        self.tree = over(self.box, 10) if cells == "squares" else Hexagons(self.box, coarsest, finest)
        votes = table(name).votes(self.tree, RULES[rule])
        self.known = Votes(votes.cells[votes.cells != NOWHERE], votes.weights[votes.cells != NOWHERE])
        # Everybody on their own, anywhere in their base cell: at its middle, all along a border would be on one side.
        whole = RULES[rule].unit == 1
        base = np.repeat(self.known.cells, self.known.weights if whole else 1)
        self.number = np.ones(len(base)) if whole else self.known.weights / RULES[rule].unit
        rng = np.random.default_rng(3)
        if cells == "squares":
            west, south, east, north = self.tree.bounds(base)
            self.lon, self.lat = (
                west + (east - west) * rng.random(len(base)),
                south + (north - south) * rng.random(len(base)),
            )
        else:
            places, at = np.unique(base, return_inverse=True)
            outlines = self.tree.outlines(places)
            middle, (west, south, east, north) = shapely.centroid(outlines), shapely.bounds(outlines).T
            far, turn = 0.47 * np.sqrt(rng.random(len(base))), 2 * np.pi * rng.random(len(base))
            self.lon = shapely.get_x(middle)[at] + far * np.cos(turn) * (east - west)[at]
            self.lat = shapely.get_y(middle)[at] + far * np.sin(turn) * (north - south)[at]
        order = np.argsort(self.lon, kind="stable")
        self.sorted = self.lon[order], self.lat[order], self.number[order]
        self.likely = np.cumsum(self.number) / self.number.sum()

    def votes(self, _tree: object, _bounding: object) -> Votes:
        """What the rule left, whatever is asked: only this tree and this rule are."""
        return self.known

    def inside(self, shape: shapely.Geometry) -> float:
        """The truth of a region."""
        lon, lat, number = self.sorted
        west, _, east, _ = shape.bounds
        near = slice(*np.searchsorted(lon, [west, east]))
        return float(number[near][shapely.contains_xy(shape, lon[near], lat[near])].sum())


@cache
def table(name: str):
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = SETS[name][0]
    if file is None:
        rng = np.random.default_rng(1)
        at = np.nonzero(truth())
        times = truth()[at]
        west, south, east, north = (np.repeat(edge, times) for edge in TREE.bounds(TREE.grid(10)[at]))
        spot = rng.random((2, len(west)))
        return open_table(pa.table({"lon": west + (east - west) * spot[0], "lat": south + (north - south) * spot[1]}))
    rows = pq.read_table(DATA / f"{file}.parquet")
    columns = {"lon": rows["lon"], "lat": rows["lat"]}
    if "user" not in rows.column_names:
        return open_table(pa.table(columns))
    return open_table(pa.table({"user": rows["user"], **columns}), person="user")


def region(kept: Kept, smallest: float, anywhere: bool, rng: np.random.Generator) -> shapely.Geometry | None:
    """One of four kinds, from a cell's size to the map's."""
    box = kept.box
    span, corner = np.array([box.east - box.west, box.north - box.south]), np.array([box.west, box.south])
    wide = np.exp(rng.normal(0, 0.4))
    half = span * np.exp(rng.uniform(np.log(smallest), 0)) * np.array([wide, 1 / wide]) / 2
    middle = corner + rng.random(2) * span
    if not anywhere:
        who = np.searchsorted(kept.likely, rng.random())
        middle = np.array([kept.lon[who], kept.lat[who]]) + rng.uniform(-1, 1, 2) * half
    kind = rng.integers(4)
    if not kind:
        low, high = np.maximum(middle - half, [-180, -85]), np.minimum(middle + half, [180, 85])
        return shapely.box(*low, *high)
    corners = (3, int(rng.integers(4, 9)), int(rng.integers(8, 20)))[kind - 1]
    turn = np.sort(rng.uniform(0, 2 * np.pi, corners))[:, None]
    far = rng.uniform(0.25, 1, corners)[:, None] if kind == 3 else 1.0
    shape = shapely.Polygon(middle + half * far * np.hstack([np.cos(turn), np.sin(turn)]))
    return shape if shape.is_valid and shape.area > 1e-9 * span.prod() else None


def asked(kept: Kept, rule: str, epsilon: str, seed: str, regions: int) -> list[list[float]]:
    """For each region: held, below, held by the noise alone, width, width by the noise alone, cut, anywhere."""
    bounding = RULES[rule]
    made = run(Adaptive(kept.tree, bounding), Curator(kept, Stream.fixed(seed.encode())), PureDP(epsilon), Unrecorded())
    unit = A_ROW if rule == "rows are people" else A_PERSON
    statement = Statement(
        *("coverage", unit, "one person", PureDP(epsilon), bounding, "curator", (), "discrete Laplace", (), ()),
        *("auto", "2026-01-02T03:04:05Z", "0"),
    )
    release, found = Release(made.value, statement, None, made.transcript), list[list[float]]()
    rng = np.random.default_rng(list(seed.encode()))
    km2 = release.ground.km2[release.ground.places]
    smallest = float(np.sqrt(np.median(km2) / km2.sum()))
    while len(found) < regions:
        anywhere = len(found) % 2 == 0
        shape = region(kept, smallest, anywhere, rng)
        if shape is None:
            continue
        box = len(shape.exterior.coords) == 5 and shapely.box(*shape.bounds).equals(shape)
        try:
            told = release.count(Box(*shape.bounds) if box else shape)
        except InputError:  # not on the map
            continue
        shapely.prepare(shape)
        true = kept.inside(shape)
        alone = 1.96 * told.noise_stddev
        held = told.low <= true <= told.high
        cut = told.cut / max(told.best, told.cut, 1e-9)
        before = abs(told.value - true) <= alone
        found.append([held, true < told.low, before, told.high - told.low, 2 * alone, cut, anywhere])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--releases", type=int, default=4)
    parser.add_argument("--regions", type=int, default=50)
    parser.add_argument("--sets", default="gowalla,cabs,uber,city")
    parser.add_argument("--rules", default=",".join(RULES))
    parser.add_argument("--cells", default="squares,hexagons")
    wanted = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for number in range(wanted.rounds):
        for name in wanted.sets.split(","):
            for rule in wanted.rules.split(",") if name in PEOPLE else ["rows are people"]:
                for cells in wanted.cells.split(","):
                    missing = [
                        (epsilon, f"{name} {rule} {cells} {epsilon} {number * wanted.releases + one}")
                        for epsilon in ("0.1", "1")
                        for one in range(wanted.releases)
                    ]
                    known = {seed for lines in results.values() for seed in lines}
                    missing = [(epsilon, seed) for epsilon, seed in missing if seed not in known]
                    kept = Kept(name, cells, rule) if missing else None
                    for epsilon, seed in missing:
                        lines = asked(kept, rule, epsilon, seed, wanted.regions)
                        setting = results.setdefault(f"{name}, {rule}, {cells}, ε = {epsilon}", {})
                        setting[seed] = [[round(float(value), 4) for value in line] for line in lines]
                    if missing:
                        RESULTS.write_text(json.dumps(results, ensure_ascii=False) + "\n")
                        PAGE.write_text(page(results))
                        print(*page(results, f"{name}, {rule}, {cells}").splitlines()[2:], sep="\n", flush=True)


def page(results: dict, only: str = "") -> str:
    """The table of the documentation."""
    lines = [
        "| setting | regions | held, % | anywhere | around somebody | noise alone | width | of those that cut few |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for setting, releases in results.items():
        if not setting.startswith(only):
            continue
        every = np.concatenate([np.array(lines) for lines in releases.values()])
        each = np.array([np.mean([line[0] for line in lines]) for lines in releases.values()])
        error = 100 * each.std(ddof=1) / len(each) ** 0.5 if len(each) > 1 else float("nan")
        held, before, anywhere = every[:, 0], every[:, 2], every[:, 6] > 0
        wider = every[:, 3] / np.maximum(every[:, 4], 1e-9)
        few = every[:, 5] <= FEW
        lines.append(
            f"| {setting} | {len(every):,} | {100 * held.mean():.1f} ± {error:.1f} | {100 * held[anywhere].mean():.1f} "
            f"| {100 * held[~anywhere].mean():.1f} | {100 * before.mean():.1f} | × {np.median(wider):.2f} "
            f"| × {np.median(wider[few]) if few.any() else float('nan'):.2f} ({few.sum():,}) |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
