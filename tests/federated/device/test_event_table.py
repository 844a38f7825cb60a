"""Tables of events: strict in every line, and refused in words that name the line and no value."""

import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hazemap.errors import FileError, HazemapError, TableError
from hazemap.federated.device.store.event_store import events_by_person
from hazemap.federated.recipes.event_stream import EventField, EventStream, EventType

STREAM = EventStream(
    "keyboard",
    (
        EventField("ngram", EventType.TEXT),
        EventField("at", EventType.TIME),
        EventField("score", EventType.REAL),
        EventField("layout", EventType.CATEGORY, ("qwerty", "azerty"), optional=True),
    ),
    30,
)
HEAD = "user,at,ngram,score,layout,other\n"
GOOD = 'anna,2026-01-01T00:00:00Z,"hello, ""world""",0.5,qwerty,x\nbert,20260101T000000Z,again,2,,y\n'
EVENTS = {"anna": [('hello, "world"', 1767225600, 0.5, "qwerty")], "bert": [("again", 1767225600, 2.0, None)]}


def written(folder, text):
    path = folder / "events.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("sign", ",;\t")
def test_columns_are_the_fields_by_name_and_others_are_not_read(tmp_path, sign):
    text = (HEAD + GOOD.replace("hello, ", "hello ")).replace(",", sign)
    found = events_by_person(written(tmp_path, "\ufeff" + text), STREAM, "user")
    assert found == {**EVENTS, "anna": [('hello "world"', 1767225600, 0.5, "qwerty")]}
    [everything] = events_by_person(written(tmp_path, HEAD + GOOD), STREAM, None).values()
    assert everything == [*EVENTS["anna"], *EVENTS["bert"]]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (HEAD + GOOD + "carl,soon,secret,0.5,,\n", "line 4: at is a time"),
        (HEAD + GOOD + "carl,2026-01-01,secret,1e999,,\n", "line 4: score is a finite number"),
        (HEAD + GOOD + "carl,2026-01-01,secret,secret,,\n", "line 4: score is a finite number"),
        (HEAD + GOOD + "carl,2026-01-01,secret,0.5,secret,\n", "line 4: layout is none of the 2 values"),
        (HEAD + GOOD + ",0,secret,0.5,,\n", "line 4: nobody's name"),
        (HEAD + GOOD + "carl,2026-01-01,secret\n", "line 4: 3 columns"),
        (HEAD + GOOD + 'carl,2026-01-01,"secret\n', "cannot be read as CSV"),
        (HEAD + "carl,2026-01-01,sec\u202eret,0.5,,\n", "line 2: ngram holds a character"),
        ("user,at,ngram\n", "has no column 'score'"),
        ("user,at,ngram,score,score\n", "two columns of one name"),
        ("", "has no column 'ngram'"),
    ],
)
def test_a_line_that_does_not_fit_is_named_and_what_stands_there_is_not(tmp_path, text, reason):
    with pytest.raises(HazemapError, match=reason) as refused:
        events_by_person(written(tmp_path, text), STREAM, "user")
    assert "secret" not in str(refused.value)


def test_numbers_are_times_of_events_only_in_the_unit_that_is_declared(tmp_path):
    text = (HEAD + GOOD).replace("2026-01-01T00:00:00Z", "1767225600").replace("20260101T000000Z", "1767225600")
    assert events_by_person(written(tmp_path, text), STREAM, "user", "seconds") == EVENTS
    with pytest.raises(HazemapError, match="line 2: at is a time"):
        events_by_person(written(tmp_path, text), STREAM, "user")
    columns = {"at": [1767225600999], "ngram": ["again"], "score": [2.0]}
    pq.write_table(pa.table(columns), tmp_path / "events.parquet")
    assert events_by_person(tmp_path / "events.parquet", STREAM, None, "milliseconds") == {None: EVENTS["bert"]}
    with pytest.raises(TableError, match="numbers need --time-format"):
        events_by_person(tmp_path / "events.parquet", STREAM, None)


def test_what_is_no_table_is_refused(tmp_path):
    for path in (written(tmp_path, b"\xff\xfe" + HEAD.encode()), tmp_path / "none.csv", tmp_path / "none.parquet"):
        with pytest.raises(FileError):
            events_by_person(path, STREAM, "user")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 no PAR1")
    with pytest.raises(FileError):
        events_by_person(tmp_path / "broken.parquet", STREAM, "user")


def test_parquet_holds_events_by_the_types_of_its_columns(tmp_path):
    at = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    columns = {
        "user": ["anna", "bert"],
        "ngram": ['hello, "world"', "again"],
        "at": pa.array([at, at], pa.timestamp("us", "Europe/Berlin")),
        "score": [0.5, 2.0],
        "layout": pa.array(["qwerty", None]).dictionary_encode(),
    }
    path = tmp_path / "events.parquet"
    pq.write_table(pa.table(columns), path)
    assert events_by_person(path, STREAM, "user") == EVENTS
    for name, values in {"score": [1, 2], "ngram": [1, 2], "at": [1, 2], "layout": [True, False]}.items():
        pq.write_table(pa.table({**columns, name: values}), path)
        with pytest.raises(TableError, match=f"the column {name} holds"):
            events_by_person(path, STREAM, "user")
    for at in (
        ["2026-01-01T01:00+01", "20260101T000000Z"],
        pa.array(["2026-01-01", "2026-01-01 00:00 UTC"], "string_view"),
    ):
        pq.write_table(pa.table({**columns, "at": at}), path)
        assert events_by_person(path, STREAM, "user") == EVENTS
    pq.write_table(pa.table({**columns, "at": ["2026-01-01", "soon"]}), path)
    with pytest.raises(HazemapError, match="row 2: at is a time"):
        events_by_person(path, STREAM, "user")
    pq.write_table(pa.table({**columns, "score": [0.5, float("nan")]}), path)
    with pytest.raises(HazemapError, match="row 2: score is a finite number"):
        events_by_person(path, STREAM, "user")
