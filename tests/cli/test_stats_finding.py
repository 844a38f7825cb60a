"""`hazemap stats --bounds private`, `--select` and `--plan`."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hazemap.releases import Statistics

BOX = "--box=13.2,52.4,13.6,52.6"
ASKED = ("stats", "rides.parquet", "--value", "speed", "--epsilon", "2", BOX, "--cells", "h3:5")


@pytest.fixture
def rides(points, tmp_path):
    rng = np.random.default_rng(8)
    pq.write_table(pa.table(points | {"speed": rng.normal(30, 6, len(points["person"]))}), tmp_path / "rides.parquet")


def test_found_bounds_and_cells_are_published_inspected_shown_and_asked(hazemap, rides, tmp_path):
    done = hazemap(*ASKED, "--bounds", "private", "--select", "-o", "speed.parquet", "--json")
    assert done.code == 0, done.err
    assert done.json["low"] < 30 < done.json["high"]
    assert done.json["cells"] == len(Statistics.open(tmp_path / "speed.parquet").names)
    inspected = hazemap("inspect", "speed.parquet", "--replay")
    assert inspected.code == 0 and "exactly these numbers" in inspected.out
    assert (
        "CellPresence" in inspected.out
        and "Counts" in inspected.out
        and "the bounds of 'speed', found to be" in inspected.out
    )
    known = Statistics.open(tmp_path / "speed.parquet").to_dataframe().query("not too_few").iloc[0]
    assert hazemap("ask", "speed.parquet", "--cell", known.h3).out.startswith(f"mean of {known.h3} at always: ")
    assert hazemap("show", "speed.parquet").code == 0


def test_the_error_bars_of_questions_are_in_their_own_units(hazemap, rides):
    hazemap(*ASKED, "--bounds", "private", "--select", "-o", "speed.parquet")
    queries = hazemap("inspect", "speed.parquet", "--json").json["queries"]
    # a vote has noise of √2/(ε · share); a counter of values as many times more as somebody may have places
    for query in queries:
        wanted = 2**0.5 / 2 / query["share"] * (8 if query["asks"] == "Values" else 1)
        assert query["stddev"] == pytest.approx(wanted, rel=0.01)


def test_a_plan_reads_and_charges_nothing(hazemap, tmp_path):
    done = hazemap(*ASKED, "--low", "0", "--high", "65", "--slots", "hour-of-day", "--plan")
    assert done.code == 0, done.err
    assert "nothing was read, and nothing is charged" in done.out
    assert "◂ as asked" in done.out and "mean ± with 1,000" in done.out
    as_json = hazemap(*ASKED, "--bounds", "private", "--select", "--plan", "--json").json
    assert as_json["bounds"] is None and as_json["selected"] and as_json["share"] == 0.8
    assert [reach["max_cells_per_person"] for reach in as_json["max_cells_per_person"]] == [4, 8, 16]
    assert hazemap("ledger", "history", "--json").json["charges"] == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (("--bounds", "private", "--low", "0", "--high", "65"), "both bounds are declared"),
        (("--bounds", "found"), "a way to find bounds is one of"),
        ((), "--bounds private"),
        (("--low", "0"), "--bounds private"),
    ],
)
def test_every_mistake_is_one_readable_line_and_costs_nothing(wrong, words, hazemap, rides):
    done = hazemap(*ASKED, *wrong, "-o", "speed.parquet")
    assert done.code == 2
    assert words in done.err and done.out == ""
    assert hazemap("ledger", "history", "--json").json["charges"] == []


def test_a_file_has_to_be_named_unless_it_is_a_plan(hazemap, rides):
    done = hazemap(*ASKED, "--low", "0", "--high", "65")
    assert done.code == 2 and "name a file for the statistics: -o speed.parquet; or use" in done.err
