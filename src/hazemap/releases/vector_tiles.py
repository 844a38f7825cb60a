"""Cells as Mapbox vector tiles (2.1): polygons in whole units of a tile, with the columns of a table.

A cell stands in every tile that it reaches, cut off a little beyond its edge. At a zoom where it is smaller than half a
pixel it is left out; the deepest zoom has all cells but those beyond 85° of latitude, where web maps end.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.machine_code.arrays import Floats, Ints
from hazemap.releases.pmtiles_archive import MapTile, varint

EXTENT = 4096
"""Units of a tile's side."""

BEYOND = 64
"""Units beyond a tile's edge at which a cell is cut off, so that its outline is not drawn along the edge."""

LEAST = 4
"""Units of the longer side of a cell that is seen: half a pixel of a tile of 512."""

POLYGON = b"\x18\x03"

FARTHEST = 85.0511287798066
"""Degrees of latitude at which the square of web maps ends."""


def tiles(layer: str, shapes: NDArray[Any], columns: dict[str, NDArray[Any]], deepest: int) -> Iterator[MapTile]:
    """All tiles of polygons in degrees with a row of columns each, down to a zoom. O(polygons · zooms they show at)."""
    import shapely

    flat = shapely.transform(_on_the_web(shapes), _unit)
    drawn = np.flatnonzero(~shapely.is_empty(flat))
    flat, columns = flat[drawn], {name: column[drawn] for name, column in columns.items()}
    bounds = shapely.bounds(flat)
    size = np.maximum(bounds[:, 2] - bounds[:, 0], bounds[:, 3] - bounds[:, 1])
    for zoom in range(deepest + 1):
        shown = np.flatnonzero((size * 2**zoom * EXTENT >= LEAST) | (zoom == deepest))
        if len(shown):
            yield from _of_zoom(layer, zoom, flat[shown], bounds[shown], {n: c[shown] for n, c in columns.items()},
                                zoom == deepest)  # fmt: skip


def _on_the_web(shapes: NDArray[Any]) -> NDArray[Any]:
    """Polygons up to where web maps end; what lies beyond is empty: no tile shows a pole."""
    import shapely

    _, south, _, north = shapely.bounds(shapes).T
    beyond = np.flatnonzero((south < -FARTHEST) | (north > FARTHEST))
    found = shapes.copy()
    found[beyond] = polygons_of(shapely.intersection(shapes[beyond], shapely.box(-180, -FARTHEST, 180, FARTHEST)))
    return found


def polygons_of(shapes: NDArray[Any]) -> NDArray[Any]:
    """Shapes without the points and lines that cutting leaves of them."""
    import shapely

    found = shapes.copy()
    for at in np.flatnonzero(shapely.get_type_id(shapes) == 7):
        parts = shapely.get_parts(shapely.get_parts(shapes[at]))
        found[at] = shapely.union_all(parts[shapely.get_dimensions(parts) == 2])
    found[shapely.get_dimensions(found) < 2] = shapely.Polygon()
    return found


def _unit(points: Floats) -> Floats:
    """Degrees as unit Web-Mercator coordinates, y southwards."""
    sine = np.sin(np.radians(np.clip(points[:, 1], -FARTHEST, FARTHEST)))
    return np.column_stack([points[:, 0] / 360 + 0.5, 0.5 - np.arctanh(sine) / (2 * np.pi)])


def _of_zoom(
    layer: str, zoom: int, flat: NDArray[Any], bounds: Floats, columns: dict[str, NDArray[Any]], all_of_them: bool
) -> Iterator[MapTile]:
    """The tiles of one zoom: each shape in each tile that it reaches."""
    count, edge = 1 << zoom, BEYOND / EXTENT
    first = np.clip(np.floor(bounds[:, :2] * count), 0, count - 1).astype(np.int64)
    last = np.clip(np.ceil(bounds[:, 2:] * count) - 1, first, count - 1).astype(np.int64)
    wide, high = (last - first + 1).T
    which = np.repeat(np.arange(len(flat)), wide * high)
    step = np.arange(len(which)) - np.repeat(np.cumsum(wide * high) - wide * high, wide * high)
    column, row = first[which, 0] + step % wide[which], first[which, 1] + step // wide[which]
    order = np.lexsort((which, column, row))
    which, column, row = which[order], column[order], row[order]
    shapes = flat[which]
    for at in np.flatnonzero((wide * high > 1)[which]):
        frame = np.array([column[at] - edge, row[at] - edge, column[at] + 1 + edge, row[at] + 1 + edge]) / count
        shapes[at] = _clipped(shapes[at], frame)
    corner = np.column_stack([column, row])
    owner, geometry = _geometries(shapes, corner, count, all_of_them)
    tile = row[owner] * count + column[owner]
    starts = np.flatnonzero(np.diff(tile, prepend=-1))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(owner)], strict=True):
        rows = which[owner[start:end]]
        content = _layer(layer, geometry[start:end], {name: values[rows] for name, values in columns.items()})
        yield MapTile(zoom, int(column[owner[start]]), int(row[owner[start]]), content)


def _clipped(shape: Any, frame: Floats) -> Any:
    """What of a shape is in a rectangle. The fast way fails for some that touch it along a line."""
    import shapely

    try:
        return shapely.clip_by_rect(shape, *frame)
    except shapely.errors.GEOSException:
        return polygons_of(np.array([shapely.intersection(shapely.make_valid(shape), shapely.box(*frame))]))[0]


def _geometries(shapes: NDArray[Any], corner: Ints, count: int, keep: bool) -> tuple[Ints, list[bytes]]:
    """Which shapes can be seen, and the commands that draw each; `keep` draws tiny ones as a unit square."""
    import shapely

    parts, owner = shapely.get_parts(shapes, return_index=True)
    polygons = shapely.get_type_id(parts) == 3
    parts, owner = parts[polygons], owner[polygons]
    rings, polygon = shapely.get_rings(parts, return_index=True)
    points, ring = shapely.get_coordinates(rings, return_index=True)
    owner_of_ring = owner[polygon]
    at = np.rint((points * count - corner[owner_of_ring[ring]]) * EXTENT).astype(np.int64)
    outer = np.diff(polygon, prepend=-1) > 0
    again = np.append(False, (np.diff(at, axis=0) == 0).all(axis=1) & (np.diff(ring) == 0))
    at, ring = at[~again], ring[~again]
    area = _areas(at, ring, len(rings))
    if keep:
        lost = np.setdiff1d(np.arange(len(shapes)), owner_of_ring[outer & (area != 0)])
        lost = lost[np.isin(lost, owner)]
    good = (area != 0) & np.repeat(area[outer] != 0, np.bincount(polygon, minlength=len(parts)))
    turned = (area > 0) != outer
    closed = np.bincount(ring, minlength=len(rings))
    first, length = (np.cumsum(closed) - closed)[good], closed[good] - 1
    within = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    last = np.repeat(first + length - 1, length)
    place = np.where(np.repeat(turned[good], length), last - within, np.repeat(first, length) + within)
    owners, drawn = owner_of_ring[good], at[place]
    if keep and len(lost):
        corners = at[np.searchsorted(owner_of_ring[ring], lost)]
        squares = corners[:, None] + np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
        order = np.argsort(np.append(owners, lost), kind="stable")
        of_points = np.argsort(np.append(np.repeat(owners, length), np.repeat(lost, 4)), kind="stable")
        drawn = np.concatenate([drawn, squares.reshape(-1, 2)])[of_points]
        length, owners = np.append(length, np.full(len(lost), 4))[order], np.append(owners, lost)[order]
    return np.unique(owners), _commands(owners, length, drawn)


def _areas(at: Ints, ring: Ints, size: int) -> Floats:
    """Twice the signed area of closed rings."""
    if not len(at):
        return np.zeros(size)
    cross = at[:-1, 0] * at[1:, 1] - at[1:, 0] * at[:-1, 1]
    return np.bincount(ring[:-1], np.where(np.diff(ring) == 0, cross, 0), size).astype(np.float64)


def _commands(owners: Ints, lengths: Ints, points: Ints) -> list[bytes]:
    """The commands of each shape's rings, one shape after another: steps from point to point, zigzag, as varints.

    `owners` are the shapes of the rings, ascending, `lengths` how many of the points are of each ring.
    """
    if not len(owners):
        return []
    shape = np.repeat(owners, lengths)
    steps = np.diff(points, axis=0, prepend=0)
    steps[np.diff(shape, prepend=-1) != 0] = points[np.diff(shape, prepend=-1) != 0]
    zigzag = (steps << 1) ^ (steps >> 63)
    # A ring of k points: 9, its first point, 8 (k − 1) + 2, its other points, 15.
    begin = np.cumsum(2 * lengths + 3) - (2 * lengths + 3)
    numbers = np.empty(int((2 * lengths + 3).sum()), dtype=np.int64)
    within = np.arange(len(points)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    place = np.repeat(begin, lengths) + 1 + 2 * within + (within > 0)
    numbers[place], numbers[place + 1] = zigzag[:, 0], zigzag[:, 1]
    numbers[begin], numbers[begin + 3], numbers[begin + 2 * lengths + 2] = 9, 8 * (lengths - 1) + 2, 15
    text, ends = varints(numbers)
    stops = ends[begin + 2 * lengths + 2][np.append(np.diff(owners) != 0, True)].tolist()
    return [text[start:end] for start, end in zip([0, *stops], stops, strict=False)]


def varints(numbers: Ints) -> tuple[bytes, Ints]:
    r"""Numbers from 0 on as varints one after another, and where each ends.

    >>> varints(np.array([1, 300]))
    (b'\x01\xac\x02', array([1, 3]))
    """
    most = max((int(numbers.max(initial=0)).bit_length() + 6) // 7, 1)
    octets = np.empty((len(numbers), most), dtype=np.uint8)
    used = np.ones((len(numbers), most), dtype=np.bool_)
    rest = numbers
    for at in range(most):
        more = rest > 127
        octets[:, at] = (rest & 127) | (more << 7)
        if at + 1 < most:
            used[:, at + 1] = used[:, at] & more
        rest = rest >> 7
    return octets[used].tobytes(), np.cumsum(used.sum(axis=1))


def _layer(name: str, geometry: list[bytes], columns: dict[str, NDArray[Any]]) -> bytes:
    """A tile of one layer: features, names of columns, and each different value once."""
    tags, values, count = list[Ints](), list[bytes](), 0
    for key, column in enumerate(columns.values()):
        written, place = _values(column)
        known = place >= 0
        tags.append(np.where(known, key, -1))
        tags.append(np.where(known, place + count, -1))
        values += written
        count += len(written)
    pairs = np.column_stack(tags)
    present = pairs >= 0
    text, ends = varints(pairs[present])
    stops = np.append(0, ends)[np.cumsum(present.sum(axis=1))].tolist()
    features = [
        _field(2, _field(2, text[start:end]) + POLYGON + _field(4, lines))
        for start, end, lines in zip([0, *stops], stops, geometry, strict=False)
    ]
    names = [_field(3, each.encode()) for each in columns]
    content = [_field(1, name.encode()), *features, *names, *values, b"\x28" + varint(EXTENT), b"\x78\x02"]
    return _field(3, b"".join(content))


def _values(column: NDArray[Any]) -> tuple[list[bytes], Ints]:
    """Each different value of a column as a message, and which of them each row has; −1 for no number."""
    if column.dtype.kind == "O":
        texts = [str(each).encode() for each in column]
        different = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        return [_field(4, _field(1, text)) for text in different], np.array([different[text] for text in texts])
    known = np.isfinite(column) if column.dtype.kind == "f" else np.ones(len(column), dtype=np.bool_)
    different_numbers, place = np.unique(column[known], return_inverse=True)
    found = np.full(len(column), -1)
    found[known] = place
    if column.dtype.kind == "f":
        octets = different_numbers.astype("<f8").tobytes()
        return [b"\x22\x09\x19" + octets[at : at + 8] for at in range(0, len(octets), 8)], found
    if column.dtype.kind == "b":
        return [_field(4, b"\x38" + bytes((int(each),))) for each in different_numbers], found
    return [_field(4, b"\x30" + varint((int(e) << 1) ^ (int(e) >> 63))) for e in different_numbers], found


def _field(number: int, content: bytes) -> bytes:
    """A field of bytes, with its length."""
    return _head(number, len(content)) + content


@cache
def _head(number: int, length: int) -> bytes:
    """What stands before the bytes of a field."""
    return bytes((number << 3 | 2,)) + varint(length)
