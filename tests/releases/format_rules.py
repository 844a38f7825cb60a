"""What validators of other projects ask of files, each rule anew: `faults` names those that a file breaks.

PMTiles: `pmtiles verify` of go-pmtiles, and the sections of the specification (version 3). GeoJSON: RFC 7946, sections
3.1.6 (rings), 3.1.9 (antimeridian) and 4 (reference system). GeoParquet: the schema of version 1.1 and what it says of
columns. GeoTIFF: `rio cogeo validate`.
"""

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import rasterio
import shapely

AREAS = {"Polygon", "MultiPolygon"}
COLUMN = {"encoding", "geometry_types", "crs", "edges", "orientation", "bbox", "epoch", "covering"}
TYPES = {"Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection"}


def faults(path: Path) -> list[str]:
    checks = {".pmtiles": of_pmtiles, ".geojson": of_geojson, ".parquet": of_geoparquet, ".tif": of_cog}
    return [name for name, kept in checks[path.suffix](path) if not kept]


def of_pmtiles(path):
    content = path.read_bytes()
    number = [int.from_bytes(content[at : at + 8], "little") for at in range(8, 96, 8)]
    root, metadata, leaves, tiles = (number[at : at + 2] for at in (0, 2, 4, 6))
    counts, zooms, shown = number[8:], content[100:102], content[118]
    edges = [int.from_bytes(content[at : at + 4], "little", signed=True) for at in (102, 106, 110, 114, 119, 123)]
    west, south, east, north, lon, lat = edges
    said = json.loads(gzip.decompress(content[metadata[0] : sum(metadata)]))
    found = list(entries(content, *root, leaves[0]))
    numbers = [each[0] for each in found]
    zoom = [zoom_of(each) for each in (numbers[0], numbers[-1])]
    yield "it begins with its name and version", content[:8] == b"PMTiles\3"
    yield "sections have places", all((root[0], metadata[0], leaves[0], tiles[0]))
    yield "sections fill the file", len(content) == 127 + sum(each[1] for each in (root, metadata, leaves, tiles))
    yield "the root is fetched with the header", sum(root) <= 16_384
    yield "tiles are in the section of tiles", all(start + length <= tiles[1] for _, start, length, _ in found)
    yield "tiles are in their order", numbers == sorted(set(numbers)) and starts(found) == sorted(starts(found))
    yield "addressed tiles are counted", counts[0] == sum(run for *_, run in found)
    yield "entries are counted", counts[1] == len(found)
    yield "contents are counted", counts[2] == len(set(starts(found)))
    yield "zooms are those of the tiles", list(zooms) == zoom
    yield "the first zoom is one of the tiles", zooms[0] <= shown <= zooms[1]
    yield "bounds have an area", west < east and south < north
    yield "bounds are on Earth", max(-west, east) <= 1.8e9 and max(-south, north) <= 9e8
    yield "the middle is within the bounds", west <= lon <= east and south <= lat <= north
    yield "layers have their zooms", all([e["minzoom"], e["maxzoom"]] == zoom for e in said["vector_layers"])


def starts(found):
    return [start for _, start, _, _ in found]


def entries(content, start, length, leaves):
    text, at = gzip.decompress(content[start : start + length]), 0

    def varint():
        nonlocal at
        value, shift = 0, 0
        while True:
            value |= (text[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if text[at - 1] < 128:
                return value

    count = varint()
    steps, runs, lengths, offsets = ([varint() for _ in range(count)] for _ in range(4))
    numbers, places = np.cumsum(steps).tolist(), []
    for each, offset in enumerate(offsets):
        places.append(offset - 1 if offset else places[each - 1] + lengths[each - 1])
    for one, place, size, run in zip(numbers, places, lengths, runs, strict=True):
        if run:
            yield one, place, size, run
        else:
            yield from entries(content, leaves + place, size, leaves)


def zoom_of(number):
    zoom = 0
    while number >= (4 ** (zoom + 1) - 1) // 3:
        zoom += 1
    return zoom


def of_geojson(path):
    data = json.loads(path.read_text())
    shapes = [each["geometry"] for each in data["features"] if each["geometry"] is not None]
    yield "it is a collection of features", data["type"] == "FeatureCollection"
    yield "each is a feature", all(e["type"] == "Feature" and "properties" in e for e in data["features"])
    yield "it names no reference system", "crs" not in data
    yield "cells are areas", {each["type"] for each in shapes} <= AREAS
    areas = [each for each in shapes if each["type"] in AREAS]
    polygons = [
        p for each in areas for p in ([each["coordinates"]] if each["type"] == "Polygon" else each["coordinates"])
    ]
    rings = [np.array(ring) for polygon in polygons for ring in polygon]
    yield "rings are closed, of four positions or more", all(len(r) >= 4 and (r[0] == r[-1]).all() for r in rings)
    yield "rings are no lines", all(abs(turn(ring)) > 0 for ring in rings)
    yield "areas are to the left", all(turn(np.array(polygon[0])) > 0 for polygon in polygons)
    yield "holes are to the right", all(turn(np.array(ring)) < 0 for polygon in polygons for ring in polygon[1:])
    points = np.concatenate(rings) if rings else np.zeros((1, 2))
    yield "positions are on Earth", (np.abs(points[:, 0]) <= 180).all() and (np.abs(points[:, 1]) <= 90).all()
    yield "nothing crosses the antimeridian", all(stays(ring) for ring in rings)
    yield "shapes are valid", shapely.is_valid(shapely.from_geojson([json.dumps(each) for each in areas])).all()


def turn(ring):
    """Twice the signed area."""
    x, y = ring[:, 0] - ring[0, 0], ring[:, 1] - ring[0, 1]
    return float((x[:-1] * y[1:] - x[1:] * y[:-1]).sum())


def stays(ring):
    """An edge of more than half a turn is one along a parallel or a pole."""
    wide = np.abs(np.diff(ring[:, 0])) > 180
    return not (wide & (np.diff(ring[:, 1]) != 0)).any()


def of_geoparquet(path):
    table = pq.read_table(path)
    geo = json.loads(table.schema.metadata[b"geo"])
    yield "it has its version and its columns", geo["version"] == "1.1.0" and geo["primary_column"] in geo["columns"]
    for name, column in geo["columns"].items():
        shapes = shapely.from_wkb(table[name].to_pylist())
        known = shapes[~(shapely.is_missing(shapes) | shapely.is_empty(shapes))]
        kinds = {each.geom_type for each in shapes[~shapely.is_missing(shapes)]}
        yield "columns have no other fields", set(column) <= COLUMN
        yield (
            "the encoding is WKB in a column of bytes",
            column["encoding"] == "WKB" and str(table[name].type) == "binary",
        )
        yield "the types are said, each once", len(set(column["geometry_types"])) == len(column["geometry_types"])
        yield "the types are those of the shapes", kinds <= set(column["geometry_types"]) <= TYPES
        yield "cells are areas", kinds <= AREAS
        yield "shapes are valid", shapely.is_valid(known).all()
        yield "edges are straight or on the sphere", column.get("edges", "planar") in ("planar", "spherical")
        left = shapely.is_ccw(shapely.get_exterior_ring(shapely.get_parts(known)))
        yield "the orientation is what is said", "orientation" not in column or left.all()
        west, south, east, north = shapely.bounds(known).T
        box = column["bbox"]
        yield "the box holds all shapes", (box[0] <= west.min() and box[1] <= south.min() and
                                          box[2] >= east.max() and box[3] >= north.max())  # fmt: skip
        cover = column["covering"]["bbox"]
        yield "the covering names four numbers", set(cover) == {"xmin", "ymin", "xmax", "ymax"}
        stored = table["bbox"].to_pylist()
        near = [stored[at] for at in np.flatnonzero(~(shapely.is_missing(shapes) | shapely.is_empty(shapes)))]
        yield (
            "the covering holds each shape",
            all(
                each["xmin"] <= w and each["ymin"] <= s and each["xmax"] >= e and each["ymax"] >= n
                for each, w, s, e, n in zip(near, west, south, east, north, strict=True)
            ),
        )


def of_cog(path):
    with rasterio.Env(GDAL_DISABLE_READDIR_ON_OPEN="FALSE"), rasterio.open(path) as picture:
        large = max(picture.width, picture.height) > 512
        overviews = picture.overviews(1)
        yield "it is a GeoTIFF", picture.driver == "GTiff" and picture.crs is not None
        yield "nothing stands beside it", len(picture.files) == 1
        yield "a large one is tiled", picture.block_shapes[0][1] != picture.width or not large
        yield "a large one has overviews", bool(overviews) or not large
        yield "overviews are sorted", overviews == sorted(overviews) and all(each > 1 for each in overviews)
        places = [int(picture.get_tag_item("IFD_OFFSET", "TIFF", bidx=1))]
        places += [int(picture.get_tag_item("IFD_OFFSET", "TIFF", bidx=1, ovr=at)) for at in range(len(overviews))]
        yield "directories come first, the picture's own before its overviews'", places == sorted(places)
        data = [picture.get_tag_item("BLOCK_OFFSET_0_0", "TIFF", bidx=1)]
        data += [picture.get_tag_item("BLOCK_OFFSET_0_0", "TIFF", bidx=1, ovr=at) for at in range(len(overviews))]
        blocks = [int(each) for each in data if each is not None]
        yield "pixels follow, those of the coarsest overview first", blocks == sorted(blocks, reverse=True)
        yield "pixels follow the directories", not blocks or min(blocks) > max(places)
        yield "its layout is said", picture.tags(ns="IMAGE_STRUCTURE").get("LAYOUT") == "COG"
