"""Schedules as files: what they refuse when they are read, and that nothing is lost on paper."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hazemap.errors import InputError
from hazemap.specs.schedule_spec import SCHEDULE, SCHEMA, ScheduleSpec

RELEASE = {
    "source": "visits.parquet",
    "person": "user",
    "time": "at",
    "epsilon": "0.1",
    "box": "13.2,52.4,13.6,52.6",
    "output": "maps/{period}.parquet",
}
OWN = {"name": "nightly", "every": "day", "begins": "2026-03-28", "time_zone": "Europe/Berlin", "yearly_epsilon": "30"}


def made(release=(), own=(), folder=None):
    given, of = ({**base, **dict(more)} for base, more in ((RELEASE, release), (OWN, own)))
    present = [{name: value for name, value in each.items() if value is not None} for each in (given, of)]
    return ScheduleSpec.from_json(*present, folder)


@pytest.mark.parametrize(
    ("release", "own"),
    [
        ({}, {}),
        ({"rho": "0.01", "epsilon": None}, {"yearly_epsilon": None, "yearly_rho": "1/3"}),
        ({}, {"yearly_delta": "1e-6", "missed": "skip", "wait_hours": 6.5, "ends": "2027-01-01"}),
        ({}, {"share_cells": True, "every": "week", "name": "Wöchentlich, «Rad»"}),
    ],
)
def test_what_is_written_is_read_back(release, own):
    spec = made(release, own)
    assert ScheduleSpec.from_toml(spec.to_toml()) == spec


def test_a_release_of_a_period_has_its_times_its_file_and_one_data_set():
    spec = made({"source": "visits-{period}.csv", "dataset": "visits"})
    period = next(spec.calendar.ended(datetime(2026, 4, 1, tzinfo=UTC)))
    order = spec.of(period)
    assert order.table.window == ("2026-03-27T23:00:00+00:00", "2026-03-28T23:00:00+00:00")
    assert (order.table.source, order.output) == ("visits-2026-03-28.csv", "maps/2026-03-28.parquet")
    assert order.dataset == spec.dataset == "visits"


def test_files_are_named_from_the_folder_of_the_schedule_on(tmp_path: Path):
    spec = made(folder=tmp_path)
    assert spec.release["source"] == str(tmp_path / "visits.parquet")
    assert made({"source": "/data/visits.csv"}, folder=tmp_path).release["source"] == "/data/visits.csv"


def test_a_toml_day_is_as_good_as_a_text():
    text = made().to_toml().replace('begins = "2026-03-28"', "begins = 2026-03-28")
    assert ScheduleSpec.from_toml(text) == made()


@pytest.mark.parametrize(
    ("release", "own", "words"),
    [
        ({"since": "2026-01-01"}, {}, "says itself what since is"),
        ({"overwrite": True}, {}, "says itself what overwrite is"),
        ({"time": None}, {}, "needs time"),
        ({"source": None}, {}, "needs source"),
        ({"output": "map.parquet"}, {}, "has {period} in its name"),
        ({"output": "{period}/map.parquet"}, {}, "has {period} in its name"),
        ({"box": None}, {}, "cover one box"),
        ({"source": "v-{period}.csv"}, {}, "name the data set"),
        ({"epsilon": 0.1}, {}, "epsilon of a specification is a text"),
        ({"colour": "red"}, {}, "has no 'colour'"),
        ({"method": "flat:4"}, {"share_cells": True}, "begins with no cells"),
        ({"prior": "a.parquet"}, {"share_cells": True}, "prior is the release before|there is no file"),
        ({}, {"yearly_epsilon": None}, "what a year may cost"),
        ({}, {"yearly_rho": "1"}, "give epsilon, epsilon and delta, or rho alone"),
        ({}, {"yearly_epsilon": "0"}, "above 0"),
        ({}, {"every": "hour"}, "every day, week"),
        ({}, {"name": None}, "says its name"),
        ({}, {"name": ""}, "name is one line"),
        ({}, {"name": "a\x07"}, "name is one line"),
        ({}, {"begins": "soon"}, "begins of a schedule is a day"),
        ({}, {"wait_hours": -1.0}, "wait_hours"),
        ({}, {"wait_hours": 1e300}, "wait_hours"),
        ({}, {"missed": "weep"}, "to run or to skip"),
        ({}, {"crontab": "x"}, "has no 'crontab'"),
    ],
)
def test_mistakes_are_said_before_anything_is_read(release, own, words):
    with pytest.raises(InputError, match=words):
        made(release, own)


@pytest.mark.parametrize(
    "text", ["", "a = 1", "schedule = 3", "[schedule]\n", "[[schedule]]\nname = 'x'", "= ", "x" * 2_000_000]
)
def test_files_that_are_no_schedules_are_refused(text):
    with pytest.raises(InputError):
        ScheduleSpec.from_toml(text)


def test_the_schema_has_every_name_and_the_page_shows_it():
    assert set(SCHEMA["properties"]["schedule"]["properties"]) == set(SCHEDULE)
    page = Path(__file__).parents[2] / "docs" / "reference" / "schedule.schema.json"
    assert json.loads(page.read_text()) == SCHEMA
