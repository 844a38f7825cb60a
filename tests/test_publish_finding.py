"""Bounds and cells that are found at a price, from the table to the file."""

import numpy as np
import pyarrow as pa
import pytest

from hazemap.errors import InputError
from hazemap.privacy.budget import PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.random_stream import Stream
from hazemap.publish import stats
from hazemap.releases import Statistics
from hazemap.trust.curator import CentralPrices

BOX = "13.2,52.4,13.6,52.6"


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


def rides(number: int = 9000) -> pa.Table:
    rng = np.random.default_rng(7)
    place = {"lon": rng.normal(13.4, 0.03, number), "lat": rng.normal(52.5, 0.02, number)}
    moments = pa.array(1_700_000_000_000_000 + rng.integers(0, 86400, number) * 1_000_000, pa.timestamp("us"))
    speed = np.where(rng.random(number) < 0.001, 1e6, rng.normal(30, 6, number))
    return pa.table({"user": np.arange(number), **place, "speed": speed, "ts": moments})


def made(ledger, rows: int = 9000, **options) -> Statistics:
    asked = {"value": "speed", "epsilon": 2, "box": BOX, "cells": "h3:5", "ledger": ledger} | options
    return stats(rides(rows), **asked, stream=Stream.fixed(b"finding"))


def test_bounds_are_found_charged_and_said(ledger, tmp_path):
    made(ledger, bounds="private", quantiles=(0.5,), output=tmp_path / "speed.parquet")
    found = Statistics.open(tmp_path / "speed.parquet")
    value_encoding = found.measurements.tree.value_encoding
    assert 0 <= value_encoding.low < 20 and 40 < value_encoding.high < 66
    assert np.nanmax(np.abs(found.found("mean").value - 30)) < 3
    [said] = [line for line in found.statement.charged if "bounds" in line]
    assert said.startswith(
        f"the bounds of 'speed', found to be {value_encoding.low:g} to {value_encoding.high:g} with "
    )

    assert "from one vote a person, spread over their records: values outside are clipped to them" in said
    assert not any("bound" in line for line in found.statement.public)
    again = found.replay(CentralPrices(found.statement.budget))
    assert np.array_equal(again.measurements.counters, found.measurements.counters)
    assert [record.charge.price for record in ledger.history()] == [PureDP(2)]


def test_cells_are_selected_charged_and_said(ledger, tmp_path):
    made(ledger, low=0, high=65, select=True, cells="h3:7", output=tmp_path / "speed.parquet")
    found, every = Statistics.open(tmp_path / "speed.parquet"), made(ledger, low=0, high=65, cells="h3:7")
    assert len(found.names) < len(every.names) / 2
    assert set(found.names) <= set(every.names)
    [said] = [line for line in found.statement.charged if "kept" in line]
    assert said.endswith(f"{len(found.names)} were kept, and values were asked in these alone")
    assert "those selected of the box" in " ".join(found.statement.public)
    assert "with 10 % of the budget, from one vote a person" in said
    assert found.ask(found.names[0])[0].cell == found.names[0]
    assert found.plot() is not None


def test_both_and_a_box_are_found_together(ledger):
    found = made(ledger, bounds="private", low=0, select=True, box=None, epsilon=4, slots="clock:6:00,18:00")
    assert found.measurements.tree.value_encoding.low == 0
    assert np.nanmax(np.abs(found.found("mean").value - 30)) < 5
    text = found.statement.text()
    assert "the low bound of 'speed', 0, as declared" in text and "above" in text and "% below" not in text
    assert len(found.transcript) == 6


def test_places_with_more_noise_may_be_voted_for_by_more_cells(ledger):
    found = made(ledger, low=0, high=65, select=True, delta="1e-6")
    assert "votes for at most 8 cells a person" in found.statement.text()


def test_districts_and_squares_are_selected_too(ledger, tmp_path):
    import json

    corners = [[13.0, 52.0], [14.0, 52.0], [14.0, 53.0], [13.0, 53.0], [13.0, 52.0]]
    far = [[x + 5, y] for x, y in corners]
    shapes = [
        {"type": "Feature", "properties": {"name": name}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
        for name, ring in (("here", corners), ("far", far))
    ]
    path = tmp_path / "districts.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": shapes}))
    asked = {"low": 0, "high": 65, "select": True}
    assert made(ledger, cells=f"districts:{path}", box=None, **asked).names == ("here",)
    fine = made(ledger, cells="quadtree:12", **asked)  # 16 million squares
    assert 0 < len(fine.names) < 5000


def test_what_contradicts_itself_is_refused_before_anything_is_paid(ledger):
    for wrong, words in (
        ({"bounds": "private", "low": 0, "high": 65}, "both bounds are declared"),
        ({"bounds": "guess"}, "a way to find bounds is one of"),
        ({"low": 0}, "cannot be read from the data"),
        ({}, "bounds='private'"),
    ):
        with pytest.raises(InputError, match=words):
            made(ledger, **wrong)
    assert not ledger.history()


def test_too_few_people_for_bounds_get_statistics_between_the_widest_and_are_told(ledger):
    few = made(ledger, rows=20, bounds="private", epsilon=1)
    assert any("found to be -1099511627776 to 1099511627776" in said for said in few.statement.charged)
    assert ledger.history()[0].charge.price == PureDP(1)


def test_rows_are_read_once_for_all_questions_about_bounds(ledger, monkeypatch):
    """Bounds are asked for in up to four questions, of one line of base cells under one rule."""
    from hazemap.engines.duckdb import EngineTable

    reads = []
    read = EngineTable._read_people
    monkeypatch.setattr(EngineTable, "_read_people", lambda self, *about: reads.append(about) or read(self, *about))
    made(ledger, bounds="private", select=True)
    assert len(reads) == 3
