"""Tables in buckets give the votes of the same files here: files, folders, patterns, and parts in names of folders."""

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from tests.readers.fake_gcs import fake_gcs
from tests.tables.people import QUADTREE, crowd, same

from hazemap.cli.main import main
from hazemap.errors import FileError, TableError
from hazemap.execution.crash_recovery import recover
from hazemap.execution.journal import Journal
from hazemap.privacy.ledger import Ledger
from hazemap.publish import release
from hazemap.readers import parquet_files, stored_file, stored_folder
from hazemap.readers.open_table import open_table
from hazemap.sources.source import parse_source
from hazemap.tables.contribution_bounding import AtMostRows, OneVote, RowIsPerson

pytest.importorskip("moto")

SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
AREA = "13.0,52.3,13.8,52.7"
PEOPLE = crowd(300, 5_000)
ROWS = pa.table({"user": PEOPLE.person, **PEOPLE.columns})
ROWS = ROWS.append_column("day", [[f"2024-05-{1 + i % 3:02}" for i in range(len(ROWS))]])
ROWS = ROWS.append_column("city", [(["Köln", "a b", None, "1"] * len(ROWS))[: len(ROWS)]])
ROWS = ROWS.sort_by([("city", "ascending"), ("day", "ascending")])


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").disabled = True
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(address, monkeypatch) -> Iterator[Any]:
    """The store of a bucket `city`, with what the readers find in the environment."""
    from pyarrow import fs

    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "eu-central-1",
        "AWS_ENDPOINT_URL": address,
    }.items():
        monkeypatch.setenv(name, value)
    stored_folder.filesystem.cache_clear()
    store = fs.S3FileSystem(endpoint_override=address, allow_bucket_creation=True, allow_bucket_deletion=True)
    store.create_dir("city")
    yield store
    store.delete_dir("city")
    stored_folder.filesystem.cache_clear()


def put(store: Any, folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file():
            with store.open_output_stream(f"city/{file.relative_to(folder)}") as goal:
                goal.write(file.read_bytes())


def votes(source, rule=RowIsPerson(), **options):  # noqa: B008 - a value
    return open_table(source, key=b"k" * 16, **options).votes(QUADTREE, rule)


@pytest.fixture
def lake(tmp_path) -> Path:
    """A folder of files as writers leave them: one file, parts by city and day, lines."""
    from pyarrow import csv

    folder = tmp_path / "lake"
    folder.mkdir()
    pq.write_table(ROWS, folder / "visits.parquet", row_group_size=1_000)
    ds.write_dataset(ROWS, folder / "parts", format="parquet", partitioning=["city", "day"], partitioning_flavor="hive")
    (folder / "lines").mkdir()
    for i in range(2):
        csv.write_csv(ROWS.slice(i * 2_000, 2_000), folder / "lines" / f"{i}.csv")
    (folder / "parts" / "_temporary").mkdir()
    (folder / "parts" / "_temporary" / "half.parquet").write_bytes(b"PAR1")
    return folder


def test_a_bucket_gives_the_votes_of_the_same_files_here(s3, lake):
    put(s3, lake)
    options = {"time": "day", "since": "2024-05-02"}
    for rule in (AtMostRows(2), OneVote(1000)):
        assert same(votes("s3://city/visits.parquet", rule), votes(lake / "visits.parquet", rule))
        assert same(votes("s3://city/parts", rule, **options), votes(lake / "parts", rule, **options))
        assert same(votes("s3://city/lines", rule), votes(lake / "lines", rule))
        assert same(votes("s3://city/lines/?.csv", rule), votes(lake / "lines", rule))
    assert same(votes("s3://city/parts/city=a%20b/**/*.parquet"), votes(str(lake / "parts/city=a%20b/**/*.parquet")))


@pytest.mark.slow
def test_gs_gives_the_votes_of_the_same_files_here(lake, monkeypatch):
    stored_folder.filesystem.cache_clear()
    with fake_gcs(lake) as place:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", place)
        for name in ("visits.parquet", "parts", "lines/*.csv"):
            assert same(votes(f"gs://lake/{name}", AtMostRows(2)), votes(str(lake / name), AtMostRows(2)))
        with pytest.raises(FileError, match="no object has the name"):
            votes("gs://lake/nothing.parquet")
    stored_folder.filesystem.cache_clear()


def test_columns_in_names_of_folders_are_texts_and_numbers_one_by_one(lake):
    of_day = {"time": "day", "since": "2024-05-02", "until": "2024-05-03"}
    assert same(votes(lake / "parts", **of_day), votes(lake / "visits.parquet", **of_day))
    assert same(votes(lake / "parts"), votes(lake / "visits.parquet"))
    table = open_table(lake / "parts", key=b"k" * 16, value="city")
    only = ROWS.filter(pa.compute.equal(ROWS["city"], "1"))
    weighted = open_table(only.append_column("one", [[1.0] * len(only)]), key=b"k" * 16, value="one")
    assert same(table.votes(QUADTREE, OneVote(1000)), weighted.votes(QUADTREE, OneVote(1000)))


def test_folders_of_days_outside_of_the_time_are_not_opened(lake, monkeypatch):
    opened, real = [], parquet_files.opened_parquet
    monkeypatch.setattr(parquet_files, "opened_parquet", lambda file: opened.append(str(file)) or real(file))
    (lake / "parts" / "city=x" / "day=no day").mkdir(parents=True)
    pq.write_table(ROWS.slice(0, 10).select(["user", "lon", "lat"]), lake / "parts" / "city=x" / "day=no day" / "1.pq")
    table = open_table(lake / "parts", key=b"k" * 16, time="day", since="2024-05-02", until="2024-05-03")
    opened.clear()
    wanted = votes(lake / "visits.parquet", time="day", since="2024-05-02", until="2024-05-03")
    assert same(table.votes(QUADTREE, RowIsPerson()), wanted)
    assert opened and all("day=2024-05-02" in each or "no day" in each for each in opened if "parts" in each)
    noon = {"time": "day", "since": "2024-05-01T12:00:00", "until": "2024-05-02T00:00:00.001"}
    assert same(votes(lake / "parts", **noon), wanted)


def test_a_person_in_a_name_of_a_folder_and_a_column_that_files_have_too(tmp_path):
    for who in ("7", "8", "x"):
        (tmp_path / f"user={who}").mkdir()
        rows = pa.table({"lon": [13.1] * 5, "lat": [52.5] * 5, "day": [1] * 5})
        pq.write_table(rows, tmp_path / f"user={who}" / "day=2.parquet")
    assert votes(tmp_path, AtMostRows(1)).weights.sum() == 3
    (tmp_path / "user=9").mkdir()
    pq.write_table(pa.table({"lon": [13.1], "lat": [52.5], "user": [7]}), tmp_path / "user=9" / "own.parquet")
    assert votes(tmp_path, AtMostRows(1)).weights.sum() == 3  # what a file says of itself goes first


def test_what_is_not_there_or_may_not_be_read_is_refused_in_words(s3, monkeypatch, address):
    with pytest.raises(FileError, match="no object has the name, folder or pattern s3://city/none"):
        votes("s3://city/none")
    s3.create_dir("city/full")
    with s3.open_output_stream("city/full/notes.md") as goal:
        goal.write(b"words")
    with pytest.raises(FileError, match="holds no Parquet, CSV or point file"):
        votes("s3://city/full")
    with s3.open_output_stream("city/full/p.geojson") as goal:
        goal.write(b"{}")
    with pytest.raises(TableError, match="download"):
        votes("s3://city/full/p.geojson")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(stored_folder, "PATIENCE", 0.2)
    stored_folder.filesystem.cache_clear()
    with pytest.raises(FileError, match="cannot be reached") as refused:
        votes("s3://city/visits.parquet")
    assert "127.0.0.1" not in str(refused.value) and SECRET not in str(refused.value)


def test_an_object_that_changes_in_the_middle_counts_for_nothing(s3, lake, monkeypatch, tmp_path):
    put(s3, lake)
    real, read = stored_file.RangeFile.read, []

    def watched(self, size=-1, /):
        data = real(self, size)
        read.append(size)
        if len(read) == 6:  # the same size, other rows
            other = (lake / "visits.parquet").read_bytes()
            with s3.open_output_stream("city/visits.parquet") as goal:
                goal.write(other[:-300] + bytes(10) + other[-290:])
        return data

    monkeypatch.setattr(stored_file.RangeFile, "read", watched)
    ledger = Ledger(tmp_path / "ledger")
    with pytest.raises(FileError, match="was changed while it was read"):
        release("s3://city/visits.parquet", person="user", epsilon=1, box=AREA, ledger=ledger)
    assert list(ledger.history()) == []


@pytest.mark.slow
def test_a_run_that_was_cut_off_is_recovered_and_no_key_is_written(s3, lake, monkeypatch, tmp_path, home, capsys):
    put(s3, lake)
    goal, source = tmp_path / "map.parquet", "s3://city/parts"

    def dies(*_arguments):
        raise KeyboardInterrupt

    for _ in range(2):
        with monkeypatch.context() as patched:
            patched.setattr(Journal, "answer", dies)
            with pytest.raises(KeyboardInterrupt):
                release(source, person="user", epsilon=1, box=AREA, output=goal)
    kept = b"".join(each.read_bytes() for each in home.rglob("*") if each.is_file())
    assert source.encode() in kept and SECRET.encode() not in kept and b"AKIA" not in kept
    recover(1)
    assert main(["inspect", str(goal)]) == 0 and SECRET not in "".join(capsys.readouterr())
    goal.unlink()
    shutil.copy(lake / "visits.parquet", lake / "parts" / "more.parquet")
    put(s3, lake)
    with pytest.raises(FileError, match="was changed since"):
        recover(2)


def test_tables_elsewhere_are_named_after_their_last_name_without_signs():
    named = {"s3://city/trips/*.parquet": "trips", "gs://city": "city", "https://host.example/a/nyc.csv.gz": "nyc"}
    assert {source: parse_source(source).dataset for source in named} == named
