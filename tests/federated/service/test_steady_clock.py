"""A clock that has jumped is not believed for a day, where something would be deleted for good."""

import pytest

from hazemap.federated.service.housekeeping import DOUBTED, is_steady
from hazemap.federated.service.store import Schema, Store

SCHEMA = Schema("version", 1, ("CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",))
NOW, DAY = 1_800_000_000, 86_400


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "s.sqlite", SCHEMA)
    yield made
    made.close()


def said(store, *moments):
    return [is_steady(store, NOW + seconds) for seconds in moments]


def test_a_clock_that_goes_on_is_believed_also_where_it_was_not_looked_at_for_a_day(store):
    assert said(store, 0, 600, DAY + 600, DAY + 600, DAY) == [True] * 5


@pytest.mark.parametrize("jump", [DOUBTED + 1, 1_000 * DAY, -DOUBTED - 1, -1_000 * DAY])
def test_a_clock_that_has_jumped_is_believed_after_a_day_without_another(store, jump):
    assert said(store, 0, jump, jump + 600, jump + DAY - 1, jump + DAY) == [True, False, False, False, True]


def test_a_clock_that_is_put_right_is_believed_after_a_day(store):
    assert said(store, 0, 90 * DAY, 600, DAY, DAY + 600) == [True, False, False, False, True]


def test_a_process_that_is_started_again_and_again_does_not_doubt_for_ever(store, tmp_path):
    store.close()
    found = []
    for hours in range(90 * 24, 93 * 24, 6):
        again = Store(tmp_path / "s.sqlite", SCHEMA)
        found += said(again, *([0] if not found else []), hours * 3_600)
        again.close()
    assert found == [True, *[False] * 4, *[True] * 8]
