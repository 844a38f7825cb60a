"""Statistics under values-only, from the table to the file: what is public, what is private, and who pays."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from hazemap.algorithms import PublicLocationStatistics
from hazemap.errors import CapExceeded, HazemapError, InputError, TableError
from hazemap.estimate.value_estimates import KnownPeople
from hazemap.privacy.budget import PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.statement_facts import UNSAID
from hazemap.publish import stats
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.queries.noisy_queries import Answer
from hazemap.readers.open_table import open_table
from hazemap.releases import Statistics
from hazemap.specs.parsing import budget as parsed_budget
from hazemap.specs.parsing import cells as parsed_cells
from hazemap.specs.statistics_spec import StatisticsSpec
from hazemap.specs.table_spec import TableSpec
from hazemap.specs.values_only_spec import PublicLocationSpec
from hazemap.trust.curator import CentralPrices, Curator

EAST, WEST = 13.55, 13.25


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


def rides(number: int = 400, seed: int = 5) -> pa.Table:
    """People with two rows in the west (20 on average) and one in the east (40); three of them in the north."""
    rng = np.random.default_rng(seed)
    user = np.concatenate([np.repeat(np.arange(number), 3), np.arange(3)])
    lon = np.concatenate([np.tile([WEST, WEST, EAST], number), np.full(3, 13.4)])
    lat = np.concatenate([np.full(3 * number, 52.5), np.full(3, 52.9)])
    speed = rng.normal(np.where(lon < 13.3, 20.0, 40.0), 4)
    ts = pa.array(1_717_200_000_000_000 + rng.integers(0, 3600, len(user)) * 10**6, pa.timestamp("us"))
    return pa.table({"user": user, "lon": lon, "lat": lat, "ts": ts, "speed": speed})


def made(table, ledger, **options) -> Statistics:
    asked = {"value": "speed", "low": 0, "high": 65, "epsilon": 2, "cells": "h3:5", "model": "values-only"} | options
    return stats(table, **asked, ledger=ledger, stream=Stream.fixed(b"only values"))


def ordered(
    epsilon: float = 1, delta: str | None = None, variance: bool = False, quantiles: tuple = ()
) -> PublicLocationSpec:
    full = StatisticsSpec(
        TableSpec(None),
        parsed_budget(epsilon, delta, None),
        "speed",
        0,
        65,
        cells=parsed_cells("h3:5"),
        variance=variance,
        quantiles=quantiles,
        model="values-only",
    )
    return PublicLocationSpec.of(full)


def told(found: Statistics) -> list[float]:
    mean = found.found("mean").value
    return sorted(mean[~np.isnan(mean)].tolist())


def test_no_box_is_needed_and_numbers_of_people_are_exact(ledger):
    found = made(rides(), ledger)
    assert isinstance(found.measurements, KnownPeople) and isinstance(found.algorithm, PublicLocationStatistics)
    assert len(found.names) == 3
    assert sorted(found.measurements.people.tolist()) == [3, 400, 400]
    assert found.measurements.people_stddev == 0
    assert told(found) == pytest.approx([20, 40], abs=4)
    few = found.found("mean")
    assert (few.low[few.too_few].tolist(), few.high[few.too_few].tolist()) == ([0.0], [65.0])


def test_whether_a_value_is_missing_shows_in_the_numbers_of_people_as_the_statement_says(ledger):
    table = rides()
    user, speed = table["user"].to_numpy(), table["speed"].to_numpy()
    other = table.set_column(table.column_names.index("speed"), "speed", [np.where(user == 7, np.nan, speed)])
    counts = [sorted(made(each, ledger).measurements.people.tolist()) for each in (table, other)]
    assert counts == [[3, 400, 400], [3, 399, 399]]


def test_the_statement_names_the_model_and_what_is_not_protected(ledger):
    statement = made(rides(), ledger).statement
    text = statement.text()
    assert "the values of one person differ; how many samples each person gives, and in which cells, is public" in text
    assert "NOT protected: whereabouts and numbers" in text
    assert "which cells are occupied" in text and "the route" not in statement.method
    assert "how many records that have a value" in text
    assert "that 2 of 3 occupied places are told" in text
    assert "chosen from whereabouts and the budget (route " in text
    assert statement.line().startswith("A test that protects nobody"), "its stream is fixed"
    assert (
        replace(statement, circumstances=UNSAID)
        .line()
        .startswith("Differentially private per person's values alone (not whereabouts): ε = 2 (pure)")
    )
    assert statement.charged == ("every number that is made of values",)


def test_the_file_holds_no_ids_and_opens_replays_and_draws_again(ledger, tmp_path):
    found = made(rides(), ledger, variance=True, quantiles=(0.5,), epsilon=20, output=tmp_path / "speed.parquet")
    back = Statistics.open(tmp_path / "speed.parquet")
    assert back.to_dataframe().equals(found.to_dataframe())
    again = back.replay(CentralPrices(back.statement.budget))
    assert np.array_equal(again.measurements.counters, found.measurements.counters)
    frame = back.to_dataframe().query("people > 3")
    assert frame.variance.tolist() == pytest.approx([16, 16], abs=25)
    assert frame["q0.5"].sort_values().tolist() == pytest.approx([20, 40], abs=5)
    cell = frame.h3.iloc[0]
    assert [each.statistic for each in back.ask(cell)] == ["mean", "variance", "q0.5"]
    back.plot(), back.plot(cell=cell)
    slot = back.slots[0]
    assert back.histogram(cell, slot).people.sum() == pytest.approx(400, abs=40)
    with pytest.raises(InputError, match="too few people are in"):
        made(rides(), ledger, quantiles=(0.5,)).histogram(back.to_dataframe().query("people == 3").h3.iloc[0], slot)
    import pyarrow.parquet as pq

    label = json.loads(pq.read_metadata(tmp_path / "speed.parquet").metadata[b"hazemap"])
    fields = label["method"]["ValuesOnly"]["asked"]["KeptValues"]
    assert set(fields) == {"tree", "bounding", "people", "weight", "most", "squares"}
    assert len(fields["people"]["array"][1]) == 3


@pytest.mark.parametrize(
    ("options", "cells"),
    [
        ({"cells": "quadtree:3", "box": "13.2,52.4,13.6,52.6"}, 2),
        ({"cells": "h3:5", "box": "13.2,52.4,13.6,52.6"}, 2),
        ({"cells": "h3:6", "slots": "hour-of-day", "time_zone": "Europe/Berlin"}, 3),
        ({"delta": "1e-6"}, 3),
        ({"epsilon": None, "rho": 1}, 3),
        ({"max_cells_per_person": 1, "max_records_per_cell": 2}, 3),
    ],
    ids=str,
)
def test_cells_slots_and_budgets_are_those_of_the_full_model(ledger, options, cells):
    found = made(rides(), ledger, **options)
    assert len(found.names) == cells
    assert told(found) == pytest.approx([20, 40], abs=8)
    assert "max_cells_per_person" not in options or found.algorithm.asked.bounding.cells == 1


def test_districts_are_cells_too(ledger, tmp_path):
    ring = [[13.0, 52.0], [14.0, 52.0], [14.0, 52.7], [13.0, 52.7], [13.0, 52.0]]
    shape = {"type": "Feature", "properties": {"name": "here"}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
    path = tmp_path / "borders.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [shape]}))
    found = made(rides(), ledger, cells=f"districts:{path}:name", slots="day-of-week")
    assert told(found) == pytest.approx([26.7], abs=3)
    assert found.measurements.people.max() == 400


def test_listed_hexagons_are_cells_too(ledger, tmp_path):
    west = min(made(rides(), ledger).names)
    path = tmp_path / "area.txt"
    path.write_text(west + "\n")
    found = made(rides(), ledger, cells=f"hexagons:{path}")
    assert found.names == (west,)
    assert len(told(found)) == int(found.measurements.people[0] > 3)


def test_values_outside_the_bounds_are_clipped_and_missing_ones_are_no_records(ledger):
    table = rides()
    speed = np.full(len(table), 1e9)
    speed[:3] = np.nan
    found = made(table.set_column(4, "speed", [speed]), ledger)
    assert told(found) == pytest.approx([65, 65], abs=2)
    assert sorted(found.measurements.people.tolist()) == [3, 399, 399]


def test_another_page_pays_and_the_full_model_counts_there_as_well(ledger):
    made(rides(), ledger, dataset="rides")
    assert {(each.name, each.model): each.spent.value for each in ledger.datasets()} == {("rides", "values-only"): 2}
    stats(
        rides(),
        value="speed",
        low=0,
        high=65,
        epsilon=1,
        cells="h3:5",
        dataset="rides",
        ledger=ledger,
        box="13,52,14,53",
    )
    assert {each.model: each.spent.value for each in ledger.datasets()} == {"full": 1, "values-only": 2 + 2 * 1}
    assert all(each.released and each.statement.dataset == "rides" for each in ledger.history("rides"))
    assert [each.charge.unit.model for each in ledger.history("rides")] == ["values-only", "full"]


@pytest.mark.parametrize("model", ["full", "values-only"])
def test_no_data_set_has_the_name_that_once_meant_a_page(ledger, model):
    with pytest.raises(InputError, match="which once named a page"):
        made(rides(), ledger, model=model, box="13,52,14,53", dataset="rides (values only)")
    assert not ledger.history()


def test_a_cap_on_the_full_model_covers_no_values_only_release(ledger):
    ledger.cap("rides", PureDP(100))
    with pytest.raises(CapExceeded, match="hazemap ledger cap rides … --values-only"):
        made(rides(), ledger, dataset="rides")
    assert not ledger.history()
    ledger.cap("rides", PureDP(3), model="values-only")
    made(rides(), ledger, dataset="rides")
    with pytest.raises(CapExceeded, match="has ε = 1 left"):
        made(rides(), ledger, dataset="rides")


def test_the_charge_comes_before_the_answer_and_stands(ledger, monkeypatch):
    seen = []

    def dark(*_):
        seen.append(len(ledger.history()))
        raise HazemapError("the lights went out")

    monkeypatch.setattr(Curator, "answer", dark)
    with pytest.raises(HazemapError, match="the charge stands"):
        made(rides(), ledger)
    assert seen == [1]


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"model": "values"}, InputError, "a model of privacy is one of: full, values-only"),
        ({"low": None}, InputError, "cannot be read from the data"),
        ({"low": 70}, InputError, "below the upper one"),
        ({"select": True}, InputError, "leave --select out"),
        ({"low": None, "bounds": "private"}, InputError, "bounds are declared"),
        ({"quantiles": (0.0,)}, InputError, "ranks between 0 and 1"),
        ({"cells": "h3:5-6"}, InputError, "of one resolution: say h3:6"),
        ({"cells": "quadtree:6"}, InputError, "cut from a declared box"),
        ({"max_cells_per_person": 0}, InputError, "at least 1"),
        ({"epsilon": 1e-4}, InputError, "no place can be published.*nothing was paid"),
        ({"box": "0,0,1,1"}, InputError, "no row has a value inside a cell and a slot: check the box"),
        ({"memory_limit": 1 << 16}, TableError, "needs more memory than its limit"),
        ({"output": "speed.tif"}, InputError, "a .tif holds"),
    ],
    ids=str,
)
def test_every_mistake_costs_nothing(ledger, wrong, error, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=words):
        made(rides(4000) if "memory_limit" in wrong else rides(), ledger, **wrong)
    assert not ledger.history()


@pytest.mark.parametrize("options", [{}, {"variance": True, "quantiles": (0.5,)}, {"delta": "1e-6"}], ids=str)
def test_other_values_of_one_person_change_no_question_and_no_more_than_the_noise_hides(options):
    """A neighbour, and in the order that a table sorted by its values has: the same question, sums within the bound."""
    order = ordered(**options)
    before = rides()
    own = before["user"].to_numpy() == 7
    for ends in ((0.0, 65.0), (65.0, 0.0)):
        one, other = (np.where(own, end, before["speed"].to_numpy()) for end in ends)
        tables = before.set_column(4, "speed", [one]), before.set_column(4, "speed", [other]).sort_by("speed")
        (asked, kept), (again, others) = (order.kept(open_table(each, measured="speed", key=3)) for each in tables)
        assert asked == again
        moved = np.abs(again.asked.total(others) - asked.asked.total(kept)).astype(object)
        sensitivity = asked.asked.sensitivity
        assert 0 < moved.sum() <= sensitivity.l1 and (moved**2).sum() <= sensitivity.l2_squared


@pytest.mark.slow
@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"epsilon": 1, "delta": "1e-6"}], ids=str)
def test_intervals_hold_the_statistic_of_those_who_count(ledger, budget):
    """Of 300 runs and 2 places each 95 % hold: fewer than 91 % or more than 98.5 % has P < 1e-5 (600 draws)."""
    order = ordered(variance=True, quantiles=(0.5,), **budget)
    algorithm, kept = order.kept(open_table(rides(4000), measured="speed", key=2))
    quiet = KnownPeople.of(algorithm.asked, Answer(algorithm.asked.total(kept), np.zeros(1) + 1e-9, 0.0))
    inside = {"means": [], "variances": [], "quantiles": []}
    halved = []
    for seed in range(300):
        found = run(algorithm, Curator(kept, Stream.fixed(b"%d" % seed)), order.full.budget, Unrecorded()).value
        for name, hits in inside.items():
            rank = (0.5,) if name == "quantiles" else ()
            truth, said = getattr(quiet, name)(*rank), getattr(found, name)(*rank)
            known = ~said.too_few
            hits.extend(((said.low <= truth.value) & (truth.value <= said.high))[known].tolist())
            if name == "means":
                middle, reach = said.value, (said.high - said.low) / 4
                halved += (np.abs(truth.value - middle) <= reach)[known].tolist()
    assert 0.91 < np.mean(inside["means"]) < 0.985
    assert np.mean(inside["variances"]) > 0.91
    assert np.mean(inside["quantiles"]) > 0.91
    assert np.mean(halved) < 0.91  # the twin that must fail: half as wide


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value", "high", "least", "off"),
    [("austin_bus_2015", "speed_ms", 30, 20, 4.0), ("cabspotting_sf_speed_2008_05_20", "speed_kmh", 120, 33, 16.0)],
)
def test_real_tables_are_told_of_where_the_full_model_tells_nothing(ledger, name, value, high, least, off):
    """With ε = 1, in hexagons and hours. The median error is below that of noise alone, which is 0.08 of the bounds."""
    from pathlib import Path

    path = Path(__file__).parents[2] / "shared" / "data" / f"{name}.parquet"
    if not path.exists():
        pytest.skip("the shared data is not here")
    found = made(path, ledger, value=value, high=high, epsilon=1, cells="h3:7", slots="hour-of-day")
    mean = found.found("mean")
    assert (~mean.too_few).sum() >= least
    exact = made(path, ledger, value=value, high=high, epsilon=10**6, cells="h3:7", slots="hour-of-day").found("mean")
    assert not exact.too_few[found.measurements.people > 0].any()
    assert np.nanmedian(np.abs(mean.value - exact.value)) < off
