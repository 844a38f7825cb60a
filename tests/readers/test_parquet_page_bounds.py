"""Files of a few kB that would be gigabytes of rows are refused before, or read within their limits."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.tables.people import QUADTREE

from hazemap.errors import FileError, TableError
from hazemap.readers import parquet_files
from hazemap.readers.open_table import open_table
from hazemap.readers.parquet_files import reading_of
from hazemap.readers.stored_file import LocalFile
from hazemap.tables.contribution_bounding import AtMostRows

ROWS = 2_000


def written(path, ids, **options):
    place = {"lon": np.full(len(ids), 13.3), "lat": np.full(len(ids), 52.5)}
    parquet.write_table(pa.table({"user": ids, **place}), path, **options)
    return path


def people(path) -> int:
    return int(open_table(path, person="user").votes(QUADTREE, AtMostRows(1)).weights.sum())


def test_a_page_that_takes_too_much_of_the_memory_is_refused_where_its_column_is_read(tmp_path, monkeypatch):
    path = written(tmp_path / "v.parquet", np.arange(ROWS), use_dictionary=False)
    table = parquet.read_table(path).append_column("notes", pa.array(["of no use " * 10] * ROWS))
    parquet.write_table(table, path, use_dictionary=False)
    monkeypatch.setattr(parquet_files, "PARTS", (1 << 30) // (8 * ROWS + 100))
    assert people(path) == ROWS  # its notes are larger, and are not read
    monkeypatch.setattr(parquet_files, "PARTS", (1 << 30) // (8 * ROWS - 100))
    with pytest.raises(TableError, match=r"has a page of .* MB.*smaller pages, or raise the limit \(--memory"):
        open_table(path, person="user")


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
def test_a_long_text_that_many_rows_name_is_missing(kind, tmp_path):
    words = pa.array(["x" * 200_000, "ann", "bob"], kind)
    ids = pa.DictionaryArray.from_arrays(pa.array([0] * 200_000 + [1, 2, 1], pa.int32()), words)
    assert people(written(tmp_path / "v.parquet", ids, store_schema=False)) == 2


def test_so_many_texts_are_read_at_once_as_have_room(tmp_path, monkeypatch):
    path = written(tmp_path / "v.parquet", pa.array([f"{at:01000}" for at in range(ROWS)]), use_dictionary=False)
    monkeypatch.setattr(parquet_files, "ROOM", 100_000)
    with parquet.ParquetFile(path) as opened:
        assert reading_of(opened, LocalFile(str(path)), ["user"], 1_000).rows == 99
        assert reading_of(opened, LocalFile(str(path)), ["lon"], 1_000) == (1_000, [])
    assert people(path) == ROWS


def test_pages_that_do_not_follow_each_other_are_refused(tmp_path):
    path = written(tmp_path / "v.parquet", np.arange(ROWS), use_dictionary=False, compression="none")
    with parquet.ParquetFile(path) as opened:
        start = opened.metadata.row_group(0).column(0).data_page_offset
    content = bytearray(path.read_bytes())
    content[start : start + 8] = bytes(8)
    path.write_bytes(content)
    with pytest.raises(FileError, match="damaged"):
        open_table(path, person="user")
