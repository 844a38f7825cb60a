"""Points in GeoJSON (RFC 7946), one feature after the other, and in GeoPackage and FlatGeobuf, by GDAL in batches.

GDAL makes up the type of a property of GeoJSON from all its values, so that one person's id would change how others'
are read. Here no value has a bearing on another, and all are kept as text; and as no feature declares what others hold,
the properties to read are named. Each layer of the others declares the types of its columns.
"""

import json
import math
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from weakref import finalize

from hazemap.engines.duckdb_connection import DuckDBConnection
from hazemap.engines.table_source import FED, Geometry, SourcePart, TableSource, named_numbers
from hazemap.errors import FileError, TableError
from hazemap.gdal import vector_files
from hazemap.readers.value_coercion import numbers_of, sound, text_of
from hazemap.sources.source import Files, LocalFiles

LINES = (".geojsonl", ".geojsons")
GEOJSON = (".geojson", *LINES)
ROWS = 1 << 14
LONGEST_TEXT = 10_000
"""Letters of a property at most, so that memory is bounded."""

CHUNK = 1 << 20
LONGEST = 1 << 24
"""Characters of a feature at most, so that memory is bounded."""

_BETWEEN = " \t\n\r"
_MARKS = re.compile(r'["\\{}\[\],]')


@dataclass(frozen=True)
class GeoJsonFeatures:
    """The features of a collection, or of lines of one feature each, with the properties that are named.

    Memory is O(1); about 100,000 features a second. A feature without a property lacks its value.
    """

    file: str
    properties: tuple[str, ...]
    geometry: str

    @property
    def numbers(self) -> dict[str, str]:
        """The properties, and what the numbers in them are called."""
        return named_numbers(self.properties)

    @property
    def columns(self) -> tuple[str, ...]:
        """All that can be had of a feature."""
        return (*self.properties, *self.numbers.values(), self.geometry)

    def batches(self, columns: Sequence[str]) -> Generator[Any, None, None]:
        """Arrow record batches of these columns; a feature without a point is nowhere."""
        import pyarrow

        names = {numbers: name for name, numbers in self.numbers.items()}
        needed = list(dict.fromkeys(names.get(column, column) for column in columns if column != self.geometry))
        rows = ((_point(feature), _texts(feature, needed)) for feature in features_of(self.file))
        while batch := list(islice(rows, ROWS)):
            x, y = zip(*(place for place, _ in batch), strict=True)
            read = dict(zip(needed, zip(*(texts for _, texts in batch), strict=True), strict=False))
            arrays = []
            for column in columns:
                if column == self.geometry:
                    lonlat = [pyarrow.array(place, pyarrow.float64()) for place in (x, y)]
                    arrays.append(pyarrow.StructArray.from_arrays(lonlat, ["x", "y"]))
                elif column in names:
                    arrays.append(pyarrow.array(numbers_of(read[names[column]])))
                else:
                    arrays.append(pyarrow.array(read[column], pyarrow.string()))
            yield pyarrow.RecordBatch.from_arrays(arrays, names=list(columns))


def open_geojson(name: str, file: str, named: Sequence[str]) -> TableSource:
    """The features of a file, with the properties that are `named`; errors are those of `features_of` at its start.

    Coordinates are WGS 84, as RFC 7946 has it.
    """
    features_of(file)
    geometry = "geometry"
    while geometry in named:
        geometry += "_"
    properties = tuple(dict.fromkeys(named))
    feed = GeoJsonFeatures(file, properties, geometry)
    kinds = dict.fromkeys(properties, "VARCHAR") | {geometry: "STRUCT(x DOUBLE, y DOUBLE)"}
    part = SourcePart(FED, kinds, feed, feed.numbers)
    return TableSource(name, (part,), None, Geometry(geometry, "point", json.dumps("OGC:CRS84")))


def _texts(feature: Any, needed: Sequence[str]) -> list[str | None]:
    """The texts of these properties; a very long one is missing."""
    properties = _properties(feature)
    texts = (text_of(properties.get(name)) for name in needed)
    return [text if text is None or len(text) <= LONGEST_TEXT else None for text in texts]


def _properties(feature: Any) -> dict[str, Any]:
    """The properties of a feature, and its own `id` (RFC 7946, 3.2) where no property is called so."""
    if not isinstance(feature, dict):
        return {}
    found = feature.get("properties")
    return {"id": feature.get("id")} | (found if isinstance(found, dict) else {})


def _point(feature: Any) -> tuple[float, float]:
    """Longitude and latitude; NaN where the feature is no point, nor several points of which there is one."""
    match feature:
        case {"geometry": {"type": "Point", "coordinates": [lon, lat, *_]}}:
            return _number(lon), _number(lat)
        case {"geometry": {"type": "MultiPoint", "coordinates": [[lon, lat, *_]]}}:
            return _number(lon), _number(lat)
    return math.nan, math.nan


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def features_of(file: str) -> Iterator[Any]:
    """Each feature, whatever it is; what comes before the first is read at once.

    In a file of lines, one that is no JSON is left out, alone. In a collection a feature is what stands between commas
    outside of brackets and strings: one that is no JSON, longer than `LONGEST` or too deep to be read is None, alone.
    `FileError` where a collection does not end. A byte that is no UTF-8 becomes half of a pair, which no text holds.
    `TableError` for a collection that says before its features that they are not in WGS 84.
    """
    if file.lower().endswith(LINES):
        return _lines(file)
    text = _Text(file)
    if text.peek() != "{":
        raise FileError(f"{file} is not GeoJSON: it does not begin with an object; lines of features end in {LINES[0]}")
    text.skip()
    while (sign := text.peek()) != "}":
        if sign == ",":
            text.skip()
            continue
        name = text.value()
        if text.peek() != ":":
            raise text.damaged()
        text.skip()
        if name == "features" and text.peek() == "[":
            text.skip()
            return _collected(text)
        value = text.value()
        if name == "crs" and not _is_wgs84(value):
            raise TableError(f"{file} declares another reference system than WGS 84; convert it to a GeoPackage")
    raise FileError(f"{file} holds no features; lines of features end in {LINES[0]}")


def _collected(text: "_Text") -> Iterator[Any]:
    while (sign := text.peek()) != "]":
        if sign == ",":
            text.skip()
        else:
            yield text.element()


def _lines(file: str) -> Iterator[Any]:
    with open(file, encoding="utf-8", errors="surrogateescape", newline="\n") as lines:  # noqa: PTH123
        while line := lines.readline(LONGEST):
            whole = line.endswith("\n")
            with suppress(ValueError, RecursionError):
                yield _DECODER.decode(line.strip("\x1e \t\r\n\ufeff"))
            while not whole and line:  # too long to count, unless the file ends here
                line = lines.readline(LONGEST)
                whole = line.endswith("\n")


class _Text:
    """A long JSON text, read piece by piece."""

    def __init__(self, file: str) -> None:
        self._name = file
        self._file = open(file, encoding="utf-8-sig", errors="surrogateescape")  # noqa: PTH123, SIM115 - closed below
        finalize(self, self._file.close)  # when it is forgotten
        self._held, self._at = "", 0

    def damaged(self) -> FileError:
        """The error for a document that is not well formed."""
        return FileError(f"{self._name} is not well-formed GeoJSON, so it cannot be read to its end")

    def peek(self) -> str:
        """The next sign that is no space; `FileError` at the end."""
        while True:
            while self._at < len(self._held) and self._held[self._at] in _BETWEEN:
                self._at += 1
            if self._at < len(self._held):
                return self._held[self._at]
            if not self._more():
                raise self.damaged()

    def skip(self) -> None:
        """Go past one sign."""
        self._at += 1

    def value(self) -> Any:
        """The next value. O(its length)."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._held, self._at)
            except (ValueError, RecursionError):
                if len(self._held) - self._at > LONGEST or not self._more():
                    raise self.damaged() from None
                continue
            if end == len(self._held) and self._more():
                continue  # a number may go on
            self._at = end
            return value

    def element(self) -> Any:
        """The next element of an array, up to its comma or the array's end; None for what is no JSON. O(its length)."""
        if self.peek() == "{":
            with suppress(ValueError, RecursionError):
                value, self._at = _DECODER.raw_decode(self._held, self._at)
                return value if self._ends_element() else None
        text = self._rest_of_element()
        with suppress(ValueError, RecursionError):
            return None if text is None else _DECODER.decode(text)
        return None

    def _ends_element(self) -> bool:
        """Whether nothing more stands before the comma or the array's end; what does is gone past."""
        ends = self.peek() in ",]"
        if not ends:
            self._rest_of_element()
        return ends

    def _rest_of_element(self) -> str | None:
        """Its text, or None for one too long: it ends where brackets and strings say, so that it hides no other."""
        depth, quoted, escaped = 0, False, -1
        pieces: list[str] = []
        size = 0
        while True:
            begin, end = self._at, -1
            for mark in _MARKS.finditer(self._held, begin):
                at, sign = mark.start(), mark[0]
                if quoted:
                    if at != escaped:
                        quoted, escaped = sign != '"', at + 1 if sign == "\\" else -1
                elif sign == '"':
                    quoted = True
                elif sign in "{[":
                    depth += 1
                elif depth == 0 and sign in ",]":
                    end = at
                    break
                elif sign in "}]":
                    depth = max(0, depth - 1)
            self._at = len(self._held) if end < 0 else end
            size += self._at - begin
            pieces = [*pieces, self._held[begin : self._at]] if size <= LONGEST else []
            if end >= 0:
                return "".join(pieces) if size <= LONGEST else None
            escaped -= len(self._held)
            if not self._more():
                raise self.damaged()

    def _more(self) -> bool:
        """Read as much again as is held, at least a chunk; False at the end of the file."""
        rest = self._held[self._at :]
        read = self._file.read(max(CHUNK, len(rest)))
        self._held, self._at = rest + read, 0
        return bool(read)


def _integer(digits: str) -> int | None:
    return int(digits) if len(digits) < 4_000 else None  # Python refuses longer ones


_DECODER = json.JSONDecoder(parse_int=_integer)


def _is_wgs84(crs: Any) -> bool:
    match crs:
        case {"properties": {"name": str(name)}}:
            return name.endswith(("CRS84", "EPSG::4326", "EPSG:4326"))
    return crs is None


VECTORS = (".gpkg", ".fgb")
POINTS = {
    *(f"{several}Point{more}" for several in ("", "Multi") for more in ("", " Z", " M", " ZM")),
    *("2.5D Point", "3D Point", "2.5D MultiPoint", "3D MultiPoint", "Unknown", "Geometry", "3D Geometry"),
}
"""Types of geometry that a layer may declare. In one of any type, what is no point is nowhere."""


@dataclass(frozen=True)
class VectorLayer:
    """A layer of a file: the columns that it declares, and its points as well-known binary."""

    file: str
    layer: str | None
    columns: tuple[str, ...]
    geometry: str | None

    def batches(self, columns: Sequence[str]) -> Generator[Any, None, None]:
        """Arrow record batches of these columns. Memory is O(1): GDAL reads ahead by one batch."""
        import pyarrow

        others = [name for name in dict.fromkeys(columns) if name != self.geometry]
        with vector_files.open_layer(self.file, self.layer, others, self.geometry in columns) as (about, _, rows):
            names = {about["geometry_name"] or "wkb_geometry": self.geometry}
            for batch in rows:
                found = {names.get(name, name): column for name, column in zip(batch.schema.names, batch, strict=True)}
                yield pyarrow.RecordBatch.from_arrays([_plain(found[name]) for name in columns], names=list(columns))


def open_layer(connection: DuckDBConnection, name: str, file: str, layer: str | None) -> TableSource:
    """The points of a layer, which must be named where a file has several; errors are about what the file declares."""
    import pyarrow

    layers = vector_files.layers_in(file)
    if layer is None and len(layers) > 1:
        raise TableError(f"{file} has several layers; say which as in {file}:{layers[0]} ({', '.join(layers)})")
    if layer is not None and layer not in layers:
        raise TableError(f"{file} has no layer {layer!r}; it has {', '.join(layers)}")
    with vector_files.open_layer(file, layer) as (about, schema, _):
        pass
    declared, crs = about["geometry_type"], about["crs"]
    if declared is not None and declared not in POINTS:
        raise TableError(f"rows are counted where their point is; {name} declares that it holds {declared}")
    if declared is not None and crs is None:
        raise TableError(f"{name} does not say the reference system of its points; set it")
    stored = about["geometry_name"] or "wkb_geometry"
    column = None if declared is None else _free("geometry", schema.names)
    kinds = connection.kinds_of(
        pyarrow.schema(
            [(field.name, getattr(field.type, "storage_type", field.type)) for field in schema if field.name != stored]
        ),
        name,
    )
    if column is not None:
        kinds[column] = "BLOB"
    geometry = None if column is None else Geometry(column, "WKB", json.dumps(crs))
    feed = VectorLayer(file, layer, tuple(kinds), column)
    return TableSource(name, (SourcePart(FED, kinds, feed),), None, geometry)


def layer_of(files: Files) -> tuple[Files, str | None]:
    """The file and the layer in `file.gpkg:layer`.

    >>> layer_of(LocalFiles("nowhere.gpkg:visits"))
    (LocalFiles(path='nowhere.gpkg'), 'visits')
    """
    if isinstance(files, LocalFiles) and not Path(files.path).exists():
        file, _, layer = files.path.rpartition(":")
        if file.lower().endswith(VECTORS):
            return LocalFiles(file), layer
    return files, None


def _free(name: str, names: Sequence[str]) -> str:
    while name in names:
        name += "_"
    return name


def _plain(column: Any) -> Any:
    stored = getattr(column, "storage", column)
    return sound(stored.dictionary_decode() if hasattr(stored, "dictionary_decode") else stored)
