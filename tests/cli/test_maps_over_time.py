"""`hazemap release --slots`, and what the other commands make of its file."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hazemap as hazemap_package
from hazemap.errors import InputError
from hazemap.temporal.time_slots import Weekdays

BOX = "--box=13.2,52.4,13.6,52.6"
SLOTS = ("--slots", "clock:6,14,22", "--time-zone", "Europe/Berlin")


@pytest.fixture
def timed(points, hazemap, tmp_path):
    """A small table with times, and its release."""
    some = {name: column[:3_000] for name, column in points.items()}
    moments = np.random.default_rng(2).integers(0, 86_400, 3_000) * 1_000_000
    pq.write_table(pa.table({**some, "ts": pa.array(moments, pa.timestamp("us"))}), tmp_path / "visits.parquet")
    asked = ("release", "visits.parquet", "--person", "person", "--epsilon", "1", BOX, *SLOTS, "-o", "hours.parquet")
    done = hazemap(*asked)
    assert done.code == 0, done.err
    return done


def test_a_file_of_slots_from_order_to_picture(timed, hazemap, tmp_path):
    assert "3 slots, each counted in " in timed.out
    asked = hazemap("ask", "hours.parquet", "--slot", "22:00-06:00", "--json").json
    every = hazemap("ask", "hours.parquet", "--slot", "0-2", "--json").json
    assert asked["low"] <= asked["best_guess"] <= asked["high"] < every["best_guess"] * 3
    assert every["best_guess"] == pytest.approx(hazemap("ask", "hours.parquet", "--json").json["best_guess"])
    assert "people per km²" in hazemap("ask", "hours.parquet", "--slot", "1", "--at=13.32,52.46").out
    assert hazemap("ask", "hours.parquet", "--slot", "1", "--top", "2").code == 0
    centres = hazemap("centres", "hours.parquet", "--slot", "1-2", "-k", "3", "--json").json
    assert 0 < sum(each["best_guess"] for each in centres["centres"]) < every["best_guess"]
    inspected = hazemap("inspect", "hours.parquet", "--replay", "--json").json
    assert inspected["slots"] == ["06:00-14:00", "14:00-22:00", "22:00-06:00"]
    public = inspected["statement"]["public"]
    assert any(line.startswith("the slots: parts of the day") and "Europe/Berlin" in line for line in public)
    assert hazemap("export", "hours.parquet", "-o", "hours.csv").code == 0


@pytest.mark.slow
def test_pictures_stand_side_by_side_and_move(timed, hazemap, tmp_path):
    for picture in ("hours.png", "hours.gif", "hours.apng"):
        assert hazemap("show", "hours.parquet", "-o", picture).code == 0
    from PIL import Image

    for moving in ("hours.gif", "hours.apng"):
        with Image.open(tmp_path / moving) as image:
            assert image.n_frames == 3 and max(image.size) < 900


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            ("ask", "hours.parquet", "--slot", "noon"),
            "has no slot 'noon'; it has 3: 06:00-14:00, ",
        ),
        (("ask", "hours.parquet", "--slot", "1", "--histogram"), "has no slots and no bins"),
        (("show", "hours.parquet", "--slot", "1", "-o", "one.gif"), "shows all slots"),
        (("show", "hours.parquet", "--blur", "300", "-o", "one.gif"), "a moving picture shows cells"),
        (("show", "hours.parquet", "--cell", "root", "-o", "one.png"), "statistics of a value"),
        (("release", "visits.parquet", "-e", "1", BOX, *SLOTS, "--method", "flat:4", "-o", "x.parquet"), "adaptive"),
    ],
)
def test_what_cannot_be_is_refused_in_words(wrong, words, timed, hazemap):
    done = hazemap(*wrong)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


def test_a_map_without_slots_has_none_to_show(release, hazemap):
    for wrong in (("ask", "map.parquet", "--slot", "1"), ("show", "map.parquet", "-o", "map.gif")):
        assert "has no slots" in hazemap(*wrong).err


def test_an_order_keeps_its_slots(hazemap, visits, tmp_path):
    asked = ("release", "visits.parquet", "-e", "1", BOX, *SLOTS, "--write-spec", "order.toml", "--json")
    assert hazemap(*asked).json["slots"] == "clock:6,14,22"
    text = (tmp_path / "order.toml").read_text()
    assert 'time_zone = "Europe/Berlin"' in text
    plain = hazemap("release", "visits.parquet", "-e", "1", BOX, "--write-spec", "plain.toml", "--json").out
    assert not {"slots", "time_zone"} & json.loads(plain).keys()


def test_a_picture_says_which_slots_it_shows_and_how_finely_they_were_counted(timed, hazemap, tmp_path):
    drawn = hazemap("show", "hours.parquet", "--slot", "2", "-o", "night.svg")
    assert drawn.code == 0, drawn.err
    made = hazemap_package.open(tmp_path / "hours.parquet")
    night = (tmp_path / "night.svg").read_text()
    assert "22:00-06:00" in night and "Each slot was counted in" in night
    assert made.during("0-1").heading == "06:00-14:00, 14:00-22:00" and made.heading is None
    (note,) = made.plot().findobj(lambda each: each.get_gid() == "note")
    assert "Each slot was counted in" in note.get_label()


def test_slots_are_found_by_how_people_write_them(timed, hazemap, tmp_path):
    made = hazemap_package.open(tmp_path / "hours.parquet")
    assert made.numbered("6:00-14:00") == [0] and made.numbered("2-0") == [2, 0]
    days = replace(made, maps=replace(made.maps, slots=Weekdays("UTC")))
    assert days.numbered("mon, Wednesday") == [0, 2] and days.numbered("sat-Mon") == [5, 6, 0]
    for wrong in ("t", "su", "Montag", "9" * 5_000):
        with pytest.raises(InputError, match="has no slot"):
            days.numbered(wrong)
