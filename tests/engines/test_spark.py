"""A table on Spark gives the votes of memory, on a cluster of tests' own: no Java, tasks that fail, any order."""

import pickle
import random
import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from types import SimpleNamespace

import geopandas
import numpy as np
import pyarrow as pa
import pytest
import shapely
from tests.tables.people import BOX, DEEP, HEXAGONS, QUADTREE, RULES, arrow, crowd, same

from hazemap.cells import Leaves
from hazemap.engines import spark, spark_messages, spark_tasks
from hazemap.engines.streaming import keyed_hash as hashes
from hazemap.errors import FileError, InputError, TableError
from hazemap.execution.crash_recovery import recover
from hazemap.execution.journal import Journal
from hazemap.privacy.ledger import Ledger
from hazemap.publish import release
from hazemap.readers import open_table as opening
from hazemap.readers import spark_tables
from hazemap.readers.open_table import open_table
from hazemap.sources.source import LocalFiles, SparkCatalogueTable, parse_source
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.district_layers import DistrictLayer
from hazemap.spatial.districts import Districts
from hazemap.specs.table_spec import TableSpec
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, Outside, OwnMeans, RowIsPerson
from hazemap.temporal.time_slots import Clock
from hazemap.values.cell_slot_counters import CellTimeSlots, ObservedCellSlots
from hazemap.values.value_encoding import ValueEncoding

SPARK_TYPES = {"int64": "bigint", "double": "double", "string": "string", "timestamp[us, tz=UTC]": "timestamp"}
SOME = [AtMostRows(3), AtMostCells(2), OneVote(100), OneVote(7, Outside.PEOPLE), AtMostRows(2, Outside.PEOPLE)]
SOME += [RowIsPerson(), RowIsPerson(Outside.COUNT), AtMostCells(3, Outside.COUNT)]


class Cluster:
    """What a DataFrame of Spark does, in this process: each task in turn, from the parts that shuffles make.

    `failing` has each task die once in its middle, and be tried again; `torn` has a shuffle deal rows of one slice to
    two tasks, which Spark never does.
    """

    __module__ = "pyspark.sql.tests"
    isStreaming = False  # noqa: N815 - as Spark calls it

    def __init__(self, parts, schema, conf, *, failing=False, torn=False):
        self.parts, self.conf, self._schema = parts, conf, schema
        self.failing, self.torn = failing, torn
        self.sparkSession = SimpleNamespace(conf=SimpleNamespace(get=conf.get))

    @classmethod
    def of(cls, table, parts=3, batch=500, **options):
        cut = np.linspace(0, table.num_rows, parts + 1).astype(int)
        rows = [table.slice(a, b - a).to_batches(max_chunksize=batch) for a, b in pairwise(cut)]
        conf = {"spark.sql.shuffle.partitions": "2", "spark.sql.caseSensitive": "false"}
        return cls([*rows, []], table.schema, conf, **options)

    @property
    def schema(self):
        return [
            SimpleNamespace(name=f.name, dataType=SimpleNamespace(simpleString=lambda f=f: SPARK_TYPES[str(f.type)]))
            for f in self._schema
        ]

    @property
    def columns(self):
        return self._schema.names

    def _made(self, parts):
        return Cluster(parts, self._schema, self.conf, failing=self.failing, torn=self.torn)

    def where(self, condition):
        assert condition
        return self  # it may leave rows out, and need not

    def selectExpr(self, *asked):  # noqa: N802 - as Spark calls it
        names = [re.fullmatch(r"`(.*)` AS c\d+", each)[1].replace("``", "`") for each in asked]
        return self._made([[batch.select(names) for batch in part] for part in self.parts])

    def mapInArrow(self, work, schema):  # noqa: N802 - as Spark calls it
        found = []
        for number, part in enumerate(self.parts):
            spark_tasks.number_of_part = lambda number=number: number
            if self.failing:
                next(work(iter(part[:1])), None)
            found.append(list(work(iter(part))))
        return self._made(found)

    def repartition(self, column):
        assert column == "slice"
        chance, dealt = random.Random(7), [[], [], []]
        rows = [(row["slice"], row) for part in self.parts for batch in part for row in batch.to_pylist()]
        chance.shuffle(rows)
        for at, (where, row) in enumerate(rows):
            dealt[(at if self.torn else where) % 3].append(row)
        return self._made([self._batches(part) for part in dealt])

    def sortWithinPartitions(self, *columns):  # noqa: N802 - as Spark calls it
        rows = [[row for batch in part for row in batch.to_pylist()] for part in self.parts]
        return self._made([self._batches(sorted(part, key=lambda row: [row[c] for c in columns])) for part in rows])

    def toArrow(self):  # noqa: N802 - as Spark calls it
        return pa.Table.from_batches([batch for part in self.parts for batch in part])

    def toLocalIterator(self):  # noqa: N802 - as Spark calls it
        return (SimpleNamespace(**row) for part in self.parts for batch in part for row in batch.to_pylist())

    @staticmethod
    def _batches(rows):
        kinds = pa.schema([("slice", pa.int32()), ("part", pa.int64()), ("seq", pa.int64()), ("data", pa.binary())])
        return [pa.RecordBatch.from_pylist(rows[i : i + 40], schema=kinds) for i in range(0, len(rows), 40)]


@pytest.fixture(autouse=True)
def few_slices(monkeypatch):
    monkeypatch.setattr(spark, "SLICES", 5)
    monkeypatch.setattr(spark_tasks, "number_of_part", spark_tasks.number_of_part)


def on_spark(memory, options=None, **about):
    value = "weight" if "weight" in memory.columns else None
    return open_table(Cluster.of(arrow(memory), **(options or {})), key=memory.key, value=value, **about)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_every_rule_gives_the_votes_of_memory(rule):
    memory = crowd(200, 3_000)
    rows = on_spark(memory)
    for tree in (QUADTREE, DEEP, HEXAGONS):
        assert same(rows.votes(tree, rule), memory.votes(tree, rule))


def test_tasks_that_die_in_their_middle_change_nothing():
    memory = crowd(50, 2_000)
    rows = on_spark(memory, {"failing": True})
    for rule in SOME:
        assert same(rows.votes(QUADTREE, rule), memory.votes(QUADTREE, rule)), rule
    assert (rows.report.rows, rows.report.without_person) == (2_000, 0)


def test_an_empty_table_has_no_votes():
    rows = Cluster.of(arrow(crowd(5, 50)).slice(0, 0))
    assert not any(len(open_table(rows).votes(QUADTREE, rule).cells) for rule in SOME)


def test_people_with_names_are_those_of_the_other_engine_however_long_they_are(monkeypatch):
    monkeypatch.setattr(spark_messages, "AT_ONCE", 7)
    monkeypatch.setattr(spark_messages, "LETTERS", 1_000)
    memory = crowd(100, 1_000)
    names = [None if who % 11 == 0 else f"person-{who}" + "é" * (int(who) % 130) for who in memory.person]
    table = pa.table({"user": names, **memory.columns})
    here, there = (open_table(each, key=3, value="weight") for each in (table, Cluster.of(table)))
    for rule in SOME[:5]:
        assert same(here.votes(QUADTREE, rule), there.votes(QUADTREE, rule)), rule
        assert here.report.without_person == there.report.without_person > 0


def test_two_names_with_the_same_hash_stay_two_people(monkeypatch):
    monkeypatch.setattr(hashes, "seeds_of_texts", lambda _data, ends, *_words: np.full(len(ends) - 1, 9, np.uint64))
    table = pa.table({"user": ["a", "b", "", "ab"] * 2, "lon": [13.3] * 8, "lat": [52.5] * 8})
    assert open_table(Cluster.of(table), key=1).votes(QUADTREE, AtMostRows(1)).weights.sum() == 4


def test_people_who_do_not_fit_a_task_are_cut_into_more_slices(monkeypatch):
    memory = crowd(10_000, 15_000)
    tight = on_spark(memory, memory_limit=1 << 16)
    assert same(tight.votes(QUADTREE, OneVote()), memory.votes(QUADTREE, OneVote()))
    assert tight.report.passes > 1 and tight.report.rows == 15_000
    monkeypatch.setattr(spark_messages, "MOST_SLICES", 5)  # where there are no more, the limit is passed
    assert same(on_spark(memory, memory_limit=1 << 16).votes(DEEP, OneVote()), memory.votes(DEEP, OneVote()))


def valued(rows: int) -> pa.Table:
    """People with speeds, some missing, at hours of a day."""
    memory, at = crowd(60, rows), np.arange(rows)
    times = pa.array(1_714_521_600_000_000 + at % 48 * 1_800_000_000).cast(pa.timestamp("us", "UTC"))
    speed = pa.array(np.where(at % 7 == 0, np.nan, at % 60))
    return pa.table({"user": memory.person, **memory.columns, "time": times, "speed": speed})


def written(table: pa.Table) -> pa.Table:
    """The same with its times as texts of several offsets, and one among them that is no time of anybody's."""
    texts = []
    for i, time in enumerate(table["time"].to_pylist()):
        ahead = timedelta(hours=i % 3)
        texts.append(f"{time + ahead:%Y%m%dT%H%M%S} +{i % 3:02}:00" if i % 2 else f"{time:%Y-%m-%d %H:%M:%S.%f}")
    odd = table.slice(0, 1).set_column(table.schema.get_field_index("time"), "time", pa.array(["2024-05-01 12:00 BST"]))
    table = table.set_column(table.schema.get_field_index("time"), "time", pa.array(texts))
    return pa.concat_tables([odd, table])


def districts() -> Districts:
    edges = [(13.0, 52.3, 13.3, 52.7), (13.3, 52.3, 13.8, 52.5), (13.3, 52.5, 13.8, 52.7)]
    shapes = [shapely.box(*edge) for edge in edges]
    return Districts.of(DistrictLayer(geopandas.GeoDataFrame({"name": list("wsn")}, geometry=shapes, crs="EPSG:4326")))


def check_values(table: pa.Table, frame: object) -> None:
    """Statistics of values, in a window of time, and shares are the same of both."""
    asked = {"key": 3, "measured": "speed", "timed": True, "since": "2024-05-01T03:00", "until": "2024-05-01T20:30"}
    here, there = (open_table(each, box=BOX, **asked) for each in (table, frame))
    counters = CellTimeSlots(Leaves.at_level(QUADTREE, 3), Clock.hours("UTC"), ValueEncoding(0, 50))
    rule = OwnMeans(3, records=2, scale=counters.value_encoding.scale)
    votes = here.votes(counters, rule)
    assert same(votes, there.votes(counters, rule)) and len(votes.cells)
    places = ObservedCellSlots(QUADTREE, Clock.hours("UTC"), ValueEncoding(0, 50))
    one, other = (rows.pairs(places) for rows in (here, there))
    assert np.array_equal(one.sums, other.sums) and len(one.sums)
    assert np.array_equal(one.whereabouts.place, other.whereabouts.place)


def test_values_times_and_districts_are_those_of_the_other_engine():
    table = valued(3_000)
    check_values(table, Cluster.of(written(table)))
    here, there = (open_table(each, key=1) for each in (table, Cluster.of(table)))
    for rule in SOME:
        assert same(here.votes(districts(), rule), there.votes(districts(), rule))


def test_a_fingerprint_is_that_of_the_other_engine():
    memory = crowd(3_000, 6_000)
    here, there = open_table(arrow(memory), key=1), on_spark(memory)
    for rule in (AtMostRows(2), RowIsPerson()):
        for rows in (here, there):
            rows.watch(b"key of the ledger")
            rows.votes(QUADTREE, rule)
        assert here.fingerprint == there.fingerprint is not None


def test_a_shuffle_that_tears_people_apart_counts_for_nothing():
    with pytest.raises(TableError, match="two tasks"):
        on_spark(crowd(50, 2_000), {"torn": True}).votes(QUADTREE, AtMostRows(1))


def test_an_error_in_words_comes_from_the_task_and_another_version_is_one(monkeypatch):
    rows = on_spark(crowd(5, 50))
    task = rows._task(QUADTREE, OneVote(), 4)
    assert pickle.loads(pickle.dumps(task)) == task
    monkeypatch.setattr(spark_tasks, "__version__", "0.0.1")
    with pytest.raises(TableError, match=r"have hazemap 0.0.1, and this is .*: install the same"):
        rows.votes(QUADTREE, OneVote())


def test_an_error_of_spark_shows_no_row_and_no_address():
    class Refused(Exception):
        __module__ = "pyspark.errors"

    for text, told in (("[CAST_INVALID_INPUT] The value 'ann'", "CAST_INVALID_INPUT"), ("token=abc", "Refused")):
        with pytest.raises(FileError) as caught, spark.explained("the DataFrame"):
            raise Refused(text)
        assert told in str(caught.value) and "ann" not in str(caught.value) and "abc" not in str(caught.value)
    with pytest.raises(TableError, match="install hazemap"), spark.explained("x"):
        raise Refused("ModuleNotFoundError: No module named 'hazemap'")


def test_what_spark_may_leave_out_is_asked_for_in_its_own_types():
    feed = spark_tables.SparkRows("x", None, {"a`b": "double", "n": "int", "t": "timestamp", "d": "date"})
    assert feed.inside(["a`b", "n"], Box(-1.5, 2.0, 3.0, 4.0)).conditions == (
        "`a``b` BETWEEN CAST('-1.5' AS DOUBLE) AND CAST('3.0' AS DOUBLE)",
    )
    since, until = datetime(2024, 5, 1, 2, tzinfo=UTC), datetime(2024, 5, 2, 3, tzinfo=UTC)
    assert feed.during("t", since, until).conditions == (
        "`t` >= TIMESTAMP '2024-05-01 02:00:00+00:00'",
        "`t` < TIMESTAMP '2024-05-02 03:00:00+00:00'",
    )
    assert feed.during("d", since, until).conditions == ("`d` >= DATE '2024-05-01'", "`d` <= DATE '2024-05-02'")
    assert feed.during("n", since, until).conditions == ()


def test_frames_that_cannot_serve_are_refused():
    table = pa.table({"user": [1], "lon": [2.0], "lat": [3.0]})
    twice = Cluster.of(table.append_column("LON", pa.array([2.0])))
    with pytest.raises(TableError, match="two columns called 'lon'"):
        open_table(twice)
    endless = Cluster.of(table)
    endless.isStreaming = True
    with pytest.raises(TableError, match="no end"):
        open_table(endless)


def test_a_name_of_spark_is_a_name_and_holds_no_secret():
    assert parse_source("spark:lake.db.visits").dataset == "visits"
    assert str(parse_source("spark:visits").absolute) == "spark:visits"
    assert isinstance(TableSpec("SPARK:`my visits`").address, SparkCatalogueTable)
    assert isinstance(parse_source("spark.csv"), LocalFiles)
    secrets = [f"parquet.`s3a://{each}`" for each in ("me:hunter2@b/x", "me:a/hunter2@b/x", "b/x?sig=hunter2")]
    for name in ("", "a b", "SELECT 1", "a;b", "a..b", "`a", "//host:7077", *secrets, "a" * 2000):
        with pytest.raises(InputError) as refused:
            TableSpec(f"spark:{name}")
        assert "hunter2" not in str(refused.value)


@pytest.mark.slow
def test_a_paid_run_on_spark_is_recovered_where_somebody_vouches_for_its_rows(tmp_path, monkeypatch):
    memory, ledger = crowd(300, 5_000), Ledger(tmp_path / "ledger")
    monkeypatch.setattr(
        opening, "open_spark_table", lambda name: spark_tables.open_spark_frame(Cluster.of(arrow(memory)), name)
    )
    asked = {"person": "user", "epsilon": 1, "box": "13.0,52.3,13.8,52.7", "ledger": ledger, "dataset": "city"}

    def dies(*_arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "ask", dies)
        for source in ("spark:lake.visits", Cluster.of(arrow(memory))):
            with pytest.raises(KeyboardInterrupt):
                release(source, **asked)
    with pytest.raises(FileError, match=r"spark:lake.visits is in Spark, .*say so \(--same-table") as told:
        recover(1, ledger=ledger)
    assert "database" not in str(told.value)
    with pytest.raises(InputError, match=r"handed over in Python: .*recover\(2, source=table\)"):
        recover(2, ledger=ledger)
    assert recover(1, ledger=ledger, same_table=True).statement
    assert recover(2, ledger=ledger, source=Cluster.of(arrow(memory))).statement
    assert len(ledger.history()) == 2


def test_who_has_no_pyspark_is_told_how_to_get_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyspark.errors", None)
    monkeypatch.setitem(__import__("sys").modules, "pyspark", None)
    with pytest.raises(InputError, match=r"hazemap\[spark\].*Java 17"):
        open_table("spark:lake.db.visits")
