"""`hazemap schedule`: exit codes and one JSON line, as schedulers see them."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ORDER = """
source = "visits.parquet"
person = "person"
time = "at"
epsilon = "1"
method = "flat:2"
cells = "quadtree:4"
box = "13.2,52.4,13.6,52.6"
output = "{period}.parquet"

[schedule]
name = "yearly"
every = "year"
begins = 2020-01-01
ends = 2023-01-01
yearly_epsilon = "1"
"""


@pytest.fixture
def order(points, tmp_path, hazemap):
    table = {name: column[:3_000] for name, column in points.items()}
    year = [
        1_577_836_800 + 31_622_400 * (row % 3) for row in range(3_000)
    ]  # the first second of 2020, of 2021 and a day on
    pq.write_table(pa.table(table | {"at": pa.array(year, pa.timestamp("s"))}), tmp_path / "visits.parquet")
    (tmp_path / "release.toml").write_text(ORDER)
    return "release.toml"


def test_cron_sees_one_line_of_json_and_0_once_all_is_done_however_often_it_asks(order, hazemap, tmp_path):
    done = hazemap("schedule", "run", order, "--now", "2022-01-01", "--json")
    assert done.code == 0 and done.out.count("\n") == 1
    assert [(each["period"], each["state"]) for each in done.json["periods"]] == [
        ("2020", "released"),
        ("2021", "released"),
    ]
    assert done.json["left"] == {"measure": "ε", "value": 0.0} and done.json["exit"] == 0
    again = hazemap("schedule", "run", order, "--now", "2022-01-01", "--json")
    assert (again.code, again.json["periods"], again.json["there"]) == (0, [], 2)
    charges = hazemap("ledger", "history", "--json").json["charges"]
    assert [each["period"] for each in charges] == [{"schedule": "yearly", "period": year} for year in ("2020", "2021")]
    drawn = hazemap("schedule", "series", order, "-o", "series.png")
    assert drawn.code == 0 and (tmp_path / "series.png").read_bytes()[:4] == b"\x89PNG"
    page = hazemap("schedule", "series", order, "-o", "series.html", "--json")
    assert len(page.json["releases"]) == 2 and "<table>" in (tmp_path / "series.html").read_text()
    told = hazemap("schedule", "series", order)
    assert "2021: " in told.out and "p ≤" in told.out and "2 releases." in told.out
    last = hazemap("schedule", "run", order, "--now", "2023-01-02")
    assert "2022" in last.out and "Times were read as ISO 8601" in last.err


def test_status_changes_nothing_and_a_spent_budget_is_3(order, hazemap, home, tmp_path):
    told = hazemap("schedule", "status", order, "--json")
    assert [each["state"] for each in told.json["periods"]] == ["due"] * 3 and told.code == 0
    assert not home.exists()
    assert hazemap("ledger", "cap", "visits", "0.5").code == 0
    done = hazemap("schedule", "run", order, "--json")
    assert done.code == done.json["exit"] == 3
    assert {each["error"]["type"] for each in done.json["periods"]} == {"CapExceeded"}
    plain = hazemap("schedule", "status", order)
    assert "2022 due" in plain.out and "left ε = 1 of ε = 1" in plain.out


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ((), "name the file of a schedule"),
        (("nowhere.toml",), "cannot be read"),
        ((".",), "is a folder"),
        (("release.toml", "--now", "2999-01-01"), "yet to come"),
        (("release.toml", "--now", "soon"), "write a time as"),
    ],
)
def test_mistakes_are_2_and_said(wrong, words, order, hazemap):
    done = hazemap("schedule", "run", *wrong)
    assert (done.code, done.out) == (2, "") and words in done.err
    told = hazemap("schedule", "run", *wrong, "--json")
    assert told.code == 2 and told.json["error"]["message"]


def test_a_folder_that_is_missing_fails_the_period_and_not_the_command(order, hazemap, tmp_path):
    (tmp_path / order).write_text(ORDER.replace('"{period}', '"maps/{period}'))
    done = hazemap("schedule", "run", order, "--now", "2021-01-01", "--json")
    assert done.code == done.json["exit"] == 2 and "there is no folder" in done.json["periods"][0]["error"]["message"]


def test_the_schema_is_printed(hazemap):
    assert "schedule" in json.loads(hazemap("schedule", "run", "--schema").out)["properties"]
