"""The settings that an audit tries, and the table formats in which it writes its people."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from struct import pack
from typing import Any

from hazemap.errors import InputError
from hazemap.lab.audit.findings import Claim
from hazemap.lab.audit.synthetic_people import BOX
from hazemap.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from hazemap.spatial.bounding_box import Box

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


CURATOR, SECURE_SUM, LOCAL = "curator", "secure sum", "local"
TWO_SERVERS, ONE_REPORT = "two servers", "one report"
REPORTS, RECIPES = "local reports", "recipes"
"""Secure sums of randomised reports: of maps, and of devices that answer a recipe."""

SHUFFLE = "shuffled"
"""A shuffler and an analyser, by the real protocol in parts."""

REPORT, STUDY, SUM = "a report", "a study", "an opened sum"
"""What is seen of devices that answer a recipe, in the place of a method."""

PARTS = "sums of parts"
"""What is asked through a shuffler, in the place of a method."""

STATISTICS = "stats"
"""Stands for `hazemap stats`: stats, or stats:VARIANT."""

DECLARED: dict[str, Any] = {"low": 0, "high": 10, "cells": "h3:7", "max_cells_per_person": 1}
VARIANTS: dict[str, dict[str, Any]] = {
    "": {**DECLARED, "variance": True},
    "values-only": {**DECLARED, "variance": True, "model": "values-only"},
    "quantiles": {**DECLARED, "quantiles": (0.5, 0.9), "bins": 32},
    "bounds": {"bounds": "private", "cells": "h3:7", "max_cells_per_person": 1, "quantiles": (0.5,), "bins": 8},
    "select": {**DECLARED, "cells": "h3:8", "select": True},
    "slots": {**DECLARED, "cells": "h3:6", "slots": "hour-of-day", "time": "time", "max_cells_per_person": 3},
    "records": {**DECLARED, "max_records_per_cell": 3, "variance": True},
}
"""Statistics by what is asked for beside the mean, as keywords of `hazemap.stats`."""

ALL_STATISTICS = tuple(f"{STATISTICS}:{name}".rstrip(":") for name in VARIANTS)

MAPS: dict[str, dict[str, Any]] = {
    "map:slots": {"slots": "hour-of-day", "time": "time"},
    "map:marks": {"mark": "weight=1", "outside": "drop"},
    "map:marks-in-slots": {"mark": "weight=1", "outside": "drop", "slots": "clock:7:00,16:00", "time": "time"},
}
"""Maps with more than numbers of people, in the place of a method, as keywords of `hazemap.release`."""

DISTRICTS = "districts"
"""Stands for a file of districts that is written beside the table, and named in its place."""

TRUSTS = (CURATOR, SECURE_SUM, TWO_SERVERS, ONE_REPORT, LOCAL, REPORTS, RECIPES, SHUFFLE)


@dataclass(frozen=True)
class AuditedSetting:
    """One row of an audit, in the words of `hazemap release`.

    >>> print(AuditedSetting("flat:5", "rows:3"))
    flat:5, rows:3, curator, ε = 1
    """

    method: str
    bounding: str = "one row"
    trust: str = CURATOR
    epsilon: str | None = "1"
    rho: str | None = None
    cells: str = "quadtree:5"
    box: str | None = BOX
    outside: str = "people"
    form: str = CSV
    delta: str | None = None
    dropping: str | None = None
    local: str | None = None

    def __post_init__(self) -> None:
        if self.trust not in TRUSTS:
            raise InputError(f"a trust model is one of: {', '.join(TRUSTS)}; found {self.trust!r}")
        if self.form not in FORMS:
            raise InputError(f"a table is one of: {', '.join(FORMS)}; found {self.form!r}")
        if self.method.startswith("map:") and self.method not in MAPS:
            raise InputError(f"maps of more than people are {', '.join(MAPS)}; found {self.method!r}")
        if self.of_values and self.method.partition(":")[2] not in VARIANTS:
            raise InputError(f"statistics are {', '.join(f'stats:{name}' for name in VARIANTS if name)}, or stats")

    @property
    def budget(self) -> Budget:
        """What a release may cost."""
        if self.epsilon is None:
            return ZCDP(self.rho or "0")
        return PureDP(self.epsilon) if self.delta is None else ApproxDP(self.epsilon, self.delta)

    @property
    def claim(self) -> Claim:
        """What is judged: of reports ε and δ as they are stated."""
        if self.trust in (REPORTS, RECIPES) and self.delta is not None:
            return Claim("ε", float(Fraction(self.epsilon or "0")), float(Fraction(self.delta)))
        return Claim.of(self.budget)

    @property
    def people_have_ids(self) -> bool:
        """Whether the id column is named: not where each row is a person."""
        return self.bounding != "rows are people"

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.bounding == "one vote"

    @property
    def of_values(self) -> bool:
        """Whether statistics of a value are published instead of a map."""
        return self.method.startswith(STATISTICS)

    @property
    def algorithm(self) -> Any:
        """The method itself, over cells in the box."""
        from hazemap.specs.method_from_name import method_from_name
        from hazemap.specs.parsing import bounding, budget, cells

        box = None if self.box is None else Box.parse(self.box)
        money = budget(self.epsilon, self.delta, self.rho)
        return method_from_name(self.method, cells(self.cells), box, bounding(self.bounding), money)

    def options(self, folder: Path) -> dict[str, Any]:
        """As keywords of `hazemap.release` or `hazemap.stats`; `folder` holds the districts' file."""
        shared = {
            "person": "user" if self.people_have_ids else None,
            "lon": None if self.form in WITH_POINTS else "lon",
            "lat": None if self.form in WITH_POINTS else "lat",
            "epsilon": self.epsilon,
            "rho": self.rho,
            "delta": self.delta,
            "box": self.box,
        }
        if self.of_values:
            return {**shared, "value": "weight", **VARIANTS[self.method.partition(":")[2]]}
        cells = self.cells.replace(DISTRICTS, f"{DISTRICTS}@12:{folder / DISTRICTS}.geojson")
        value = "weight" if self.weighted else None
        chosen = {"cells": cells, "method": self.method, "bounding": self.bounding, "outside": self.outside}
        if self.method in MAPS:
            chosen = {**chosen, **MAPS[self.method]}
            del chosen["method"]
        return {**shared, "value": value, **chosen}

    def __str__(self) -> str:
        price = f"ε = {self.epsilon}" if self.epsilon is not None else f"ρ = {self.rho}"
        more = [
            f"ε₀ = {self.local}" if self.local is not None else "",
            price + (f" and δ = {self.delta}" if self.delta is not None else ""),
            f"outside: {self.outside}" if self.outside != "people" else "",
            self.cells if not self.of_values and not self.cells.startswith("quadtree") else "",
            {BOX: "", None: "box found"}.get(self.box, f"box {self.box}") if self.cells != DISTRICTS else "",
            self.form if self.form != CSV else "",
            f"{self.dropping} of people drop out" if self.dropping is not None else "",
        ]
        rule = [] if self.trust in (RECIPES, SHUFFLE) else [self.bounding]
        return ", ".join([self.method, *rule, self.trust, *filter(None, more)])


def most_rows(bounding: str) -> int:
    """How many rows of a person a rule may keep: what a worst case has to pass."""
    name, _, number = bounding.partition(":")
    return int(number) if name in ("rows", "cells") else 1
