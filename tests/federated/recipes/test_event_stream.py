"""What an event may hold, and how long it is kept."""

import pytest

from hazemap.errors import InputError
from hazemap.federated.recipes.event_stream import EventField, EventStream, EventType

DAY = 86_400
FIELDS = {
    "integer": EventField("f", EventType.INTEGER),
    "real": EventField("f", EventType.REAL),
    "text": EventField("f", EventType.TEXT),
    "time": EventField("f", EventType.TIME),
    "category": EventField("f", EventType.CATEGORY, ("a", "b")),
}
GOOD = {
    "integer": [0, -(1 << 63), (1 << 63) - 1],
    "real": [0.5, -1e308],
    "text": ["", "héllo 東京"],
    "time": [0, 253_402_300_799],
    "category": ["a", "b"],
}
BAD = {
    "integer": [True, 1.0, "1", 1 << 63, None],
    "real": [1, True, float("nan"), float("inf"), "0.5", None],
    "text": [1, None, b"x", "a\u202eb", "\ud800", "e\u0301", "x" * 2_000],
    "time": [1.5, -1, 253_402_300_800, "2026-01-01", None, True],
    "category": ["c", "A", 0, None],
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_value_has_exactly_the_type_of_its_field(name):
    field = FIELDS[name]
    for value in GOOD[name]:
        assert field.check(value) == value
    for value in BAD[name]:
        with pytest.raises(InputError):
            field.check(value)
    assert EventField("f", field.type, field.values, optional=True).check(None) is None


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("integer", "-7", -7),
        ("real", "7", 7.0),
        ("text", "", ""),
        ("time", "2026-01-01T00:00:00+01:00", 1_767_222_000),
        ("time", "2026-01-01", 1_767_225_600),
        ("time", "20260101 02:00 +0200", 1_767_225_600),
        ("category", "b", "b"),
    ],
)
def test_a_text_is_read_as_its_fields_type(name, text, value):
    found = FIELDS[name].read(text)
    assert (found, type(found)) == (value, type(value))


def test_a_time_is_a_number_where_its_unit_is_declared():
    assert FIELDS["time"].read("1767225600", "seconds") == 1_767_225_600
    assert FIELDS["time"].read("1767225600999", "milliseconds") == 1_767_225_600
    with pytest.raises(InputError):
        FIELDS["time"].read("2026-01-01", "seconds")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *[("integer", text) for text in ("1.0", "0x1", "1_0", "+1", "", "٣", "9" * 65, "1e3")],
        *[("real", text) for text in ("1e999", "nan", "1_0", "", "1,5", "٣")],
        *[
            ("time", text)
            for text in ("soon", "", "1969-12-31", "99999-01-01", "1" * 65, "1767225600", "2026-01-01 12:00 BST")
        ],
    ],
)
def test_a_text_of_another_type_is_refused_and_is_not_repeated(name, text):
    with pytest.raises(InputError) as refused:
        FIELDS[name].read(text)
    assert len(text) < 3 or text not in str(refused.value)


def test_an_event_is_kept_from_its_own_time_or_its_donation_whichever_is_earlier():
    stream = EventStream("s", (EventField("at", EventType.TIME), EventField("until", EventType.TIME, optional=True)), 2)
    assert stream.ends((5 * DAY, None), donated=9 * DAY) == 7 * DAY
    assert stream.ends((50 * DAY, None), donated=9 * DAY) == 11 * DAY, "a date in the future wins nothing"
    assert stream.ends((5 * DAY, 4 * DAY), donated=9 * DAY) == 6 * DAY, "the earliest of several times"
    timeless = EventStream("s", (EventField("f", EventType.TEXT),), 2)
    assert timeless.ends(("x",), donated=9 * DAY) == 11 * DAY


@pytest.mark.parametrize("keep", [0, -1, 3_661])
def test_nothing_is_kept_for_no_time_or_for_ever(keep):
    with pytest.raises(InputError, match="are kept for 1 to"):
        EventStream("s", (EventField("f", EventType.TEXT),), keep)


def test_names_of_streams_and_fields_that_look_alike_or_mean_something_to_sqlite_are_refused():
    for name in ("Keyboard", "kеyboard", "a.b", "sqlite_x", "", "a" * 64):
        with pytest.raises(InputError):
            EventStream(name, (EventField("f", EventType.TEXT),), 1)
    for name in ("rowid", "a b", "ａ"):
        with pytest.raises(InputError):
            EventField(name, EventType.TEXT)
    with pytest.raises(InputError, match="two fields of one name"):
        EventStream("s", (EventField("f", EventType.TEXT), EventField("f", EventType.REAL)), 1)
    with pytest.raises(InputError, match="lists its values"):
        EventField("f", EventType.TEXT, ("a",))
