"""A walk through every view of a release: each number lies in its own interval, and has one name and one value."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.releases.conftest import flat
from tests.releases.conftest import released as synthetic
from tests.releases.test_marked_release import rows as marked_rows

import hazemap
from hazemap import Ledger, MarkedRelease, Release, Statistics, TimedRelease
from hazemap.cli.main import main
from hazemap.draw.cell_densities import DensitySurface
from hazemap.estimate.confidence_margins import margins
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.statement_facts import estimand
from hazemap.releases.estimates import Estimate, PeopleOutside
from hazemap.releases.exports import total_path
from hazemap.releases.file_metadata import describe
from hazemap.releases.page.packed_arrays import painted, unpack
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, OwnMeans, RowIsPerson

NUMBER = r"(-?\d[\d,]*(?:\.\d+)?)"
LEADING = re.compile(rf"{NUMBER} %? ?([^()\d…]*?(?:counted, at most [^()…]*?)?)\([\d.]+ % interval {NUMBER} … {NUMBER}")
SHARED = Path(__file__).parents[3] / "shared" / "data"
SAN_FRANCISCO = "-122.52,37.70,-122.35,37.83"
MOST_CELLS = 40
"""Of so many cells the questions are asked one by one."""


def number(text: str) -> float:
    return float(text.replace(",", ""))


def read_text(text: str, counted: str) -> int:
    """How many numbers with intervals a text has; each lies in its own, has its name, and no ± beside it."""
    text, found = " ".join(text.split()), 0
    assert "±" not in text, text
    for value, name, low, high in (each.groups() for each in LEADING.finditer(text)):
        assert number(low) <= number(value) <= number(high), text
        assert not name.strip() or name.strip().startswith(counted) or "%" in name, (name, counted)
        found += 1
    return found


def within(found: dict[str, Any], leading: str = "best_guess") -> None:
    value, low, high = (np.asarray(found[name], dtype=np.float64) for name in (leading, "low", "high"))
    known = np.isfinite(value)
    assert ((low <= value) & (value <= high))[known].all(), (value[known], low[known], high[known])


def estimates_of(release: Release) -> Iterator[Estimate]:
    """The answers that people see: the total, who is outside, some cells, a box that cuts cells, a point."""
    yield release.total()
    if release.nowhere is not None:
        yield release.nowhere
    west, south, east, north = release.ground.extent
    yield release.count(hazemap.Box(west, south, west + 0.37 * (east - west), south + 0.41 * (north - south)))
    places = release.ground.places
    for at in places[:: max(len(places) // MOST_CELLS, 1)].tolist():
        [name] = release.cells.tree.names(release.cells.cells[[at]])
        yield release.count(name)


def walk_map(release: Release) -> None:
    """Tables, answers, lists, centres, pictures and what is printed of a map."""
    table = release.to_dataframe()
    within(table)
    if isinstance(release, TimedRelease) or "slot" in table:
        return
    by_name = table.set_index(table.columns[0])["best_guess"]
    nested = release.cells.nested
    for found in estimates_of(release):
        assert found.low <= found.best_guess <= found.high
        assert read_text(str(found), release.counted) == 1 and release.counted in str(found)
        assert read_text(found._repr_html_(), release.counted) >= 0
    places = release.ground.places
    for at in places[:: max(len(places) // MOST_CELLS, 1)].tolist():
        [name] = release.cells.tree.names(release.cells.cells[[at]])
        if not nested:
            assert release.count(name).best_guess == pytest.approx(by_name[name], abs=1e-6)
            for confidence in (0.95, 0.5):
                row, found = release.intervals(confidence), release.count(name, confidence)
                assert (found.low, found.high) == pytest.approx((row[0][at], row[1][at]), abs=1e-6)
    for by in ("count", "density"):
        top = release.top(5, by=by)
        within(top)
        assert top["best_guess"].tolist() == by_name[top.iloc[:, 0]].tolist()
    if (release.map.values > 0).any():
        centres = release.centres(3)
        within(centres.columns())
        assert centres.best_guess.sum() == pytest.approx(np.maximum(release.map.values, 0)[places].sum())
        assert centres.ways.low <= centres.ways.best_guess <= centres.ways.high
    assert len(repr(release).splitlines()) <= 10 and len(repr(release)) < 4_000
    read_text(repr(release), release.counted)
    read_text("\n".join(release.summary()), release.counted)


def walk_picture(release: Release) -> None:
    """What a PNG paints of each cell is the best guess; its words are those of answers."""
    painted_map = DensitySurface.of(release.shown)
    people = painted_map.density * painted_map.areas
    inside = release.cells.locate(release.shown.cells.tree.span(release.shown.cells.cells[release.shown.places])[0])
    wanted = np.where(release.map.places & (release.ground.km2 > 0), np.maximum(release.map.values, 0), 0)
    assert np.bincount(inside, people, release.cells.size) == pytest.approx(wanted, rel=1e-6, abs=1e-6)
    figure = release.plot(width=5, base=False)
    words = {text.get_gid(): text.get_text() for text in figure.texts}
    labels = " ".join(text.get_text() for text in figure.findobj(lambda each: hasattr(each, "get_text")))
    assert str(PeopleOutside.of(release)).split()[0] in " ".join(words["note"].split())
    read_text(words["note"], release.counted)
    if not isinstance(release, MarkedRelease):
        noun, _, bound = release.counted.partition(", ")
        assert noun in words["unit"] and bound in words["unit"], words["unit"]
    assert "people" in release.counted or "people per" not in labels


def walk_page(release: Any) -> None:
    """The numbers that a page is told, cell by cell, in all slots together and in each."""
    told = release.page_data()
    assert told["counted"] == release.counted
    parts: list[tuple[Release, dict[str, Any], dict[str, Any], Any]] = []
    total = release.total_release or release
    parts.append((total, told["cells"], told["total"], told["densest"]))
    for at, made in enumerate(release.by_slot if isinstance(release, TimedRelease) else ()):
        cells, size = told["slots"]["cells"], told["slots"]["cells"]["best_guess"]["length"] // len(release.slots)
        row = {name: unpack(cells[name])[at * size : (at + 1) * size] for name in ("best_guess", "low", "high")}
        parts.append((made, row, told["slots"]["totals"][at], told["slots"]["densest"][at]))
    for made, cells, whole, densest in parts:
        columns = made.columns(painted(made.cells))
        found = {
            name: cells[name] if isinstance(cells[name], np.ndarray) else unpack(cells[name])
            for name in ("best_guess", "low", "high")
        }
        within(found)
        for name, numbers in found.items():
            assert numbers == pytest.approx(columns[name], rel=1e-5, abs=1e-4)
        assert (whole["best_guess"], whole["low"]) == (made.total().best_guess, made.total().low)
        for each in densest:
            within(each)
    read_text(told["said"], release.counted)


def walk_exports(release: Any, folder: Path) -> None:
    """A sum over an export counts everybody once, and each row is one of the release."""
    import geopandas
    import pandas as pd

    total = release.total_release or release
    people = np.maximum(total.map.values, -np.inf)[total.ground.places].sum()
    for suffix in (".csv", ".geojson"):
        path = folder / f"out{suffix}"
        release.export(path)
        files = [path] if total is release else [path, total_path(path)]
        for each in files:
            frame = pd.read_csv(each) if suffix == ".csv" else geopandas.read_file(each)
            within(frame)
            assert frame["best_guess"].sum() == pytest.approx(people, rel=1e-6, abs=1e-4)
    path = folder / "saved.parquet"
    release.save(path)
    within(pd.read_parquet(path))
    assert json.loads(json.dumps(release.statement.to_json()))["bounding"]


def walk_statistics(made: Statistics, folder: Path) -> None:
    """Every statistic, its table, its page, its answers and its picture."""
    table = made.to_dataframe()
    for statistic in made.statistics:
        found = made.found(statistic)
        within({"best_guess": found.value, "low": found.low, "high": found.high})
    within(table, "value")
    told = made.page_data()
    for each in told["statistics"]:
        values = {name: unpack(each[name]) for name in ("value", "low", "high")}
        value, low, high = values.values()
        known = np.isfinite(value)
        assert (low <= value)[known].all() and (value <= high)[known].all()
    everywhere = made.region()
    assert read_text(str(everywhere), made.counted) > 0 and made.counted in str(everywhere)
    for each in everywhere.estimates:
        assert each.value is None or each.low <= each.value <= each.high
    picture = made.plot(width=6, base=False)
    labels = " ".join(text.get_text() for text in picture.findobj(lambda one: hasattr(one, "get_text")))
    assert "best guess" not in labels, "a picture shows the means that answers and pages show"
    made.export(folder / "stats.csv")


def rides(people: int = 300):
    """Rows in two clusters at some hours, with a speed."""
    import pyarrow as pa

    rng = np.random.default_rng(4)
    size = 3 * people
    spot = np.where(rng.random(size) < 0.7, 0.3, 0.8)[:, None] + rng.normal(0, 0.05, (size, 2))
    hour = rng.integers(0, 24, size)
    return pa.table(
        {
            "person": rng.integers(0, people, size),
            "lon": 13.2 + 0.4 * spot[:, 0],
            "lat": 52.4 + 0.2 * spot[:, 1],
            "ts": pa.array(hour * 3_600_000_000, pa.timestamp("us")),
            "speed": rng.normal(30, 6, size),
        }
    )


def released(folder: Path, table: Any, **more: Any) -> Any:
    asked = {"person": "person", "epsilon": 1, "box": "13.2,52.4,13.6,52.6", **more}
    ledger, stream = Ledger(folder / "ledger.sqlite"), Stream.fixed(b"walk")
    return (hazemap.stats if "value" in more else hazemap.release)(table, stream=stream, ledger=ledger, **asked)


KINDS: dict[str, Callable[[Path], Any]] = {
    "map": lambda folder: released(folder, rides()),
    "rows": lambda folder: released(folder, rides(), bounding="rows:3"),
    "visits": lambda folder: released(folder, rides(), bounding="cells:2", method="flat:3"),
    "slots": lambda folder: released(folder, rides(), bounding="rows:3", slots="clock:6,14,22"),
    "marks": lambda folder: released(folder, marked_rows(600), person="user", mark=["ill"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_number_lies_outside_its_own_interval_in_any_view_and_all_views_have_the_same(kind, tmp_path):
    walk(KINDS[kind](tmp_path), tmp_path)


def walk(release: Any, folder: Path) -> None:
    for made in (release.total_release or release, *(release.by_slot if isinstance(release, TimedRelease) else ())):
        walk_map(made)
        walk_picture(made)
    walk_page(release)
    walk_exports(release, folder)


@pytest.mark.slow
def test_no_statistic_lies_outside_its_own_interval_in_any_view(tmp_path):
    asked = {"value": "speed", "low": 0, "high": 60, "cells": "h3:5", "epsilon": 4}
    walk_statistics(released(tmp_path, rides(3_000), **asked), tmp_path)


def test_a_best_guess_far_from_what_was_measured_lies_in_its_own_interval_in_tables_answers_and_pages():
    """Half of the cells are guessed to be empty, others to hold twice as many: no noise explains that."""
    made = synthetic(flat(level=2))
    values = np.where(np.arange(made.cells.size) % 2, 0, 2) * np.maximum(made.map.unbiased, 0)
    made = replace(made, map=replace(made.map, values=values))
    walk_map(made)
    walk_page(made)
    margin = margins(made.map.stddev, made.kurtosis)
    assert (np.abs(values - made.map.unbiased) > margin).mean() > 0.9, "the twin that must fail: the noise alone"


def test_a_count_of_what_a_rule_left_says_so_and_one_of_people_does_not():
    names = {
        AtMostRows(1): "people",
        OneVote(): "people",
        RowIsPerson(): "rows",
        AtMostRows(5): "rows counted, at most 5 each",
        AtMostCells(1): "visits counted, at most 1 place each",
        OwnMeans(1): "people",
        OwnMeans(8): "people counted, at most 8 places each",
        OwnMeans(8, records=3): "records counted, at most 3 each in each of 8 places",
    }
    assert {rule: estimand(rule) for rule in names} == names
    made = synthetic(flat(level=1))
    made = replace(made, statement=replace(made.statement, bounding=AtMostCells(8)))
    counted = "visits counted, at most 8 places each"
    assert made.counted == made.page_data()["counted"] == made.total().to_json()["counted"] == counted
    assert (
        counted in str(made.total())
        and made.density(13.3, 52.5).counted == "visits counted per km², at most 8 places each"
    )
    assert describe(made)["counted"] == counted


ON_DATA = {
    "cabspotting_sf_pickups_2008": (SAN_FRANCISCO, ("--bounding", "rows:3"), None),
    "cabspotting_sf_speed_2008_05_20": (SAN_FRANCISCO, ("--slots", "hour-of-day"), "11"),
    "gowalla_nyc_2009_2010": ("-74.3,40.5,-73.7,40.95", ("--bounding", "cells:8", "--method", "flat:6"), None),
    "foursquare_us_2012_2013": ("-125,24,-66,50", ("--bounding", "one vote"), None),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_DATA)
def test_the_tutorial_on_a_table_of_other_people_gives_no_number_outside_its_own_interval(
    name, tmp_path, capsys, monkeypatch
):
    source = SHARED / f"{name}.parquet"
    if not source.exists():
        pytest.skip(f"the evaluation data is not here: {source.name}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAZEMAP_HOME", str(tmp_path / "home"))
    box, options, slot = ON_DATA[name]

    def said(*words: str) -> str:
        capsys.readouterr()
        assert main([*words]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    out = said(
        "release", str(source), "--person", "user", "--epsilon", "1", f"--box={box}", *options, "-o", "map.parquet"
    )
    release = hazemap.open("map.parquet")
    counted = release.counted
    assert read_text(out.partition("Differentially")[0], counted) >= 2
    asked = () if slot is None else ("--slot", slot)
    west, south, east, north = map(float, box.split(","))
    part = f"--box={west},{south},{(west + east) / 2},{(south + north) / 2}"
    for words in (("ask", "map.parquet"), ("ask", "map.parquet", part, *asked), ("ask", "map.parquet", *asked)):
        assert read_text(said(*words), counted) >= 1
    picture = said("show", "map.parquet", *asked, part, "-o", "part.png")
    assert read_text(picture, counted) >= 1 and Path("part.png").stat().st_size > 10_000
    for words in (("ask", "map.parquet", "--top", "5", *asked), ("centres", "map.parquet", "-k", "5", *asked)):
        for line in said(*words).splitlines():
            row = re.search(rf"  {NUMBER} +{NUMBER} … {NUMBER}", line)
            assert row is None or number(row[2]) <= number(row[1]) <= number(row[3]), line
    walk(release, tmp_path)


@pytest.mark.slow
def test_the_demo_gives_no_number_outside_its_own_interval(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--people", "20000"]) == 0
    out = capsys.readouterr().out
    rows = re.findall(rf"\)  +{NUMBER} +{NUMBER} … {NUMBER} +{NUMBER}", out)
    assert len(rows) == 3 and all(number(low) <= number(value) <= number(high) for value, low, high, _ in rows)
    walk(hazemap.open(tmp_path / "demo" / "map.parquet"), tmp_path)
