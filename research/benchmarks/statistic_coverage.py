"""Do 95 % intervals of statistics hold, on values with atoms, gaps, skew and ties?

    python -m research.benchmarks.statistic_coverage [--releases 1000] [--whole 20] [--save before] [--only "two atoms"]

A release tells 16 squares × 4 slots = 64 places: 14 are empty, the others have 30 to 8,000 people, each with one to
three records. Values lie between 0 and 100. A setting is a law of values, ε, and the model. The exact counters are
those of the engine, with all its readings and rounding; each release adds fresh noise of the stated law to them, and
estimates are the product's. `--whole` releases more of each setting go through `hazemap.stats` from the table to the
columns of the file.

The truth is the estimand: with P drawn evenly from the people who count in a place, and R evenly from their records,
the mean and the variance of R, and every number that is a quantile of it. A statistic holds if its interval holds the
truth (of quantiles the least and the greatest one, the rarer of both). Standard errors are clustered by release. Told
apart: all places with people, the ten with the largest released numbers, and those with a published value; of numbers
of people also empty places, slots, and the total. Widths are medians over releases, as ratios to those before
(`--save before`, run with the code of an earlier commit), over places in which the earlier intervals held in at least
94 % of releases, less three standard errors.

Written to results/statistic_coverage.json; docs/results/coverage-of-statistics.md is made of it.
"""

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hazemap.encoders import Values
from hazemap.estimate.value_estimates import KnownPeople, Measurements, ValueEstimate
from hazemap.privacy.budget import PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.mechanisms import noise_for
from hazemap.queries.noisy_queries import Answer
from hazemap.readers.open_table import open_table
from hazemap.spatial.bounding_box import Box
from hazemap.specs.parsing import QuadtreeCells
from hazemap.specs.statistics_spec import StatisticsSpec
from hazemap.specs.table_spec import TableSpec
from hazemap.specs.values_only_spec import PublicLocationSpec

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "statistic_coverage.json"
PAGE = HERE.parents[1] / "docs" / "results" / "coverage-of-statistics.md"
RANKS = (0.1, 0.5, 0.9)
STATISTICS = ("mean", "variance", *(f"q{rank:g}" for rank in RANKS))
SLOTS, SQUARES = 4, 16
PLACES = SLOTS * SQUARES
LAWS = ("exponential", "lognormal", "whole numbers", "two atoms", "one value")
EPSILONS, MODELS = ("0.3", "1"), ("full", "values-only")
BOX = Box(13.2, 52.4, 13.6, 52.6)
AT_ONCE = 50
NOISE = np.random.default_rng(11)


@dataclass(frozen=True)
class Crowd:
    """Everybody in one place: `place` and `value` of each record, and how many records their person has."""

    person: np.ndarray
    place: np.ndarray
    value: np.ndarray
    records: np.ndarray


def crowd(law: str) -> Crowd:
    rng = np.random.default_rng(5)
    sizes = np.concatenate([np.zeros(14, dtype=int), np.geomspace(30, 8000, PLACES - 14).astype(int)])
    place = np.repeat(np.arange(PLACES), rng.permutation(sizes))
    number = rng.integers(1, 4, len(place))
    person = np.repeat(np.arange(len(place)), number)
    value = {
        "exponential": lambda: rng.exponential(10, len(person)),
        "lognormal": lambda: rng.lognormal(3, 0.5, len(person)),
        "whole numbers": lambda: rng.poisson(12, len(person)).astype(float),
        "two atoms": lambda: np.where(np.arange(len(place)) % 2, 45.0, 13.0)[person],
        "one value": lambda: np.full(len(person), 65.0),
    }[law]()
    return Crowd(person, place[person], np.clip(value, 0, 100), number[person])


def truths(some: Crowd) -> dict[str, np.ndarray]:
    """The least and the greatest truth of every statistic, float64[2, places]; NaN in empty places."""
    found = {name: np.full((2, PLACES), np.nan) for name in STATISTICS}
    for place in np.unique(some.place):
        here = some.place == place
        order = np.argsort(some.value[here], kind="stable")
        value, weight = some.value[here][order], 1 / some.records[here][order]
        upto, people = np.cumsum(weight), weight.sum()
        mean = (weight * value).sum() / people
        found["mean"][:, place] = mean
        found["variance"][:, place] = (weight * (value - mean) ** 2).sum() / people
        for rank in RANKS:
            ends = (np.searchsorted(upto, rank * people + by) for by in (-1e-6, 1e-6))
            found[f"q{rank:g}"][:, place] = [value[min(at, len(value) - 1)] for at in ends]
    return found


def table(some: Crowd, spec: StatisticsSpec):
    """The rows as the engine reads them, with the number of each place in the middle of its square and its slot."""
    import pyarrow as pa

    outlines = spec.inner.tree.outlines(spec.inner.measured.cells.cells)
    lon, lat = (np.array([getattr(each.centroid, axis) for each in outlines]) for axis in ("x", "y"))
    square, slot = np.divmod(some.place, SLOTS)
    moments = pa.array((slot * 6 + 3) * 3_600_000_000, pa.timestamp("us"))
    columns = {"lon": lon[square], "lat": lat[square], "ts": moments, "value": some.value}
    return pa.table({"user": some.person, **columns})


def order(epsilon: str, model: str) -> StatisticsSpec:
    asked = {"variance": True, "quantiles": RANKS, "model": model, "slots": "clock:0:00,6:00,12:00,18:00"}
    return StatisticsSpec(
        TableSpec(None), PureDP(epsilon), "value", 0.0, 100.0, box=BOX, cells=QuadtreeCells(2), **asked
    )


def found_in(measurements: Measurements | KnownPeople) -> dict[str, ValueEstimate]:
    quantiles = {f"q{rank:g}": measurements.quantiles(rank) for rank in RANKS}
    return {"mean": measurements.means(), "variance": measurements.variances(), **quantiles}


class Tally:
    """How often intervals hold, release by release, and how wide they are in each place."""

    def __init__(self) -> None:
        self.held: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.widths: dict[str, list[np.ndarray]] = defaultdict(list)
        self.inside: dict[str, list[np.ndarray]] = defaultdict(list)

    def add(self, name: str, inside: np.ndarray, among: np.ndarray) -> None:
        """Of one release."""
        self.held[name].append((int(inside[among].sum()), int(among.sum())))

    def estimates(self, found: dict[str, ValueEstimate], truth: dict[str, np.ndarray], people: np.ndarray) -> None:
        """Those of the places of one release."""
        largest = np.zeros(PLACES, dtype=bool)
        largest[np.argsort(-people)[:10]] = True
        some = np.isfinite(truth["mean"][0])
        for name, each in found.items():
            ends = [(each.low <= end + 1e-9) & (end - 1e-9 <= each.high) for end in truth[name]]
            kinds = {"people": some, "ten largest": some & largest, "published": some & ~each.too_few}
            for side, inside in enumerate(ends):
                for kind, among in kinds.items():
                    self.add(f"{name}|{kind}|{side}", inside, among)
            assert ((each.low <= each.value) & (each.value <= each.high))[~each.too_few].all()
            self.widths[name].append(each.high - each.low)
            self.inside[name].append(ends[0] & ends[1])

    def report(self) -> dict[str, dict]:
        """Coverage with its standard error, and of how many; median widths; and coverage of each place."""
        coverage: dict[str, dict[str, list[float]]] = defaultdict(dict)
        for name, pairs in self.held.items():
            held, number = np.array(pairs, dtype=float).T
            if number.sum() == 0:
                continue
            part = held.sum() / number.sum()
            error = float(np.sqrt(((held - part * number) ** 2).sum()) / number.sum())
            statistic, kind, *_ = name.split("|")
            known = coverage[statistic].get(kind)
            if known is None or part < known[0]:
                coverage[statistic][kind] = [round(float(part), 5), round(error, 5), int(number.sum())]
        widths = {name: np.median(rows, axis=0).round(4).tolist() for name, rows in self.widths.items()}
        inside = {name: np.mean(rows, axis=0).round(4).tolist() for name, rows in self.inside.items()}
        return {"coverage": dict(coverage), "widths": widths, "held": inside}


def full(some: Crowd, epsilon: str, releases: int) -> dict:
    spec, tally, truth = order(epsilon, "full"), Tally(), truths(some)
    values = Values(spec.inner.measured, spec.inner.bounding)
    exact = values.total(open_table(table(some, spec), measured="value", timed=True))
    noise, people = noise_for(spec.budget, values.sensitivity), np.bincount(some.place[first(some)], minlength=PLACES)
    places = np.arange(PLACES)
    groups = {
        "numbers": (places[:, None], people.astype(float)),
        "numbers of slots": (places.reshape(SQUARES, SLOTS).T, people.reshape(SQUARES, SLOTS).sum(axis=0)),
        "total": (places[None], people.sum(keepdims=True)),
    }
    for _ in range(releases // AT_ONCE):
        drawn = np.rint(NOISE.laplace(0, noise.stddev / 2**0.5, (AT_ONCE, len(exact))))
        answer = Answer((exact + drawn).astype(np.int64).ravel(), np.array([noise.stddev]), noise.kurtosis)
        measurements = Measurements.of(values, answer)
        every, counted = found_in(measurements), measurements.people.reshape(AT_ONCE, PLACES)
        for at in range(AT_ONCE):
            rows = slice(at * PLACES, (at + 1) * PLACES)
            one = {name: part(each, rows) for name, each in every.items()}
            tally.estimates(one, truth, counted[at])
            for name, (where, number) in groups.items():
                found, _, margin = measurements.numbers(where + rows.start)
                inside = np.abs(found - number) <= margin
                if name == "numbers":
                    largest = np.isin(places, np.argsort(-counted[at])[:10])
                    for kind, among in (("empty", people == 0), ("people", people > 0), ("ten largest", largest)):
                        tally.add(f"{name}|{kind}", inside, among)
                else:
                    tally.add(f"{name}|people", inside, np.ones(len(inside), dtype=bool))
    return tally.report()


def part(each: ValueEstimate, rows: slice) -> ValueEstimate:
    return ValueEstimate(each.value[rows], each.stddev[rows], each.low[rows], each.high[rows], each.too_few[rows])


def first(some: Crowd) -> np.ndarray:
    """The first record of each person."""
    return np.flatnonzero(np.diff(some.person, prepend=-1))


def values_only(some: Crowd, epsilon: str, releases: int) -> dict:
    spec, tally, truth = order(epsilon, "values-only"), Tally(), truths(some)
    made, chosen = PublicLocationSpec.of(spec).kept(open_table(table(some, spec), measured="value", timed=True))
    exact = made.asked.total(chosen)
    noise = noise_for(spec.budget, made.asked.sensitivity)
    listed = spec.inner.measured.cells
    where = (listed.locate(made.asked.tree.cells.cells)[:, None] * SLOTS + np.arange(SLOTS)).ravel()
    for _ in range(releases):
        drawn = np.rint(NOISE.laplace(0, noise.stddev / 2**0.5, len(exact))).astype(np.int64)
        known = KnownPeople.of(made.asked, Answer(exact + drawn, np.array([noise.stddev]), noise.kurtosis))
        found = {name: spread(each, where) for name, each in found_in(known).items()}
        tally.estimates(found, truth, spread_people(known, where))
    return tally.report()


def spread(each: ValueEstimate, where: np.ndarray) -> ValueEstimate:
    """Of all 64 places: nothing is said of others than those with rows."""
    numbers = (np.full(PLACES, number) for number in (np.nan, np.nan, -np.inf, np.inf))
    nothing = ValueEstimate(*numbers, np.full(PLACES, True))
    for name in ("value", "stddev", "low", "high", "too_few"):
        getattr(nothing, name)[where] = getattr(each, name)
    return nothing


def spread_people(known: KnownPeople, where: np.ndarray) -> np.ndarray:
    people = np.zeros(PLACES)
    people[where] = known.people
    return people


def whole(some: Crowd, epsilon: str, model: str, releases: int) -> dict:
    """The same from the table to the columns of a release, with the product's own noise."""
    import hazemap

    spec, tally, truth = order(epsilon, model), Tally(), truths(some)
    rows, names = table(some, spec), dict[str, int]()
    for at, name in enumerate(spec.inner.tree.names(spec.inner.measured.cells.cells)):
        names[name] = at
    book = Ledger(Path(tempfile.mkdtemp()) / "ledger.sqlite")
    for number in range(releases):
        made = hazemap.stats(
            rows, value="value", low=0, high=100, box=BOX, cells="quadtree:2", slots="clock:0:00,6:00,12:00,18:00",
            variance=True, quantiles=RANKS, epsilon=epsilon, model=model, ledger=book, dataset=f"release {number}",
        )  # fmt: skip
        where = (np.array([names[name] for name in made.names])[:, None] * SLOTS + np.arange(SLOTS)).ravel()
        found = {name: spread(made.found(name), where) for name in made.statistics}
        people = np.zeros(PLACES)
        people[where] = made.measurements.people
        tally.estimates(found, truth, people)
    return tally.report()


def least(each: dict, statistic: str) -> tuple[float, float, str]:
    """The coverage of the kind of places in which it is least, after three standard errors; and which kind."""
    kinds = each["coverage"].get(statistic, {})
    return min(((held, error, kind) for kind, (held, error, _) in kinds.items()), key=lambda one: one[0] + 3 * one[1])


def ratios(each: dict, statistic: str) -> np.ndarray:
    """Widths as multiples of those before, in places in which those held."""
    now, before = each["now"], each.get("before")
    if before is None:
        return np.zeros(0)
    held = np.array(before["held"][statistic]) >= 0.94 - 3 * (0.95 * 0.05 / before["releases"]) ** 0.5
    people = np.isfinite(now["widths"][statistic]) & np.isfinite(before["widths"][statistic]) & held
    old = np.array(before["widths"][statistic])[people]
    return np.array(now["widths"][statistic])[people][old > 0] / old[old > 0]


def page(results: dict) -> str:
    """The tables of docs/results/coverage-of-statistics.md."""
    lines = [
        "| statistic | model | places with people | ten largest | published | before, published | held before in |"
    ]
    lines += ["|---|---|---|---|---|---|---|"]
    for statistic in STATISTICS:
        for model in MODELS:
            some = [each for name, each in results.items() if name.endswith(f", {model}")]
            cells = []
            for way, kinds in (("now", ("people", "ten largest", "published")), ("before", ("published",))):
                for kind in kinds:
                    found = [each[way]["coverage"][statistic][kind][:2] for each in some if way in each]
                    cells.append("{:.1f} ± {:.1f}".format(*(100 * number for number in min(found))) if found else "–")
            fine = sum(least(each["before"], statistic)[0] >= 0.94 for each in some if "before" in each)
            lines.append(f"| {statistic} | {model} | {' | '.join(cells)} | {fine} of {len(some)} |")
    lines += ["", "| numbers of people | empty places | places with people | ten largest |", "|---|---|---|---|"]
    some = [each["now"]["coverage"] for name, each in results.items() if name.endswith(", full")]
    for name in ("numbers", "numbers of slots", "total"):
        cells = []
        for kind in ("empty", "people", "ten largest"):
            found = [each[name][kind][:2] for each in some if kind in each[name]]
            cells.append("{:.1f} ± {:.1f}".format(*(100 * number for number in min(found))) if found else "–")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", f"| law | {' | '.join(STATISTICS)} |", f"|---|{'---|' * len(STATISTICS)}"]
    for law in LAWS:
        cells = []
        for statistic in STATISTICS:
            found = [ratios(each, statistic) for name, each in results.items() if name.startswith(f"{law},")]
            every = np.concatenate(found)
            cells.append(f"× {np.median(every):.2f} ({len(every)})" if len(every) else "none held")
        lines.append(f"| {law} | {' | '.join(cells)} |")
    return "\n".join(lines)


HEAD = """# Coverage of statistics

How often 95 % intervals hold: of [statistics of a value](../how-to/values.md), on values with atoms, gaps, skew and
ties, and of maps. `research/benchmarks/statistic_coverage.py` makes this page.

## Statistics of a value

A setting is a law of values between 0 and 100, ε = 0.3 or 1, and the model. Of each there are {releases:,} releases of
64 places: 14 are empty, the others have 30 to 8,000 people of one to three records. The exact counters are those of the
engine; every release adds fresh noise to them, and estimates are the product's. The laws: exponential (mean 10),
lognormal (median 20), whole numbers (Poisson, 12), two atoms (13 and 45, half of the people each), one value (65).

The truth is what the number names: the mean of people's own means; the variance and the quantiles of a record that is
drawn from a person who is drawn before; of a quantile the least and the greatest number that is one, the rarer of both.
All {rows:,} rows (a setting, a statistic, a kind of places) hold in at least 94 % of cases, less three standard errors
clustered by release. The least is {worst:.1f} %.

*Coverage in per cent, with its standard error: the least of ten settings.* "Before" is how it was when intervals of
quantiles ended inside bins; the last column says in how many of ten settings all kinds of places held as often as that.

"""

TAIL = """
*Widths, as multiples of those before*: the median over places in which the earlier intervals held, and how many places
these are. Means and variances are wider as they hold what reading values in 1,024 steps can move. An interval of a
quantile that reaches to the edges of bins cannot be as short as one that ended inside a bin: it held where people
happened to be spread evenly there, as it supposed.

"""


def write_page(results: dict) -> None:
    """Put the tables where readers find them."""
    every = [row for each in results.values() for kinds in each["now"]["coverage"].values() for row in kinds.values()]
    failed = [row for row in every if row[0] + 3 * row[1] < 0.94]
    assert not failed, failed
    releases = min(each["now"]["releases"] for each in results.values())
    head = HEAD.format(releases=releases, rows=len(every), worst=100 * min(row[0] for row in every))
    first, second, third = page(results).split("\n\n")
    body = f"{head}{first}\n\n{second}\n{TAIL}{third}\n"
    whole = [each["whole"] for each in results.values() if "whole" in each]
    if whole:
        rows = [row for each in whole for kinds in each["coverage"].values() for row in kinds.values()]
        held, number = sum(row[0] * row[2] for row in rows), sum(row[2] for row in rows)
        body += (
            f"\nFrom the table to the columns of the file, {whole[0]['releases']} releases of {len(whole)} settings "
        )
        body += f"with the product's own noise:\n{100 * held / number:.1f} % of {number:,} intervals held.\n"
    PAGE.write_text(body + maps())


def maps() -> str:
    """The section of maps, where they were measured."""
    if not MAPS.exists():
        return ""
    results = json.loads(MAPS.read_text())
    releases = min(each["releases"] for each in results.values())
    lines = [
        MAP_HEAD.format(releases=releases),
        f"| map | numbers | {' | '.join(MAP_KINDS)} |",
        f"|---|---|{'---|' * 5}",
    ]
    for name, each in results.items():
        for statistic, kinds in each["coverage"].items():
            cells = [kinds.get(kind) for kind in MAP_KINDS]
            if statistic == "total":
                cells = [None] * 4 + [kinds["people"]]
            told = [f"{100 * cell[0]:.1f} ± {100 * cell[1]:.1f}" if cell else "–" for cell in cells]
            lines.append(f"| {name} | {statistic} | {' | '.join(told)} |")
    return "\n".join(lines) + "\n"


MAPS = HERE / "results" / "map_coverage.json"
MAP_KINDS = ("empty", "people", "ten largest", "ten of top", "shown")
MAP_HEAD = """
## Maps

A made-up town of 3,000 people in five crowds, of whom 3 in 10 carry a mark, by the default methods; {releases} releases
of each row from the table to the columns (`research/benchmarks/map_coverage.py`). Cells where nobody is, cells with
people, the ten with the most people, the ten that `top` names with its longer intervals, and all that are shown (of
shares, all with a number). Coverage in per cent, with its standard error clustered by release.
"""


def settings() -> Iterator[tuple[str, str, str]]:
    for law in LAWS:
        for epsilon in EPSILONS:
            for model in MODELS:
                yield law, epsilon, model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=1000)
    parser.add_argument("--whole", type=int, default=0)
    parser.add_argument("--save", choices=("now", "before"), default="now")
    parser.add_argument("--only", default="", help="settings whose names contain this; others stay as measured")
    asked = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for law, epsilon, model in settings():
        name = f"{law}, ε = {epsilon}, {model}"
        if asked.only not in name:
            continue
        some = crowd(law)
        way = full if model == "full" else values_only
        each = results.setdefault(name, {})
        if asked.releases:
            each[asked.save] = {"releases": asked.releases, **way(some, epsilon, asked.releases)}
        if asked.whole:
            each["whole"] = {"releases": asked.whole, **whole(some, epsilon, model, asked.whole)}
        RESULTS.write_text(json.dumps(results, ensure_ascii=False) + "\n")
        print(name, each.get(asked.save, {}).get("coverage"), flush=True)
    if all("now" in each for each in results.values()):
        write_page(results)


if __name__ == "__main__":
    main()
