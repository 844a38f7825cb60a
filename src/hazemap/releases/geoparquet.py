"""A release as GeoParquet 1.1: one row a place, everything else in the metadata (docs/reference/files.md)."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hazemap.atomic_write import whole
from hazemap.errors import FileError
from hazemap.releases.file_metadata import (
    OF_MARKS,
    OF_RECIPES,
    OF_SLOTS,
    OF_VALUES,
    Digest,
    MapContents,
    MarkedContents,
    StatisticsContents,
    TimedContents,
    describe,
    map_contents,
    marked_contents,
    pack,
    parse_label,
    reading,
    statistics_contents,
    timed_contents,
    tree_of,
    understood,
)
from hazemap.spatial.plane import plane_of, reference_system

if TYPE_CHECKING:
    import pyarrow as pa

    from hazemap.releases.base_release import BaseRelease, Rows

ROWS = 1 << 16
"""Rows of a row group: what is in memory as polygons at one time."""

PIECE = 1 << 25
"""Bytes of one metadata value: readers refuse longer ones (100 MB), so a long transcript is several."""

FROM_ANSWERS: dict[str, Callable[[dict[str, Any], str], MarkedContents | StatisticsContents | TimedContents]] = {
    OF_VALUES: statistics_contents,
    OF_MARKS: marked_contents,
    OF_SLOTS: timed_contents,
}
"""Kinds of files of which all numbers follow from the stored answers, and how they are read."""

LABEL, TRANSCRIPT = b"hazemap", b"hazemap.transcript."


def write(release: "BaseRelease", path: Path) -> None:
    """One file, whole or not at all; the same release gives the same bytes."""
    import pyarrow.parquet as pq

    digest, edges, kinds = Digest(), list[list[float]](), set[str]()
    blocks = release.rows(ROWS)
    schema = _schema(next(blocks).columns)
    with (
        whole(path) as part,
        pq.ParquetWriter(part, schema, compression="zstd", write_page_checksum=True, store_schema=False) as writer,
    ):
        for rows in blocks:
            table = _table(schema, rows)
            writer.write_table(table, row_group_size=ROWS)
            digest.add(*parts(table))
            edges.append(extent(rows.shapes))
            kinds |= {shape.geom_type for shape in rows.shapes}
        packed, geo = pack(release.transcript).encode(), geo_metadata(edges, kinds, release.cells.tree)
        digest.add(geo, packed)
        label = digest.seal(describe(release)).encode()
        writer.add_key_value_metadata({b"geo": geo, LABEL: label, **pieces(packed)})


def read(path: Path) -> MapContents | MarkedContents | StatisticsContents | TimedContents:
    """What `write` wrote; `FileError` for any other file, and for a damaged one."""
    import pyarrow.parquet as pq

    with reading(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
        metadata = file.metadata.metadata or {}
        if LABEL not in metadata:
            raise FileError(
                f"{path} is Parquet, but no release of hazemap: its metadata has no key 'hazemap'."
                " Tools that rewrite a file drop it; open the file that was published"
            )
        label = parse_label(path, metadata[LABEL])
        from_answers = FROM_ANSWERS.get(str(label.get("kind")))
        if label.get("kind") == OF_RECIPES:
            raise FileError(f"{path} holds answers of a study: open it with hazemap.open, which opens all releases")
        packed = joined(metadata)
        digest, names, numbers = Digest(), [], []
        for group in range(file.num_row_groups):
            table = file.read_row_group(group)
            digest.add(*parts(table))
            if from_answers is None:
                names += table.column(0).to_pylist()
                numbers.append([numbers_of(table[name]) for name in ("count", "unbiased", "stddev")])
        digest.add(metadata[b"geo"], packed)
        digest.check(label)
        with understood(path, label):
            if from_answers is not None:
                return from_answers(label, packed.decode())
            cells = tree_of(label).named(names)
            columns = np.hstack(numbers) if numbers else np.empty((3, 0))
            return map_contents(label, packed.decode(), cells, columns)


def pieces(packed: bytes) -> dict[bytes, bytes]:
    """A packed transcript as metadata."""
    starts = range(0, len(packed), PIECE)
    return {TRANSCRIPT + b"%d" % number: packed[start : start + PIECE] for number, start in enumerate(starts)}


def joined(metadata: dict[bytes, bytes]) -> bytes:
    """What `pieces` took apart."""
    number = sum(key.startswith(TRANSCRIPT) for key in metadata)
    return b"".join(metadata[TRANSCRIPT + b"%d" % each] for each in range(number))


def _schema(columns: dict[str, NDArray[Any]]) -> "pa.Schema":
    import pyarrow as pa

    kinds = {"O": pa.string(), "f": pa.float64(), "b": pa.bool_(), "i": pa.int16()}
    corners = pa.struct([(corner, pa.float64()) for corner in ("xmin", "ymin", "xmax", "ymax")])
    fields = {name: kinds[column.dtype.kind] for name, column in columns.items()}
    fields |= {"bbox": corners, "geometry": pa.binary()}
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in fields.items()])


def _table(schema: "pa.Schema", rows: "Rows") -> "pa.Table":
    """Some rows with their polygons."""
    import pyarrow as pa
    import shapely

    corners = [pa.array(np.repeat(corner, rows.times)) for corner in shapely.bounds(rows.shapes).T]
    arrays = [pa.array(column) for column in rows.columns.values()]
    arrays.append(pa.StructArray.from_arrays(corners, fields=list(schema.field("bbox").type)))
    arrays.append(pa.array(np.repeat(shapely.to_wkb(rows.shapes), rows.times), pa.binary()))
    return pa.Table.from_arrays(arrays, schema=schema)


def parts(table: "pa.Table") -> Iterator[bytes]:
    """Every name, type and value of a table as bytes, however its file was laid out."""
    import pyarrow as pa

    flat = table.flatten()
    for name, column in zip(flat.column_names, flat.columns, strict=True):
        yield f"{name} {column.type} {column.null_count} {len(column)}".encode()
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            texts = [each.encode() if isinstance(each, str) else each for each in column.to_pylist()]
            yield np.array([len(each) for each in texts], "<i8").tobytes()
            yield b"".join(texts)
        else:
            values = numbers_of(column)
            yield values.astype(values.dtype.newbyteorder("<")).tobytes()


def numbers_of(column: "pa.ChunkedArray") -> NDArray[Any]:
    """The numbers of a column; where none is missing from their memory, which does not load pandas."""
    import pyarrow as pa

    number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if column.null_count or not number:
        values: NDArray[Any] = column.to_numpy()
        return values
    kind = column.type.to_pandas_dtype()
    parts_of = [np.frombuffer(c.buffers()[1], kind)[c.offset : c.offset + len(c)] for c in column.chunks if len(c)]
    return np.concatenate([np.empty(0, kind), *parts_of])


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
