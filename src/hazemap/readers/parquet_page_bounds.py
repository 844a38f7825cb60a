"""Memory that the pages of a Parquet file will take, before any of them is unpacked.

A page of some kB can be one of two gigabytes, and a reader takes the room that the page's own header asks for. Rows can
name one long text of a dictionary again and again, and a batch of them would hold it as often.
"""

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from hazemap.parquet_pages import DICTIONARY, Page, pages_in
from hazemap.readers.held_file import path_of

ROOM = 1 << 28
"""Bytes that the texts of a batch may take."""

LONGEST_TEXT = 10_000
"""Bytes of a text in a dictionary, at most: a longer one is missing."""

LEAST = 5
"""Bytes of a text in a dictionary, at least, with its length."""


class TextReading(NamedTuple):
    """The reading of texts: the rows of a batch, and the columns that keep dictionaries since theirs are long."""

    rows: int
    dictionaries: list[str]


def largest_page(opened: Any, file: str, columns: Collection[str]) -> int:
    """The bytes of the largest page of some columns of a file of this machine: O(pages), of which it reads headers.

    `ValueError` where pages do not follow each other as the footer says.
    """
    return max((page.whole for _, _, page in _pages(opened, file, columns)), default=0)


def reading_of(opened: Any, file: str, columns: Collection[str], most_rows: int) -> TextReading:
    """Choose how to read these columns within `ROOM`: O(pages); dictionaries that may hold long texts are inspected."""
    schema = opened.schema
    texts = {schema.column(at).path for at in range(len(schema)) if schema.column(at).physical_type == "BYTE_ARRAY"}
    rows, doubtful = most_rows, dict[str, set[int]]()
    for name, group, page in _pages(opened, file, {each for each in columns if each in texts}):
        if page.kind == DICTIONARY:
            if most_rows * (page.whole - LEAST * (page.values - 1)) > ROOM:
                doubtful.setdefault(name, set()).add(group)
        elif page.values:
            rows = min(rows, max(ROOM * page.values // max(page.whole, 1), 1))
    long = [name for name, groups in doubtful.items() if _holds_long(file, name, groups)]
    return TextReading(rows, long)


def without_long(column: Any) -> Any:
    """A column with its dictionary, whose texts that are too long are missing."""
    import pyarrow
    from pyarrow import compute

    too_long = compute.greater(compute.binary_length(column.dictionary), LONGEST_TEXT)
    kept = compute.if_else(too_long, pyarrow.scalar(None, column.dictionary.type), column.dictionary)
    return pyarrow.DictionaryArray.from_arrays(column.indices, kept)


def _holds_long(file: str, name: str, groups: set[int]) -> bool:
    from pyarrow import compute, parquet

    with parquet.ParquetFile(path_of(file), read_dictionary=[name]) as opened:
        for group in sorted(groups):
            for batch in opened.iter_batches(1, row_groups=[group], columns=[name]):
                longest = compute.max(compute.binary_length(batch.column(0).dictionary)).as_py()
                if (longest or 0) > LONGEST_TEXT:
                    return True
                break
    return False


def _pages(opened: Any, file: str, columns: Collection[str]) -> Iterator[tuple[str, int, Page]]:
    """The pages of some columns, each with the name of its column and the number of its row group."""
    schema, metadata = opened.schema, opened.metadata
    paths = [schema.column(at).path for at in range(len(schema))]
    wanted = [at for at, path in enumerate(paths) if path.partition(".")[0] in columns]
    with open(path_of(file), "rb") as content:  # noqa: PTH123 - a path as text
        for group in range(metadata.num_row_groups if wanted else 0):
            row_group = metadata.row_group(group)
            for at in wanted if row_group.num_rows else ():
                chunk = row_group.column(at)
                start = chunk.dictionary_page_offset or chunk.data_page_offset
                if not 0 < start <= chunk.data_page_offset or chunk.total_compressed_size < 0:
                    raise ValueError("a column that does not begin with its first page")
                values = 0
                for page in pages_in(content.fileno(), start, chunk.total_compressed_size):
                    values += page.values if page.kind != DICTIONARY else 0
                    yield paths[at], group, page
                if values < chunk.num_values:  # some readers would go on behind the end
                    raise ValueError("a column of fewer values than its row group says")
