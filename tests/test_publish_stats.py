"""Statistics of a value, from the table to the file: which rows count, and what a failure costs."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hazemap.errors import CapExceeded, FileError, HazemapError, InputError
from hazemap.privacy.budget import PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.random_stream import Stream
from hazemap.publish import stats
from hazemap.releases import Statistics
from hazemap.spatial.bounding_box import WORLD
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.trust.curator import Curator

BOX = "13.2,52.4,13.6,52.6"


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


def crowd(number=4000, lon=13.4, lat=52.5, time="2024-06-01T12:00:00", value=30.0) -> pa.Table:
    moments = np.full(number, np.datetime64(time, "us"))
    columns = {"lon": np.full(number, lon), "lat": np.full(number, lat), "speed": np.full(number, value)}
    return pa.table({"user": np.arange(number), **columns, "ts": pa.array(moments)})


def made(table, ledger, **options) -> Statistics:
    asked = {"value": "speed", "low": 0, "high": 65, "epsilon": 2, "box": BOX, "cells": "h3:5"} | options
    return stats(table, **asked, ledger=ledger, stream=Stream.fixed(b"stats"))


def people(found: Statistics) -> float:
    return float(found.measurements.people.max())


def test_a_cell_that_the_box_touches_counts_whole(ledger):
    """Somebody beside the box, but in a hexagon that reaches into it."""
    beside = crowd(lon=13.19, lat=52.5)
    tree = Hexagons(made(beside, ledger).measurements.tree.cells.tree.box, 5, 5)
    assert tree.cell_at({"lon": np.array([13.19]), "lat": np.array([52.5])}, 0)[0] in tree.root
    assert people(made(beside, ledger)) == pytest.approx(4000, abs=60)
    assert people(made(crowd(lon=20.0), ledger)) < 60


def test_times_without_an_offset_are_those_of_the_zone(ledger):
    """23:30 of May 31 in UTC is June 1 in Berlin."""
    late = crowd(time="2024-05-31T23:30:00")
    assert people(made(late, ledger, since="2024-06-01", time_zone="Europe/Berlin")) > 3900
    assert people(made(late, ledger, since="2024-06-01")) < 60
    assert people(made(late, ledger, since="2024-06-01T00:00+02:00")) > 3900
    days = made(late, ledger, slots="day", since="2024-05-31", until="2024-06-02", time_zone="Europe/Berlin")
    mean = days.to_dataframe().query("not too_few")
    assert mean.slot.tolist() == ["2024-06-01T00:00+02:00"]


def test_values_that_cannot_be_are_clipped_and_missing_ones_left_out(ledger):
    both = pa.concat_tables([crowd(2000, value=1e9), crowd(1000, lon=13.4, value=float("nan"))])
    both = both.set_column(0, "user", [np.arange(3000)])
    found = made(both, ledger)
    assert people(found) == pytest.approx(2000, abs=60)
    assert np.nanmax(found.found("mean").value) == pytest.approx(65, abs=1)
    assert "values outside are clipped" in found.statement.text()
    assert "2000" not in found.statement.text() and "1000" not in found.statement.text()


def test_a_box_is_found_where_none_is_declared(ledger):
    found = made(crowd(), ledger, box=None, epsilon=4)
    assert np.nanmax(found.found("mean").value) == pytest.approx(30, abs=2)
    assert "the box, found by two coarse grids of the world from one row a person" in found.statement.charged


def test_nothing_is_paid_where_a_cap_forbids_it_and_a_failure_says_what_was(ledger, monkeypatch):
    ledger.cap("memory", PureDP(1))
    with pytest.raises(CapExceeded):
        made(crowd(10), ledger)
    assert not ledger.history()
    monkeypatch.setattr(Curator, "answer", lambda *_: (_ for _ in ()).throw(HazemapError("the lights went out")))
    with pytest.raises(HazemapError, match="the charge stands"):
        made(crowd(10), ledger, epsilon=1)
    assert len(ledger.history()) == 1


def test_districts_are_cells_too(ledger, tmp_path):
    import json

    ring = [[13.0, 52.0], [14.0, 52.0], [14.0, 53.0], [13.0, 53.0], [13.0, 52.0]]
    shape = {"type": "Feature", "properties": {"name": "here"}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
    path = tmp_path / "borders.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [shape]}))
    found = made(crowd(), ledger, box=None, cells=f"districts:{path}:name", slots="day-of-week")
    known = found.to_dataframe().query("not too_few")
    assert (len(known), known.slot.iloc[0]) == (1, "Saturday")
    found.save(tmp_path / "speed.parquet")
    assert Statistics.open(tmp_path / "speed.parquet").to_dataframe().equals(found.to_dataframe())
    with pytest.raises(InputError, match="leave the box out"):
        made(crowd(), ledger, cells=f"districts:{path}:name")


def test_somebody_with_a_million_records_counts_once(ledger):
    one = crowd(1_000_000, value=60.0).drop_columns("user").append_column("user", pa.array(np.full(1_000_000, 7)))
    both = pa.concat_tables([crowd(3000, value=20.0), one.select(crowd(1).column_names)])
    found = made(both, ledger)
    assert people(found) == pytest.approx(3000, abs=60)
    assert np.nanmax(found.found("mean").value) == pytest.approx(20, abs=1)


def test_statistics_do_not_take_the_place_of_the_list_of_their_cells(ledger, tmp_path):
    world, path = Hexagons(WORLD, 0, 5), tmp_path / "area.parquet"
    at = {"lon": np.array([13.4]), "lat": np.array([52.5])}
    pq.write_table(pa.table({"h3": list(world.names(world.cell_at(at, 5)))}), path)
    content = path.read_bytes()
    with pytest.raises(FileError, match="says which cells the release is about"):
        made(crowd(), ledger, box=None, cells=f"hexagons:{path}", output=path, overwrite=True)
    assert (path.read_bytes(), ledger.history()) == (content, [])


def test_listed_hexagons_are_the_only_cells_and_nobody_spends_places_elsewhere(ledger, tmp_path):
    world = Hexagons(WORLD, 0, 5)
    at = {"lon": np.array([13.4, 13.9, 2.35]), "lat": np.array([52.5, 52.5, 48.85])}
    here, near, paris = world.names(world.cell_at(at, 5))
    path = tmp_path / "area.csv"
    path.write_text(f"name,h3\nA,{here}\nB,{paris}\n")
    elsewhere = crowd(lon=13.9)
    both = pa.concat_tables([crowd(), elsewhere])
    found = made(both, ledger, box=None, cells=f"hexagons:{path}", max_cells_per_person=1)
    assert sorted(found.names) == sorted([here, paris]) and near not in found.names
    assert people(found) == pytest.approx(4000, abs=60)
    assert "the H3 hexagons listed in area.csv" in found.statement.text()
    assert "found by two coarse grids" not in found.statement.text()
    found.save(tmp_path / "speed.parquet")
    assert Statistics.open(tmp_path / "speed.parquet").to_dataframe().equals(found.to_dataframe())
    chosen = made(both, ledger, box=None, cells=f"hexagons:{path}", select=True, epsilon=4)
    assert chosen.names == (here,)
    with pytest.raises(InputError, match="leave the box out"):
        made(both, ledger, cells=f"hexagons:{path}")
    with pytest.raises(FileError, match="cannot be read"):
        made(both, ledger, box=None, cells="hexagons:nothing.csv")
