"""A release as GeoParquet 1.1: one row a place, everything else in the metadata (docs/reference/files.md)."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Cells, NamedByDigits, Tree
from hazemap.errors import FileError
from hazemap.files.atomic_write import whole
from hazemap.queries.algorithm_session import Transcript
from hazemap.releases import byte_digest
from hazemap.releases.column_digests import (
    MOST_IN_MEMORY,
    MOST_LETTERS,
    Digest,
    column_digests,
    letters_of,
    numbers_of,
    parts,
    plain,
    texts_of,
)
from hazemap.releases.contents_of_answers import (
    marked_contents,
    marked_slots_contents,
    statistics_contents,
    timed_contents,
)
from hazemap.releases.file_metadata import (
    BY_COLUMN,
    OF_MARKS,
    OF_MARKS_IN_SLOTS,
    OF_RECIPES,
    OF_SLOTS,
    OF_VALUES,
    MapContents,
    MarkedContents,
    MarkedSlotsContents,
    StatisticsContents,
    TimedContents,
    describe,
    map_contents,
    pack,
    parse_label,
    read_later,
    reading,
    tree_of,
    understood,
    unpack,
)
from hazemap.releases.page_sizes import ALIKE, ROWS, bounded
from hazemap.releases.transcript_arrays import packed_arrays, unpacked_arrays
from hazemap.spatial.plane import plane_of, reference_system

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from hazemap.releases.base_release import BaseRelease, Rows

PIECE = 1 << 25
"""Bytes of one metadata value: readers refuse longer ones (100 MB), so a long transcript is several."""

FromAnswers = MarkedContents | MarkedSlotsContents | StatisticsContents | TimedContents

FROM_ANSWERS: dict[str, Callable[[dict[str, Any], str], FromAnswers]] = {
    OF_VALUES: statistics_contents,
    OF_MARKS: marked_contents,
    OF_MARKS_IN_SLOTS: marked_slots_contents,
    OF_SLOTS: timed_contents,
}
"""Kinds of files of which all numbers follow from the stored answers, and how they are read."""

LABEL, TRANSCRIPT, ARRAYS = b"hazemap", b"hazemap.transcript.", b"hazemap.arrays."

NUMBERS = ("best_guess", "unbiased", "stddev")
"""The columns that a map is read from, beside the names of its cells; all others follow from these."""


class HoldsAnswers(FileError):
    """A file holds answers of a study, and no cells."""


def write(release: "BaseRelease", path: Path) -> None:
    """One file, whole or not at all; the same release gives the same bytes."""
    described = describe(release)
    by_column = "kind" not in described
    digest, columns = Digest(), dict[str, list[str]]()
    edges, kinds = list[list[float]](), set[str]()
    blocks = release.file_rows(ROWS)
    schema = schema_of(next(blocks).columns)
    with whole(path) as part, parquet_writer(part, schema, apart=by_column) as writer:
        for rows in blocks:
            table = table_of(schema, rows)
            writer.write_table(table, row_group_size=ROWS)
            if by_column:
                for name, each in column_digests(table).items():
                    columns.setdefault(name, []).append(each)
            else:
                digest.add(*parts(table))
            edges.append(extent(rows.shapes))
            kinds |= kinds_of_shapes(rows.shapes)
        geo = geo_metadata(edges, kinds, release.cells.tree)
        beside: list[NDArray[Any]] | None = [] if by_column else None
        packed = pack(release.transcript, beside).encode()
        metadata = {b"geo": geo, **pieces(packed)}
        if beside is not None:
            arrays = packed_arrays(beside)
            metadata |= pieces(arrays, ARRAYS)
            described["format"] = BY_COLUMN
            described["integrity"] = {"columns": columns, **digests_of(geo, packed, arrays)}
        else:
            digest.add(geo, packed)
        writer.add_key_value_metadata({**metadata, LABEL: digest.seal(described).encode()})


@contextmanager
def parquet_writer(path: Path, schema: "pa.Schema", *, apart: bool = False) -> Iterator["pq.ParquetWriter"]:
    """Writes a table, and in the end the digest of all bytes of the file.

    Where each text stands `apart`, in one row, none are put into a dictionary: there is nothing to look up.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    settings: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True, "store_schema": False}
    if apart:
        texts = (pa.types.is_string, pa.types.is_binary)
        flat = schema.empty_table().flatten().schema
        settings["use_dictionary"] = [each.name for each in flat if not any(is_(each.type) for is_ in texts)]
    with pq.ParquetWriter(path, schema, **settings) as writer:
        yield writer
        writer.add_key_value_metadata({byte_digest.KEY: byte_digest.UNKNOWN})
    byte_digest.fill(path)


def read(path: Path) -> MapContents | FromAnswers:
    """What `write` wrote; `FileError` for any other file, and for a damaged one.

    Of a map in the newest format the columns that questions need are read and checked, and the transcript when it is
    asked for; `check` reads everything.
    """
    with opened(path) as (file, metadata, label):
        if label["format"] == BY_COLUMN and "kind" not in label:
            return _map(path, file, metadata, label)
        from_answers = FROM_ANSWERS.get(str(label.get("kind")))
        if label.get("kind") == OF_RECIPES:
            raise HoldsAnswers(f"{path} holds answers of a study: open it with hazemap.open, which opens all releases")
        packed = joined(metadata)
        digest, names, numbers, letters = Digest(), [], [], 0
        for table in tables(path, file, 1 if from_answers is None else ALIKE):
            digest.add(*parts(table))
            if from_answers is None:
                letters += letters_of(table.select([0]))
                if letters > MOST_IN_MEMORY:
                    raise ValueError("its names would be many times as long as it is")
                names += plain(table.column(0)).to_pylist()
                numbers.append([numbers_of(table[name]) for name in NUMBERS])
        digest.add(metadata[b"geo"], packed)
        digest.check(label)
        with understood(path, label):
            if from_answers is not None:
                return from_answers(label, packed.decode())
            cells = tree_of(label).named(names)
            columns = list(np.hstack(numbers) if numbers else np.empty((3, 0)))
            return map_contents(label, read_later(unpack, path, label, packed.decode()), cells, columns)


def is_parquet(path: Path) -> bool:
    """Whether a file begins as Parquet does."""
    with reading(path), path.open("rb") as file:
        return file.read(4) == b"PAR1"


def check(path: Path) -> None:
    """Read all of a file, also what no question needs; `FileError` unless everything fits its digest."""
    with opened(path) as (file, metadata, label):
        by_column = label["format"] == BY_COLUMN and "kind" not in label
        digest = metadata.get(byte_digest.KEY, b"" if by_column else None)
        if digest is not None and not byte_digest.fits(path, digest):
            raise ValueError("its bytes do not match their digest")
        if not by_column:
            return  # `read` reads all of such a file; older ones have no digest of all bytes
        said = _sealed(label)
        columns = dict[str, list[str]]()
        wanted = {"columns": columns, **digests_of(metadata[b"geo"], joined(metadata), joined(metadata, ARRAYS))}
        for table in tables(path, file, 1):
            for name, each in column_digests(table).items():
                columns.setdefault(name, []).append(each)
        if wanted != said:
            raise ValueError("its content does not match its digest")


def tables(
    path: Path, file: "pq.ParquetFile", rows_a_byte: int = ALIKE, most_letters: int = MOST_LETTERS
) -> Iterator["pa.Table"]:
    """What a file holds, row group by row group, within `page_sizes.bounded`.

    Columns of texts that stand in a dictionary keep it: such a text is there once.
    """
    with _with_dictionaries(path, file, bounded(path, file, rows_a_byte=rows_a_byte)) as checked:
        letters = 0
        for group in range(checked.num_row_groups):
            table = checked.read_row_group(group)
            letters += letters_of(table)
            if letters > most_letters:
                raise ValueError("its texts would be many times as long as it is")
            yield table


@contextmanager
def _with_dictionaries(path: Path, file: "pq.ParquetFile", columns: list[str]) -> Iterator["pq.ParquetFile"]:
    """A file of which some columns of texts are read with their dictionaries."""
    import pyarrow.parquet as pq

    if not columns:
        yield file
        return
    with pq.ParquetFile(path, page_checksum_verification=True, read_dictionary=columns) as again:
        yield again


@contextmanager
def opened(path: Path) -> Iterator[tuple["pq.ParquetFile", dict[bytes, bytes], dict[str, Any]]]:
    """A file, its metadata and its label; what is wrong with any of them is a `FileError`."""
    import pyarrow.parquet as pq

    with reading(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
        metadata = file.metadata.metadata or {}
        if LABEL not in metadata:
            raise FileError(
                f"{path} is Parquet, but no release of hazemap: its metadata has no key 'hazemap'."
                " Tools that rewrite a file drop it; open the file that was published"
            )
        yield file, metadata, parse_label(path, metadata[LABEL])


def _map(path: Path, file: "pq.ParquetFile", metadata: dict[bytes, bytes], label: dict[str, Any]) -> MapContents:
    """A map: its names and numbers, each checked with the digests of its column."""
    said = _sealed(label)
    name = file.schema_arrow.names[0]
    repeated = bounded(path, file, [name, *NUMBERS])
    with _with_dictionaries(path, file, repeated) as checked:
        table = checked.read([name, *NUMBERS])
    if table.column_names != [name, *NUMBERS]:
        raise ValueError("its columns do not stand in their order")
    if not len(table):
        raise ValueError("it holds no cells")
    at = 0
    for group in range(file.num_row_groups):
        size = file.metadata.row_group(group).num_rows
        for column, found in column_digests(table.slice(at, size)).items():
            if said["columns"][column][group : group + 1] != [found]:
                raise ValueError(f"its column {column!r} does not match its digest")
        at += size
    if at != len(table) or any(len(said["columns"][column]) != file.num_row_groups for column in table.column_names):
        raise ValueError("it does not have the rows of its digest")
    if any(str(table[column].type) != "double" or table[column].null_count for column in NUMBERS):
        raise ValueError("a column of numbers holds something else")
    columns = [numbers_of(table[column]) for column in NUMBERS]
    if not all(np.isfinite(each).all() for each in columns):
        raise ValueError("a column holds a number that is not finite")
    with understood(path, label):
        tree = tree_of(label)
        cells = cells_named(tree, plain(table[name]))
        packed, arrays = joined(metadata), joined(metadata, ARRAYS)
        later = read_later(_transcript, path, label, packed, arrays, said)
        return map_contents(label, later, cells, columns, tree)


def _transcript(packed: bytes, arrays: bytes, said: dict[str, Any]) -> Transcript:
    """A transcript with its long arrays, once they fit their digests."""
    for name, text in (("transcript", packed), ("arrays", arrays)):
        if said[name] != sha256(text).hexdigest():
            raise ValueError(f"its {name} does not match its digest")
    return unpack(packed.decode(), unpacked_arrays(arrays))


def _sealed(label: dict[str, Any]) -> dict[str, Any]:
    """The digests of all parts that a label names, once it fits its own."""
    Digest().check(label)
    said: dict[str, Any] = label["integrity"]
    if said.keys() != {"columns", *digests_of(b"", b"", b"")} or not isinstance(said["columns"], dict):
        raise ValueError("its label lacks digests")
    return said


def digests_of(geo: bytes, packed: bytes, arrays: bytes) -> dict[str, Any]:
    """SHA-256 of the metadata of a map."""
    parts_of = {"geo": geo, "transcript": packed, "arrays": arrays}
    return {name: sha256(content).hexdigest() for name, content in parts_of.items()}


def cells_named(tree: Tree, column: "pa.ChunkedArray") -> Cells:
    """The cells with the names in a column."""
    if isinstance(tree, NamedByDigits):
        found = tree.named_in(*texts_of(column))
        if found is not None:
            return found
    return tree.named(column.to_pylist())


def pieces(packed: bytes, key: bytes = TRANSCRIPT) -> dict[bytes, bytes]:
    """A packed transcript, or its arrays, as metadata."""
    starts = range(0, len(packed), PIECE)
    return {key + b"%d" % number: packed[start : start + PIECE] for number, start in enumerate(starts)}


def joined(metadata: dict[bytes, bytes], key: bytes = TRANSCRIPT) -> bytes:
    """What `pieces` took apart."""
    number = sum(each.startswith(key) for each in metadata)
    return b"".join(metadata[key + b"%d" % each] for each in range(number))


def schema_of(columns: dict[str, NDArray[Any]]) -> "pa.Schema":
    """The columns of a file with these and the outlines, and their types."""
    import pyarrow as pa

    kinds = {"O": pa.string(), "f": pa.float64(), "b": pa.bool_(), "i": pa.int16()}
    corners = pa.struct([(corner, pa.float64()) for corner in ("xmin", "ymin", "xmax", "ymax")])
    fields = {name: kinds[column.dtype.kind] for name, column in columns.items()}
    fields |= {"bbox": corners, "geometry": pa.binary()}
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in fields.items()])


def table_of(schema: "pa.Schema", rows: "Rows") -> "pa.Table":
    """Some rows with their polygons."""
    import pyarrow as pa
    import shapely

    corners = [pa.array(np.repeat(corner, rows.times)) for corner in shapely.bounds(rows.shapes).T]
    arrays = [pa.array(column) for column in rows.columns.values()]
    arrays.append(pa.StructArray.from_arrays(corners, fields=list(schema.field("bbox").type)))
    arrays.append(pa.array(np.repeat(shapely.to_wkb(rows.shapes), rows.times), pa.binary()))
    return pa.Table.from_arrays(arrays, schema=schema)


def kinds_of_shapes(shapes: NDArray[Any]) -> set[str]:
    """Which types of geometry there are."""
    import shapely

    _, first = np.unique(shapely.get_type_id(shapes), return_index=True)
    return {shape.geom_type for shape in shapes[first]}


def extent(shapes: NDArray[Any]) -> list[float]:
    """West, south, east and north of some polygons together."""
    import shapely

    return list(map(float, shapely.total_bounds(shapes)))


def geo_metadata(extents: list[list[float]], kinds: set[str], tree: Any = None) -> bytes:
    """The metadata of GeoParquet 1.1: no `crs` means OGC:CRS84, longitude before latitude; null is no known one."""
    corners = {corner: ["bbox", corner] for corner in ("xmin", "ymin", "xmax", "ymax")}
    column: dict[str, Any] = {
        "encoding": "WKB",
        "geometry_types": sorted(kinds),
        "edges": "planar",
        "covering": {"bbox": corners},
    }
    if plane := plane_of(tree):
        column["crs"] = reference_system(plane.crs).to_json_dict() if plane.crs else None
    if extents:
        edges = np.array(extents)
        column["bbox"] = [*np.nanmin(edges[:, :2], axis=0).tolist(), *np.nanmax(edges[:, 2:], axis=0).tolist()]
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
    return json.dumps(geo, sort_keys=True).encode()
