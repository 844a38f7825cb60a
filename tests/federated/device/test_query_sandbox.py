"""A query reads what its class names and nothing else, by no way that SQL has, and ends within its bounds."""

import random
import sqlite3
import subprocess
import sys
from time import process_time

import pytest
from tests.cpu_time import least_cpu
from tests.federated.device.sql_grammar import ALLOWED, FIELDS, Grammar

from hazemap.errors import HazemapError, InputError, Refused
from hazemap.federated.device.recipes import query_sandbox
from hazemap.federated.device.recipes.query_sandbox import QueryFailure, QueryLimits, QuerySandbox
from hazemap.federated.recipes.query_class import (
    FUNCTIONS,
    SEARCHES,
    AnyQueryOverFields,
    FieldType,
    ListedQueries,
    ParameterRange,
    QueryTemplate,
    QueryTemplates,
    StreamFieldName,
    StreamSchema,
)
from hazemap.federated.recipes.sql_query import Parameter, SqlQuery

KEYBOARD = StreamSchema.of("keyboard", ngram="text", time="integer", speed="real", secret="text")
PROFILE = StreamSchema.of("profile", age="integer", city="text")
VAULT = StreamSchema.of("vault", pin="integer", word="text")
STREAMS = (KEYBOARD, PROFILE, VAULT)
NAMES = tuple(StreamFieldName.parse(each) for each in ALLOWED)
ANY = AnyQueryOverFields(NAMES, FUNCTIONS + SEARCHES)
SANDBOX = QuerySandbox(STREAMS, ANY)
CANARY, PIN = "zqcanaryqz", 7_713_377_331


class Events:
    """Events in memory, as columns; `asked` is what a sandbox wanted to see of them."""

    def __init__(self, seed=1, canary=CANARY, changed=frozenset(), many=12):
        self.rows, self.asked = {}, set()
        for stream in STREAMS:
            self.rows[stream.name] = {
                field: self._column(
                    f"{stream.name}.{field}", seed + (f"{stream.name}.{field}" in changed), canary, many
                )
                for field in FIELDS[stream.name]
            }

    @staticmethod
    def _column(name, seed, canary, many):
        chance = random.Random(f"{name} {seed}")
        make = {
            "keyboard.ngram": lambda: chance.choice(["hello world a", "i got it", "how are you", "", None]),
            "keyboard.time": lambda: chance.randrange(1_000),
            "keyboard.speed": lambda: chance.choice([chance.random(), None]),
            "keyboard.secret": lambda: f"{canary}{chance.randrange(5)}",
            "profile.age": lambda: chance.randrange(90),
            "profile.city": lambda: f"{canary} city",
            "vault.pin": lambda: PIN if canary == CANARY else 1,
            "vault.word": lambda: canary,
        }[name]
        return [make() for _ in range(many if name.startswith("keyboard") else 2)]

    def events(self, stream, fields):
        self.asked |= {f"{stream}.{field}" for field in fields}
        return list(zip(*(self.rows[stream][field] for field in fields), strict=True))


class Unwalled(QuerySandbox):
    """A sandbox that puts every field in, allowed or not: then the authorizer is the only wall."""

    def _load(self, connection, admitted, source):
        for stream in self.streams:
            names = FIELDS[stream.name]
            marks = ", ".join("?" * len(names))
            connection.executemany(f"INSERT INTO {stream.name} VALUES ({marks})", source.events(stream.name, names))


def run(text, *parameters, events=None, sandbox=SANDBOX):
    return sandbox.run(sandbox.admit(SqlQuery(text, parameters)), events or Events())


def test_a_query_sees_the_fields_it_touches_and_the_store_is_asked_for_no_others():
    events = Events()
    found = run("SELECT ngram, speed FROM keyboard WHERE time >= :least", Parameter("least", 500), events=events)
    kept = [
        (ngram, speed)
        for ngram, speed, time in events.events("keyboard", ("ngram", "speed", "time"))
        if time >= 500
    ]  # fmt: skip
    assert list(found.rows) == kept
    assert events.asked == {"keyboard.ngram", "keyboard.speed", "keyboard.time"}


def test_counting_events_touches_every_field_of_the_stream_that_may_be_read():
    touched = SANDBOX.admit(SqlQuery("SELECT count(*) FROM keyboard")).touched
    assert [str(each) for each in touched] == ["keyboard.ngram", "keyboard.speed", "keyboard.time"]
    with_age = SANDBOX.admit(SqlQuery("SELECT age FROM profile WHERE EXISTS (SELECT 1 FROM keyboard)")).touched
    assert [str(each) for each in with_age] == ["keyboard.ngram", "keyboard.speed", "keyboard.time", "profile.age"]
    shouted = SANDBOX.admit(SqlQuery("SELECT COUNT(*) FROM main.KEYBOARD")).touched
    assert shouted == touched
    named = SANDBOX.admit(SqlQuery("WITH c AS (SELECT DISTINCT time FROM keyboard) SELECT count(*) FROM c")).touched
    assert [str(each) for each in named] == ["keyboard.time"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT secret FROM keyboard",
        "SELECT * FROM keyboard",
        "SELECT k.* FROM keyboard AS k",
        "SELECT main.keyboard.secret FROM main.keyboard",
        "SELECT time FROM keyboard ORDER BY secret",
        "SELECT time FROM keyboard LIMIT (SELECT max(length(secret)) FROM keyboard)",
        "SELECT lag(time) OVER w FROM keyboard WINDOW w AS (PARTITION BY secret)",
        "SELECT count(*) FILTER (WHERE secret > 'a') FROM keyboard",
        "SELECT sum(time) FROM keyboard GROUP BY 1 HAVING max(secret) > 'a'",
        "SELECT time FROM keyboard WHERE (time, secret) IN (SELECT time, ngram FROM keyboard)",
        "WITH c AS (SELECT * FROM keyboard) SELECT time FROM c",
        "SELECT count(*), (SELECT max(time) FROM keyboard) FROM vault",
        "SELECT time FROM keyboard WHERE EXISTS (SELECT 1 FROM vault)",
        "SELECT keyboard.time FROM keyboard, vault",
        "SELECT keyboard.time FROM keyboard, VAULT",
        "SELECT keyboard.time FROM keyboard, 'Vault' AS v",
        "SELECT a.time FROM keyboard AS a FULL JOIN vault AS v ON 1",
        "SELECT rowid FROM keyboard",
        "SELECT oid, time FROM keyboard",
        "SELECT keyboard._rowid_ FROM keyboard",
        "SELECT sql FROM sqlite_master",
        "SELECT count(*), (SELECT max(time) FROM keyboard) FROM sqlite_schema",
        "SELECT count(*) FROM pragma_table_info('keyboard'), keyboard",
        "SELECT count(*) FROM pragma_function_list WINDOW pragma_function_list AS (ORDER BY 1)",
        "SELECT value, time FROM keyboard, json_each(ngram)",
        "SELECT count(*) FROM keyboard, json_tree(ngram)",
        "SELECT count(*) FROM dbstat",
        "SELECT sql FROM sqlite_stmt",
        "SELECT ngram ->> '$' FROM keyboard",
        "SELECT random() FROM keyboard",
        "SELECT time FROM keyboard ORDER BY random()",
        "SELECT current_timestamp, time FROM keyboard",
        "SELECT strftime('%s') FROM keyboard",
        "SELECT date('now') FROM keyboard",
        "SELECT sqlite_version() FROM keyboard",
        "SELECT zeroblob(1000000000) FROM keyboard",
        "SELECT printf('%1000000000d', 1) FROM keyboard",
        "SELECT group_concat(ngram) FROM keyboard",
        "SELECT load_extension('x') FROM keyboard",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r, keyboard",
        "WITH r(n) AS (SELECT time FROM keyboard UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
        "WITH x AS (SELECT 1) DELETE FROM keyboard",
        "WITH x AS (SELECT 1) INSERT INTO keyboard SELECT * FROM x",
        "SELECT 1 FROM keyboard RETURNING secret",
        "SELECT raise(ABORT, ngram) FROM keyboard",
        "SELECT 1",
        "SELECT * FROM (VALUES (1), (2))",
    ],
)
def test_what_reads_something_else_is_refused_before_an_event_is_read(text):
    with pytest.raises(Refused) as refused:
        SANDBOX.admit(SqlQuery(text))
    assert CANARY not in str(refused.value)


def test_joins_that_name_no_field_read_fields_that_sqlite_asks_nobody_about():
    """Why the shape refuses NATURAL and USING: the authorizer is not asked for the fields that they compare."""
    asked = []
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE s (x, secret)")
    connection.execute("CREATE TABLE t (x, secret)")
    connection.set_authorizer(lambda action, one, two, *_: asked.append((action, one, two)) or sqlite3.SQLITE_OK)
    connection.execute("SELECT 1 FROM s NATURAL JOIN t")
    assert asked == [(sqlite3.SQLITE_SELECT, None, None)]
    with pytest.raises(InputError, match="NATURAL"):
        SqlQuery("SELECT 1 FROM s NATURAL JOIN t")


LONG = (
    "WITH a AS (SELECT max(ngram) || max(ngram) || max(ngram) || max(ngram) AS n FROM keyboard), "
    "b AS (SELECT n || n || n || n AS n FROM a), c AS (SELECT n || n || n || n AS n FROM b) SELECT n || n FROM c"
)


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("SELECT count(*) FROM keyboard a, keyboard b, keyboard c", QueryFailure.STEPS),
        ("SELECT a.time FROM keyboard a, keyboard b", QueryFailure.ROWS),
        ("SELECT abs(time - 9223372036854775807 - 1) FROM keyboard WHERE time = 0", QueryFailure.ERROR),
        ("SELECT sum(9223372036854775807) FROM keyboard", QueryFailure.ERROR),
        (LONG, QueryFailure.ERROR),
        ("SELECT CAST(x'ff' AS TEXT), time FROM keyboard", QueryFailure.ERROR),
        ("SELECT nth_value(time, 0) OVER () FROM keyboard", QueryFailure.ERROR),
    ],
)
def test_what_fails_on_events_has_no_rows_and_raises_nothing(text, failure):
    sandbox = QuerySandbox(STREAMS, ANY, QueryLimits(steps=200_000, rows=1_000, length=500))
    admitted = sandbox.admit(SqlQuery(text))
    for events in (Events(many=200), Events(many=200, canary="other")):
        events.rows["keyboard"]["time"][0] = 0
        outcome = sandbox.run(admitted, events)
        assert outcome.rows == ()
        assert outcome.failure is failure


def test_events_that_are_too_many_or_of_another_type_or_that_cannot_be_read_give_no_rows():
    admitted = SANDBOX.admit(SqlQuery("SELECT time FROM keyboard"))
    few = QuerySandbox(STREAMS, ANY, QueryLimits(events=5))
    assert few.run(few.admit(admitted.query), Events()).failure is QueryFailure.EVENTS
    for wrong in ("12", 12.0, True, b"12", 1 << 63):
        events = Events()
        events.rows["keyboard"]["time"][3] = wrong
        assert SANDBOX.run(admitted, events).failure is QueryFailure.ERROR
    assert SANDBOX.run(admitted, None).failure is QueryFailure.ERROR
    assert SANDBOX.run(admitted, Events(many=0)).rows == ()


DOUBLES = ", ".join(f"'c{i}' AS (SELECT a.x FROM 'C{i - 1}' a, c{i - 1} b)" for i in range(1, 40))
"""Each part twice in the next one: 2³⁹ copies."""


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT {'(' * 900}1{')' * 900} FROM keyboard",
        f"WITH c0 AS (SELECT 1 AS x), {DOUBLES} SELECT x FROM c39",
        f"WITH 'c0' AS (SELECT 1 AS x), {DOUBLES} SELECT x FROM c39",
        f"WITH c0 (x) AS MATERIALIZED (SELECT 1), {DOUBLES} SELECT x FROM c39",
        f"WITH c0 ('(') AS NOT MATERIALIZED (SELECT 1), {DOUBLES} SELECT 1 FROM c39",
        f"WITH c0 AS (SELECT 1 AS x FROM keyboard WHERE 1 IN ({'1, ' * 4_000} 1)), "
        "c1 AS (SELECT a.x FROM c0 a, c0 b, c0 c), c2 AS (SELECT a.x FROM c1 a, c1 b, c1 c) SELECT x FROM c2, c2",
    ],
)
def test_a_text_that_sqlite_would_take_long_to_compile_is_refused_soon(text):
    def refused():
        with pytest.raises(HazemapError, match=r"WITH|parser stack"):
            SANDBOX.admit(SqlQuery(text))

    assert least_cpu(refused) < 0.2


def test_classes_that_list_queries_or_templates_admit_these_alone():
    listed = QuerySandbox(STREAMS, ListedQueries((SqlQuery("SELECT age FROM profile"),), NAMES))
    assert run("SELECT age FROM profile", sandbox=listed).failure is None
    with pytest.raises(Refused, match="not on the list"):
        listed.admit(SqlQuery("SELECT age + 1 FROM profile"))
    too_much = QuerySandbox(STREAMS, ListedQueries((SqlQuery("SELECT city FROM profile"),), NAMES))
    with pytest.raises(Refused, match=r"profile\.city"):
        too_much.admit(SqlQuery("SELECT city FROM profile"))
    least = ParameterRange("least", FieldType.INTEGER, 0, 100)
    text = "SELECT age FROM profile WHERE age >= :least"
    templates = QuerySandbox(STREAMS, QueryTemplates((QueryTemplate(text, (least,)),), NAMES))
    assert run(text, Parameter("least", 0), sandbox=templates).failure is None
    with pytest.raises(Refused, match="between 0 and 100"):
        templates.admit(SqlQuery(text, (Parameter("least", 101),)))


def test_a_parameter_is_bound_and_never_read_as_sql():
    text = "SELECT time FROM keyboard WHERE ngram = :word"
    assert run(text, Parameter("word", "' OR 1 = 1 OR '")).rows == ()


UNWALLED = Unwalled(STREAMS, ANY)


class Leak(AssertionError):
    """A query learned what it was not to see, or did not end."""


def fuzz(seed, queries, sandbox=SANDBOX, unwalled=UNWALLED):
    """How many of so many random queries were admitted; `Leak` for the first that breaks the law."""
    grammar, admitted = Grammar(seed), 0
    real, other = Events(), Events(canary="other")
    for _ in range(queries):
        text = grammar.query()
        begun = process_time()
        try:
            found = sandbox.admit(SqlQuery(text))
        except HazemapError as error:
            if CANARY in str(error) or str(PIN) in str(error):
                raise Leak(text) from None
            continue
        finally:
            if process_time() - begun > 2:
                raise Leak(f"admitting took {process_time() - begun} s: {text}")
        admitted += 1
        if not set(found.touched) <= set(NAMES):
            raise Leak(f"{found.touched}: {text}")
        untouched = set(ALLOWED) - set(map(str, found.touched))
        begun = process_time()
        outcomes = [unwalled.run(found, each) for each in (real, other, Events(changed=untouched))]
        outcomes.append(sandbox.run(found, real))
        if process_time() - begun > 4 * 2.5:
            raise Leak(f"running took long: {text}")
        if any(each != outcomes[0] for each in outcomes):
            raise Leak(f"depends on what it does not touch: {text}")
        if CANARY in str(outcomes) or str(PIN) in str(outcomes):
            raise Leak(text)
    if real.asked - {f"{stream}.{field}" for stream, fields in FIELDS.items() for field in fields}:
        raise Leak("the store was asked for something else")
    return admitted


def test_random_queries_learn_nothing_of_denied_fields_nor_of_fields_they_do_not_touch():
    assert fuzz(1, 500) > 100


@pytest.mark.slow
def test_a_hundred_thousand_random_queries_learn_nothing_and_end():
    assert sum(fuzz(seed, 10_000) for seed in range(2, 12)) > 20_000


def test_an_authorizer_that_says_yes_to_all_is_caught(monkeypatch):
    class Yes(query_sandbox.Authorizer):
        def _judge(self, action, one, two):
            super()._judge(action, one, two)

    monkeypatch.setattr(query_sandbox, "Authorizer", Yes)
    with pytest.raises(Leak):
        fuzz(1, 500)


def test_an_authorizer_that_forgets_one_field_is_caught(monkeypatch):
    class Forgets(query_sandbox.Authorizer):
        def _read(self, table, column):
            return None if column == "speed" else super()._read(table, column)

    monkeypatch.setattr(query_sandbox, "Authorizer", Forgets)
    with pytest.raises(Leak):
        fuzz(1, 500)


BOMB = """
from tests.federated.device.test_query_sandbox import *
from pathlib import Path
admitted = SANDBOX.admit(SqlQuery("SELECT count(*) FROM (SELECT DISTINCT a.ngram || a.time || b.ngram || b.time"
    " || c.ngram || c.ngram || c.ngram || c.time FROM keyboard a, keyboard b, keyboard c)"))
events = Events(many=2_000)
events.rows["keyboard"]["ngram"] = ["x" * 700] * 2_000
failure = SANDBOX.run(admitted, events).failure
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(failure, int(status["VmHWM"].split()[0]) // 1024)  # getrusage counts what the process before exec had, too
print(run("SELECT max(age) FROM profile").failure)
"""


@pytest.mark.slow
def test_memory_is_bounded_and_the_next_query_runs():
    said = subprocess.run([sys.executable, "-c", BOMB], capture_output=True, text=True, check=True).stdout.split()
    assert said[0] == "QueryFailure.MEMORY"
    assert int(said[1]) < 600
    assert said[2] == "None"


def test_a_query_of_few_and_long_steps_ends_by_its_seconds():
    """A step may trim a text of 3,900 letters by a set of 250: 16,000 of them were let run, up to ten seconds."""
    sandbox = QuerySandbox(STREAMS, ANY, QueryLimits(seconds=0.1))
    by = "b" * 250 + "a"
    slow = f"SELECT sum(length(trim(a.ngram, '{by}') || rtrim(a.ngram, '{by}'))) FROM keyboard a, keyboard b"
    events = Events(many=100)
    events.rows["keyboard"]["ngram"] = ["a" * 3_900] * 100
    admitted, begun = sandbox.admit(SqlQuery(slow)), process_time()
    assert sandbox.run(admitted, events).failure is QueryFailure.STEPS
    assert process_time() - begun < 1
