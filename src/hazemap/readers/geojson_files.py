"""Points in GeoJSON (RFC 7946), one feature after the other; values are the text of what they are.

GDAL makes up the type of a property from all its values, so that one person's id would change how others' are read.
Here no value has a bearing on another; and as no feature declares what others hold, the properties to read are named.
"""

import json
import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from hazemap.engines.table_source import FED, Geometry, SourcePart, TableSource, named_numbers
from hazemap.readers.geojson_parser import features_of
from hazemap.readers.mixed_type_values import numbers_of, text_of

GEOJSON = (".geojson", ".geojsonl", ".geojsons")
ROWS = 1 << 14
LONGEST = 10_000
"""Letters of a property at most, so that memory is bounded."""


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
    return [text if text is None or len(text) <= LONGEST else None for text in texts]


def _properties(feature: Any) -> dict[str, Any]:
    found = feature.get("properties") if isinstance(feature, dict) else None
    return found if isinstance(found, dict) else {}


def _point(feature: Any) -> tuple[float, float]:
    """Longitude and latitude; NaN where the feature is no point."""
    match feature:
        case {"geometry": {"type": "Point", "coordinates": [lon, lat, *_]}}:
            return _number(lon), _number(lat)
    return math.nan, math.nan


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan
