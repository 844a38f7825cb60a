"""Delta and Iceberg tables, written by their own libraries, give the votes of their rows, and of no others."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.readers.test_bucket_files import address, put, s3, votes  # noqa: F401 - fixtures
from tests.tables.people import crowd, same

from hazemap.errors import FileError, TableError
from hazemap.execution.run import fingerprint
from hazemap.sources.source import parse_source
from hazemap.tables.contribution_bounding import AtMostRows, OneVote

deltalake = pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

PEOPLE = crowd(200, 2_000)
ROWS = pa.table({"user": PEOPLE.person, **PEOPLE.columns})
ROWS = ROWS.append_column("city", [(["Köln/Deutz", "a b", None, "50%"] * len(ROWS))[: len(ROWS)]])
ROWS = ROWS.append_column("at", [pa.array(range(len(ROWS)), pa.timestamp("us", "UTC"))])


def of_others(rows: pa.Table, person: int) -> pa.Table:
    return rows.filter(pc.not_equal(rows["user"], person))


WHO = int(PEOPLE.person[0])


@pytest.fixture
def delta(tmp_path) -> Path:
    """Four folders of a city each, without one person, whose rows are still in files that count no more."""
    place = tmp_path / "visits"
    deltalake.write_deltalake(place, ROWS, partition_by=["city"])
    deltalake.DeltaTable(place).delete(f"user = {WHO}")
    return place


def both(place: Any, wanted: pa.Table) -> None:
    """The rules that do not look at the order of rows, which is the writer's."""
    assert same(votes(place), votes(wanted))
    assert same(votes(place, OneVote(1000), time="at", since="1970-01-01"), votes(wanted, OneVote(1000)))


def test_a_delta_table_is_what_its_log_says(delta):
    both(delta, of_others(ROWS, WHO))
    one = votes(delta, mark="city=a b")
    assert same(one, votes(of_others(ROWS, WHO), mark="city=a b"))
    deltalake.DeltaTable(delta).create_checkpoint()
    more = ROWS.slice(0, 50).append_column("later", [pa.array([1] * 50, pa.int32())])
    deltalake.write_deltalake(delta, more, mode="append", schema_mode="merge")
    both(delta, pa.concat_tables([of_others(ROWS, WHO), ROWS.slice(0, 50)]))


def test_a_delta_table_in_a_bucket_is_the_same_and_is_seen_to_change(s3, delta, tmp_path):  # noqa: F811
    deltalake.DeltaTable(delta).create_checkpoint()
    put(s3, tmp_path)
    assert same(votes("s3://city/visits", AtMostRows(2)), votes(delta, AtMostRows(2)))
    before = fingerprint(parse_source("s3://city/visits")), fingerprint(parse_source(delta))
    deltalake.write_deltalake(delta, ROWS.slice(0, 50), mode="append")
    put(s3, tmp_path)
    assert fingerprint(parse_source("s3://city/visits")) != before[0]
    assert fingerprint(parse_source(delta)) != before[1]
    assert same(votes("s3://city/visits", AtMostRows(2)), votes(delta, AtMostRows(2)))


def commit(place: Path, *actions: dict) -> None:
    number = len(list((place / "_delta_log").glob("*.json")))
    (place / "_delta_log" / f"{number:020}.json").write_text("".join(json.dumps(each) + "\n" for each in actions))


def added(path: str) -> dict:
    told = {"path": path, "partitionValues": {"city": "x"}, "size": 100, "modificationTime": 0, "dataChange": True}
    return {"add": told}


@pytest.mark.parametrize("path", ["../other/v.parquet", "/etc/passwd", "s3://other/v.parquet", "city=x/gone.parquet"])
def test_a_delta_log_that_names_what_is_not_in_its_folder_is_refused(path, delta):
    commit(delta, added(path))
    with pytest.raises(FileError, match=r"not in its folder|damaged"):
        votes(delta)


def test_a_partition_that_is_no_value_of_its_type_is_refused_in_words(tmp_path):
    place = tmp_path / "visits"
    rows = ROWS.select(["user", "lon", "lat"]).append_column("part", pa.array([1] * len(ROWS), pa.int32()))
    deltalake.write_deltalake(place, rows, partition_by=["part"])
    (file,) = place.glob("part=1/*.parquet")
    told = added(f"part=1/{file.name}")
    told["add"]["partitionValues"] = {"part": "many"}
    commit(place, told)
    with pytest.raises(FileError, match=r"damaged|no value of a column's type"):
        votes(place)


def test_what_a_delta_table_needs_and_is_not_read_is_refused_by_name(delta):
    (delta / "_delta_log" / f"{9:020}.json").write_text("{")
    with pytest.raises(FileError, match=r"log of the Delta table .* damaged"):
        votes(delta)
    (delta / "_delta_log" / f"{9:020}.json").unlink()
    features = ["deletionVectors"]
    told = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    commit(delta, {"protocol": told})
    with pytest.raises(TableError, match="needs what is not read: deletionVectors"):
        votes(delta)


def test_rows_that_a_delta_log_deletes_are_not_counted_whatever_protocol_it_says(delta):
    """A deletion vector in a log whose protocol has none: some writer is wrong, and rows that are gone would count."""
    path = pa.table(deltalake.DeltaTable(delta).get_add_actions())["path"][0].as_py().replace("%", "%25")
    told = added(path)
    told["add"]["deletionVector"] = {
        "storageType": "i",
        "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        "sizeInBytes": 40,
        "cardinality": 6,
    }
    commit(delta, {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True}}, told)
    with pytest.raises((FileError, TableError), match=r"is damaged|deletionVectors"):
        votes(delta)


def test_a_file_of_a_wider_type_than_its_table_is_refused(delta):
    for file in delta.rglob("*.parquet"):
        rows = pq.ParquetFile(file).read()
        pq.write_table(rows.set_column(0, "user", pc.cast(rows["user"], pa.decimal128(38))), file)
    with pytest.raises(TableError, match=r"'user' of .* is int64"):
        votes(delta)


@pytest.fixture
def iceberg(tmp_path) -> Any:
    """A table by cities whose columns were renamed since, without one person."""
    from pyiceberg.catalog.memory import InMemoryCatalog
    from pyiceberg.transforms import IdentityTransform
    from pyiceberg.types import LongType

    catalog = InMemoryCatalog("test", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("n")
    table = catalog.create_table("n.visits", schema=ROWS.schema)
    with table.update_spec() as spec:
        spec.add_field("city", IdentityTransform(), "city")
    table.append(ROWS.rename_columns(table.schema().column_names))
    with table.update_schema() as schema:
        schema.rename_column("user", "who")
        schema.rename_column("lon", "user")  # a name that another column had
        schema.add_column("extra", LongType())
    with table.update_schema() as schema:
        schema.rename_column("user", "x")
    table.delete(f"who = {WHO}")
    return table


def test_an_iceberg_table_is_what_its_snapshot_says(iceberg, tmp_path):
    place = tmp_path / "n" / "visits"
    names = {"person": "who", "lon": "x", "lat": "lat"}
    wanted = of_others(ROWS, WHO)
    assert same(votes(place, OneVote(1000), **names), votes(wanted, OneVote(1000)))
    assert same(votes(place, **names, mark="city=50%"), votes(wanted, mark="city=50%"))
    assert same(votes(place, **names, time="at", until="1970-01-02"), votes(wanted))


def test_an_iceberg_table_that_was_moved_to_a_bucket_is_the_same(s3, iceberg, tmp_path):  # noqa: F811
    put(s3, tmp_path)
    names = {"person": "who", "lon": "x", "lat": "lat"}
    place = tmp_path / "n" / "visits"
    assert same(votes("s3://city/n/visits", AtMostRows(2), **names), votes(place, AtMostRows(2), **names))


def deleted(table: Any, place: Path, content: str = "POSITION_DELETES") -> int:
    """Write that the first and the third row of every file are gone, as engines do that merge when they read."""
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import (
        DataFile,
        DataFileContent,
        FileFormat,
        ManifestContent,
        ManifestEntry,
        ManifestEntryStatus,
        ManifestWriterV2,
        read_manifest_list,
        write_manifest_list,
    )

    class Deletes(ManifestWriterV2):
        def content(self) -> ManifestContent:
            return ManifestContent.DELETES

        @property
        def _meta(self) -> dict[str, str]:
            return {**super()._meta, "content": "deletes"}

    io, metadata, snapshot = PyArrowFileIO(), place / "metadata", table.current_snapshot()
    files = [task.file for task in table.scan().plan_files()]
    path = place / "data" / "deletes.parquet"
    named = [file.file_path for file in files for _ in range(2)]
    pq.write_table(pa.table({"file_path": named, "pos": pa.array([2, 0] * len(files), pa.int64())}), path)
    manifests = list(read_manifest_list(io.new_input(snapshot.manifest_list)))
    for number, file in enumerate(files):
        output = io.new_output(f"file://{metadata}/d{number}.avro")
        with Deletes(table.spec(), table.schema(), output, snapshot.snapshot_id, "null") as writer:
            told = DataFile.from_args(
                content=DataFileContent[content],
                file_path=f"file://{path}",
                file_format=FileFormat.PARQUET,
                partition=file.partition,
                record_count=2 * len(files),
                file_size_in_bytes=path.stat().st_size,
                equality_ids=[1] if content == "EQUALITY_DELETES" else None,
            )
            writer.add_entry(
                ManifestEntry.from_args(
                    status=ManifestEntryStatus.ADDED, snapshot_id=snapshot.snapshot_id, data_file=told
                )
            )
        manifests.append(writer.to_manifest_file())
    newest, goal = max(metadata.glob("*.metadata.json")), f"file://{metadata}/deletes-list.avro"
    about = json.loads(newest.read_text())
    sequence = about["last-sequence-number"] + 1
    with write_manifest_list(2, io.new_output(goal), snapshot.snapshot_id, None, sequence, "null") as written:
        written.add_manifests(manifests)
    about["last-sequence-number"] = sequence
    for each in about["snapshots"]:
        if each["snapshot-id"] == snapshot.snapshot_id:
            each.update({"manifest-list": goal, "sequence-number": sequence})
    newest.write_text(json.dumps(about))
    return len(files)


def test_rows_that_an_iceberg_table_deletes_by_their_places_do_not_count(iceberg, tmp_path):
    place, names = tmp_path / "n" / "visits", {"person": "who", "lon": "x", "lat": "lat"}
    paths = [task.file.file_path[7:] for task in iceberg.scan().plan_files()]
    files = [pq.ParquetFile(path).read().select([0, 1, 2]).rename_columns(["user", "lon", "lat"]) for path in paths]
    kept = pa.concat_tables(pa.concat_tables([rows.slice(1, 1), rows.slice(3)]) for rows in files)
    assert deleted(iceberg, place) == len(files) == 4
    assert same(votes(place, OneVote(1000), **names), votes(kept, OneVote(1000)))


def test_an_iceberg_table_that_deletes_by_equality_is_refused(iceberg, tmp_path):
    deleted(iceberg, tmp_path / "n" / "visits", "EQUALITY_DELETES")
    with pytest.raises(TableError, match="by equality"):
        votes(tmp_path / "n" / "visits", person="who", lon="x", lat="lat")


@pytest.mark.parametrize("fault", ["damaged", "elsewhere", "twice", "large"])
def test_iceberg_metadata_that_is_damaged_or_points_elsewhere_is_refused(fault, iceberg, tmp_path, monkeypatch):
    place = tmp_path / "n" / "visits"
    newest = max((place / "metadata").glob("*.metadata.json"))
    if fault == "damaged":
        newest.write_text("{")
    if fault == "elsewhere":
        (tmp_path / "secret.avro").write_bytes(b"Obj")
        told = json.loads(newest.read_text())
        for snapshot in told["snapshots"]:
            snapshot["manifest-list"] = f"file://{tmp_path}/secret.avro"
        newest.write_text(json.dumps(told))
    if fault == "twice":
        newest.with_name(newest.name.split("-")[0] + "-other.metadata.json").write_bytes(newest.read_bytes())
    if fault == "large":
        monkeypatch.setattr("hazemap.readers.lake_tables.LARGEST_METADATA", 100)
    words = {"damaged": "is damaged", "elsewhere": "not in its folder", "twice": "2 newest", "large": "too much"}
    with pytest.raises((FileError, TableError), match=words[fault]):
        votes(place, person="who", lon="x", lat="lat")


def test_a_hint_that_is_older_than_the_table_brings_back_no_version(iceberg, tmp_path):
    place = tmp_path / "n" / "visits"
    names = {"person": "who", "lon": "x", "lat": "lat"}
    files = sorted((place / "metadata").glob("*.metadata.json"))
    (place / "metadata" / "version-hint.text").write_text(files[-2].name)
    with pytest.raises(TableError, match="newer metadata than its version-hint"):
        votes(place, **names)
    for number, file in enumerate(files):  # as they are called where a commit is a change of name
        file.rename(file.with_name(f"v{number}.metadata.json"))
    (place / "metadata" / "version-hint.text").write_text(str(len(files) - 2))
    assert same(votes(place, OneVote(1000), **names), votes(of_others(ROWS, WHO), OneVote(1000)))


def test_packed_metadata_is_unpacked_no_further_than_it_may_be_long(iceberg, tmp_path, monkeypatch):
    place, names = tmp_path / "n" / "visits", {"person": "who", "lon": "x", "lat": "lat"}
    newest = max((place / "metadata").glob("*.metadata.json"))
    packed = newest.with_name(newest.name.replace(".metadata", ".gz.metadata"))
    packed.write_bytes(gzip.compress(newest.read_bytes()))
    newest.unlink()
    assert same(votes(place, OneVote(1000), **names), votes(of_others(ROWS, WHO), OneVote(1000)))
    monkeypatch.setattr("hazemap.readers.lake_tables.LARGEST_METADATA", 200_000)
    packed.write_bytes(gzip.compress(gzip.decompress(packed.read_bytes()) + b" " * 200_000))
    with pytest.raises(FileError, match="is damaged"):
        votes(place, **names)
    packed.write_bytes(gzip.compress(gzip.decompress(packed.read_bytes()).strip()))
    monkeypatch.setattr("hazemap.readers.iceberg_folder.LARGEST_BLOCK", 100)
    with pytest.raises(FileError, match="is damaged"):
        votes(place, **names)


def test_a_damaged_manifest_is_refused_and_ends_no_process(iceberg, tmp_path):
    """PyIceberg's compiled decoder of Avro reads past the end of bytes: lengths in a manifest ended the process."""
    place = tmp_path / "n" / "visits"
    for manifest in (place / "metadata").glob("*.avro"):
        data = bytearray(manifest.read_bytes())
        manifest.write_bytes(bytes(data[:5]) + b"\xff" * 8 + b"\x7f" + bytes(data[5:]))
    with pytest.raises(FileError, match="is damaged"):
        votes(place, person="who", lon="x", lat="lat")


def test_without_the_libraries_a_table_is_refused_and_not_read_as_files(delta, monkeypatch):
    import builtins

    real = builtins.__import__

    def none(name, *rest):
        if name.split(".")[0] in {"deltalake", "pyiceberg"}:
            raise ImportError
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", none)
    with pytest.raises(TableError, match=r"pip install 'hazemap\[lakes\]'"):
        votes(delta)
