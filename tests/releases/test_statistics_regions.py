"""Regions of statistics: which cells they are of, and whether their intervals hold as often as they say."""

from dataclasses import replace

import numpy as np
import pytest

from hazemap.algorithms import CellStatistics
from hazemap.cells import Leaves
from hazemap.encoders import KnownCountValues
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.estimate.value_estimates import KnownPeople, Measurements
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.statement import A_PERSON, Statement
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.queries.noisy_queries import Answer
from hazemap.releases import Statistics
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import OwnMeans
from hazemap.temporal.time_slots import Always, Clock
from hazemap.trust.curator import Curator
from hazemap.values.cell_slot_counters import CellTimeSlots
from hazemap.values.value_encoding import KnownCountEncoding, ValueEncoding

BERLIN = Box(13.2, 52.4, 13.6, 52.6)
PART = Box(13.25, 52.44, 13.5, 52.58)
VALUE_ENCODING = ValueEncoding(0, 60, 2, (8,))
HEXAGONS = Leaves.at_level(Hexagons(BERLIN, 6, 6), 0)
SQUARES = Leaves.at_level(Quadtree.around(BERLIN, 3), 3)
STATEMENT = Statement(
    dataset="town",
    unit=A_PERSON,
    neighbours="one of them added or removed",
    budget=PureDP(1),
    bounding=OwnMeans(1),
    trust="curator",
    assumptions=(),
    noise="discrete Laplace",
    public=(),
    charged=(),
    method="values",
    created="2026-01-02",
    version="0.1.0",
)
LAWS = {"Laplace": 3.0, "Gaussian": 0.0}


def statistics(measurements: Measurements | KnownPeople) -> Statistics:
    return Statistics(measurements, "speed", (0.5,), STATEMENT, None, ())


def population(cells: Leaves) -> list[np.ndarray]:
    """The values of the people of each cell, in steps of the quantizer; in some cells hardly anybody is."""
    rng = np.random.default_rng(4)
    return [np.rint(rng.beta(2, 3, n) * 1024) / 1024 for n in rng.choice([3, 40, 200, 700], cells.size)]


def counters(y: np.ndarray) -> np.ndarray:
    bins = np.bincount(np.minimum((y * 8).astype(int), 7), minlength=8)
    return np.array([((1 - y) ** 2).sum(), (2 * y * (1 - y)).sum(), (y * y).sum(), *bins]) / 2


def noise(law: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return rng.laplace(0, 0.5**0.5, shape) if law == "Laplace" else rng.normal(0, 1, shape)


def coverage(law: str, cells: Leaves, runs: int, told: float = 1.0) -> dict[str, float]:
    """How often intervals of a region hold, of statistics whose noise is said to be `told` times what it is."""
    tree, rng = CellTimeSlots(cells, Clock.hours("UTC"), VALUE_ENCODING), np.random.default_rng(6)
    people = population(cells)
    true = np.repeat(np.stack([counters(y) for y in people]), 24, axis=0)
    held: dict[str, list[bool]] = {}
    for _ in range(runs):
        drawn = true + 8 * noise(law, true.shape, rng)
        found = statistics(Measurements(tree, drawn, 8.0 * told, LAWS[law])).region(PART)
        here = np.concatenate([y for name, y in zip(NAMES[id(cells)], people, strict=True) if name in found.cells])
        bins = np.cumsum(np.bincount(np.minimum((here * 8).astype(int), 7), minlength=8))
        median = 7.5 * np.interp(len(here) / 2, [0, *bins], np.arange(9))
        truth = {"people": len(here), "mean": 60 * here.mean(), "variance": 3600 * here.var(), "q0.5": median}
        for each in found.estimates:
            held.setdefault(each.statistic, []).append(each.low <= truth[each.statistic] <= each.high)
    return {statistic: float(np.mean(some)) for statistic, some in held.items()}


NAMES = {id(cells): cells.tree.names(cells.cells) for cells in (HEXAGONS, SQUARES)}


@pytest.mark.parametrize("law", LAWS)
def test_intervals_of_a_region_hold_95_of_100(law):
    held = coverage(law, HEXAGONS, 50)  # 1,200 of each: a share passes five standard errors in 1 of 10⁶ runs
    assert set(held) == {"people", "mean", "variance", "q0.5"}
    assert min(held.values()) > 0.95 - 5 * (0.95 * 0.05 / 1200) ** 0.5, held


def test_intervals_of_a_region_that_had_the_noise_of_a_cell_are_found_out():
    """The twin that must fail: the noise of one cell, for the sum of some."""
    held = coverage("Laplace", HEXAGONS, 10, told=0.1)
    assert max(held.values()) < 0.85, held


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("cells", [HEXAGONS, SQUARES], ids=["hexagons", "squares"])
def test_intervals_of_a_region_hold_95_of_100_in_many_runs(law, cells):
    held = coverage(law, cells, 400)  # 9,600 of each
    assert min(held.values()) > 0.95 - 5 * (0.95 * 0.05 / 9600) ** 0.5, held
    assert max(held["people"], held["mean"]) < 0.97, held


@pytest.mark.slow
def test_intervals_of_a_region_hold_in_releases_of_a_curator():
    rng, number = np.random.default_rng(9), 6000
    columns = {"lon": rng.normal(13.4, 0.06, number), "lat": rng.normal(52.5, 0.03, number)}
    values = np.clip(rng.normal(25 + 200 * (columns["lon"] - 13.4), 8), 0, 60)
    method = CellStatistics(SQUARES.tree, 3, Always(), VALUE_ENCODING, OwnMeans(1, scale=VALUE_ENCODING.scale))
    table = MemoryTable(np.arange(number), columns | {"value": values})
    at = SQUARES.locate(SQUARES.tree.cell_at(columns, SQUARES.tree.depth))
    held, runs = {"people": 0, "mean": 0}, 400
    for seed in range(runs):
        done = run(method, Curator(table, Stream.fixed(b"region %d" % seed)), PureDP(1), Unrecorded())
        found = statistics(done.value).region(PART)
        here = values[np.isin(at, [NAMES[id(SQUARES)].index(name) for name in found.cells])]
        truth = {"people": len(here), "mean": (np.rint(here / 60 * 1024) / 1024 * 60).mean()}
        for each in found.estimates[:2]:
            held[each.statistic] += each.low <= truth[each.statistic] <= each.high
    assert min(held.values()) / runs > 0.95 - 5 * (0.95 * 0.05 / runs) ** 0.5, held


def quiet(cells: Leaves = SQUARES) -> Statistics:
    tree = CellTimeSlots(cells, Always(), VALUE_ENCODING)
    return statistics(Measurements(tree, np.stack([counters(y) for y in population(cells)]), 0.01, 0.0))


def test_a_region_is_of_the_whole_cells_with_half_of_their_area_in_it():
    made, people = quiet(), population(SQUARES)
    west, south, _, north = SQUARES.tree.bounds(SQUARES.cells)
    edge = np.unique(west)
    found = made.region(Box(edge[1], south.min(), edge[3] + 0.6 * (edge[2] - edge[1]), north.max()))
    wanted = [at for at in range(SQUARES.size) if edge[1] <= west[at] <= edge[3]]
    assert [made.names.index(name) for name in found.cells] == wanted
    assert (found.inside, found.outside) == (8, 0)
    here = np.concatenate([people[at] for at in wanted])
    assert found.estimates[0].value == pytest.approx(len(here), abs=1)
    assert found.estimates[1].value == pytest.approx(60 * here.mean(), abs=0.1)
    assert "24 whole cells with half of their area or more in the region. Its border cuts 8 of them" in found.said
    assert "A person in several of these cells counts in each." in str(found)
    less = made.region(Box(edge[1], south.min(), edge[3] + 0.4 * (edge[2] - edge[1]), north.max()))
    assert (len(less.cells), less.inside, less.outside) == (16, 0, 8)


def test_all_cells_one_cell_and_no_cell():
    made = quiet()
    everywhere = made.region()
    assert everywhere.cells == made.names and everywhere.said.startswith("These numbers are of 64 whole cells.")
    assert everywhere.estimates[0].value == pytest.approx(sum(map(len, population(SQUARES))), abs=1)
    name = made.names[27]
    one, told = made.region(name), made.ask(name)
    capped = "A person counts in one cell and slot, drawn at random if they were in more, so more people"
    assert one.cells == (name,) and one.said.startswith(f"These numbers are of 1 whole cell. {capped}")
    everywhere_counts = replace(made, statement=replace(STATEMENT, bounding=OwnMeans(made.measurements.tree.places)))
    assert everywhere_counts.region(name).said == "These numbers are of 1 whole cell."
    for a, b in zip(one.estimates[1:], told, strict=True):
        assert (a.statistic, a.cell, a.value, a.low, a.high) == pytest.approx(
            (b.statistic, b.cell, b.value, b.low, b.high), nan_ok=True
        )
    with pytest.raises(InputError, match="half of its area or more: ask for a larger region"):
        made.region(Box(13.4, 52.5, 13.401, 52.501))
    with pytest.raises(InputError, match="outside the map"):
        made.region(Box(1, 1, 2, 2))


def test_with_public_places_a_region_knows_its_people_and_leaves_out_where_nothing_was_asked():
    tree = CellTimeSlots(SQUARES, Clock("UTC", (0, 43200)), ValueEncoding(0, 60))
    people, weight = np.full(tree.places, 50), np.full(tree.places, 40)
    people[2:8:2], weight[2:8:2], weight[1::2] = 9, 0, 0
    rule = OwnMeans(2, scale=KnownCountEncoding(tree.value_encoding).l1)
    asked = KnownCountValues(tree, rule, people, weight, most=2, squares=2)
    rng, unit, held = np.random.default_rng(3), asked.unit, []
    for _ in range(200):
        sums = 40 * 0.25 + 4 * rng.laplace(0, 0.5**0.5, len(asked.told))
        answer = Answer(np.rint(sums * unit).astype(np.int64), np.array([4.0 * unit]), kurtosis=3.0)
        made = Statistics(KnownPeople.of(asked, answer), "speed", (), STATEMENT, None, ())
        number, mean = made.region(list(made.names[:8]), slot="0").estimates
        held.append(mean.low <= 15 <= mean.high)
    assert (number.value, number.low, number.high) == (50 * 5 + 9 * 3, 277, 277)
    assert np.mean(held) > 0.95 - 5 * (0.95 * 0.05 / 200) ** 0.5
    nothing = made.region(list(made.names[:8]), slot="1").estimates[1]
    assert (nothing.value, nothing.low, nothing.high) == (None, 0.0, 60.0)
