"""`hazemap stats`, and `ask` and `show` of what it made."""

import re

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.releases.test_statistics_regions import STATEMENT

from hazemap.cells import Leaves
from hazemap.cli.release import why_nothing
from hazemap.estimate.value_estimates import Measurements
from hazemap.releases import Statistics
from hazemap.spatial.quadtree import Quadtree
from hazemap.specs.statistics_spec import StatisticsSpec
from hazemap.temporal.time_slots import Clock
from hazemap.values.cell_slot_counters import CellTimeSlots
from hazemap.values.value_encoding import ValueEncoding

BOX = "--box=13.2,52.4,13.6,52.6"
GOOD = (
    "stats",
    "rides.parquet",
    "--value",
    "speed",
    "--low",
    "0",
    "--high",
    "65",
    "--epsilon",
    "2",
    "-o",
    "speed.parquet",
)
WHERE = (BOX, "--cells", "h3:5", "--slots", "clock:6:00,18:00", "--time-zone", "Europe/Berlin")


COUNTED = "people counted, at most 8 places each"


@pytest.fixture
def rides(points, tmp_path):
    """A table in the folder: 20,000 speeds of 4,000 people, one of them impossible, some missing."""
    rng = np.random.default_rng(8)
    speed = rng.normal(30, 6, len(points["person"]))
    speed[0], speed[1::100] = 1e9, np.nan
    moments = 1_700_000_000_000_000 + rng.integers(0, 30 * 86400, len(speed)) * 1_000_000
    columns = points | {"speed": speed, "ts": pa.array(moments, pa.timestamp("us"))}
    path = tmp_path / "rides.parquet"
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture
def made(hazemap, rides):
    done = hazemap(*GOOD, *WHERE, "--variance", "--quantiles", "0.1,0.5,0.9")
    assert done.code == 0, done.err
    return done


def test_statistics_say_what_they_hold_promise_and_cost(made, tmp_path):
    assert "cells × 2 slots; the mean is published for " in made.out
    assert "Values outside 0 … 65 were clipped to these bounds; rows without a value were left out." in made.out
    assert (
        "Differentially private per person: ε = 2 (pure) of ε = 2 paid in all, at most 8 cells and slots a person"
        in made.out
    )
    assert "Charged ε = 2 to the data set 'rides'." in made.out
    assert "'rides' has no cap yet, and has spent ε = 2; `hazemap ledger cap rides 2` lets it spend" in made.err
    found = Statistics.open(tmp_path / "speed.parquet")
    mean = found.found("mean")
    off = np.abs(mean.value - 30) / mean.stddev
    assert np.nanmax(off) < 20  # of two Laplace numbers, over 14 places: fewer than 1 of 10⁶ runs
    assert (~mean.too_few).sum() >= 4
    text = found.statement.text()
    assert "the bounds of 'speed', 0 to 65, as declared: values outside are clipped to them" in text
    assert "the full model" in text
    assert "parts of the day (06:00-18:00, 18:00-06:00), as clocks of Europe/Berlin show it" in text


def test_times_without_a_zone_are_said_to_be_utc_before_they_are_told_by_other_clocks(hazemap, made, rides):
    said = "times in the column 'ts' that do not say their offset are read as UTC, and converted to clocks of"
    assert said in made.err
    assert "read as UTC" not in hazemap(*GOOD, *WHERE, "--time-zone", "UTC", "--force").err
    frame = pd.read_parquet(rides)
    zoned = frame.assign(ts=frame.ts.dt.tz_localize("UTC"))
    zoned.to_parquet(rides)
    assert "read as UTC" not in hazemap(*GOOD, *WHERE, "--force").err
    zoned.assign(ts=zoned.ts.astype(str)).to_parquet(rides)  # each text may say an offset or not: nobody looks
    assert said in hazemap(*GOOD, *WHERE, "--force").err


def test_places_are_asked_for(made, hazemap, tmp_path):
    known = Statistics.open(tmp_path / "speed.parquet").to_dataframe().query("not too_few").iloc[0]
    told = hazemap("ask", "speed.parquet", "--cell", known.h3, "--slot", known.slot)
    assert told.out.startswith(f"mean of {known.h3} at {known.slot}: ")
    as_json = hazemap("ask", "speed.parquet", "--cell", known.h3, "--slot", "0", "--json").json
    assert [each["statistic"] for each in as_json["statistics"]] == ["mean", "variance", "q0.1", "q0.5", "q0.9"]
    lines = hazemap("ask", "speed.parquet", "--cell", known.h3).out.splitlines()
    assert len(lines) == 11 and lines[-1] == as_json["said"]
    assert lines[-1].startswith("A person counts in at most 8 cells and slots, drawn at random")


def test_regions_points_and_all_cells_are_asked_for(made, hazemap, tmp_path):
    everywhere = hazemap("ask", "speed.parquet").out.splitlines()
    assert everywhere[0].startswith(f"{COUNTED}, in 7 cells at 06:00-18:00: ") and len(everywhere) == 13
    assert everywhere[-1].startswith("These numbers are of 7 whole cells. A person in several of these cells")
    part = hazemap("ask", "speed.parquet", "--box=13.2,52.4,13.45,52.6", "--slot", "0", "--json").json
    assert [each["statistic"] for each in part["statistics"]] == [COUNTED, "mean", "variance", "q0.1", "q0.5", "q0.9"]
    assert 0 < len(part["cells"]) < 7 and "Its border cuts" in part["said"]
    point = hazemap("ask", "speed.parquet", "--at=13.4,52.5", "--slot", "0", "--json").json["statistics"]
    cell = hazemap("ask", "speed.parquet", "--cell", point[0]["cell"], "--slot", "0", "--json").json["statistics"]
    assert point[0]["statistic"] == COUNTED and point[1:] == cell
    assert "lies outside the map" in hazemap("ask", "speed.parquet", "--at=0,0").err


@pytest.mark.parametrize("suffix", ["csv", "geojson", "gpkg", "fgb"])
def test_statistics_are_exported(suffix, made, hazemap, tmp_path):
    assert hazemap("export", "speed.parquet", "-o", f"out.{suffix}").out.splitlines()[0] == f"out.{suffix}"
    assert (tmp_path / "out.qml").exists() == (suffix != "gpkg")
    frame = pd.read_csv(tmp_path / "out.csv") if suffix == "csv" else gpd.read_file(tmp_path / f"out.{suffix}", layer=0)
    table = Statistics.open(tmp_path / "speed.parquet").to_dataframe()
    assert set(table) <= set(frame) and len(frame) == len(table)
    assert np.allclose(sorted(frame.people), sorted(table.people))


def test_pictures_of_slots_and_of_one_cell(made, hazemap, tmp_path):
    known = Statistics.open(tmp_path / "speed.parquet").to_dataframe().query("not too_few").iloc[0]
    file, shown = hazemap("show", "speed.parquet").out.splitlines()
    assert file == "speed.png"
    assert shown.startswith("Shown are all 7 cells, from 1") and shown.endswith("outside the cells were not counted.")
    part = hazemap("show", "speed.parquet", "--box=13.3,52.5,13.31,52.51", "--json").json["said"]
    assert re.match(
        r"Shown are 0 of 7 cells and parts of [1-3] more, from 13\.300° E to 13\.310° E and from 52\.500° N", part
    )
    assert hazemap("show", "speed.parquet", "--cell", known.h3, "-o", "profile.svg").out == "profile.svg\n"
    drawn = (tmp_path / "profile.svg").read_text()
    assert "Differentially private per person" in drawn and f"{known.h3}, with 95 % intervals" in drawn
    assert "drawn in all slots at once: leave --slot out" in hazemap("show", "speed.parquet", "--slot", "0").err
    assert hazemap("show", "speed.parquet", "--statistic", "q0.5", "-o", "median.png").code == 0


def test_where_there_may_be_nobody_rows_may_not_be_read_as_they_are_meant():
    tree = CellTimeSlots(Leaves.at_level(Quadtree.world(0), 0), Clock.hours("UTC"), ValueEncoding(0, 60))
    order = StatisticsSpec.of("rides.csv", value="speed", low=0, high=60, epsilon=1, slots="hour-of-day")
    for people, meant in (0.0, True), (1000.0, False):
        counters = np.full((24, 2), people / 2)
        made = Statistics(Measurements(tree, counters, 100.0, 3.0), "speed", (), STATEMENT, None, ())
        said = why_nothing(made, order)
        assert said.startswith("too few people to say anything: a cell needs about ")
        assert ("whether coordinates are degrees, not swapped" in said) == meant
        assert ("whether times are written as is said below, or need --time-format" in said) == meant


def test_too_small_a_budget_says_that_there_are_too_few(hazemap, rides, monkeypatch):
    monkeypatch.setattr(
        "hazemap.estimate.value_estimates.CHANCE", 1e-7
    )  # else noise alone tells of a place in 1 of 100 runs
    done = hazemap(*GOOD, *WHERE, "--epsilon", "0.001")
    assert done.code == 0
    assert "the mean is published for 0 of" in done.out
    assert "too few people to say anything" in done.err
    assert hazemap(*GOOD, *WHERE, "--epsilon", "0.001", "--force", "--json").json["told"] == 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (("--value", "pace"), "the value of a row was said to be in column 'pace'"),
        (("--low", "70"), "below the upper one"),
        (("--cells", "h3:5-7"), "hexagons of one resolution: say h3:7"),
        (("--cells", "quadtree"), "cut from a declared box, so many times"),
        (("--cells", "h5"), "the cells of values are one of: h3:RESOLUTION, hexagons:FILE"),
        (("--slots", "sometimes"), "a way to cut time is one of"),
        (("--slots", "hour"), "give since and until"),
        (
            ("--slots", "hour", "--since", "2023-11-01", "--until", "2024-11-01", "--cells", "h3:10"),
            "choose coarser cells",
        ),
        (("--slots", "clock:6:00,25:00"), "increasing times"),
        (
            ("--slots", "hour-of-day", "--time-zone", "Berlin"),
            "a time zone must be a name such as Europe/Berlin or UTC",
        ),
        (("--slots", "hour-of-day", "--time", "speed"), "the time must be dates or timestamps"),
        (("--quantiles", "0.5,x"), "quantiles are numbers between 0 and 1"),
        (("--quantiles", "50"), "quantiles must be distinct ranks between 0 and 1, such as"),
        (("--max-cells-per-person", "0"), "must be at least 1"),
        (("--epsilon", "1e-9"), "lower --max-cells-per-person"),
        (("--epsilon", "0"), "epsilon must be above 0"),
        (("-o", "speed.csv"), "ends in .parquet"),
        (("-o", "speed.tif"), "a .tif holds"),
        (("-o", "rides.parquet"), "the table itself"),
    ],
)
def test_every_mistake_is_one_readable_line_and_costs_nothing(wrong, words, hazemap, rides, tmp_path):
    done = hazemap(*GOOD, BOX, *wrong)
    assert done.code == 2
    assert words in done.err
    assert done.out == ""
    assert hazemap("ledger", "history", "--json").json["charges"] == []
    assert not (tmp_path / "speed.parquet").exists()


def test_bounds_that_nobody_declared_are_asked_for_with_the_reason(hazemap, rides):
    done = hazemap("stats", "rides.parquet", "--value", "speed", "--epsilon", "1", "-o", "speed.parquet", BOX)
    assert done.code == 2
    assert "cannot be read from the data, where the largest value may be one person's" in done.err


def test_questions_and_pictures_of_the_wrong_kind_are_refused(made, release, hazemap):
    assert "statistics of a value: --top is for maps" in hazemap("ask", "speed.parquet", "--top", "3").err
    assert (
        "no part" in hazemap("ask", "speed.parquet", "--box=1,1,2,2").err
        or "outside" in hazemap("ask", "speed.parquet", "--box=1,1,2,2").err
    )
    assert "no slots" in hazemap("ask", "map.parquet", "--slot", "1").err
    assert "for statistics of a value" in hazemap("show", "map.parquet", "--cell", "x").err


def test_what_was_asked_is_inspected_and_replayed(made, hazemap):
    done = hazemap("inspect", "speed.parquet", "--replay")
    assert done.code == 0, done.err
    assert "Values" in done.out and "exactly these numbers" in done.out
    assert "every number, of people and of values, in every cell and slot" in done.out


def test_statistics_are_specified_in_a_file_and_planned_from_it(hazemap, rides):
    asked = (
        "rides.parquet",
        "--value",
        "speed",
        "--low",
        "0",
        "--high",
        "65",
        "-e",
        "1",
        BOX,
        "--quantiles",
        "0.1,0.5",
    )
    assert hazemap("stats", *asked, "--write-spec", "speed.toml").code == 0
    assert hazemap("stats", "--spec", "speed.toml", "--plan", "--json").json["budget"] == "ε = 1"
    done = hazemap("stats", "--spec", "speed.toml", "-o", "speed.parquet", "--json")
    assert done.code == 0 and done.json["high"] == 65


def test_a_histogram_of_one_place_is_asked_for_and_drawn(made, hazemap, tmp_path):
    known = Statistics.open(tmp_path / "speed.parquet").to_dataframe().sort_values("people").iloc[-1]
    here = ("speed.parquet", "--cell", known.h3, "--slot", known.slot)
    bins = hazemap("ask", *here, "--histogram", "--json").json["bins"]
    assert len(bins) == 16 and (bins[0]["from"], bins[-1]["to"]) == (0.0, 65.0)
    fullest = max(bins, key=lambda bin_: bin_["people"])
    assert 15 < fullest["from"] < 40 and fullest["low"] < fullest["people"] < fullest["high"]
    assert bins[-1]["part_below"] == 1.0
    assert "part below" in hazemap("ask", *here, "--histogram").out
    assert hazemap("show", *here, "-o", "bins.svg").out == "bins.svg\n"
    assert "Differentially private per person" in (tmp_path / "bins.svg").read_text()
    assert "one --cell and one --slot" in hazemap("ask", *here[:3], "--histogram").err
    plain = hazemap(*GOOD, *WHERE, "-o", "plain.parquet")
    assert plain.code == 0
    whole = hazemap(*GOOD, *WHERE, "--slots", "always", "--distribution", "8", "-o", "whole.parquet")
    assert whole.code == 0, whole.err  # its one slot need not be named
    assert len(hazemap("ask", "whole.parquet", *here[1:3], "--histogram", "--json").json["bins"]) == 8
    assert "the value encoding has no bins" in hazemap("ask", "plain.parquet", *here[1:], "--histogram").err


def test_what_can_tell_nothing_by_declared_people_costs_nothing_unless_somebody_says_yes(hazemap, home):
    table = pa.table(
        {"user": np.arange(50), "lon": np.full(50, 13.4), "lat": np.full(50, 52.5), "speed": np.full(50, 30)}
    )
    pq.write_table(table, "few.parquet")
    order = [
        "stats",
        "few.parquet",
        "--person",
        "user",
        "--value",
        "speed",
        "--low",
        "0",
        "--high",
        "65",
        "--cells",
        "h3:7",
    ]
    order += ["--epsilon", "0.1", "--box=13.2,52.4,13.6,52.6", "--people", "50", "-o", "speed.parquet"]
    for option in ([], ["--json"]):
        refused = hazemap(*order, *option)
        assert refused.code == 2 and "Nothing was charged" in refused.out + refused.err and not home.exists()
    done = hazemap(*order, "--yes")
    assert done.code == 0 and "a cell needs about" in done.err
