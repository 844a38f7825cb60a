"""Small files that would become large ones in memory, made on purpose: refused before they do."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hazemap.errors import FileError
from hazemap.files import parquet_pages
from hazemap.releases import check_whole, open_release, page_sizes
from hazemap.releases.column_digests import column_digests, plain
from hazemap.releases.geoparquet import tables
from hazemap.releases.page_sizes import bounded

MEGABYTE = 1 << 20
LONG = "0" * (8 * MEGABYTE)
"""Beside rows that all name this text a file is tiny, and as a column it is 512 GB."""


@pytest.fixture
def path(release, tmp_path: Path) -> Path:
    """A file that is whole."""
    path = tmp_path / "map.parquet"
    release.save(path)
    return path


def rewritten(path: Path, table: pa.Table, **settings: Any) -> None:
    """The file with another table, and the label as it was: what is not refused at once is refused for its digest."""
    metadata = pq.read_metadata(path).metadata
    with pq.ParquetWriter(path, table.schema, compression="zstd", store_schema=False, **settings) as writer:
        writer.write_table(table, row_group_size=page_sizes.ROWS)
        writer.add_key_value_metadata(metadata)


def named(names: Callable[[int], pa.Array], rows: int = page_sizes.ROWS) -> pa.Table:
    """A table with these names, and numbers that take no bytes."""
    return pa.table(
        {"cell": names(rows), **dict.fromkeys(("best_guess", "unbiased", "stddev"), pa.array(np.zeros(rows)))}
    )


def alike(rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array([LONG]))


def refused(path: Path, match: str) -> None:
    """Whoever opens it, or checks it, is told so, and Arrow takes no gigabytes."""
    most = max(pa.default_memory_pool().max_memory(), 256 * MEGABYTE)
    assert path.stat().st_size < MEGABYTE
    for read in (open_release, check_whole):
        with pytest.raises(FileError, match=match):
            read(path)
    assert pa.default_memory_pool().max_memory() <= most


@pytest.fixture(params=["map", "values", "marks", "slots", "answers", "older"])
def kind(request, path) -> str:
    """The file says that it is of this kind."""
    table, metadata = pq.read_table(path), dict(pq.read_metadata(path).metadata)
    label = json.loads(metadata[b"hazemap"])
    if request.param == "older":
        label["format"] = 1
    elif request.param != "map":
        label |= {"kind": request.param, "format": 2}
    with pq.ParquetWriter(path, table.schema.remove_metadata(), store_schema=False) as writer:
        writer.write_table(table.replace_schema_metadata(None))
        writer.add_key_value_metadata({**metadata, b"hazemap": json.dumps(label).encode()})
    return request.param


def test_rows_that_all_name_one_long_text_are_not_written_out(path, kind):
    rewritten(path, named(alike))
    refused(path, "texts would be many times as long|damaged")


def test_texts_that_are_differences_to_the_one_before_are_not_written_out(path, kind):
    short = named(lambda rows: pa.array(["0" * 1000] * rows))
    rewritten(path, short, use_dictionary=False, column_encoding={"cell": "DELTA_BYTE_ARRAY"})
    refused(path, "encoded in a way")


def test_rows_of_lists_are_not_read(path, kind):
    many = pa.LargeListArray.from_arrays([0, 4 * MEGABYTE], np.zeros(4 * MEGABYTE)).cast(pa.list_(pa.float64()))
    rewritten(path, pa.table({"cell": ["root-0"], "best_guess": many, "unbiased": [0.0], "stddev": [0.0]}))
    refused(path, "kind that no release has")


def test_pages_of_zeros_are_not_decompressed(path, kind, monkeypatch):
    rewritten(path, named(lambda _: pa.array([LONG, LONG]), 2), use_dictionary=False)
    monkeypatch.setattr(page_sizes, "FREE_BYTES", MEGABYTE)
    refused(path, "many times as long")


def test_many_row_groups_of_rows_that_are_alike_are_not_read(path, kind, monkeypatch):
    rewritten(path, named(lambda rows: pa.array(["root-0"] * rows), 16 * page_sizes.ROWS))
    monkeypatch.setattr(page_sizes, "FREE_ROWS", page_sizes.ROWS)
    refused(path, "more rows than its bytes" if kind in ("map", "older", "answers") else "damaged")


def test_rows_of_places_without_anybody_may_be_alike(path, monkeypatch):
    """A million rows in some kB, as statistics of sparse places in many slots have."""
    rewritten(path, named(lambda rows: pa.array(["root-0"] * rows), 16 * page_sizes.ROWS))
    monkeypatch.setattr(page_sizes, "FREE_ROWS", page_sizes.ROWS)
    file, size = pq.ParquetFile(path), path.stat().st_size
    assert size < 16 * page_sizes.ROWS < page_sizes.ALIKE * size
    assert bounded(path, file, rows_a_byte=page_sizes.ALIKE) == ["cell"]
    with pytest.raises(ValueError, match="more rows"):
        bounded(path, file)


def test_texts_that_row_groups_name_again_and_again_are_refused_together(path, monkeypatch):
    """Each group alone is within bounds: it is their sum that is not."""
    monkeypatch.setattr(page_sizes, "ROWS", 10)
    rewritten(path, named(alike, 30))
    file = pq.ParquetFile(path)
    assert len(list(tables(path, file, 1, 30 * len(LONG)))) == 3
    with pytest.raises(ValueError, match="texts would be many times as long"):
        list(tables(path, file, 1, 30 * len(LONG) - 1))


def test_texts_of_a_dictionary_have_the_digest_of_the_same_texts_apart(tmp_path):
    texts = pa.array(["a", "", "bc", "a", "ä" * 40, "bc"] * 50)
    for kind in (pa.string(), pa.binary()):
        apart = pa.table({"name": texts.cast(kind)})
        coded = pa.table({"name": pa.chunked_array([texts.cast(kind).dictionary_encode()] * 1)})
        assert column_digests(coded) == column_digests(apart)
        assert plain(coded["name"]).combine_chunks().equals(apart["name"].combine_chunks())
    twin = pa.table({"name": pa.array([*texts.to_pylist()[:-1], "b"]).dictionary_encode()})
    assert column_digests(twin) != column_digests(pa.table({"name": texts}))


def test_files_that_hazemap_writes_are_within_all_bounds(any_release, tmp_path):
    path = tmp_path / "map.parquet"
    any_release.save(path)
    assert bounded(path, pq.ParquetFile(path)) == []


@pytest.mark.parametrize(
    "header",
    [
        bytes([0x15, 0, 0x15, 0]),  # ends within a struct
        bytes([0x15, 0, 0x05, 2, 0, 0]),  # a field that came before
        bytes([0x15, *[0xFF] * 9, 1, 0]),  # a number of 64 bits
        bytes([0x15, *[0xFF] * 40]),
        bytes([0x1C] * 64),
        bytes([0x19, 0x15, 0, 0]),  # a list
        bytes([0x18, *[0xFF] * 5, 1, 0]),  # a text longer than all there is
        b"",
    ],
)
def test_headers_that_are_none_are_refused(header):
    with pytest.raises(ValueError, match="header"):
        parquet_pages._Thrift(header).fields()


def test_damaged_pages_are_refused_or_change_no_bound(path):
    """Whatever a header says after damage, it is no other error than one that is told in words."""
    content, rng, other = path.read_bytes(), np.random.default_rng(3), path.with_name("other.parquet")
    for at in rng.integers(4, 3000, 100).tolist():
        changed = bytearray(content)
        changed[at] ^= int(rng.integers(1, 256))
        other.write_bytes(changed)
        with pytest.raises(FileError):
            check_whole(other)
