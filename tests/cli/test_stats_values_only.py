"""`hazemap stats --model values-only`, and what the other commands make of its file."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hazemap.releases import Statistics

GOOD = (
    *("stats", "rides.parquet", "--value", "speed", "--low", "0", "--high", "65", "--epsilon", "4", "--cells", "h3:6"),
    *("--model", "values-only", "-o", "speed.parquet"),
)


@pytest.fixture
def rides(points, tmp_path):
    """A table in the folder: 20,000 speeds of 4,000 people."""
    rng = np.random.default_rng(8)
    speed = rng.normal(30, 6, len(points["person"]))
    moments = 1_700_000_000_000_000 + rng.integers(0, 30 * 86400, len(speed)) * 1_000_000
    pq.write_table(pa.table(points | {"speed": speed, "ts": pa.array(moments, pa.timestamp("us"))}), "rides.parquet")


def test_a_release_says_its_model_its_route_and_who_paid_and_is_asked_shown_and_replayed(hazemap, rides, tmp_path):
    done = hazemap(*GOOD, "--slots", "clock:6:00,18:00", "--time-zone", "Europe/Berlin")
    assert done.code == 0, done.err
    text = " ".join(done.out.split())
    assert "cells × 2 slots; the mean is published for " in text
    assert (
        "Values-only: whereabouts and numbers of people, in " in text and " are public and exact in this file." in text
    )
    assert "Route " in text and "everybody counts in " in text
    assert "Differentially private per person's values alone (not whereabouts): ε = 4 (pure)" in text
    assert "Charged ε = 4 to the values-only page of the data set 'rides'." in text
    known = Statistics.open(tmp_path / "speed.parquet").to_dataframe().query("not too_few").iloc[0]
    assert known.people == int(known.people) and known.people_stddev == 0
    asked = hazemap("ask", "speed.parquet", "--cell", known.h3, "--slot", known.slot).out
    assert asked.startswith(f"mean of {known.h3} at {known.slot}: ")
    assert hazemap("show", "speed.parquet", "-o", "speed.svg").code == 0
    assert "not whereabouts" in (tmp_path / "speed.svg").read_text()
    assert hazemap("show", "speed.parquet", "--cell", known.h3, "-o", "profile.png").code == 0
    seen = hazemap("inspect", "speed.parquet", "--replay")
    assert "NOT protected: whereabouts and numbers" in seen.out
    assert "KnownCountValues" in seen.out and "exactly these numbers" in seen.out
    [query] = hazemap("inspect", "speed.parquet", "--json").json["queries"]
    places = int(text.split("everybody counts in ")[1].split()[0])
    assert query["stddev"] == pytest.approx(2**0.5 * places / 4, rel=1e-3)  # in people


@pytest.mark.parametrize(
    ("wrong", "code", "words"),
    [
        (("--model", "value-only"), 2, "a model of privacy is one of: full, values-only; found 'value-only'"),
        (("--epsilon", "0.0001"), 2, "no place can be published"),
        (("--select",), 2, "leave --select out"),
        (("--plan",), 2, "a plan is made of the full model"),
        (("--high", "-1"), 2, "below the upper one"),
        (("--cells", "quadtree:5"), 2, "cut from a declared box"),
        (("--max-cells-per-person", "0"), 2, "must be at least 1"),
    ],
)
def test_every_mistake_is_one_readable_line_and_costs_nothing(wrong, code, words, hazemap, rides, tmp_path):
    done = hazemap(*GOOD, *wrong)
    assert (done.code, done.out) == (code, "")
    assert words in " ".join(done.err.split())
    assert hazemap("ledger", "history", "--json").json["charges"] == []
    assert not (tmp_path / "speed.parquet").exists()


def test_a_cap_of_the_full_model_is_not_a_cap_on_values(hazemap, rides):
    assert hazemap("ledger", "cap", "rides", "9").code == 0
    done = hazemap(*GOOD)
    assert done.code == 3
    assert "hazemap ledger cap rides … --values-only" in " ".join(done.err.split())
    assert hazemap("ledger", "cap", "rides", "5", "--values-only").code == 0
    assert "leaves ε = 1 of its cap" in " ".join(hazemap(*GOOD).out.split())
    assert hazemap(*GOOD, "--force").code == 3
