"""Timeslots and the clocks they are read from: daylight saving, gaps, hours that come twice."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.temporal.zone_names import THEIRS, known_here, typescript

from hazemap.errors import InputError
from hazemap.temporal.time_slots import FIRST, LAST, Always, Clock, Spans, Weekdays, clocks, local, moment, zone_names

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Sao_Paulo")
HOUR = 3600


def posix(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@given(st.sampled_from(ZONES), st.lists(st.integers(FIRST, LAST - 1), min_size=1, max_size=50))
def test_clocks_show_what_the_time_zone_database_says(name, moments):
    shown = local(name, np.array(moments, dtype=np.float64))
    for seconds, clock in zip(moments, shown, strict=True):
        offset = datetime.fromtimestamp(seconds, UTC).astimezone(ZoneInfo(name)).utcoffset()
        assert clock - seconds == round(offset.total_seconds())


@pytest.mark.slow
@pytest.mark.parametrize("name", ZONES)
def test_clocks_are_right_in_the_second_before_and_after_every_change_of_ten_years(name):
    begin = int(posix("2010-01-01T00:00:00"))
    hours = np.arange(begin, begin + 10 * 366 * 24 * HOUR, 1800, dtype=np.float64)
    ahead = local(name, hours) - hours
    for change in hours[1:][ahead[1:] != ahead[:-1]]:
        for seconds in np.arange(change - 1801, change + 2):
            offset = datetime.fromtimestamp(seconds, ZoneInfo(name)).utcoffset().total_seconds()
            assert local(name, np.array([seconds]))[0] - seconds == offset


def test_an_hour_that_comes_twice_is_one_hour_of_the_day_and_two_hours_one_after_another():
    twice = np.array([posix("2015-10-25T00:30:00"), posix("2015-10-25T01:30:00")])  # 02:30 summer time, 02:30 again
    assert Clock.hours("Europe/Berlin").at(twice).tolist() == [2, 2]
    spans = Spans.every(HOUR, "Europe/Berlin", "2015-10-25", "2015-10-26")
    assert len(spans.names) == 25
    assert spans.at(twice).tolist() == [2, 3]


def test_an_hour_that_is_left_out_gets_nothing():
    day = np.arange(posix("2015-03-28T23:00:00"), posix("2015-03-29T22:00:00"), 600)
    assert set(Clock.hours("Europe/Berlin").at(day).tolist()) == set(range(24)) - {2}
    assert len(Spans.every(HOUR, "Europe/Berlin", "2015-03-29", "2015-03-30").names) == 23


def test_days_begin_at_midnight_of_the_zone_whatever_their_length():
    days = Spans.days("Europe/Berlin", "2015-10-24", "2015-10-27")
    late = np.array([posix("2015-10-24T21:59:59"), posix("2015-10-24T22:00:00"), posix("2015-10-25T22:59:59")])
    assert days.at(late).tolist() == [0, 1, 1]
    assert days.at(np.array([posix("2015-10-26T23:00:00"), posix("2015-10-23T21:59:59")])).tolist() == [-1, -1]


def test_parts_of_the_day_go_on_over_midnight():
    parts = Clock("UTC", (7 * HOUR, 10 * HOUR, 19 * HOUR))
    at = np.array(
        [posix(f"2020-05-05T{hour}") for hour in ("06:59:59", "07:00:00", "12:00:00", "19:00:00", "23:59:59")]
    )
    assert parts.at(at).tolist() == [2, 0, 1, 2, 2]


def test_days_of_the_week_are_those_of_the_zone():
    moments = np.array([posix("2024-01-07T23:30:00")])  # Sunday in London, Monday in Berlin
    assert Weekdays("Europe/London").at(moments).tolist() == [6]
    assert Weekdays("Europe/Berlin").at(moments).tolist() == [0]


@pytest.mark.parametrize(
    "slots",
    [Clock.hours("Asia/Kolkata"), Weekdays("UTC"), Spans.every(HOUR, "UTC", "2020-01-01", "2020-01-02")],
    ids=lambda slots: type(slots).__name__,
)
def test_a_row_without_a_time_is_in_no_slot(slots):
    assert slots.at(np.array([np.nan, np.inf, -np.inf])).tolist() == [-1, -1, -1]
    assert Always().at(np.array([np.nan])).tolist() == [0]


def test_one_list_of_names_is_what_the_database_and_the_other_device_have():
    """Where this fails after an update of the database: `python -m tests.temporal.zone_names`."""
    assert sorted(zone_names()) == known_here()
    assert typescript(sorted(zone_names())) == THEIRS.read_text()
    assert all(clocks(name).key == name for name in zone_names())


@pytest.mark.parametrize(
    "name", ["Asia/KathMandu", "us/Pacific", "utc", "localtime", "posix/UTC", "right/UTC", "Factory", "+01:00", "", "."]
)
def test_what_a_system_takes_for_a_zone_is_none_unless_it_is_in_the_list(name):
    with pytest.raises(InputError, match="a time zone must be a name such as Europe/Berlin or UTC"):
        Weekdays(name)


def test_a_machine_that_has_no_clocks_for_a_name_says_so(monkeypatch):
    def older(name):
        raise ZoneInfoNotFoundError(name)

    monkeypatch.setattr("hazemap.temporal.time_slots.ZoneInfo", older)
    with pytest.raises(InputError, match="of this machine does not know America/Coyhaique: update it"):
        Weekdays("America/Coyhaique")


def test_a_time_that_names_an_offset_keeps_it():
    assert moment("Europe/Berlin", "2024-06-01T12:00") == moment("UTC", "2024-06-01T12:00+02:00")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Clock.hours("Mars/Olympus"), "a time zone must be a name such as Europe/Berlin or UTC"),
        (lambda: Clock("UTC", (HOUR, HOUR)), "increasing times"),
        (lambda: Clock("UTC", ()), "increasing times"),
        (lambda: Clock("UTC", (0, 24 * HOUR)), "increasing times"),
        (lambda: Spans("UTC", (5,)), "2 to"),
        (lambda: Spans.every(HOUR, "UTC", "2020-01-02", "2020-01-01"), "must hold"),
        (lambda: Spans.every(1, "UTC", "2020-01-01", "2021-01-01"), "must hold"),
        (lambda: Spans.days("UTC", "2020-01-01", "2020-01-01"), "must hold"),
        (lambda: Spans.days("UTC", "soon", "2020-01-01"), "found 'soon'"),
    ],
)
def test_slots_that_cannot_be_are_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()


@given(st.lists(st.floats(-4e9, 4e9) | st.sampled_from([float("nan"), float("inf"), -0.5, 86399.9999]), max_size=30))
def test_parts_of_a_day_are_those_of_each_moment_alone(moments):
    slots, every = Clock("Europe/Berlin", (5 * HOUR, 17 * HOUR + 1800)), np.array(moments, dtype=np.float64)
    finite = [moment for moment in moments if np.isfinite(moment)]
    shown = iter([local("Europe/Berlin", np.array([moment]))[0] % 86400 for moment in finite])
    expected = [int(not 5 * HOUR <= next(shown) < 17 * HOUR + 1800) if np.isfinite(m) else -1 for m in moments]
    assert slots.at(every).tolist() == expected


@pytest.mark.parametrize(
    ("slots", "last"),
    [
        (Spans.between("UTC", ("2026-01-01T10:00:00", "2026-01-01T10:00:20", "2026-01-01T10:01")), "10:00:20+00:00"),
        (Spans.between("UTC", ("2026-01-01T10:00", "2026-01-01T10:01", "2026-01-01T10:02")), "T10:01+00:00"),
        (Clock("UTC", (36_000, 36_020)), "10:00:20-10:00:00"),
        (Clock("UTC", (36_000, 36_060)), "10:01-10:00"),
    ],
)
def test_no_two_slots_have_one_name(slots, last):
    """Or a question about one of them would be answered with another."""
    assert len(set(slots.names)) == len(slots.names) and slots.names[-1].endswith(last)
