"""Rows of Parquet files as a stream of Arrow record batches, and the points that the files declare.

The memory that pages will take is known before any of them is unpacked: a page of some kB can be one of two gigabytes,
and a reader takes the room that the page's own header asks for. Rows can name one long text of a dictionary again and
again, and a batch of them would hold it as often.

GeoParquet 1.0, 1.1 and 2.0 declare points and their reference system in the metadata of a file (`geo`). Parquet's own
types GEOMETRY and GEOGRAPHY do so in the schema, beside `geo` or alone; DuckDB 2 and GDAL 3.12 write them. Their values
are well-known binary, read as bytes: a library that reads a column of shapes would refuse all for one that is none.
"""

import json
import re
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

import numpy as np

from hazemap.engines.duckdb_connection import BATCH, DuckDBConnection
from hazemap.engines.table_source import Geometry
from hazemap.errors import FileError, TableError
from hazemap.files.parquet_pages import DICTIONARY, Page, pages_in
from hazemap.gdal.own_files import refuse_named_files
from hazemap.readers.stored_file import LocalFile, StoredFile
from hazemap.readers.value_coercion import numbers_of, sound
from hazemap.spatial.bounding_box import Box

CRS84 = "OGC:CRS84"
"""The reference system of points by default."""

USUAL = ("geometry", "geom", "wkb_geometry")
"""The column of shapes that is meant if `geo` names none."""

_PARAMETERS = re.compile(r"(init|grids|file|catalog)\s*=\s*(?!@null)|[\ud800-\udfff]", re.IGNORECASE)
"""PROJ strings that name a file, which PROJ would open wherever it is; and half letters, which it cannot read."""

Native = Mapping[str, str]
"""The columns of Parquet's own types, and the reference system that each declares; empty for none."""


def native_columns(schema: Any) -> dict[str, str]:
    """The columns of these types in the schema of a `pyarrow.parquet.ParquetFile`."""
    found = {}
    for i in range(len(schema)):
        column = schema.column(i)
        if column.logical_type.type in ("GEOMETRY", "GEOGRAPHY") and "." not in column.path:
            found[str(column.path)] = str(json.loads(column.logical_type.to_json()).get("crs") or "")
    return found


def geometry_of(metadata: Mapping[bytes, bytes], native: Native, file: str) -> Geometry | None:
    """The points of a file, from its metadata and its schema.

    `FileError` for metadata that cannot be read; `TableError` where no shape is a point, or the two contradict each
    other.
    """
    if b"geo" not in metadata:
        usual = [column for column in native if column in USUAL] if len(native) > 1 else list(native)
        if len(usual) != 1:
            return None
        return Geometry(usual[0], "WKB", _written(_declared(native[usual[0]], metadata, file), file))
    try:
        geo = json.loads(metadata[b"geo"])
        column = geo["primary_column"]
        about = geo["columns"][column]
        encoding = about.get("encoding", "WKB") if column in native else about["encoding"]
        kinds = set(about.get("geometry_types", []))
        known = encoding in {"WKB", "point"}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FileError(f"the GeoParquet metadata of {file} cannot be read") from None
    may_be = {f"{several}Point{more}" for several in ("", "Multi") for more in ("", " Z", " M", " ZM")}
    if not known or (kinds and not kinds & may_be):
        raise TableError(f"rows are counted where their point is; {file} declares that none of its geometries is one")
    own = _declared(native[column], metadata, file) if native.get(column) else None
    crs = about.get("crs", CRS84 if own is None else own)
    _refuse_odd(crs, file)
    if own is not None and not same_system(own, crs):
        raise TableError(f"{file} declares two reference systems of its points, in its metadata and in its schema")
    return Geometry(column, encoding, _written(crs, file))


def common_geometry(found: Sequence[Geometry | None], name: str) -> Geometry | None:
    """The points of files of one table; `TableError` where they differ in their column or its reference system."""
    first = found[0]
    for other in found[1:]:
        same = first is other or (
            first is not None
            and other is not None
            and (first.column, first.encoding) == (other.column, other.encoding)
            and same_system(json.loads(first.crs), json.loads(other.crs))
        )
        if not same:
            raise TableError(
                f"the files of {name} differ in their geometry column or its reference system; make them one"
            )
    return first


def same_system(one: Any, other: Any) -> bool:
    """Whether two reference systems are one, however each is written."""
    if one == other:
        return True
    if one is None or other is None:
        return False
    from pyproj import CRS
    from pyproj.exceptions import CRSError

    try:
        return bool(CRS.from_user_input(one).equals(CRS.from_user_input(other), ignore_axis_order=True))
    except CRSError:
        return False


def _declared(crs: str, metadata: Mapping[bytes, bytes], file: str) -> Any:
    """The declared reference system for PROJ: PROJJSON, its key in the metadata, a number of EPSG or another text."""
    kind, _, key = crs.partition(":")
    number = key if kind == "srid" else crs
    if number.isascii() and number.isdigit():
        return f"EPSG:{number}" if int(number) else None
    try:
        if kind == "projjson":
            return json.loads(metadata[key.encode()])
        return json.loads(crs) if crs.startswith("{") else crs or CRS84
    except (ValueError, KeyError, RecursionError):
        raise FileError(f"the reference system that the schema of {file} declares cannot be read") from None


def _refuse_odd(crs: Any, file: str) -> None:
    """`FileError` for a text or parameters in which PROJ would find the name of a file."""
    of_proj = {"init", "proj"} & crs.keys() if isinstance(crs, dict) else set()
    if of_proj or (isinstance(crs, str) and _PARAMETERS.search(crs)):
        raise FileError(f"the reference system that {file} declares is not read: declare it as PROJJSON")
    said = json.dumps(crs).replace('\\"', '"')
    if '"value": "' in said:  # a parameter of PROJJSON that is no number is the name of a grid's file
        raise FileError(f"{file} cannot be read: its reference system names another file")
    refuse_named_files(said.encode(), file)


def _written(crs: Any, file: str) -> str:
    _refuse_odd(crs, file)
    if crs is None:
        raise TableError(f"{file} does not say the reference system of its points; set it, or pass --lon and --lat")
    return json.dumps(crs, sort_keys=True)


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


def largest_page(opened: Any, file: LocalFile, columns: Collection[str]) -> int:
    """The bytes of the largest page of some columns of a file of this machine: O(pages), of which it reads headers.

    `ValueError` where pages do not follow each other as the footer says.
    """
    return max((page.whole for _, _, page in _pages(opened, file, columns)), default=0)


def reading_of(opened: Any, file: LocalFile, columns: Collection[str], most_rows: int) -> TextReading:
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


def _holds_long(file: LocalFile, name: str, groups: set[int]) -> bool:
    from pyarrow import compute, parquet

    with parquet.ParquetFile(file.path, read_dictionary=[name]) as opened:
        for group in sorted(groups):
            for batch in opened.iter_batches(1, row_groups=[group], columns=[name]):
                longest = compute.max(compute.binary_length(batch.column(0).dictionary)).as_py()
                if (longest or 0) > LONGEST_TEXT:
                    return True
                break
    return False


def _pages(opened: Any, file: LocalFile, columns: Collection[str]) -> Iterator[tuple[str, int, Page]]:
    """The pages of some columns, each with the name of its column and the number of its row group."""
    schema, metadata = opened.schema, opened.metadata
    paths = [schema.column(at).path for at in range(len(schema))]
    wanted = [at for at, path in enumerate(paths) if path.partition(".")[0] in columns]
    with open(file.path, "rb") as content:  # noqa: PTH123 - a path as text
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


PIECE = 1 << 22
"""Bytes of a column that are fetched at once from elsewhere, so that no row group is ever whole in memory."""

PARTS = 4
"""A page takes at most so small a part of the memory limit: pages of several columns are in memory together."""

DAMAGED = "is not a Parquet file, or it is damaged or may not be read"


@dataclass(frozen=True)
class ScannedFile:
    """A file, and where it does not hold a column by its name: in which of its own it is, or what all rows have.

    `given` are Arrow scalars, of columns that the file has not; `dropped` the numbers of rows that are not read,
    ascending from 0 on.
    """

    file: StoredFile
    held: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    dropped: Any = None


@dataclass(frozen=True)
class ParquetFiles:
    """Files of one table, one after the other.

    Memory is O(row group) of the columns asked for, and O(pages) of them for files that lie elsewhere. `declared` are
    Arrow types that values become one by one, where files may differ in them; `numbers` names the numbers in columns
    of text that are given.
    """

    files: tuple[ScannedFile, ...]
    stored: tuple[str, ...]
    declared: Mapping[str, Any] = field(default_factory=dict)
    numbers: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """All that can be had of a row."""
        return (*self.stored, *self.numbers.values())

    def batches(self, columns: Sequence[str]) -> Generator[Any, None, None]:
        """Arrow record batches of these columns, with sound values alone."""
        import pyarrow

        texts = {number: name for name, number in self.numbers.items()}
        for each in self.files:
            passed, own = (
                0,
                {name: each.held.get(name, name) for name in columns if name not in texts and name not in each.given},
            )
            asked = list(dict.fromkeys(own.values()))
            with opened_parquet(each.file) as first, _by_dictionary(each.file, first, asked) as (opened, rows, long):
                for batch in opened.iter_batches(rows, columns=asked):
                    kept = _kept(each.dropped, passed, batch.num_rows)
                    passed += batch.num_rows
                    if kept is not None:
                        batch = batch.filter(kept)  # noqa: PLW2901
                    arrays = [
                        self._typed(name, plain(_short(batch.column(own[name]), own[name] in long)))
                        if name in own
                        else self._given(each, name, texts.get(name), batch.num_rows)
                        for name in columns
                    ]
                    yield pyarrow.RecordBatch.from_arrays(arrays, names=list(columns))

    def during(self, column: str, since: datetime | None, until: datetime | None) -> "ParquetFiles":
        """The same without files all of whose rows are on a day that is not in `since <= day < until`, both in UTC."""
        days = [(each, _day(each.given.get(column))) for each in self.files]
        kept = [
            each
            for each, day in days
            if day is None or ((since is None or since <= day) and (until is None or day < until))
        ]
        return replace(self, files=tuple(kept))

    def inside(self, columns: Sequence[str], box: Box) -> "ParquetFiles":  # noqa: ARG002 - what other feeds can
        """The same: no file says where all its rows are."""
        return self

    def _typed(self, name: str, column: Any) -> Any:
        """A column of the type that the table declares, which holds all its values (`lake_tables`)."""
        kind = self.declared.get(name)
        return column if kind is None or column.type == kind else column.cast(kind, safe=False)

    def _given(self, each: ScannedFile, name: str, text: str | None, rows: int) -> Any:
        import pyarrow

        if text is None:
            return pyarrow.repeat(each.given[name], rows)
        return pyarrow.repeat(pyarrow.scalar(float(numbers_of([each.given[text].as_py()])[0])), rows)


def _day(given: Any) -> datetime | None:
    """The midnight, in UTC, that a value of all rows of a file is read as; None for any other value."""
    value = None if given is None else given.as_py()
    if isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        with suppress(ValueError):
            value = date.fromisoformat(value)
    return datetime(value.year, value.month, value.day, tzinfo=UTC) if type(value) is date else None


def _kept(dropped: Any, begin: int, rows: int) -> Any:
    """The rows of a file that stay; None for all."""
    import pyarrow

    if dropped is None:
        return None
    first, last = np.searchsorted(dropped, [begin, begin + rows])
    kept = np.ones(rows, dtype=bool)
    kept[dropped[first:last] - begin] = False
    return pyarrow.array(kept)


@contextmanager
def opened_parquet(file: StoredFile) -> Iterator[Any]:
    """A `pyarrow.parquet.ParquetFile`; one that lies elsewhere is asked at the end whether it is still the same."""
    from pyarrow import parquet

    if isinstance(file, LocalFile):
        with parquet.ParquetFile(file.path) as opened:
            yield opened
        return
    with file.open() as source, parquet.ParquetFile(source, buffer_size=PIECE, pre_buffer=False) as opened:
        yield opened
    file.check()


@contextmanager
def _by_dictionary(file: StoredFile, opened: Any, columns: Sequence[str]) -> Iterator[tuple[Any, int, Collection[str]]]:
    """A file to read these columns of, how many rows at once, and which columns come with their dictionaries."""
    from pyarrow import parquet

    if not isinstance(file, LocalFile):
        yield opened, BATCH, ()
        return
    try:
        rows, long = reading_of(opened, file, columns, BATCH)
    except ValueError:
        raise FileError(f"{file} {DAMAGED}") from None
    if not long:
        yield opened, rows, ()
        return
    with parquet.ParquetFile(file.path, read_dictionary=long) as again:
        yield again, rows, long


def _short(column: Any, by_dictionary: bool) -> Any:
    return without_long(column) if by_dictionary else column


def refuse_large_pages(files: Sequence[LocalFile], columns: Collection[str], memory_limit: int) -> None:
    """`TableError` for files of this machine that have a page in these columns which takes too much of the memory.

    O(pages), of which the headers alone are read. `FileError` where they do not follow each other as the footer says.
    """
    import pyarrow

    most = memory_limit // PARTS
    for file in files:
        try:
            with opened_parquet(file) as opened:
                largest = largest_page(opened, file, columns)
        except (ValueError, OSError, pyarrow.ArrowException):
            raise FileError(f"{file} {DAMAGED}") from None
        if largest > most:
            raise TableError(
                f"{file} has a page of {largest / 1e6:,.0f} MB, and the memory limit has room for pages of "
                f"{most / 1e6:,.0f} MB: write the file with smaller pages, or raise the limit (--memory, memory_limit)"
            )


class Declared(NamedTuple):
    """A file's declarations: the number of its rows, its Arrow schema, and columns of Parquet's own types of shapes."""

    rows: int
    schema: Any
    native: dict[str, str]


def declarations_of(file: StoredFile) -> Declared:
    """Read the declarations of a file; `FileError` if it is not Parquet."""
    import pyarrow

    try:
        with opened_parquet(file) as opened:
            rows, schema = opened.metadata.num_rows, opened.schema_arrow
            str(schema.remove_metadata())  # names may be no text
            return Declared(rows, schema, native_columns(opened.schema))
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError):
        raise FileError(f"{file} {DAMAGED}") from None


def plain(column: Any) -> Any:
    """A sound column, the words of a dictionary written out, and points as they are stored."""
    import pyarrow

    if getattr(column.type, "extension_name", "").startswith("geoarrow"):
        return column.storage
    found = sound(column)
    return found.dictionary_decode() if pyarrow.types.is_dictionary(found.type) else found


def kinds_of_fed(connection: DuckDBConnection, schema: Any, name: str) -> dict[str, str]:
    """The type of each column of an Arrow schema as the rows of a feed have it; without those that DuckDB has not."""
    import pyarrow

    fed = pyarrow.schema([pyarrow.field(field.name, _fed_type(field.type)) for field in schema])
    return connection.kinds_of(fed, name)


def _fed_type(kind: Any) -> Any:
    """The type of a column once it is read (`plain`)."""
    import pyarrow

    if getattr(kind, "extension_name", "").startswith("geoarrow"):
        return kind.storage_type
    return kind.value_type if pyarrow.types.is_dictionary(kind) else kind
