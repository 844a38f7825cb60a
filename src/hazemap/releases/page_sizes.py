"""What the columns of a Parquet file come to in memory, told from the headers of its pages before any is decompressed.

A page of a few bytes can be one of two gigabytes, a row of a list can hold millions of numbers, and rows can name one
long text of a dictionary again and again. Parquet's footer says how long all of it is, but its readers do not hold a
file to that. So files of releases have columns of few kinds, and pages whose own headers (Thrift's compact protocol)
say what they come to.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hazemap.files.parquet_pages import DICTIONARY, pages_of

if TYPE_CHECKING:
    import pyarrow.parquet as pq

ROWS = 1 << 16
"""Rows of a row group, at most: what is in memory as polygons at one time."""

FREE_ROWS = 1 << 20
"""Beyond so many rows, a file has as many bytes as rows, or a part of that (`bounded`)."""

ALIKE = 100
"""Rows a byte where rows may be alike: of places without anybody, in every slot."""

FREE_BYTES, MOST_TIMES = 1 << 27, 100
"""Beyond so many bytes, the pages of a file are at most so many times as long as the file."""

TEXT = "BYTE_ARRAY"
KINDS = {"BOOLEAN", "INT32", "INT64", "DOUBLE", TEXT}
"""The types of columns. Others could be as long as a file says."""

PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY = 0, 2, 8
"""How texts may be encoded: the others make a long text of a short difference to the one before."""


def bounded(
    path: Path, file: "pq.ParquetFile", columns: Sequence[str] | None = None, rows_a_byte: int = 1
) -> list[str]:
    """Columns, of those that are to be read, with texts of which some stand in a dictionary.

    `ValueError` for a file that would become many times as long in memory. Of a map all rows are there at once, and
    noise takes some bytes in each, so it has at most one a byte. O(pages).
    """
    metadata, size, schema = file.metadata, path.stat().st_size, file.schema
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    if any(not 0 <= group.num_rows <= ROWS for group in groups):
        raise ValueError(f"a row group holds more than {ROWS:,} rows")  # a few bytes can say many rows that are alike
    if sum(group.num_rows for group in groups) > max(FREE_ROWS, rows_a_byte * size):
        raise ValueError("it says more rows than its bytes can hold")
    wanted = [
        number
        for number in range(len(schema))
        if columns is None or schema.column(number).path.partition(".")[0] in columns
    ]
    for number in wanted:
        column = schema.column(number)
        if column.max_repetition_level or column.physical_type not in KINDS:
            raise ValueError(f"its column {column.path!r:.60} is of a kind that no release has")
    total, repeated = 0, set[str]()
    with path.open("rb") as content:
        for group in groups:
            for number in wanted:
                chunk, place = group.column(number), schema.column(number)
                if chunk.num_values != group.num_rows:
                    raise ValueError("a column has another number of rows than its row group")
                if chunk.total_compressed_size < 0:
                    raise ValueError("a column of negative length")
                starts = [chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset]
                content.seek(min(starts))
                pages = pages_of(content.read(chunk.total_compressed_size))
                total += sum(page.whole for page in pages)
                if place.physical_type == TEXT:
                    if any(page.encoding not in (PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY) for page in pages):
                        raise ValueError("its texts are encoded in a way that no release has")
                    if any(page.kind == DICTIONARY for page in pages):
                        repeated.add(place.path)
    if total > max(FREE_BYTES, MOST_TIMES * size):
        raise ValueError("it would become many times as long as it is")
    return sorted(repeated)
