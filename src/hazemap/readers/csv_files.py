"""CSV files as one stream of rows: each line read by rule, and by nothing but itself, the header and the dialect."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Bytes
from hazemap.engines.streaming.ordered_threads import in_order
from hazemap.engines.table_source import named_numbers
from hazemap.readers.csv_decompression import utf8_chunks
from hazemap.readers.csv_dialect import CsvDialect
from hazemap.readers.csv_header import CsvHeader, read_header

if TYPE_CHECKING:
    from hazemap.readers.csv_fields import Fields


@dataclass(frozen=True)
class CsvFiles:
    """The lines of files, one file after the other. Every reading starts from the first byte again.

    Memory is a few blocks of 4 MB a thread, whatever the files hold; blocks are read by `threads` threads, except in
    records that go on over lines, which only the lines before them tell apart.
    """

    files: tuple[str, ...]
    headers: tuple[CsvHeader, ...]
    dialect: CsvDialect
    threads: int

    @classmethod
    def opened(cls, files: Sequence[str], dialect: CsvDialect, threads: int) -> "CsvFiles":
        """Files whose headers are read; errors are those of `read_header`."""
        return cls(tuple(files), tuple(read_header(file, dialect) for file in files), dialect, threads)

    @property
    def numbers(self) -> dict[str, str]:
        """The columns that every file has, in the order of the first, and what the numbers in them are called."""
        every = set.intersection(*(set(header.names) for header in self.headers)) - {""}
        return named_numbers([name for name in self.headers[0].names if name in every])

    @property
    def columns(self) -> tuple[str, ...]:
        """Each column as text, where an empty one is missing, and as numbers, where any text that is none is NaN."""
        return (*self.numbers, *self.numbers.values())

    def batches(self, columns: Sequence[str]) -> Generator[Any, None, None]:
        """Arrow record batches of these columns; lines that are no records are left out without a word."""
        names = {numbers: name for name, numbers in self.numbers.items()}
        texts = list(dict.fromkeys(names.get(column, column) for column in columns))
        with ThreadPoolExecutor(self.threads) as threads:
            for file, header in zip(self.files, self.headers, strict=True):
                chunks = _after(utf8_chunks(file, self.dialect.encoding), header.size)
                delimiter, places = ord(header.delimiter), header.places(texts)
                made = partial(_batch, columns=columns, texts=texts, names=names, decimal=self.dialect.decimal)
                by_line = partial(_read_lines, delimiter=delimiter, places=places, made=made)
                if self.dialect.multiline:
                    read = in_order(made, _over_lines(chunks, delimiter, places), threads, self.threads)
                else:
                    read = in_order(by_line, _lines(chunks), threads, self.threads)
                for batch in read:
                    if batch.num_rows:
                        yield batch


def _after(chunks: Iterator[Bytes], size: int) -> Iterator[Bytes]:
    """All but the first bytes."""
    for chunk in chunks:
        if size < len(chunk):
            yield chunk[size:]
        size = max(0, size - len(chunk))


def _read_lines(block: Bytes, delimiter: int, places: NDArray[np.int64], made: Callable[["Fields"], Any]) -> Any:
    """A block cut at newlines, which end records, so that any thread may read any block."""
    from hazemap.readers.csv_fields import read_fields

    return made(read_fields(block, delimiter, places, False, True))


def _over_lines(chunks: Iterator[Bytes], delimiter: int, places: NDArray[np.int64]) -> Iterator["Fields"]:
    """Block after block: where a record ends depends on the quotes before it."""
    from hazemap.readers.csv_fields import read_fields

    held, skipping = np.zeros(0, dtype=np.uint8), False
    for chunk in chunks:
        block = _resumed(chunk) if skipping else np.concatenate([held, chunk])
        if block is None:
            continue
        fields = read_fields(block, delimiter, places, True, False)
        held, skipping = block[fields.consumed :], fields.skipping
        yield fields
    if len(held):
        yield read_fields(held, delimiter, places, True, True)


def _lines(chunks: Iterator[Bytes]) -> Iterator[Bytes]:
    """Blocks of whole lines; of a line that is too long to count, only so much that it is seen to be."""
    from hazemap.readers.csv_fields import LONGEST

    held, skipping = np.zeros(0, dtype=np.uint8), False
    for chunk in chunks:
        rest = _resumed(chunk) if skipping else chunk
        if rest is None:
            continue
        skipping = False
        cut = _last_newline(rest) + 1
        if cut:
            yield np.concatenate([held, rest[:cut]])
            held = rest[cut:]
        else:
            held = np.concatenate([held, rest])
        if len(held) > LONGEST:
            yield held[: LONGEST + 1]
            held, skipping = held[:0], True
    if len(held):
        yield held


def _resumed(chunk: Bytes) -> Bytes | None:
    """What comes after the first newline."""
    ends = chunk.tobytes().find(b"\n")
    return None if ends < 0 else chunk[ends + 1 :]


def _last_newline(chunk: Bytes) -> int:
    """Where the last newline is, or -1."""
    size = len(chunk)
    for step in (1 << 10, 1 << 16, size):
        found = chunk[max(0, size - step) :].tobytes().rfind(b"\n")
        if found >= 0:
            return max(0, size - step) + found
    return -1


def _batch(
    fields: "Fields", columns: Sequence[str], texts: Sequence[str], names: Mapping[str, str], decimal: str
) -> Any:
    """The rows of a block as an Arrow record batch."""
    import pyarrow

    from hazemap.readers.csv_numbers import numbers_in

    arrays = []
    for column in columns:
        place = texts.index(names.get(column, column))
        ends = fields.ends[place, : fields.rows + 1]
        letters = fields.letters[place, : max(1, int(ends[-1]))]
        if column in names:
            arrays.append(pyarrow.array(numbers_in(letters, ends, decimal)))
            continue
        some = np.packbits(np.diff(ends) > 0, bitorder="little")
        buffers = (pyarrow.py_buffer(ends), pyarrow.py_buffer(letters), pyarrow.py_buffer(some))
        arrays.append(pyarrow.StringArray.from_buffers(fields.rows, *buffers))
    return pyarrow.RecordBatch.from_arrays(arrays, names=list(columns))
