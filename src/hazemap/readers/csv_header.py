"""The header of a CSV file: its columns, and by the rule of `CsvDialect` what divides them."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import FileError, TableError
from hazemap.readers.csv_decompression import utf8_chunks
from hazemap.readers.csv_dialect import DELIMITERS, CsvDialect

_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?")


@dataclass(frozen=True)
class CsvHeader:
    """The names of the columns of a file, in order, what divides them, and how many bytes of UTF-8 they take."""

    names: tuple[str, ...]
    delimiter: str
    size: int

    def places(self, columns: Sequence[str]) -> NDArray[np.int64]:
        """For each column of the file its place among `columns`, or -1."""
        place = {name: i for i, name in enumerate(columns)}
        return np.array([place.get(name, -1) for name in self.names], dtype=np.int64)


def read_header(file: str, dialect: CsvDialect) -> CsvHeader:
    """The header of a file; `FileError` and `TableError` for one that no rule makes out, from the header alone."""
    from hazemap.readers.csv_fields import LONGEST

    chunks: Iterator[NDArray[np.uint8]] = utf8_chunks(file, dialect.encoding)
    try:
        start = b"".join(chunk.tobytes() for chunk in _first(chunks))
    except OSError:
        raise FileError(f"{file} cannot be read: it is damaged, or not packed as its name says") from None
    line = start[: _end(start, dialect)]
    if len(line) > LONGEST:
        raise FileError(f"the first line of {file} is longer than {LONGEST} bytes; a table begins with its columns")
    try:
        text = line.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise FileError(
            f"the first line of {file} is not {dialect.encoding}; say how it is written with --encoding"
            " (latin-1, cp1252, utf-16)"
        )
    text = text.removesuffix("\r")
    delimiter = dialect.delimiter or _delimiter(file, text)
    names = fields(text, delimiter)
    if names is None:
        raise FileError(f"the first line of {file} has a quote where none may be (RFC 4180); or name its --delimiter")
    stripped = tuple(name.strip() for name in names)
    if not any(stripped):
        raise FileError(f"the first line of {file} is empty; a CSV file begins with a line of the names of its columns")
    if any(_NUMBER.fullmatch(name) for name in stripped):
        raise TableError(f"the first line of {file} is data; a CSV file needs a line with the names of its columns")
    twice = [name for name, number in Counter(stripped).items() if name and number > 1]
    if twice:
        raise TableError(f"the first line of {file} has two columns called {twice[0]!r}; rename one")
    return CsvHeader(stripped, delimiter, len(line) + 1)


def fields(record: str, delimiter: str) -> list[str] | None:
    """The fields of a record as RFC 4180 divides it, blanks around quotes left out; None for a quote out of place.

    >>> fields('a, "b,c" ,d', ","), fields('a"b', ",")
    (['a', 'b,c', 'd'], None)
    """
    found, at, size = [], 0, len(record)
    while True:
        opening = at
        while opening < size and record[opening] == " ":
            opening += 1
        if record[opening : opening + 1] == '"':
            at = opening + 1
            text = ""
            while True:
                closing = record.find('"', at)
                if closing < 0:
                    return None
                text += record[at:closing]
                at = closing + 1
                if record[at : at + 1] != '"':
                    break
                text += '"'
                at += 1
            while at < size and record[at] == " ":
                at += 1
        else:
            after = record.find(delimiter, at)
            after = size if after < 0 else after
            text = record[at:after]
            if '"' in text:
                return None
            at = after
        found.append(text)
        if at == size:
            return found
        if record[at] != delimiter:
            return None
        at += 1


def _delimiter(file: str, header: str) -> str:
    """What divides the header into most columns; a tie is refused."""
    columns = {sign: len(fields(header, sign) or ()) for sign in DELIMITERS}
    most = max(columns.values())
    best = [sign for sign, number in columns.items() if number == most]
    if len(best) > 1 and most > 1:
        could = " or ".join(DELIMITERS[sign] for sign in best)
        raise TableError(f"the first line of {file} may be divided by {could}; say which with --delimiter")
    return best[0]


def _first(chunks: Iterator[NDArray[np.uint8]]) -> Iterator[NDArray[np.uint8]]:
    """Enough for the longest header."""
    from hazemap.readers.csv_fields import LONGEST

    size = 0
    for chunk in chunks:
        yield chunk
        size += len(chunk)
        if size > LONGEST + 2:
            return


def _end(start: bytes, dialect: CsvDialect) -> int:
    """Where the first record ends."""
    end = start.find(b"\n")
    while dialect.multiline and end >= 0 and start[:end].count(b'"') % 2:
        end = start.find(b"\n", end + 1)
    return end if end >= 0 else len(start)
