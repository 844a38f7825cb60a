"""Shapes in GeoJSON (RFC 7946), read whole and without GDAL: to that, a text in braces may be one of many other things.

Points of people are read feature by feature (`readers.geojson_points`); districts and outlines are public.
"""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hazemap.errors import FileError

if TYPE_CHECKING:
    from geopandas import GeoDataFrame

LINES = (".geojsonl", ".geojsons")
GEOJSON = (".geojson", ".json", *LINES)
_SYSTEM = re.compile(r"(?:urn:ogc:def:crs:)?(?:EPSG::?(\d{4,6})|OGC:(?:1\.3:)?CRS84)", re.IGNORECASE)
"""How files of the time before RFC 7946 name a reference system. PROJ reads files for what is none of these."""


def read_geojson(path: str) -> "GeoDataFrame":
    """The features of a collection, of lines, or a single one; `FileError` for anything else."""
    import geopandas
    import shapely

    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        if path.lower().endswith(LINES):
            whole: Any = {"type": "FeatureCollection", "features": [json.loads(line) for line in _lines(text)]}
        else:
            whole = json.loads(text)
        features = _features(whole)
        texts = [None if each.get("geometry") is None else json.dumps(each["geometry"]) for each in features]
        shapes = shapely.from_geojson(texts)
    except (ValueError, RecursionError, shapely.errors.ShapelyError, OSError) as error:
        raise FileError(f"{path} cannot be read as GeoJSON: {str(error)[:200]}") from error
    names = dict.fromkeys(name for each in features for name in _properties(each))
    values = {name: [_properties(each).get(name) for each in features] for name in names}
    return geopandas.GeoDataFrame(values, geometry=shapes, crs=_system(path, whole), dtype=object)


def _lines(text: str) -> list[str]:
    return [line for each in text.split("\n") if (line := each.strip("\x1e \t\r"))]


def _features(whole: Any) -> list[dict[str, Any]]:
    """The features of a document; `ValueError` where there are none."""
    match whole:
        case {"type": "FeatureCollection", "features": list(features)}:
            found = features
        case {"type": "Feature"}:
            found = [whole]
        case {"type": str(), "coordinates": list()} | {"type": "GeometryCollection", "geometries": list()}:
            found = [{"type": "Feature", "geometry": whole}]
        case _:
            raise ValueError("it holds no features")
    if not all(isinstance(each, dict) and each.get("type") == "Feature" for each in found):
        raise ValueError("it holds what is no feature")
    return found


def _properties(feature: dict[str, Any]) -> dict[str, Any]:
    """Its properties, and its own `id` where none of them is called so."""
    found = feature.get("properties")
    own = {"id": feature["id"]} if "id" in feature else {}
    return own | (found if isinstance(found, dict) else {})


def _system(path: str, whole: Any) -> str:
    match whole:
        case {"crs": {"type": "name", "properties": {"name": str(name)}}} if found := _SYSTEM.fullmatch(name):
            return f"EPSG:{found[1] or 4326}"
        case {"crs": crs} if crs is not None:
            raise FileError(f"{path} declares a reference system that is not read; convert it to a GeoPackage")
    return "EPSG:4326"
