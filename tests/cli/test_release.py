"""`hazemap release`."""

import json
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hazemap.cli import cap_advice
from hazemap.releases import Release

BOX = "--box=13.2,52.4,13.6,52.6"
GOOD = ("release", "visits.parquet", "--person", "person", "--epsilon", "1", BOX, "-o", "new.parquet")


def test_a_release_says_what_it_holds_promises_and_costs(release, tmp_path):
    assert "map.parquet: " in release.out
    assert "Differentially private per person: ε = 1 (pure)" in release.out
    assert "Charged ε = 1 to the data set 'visits'." in release.out
    assert release.err == (
        "With ε = 1, a cell with 15 people or more can be known to ± 20 % at best.\n"
        "'visits' has no cap yet; `hazemap ledger cap visits 1` lets it spend ε = 1 in all, ever\n"
    )
    assert Release.open(tmp_path / "map.parquet").total().unbiased == pytest.approx(4000, abs=300)


def test_a_cap_that_is_proposed_is_no_less_than_what_is_spent(release, hazemap):
    again = hazemap(*GOOD, "--epsilon", "1.5")
    assert again.err.endswith(
        "'visits' has no cap yet, and has spent ε = 2.5; "
        "`hazemap ledger cap visits 3` lets it spend ε = 3 in all, ever\n"
    )


def test_a_cap_is_proposed_in_what_was_paid(hazemap, visits):
    done = hazemap("release", "visits.parquet", "--rho", "0.203", BOX, "-o", "rho.parquet")
    assert "has spent ρ = 0.203; `hazemap ledger cap visits --rho 0.21` lets it spend ρ = 0.21" in done.err
    assert hazemap("ledger", "cap", "visits", "--rho", "0.21").code == 0


def test_json_is_one_object_with_the_statement(hazemap, visits):
    done = hazemap(*GOOD, "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json["file"] == "new.parquet"
    assert done.json["statement"]["budget"] == {"kind": "PureDP", "epsilon": "1"}
    assert done.json["total"]["low"] < done.json["total"]["best_guess"] < done.json["total"]["high"]


def test_a_box_that_is_too_small_is_found_out_from_the_release(hazemap, visits):
    advice = "That is many: a wider --box would have them on the map."
    boxes = ("--box=13.3,52.45,13.34,52.475", advice), ("--box=13.3,52.45,13.32,52.46", "That is most of them: look")
    for number, (box, said) in enumerate(boxes):
        small = hazemap("release", "visits.parquet", "-e", "1", box, "-o", f"{number}.parquet").out.splitlines()
        assert small[1].endswith("lie outside the map.") and small[2].startswith(said)
    dropped = hazemap("release", "visits.parquet", "-e", "1", BOX, "--outside", "drop", "-o", "dropped.parquet")
    assert dropped.out.splitlines()[1] == "People outside the map were not counted."


def test_how_times_and_lines_are_read_is_said_after_every_run_and_follows_from_no_row(hazemap, tmp_path):
    """Of a table whose times are all read, of one of which none is, and of one whose lines are all dropped."""
    for name, time in ("good", "2026-05-31T12:00:00Z"), ("none", "31.5.2026 12:00"), ("dropped", "2026-05-31,"):
        rows = "".join(f"u{i},13.4,52.5,{time}\n" for i in range(2_000))
        (tmp_path / f"{name}.csv").write_text(f"user,lon,lat,time\n{rows}")
    order = ("-e", "1", BOX, "--slots", "hour-of-day")
    good, none, *empty = (  # an interval leaves out nobody in a fortieth of all releases: in one of 10⁸ five times
        hazemap("release", f"{name}.csv", *order, "-o", f"{number}.parquet", "--no-cap")
        for number, name in enumerate(("good", "none", *("dropped",) * 5))
    )
    dropped = next((done for done in empty if "may be nobody" in done.out), empty[0])
    for done in (good, none, dropped):
        assert "Times were read as ISO 8601, dates and timestamps; a row with any other time is in no slot" in done.err
        assert "A line of CSV counted if it has 4 fields, as its header has" in done.err
    assert "whether times are" not in good.out and "may be nobody" not in good.out
    assert "most of them" in none.out and "need --time-format" in none.out
    assert "There may be nobody on the map: look" in dropped.out and "lines are written" in dropped.out
    whole = hazemap("release", "dropped.csv", "-e", "1", BOX, "-o", "whole.parquet", "--json")
    assert "A line of CSV" not in whole.err and len(whole.json["notes"]) == 1


@pytest.mark.usefixtures("looks")
def test_a_run_that_stops_after_its_look_names_times_and_lines_too(hazemap, tmp_path):
    rows = "".join(f"u{i},13.4,52.5,{1780228800 + i}\n" for i in range(2_000))
    (tmp_path / "unix.csv").write_text(f"user,lon,lat,time\n{rows}")
    stopped = hazemap("release", "unix.csv", "-e", "1", BOX, "--slots", "hour-of-day", "-o", "unix.parquet")
    assert stopped.code != 0 and not (tmp_path / "unix.parquet").exists()
    for words in (
        "or with --time-format",
        "as many fields in a line of CSV",
        "Times were read as ISO 8601",
        "4 fields",
    ):
        assert words in stopped.err


def test_seconds_since_1970_are_read_where_they_are_declared(hazemap, tmp_path):
    rows = "".join(f"u{i},13.4,52.5,{1780228800 + i}\n" for i in range(2_000))
    (tmp_path / "unix.csv").write_text(f"user,lon,lat,time\n{rows}")
    order = ("release", "unix.csv", "-e", "1", BOX, "--since", "2026-05-31T12:00", "--time-format", "seconds")
    done = hazemap(*order, "-o", "unix.parquet", "--json")
    assert done.json["total"]["low"] > 1_000
    assert any("the times: seconds since 1970" in each for each in done.json["statement"]["public"])
    assert hazemap(*order[:-1], "unix", "-o", "other.parquet").code == 2


def test_a_cap_is_said_and_kept(hazemap, visits, tmp_path):
    assert hazemap("ledger", "cap", "berlin", "1.5").code == 0
    first = hazemap(*GOOD, "--dataset", "berlin")
    second = hazemap(*GOOD, "--dataset", "berlin", "--force")
    assert "leaves ε = 0.5 of its cap, ε = 1.5" in first.out
    assert first.err == "With ε = 1, a cell with 15 people or more can be known to ± 20 % at best.\n"
    assert second.code == 3
    assert "has ε = 0.5 left of its cap ε = 1.5" in second.err
    assert "asks for ε = 1" in second.err


@pytest.mark.parametrize(
    ("wrong", "code", "words"),
    [
        (("--person", "who"), 2, "the person was said to be in column 'who'; found only person, lon, lat"),
        (("--epsilon", "-1"), 2, "epsilon must be above 0, not -1"),
        (("--epsilon", "1e400x"), 2, "epsilon must be a finite number"),
        (("--rho", "1"), 2, "give epsilon, epsilon and delta, or rho alone; found epsilon, rho"),
        (("--box=52.4,13.2,52.6,13.6", "--lon", "lat", "--lat", "lon"), 0, ""),
        (("--box=1,2,3",), 2, "a box must be four numbers, west,south,east,north; found '1,2,3'"),
        (("--box=13.2,152.4,13.6,152.6",), 2, "are longitude and latitude swapped?"),
        (("--cells", "hexagons"), 2, "quadtree, quadtree:DEPTH, h3:COARSEST-FINEST, districts:FILE"),
        (("--method", "best"), 2, "; found 'best'"),
        (("--bounding", "some"), 2, "one row, rows:K, cells:K, one vote, rows are people; found 'some'"),
        (("--outside", "keep"), 2, "say people, drop or count, not 'keep'"),
        (("-o", "visits.parquet"), 2, "the table itself"),
        (("-o", "old.parquet"), 2, "old.parquet exists: choose another name"),
        (("-o", "map.csv"), 2, "ends in .parquet or .tif; found 'map.csv'"),
        (("-o", "nowhere/map.parquet"), 2, "nowhere to write map.parquet to: make it first"),
        (("--memory", "0"), 2, "--memory"),
        (("--colour", "red"), 2, "--colour"),
    ],
)
def test_every_mistake_is_one_readable_line_and_costs_nothing(wrong, code, words, hazemap, visits, tmp_path):
    (tmp_path / "old.parquet").write_bytes(b"old")
    done = hazemap(*GOOD, *wrong)
    assert done.code == code
    assert words in done.err
    assert "Traceback" not in done.err
    if code:
        assert done.out == ""
        assert hazemap("ledger", "history", "--json").json["charges"] == []
        assert not (tmp_path / "new.parquet").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "missing.parquet"),
        (b"", "missing.parquet"),
        (b"PAR1 and then nothing", "missing.parquet"),
    ],
)
def test_files_that_are_missing_empty_or_foreign_are_named(content, words, hazemap, tmp_path):
    if content is not None:
        (tmp_path / "missing.parquet").write_bytes(content)
    done = hazemap("release", "missing.parquet", "--epsilon", "1", "-o", "map.parquet")
    assert done.code == 2
    assert words in done.err
    assert hazemap("ledger", "list", "--json").json["datasets"] == []


def test_a_table_without_rows_is_released_like_any_other(hazemap, tmp_path):
    columns = {"user": pa.int64(), "lon": pa.float64(), "lat": pa.float64()}
    pq.write_table(pa.schema(columns.items()).empty_table(), tmp_path / "empty.parquet")
    done = hazemap("release", "empty.parquet", "--epsilon", "1", "--box=13.2,52.4,13.6,52.6", "-o", "map.parquet")
    assert done.code == 0
    assert len(hazemap("ledger", "history", "--json").json["charges"]) == 1


def test_errors_are_json_for_machines(hazemap, visits):
    refused = hazemap(*GOOD, "--epsilon", "-1", "--json")
    assert (refused.code, refused.err) == (2, "")
    assert refused.json == {"error": {"type": "InputError", "message": "epsilon must be above 0, not -1"}}
    which = hazemap("release", "--json")
    assert (which.code, which.json["error"]["type"]) == (2, "InputError")
    assert "name a table: a file, a folder or a pattern in quotes, or a" in which.json["error"]["message"]
    usage = hazemap("release", "--magic", "--json")
    assert usage.code == 2
    assert usage.json["error"]["type"] == "UsageError"


def test_a_specification_is_written_kept_and_run_and_options_beside_it_count(hazemap, visits, tmp_path):
    wrote = hazemap(*GOOD, "--rho", "0.1", "--method", "flat:4", "--write-spec", "map.toml")
    assert wrote.code == 2 and "found epsilon, rho" in wrote.err
    wrote = hazemap(*GOOD, "--method", "flat:4", "--outside", "drop", "--write-spec", "map.toml")
    assert (wrote.code, wrote.out) == (0, "map.toml: the specification; nothing was read or charged\n")
    assert not (tmp_path / "new.parquet").exists() and hazemap("ledger", "list", "--json").json["datasets"] == []
    assert 'method = "flat:4"\n' in (tmp_path / "map.toml").read_text()
    done = hazemap("release", "--spec", "map.toml", "-o", "other.parquet", "--dataset", "other")
    assert done.code == 0, done.err
    made = Release.open(tmp_path / "other.parquet")
    assert 'dataset = "visits"' not in (tmp_path / "map.toml").read_text()
    assert made.ground.places.size == 4**4 and made.statement.dataset == "other" and made.nowhere is None
    (tmp_path / "map.toml").write_text('method = "flat:4"\nepsilom = "1"\n')
    wrong = hazemap("release", "visits.parquet", "--spec", "map.toml", "-o", "third.parquet")
    assert wrong.code == 2 and "a specification of this kind has no 'epsilom'" in wrong.err


def test_a_budget_on_the_command_line_takes_the_place_of_the_file_s(hazemap, visits, tmp_path):
    assert hazemap(*GOOD, "--delta", "1e-6", "--write-spec", "one.toml").code == 0
    written = ("release", "--spec", "one.toml", "--write-spec", "two.toml", "--json")
    assert hazemap(*written, "--rho", "0.1").json.items() >= {"rho": "0.1", "person": "person"}.items()
    assert not {"epsilon", "delta"} & hazemap(*written, "--rho", "0.1").json.keys()
    assert hazemap(*written, "-e", "2").json.items() >= {"epsilon": "2", "delta": "0.000001"}.items()
    assert hazemap("release", "--spec", "two.toml", "--write-spec", "three.toml", "--rho", "3", "-e", "1").code == 2


def test_hexagons_and_no_box_at_all(hazemap, visits):
    done = hazemap("release", "visits.parquet", "-e", "1", "--cells", "h3:7-10", "-o", "hexagons.parquet", "--json")
    assert done.code == 0
    assert "the box, found by two coarse grids of the world" in done.json["statement"]["charged"]
    west, south, east, north = map(float, done.json["found_box"].split(","))
    assert west < 13.4 < east and south < 52.5 < north
    assert done.json["nowhere"]["stddev"] < 5
    said = hazemap("ask", "hexagons.parquet").out.splitlines()[-1]
    assert said.endswith("lie outside the map.") and said in hazemap("inspect", "hexagons.parquet").out
    assert done.json["nowhere"].items() <= hazemap("ask", "hexagons.parquet", "--json").json["nowhere"].items()
    assert len(hazemap("ask", "hexagons.parquet", "--top", "1", "--json").json["top"][0]["cell"]) == 15


@pytest.mark.slow
def test_a_budget_far_from_the_usual_is_warned_about_on_a_line_of_its_own(hazemap, visits):
    done = hazemap("release", "visits.parquet", "--person", "person", "-e", "30", BOX, "-o", "map.parquet", "--json")
    assert done.code == 0 and done.json["cells"] > 0
    assert done.err.splitlines()[0].startswith("warning: ε = 30 protects hardly anybody: whoever gets the release")


def test_folders_and_patterns_and_csv(hazemap, points, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    pa.table(points).to_pandas().to_csv(folder / "a.csv", index=False)
    for source in ("parts", "parts/*.csv", "parts/a.csv"):
        done = hazemap("release", source, "-e", "1", BOX, "-o", "map.parquet", "--force", "--json")
        assert done.code == 0, done.out
        assert done.json["total"]["best_guess"] == pytest.approx(4000, abs=300)
    names = [each["dataset"] for each in json.loads(hazemap("ledger", "list", "--json").out)["datasets"]]
    assert names == ["a", "parts"]


@pytest.mark.parametrize(("answer", "cap"), [("", "3"), ("2", "2"), ("none", None)])
def test_the_first_charge_asks_whoever_sits_at_a_terminal_for_a_cap(
    answer, cap, hazemap, visits, monkeypatch, usual_cap
):
    asked, terminal = [], SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(cap_advice, "sys", SimpleNamespace(stdin=terminal, stderr=terminal))
    monkeypatch.setattr(cap_advice.typer, "prompt", lambda text, **_: asked.append(text) or answer)
    assert hazemap(*GOOD, "--method", "flat:3").code == 0
    assert hazemap(*GOOD, "--method", "flat:3", "--force").code == 0
    assert asked == ["A cap, or 'none' (ε = 3)"]
    [page] = hazemap("ledger", "list", "--json").json["datasets"]
    assert page["cap"] == (cap and {"kind": "PureDP", "epsilon": cap})


def test_without_a_terminal_the_usual_cap_is_set_and_said_and_options_say_another(hazemap, visits, usual_cap):
    flat = (*GOOD[:-1], "flat.parquet", "--method", "flat:3", "--force")
    done = hazemap(*flat)
    assert done.code == 0 and "may cost ε = 3, ever" in done.err and "leaves ε = 2 of its cap, ε = 3" in done.out
    assert hazemap(*flat, "--cap", "9").code == 2
    said = hazemap(*flat, "--cap", "9", "--dataset", "other")
    assert said.code == 0 and "ever" not in said.err and "leaves ε = 8 of its cap, ε = 9" in said.out
    assert "has no cap yet" in hazemap(*flat, "--no-cap", "--dataset", "third").err
    much = hazemap("ledger", "cap", "third", "9")
    assert much.code == 0 and "ε = 9 in all is much: whoever has all its releases" in much.err
