"""A source: parsed once, written as it was, and refused where it is nothing that can be opened."""

from pathlib import Path

import pyarrow as pa
import pytest

from hazemap.errors import InputError
from hazemap.sources.source import (
    DatabaseTable,
    Frame,
    LocalFiles,
    RemoteFiles,
    SparkCatalogueTable,
    parse_address,
    parse_source,
)

WRITTEN = [
    ("visits.parquet", LocalFiles),
    ("trips/day=*/*.csv", LocalFiles),
    ("./s3:x", LocalFiles),
    ("postgresql.csv", LocalFiles),
    ("city.gpkg:visits", LocalFiles),
    ("s3://city/trips/*.parquet", RemoteFiles),
    ("gs://city", RemoteFiles),
    ("https://host.example/a/nyc.csv.gz", RemoteFiles),
    ("postgresql://h/db?sslmode=require&table=trips.visits", DatabaseTable),
    ("SPARK:lake.`my visits`", SparkCatalogueTable),
]


@pytest.mark.parametrize(("text", "kind"), WRITTEN)
def test_an_address_has_one_class_and_is_written_as_it_was(text, kind):
    source = parse_source(text)
    assert type(source) is kind
    assert (str(source), parse_source(source), parse_address(str(source))) == (text, source, source)


@pytest.mark.parametrize(("text", "kind"), WRITTEN)
def test_a_path_alone_depends_on_a_folder(text, kind):
    source, folder = parse_address(text), Path("/data")
    assert (source.absolute is source) == (source.below(folder) is source) == (kind is not LocalFiles)
    assert parse_address(str(source.absolute)).absolute == source.absolute
    if kind is LocalFiles:
        assert str(source.below(folder)) == str(folder / text)


def test_what_is_neither_text_nor_a_path_is_a_table_in_memory():
    table = pa.table({"user": [1]})
    frame = parse_source(table)
    assert isinstance(frame, Frame) and frame.table is table and frame.dataset == "memory"
    assert parse_source(Path("a") / "b.csv") == LocalFiles("a/b.csv")
    with pytest.raises(InputError, match="non-empty text"):
        parse_source("")


def test_a_table_beside_another_can_be_written_down_too():
    beside = DatabaseTable.parse('postgresql://h/db?table="My visits"&sslmode=require').beside("_total")
    assert beside.names == ("My visits_total",) and DatabaseTable.parse(str(beside)) == beside
