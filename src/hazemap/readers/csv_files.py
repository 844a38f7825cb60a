"""CSV files as one stream of rows: each line is read by itself; the dialect is declared or comes from the header alone.

Bytes are unpacked and decoded in blocks, as UTF-8 with LF as the newline. Whatever cannot be decoded becomes a byte
that UTF-8 does not have, so that the line it is in is dropped, and no other.
"""

import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hazemap.engines.table_source import named_numbers
from hazemap.errors import FileError, InputError, TableError
from hazemap.machine_code.arrays import Bytes
from hazemap.machine_code.parallel_map import in_order
from hazemap.readers.csv_parser import numbers_in, read_fields
from hazemap.readers.stored_file import StoredFile
from hazemap.vdaf.compiled_loops import once_compiled

if TYPE_CHECKING:
    from hazemap.readers.csv_parser import ParsedFields


DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
ENCODINGS = ("utf-8", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be")
_SPELLINGS = {
    "utf8": "utf-8",
    "utf8sig": "utf-8",
    "latin1": "latin-1",
    "iso88591": "latin-1",
    "cp1252": "cp1252",
    "windows1252": "cp1252",
    "utf16": "utf-16",
    "utf16le": "utf-16-le",
    "utf16be": "utf-16-be",
}
_NAMED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}


@dataclass(frozen=True)
class CsvDialect:
    r"""The delimiter, the encoding, the decimal sign, and whether a quoted field may hold a newline.

    Without a `delimiter` it is the one of comma, semicolon, tab and vertical bar that divides the header line into most
    columns. Without a `decimal` a number has a decimal point or, where semicolons divide (Excel where commas are
    decimal), a decimal comma: each for itself, so that 13.5 and 13,5 are the same, and 1.013,5 is none. Everything else
    is as declared, so that how a line is read depends on that line, the header and this alone.
    With `multiline` a record may go on over several lines inside quotes; then this holds for well-formed records
    of up to 2²⁰ bytes only.
    `InputError` for anything else than is said here.

    >>> CsvDialect("tab", "Latin1")
    CsvDialect(delimiter='\t', encoding='latin-1', decimal=None, multiline=False)
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    decimal: str | None = None
    multiline: bool = False

    def __post_init__(self) -> None:
        if self.delimiter is not None:
            sign = _NAMED.get(self.delimiter.casefold(), self.delimiter)
            if sign not in DELIMITERS:
                raise InputError(
                    "--delimiter is a comma, a semicolon, a tab or a vertical bar (, ; tab |);"
                    f" found {self.delimiter!r}"
                )
            object.__setattr__(self, "delimiter", sign)
        plain = "".join(letter for letter in self.encoding.casefold() if letter.isalnum())
        if plain not in _SPELLINGS:
            raise InputError(f"--encoding must be one of {', '.join(ENCODINGS)}; found {self.encoding!r}")
        object.__setattr__(self, "encoding", _SPELLINGS[plain])
        if self.decimal not in {None, ".", ","}:
            raise InputError(f"--decimal must be a point or a comma; found {self.decimal!r}")
        if not isinstance(self.multiline, bool):
            raise InputError(f"multiline must be yes or no; found {self.multiline!r}")

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions about a file in the statement; none if each line is a record.

        >>> CsvDialect().assumptions
        ()
        """
        if not self.multiline:
            return ()
        return (
            "every record of the file is well formed and no longer than 1,048,576 bytes, for with records over several"
            " lines any other hides or makes records of others",
        )


CHUNK = 1 << 22
"""Bytes that are read at once."""

PACKED = {".gz": "gzip", ".zst": "zstd"}

_UTF8, _UTF16_LE, _UTF16_BE = b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"
_LF, _CR = 10, 13


def utf8_chunks(file: StoredFile, encoding: str) -> Iterator[Bytes]:
    """The text of a file in UTF-8 without a byte order mark, chunk by chunk; `FileError` if its start contradicts the
    encoding. Where the first line ends with CR alone, CR ends every line, and a line with LF in it counts as damaged.
    """
    returns = None
    for chunk in _decoded(_raw(file), file, encoding):
        if returns is None:
            returns = _ends_with_return(chunk)
        yield _with_newlines(chunk) if returns else chunk


def _raw(file: StoredFile) -> Iterator[Bytes]:
    """Chunks of bytes, all but the last of an even size."""
    import pyarrow

    with ExitStack() as stack:
        source: Any = stack.enter_context(file.open())
        packed = next((how for end, how in PACKED.items() if str(file).lower().endswith(end)), None)
        if packed is not None:
            source = stack.enter_context(pyarrow.input_stream(source, compression=packed))
        while True:
            chunk = np.empty(CHUNK, dtype=np.uint8)
            filled = 0
            while filled < CHUNK:
                more = source.readinto(chunk[filled:].data)
                if not more:
                    break
                filled += more
            if filled:
                yield chunk[:filled]
            if filled < CHUNK:
                return


def _decoded(chunks: Iterator[Bytes], file: StoredFile, encoding: str) -> Iterator[Bytes]:
    start = next(chunks, None)
    if start is None:
        return
    begins = start[:4].tobytes()
    if encoding.startswith("utf-16"):
        yield from _from_utf16(start, chunks, file, encoding)
        return
    if begins.startswith((_UTF16_LE, _UTF16_BE)):
        raise FileError(f"{file} begins as UTF-16 does, and not as {encoding}; say so with --encoding utf-16")
    if begins.startswith(_UTF8):
        if encoding != "utf-8":
            raise FileError(f"{file} begins as UTF-8 does, and not as {encoding}; leave out --encoding")
        start = start[3:]
    if encoding == "utf-8":
        if len(start):
            yield start
        yield from chunks
        return
    letters, lengths = _single_bytes(encoding)

    yield widened(start, letters, lengths)
    for chunk in chunks:
        yield widened(chunk, letters, lengths)


def _from_utf16(start: Bytes, chunks: Iterator[Bytes], file: StoredFile, encoding: str) -> Iterator[Bytes]:

    begins = start[:2].tobytes()
    big = {"utf-16-le": False, "utf-16-be": True}.get(encoding, begins == _UTF16_BE)
    marked = begins in {_UTF16_LE, _UTF16_BE}
    if marked and begins != (_UTF16_BE if big else _UTF16_LE):
        raise FileError(f"{file} begins with the byte order mark of the other UTF-16; say --encoding utf-16")
    if not marked and encoding == "utf-16":
        raise FileError(
            f"{file} does not begin with a byte order mark, so it is not what --encoding utf-16 means;"
            " say utf-16-le or utf-16-be, or another encoding"
        )
    held = start[2:] if marked else start
    for chunk in chunks:
        even = len(held) & ~1
        text, used = from_utf16(held[:even], big, False)
        yield text
        held = np.concatenate([held[used:], chunk])
    text, _ = from_utf16(held, big, True)
    yield text


def _single_bytes(encoding: str) -> tuple[Bytes, NDArray[np.int64]]:
    """The UTF-8 of each byte of an encoding of one byte a letter, and its length; 0xFF for none."""
    letters, lengths = np.zeros((256, 3), dtype=np.uint8), np.zeros(256, dtype=np.int64)
    for byte in range(256):
        try:
            text = bytes([byte]).decode(encoding).encode()
        except UnicodeDecodeError:
            text = b"\xff"
        lengths[byte] = len(text)
        letters[byte, : len(text)] = list(text)
    return letters, lengths


def _ends_with_return(chunk: Bytes) -> bool:
    ends = np.flatnonzero((chunk == _LF) | (chunk == _CR))[:2]
    if not len(ends) or chunk[ends[0]] == _LF:
        return False
    return not (len(ends) == 2 and ends[1] == ends[0] + 1 and chunk[ends[1]] == _LF)


def _with_newlines(chunk: Bytes) -> Bytes:
    swapped = np.where(chunk == _LF, np.uint8(0), chunk)
    swapped[chunk == _CR] = _LF
    return swapped


def widened(chunk: Bytes, letters: Bytes, lengths: NDArray[np.int64]) -> Bytes:
    """Bytes of an encoding of one byte a letter in UTF-8, by a table of letters and their lengths. O(bytes)."""
    text = np.empty(3 * len(chunk), dtype=np.uint8)
    return text[: once_compiled(_widen)(chunk, letters, lengths, text)]


def from_utf16(chunk: Bytes, big: bool, last: bool) -> tuple[Bytes, int]:
    """UTF-16 in UTF-8, with 0xFF for half a pair and for a last byte that is alone; and how many bytes were used.

    A first half at the end is left over, unless it is the `last` chunk. O(bytes).
    """
    text = np.empty(2 * len(chunk) + 4, dtype=np.uint8)
    size, used = once_compiled(_utf8_of_utf16)(chunk, big, last, text)
    return text[:size], used


def _widen(chunk, letters, lengths, text) -> int:  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    at = 0
    for byte in chunk:
        for i in range(lengths[byte]):
            text[at + i] = letters[byte, i]
        at += lengths[byte]
    return at


def _utf8_of_utf16(chunk, big, last, text) -> Any:  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    high, low = (0, 1) if big else (1, 0)
    at = size = 0
    while at + 1 < chunk.size:
        unit = np.int64(chunk[at + high]) << 8 | np.int64(chunk[at + low])
        if 0xD800 <= unit < 0xE000:
            if unit < 0xDC00 and at + 3 >= chunk.size and not last:
                return size, at
            other = np.int64(0)
            if unit < 0xDC00 and at + 3 < chunk.size:
                other = np.int64(chunk[at + 2 + high]) << 8 | np.int64(chunk[at + 2 + low])
            if 0xDC00 <= other < 0xE000:
                letter = 0x10000 + ((unit - 0xD800) << 10) + (other - 0xDC00)
                text[size] = 0xF0 | letter >> 18
                text[size + 1] = 0x80 | letter >> 12 & 0x3F
                text[size + 2] = 0x80 | letter >> 6 & 0x3F
                text[size + 3] = 0x80 | letter & 0x3F
                size += 4
                at += 2
            else:
                text[size] = 0xFF
                size += 1
        elif unit < 0x80:
            text[size] = unit
            size += 1
        elif unit < 0x800:
            text[size] = 0xC0 | unit >> 6
            text[size + 1] = 0x80 | unit & 0x3F
            size += 2
        else:
            text[size] = 0xE0 | unit >> 12
            text[size + 1] = 0x80 | unit >> 6 & 0x3F
            text[size + 2] = 0x80 | unit & 0x3F
            size += 3
        at += 2
    if last and at < chunk.size:
        text[size] = 0xFF
        size += 1
        at += 1
    return size, at


_EXCELS = re.compile(r"sep=.?", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?")


@dataclass(frozen=True)
class CsvHeader:
    """The names of the columns of a file, in order, what divides them, and how many bytes of UTF-8 they take."""

    names: tuple[str, ...]
    delimiter: str
    size: int

    def decimal(self, dialect: CsvDialect) -> str:
        """The sign before the fraction of a number, or both that are possible: see `CsvDialect`."""
        return dialect.decimal or (".," if self.delimiter == ";" else ".")

    def places(self, columns: Sequence[str]) -> NDArray[np.int64]:
        """For each column of the file its place among `columns`, or -1."""
        place = {name: i for i, name in enumerate(columns)}
        return np.array([place.get(name, -1) for name in self.names], dtype=np.int64)


@dataclass(frozen=True)
class CsvFiles:
    """The lines of files, one file after the other. Every reading starts from the first byte again.

    Memory is a few blocks of 4 MB a thread, whatever the files hold; blocks are read by `threads` threads, except in
    records that go on over lines, which only the lines before them tell apart.
    """

    files: tuple[StoredFile, ...]
    headers: tuple[CsvHeader, ...]
    dialect: CsvDialect
    threads: int

    @classmethod
    def opened(cls, files: Sequence[StoredFile], dialect: CsvDialect, threads: int) -> "CsvFiles":
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
        """Arrow record batches of these columns; lines that are no records are left out silently."""
        names = {numbers: name for name, numbers in self.numbers.items()}
        texts = list(dict.fromkeys(names.get(column, column) for column in columns))
        with ThreadPoolExecutor(self.threads) as threads:
            for file, header in zip(self.files, self.headers, strict=True):
                chunks = _after(utf8_chunks(file, self.dialect.encoding), header.size)
                delimiter, places = ord(header.delimiter), header.places(texts)
                made = partial(_batch, columns=columns, texts=texts, names=names, decimal=header.decimal(self.dialect))
                by_line = partial(_read_lines, delimiter=delimiter, places=places, made=made)
                if self.dialect.multiline:
                    read = in_order(made, _over_lines(chunks, delimiter, places), threads, self.threads)
                else:
                    read = in_order(by_line, _lines(chunks), threads, self.threads)
                for batch in read:
                    if batch.num_rows:
                        yield batch
                if isinstance(file, StoredFile):
                    file.check()


def _after(chunks: Iterator[Bytes], size: int) -> Iterator[Bytes]:
    """All but the first bytes."""
    for chunk in chunks:
        if size < len(chunk):
            yield chunk[size:]
        size = max(0, size - len(chunk))


def _read_lines(block: Bytes, delimiter: int, places: NDArray[np.int64], made: Callable[["ParsedFields"], Any]) -> Any:
    """A block cut at newlines, which end records, so that any thread may read any block."""
    return made(read_fields(block, delimiter, places, False, True))


def _over_lines(chunks: Iterator[Bytes], delimiter: int, places: NDArray[np.int64]) -> Iterator["ParsedFields"]:
    """Block after block: where a record ends depends on the quotes before it."""
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
    from hazemap.readers.csv_parser import LONGEST

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
    """The text after the first newline."""
    ends = chunk.tobytes().find(b"\n")
    return None if ends < 0 else chunk[ends + 1 :]


def _last_newline(chunk: Bytes) -> int:
    """The position of the last newline, or -1."""
    size = len(chunk)
    for step in (1 << 10, 1 << 16, size):
        found = chunk[max(0, size - step) :].tobytes().rfind(b"\n")
        if found >= 0:
            return max(0, size - step) + found
    return -1


def _batch(
    fields: "ParsedFields", columns: Sequence[str], texts: Sequence[str], names: Mapping[str, str], decimal: str
) -> Any:
    """The rows of a block as an Arrow record batch."""
    import pyarrow

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


def read_header(file: StoredFile, dialect: CsvDialect) -> CsvHeader:
    """The header of a file; `FileError` and `TableError` for one that no rule makes out, from the header alone."""
    from hazemap.readers.csv_parser import LONGEST

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
    if _EXCELS.fullmatch(text):
        raise TableError(
            f"the first line of {file} is {text!r}, which Excel alone understands: delete it, so that the file begins "
            "with the names of its columns"
        )
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
    field = re.compile(rf' *"([^"]*+(?:""[^"]*+)*+)" *|([^"{re.escape(delimiter)}]*+)')  # in quotes, or bare
    found, at = [], 0
    while match := field.match(record, at):
        quoted, bare = match.groups()
        found.append(bare if quoted is None else quoted.replace('""', '"'))
        at = match.end()
        if at == len(record):
            return found
        if record[at] != delimiter:
            return None
        at += 1
    return None


def _delimiter(file: StoredFile, header: str) -> str:
    """The delimiter that divides the header into most columns; a tie is refused."""
    columns = {sign: len(fields(header, sign) or ()) for sign in DELIMITERS}
    most = max(columns.values())
    best = [sign for sign, number in columns.items() if number == most]
    if len(best) > 1 and most > 1:
        could = " or ".join(DELIMITERS[sign] for sign in best)
        raise TableError(f"the first line of {file} may be divided by {could}; say which with --delimiter")
    return best[0]


def _first(chunks: Iterator[NDArray[np.uint8]]) -> Iterator[NDArray[np.uint8]]:
    """Enough for the longest header."""
    from hazemap.readers.csv_parser import LONGEST

    size = 0
    for chunk in chunks:
        yield chunk
        size += len(chunk)
        if size > LONGEST + 2:
            return


def _end(start: bytes, dialect: CsvDialect) -> int:
    """The end of the first record."""
    end = start.find(b"\n")
    while dialect.multiline and end >= 0 and start[:end].count(b'"') % 2:
        end = start.find(b"\n", end + 1)
    return end if end >= 0 else len(start)
