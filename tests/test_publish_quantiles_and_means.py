"""Quantiles and means from the table to the answer: what they are of, and that their intervals hold it."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import hazemap
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.random_stream import Stream
from hazemap.releases.gis.catalogue_facts import columns_of
from hazemap.releases.page.map_payload import values_payload

MODELS = ("full", "values-only")
ASKED = {"value": "v", "low": 0, "high": 130, "box": "13.2,52.4,13.6,52.6", "cells": "quadtree:0", "epsilon": 1}


def table(person: np.ndarray, value: np.ndarray) -> pa.Table:
    place = {"lon": np.full(len(person), 13.4), "lat": np.full(len(person), 52.5)}
    return pa.table({"user": person, **place, "v": value})


def made(rows: pa.Table, folder: Path, **options) -> hazemap.Statistics:
    asked = {**ASKED, "max_cells_per_person": 1, **options}
    return hazemap.stats(rows, **asked, ledger=Ledger(folder / "ledger"), stream=Stream.fixed(b"quantiles"))


@pytest.mark.parametrize("model", MODELS)
def test_a_median_lies_in_its_interval_where_everyone_has_one_value(model, tmp_path):
    release = made(table(np.arange(400), np.full(400, 65.0)), tmp_path, model=model, quantiles=(0.1, 0.5, 0.9))
    width = 130 / release.measurements.tree.value_encoding.bins
    for each in release.ask(release.names[0])[1:]:
        assert each.low <= 65 <= each.high and each.low <= each.value <= each.high
        assert each.high - each.low >= width / 2
        assert each.population.endswith(f", in bins {width:.6g} wide")
    assert values_payload(release)["bin_width"] == width
    assert any(
        "bins of quantiles: " in line and f"the finest {width!r} wide" in line for line in release.statement.public
    )


@pytest.mark.parametrize("model", MODELS)
def test_a_mean_is_of_people_or_of_records_as_asked(model, tmp_path):
    """Half of the people have one record, 10; the others nine, 90: 50 of people, 82 of records, 74 up to 4 each."""
    person = np.concatenate([np.arange(500), np.repeat(np.arange(500, 1000), 9)])
    rows = table(person, np.where(person < 500, 10.0, 90.0))
    cases = (
        ({"mean_of": "people"}, 50.0, "people's own means, each once"),
        ({"mean_of": "records"}, 82.0, "records, up to 10 a person"),
        ({"mean_of": "records", "max_records_per_cell": 4}, 74.0, "records, up to 4 a person"),
    )
    for options, truth, words in cases:
        release = made(rows, tmp_path, model=model, epsilon=20, **options)
        [mean] = release.ask(release.names[0])
        assert mean.low <= truth <= mean.high and mean.value == pytest.approx(truth, abs=1)
        assert str(mean).endswith(f", of {words}") and mean.to_json()["population"] == words
        assert f"the mean of {words}" in release.statement.text().replace("\n            ", " ")
        assert {each.name: each.meaning for each in columns_of(release)}["value"] == f"the mean of {words}"
        assert values_payload(release)["records"] == (10 if "10" in words else 4 if "4" in words else 1)
