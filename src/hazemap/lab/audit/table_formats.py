"""The same table in other formats: a folder of two files, Parquet, points with a geometry, a table in memory.

An audit writes CSV; where another form is asked for, its plain rows are written again in that form. Rows go in turn to
the parts of a table that has two, so that everybody's rows stand in both.
"""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from struct import pack
from typing import Any

CSV = "CSV"

Rows = list[list[str]]
"""The header, and a list of fields for every row."""


def written(form: str, content: bytes, folder: Path) -> Any:
    """Write the CSV in `content` as `form` into the folder: what a release takes as its source."""
    return FORMS[form](content, folder)


def _csv(content: bytes, folder: Path) -> str:
    (folder / "table.csv").write_bytes(content)
    return str(folder / "table.csv")


def _rows(content: bytes) -> Rows:
    return list(csv.reader(io.StringIO(content.decode(), newline="")))


def _in_two(ending: str, write: Callable[[Rows, Path], None]) -> Callable[[bytes, Path], str]:
    def both(content: bytes, folder: Path) -> str:
        head, *rows = _rows(content)
        (folder / "table").mkdir()
        for part in (0, 1):
            write([head, *rows[part::2]], folder / "table" / f"part-{part}.{ending}")
        return str(folder / "table")

    return both


def _in_one(ending: str, write: Callable[[Rows, Path], None]) -> Callable[[bytes, Path], str]:
    def one(content: bytes, folder: Path) -> str:
        write(_rows(content), folder / f"table.{ending}")
        return str(folder / f"table.{ending}")

    return one


def _write_csv(rows: Rows, path: Path) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def _arrow(rows: Rows) -> Any:
    import pyarrow as pa

    head, *body = rows
    columns = {name: [row[number] for row in body] for number, name in enumerate(head)}
    numbers = ("lon", "lat", "weight")
    made = {
        name: pa.array(map(float, each), pa.float64()) if name in numbers else pa.array(each, pa.string())
        for name, each in columns.items()
    }
    return pa.table(made)


def _write_parquet(rows: Rows, path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(_arrow(rows), path, row_group_size=64)


def _write_points(rows: Rows, path: Path) -> None:
    """GeoParquet: points in well-known binary instead of two columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = _arrow(rows)
    places = zip(table["lon"].to_pylist(), table["lat"].to_pylist(), strict=True)
    points = pa.array([pack("<BIdd", 1, 1, *place) for place in places], pa.binary())
    about = {"encoding": "WKB", "geometry_types": ["Point"]}
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": about}}
    made = table.drop_columns(["lon", "lat"]).append_column("geometry", points)
    pq.write_table(made.replace_schema_metadata({"geo": json.dumps(geo)}), path)


def _write_geojson(rows: Rows, path: Path) -> None:
    head, *body = rows
    features = []
    for row in body:
        found: dict[str, Any] = dict(zip(head, row, strict=True))
        place = [float(found.pop("lon")), float(found.pop("lat"))]
        found["weight"] = float(found["weight"])
        features.append({"type": "Feature", "geometry": {"type": "Point", "coordinates": place}, "properties": found})
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))


def _in_memory(content: bytes, _: Path) -> Any:
    return _arrow(_rows(content))


FORMS: dict[str, Callable[[bytes, Path], Any]] = {
    CSV: _csv,
    "two CSV files": _in_two("csv", _write_csv),
    "Parquet": _in_one("parquet", _write_parquet),
    "two Parquet files": _in_two("parquet", _write_parquet),
    "GeoParquet": _in_one("parquet", _write_points),
    "GeoJSON": _in_one("geojson", _write_geojson),
    "a table in memory": _in_memory,
}
"""Every form, and what writes it."""

WITH_POINTS = ("GeoParquet", "GeoJSON")
"""Forms whose rows are points, and have no columns of longitudes and latitudes."""
