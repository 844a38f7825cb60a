"""Spark itself, classic and Connect, gives the votes of the same rows in memory, or none at all."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from tests.engines.test_spark import check_values, districts, valued, written
from tests.tables.people import DEEP, HEXAGONS, QUADTREE, arrow, crowd, same

from hazemap.engines import spark
from hazemap.errors import FileError, InputError, TableError
from hazemap.privacy.ledger import Ledger
from hazemap.publish import release
from hazemap.readers.open_table import open_table
from hazemap.readers.spark_tables import session
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, Outside, RowIsPerson

pytestmark = pytest.mark.slow
pytest.importorskip("pyspark", reason="pyspark is not installed here: make .venv/spark")
if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
    pytest.skip("Java is not installed here: make .venv/spark", allow_module_level=True)

SOME = [AtMostRows(3), AtMostCells(2), OneVote(100, Outside.PEOPLE), RowIsPerson()]
AREA = "13.0,52.3,13.8,52.7"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two threads of a session of Spark whose tasks may fail once."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    there = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(there / "warehouse"),
        "spark.local.dir": str(there / "local"),
        "spark.log.level": "ERROR",
    }
    maker = SparkSession.builder.master("local[2,2]")
    for name, value in settings.items():
        maker = maker.config(name, value)
    made = maker.getOrCreate()
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def few_slices(monkeypatch):
    monkeypatch.setattr(spark, "SLICES", 5)


def test_votes_are_those_of_memory(cluster):
    memory = crowd(300, 5_000)
    table = open_table(cluster.createDataFrame(arrow(memory)), value="weight", key=memory.key)
    for rule in SOME:
        assert same(table.votes(QUADTREE, rule), memory.votes(QUADTREE, rule)), rule
    for tree in (DEEP, HEXAGONS, districts()):
        assert same(table.votes(tree, AtMostRows(3)), memory.votes(tree, AtMostRows(3))), tree


def test_values_times_and_names_are_those_of_the_other_engine(cluster):
    table = valued(3_000)
    for each in (table, written(table)):
        check_values(table, cluster.createDataFrame(each))
    names = [None if i % 9 == 0 else f"ann {i % 40}" for i in range(3_000)]
    named = table.set_column(0, "user", pa.array(names))
    here, there = (open_table(each, key=2) for each in (named, cluster.createDataFrame(named)))
    assert same(here.votes(QUADTREE, AtMostRows(2)), there.votes(QUADTREE, AtMostRows(2)))


def test_a_task_that_fails_once_changes_no_vote_and_charges_once(cluster, tmp_path):
    """A worker of Spark is killed in its middle, once; Spark tries its task again."""
    memory, died = crowd(300, 5_000), tmp_path / "died"

    def killed_once(batches):
        for batch in batches:
            yield batch
            if not died.exists():
                died.touch()
                os.kill(os.getpid(), 9)

    whole = cluster.createDataFrame(arrow(memory))
    frame = whole.mapInArrow(killed_once, whole.schema)
    table = open_table(frame, value="weight", key=memory.key)
    assert same(table.votes(QUADTREE, AtMostRows(3)), memory.votes(QUADTREE, AtMostRows(3))) and died.exists()
    died.unlink()
    book = Ledger(tmp_path / "ledger.sqlite")
    made = release(frame, person="user", epsilon=1, box=AREA, dataset="city", ledger=book)
    assert died.exists() and made.statement
    assert [str(each.charge.price) for each in book.history("city")] == ["ε = 1"]


def test_tasks_that_always_fail_publish_and_cost_nothing_and_no_message_quotes_a_row(cluster, tmp_path):
    frame = cluster.createDataFrame(arrow(crowd(5, 50))).selectExpr(
        "user", "lon", "CAST('Mitte ' || lat AS INT) AS lat"
    )
    book = Ledger(tmp_path / "ledger.sqlite")
    with pytest.raises(FileError, match="CAST_INVALID_INPUT") as failure:
        release(frame, person="user", epsilon=1, box=AREA, dataset="city", ledger=book)
    assert "Mitte" not in str(failure.value)
    with pytest.raises(InputError, match="knows no data set"):
        book.history("city")


def test_a_name_on_the_command_line_is_a_table_of_the_catalogue(cluster, tmp_path, monkeypatch):
    memory = crowd(300, 5_000)
    cluster.sql("CREATE DATABASE IF NOT EXISTS lake")
    cluster.createDataFrame(arrow(memory)).write.mode("overwrite").saveAsTable("lake.visits")
    assert session() is not None
    book = Ledger(tmp_path / "ledger.sqlite")
    release("spark:lake.visits", person="user", epsilon=1, box=AREA, ledger=book)
    assert len(book.history("visits")) == 1
    with pytest.raises(FileError, match="TABLE_OR_VIEW_NOT_FOUND"):
        open_table("spark:lake.nowhere")
    cluster.sql("CREATE OR REPLACE VIEW lake.odd AS SELECT user, lon, array(lat) AS lat FROM lake.visits")
    with pytest.raises(TableError, match="must be numbers"):
        open_table("spark:lake.odd")


CONNECTED = """
import json, sys
from pyspark.sql import SparkSession
from hazemap.engines import spark
from hazemap.readers.open_table import open_table
from tests.engines.test_spark import check_values, valued
from tests.tables.people import QUADTREE, crowd, arrow, same
from hazemap.tables.contribution_bounding import AtMostRows, OneVote, RowIsPerson

spark.SLICES = 5
maker = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
session = maker.config("spark.sql.shuffle.partitions", "2").getOrCreate()
memory = crowd(300, 5_000)
frame = session.createDataFrame(arrow(memory))
table = open_table(frame, value="weight", key=memory.key)
rules = (AtMostRows(3), OneVote(), RowIsPerson())
found = [same(table.votes(QUADTREE, rule), memory.votes(QUADTREE, rule)) for rule in rules]
check_values(valued(1_000), session.createDataFrame(valued(1_000)))
print(json.dumps([type(frame).__module__, *found]))
"""


def test_spark_connect_gives_the_same_votes(tmp_path):
    root = Path(__file__).parents[2]
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))}
    about = plain | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(root)}
    command = [sys.executable, "-c", CONNECTED]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, env=about, timeout=1200)
    assert done.returncode == 0, done.stderr[-3000:]
    module, *found = json.loads(done.stdout.splitlines()[-1])
    assert "connect" in module and found == [True] * 3
