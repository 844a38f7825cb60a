"""Whether every column of a file is what follows from its numbers: intervals, areas, outlines, shares, means.

hazemap reads few columns and makes the others anew. Other tools show what stands in the file, so somebody who writes a
file anew, with right digests, could show them what the answers do not say.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hazemap import __version__
from hazemap.errors import TranscriptMismatch
from hazemap.releases import geoparquet
from hazemap.releases.column_digests import numbers_of, plain
from hazemap.releases.page_sizes import ROWS

if TYPE_CHECKING:
    import pyarrow as pa

    from hazemap.releases.base_release import BaseRelease

NEAR = 1e-9
"""How far numbers may differ, relative to themselves or to 1: other processors round in other ways."""


def compare(release: "BaseRelease", path: Path) -> None:
    """Raise `TranscriptMismatch` unless all of a file's columns, and what other tools read beside them, follow.

    Columns that this version makes and the file lacks are left out: an older version wrote it. O(rows).
    """
    with geoparquet.opened(path) as (file, metadata, label):
        other = _other_label(release, label) or _other_rows(release, geoparquet.tables(path, file), metadata[b"geo"])
    if other:
        raise TranscriptMismatch(
            f"{other} is not what follows from the stored answers: the file was changed after it was made, or made by "
            "another version of hazemap"
        )


def _other_label(release: "BaseRelease", label: dict[str, Any]) -> str | None:
    """What the label of a file says otherwise; other versions may put the line in other words."""
    if label["counted"] != release.counted:
        return "'counted' of its label"
    newest = release.statement.version == __version__
    return "'line' of its label" if newest and label["line"] != release.statement.line() else None


def _other_rows(release: "BaseRelease", tables: Iterator["pa.Table"], geo: bytes) -> str | None:
    """What the rows of a file, or the metadata of their geometry, say otherwise."""
    blocks = release.file_rows(ROWS)
    schema = geoparquet.schema_of(next(blocks).columns)
    edges, kinds, stored = list[list[float]](), set[str](), _Rows(tables)
    for rows in blocks:
        ours = geoparquet.table_of(schema, rows)
        theirs = stored.next(len(ours))
        if theirs is None:
            return "the number of its rows"
        for name in theirs.column_names:
            if name not in ours.column_names or not _same(ours[name], theirs[name]):
                return f"its column {name!r:.80}"
        edges.append(geoparquet.extent(rows.shapes))
        kinds |= geoparquet.kinds_of_shapes(rows.shapes)
    if stored.next(1) is not None:
        return "the number of its rows"
    wanted, found = json.loads(geoparquet.geo_metadata(edges, kinds, release.cells.tree)), json.loads(geo)
    ours_at, theirs_at = (each["columns"]["geometry"].pop("bbox", []) for each in (wanted, found))
    same = len(ours_at) == len(theirs_at) and np.allclose(ours_at, theirs_at, rtol=NEAR, atol=NEAR)
    return None if same and wanted == found else "'geo' of its metadata"


class _Rows:
    """The rows of a file, as many at a time as are asked for."""

    def __init__(self, tables: Iterator["pa.Table"]) -> None:
        self.tables = tables
        self.rest: pa.Table | None = None

    def next(self, number: int) -> "pa.Table | None":
        """So many rows; None where there are fewer."""
        import pyarrow as pa

        while self.rest is None or len(self.rest) < number:
            more = next(self.tables, None)
            if more is None:
                return None
            whole = [plain(each) for each in more.columns]
            more = pa.table(whole, names=more.column_names)
            self.rest = more if self.rest is None else pa.concat_tables([self.rest, more])
        found, self.rest = self.rest.slice(0, number), self.rest.slice(number)
        return found


def _same(ours: "pa.ChunkedArray", theirs: "pa.ChunkedArray") -> bool:
    """Whether two columns hold the same, numbers and outlines but for rounding."""
    import pyarrow as pa

    if ours.type != theirs.type or theirs.null_count:
        return False
    if ours.equals(theirs):
        return True
    if pa.types.is_struct(ours.type):
        parts = (each.flatten() for each in (ours, theirs))
        return all(_same(one, other) for one, other in zip(*parts, strict=True))
    if pa.types.is_floating(ours.type):
        return bool(np.allclose(numbers_of(ours), numbers_of(theirs), rtol=NEAR, atol=NEAR, equal_nan=True))
    return pa.types.is_binary(ours.type) and _same_shapes(ours, theirs)


def _same_shapes(ours: "pa.ChunkedArray", theirs: "pa.ChunkedArray") -> bool:
    """Whether the corners of outlines are the same, in their order."""
    import shapely

    one, other = (shapely.from_wkb(np.array(each.to_pylist(), dtype=object)) for each in (ours, theirs))
    return bool(shapely.equals_exact(one, other, tolerance=NEAR * 360).all())
