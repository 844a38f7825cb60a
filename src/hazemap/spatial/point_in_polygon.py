"""Point in polygon: the hot loops of `polygons`, which imports them inside its methods.

The plane is cut into equal squares. A square that no border touches is answered at once; in the others the few
polygons that meet it are asked one by one, each over the edges of a narrow band of latitudes (ray casting, half-open).
A point so near a border that floating point cannot tell its side is reported as in doubt, for the caller to decide.
Squares and bands are found by one monotone formula for edges and points alike, so no margin can be too small.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.machine_code.arrays import Floats
from hazemap.vdaf.compiled_loops import compiled

Whole = NDArray[np.int32]

IN_DOUBT = -1
"""Stands for a polygon where floating point cannot tell."""

_TURN = 3.3306690738754716e-16  # a determinant beyond this part of its terms has the right sign (Shewchuk 1997)
_WIDER = 1e-6  # of a square: far more than rounding moves the place where an edge leaves a row


class LatitudeBands(NamedTuple):
    """For each polygon its latitudes in equal bands, and for each band the edges that meet it.

    Those of band b of polygon p are `edge[start[first[p] + b] : start[first[p] + b + 1]]`.
    """

    low: Floats
    scale: Floats
    first: NDArray[np.int64]
    start: NDArray[np.int64]
    edge: Whole


class SquareGrid(NamedTuple):
    """Equal squares from the south-west on, `scale` of them a degree, row by row."""

    west: float
    south: float
    scale: float
    columns: int
    rows: int


class PolygonSquares(NamedTuple):
    """The squares of the plane and the polygons that may hold a point of each.

    `answer` is 0 without a polygon, p + 1 where polygon p alone decides, or -1 - r where record r is the first of a
    chain: `polygon` of a record, whether it holds all the square (`whole`), and the `after` record (-1: none).
    """

    frame: SquareGrid
    answer: Whole
    polygon: Whole
    whole: NDArray[np.bool_]
    after: Whole


@compiled
def step(value: float, low: float, scale: float, count: int) -> int:
    """The step of `count` equal ones from `low` that holds a value; never falls as the value rises."""
    return int(min(max((value - low) * scale, 0.0), count - 1.0))


@compiled
def banded(
    edges: Floats, owner: Whole, polygons: int
) -> tuple[Floats, Floats, NDArray[np.int64], NDArray[np.int64], Whole]:
    """The fields of `LatitudeBands`; edges are float64[n, 4] (x, y, x, y), sorted by `owner`."""
    low, high, count = np.full(polygons, np.inf), np.full(polygons, -np.inf), np.zeros(polygons, dtype=np.int64)
    for e in range(len(edges)):
        p = owner[e]
        low[p] = min(low[p], edges[e, 1], edges[e, 3])
        high[p] = max(high[p], edges[e, 1], edges[e, 3])
        count[p] += 1
    scale, first = np.ones(polygons), np.zeros(polygons + 1, dtype=np.int64)
    for p in range(polygons):
        bands = max(count[p] // 2, 1)
        first[p + 1] = first[p] + bands
        if high[p] > low[p]:
            scale[p] = bands / (high[p] - low[p])
    start = np.zeros(first[polygons] + 1, dtype=np.int64)
    for e in range(len(edges)):
        p = owner[e]
        bands = first[p + 1] - first[p]
        until = step(max(edges[e, 1], edges[e, 3]), low[p], scale[p], bands)
        for b in range(step(min(edges[e, 1], edges[e, 3]), low[p], scale[p], bands), until + 1):
            start[first[p] + b + 1] += 1
    for b in range(len(start) - 1):
        start[b + 1] += start[b]
    place, edge = start[:-1].copy(), np.empty(start[-1], dtype=np.int32)
    for e in range(len(edges)):
        p = owner[e]
        bands = first[p + 1] - first[p]
        until = step(max(edges[e, 1], edges[e, 3]), low[p], scale[p], bands)
        for b in range(step(min(edges[e, 1], edges[e, 3]), low[p], scale[p], bands), until + 1):
            edge[place[first[p] + b]] = e
            place[first[p] + b] += 1
    return low, scale, first, start, edge


@compiled
def holds(edges: Floats, bands: LatitudeBands, p: int, x: float, y: float) -> int:
    """1 if polygon p holds the point or has it on its border, 0 if not, `IN_DOUBT` next to a slanted edge."""
    at = bands.first[p] + step(y, bands.low[p], bands.scale[p], bands.first[p + 1] - bands.first[p])
    inside = 0
    for k in range(bands.start[at], bands.start[at + 1]):
        e = bands.edge[k]
        x0, y0, x1, y1 = edges[e, 0], edges[e, 1], edges[e, 2], edges[e, 3]
        if y == y0 and (x == x0 or (y == y1 and min(x0, x1) <= x <= max(x0, x1))):
            return 1
        if (y0 > y) == (y1 > y):
            continue
        if x0 == x1:
            if x == x0:
                return 1
            if x < x0:
                inside = 1 - inside
            continue
        left, right = (x1 - x0) * (y - y0), (x - x0) * (y1 - y0)
        turn = left - right
        if abs(turn) <= _TURN * (abs(left) + abs(right)):
            return IN_DOUBT
        if (turn > 0) == (y1 > y0):
            inside = 1 - inside
    return inside


@compiled
def cut_by(
    edges: Floats, bands: LatitudeBands, p: int, frame: SquareGrid, stamp: Whole, cells: Whole
) -> tuple[Whole, int]:
    """The squares that the border of polygon p meets, stamped with p + 1; `cells` is room for them, and grows."""
    found, wide = 0, _WIDER / frame.scale
    for k in range(bands.start[bands.first[p]], bands.start[bands.first[p + 1]]):  # some edges come several times
        e = bands.edge[k]
        x0, y0, x1, y1 = edges[e, 0], edges[e, 1], edges[e, 2], edges[e, 3]
        bottom = step(min(y0, y1), frame.south, frame.scale, frame.rows)
        top = step(max(y0, y1), frame.south, frame.scale, frame.rows)
        for row in range(bottom, top + 1):
            low, high = min(x0, x1), max(x0, x1)
            if top > bottom:  # only what of the edge lies in the row, and a little more
                at = x0 + (x1 - x0) * ((frame.south + (row - _WIDER) / frame.scale) - y0) / (y1 - y0)
                to = x0 + (x1 - x0) * ((frame.south + (row + 1 + _WIDER) / frame.scale) - y0) / (y1 - y0)
                low, high = max(low, min(at, to) - wide), min(high, max(at, to) + wide)
            until = step(high, frame.west, frame.scale, frame.columns)
            for column in range(step(low, frame.west, frame.scale, frame.columns), until + 1):
                cell = row * frame.columns + column
                if stamp[cell] != p + 1:
                    stamp[cell] = p + 1
                    if found == len(cells):
                        cells = np.concatenate((cells, cells))
                    cells[found] = cell
                    found += 1
    return cells, found


@compiled
def inside_of(
    edges: Floats, bands: LatitudeBands, p: int, frame: SquareGrid, stamp: Whole, cells: Whole
) -> tuple[Whole, int]:
    """The squares inside polygon p that its border does not meet (`stamp` has p + 1 where it does)."""
    found, crossing, begin = 0, np.empty(64), bands.first[p]
    count = bands.first[p + 1] - begin
    bottom = step(bands.low[p], frame.south, frame.scale, frame.rows)
    top = step(bands.low[p] + count / bands.scale[p], frame.south, frame.scale, frame.rows)
    for row in range(bottom, top + 1):
        y, crossings = frame.south + (row + 0.5) / frame.scale, 0
        at = begin + step(y, bands.low[p], bands.scale[p], count)
        for k in range(bands.start[at], bands.start[at + 1]):
            e = bands.edge[k]
            y0, y1 = edges[e, 1], edges[e, 3]
            if (y0 > y) != (y1 > y):
                if crossings == len(crossing):
                    crossing = np.concatenate((crossing, crossing))
                crossing[crossings] = edges[e, 0] + (edges[e, 2] - edges[e, 0]) * (y - y0) / (y1 - y0)
                crossings += 1
        crossing[:crossings].sort()
        for k in range(0, crossings - 1, 2):
            until = step(crossing[k + 1], frame.west, frame.scale, frame.columns)
            for column in range(step(crossing[k], frame.west, frame.scale, frame.columns), until + 1):
                cell = row * frame.columns + column
                if stamp[cell] != p + 1:
                    if found == len(cells):
                        cells = np.concatenate((cells, cells))
                    cells[found] = cell
                    found += 1
    return cells, found


@compiled
def squared(edges: Floats, bands: LatitudeBands, frame: SquareGrid) -> tuple[Whole, Whole, NDArray[np.bool_], Whole]:
    """`answer`, `polygon`, `whole` and `after` of `PolygonSquares`: O(squares · polygons over them + edges)."""
    size = frame.columns * frame.rows
    answer, last, stamp = np.zeros(size, dtype=np.int32), np.zeros(size, dtype=np.int32), np.zeros(size, dtype=np.int32)
    polygon, after = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.int32)
    whole, records = np.empty(1024, dtype=np.bool_), 0
    cells = np.empty(1024, dtype=np.int32)
    for p in range(len(bands.low)):
        if bands.start[bands.first[p]] == bands.start[bands.first[p + 1]]:
            continue
        for full in (False, True):
            if full:
                cells, found = inside_of(edges, bands, p, frame, stamp, cells)
            else:
                cells, found = cut_by(edges, bands, p, frame, stamp, cells)
            for k in range(found):
                cell = cells[k]
                if answer[cell] == 0 and full:
                    answer[cell] = p + 1
                if answer[cell] > 0 or (answer[cell] < 0 and whole[last[cell]]):
                    continue  # a polygon that holds all of the square ends its chain
                if records == len(polygon):
                    polygon, after = np.concatenate((polygon, polygon)), np.concatenate((after, after))
                    whole = np.concatenate((whole, whole))
                polygon[records], whole[records], after[records] = p, full, -1
                if answer[cell] == 0:
                    answer[cell] = -1 - records
                else:
                    after[last[cell]] = records
                last[cell] = records
                records += 1
    return answer, polygon[:records].copy(), whole[:records].copy(), after[:records].copy()


@compiled
def first_holding(edges: Floats, bands: LatitudeBands, squares: PolygonSquares, lon: Floats, lat: Floats) -> Whole:
    """1 + the first polygon that holds each point, 0 for none, `IN_DOUBT` where floating point cannot tell."""
    found, frame = np.zeros(lon.size, dtype=np.int32), squares.frame
    east, north = frame.west + frame.columns / frame.scale, frame.south + frame.rows / frame.scale
    for i in range(lon.size):
        x, y = lon[i], lat[i]
        if not (frame.west <= x <= east and frame.south <= y <= north):  # NaN compares false
            continue
        row = step(y, frame.south, frame.scale, frame.rows)
        answer = squares.answer[row * frame.columns + step(x, frame.west, frame.scale, frame.columns)]
        if answer >= 0:
            found[i] = answer
            continue
        record = -1 - answer
        while record >= 0:
            p = squares.polygon[record]
            side = 1 if squares.whole[record] else holds(edges, bands, p, x, y)
            if side != 0:
                found[i] = p + 1 if side > 0 else IN_DOUBT
                break
            record = squares.after[record]
    return found


@compiled
def zone(y: float, e: float) -> float:
    """The q of Snyder (1987, equation 3-12): s/(1 − e²s²) + artanh(e·s)/e, s the sine of a latitude in degrees."""
    sine = math.sin(math.radians(y))
    return sine / (1 - e * e * sine * sine) + math.atanh(e * sine) / e


@compiled
def mean_zone(y0: float, y1: float, e: float) -> float:
    """The mean of q between two latitudes, by Gauss and Legendre's rule of four points on pieces of two degrees.

    Its error there is below 1e-12.
    """
    pieces, mean = int(abs(y1 - y0) / 2) + 1, 0.0
    step_up = (y1 - y0) / pieces
    for piece in range(pieces):
        begin = y0 + step_up * piece
        mean += 0.17392742256872692 * zone(begin + step_up * 0.06943184420297371, e)
        mean += 0.32607257743127307 * zone(begin + step_up * 0.33000947820757187, e)
        mean += 0.32607257743127307 * zone(begin + step_up * 0.6699905217924281, e)
        mean += 0.17392742256872692 * zone(begin + step_up * 0.9305681557970263, e)
    return mean / pieces


@compiled
def areas(edges: Floats, owner: Whole, polygons: int, e: float) -> Floats:
    """∮ q dλ/2 over the edges of each polygon, straight in degrees, shells clockwise: times b² its square metres."""
    total = np.zeros(polygons)
    for i in range(len(edges)):
        x0, y0, x1, y1 = edges[i, 0], edges[i, 1], edges[i, 2], edges[i, 3]
        total[owner[i]] += math.radians(x1 - x0) * mean_zone(y0, y1, e) / 2
    return total


@compiled
def areas_inside(edges: Floats, first: NDArray[np.int64], which: NDArray[np.int64], boxes: Floats, e: float) -> Floats:
    """The area of each box (west, south, east, north) in its polygon, times b² in square metres.

    The edges of polygon p are edges[first[p] : first[p + 1]]. It is ∮ (q(φ) − q(south)) dλ/2 over the border, with
    longitudes and latitudes held within the box: so no ring is clipped. O(boxes · edges of their polygons).
    """
    found = np.zeros(len(boxes))
    for i in range(len(boxes)):
        west, south, east, north = boxes[i, 0], boxes[i, 1], boxes[i, 2], boxes[i, 3]
        floor = zone(south, e)
        height = zone(north, e) - floor
        for k in range(first[which[i]], first[which[i] + 1]):
            x0, y0, x1, y1 = edges[k, 0], edges[k, 1], edges[k, 2], edges[k, 3]
            if max(x0, x1) <= west or min(x0, x1) >= east or max(y0, y1) <= south or x0 == x1:
                continue
            begin, end, slope = min(max(x0, west), east), min(max(x1, west), east), (y1 - y0) / (x1 - x0)
            low, rise = y0 + slope * (begin - x0), slope * (end - begin)
            # Where it crosses the lower and the upper edge of the box, as parts of the way.
            a = 0.0 if rise == 0 else min(max((south - low) / rise, 0.0), 1.0)
            b = 0.0 if rise == 0 else min(max((north - low) / rise, 0.0), 1.0)
            a, b = min(a, b), max(a, b)
            for start, stop in ((0.0, a), (a, b), (b, 1.0)):
                middle = low + rise * (start + stop) / 2
                if start < stop and middle > south:
                    mean = height
                    if middle < north:
                        mean = mean_zone(low + rise * start, low + rise * stop, e) - floor
                    found[i] += math.radians((end - begin) * (stop - start)) * mean / 2
    return found
