"""Calendars: periods tile time in every zone, whatever clocks do."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest

from hazemap.errors import InputError
from hazemap.temporal.time_slots import Calendar

ZONES = ("UTC", "Europe/Berlin", "America/Sao_Paulo", "America/Havana", "Australia/Lord_Howe", "Pacific/Apia")
BEGIN = {"day": date(2011, 12, 1), "week": date(2011, 12, 1), "month": date(2010, 5, 15), "year": date(2008, 3, 1)}


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("every", BEGIN)
def test_periods_tile_time_and_no_two_have_one_name(every, zone):
    periods = list(Calendar(every, zone, BEGIN[every]).ended(datetime(2019, 1, 1, tzinfo=UTC)))
    assert all(one.until == other.since for one, other in pairwise(periods))
    assert all(each.since < each.until for each in periods)
    assert len({each.name for each in periods}) == len(periods) > 5
    assert [each.name for each in periods] == sorted(each.name for each in periods)


def test_days_have_23_or_25_hours_where_clocks_are_changed():
    days = list(Calendar("day", "Europe/Berlin", date(2026, 1, 1)).ended(datetime(2027, 1, 1, tzinfo=UTC)))
    odd = {each.name: (each.until - each.since) / timedelta(hours=1) for each in days}
    assert {name: hours for name, hours in odd.items() if hours != 24} == {"2026-03-29": 23, "2026-10-25": 25}
    assert len(days) == 365


def test_a_day_that_a_place_never_had_is_no_period():
    days = [
        each.name
        for each in Calendar("day", "Pacific/Apia", date(2011, 12, 28)).ended(datetime(2012, 1, 2, 12, tzinfo=UTC))
    ]
    assert days == ["2011-12-28", "2011-12-29", "2011-12-31", "2012-01-01", "2012-01-02"]


def test_midnight_that_is_left_out_is_where_clocks_jump():
    days = list(Calendar("day", "America/Sao_Paulo", date(2018, 11, 3)).ended(datetime(2018, 11, 6, 12, tzinfo=UTC)))
    assert [(each.until - each.since) / timedelta(hours=1) for each in days] == [24, 23, 24]


def test_the_first_period_begins_on_the_day_or_later_and_a_week_belongs_to_the_year_of_most_of_its_days():
    now = datetime(2026, 2, 10, tzinfo=UTC)
    names = {
        every: next(Calendar(every, "UTC", date(2025, 12, 27)).ended(now)).name for every in ("day", "week", "month")
    }
    assert names == {"day": "2025-12-27", "week": "2026-W01", "month": "2026-01"}
    assert [each.name for each in Calendar("year", "UTC", date(2024, 1, 1)).ended(now)] == ["2024", "2025"]
    assert list(Calendar("year", "UTC", date(2025, 1, 2)).ended(now)) == []


def test_a_period_is_over_at_the_instant_at_which_the_next_begins_and_not_before():
    calendar = Calendar("day", "Europe/Berlin", date(2026, 3, 29), date(2026, 3, 30))
    end = datetime(2026, 3, 29, 22, tzinfo=UTC)
    assert [each.name for each in calendar.ended(end)] == ["2026-03-29"]
    assert list(calendar.ended(end - timedelta(microseconds=1))) == []
    assert len(list(calendar.ended(end + timedelta(days=90)))) == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (("hour", "UTC", date(2026, 1, 1)), "every day, week, month, year"),
        (("day", "Berlin", date(2026, 1, 1)), "a time zone must be a name"),
        (("day", "UTC", date(2026, 1, 2), date(2026, 1, 2)), "begins before it ends"),
        (("day", "UTC", date(1, 1, 1)), "between 1900 and 2200"),
    ],
)
def test_mistakes_are_said(wrong, words):
    with pytest.raises(InputError, match=words):
        Calendar(*wrong)


def test_a_calendar_of_too_many_periods_is_refused():
    with pytest.raises(InputError, match="more than 16,384 periods"):
        list(Calendar("day", "UTC", date(1950, 1, 1)).ended(datetime(2026, 1, 1, tzinfo=UTC)))
