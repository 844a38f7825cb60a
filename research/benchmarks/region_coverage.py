"""How often intervals of random regions hold the truth, with everything that a question goes through.

    python -m research.benchmarks.region_coverage [--rounds 10] [--releases 4] [--regions 50]
        [--sets gowalla,cabs,uber,city]

A setting is a data set, a bounding rule, squares or hexagons, and ε. A round makes fresh releases of every setting by
the default method and asks each about fresh regions: boxes, triangles, convex polygons and others, from the size of a
cell to the whole map (log-uniform), half of them anywhere and half around somebody's place. The truth is what the
bounding rule left, everybody at the place of one of the rows in their finest cell: with rows as people, at their own.
The noise alone is ± 1.96 standard errors. Errors of shares are clustered by release. A setting passes if at least 94
%, less three of them, of the intervals hold, and if intervals are not wider than 1.6 times the noise's in the middle
of the regions that cut few cells: a tenth of those they touch, at most. Every round is added to
results/region_coverage.json, so it can be stopped at any time and goes on where it was; docs/results/coverage.md is
the page. The sets "foursquare", "geolife" and "accidents" are there to try the method on others than it was made with.
"""

import argparse
import json
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import shapely

from hazemap.algorithms import Adaptive
from hazemap.algorithms.private_bounding_box import over
from hazemap.cells import NOWHERE
from hazemap.errors import InputError
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.statement import A_PERSON, A_ROW, Statement
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.readers.open_table import open_table
from hazemap.releases import Release
from hazemap.releases.region_weights import weights
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, RowIsPerson
from hazemap.tables.votes import Votes
from hazemap.trust.curator import Curator
from research.benchmarks.city import TREE, truth

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[2] / "shared" / "data"
RESULTS = HERE / "results" / "region_coverage.json"
PAGE = HERE.parents[1] / "docs" / "results" / "coverage.md"
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
HELD, WIDE = 0.94, 1.6
FEW = 0.1
CUT = (0, 1, 5, 17, 65)


class Kept:
    """A table of which only what a rule left is known, and remembered."""

    def __init__(self, name: str, cells: str, rule: str) -> None:
        _, self.box, (coarsest, finest) = SETS[name]
        self.tree = over(self.box, 10) if cells == "squares" else Hexagons(self.box, coarsest, finest)
        votes = table(name).votes(self.tree, RULES[rule])
        self.known = Votes(votes.cells[votes.cells != NOWHERE], votes.weights[votes.cells != NOWHERE])
        # Everybody on their own, at the place of one of the rows in their base cell.
        whole = RULES[rule].unit == 1
        base = np.repeat(self.known.cells, self.known.weights if whole else 1)
        self.number = np.ones(len(base)) if whole else self.known.weights / RULES[rule].unit
        lon, lat = places(name)
        at = self.tree.cell_at({"lon": lon, "lat": lat}, self.tree.depth)
        rows = np.argsort(at, kind="stable")
        first, last = np.searchsorted(at[rows], base), np.searchsorted(at[rows], base, "right")
        drawn = first + (np.random.default_rng(3).random(len(base)) * (last - first)).astype(np.int64)
        who = np.flatnonzero(at != NOWHERE) if rule == "rows are people" else rows[drawn]
        assert len(who) == len(base)
        self.lon, self.lat = lon[who], lat[who]
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
def read(name: str):
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = SETS[name][0]
    if file is not None:
        rows = pq.read_table(DATA / f"{file}.parquet")
        return rows.select(["lon", "lat", *(["user"] if "user" in rows.column_names else [])])
    rng = np.random.default_rng(1)
    at = np.nonzero(truth())
    times = truth()[at]
    west, south, east, north = (np.repeat(edge, times) for edge in TREE.bounds(TREE.grid(10)[at]))
    spot = rng.random((2, len(west)))
    return pa.table({"lon": west + (east - west) * spot[0], "lat": south + (north - south) * spot[1]})


@cache
def table(name: str):
    return open_table(read(name), person="user") if "user" in read(name).column_names else open_table(read(name))


def places(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Where the rows are."""
    lon, lat = (read(name)[column].to_numpy().astype(np.float64) for column in ("lon", "lat"))
    return lon, lat


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
    """Of each region: held, below, the truth less the value, width, width by the noise alone, the part of its people
    who are in cut cells, whether it is anywhere, how many cells it cuts, how many it holds.
    """
    bounding = RULES[rule]
    made = run(Adaptive(kept.tree, bounding), Curator(kept, Stream.fixed(seed.encode())), PureDP(epsilon), Unrecorded())
    unit = A_ROW if rule == "rows are people" else A_PERSON
    statement = Statement(
        dataset="coverage",
        unit=unit,
        neighbours="one person",
        budget=PureDP(epsilon),
        bounding=bounding,
        trust="curator",
        assumptions=(),
        noise="discrete Laplace",
        public=(),
        charged=(),
        method="auto",
        created="2026-01-02T03:04:05Z",
        version="0",
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
        asked_for = Box(*shape.bounds) if box else shape
        try:
            parts = weights(release.ground, asked_for)
            told = release._asked(asked_for, parts, 0.95)  # as `count` does, whose weights are wanted here too
        except InputError:  # not on the map
            continue
        shapely.prepare(shape)
        true = kept.inside(shape)
        alone = 1.96 * told.noise_stddev
        numbers = (
            *(told.low <= true <= told.high, true < told.low, true - told.unbiased),
            *(told.high - told.low, 2 * alone, told.cut / max(told.best_guess, told.cut, 1e-9)),
            *(anywhere, ((parts > 0) & (parts < 1)).sum(), (parts == 1).sum()),
        )
        found.append([float(f"{float(number):.4g}") for number in numbers])
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
                        setting[seed] = lines
                    if missing:
                        RESULTS.write_text(dumped(results))
                        PAGE.write_text(page(results))
                        print(*settings(results, f"{name}, {rule}, {cells}")[2:], sep="\n", flush=True)


def dumped(results: dict) -> str:
    """One release a line, whole numbers without a point."""
    return (
        json.dumps(results, ensure_ascii=False).replace(".0,", ",").replace(".0]", "]").replace("]], ", "]],\n") + "\n"
    )


@dataclass(frozen=True)
class Shares:
    """What came of some releases, each an array of regions by the numbers of `asked`."""

    releases: list[np.ndarray]

    @property
    def every(self) -> np.ndarray:
        """All regions."""
        return np.concatenate(self.releases)

    @property
    def held(self) -> tuple[float, float]:
        """The part of intervals that held, and its standard error by releases."""
        hits, sizes = np.array([[release[:, 0].sum(), len(release)] for release in self.releases]).T
        part, number = hits.sum() / sizes.sum(), len(sizes)
        scale = number / max(number - 1, 1)
        return float(part), float(np.sqrt(scale * ((hits - part * sizes) ** 2).sum()) / sizes.sum())

    @property
    def noise_alone(self) -> float:
        """The part of intervals that would hold with the noise alone."""
        return float((np.abs(self.every[:, 2]) <= self.every[:, 4] / 2).mean())

    @property
    def holds(self) -> bool:
        """At least 94 %, less three standard errors."""
        part, error = self.held
        return part >= HELD - 3 * error

    @property
    def few(self) -> np.ndarray:
        """Which regions cut few of the cells that they touch, but some."""
        cut, whole = self.every[:, 7:9].T
        return (cut > 0) & (cut <= FEW * (cut + whole))

    @property
    def wide(self) -> bool:
        """Whether they are too wide where regions cut few cells."""
        return bool(self.few.any()) and self.width(self.few) > WIDE

    def width(self, which: np.ndarray) -> float:
        """The median width of some regions, in times of the noise's."""
        return (
            float(np.median(self.every[which, 3] / np.maximum(self.every[which, 4], 1e-9))) if which.any() else np.nan
        )

    def needed(self, which: np.ndarray) -> float:
        """How many times longer the noise's intervals would have to be for 95 % to hold."""
        return float(np.quantile(2 * np.abs(self.every[which, 2]) / np.maximum(self.every[which, 4], 1e-9), 0.95))

    def times(self, which: np.ndarray) -> str:
        """Both in a table, and of how many regions."""
        return f"× {self.width(which):.2f}, {self.needed(which):.2f} ({which.sum():,})" if which.any() else "–"


def gathered(results: dict, only: str = "") -> dict[str, Shares]:
    """Each setting whose name begins so."""
    some = {setting: releases for setting, releases in results.items() if setting.startswith(only)}
    return {setting: Shares([np.array(lines) for lines in releases.values()]) for setting, releases in some.items()}


def part(of: np.ndarray) -> str:
    """A share in per cent."""
    return f"{100 * of.mean():.1f}" if len(of) else "–"


def settings(results: dict, only: str = "") -> list[str]:
    """A line for each setting."""
    lines = [
        "| setting | releases | regions | held, % | anywhere | around somebody | noise alone | width | few cells cut"
        " | passes |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for setting, found in gathered(results, only).items():
        every, (_, error) = found.every, found.held
        held, anywhere = every[:, 0], every[:, 6] > 0
        lines.append(
            f"| {setting} | {len(found.releases)} | {len(every):,} | {part(held)} ± {100 * error:.1f} "
            f"| {part(held[anywhere])} | {part(held[~anywhere])} | {100 * found.noise_alone:.1f} "
            f"| × {found.width(held >= 0):.2f} | {found.times(found.few)} "
            f"| {'**too few hold**' if not found.holds else '**too wide**' if found.wide else 'yes'} |"
        )
    return lines


def page(results: dict) -> str:
    """The tables of the documentation."""
    total = [
        "| data set | settings | that pass | releases | regions | held, % | least in a setting | width | noise alone |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    numbers = [f"{low}" if high == low + 1 else f"{low} to {high - 1}" for low, high in pairwise(CUT)]
    cut = [
        "| data set | " + " | ".join([*(f"{number} cut" for number in numbers), f"{CUT[-1]} or more"]) + " | at most a"
        " tenth of its cells | at most a tenth of its people | at most a hundredth |",
        "|---|" + "---|" * (len(CUT) + 3),
    ]
    for name in dict.fromkeys(setting.split(",")[0] for setting in results):
        each = gathered(results, f"{name},")
        all_of = Shares([release for found in each.values() for release in found.releases])
        every, (_, error) = all_of.every, all_of.held
        passing = sum(found.holds and not found.wide for found in each.values())
        least = min(found.held[0] for found in each.values())
        total.append(
            f"| {name} | {len(each)} | {passing} | {len(all_of.releases):,} | {len(every):,} "
            f"| {part(every[:, 0])} ± {100 * error:.1f} | {100 * least:.1f} | × {all_of.width(every[:, 0] >= 0):.2f} "
            f"| {100 * all_of.noise_alone:.1f} |"
        )
        kinds = [(every[:, 7] >= low) & (every[:, 7] < high) for low, high in pairwise((*CUT, np.inf))]
        people = [(every[:, 7] > 0) & (every[:, 5] <= most) for most in (0.1, 0.01)]
        cut.append(f"| {name} | " + " | ".join(all_of.times(kind) for kind in [*kinds, all_of.few, *people]) + " |")
    told = (
        "*Widths by how many cells a region cuts*: the median, in times of the noise's; how many times longer the"
        " noise's intervals would have to be, all of them, for 95 % to hold; and how many regions."
    )
    return "\n".join([*total, "", told, "", *cut, "", "*Every setting:*", "", *settings(results)]) + "\n"


if __name__ == "__main__":
    main()
