"""Events: sealed, whole or not at all, read in order, and gone in time."""

import numpy as np
import pytest

from hazemap.errors import FileError, InputError
from hazemap.federated.device import enrolment
from hazemap.federated.device.store import event_store
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.device.store.event_store import PAGE, PLACE_FIELDS, ApprovedStreams, EventStore
from hazemap.federated.device.store.row_store import DeviceRows, RowStore
from hazemap.federated.recipes.event_stream import EventField, EventStream, EventType
from hazemap.federated.recipes.policy_document import example
from hazemap.federated.recipes.query_class import StreamFieldName

DAY = 86_400
NOW = 20_000.5 * DAY
STREAM = EventStream(
    "keyboard",
    (EventField("ngram", EventType.TEXT), EventField("at", EventType.TIME), EventField("score", EventType.REAL)),
    keep=30,
)


@pytest.fixture
def events(tmp_path):
    with EncryptedStore.opened(tmp_path / "devices.sqlite", create=True) as store:
        yield EventStore(store, enrolment.add(store)[0])


def typed(number, ago=0.0):
    return (f"hello {number}", int(NOW - ago * DAY), number / 7)


def test_events_come_back_as_they_were_donated_day_by_day(events):
    some = [typed(number, ago=number % 29) for number in range(3 * PAGE)]
    for start in range(0, len(some), 500):
        assert events.donate(STREAM, some[start : start + 500], NOW) == (len(some[start : start + 500]), 0)
    assert sorted(events.read(STREAM, NOW)) == sorted(some)
    today = [each for each in some if each[1] == int(NOW)]
    assert [each for each in events.read(STREAM, NOW) if each[1] == int(NOW)] == today
    assert len(events.store.read("SELECT 1 FROM events")) < 40, "small donations go on where a page has room"


def test_nothing_is_stored_where_one_event_does_not_fit_and_the_error_says_which_and_not_what(events):
    for wrong in (("secret", int(NOW), 1), ("secret", int(NOW)), ("secret", "now", 0.5), (None, int(NOW), 0.5)):
        with pytest.raises(InputError, match="event 3") as refused:
            events.donate(STREAM, [typed(1), typed(2), wrong, typed(3)], NOW)
        assert "secret" not in str(refused.value)
    assert events.read(STREAM, NOW) == []


def test_an_event_is_read_to_the_second_and_its_page_is_deleted_within_a_day(events):
    events.donate(STREAM, [typed(1, ago=10), typed(2, ago=0), ("later", int(NOW + 500 * DAY), 0.5)], NOW)
    ends = NOW - 10 * DAY + 30 * DAY
    assert len(events.read(STREAM, ends - 1)) == 3
    assert len(events.read(STREAM, ends)) == 2
    assert events.read(STREAM, NOW + 30 * DAY) == [], "an event of the future is kept from its donation on"
    assert event_store.expire(events.store, ends - 1) == 0
    assert event_store.expire(events.store, ends + DAY) == 1
    assert event_store.expire(events.store, NOW + 31 * DAY) == 1
    assert events.store.read("SELECT 1 FROM events") == []


def test_what_is_too_old_is_not_stored_at_all(events):
    assert events.donate(STREAM, [typed(1, ago=30), typed(2, ago=29.9)], NOW) == (1, 1)


def test_a_clock_that_is_set_back_and_forth_loses_events_and_keeps_none_longer(events):
    events.donate(STREAM, [typed(1)], now=10 * DAY)
    assert events.read(STREAM, NOW) == [], "donated in 1970, as the device believed"
    events.donate(STREAM, [typed(2)], now=NOW + 900 * DAY)
    assert events.read(STREAM, NOW) == [], "already over when it was donated"
    events.donate(STREAM, [typed(3)], NOW)
    event_store.expire(events.store, NOW + 900 * DAY)
    assert events.read(STREAM, NOW) == []


def test_a_shorter_retention_holds_for_what_is_stored_and_a_longer_one_does_not(events):
    longer, shorter = (EventStream(STREAM.name, STREAM.fields, keep) for keep in (300, 5))
    events.donate(STREAM, [typed(1)], NOW)
    assert events.read(longer, NOW + 29 * DAY) and not events.read(longer, NOW + 30 * DAY)
    assert events.read(shorter, NOW + 4 * DAY) and not events.read(shorter, NOW + 5 * DAY)
    with events.store.writing():
        event_store.shorten(events.store, events.device, STREAM, shorter)
    assert events.read(longer, NOW + 4 * DAY) and not events.read(longer, NOW + 5 * DAY)
    assert event_store.expire(events.store, NOW + 6 * DAY) == 1


def test_the_file_holds_no_event_and_no_name_of_a_stream(events):
    events.donate(STREAM, [("a secret phrase", int(NOW), 0.123456789)], NOW)
    events.store.emptied()
    found = events.store.path.read_bytes()
    assert not [word for word in (b"secret", b"keyboard", b"0.123456789", b"ngram") if word in found]


def test_a_page_that_is_damaged_moved_or_of_other_fields_is_refused(events):
    events.donate(STREAM, [typed(1)], NOW)
    other = EventStream("keyboard", STREAM.fields[:2], 30)
    with pytest.raises(FileError, match="other fields"):
        events.read(other, NOW)
    events.store.read("UPDATE events SET expires = expires + 1")
    with pytest.raises(FileError, match="damaged, or was moved"):
        events.read(STREAM, NOW)


def test_two_processes_that_donate_at_the_same_time_both_do(events):
    with EncryptedStore.opened(events.store.path) as other:
        for number in range(20):
            EventStore(other if number % 2 else events.store, events.device).donate(STREAM, [typed(number)], NOW)
    assert len(events.read(STREAM, NOW)) == 20


def test_devices_see_their_own_events_and_forgetting_takes_all(events):
    [other] = enrolment.add(events.store)
    events.donate(STREAM, [typed(1)], NOW)
    assert EventStore(events.store, other).read(STREAM, NOW) == []
    event_store.forget(events.store)
    assert events.read(STREAM, NOW) == []


def test_rows_of_places_are_a_stream_too(events):
    lon, time_, nothing = np.array([2.5, 3.5]), np.array([NOW - DAY + 0.75, np.nan]), np.array([np.nan, 1.0])
    places = EventStream("places", PLACE_FIELDS, 30)
    RowStore(events.store, events.device).add(DeviceRows(time_, lon, lon + 40, np.ones(2), nothing), None)
    first, second = (2.5, 42.5, 1.0, None), (3.5, 43.5, 1.0, 1.0)
    assert sorted(events.read(places, NOW), key=repr) == sorted([(int(NOW - DAY), *first), (None, *second)], key=repr)
    assert [each[0] for each in events.read(places, NOW + 29 * DAY + 1)] == [None]
    with pytest.raises(InputError, match="without --stream"):
        events.donate(places, [], NOW)


def test_a_query_reads_the_streams_that_the_policy_lists_and_the_fields_that_it_asks_for(events):
    policy = example()
    keyboard = policy.stream("keyboard")
    events.donate(keyboard, [("hello world", 12.5, int(NOW))], NOW)
    approved = ApprovedStreams(events, policy, NOW)
    assert approved.events("keyboard", ("at", "ngram")) == [(int(NOW), "hello world")]
    assert approved.events("other", ("ngram",)) == []
    profile, locale = policy.stream("profile"), StreamFieldName("profile", "locale")
    assert approved.latest(locale) is None
    for days, value in ((0, "de_DE"), (3, "fr_FR"), (3, "en_US"), (1, "en_GB")):
        events.donate(profile, [(30, value)], NOW + days * DAY)
    assert approved.latest(locale) == "en_US"


def test_ten_thousand_events_fill_few_pages_and_are_all_read(events):
    events.donate(STREAM, [typed(number, ago=number % 29) for number in range(10_000)], NOW)
    assert len(events.read(STREAM, NOW)) == 10_000
    assert len(events.store.read("SELECT 1 FROM events")) < 60, "a page is unsealed at a time"
