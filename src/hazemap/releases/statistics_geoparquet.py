"""Statistics of a value as GeoParquet 1.1: a row for every cell in every slot, all else in the metadata."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap import codec
from hazemap.atomic_write import whole
from hazemap.encoders import PublicLocationValues, Values
from hazemap.errors import FileError
from hazemap.estimate.value_estimates import KnownPeople, Measurements
from hazemap.privacy.statement import Statement
from hazemap.queries import Query
from hazemap.releases.file_integrity import Digest, reading, understood
from hazemap.releases.file_metadata import NEWEST, UnknownMethod, method_of, pack, parse, unpack
from hazemap.releases.map_geoparquet import LABEL, OF_VALUES, ROWS, extent, geo_metadata, joined, parts, pieces
from hazemap.session import Transcript

if TYPE_CHECKING:
    import pyarrow as pa

    from hazemap.releases.statistics_release import Statistics


class StatisticsContents(NamedTuple):
    """What a file of statistics holds: the fields of `Statistics`."""

    measurements: Measurements | KnownPeople
    value: str
    ranks: tuple[float, ...]
    statement: Statement
    algorithm: object
    transcript: Transcript


def write(made: "Statistics", path: Path) -> None:
    """One file, whole or not at all; the same statistics give the same bytes."""
    import pyarrow.parquet as pq

    columns = made.columns()
    digest, edges, kinds = Digest(), [], set()
    with (
        whole(path) as part,
        pq.ParquetWriter(
            part, _schema(columns), compression="zstd", write_page_checksum=True, store_schema=False
        ) as writer,
    ):
        for table, shapes in _tables(made, columns):
            writer.write_table(table, row_group_size=ROWS)
            digest.add(*parts(table))
            edges.append(extent(shapes))
            kinds |= {shape.geom_type for shape in shapes}
        packed, geo = pack(made.transcript).encode(), geo_metadata(edges, kinds)
        digest.add(geo, packed)
        label = digest.seal(_describe(made)).encode()
        writer.add_key_value_metadata({b"geo": geo, LABEL: label, **pieces(packed)})


def read(path: Path) -> StatisticsContents:
    """What `write` wrote; `FileError` for any other file, and for a damaged one."""
    import pyarrow.parquet as pq

    with reading(path):
        if path.open("rb").read(4) != b"PAR1":
            raise FileError(f"{path} is no Parquet, so it holds no statistics of a value")
    with reading(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
        metadata = file.metadata.metadata or {}
        label = parse(path, metadata[LABEL]) if LABEL in metadata else {}
        if label.get("kind") != OF_VALUES:
            raise FileError(f"{path} holds no statistics of a value" + ("; it is a map: Release.open" if label else ""))
        packed, digest = joined(metadata), Digest()
        for group in range(file.num_row_groups):
            digest.add(*parts(file.read_row_group(group)))
        digest.add(metadata[b"geo"], packed)
        digest.check(label)
        with understood(path, label):
            transcript = unpack(packed.decode())
            return StatisticsContents(
                measured(transcript),
                str(label["value"]),
                tuple(float(rank) for rank in label["ranks"]),
                Statement.from_json(label["statement"]),
                method_of(label["method"]),
                transcript,
            )


def measured(transcript: Transcript) -> Measurements | KnownPeople:
    """What the last answer says: the question before it names cells, slots and value encoding."""
    question, answer = transcript[-1]
    if isinstance(question, Query) and isinstance(question.encoder, PublicLocationValues):
        return KnownPeople.of(question.encoder, answer)
    if not isinstance(question, Query) or not isinstance(question.encoder, Values):
        raise FileError("the last question of this file is not about values")
    return Measurements.of(question.encoder, answer)


def _describe(made: "Statistics") -> dict[str, Any]:
    method = made.algorithm
    return {
        "format": NEWEST,
        "kind": OF_VALUES,
        "statement": made.statement.to_json(),
        "line": made.statement.line(),
        "counted": made.counted,
        "method": method.data if isinstance(method, UnknownMethod) else codec.to_json(method),
        "value": made.value,
        "ranks": list(made.ranks),
    }


def _schema(columns: dict[str, NDArray[Any]]) -> "pa.Schema":
    import pyarrow as pa

    kinds = {"O": pa.string(), "f": pa.float64(), "b": pa.bool_()}
    corners = pa.struct([(corner, pa.float64()) for corner in ("xmin", "ymin", "xmax", "ymax")])
    return pa.schema(
        [
            *(pa.field(name, kinds[column.dtype.kind], nullable=False) for name, column in columns.items()),
            pa.field("bbox", corners, nullable=False),
            pa.field("geometry", pa.binary(), nullable=False),
        ]
    )


def _tables(made: "Statistics", columns: dict[str, NDArray[Any]]) -> Iterator[tuple["pa.Table", NDArray[Any]]]:
    """The rows of the file with the polygons of their cells, a row group at a time."""
    import pyarrow as pa
    import shapely

    schema, leaves, slots = _schema(columns), made.measurements.tree.cells, len(made.slots)
    for start in range(0, leaves.size, max(1, ROWS // slots)):
        cells = slice(start, start + max(1, ROWS // slots))
        rows = slice(cells.start * slots, cells.stop * slots)
        shapes = leaves.tree.outlines(leaves.cells[cells])
        corners = [pa.array(np.repeat(corner, slots)) for corner in shapely.bounds(shapes).T]
        arrays = [pa.array(column[rows]) for column in columns.values()]
        arrays.append(pa.StructArray.from_arrays(corners, fields=list(schema.field("bbox").type)))
        arrays.append(pa.array(np.repeat(shapely.to_wkb(shapes), slots), pa.binary()))
        yield pa.Table.from_arrays(arrays, schema=schema), shapes
