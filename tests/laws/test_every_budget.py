"""Every method, trust model and budget ends in a map, or in a refusal before the first answer, and in good time."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from types import FrameType

import geopandas
import numpy as np
import pytest
import shapely
from tests.every_method import LEVELLED, PRICED, WHOLE

from hazemap.engines.memory import MemoryTable
from hazemap.errors import HazemapError, Unanswerable
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.in_memory_secure_aggregation import SimulatedSecureAggregation
from hazemap.federated.trust.local import LocalReports
from hazemap.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from hazemap.privacy.mechanisms import refuse_too_wide
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.queries.noisy_queries import Answer, Question
from hazemap.spatial.bounding_box import Box
from hazemap.specs.method_from_name import method_from_name
from hazemap.specs.parsing import bounding, refuse_absurd
from hazemap.specs.parsing import cells as parsed_cells
from hazemap.trust.curator import Curator

BOX = Box(13.2, 52.4, 13.6, 52.6)
NAMES = [*WHOLE, *(f"{name}:6" for name in LEVELLED), "pyramid:30", "pyramid-published:30", "top", "top:5"]
EXTREMES = [1e-9, 1e-7, 1e-4, 30, 60, 150, 250, 1e3, 1e6]
SECONDS = 60


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """A hang is an error."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"no map after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Noting:
    """A trust model, and whether it was asked."""

    def __init__(self, trust: object) -> None:
        self.trust, self.asked = trust, 0
        self.prices, self.answers = trust.prices, trust.answers

    def answer(self, question: Question, price: Budget) -> Answer:
        self.asked += 1
        return self.trust.answer(question, price)


def table(chance: np.random.Generator) -> MemoryTable:
    """Nobody, one person, some, or some thousands: in a town, in one place, over the world; a few rows each."""
    people = int(chance.choice([0, 1, 2, 50, 400, 3_000]))
    rows = people * int(chance.choice([1, 1, 3]))
    where = chance.choice(["town", "one place", "world"])
    lon, lat = chance.normal(13.35, 0.03, rows), chance.normal(52.5, 0.02, rows)
    if where == "one place":
        lon[:], lat[:] = 13.4, 52.5
    if where == "world":
        lon, lat = chance.uniform(-180, 180, rows), chance.uniform(-89, 89, rows)
    return MemoryTable(np.arange(rows) % max(people, 1), {"lon": lon, "lat": lat})


def any_budget(chance: np.random.Generator, epsilon: float) -> Budget:
    kind = chance.integers(3)
    if kind == 0:
        return PureDP(f"{epsilon:.6g}")
    if kind == 1:
        return ZCDP(Fraction(f"{epsilon:.6g}") ** 2 / 2)
    return ApproxDP(f"{epsilon:.6g}", "1e-6")


def ends_well(name: str, cells: str, box: Box | None, rule: str, budget: Budget, trust: str, rows: MemoryTable) -> bool:
    """Whether there is a map; an error before the first answer is a refusal, and any other is not allowed."""
    people, kept = max(len(np.unique(rows.person)), 1), bounding(rule)
    asked = None
    try:
        with at_most(SECONDS):
            refuse_absurd(budget)
            refuse_too_wide(budget, kept.sensitivity)
            method, stream = method_from_name(name, parsed_cells(cells), box, kept, budget), Stream.from_os()
            model = {
                "curator": lambda: Curator(rows, stream),
                "secure sum": lambda: SimulatedSecureAggregation(rows, Cohort(people, min(people, 1_000)), stream),
                "local": lambda: LocalReports(rows, people, stream=stream),
            }[trust]()
            asked = Noting(model)
            made = run(method, asked, budget, Unrecorded()).value
    except Unanswerable:
        assert trust != "curator", "a curator answers all there is"
        return False
    except HazemapError:
        assert asked is None or not asked.asked, "refused after it was paid"
        return False
    assert np.isfinite(made.values).all() and np.isfinite(made.unbiased).all()
    assert np.isfinite(made.noise.of(np.ones(made.cells.size)).stddev)
    return True


def check(name: str, epsilon: float, seed: int) -> bool:
    """One run with this method and budget, everything else by chance."""
    chance = np.random.default_rng(seed)
    budget, hexes = any_budget(chance, epsilon), chance.random() < 0.3
    box = None if chance.random() < 0.3 else BOX
    levelled = name.partition(":")[0] in {*LEVELLED, "top"}
    cells = str(chance.choice(["h3:5-8", "h3:7"])) if hexes else "quadtree:6" if levelled else "quadtree"
    name = name.partition(":")[0] if hexes and levelled else name
    trust = str(chance.choice(["curator", "curator", "secure sum", "local"]))
    rule = str(chance.choice(["one row", "one vote", "rows:3", "cells:2"]))
    return ends_well(name, cells, box, rule, budget, trust, table(chance))


@pytest.mark.parametrize("name", NAMES)
def test_every_method_ends_in_a_map_or_refuses_before_it_is_paid_at_extreme_budgets(name: str) -> None:
    """With a curator, over a declared box: the ends of what may be spent, and where noise is next to nothing.

    Methods with amounts of ε refuse budgets that do not hold these.
    """
    levelled = name.partition(":")[0] in {*LEVELLED, "top"}
    chance = np.random.default_rng(4)
    town = {"lon": chance.normal(13.35, 0.03, 300), "lat": chance.normal(52.5, 0.02, 300)}
    rows = MemoryTable(np.arange(300), town)
    cells = "quadtree:5" if levelled else "quadtree:9"
    short = name.replace(":6", ":5")
    for epsilon, maps in ((1e-9, False), (1e-6, True), (250, True), (1e6, True)):
        enough = maps and (name not in PRICED or epsilon > 1)
        assert ends_well(short, cells, BOX, "one row", PureDP(str(epsilon)), "curator", rows) == enough


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_method_ends_well_with_every_trust_model_and_budget(name: str) -> None:
    """ε from 10⁻⁹ to 10⁶, in pure ε, ρ and (ε, δ); tables of nobody to thousands; squares, hexagons; boxes found."""
    chance = np.random.default_rng(len(name))
    maps = [check(name, 10 ** chance.uniform(-9, 6), seed) for seed in range(15)]
    maps += [check(name, epsilon, 100 + seed) for seed, epsilon in enumerate(EXTREMES)]
    assert any(maps)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "national", "hierarchical"])
def test_districts_end_well_with_every_budget(method: str, tmp_path) -> None:
    squares = [shapely.box(13 + i, 52 + j, 14 + i, 53 + j) for i in range(2) for j in range(2)]
    names = {"name": [f"district {i}" for i in range(4)]}
    geopandas.GeoDataFrame(names, geometry=squares, crs="EPSG:4326").to_file(tmp_path / "four.gpkg")
    maps = 0
    for seed, epsilon in enumerate(EXTREMES):
        chance = np.random.default_rng(seed)
        cells = f"districts:{tmp_path / 'four.gpkg'}:name"
        maps += ends_well(method, cells, None, "one row", any_budget(chance, epsilon), "curator", table(chance))
    assert maps
