"""Odd orders of maps and of statistics, and odd tables: a part of `hostile_specifications`."""

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

Order = dict[str, Any]


def _words(text: str) -> list[str]:
    return text.split()


TINY, HUGE = 5e-324, 1.7976931348623157e308
NUMBERS = (0, 1, -1, 0.5, 10, 65, -40, 1e-300, TINY, 1e9, 1e15, 1e16, 1e100, -1e100, 1e154, -1e200, 1e308, -1e308, HUGE)
USUAL_BOX = "13.2,52.4,13.6,52.6"
BOXES = _words(
    f"""{USUAL_BOX} -180,-90,180,90 -180,-85.05,180,85.05 179,-1,180,1 -180,89,-179,90 0,0,1e-9,1e-9
    13.3,52.5,13.3000001,52.5000001 13.2,-90,13.6,90 -180,52.5,180,52.5001 10,60,30,85 0,89.9999,0.0001,90
    5e-324,5e-324,1,1 13.6,52.4,13.2,52.6 0,0,nan,1 190,0,200,10 1,2,3"""
)
USUAL_BUDGETS: tuple[Order, ...] = (
    *({"epsilon": 1}, {"epsilon": "0.1"}, {"rho": "0.5"}, {"rho": 1}, {"epsilon": 2, "delta": "1e-6"}),
)
BUDGETS: tuple[Order, ...] = (
    *({"epsilon": each} for each in (1e-9, "1e-8", 1e-5, "1/3", 40, 700, 1e6, TINY, 0, math.inf, "1e-149")),
    *({"rho": each} for each in (1e-18, 1000, "5e11", -1)),
    *({"epsilon": 1, "delta": each} for each in ("1e-300", "0.999999", 0)),
    *({"delta": 0.1}, {}),
)
TIMES = _words(
    """2026-03-01 2026-03-01T08:00 2026-03-02T00:00:00+02:00 2026-03-08 0001-01-01 0002-01-02 9999-12-31T23:59:59
    9998-12-01 1969-12-31T23:59:59.999999 2026-10-25T02:30 2026-02-30 yesterday 1772323200"""
)
ZONES = _words("UTC Europe/Berlin Asia/Kathmandu Pacific/Apia Africa/Monrovia Etc/GMT+12 Mars/Olympus ../../etc/passwd")
USUAL_SLOTS = _words("always hour-of-day day-of-week weekday hour day clock:7:00,16:00 clock:0:00")
SLOTS = [
    *_words(
        """clock:23:59,00:00 clock:24:00 times:2026-03-01,2026-03-02 times:2026-03-01,2026-03-01 times:1,2 sometimes
    times:2026-03-01T00:00,2026-03-01T06:00,2026-03-03 times:0001-01-01,9999-12-31 times:0002-01-05,9998-01-01"""
    ),
    "clock:" + ",".join(f"{minute // 60}:{minute % 60:02}" for minute in range(1440)),
]
USUAL_RULES = ("one row", "rows:3", "cells:3", "one vote", "rows are people")
RULES = _words("rows:1 cells:1 rows:999999999 cells:999999999 rows:1000 cells:100000 rows:0 all")
USUAL_METHODS = _words(
    """auto adaptive adaptive-grid uniform-grid fitted-level kd-tree kd-tree-uniform kd-hybrid privtree htf
    htf-published htf+ prefix total sketch pyramid:64 pyramid-published:64 dense-pyramid flat:5 hierarchical:4
    geometric:4 hb:4 hb-least:4 privlet:4 singular:5 laplace-clip:5 top:10"""
)
METHODS = _words(
    """flat:0 flat:1 flat:9 flat:13 flat:99 flat hierarchical:0 hierarchical:8 geometric:8 hb:8 privlet:0 privlet:8
    pyramid:1 pyramid:65536 top:0.001 top:100 national:20 national:0 auto:numbers=1027 auto:numbers=10
    auto:fullness=0 auto:first=1 auto:first=1000000 auto:shares=0.1 uniform-grid:cell=1e-9 uniform-grid:cell=1e9
    uniform-grid:number=1e9 adaptive-grid:alpha=0.999999 adaptive-grid:number=1e12 kd-tree:people=1e9
    kd-tree:grain=1 kd-tree:cuts=1 htf:threshold=1e9 htf:height=0 htf:height=60 htf:pixels=1 htf:pixels=1e9
    htf:lines=0.5 prefix:rounds=1 prefix:rounds=60 prefix:c0=1e9 sketch:width=1 sketch:rows=1000 sketch:width=1e12
    privtree:threshold=-5 privtree:threshold=1e9 pyramid:w=3 auto:nonsense=1 auto: :"""
)
USUAL_CELLS = _words("quadtree:5 quadtree:8 h3:5-8 h3:7 districts:{d}")
CELLS = _words(
    """quadtree quadtree:0 quadtree:1 quadtree:12 quadtree:16 quadtree:20 quadtree:30 quadtree:31 quadtree:99 h3:0
    h3:5 h3:9 h3:15 h3:0-15 h3:3-6 h3:7-10 h3:10-7 h3:16 h3:0-1 octagons districts@0:{d} districts@17:{d}
    districts@25:{d} districts:{d}:name districts:{d}:nothing districts:/nowhere.geojson hexagons:{h} hexagons:{e}
    hexagons:/nowhere.csv"""
)
PLANES = _words(
    """1000,800 1,1 40,30,m EPSG:3857 EPSG:2154 EPSG:4326 EPSG:1 1e9,1e9 1e-9,1e-9 1e308,1e308 0,0 nan,1 -5,5 a,b
    10,10,furlongs"""
)
PLANE_BOXES = (
    None,
    None,
    "0,0,10,10",
    "0,0,1e-9,1e-9",
    "-1e9,-1e9,1e9,1e9",
    "0,0,1e308,1e308",
    "650000,6850000,660000,6870000",
)
MARKS: tuple[Any, ...] = (
    *("tested", "kind=a", "kind=b", "kind=", "nothing", "note=x", "weight=1", "tested=yes", "=", "user"),
    *(("tested", "kind=a"), ("tested", "tested"), ("kind=a", "kind=b", "kind=c", "tested"), ()),
)
GOALS = _words(
    """density density:2 density:0 density:9999.999999 width width:0.1 width:0 width:1 width:0.000001 depth"""
)
QUANTILES: tuple[Any, ...] = (
    *(
        (0.5,),
        (0.1, 0.5, 0.9),
        (1e-9,),
        (1 - 1e-12,),
        (TINY,),
        (0,),
        (1,),
        (0.5, 0.5),
        "0.5",
        (math.nan,),
        ("half",),
        0.5,
    ),
    tuple(number / 200 for number in range(1, 200)),
)
NAMES = [
    *_words("map.parquet map.tif MAP.PARQUET map.csv no/such/map.parquet there.parquet folder.parquet .parquet"),
    "-o.parquet",
    *(
        "map.parquet/",
        "a b 'c'.parquet",
        "ü🌍.parquet",
        "x" * 240 + ".parquet",
        "a\nb.parquet",
        "a\0b.parquet",
        "\udcff.parquet",
    ),
    *("", ".", "..", "link.parquet", "{s}", "%s{period}*.parquet"),
]
DATASETS = ("town", "a b", "", "x" * 5000, "../../x", "ü", "a\nb", "a\0b", "\udcff", "*", "-1")


def specification(rng: random.Random) -> tuple[str, Order]:
    """A function of hazemap and its keywords: sensible in most, and odd in some."""
    odd = rng.choice((0.0, 0.05, 0.15, 0.35))
    verb = rng.choice(("release", "stats"))
    asked: Order = {"person": rng.choice((None, "nobody", "lon", "kind", "note")) if rng.random() < odd else "user"}
    asked |= rng.choice(BUDGETS if rng.random() < odd else USUAL_BUDGETS)
    if rng.random() < 0.15:
        asked |= {name: rng.choice(TIMES) for name in rng.choice((("since",), ("until",), ("since", "until")))}
    asked["box"] = rng.choice(BOXES) if rng.random() < odd else rng.choice((USUAL_BOX,) * 3 + (None,))
    asked["output"] = rng.choice(NAMES) if rng.random() < odd else rng.choice((None, "map.parquet"))
    odder: Order = {"overwrite": (True, False), "dataset": DATASETS, "time": ("time", "note", "nothing", "user")}
    asked |= _some(rng, odd / 2, odder)
    asked |= _of_a_map(rng, odd) if verb == "release" else _of_values(rng, odd)
    return verb, {name: value for name, value in asked.items() if value is not None}


def _some(rng: random.Random, part: float, choices: Order) -> Order:
    return {name: rng.choice(values) for name, values in choices.items() if rng.random() < part}


def _of_a_map(rng: random.Random, odd: float) -> Order:
    asked = _some(rng, 0.3, {"bounding": USUAL_RULES, "method": USUAL_METHODS, "cells": USUAL_CELLS})
    asked |= _some(rng, 0.15, {"slots": USUAL_SLOTS, "mark": MARKS[:3], "outside": ("people", "drop", "count")})
    asked |= _some(rng, 0.05, {"plane": PLANES[:5]})
    odder = {"bounding": RULES, "method": METHODS, "cells": CELLS, "slots": SLOTS, "mark": MARKS, "goal": GOALS}
    odder |= {"outside": ("people", "drop", "count", "elsewhere"), "plane": PLANES, "time_zone": ZONES}
    odder |= {"value": ("weight", "user", "lon", "nothing", "note"), "prior": ("{h}", "{d}", "/nowhere", "{s}")}
    asked |= _some(rng, odd / 2, odder | {"prior_is_public": (True, False)})
    if "mark" in asked and rng.random() < 0.8:
        asked |= {"method": None, "outside": None, "goal": rng.choice((None, *GOALS))}
    elif "slots" in asked and rng.random() < 0.8:
        asked["method"] = None
    if "districts" in str(asked.get("cells")) and rng.random() < 0.8:
        asked |= {"box": None, "method": rng.choice(_words("auto flat national:20 total hierarchical geometric"))}
    if asked.get("plane"):
        asked |= {"box": rng.choice(PLANE_BOXES), "lon": "x", "lat": "y"}
    return asked


def _of_values(rng: random.Random, odd: float) -> Order:
    asked: Order = {"value": rng.choice(("lon", "note", "nothing", "user")) if rng.random() < odd / 2 else "weight"}
    ends: Any = rng.choice(((0, 10), (0, 65), (-5, 5), (0, 1), (None, None)))
    if rng.random() < odd:
        ends = rng.choice(NUMBERS), rng.choice(NUMBERS)
    asked["low"], asked["high"] = ends
    if None in ends or rng.random() < odd / 2:
        asked |= {"bounds": rng.choice(("private",) * 9 + ("public",)), "low": None, "high": None}
        asked |= _some(rng, 0.15, {"low": NUMBERS, "high": NUMBERS})
    usual = {"cells": [*_words("h3:7 h3:6 quadtree:3 quadtree:6 hexagons:{h}"), USUAL_CELLS[-1]], "variance": (True,)}
    asked |= _some(rng, 0.4, usual | {"max_cells_per_person": (1, 2, 4, 24), "quantiles": QUANTILES[:2]})
    usual = {"slots": USUAL_SLOTS, "bins": (2, 8, 16, 100), "max_records_per_cell": (1, 2, 3), "select": (True,)}
    asked |= _some(rng, 0.2, usual | {"model": ("values-only",)})
    odder = {"cells": CELLS, "slots": SLOTS, "time_zone": ZONES, "quantiles": QUANTILES}
    odder |= {"bins": (0, 1, 3, 1024, 1025, -1, 1 << 40), "max_cells_per_person": (0, 1000, 1 << 20, 1 << 40, -1)}
    odder |= {"max_records_per_cell": (0, 1000, 1 << 20, 1 << 40, 1 << 62, -1), "select": (True, False)}
    odder |= {"model": ("full", "values-only", "none"), "length": _words("median k-root-m worst-case 3 0 -1 1e9 long")}
    odder |= {"estimator": _words("own-means plain array-averaging levy quantile balanced median")}
    odder |= {"mean_of": ("records", "people", "cells"), "chop_user": (True, False), "cell_column": ("h3", "user")}
    asked |= _some(rng, odd / 2, odder)
    if asked.get("estimator") not in (None, "own-means"):
        asked |= {"model": "values-only", "quantiles": None, "bins": None}
    if str(asked.get("cells")).startswith(("districts", "hexagons")) and rng.random() < 0.9:
        asked["box"] = None
    return asked


PLACES = {
    "town": (13.25, 52.45, 13.5, 52.55),
    "world": (-180, -90, 180, 90),
    "antimeridian": (179.9, -0.1, 180, 0.1),
    "pole": (-180, 89.9, 180, 90),
    "origin": (0, 0, 0, 0),
    "plane": (0, 0, 1000, 800),
}
NOT_NUMBERS = (None, math.nan, math.inf, -math.inf, HUGE, -HUGE, TINY, 0.0, -1.0, 90.0, 91.0, 180.0)
STRANGE: dict[str, tuple[Any, ...]] = {
    "user": (None, "", " ", "u1 ", "0", "x" * 1000),
    **dict.fromkeys(("lon", "lat", "weight", "x", "y"), NOT_NUMBERS),
    "time": (
        None,
        "",
        "never",
        "0001-01-01T00:00:00",
        "9999-12-31T23:59:59",
        "2026-03-01T08:00:00+25:00",
        "1772323200",
    ),
    "tested": (None,),
    "kind": (None, "", "a ", "other"),
}


def table(rng: random.Random, folder: Path) -> Any:
    """A source of up to three thousand rows, in memory or in a file, and anything may stand in it."""
    draw = np.random.default_rng(rng.getrandbits(32))
    people = rng.choice((0, 1, 2, 30, 200, 200, 1000))
    rows, odd = people * rng.choice((1, 1, 3)), rng.choice((0.0, 0.0, 0.02, 0.5))
    west, south, east, north = PLACES[rng.choice(["town"] * 3 + list(PLACES))]
    days, hours = draw.integers(1, 8, rows).tolist(), draw.integers(0, 24, rows).tolist()
    columns: dict[str, list[Any]] = {
        "user": [f"u{number % max(people, 1)}" for number in range(rows)],
        "lon": (west + (east - west) * draw.random(rows)).tolist(),
        "lat": (south + (north - south) * draw.random(rows)).tolist(),
        "weight": draw.gamma(2, 2, rows).tolist(),
        "time": [f"2026-03-0{day}T{hour:02}:00:00" for day, hour in zip(days, hours, strict=True)],
        "tested": (draw.random(rows) < 0.3).tolist(),
        "kind": [rng.choice("abc") for _ in range(rows)],
        "note": [rng.choice(("", "x", '"', "'", "=1+1", "\n", "é", "NULL", "nan")) for _ in range(rows)],
    }
    columns |= {"x": list(columns["lon"]), "y": list(columns["lat"])}
    instants = pa.array(
        np.array(columns["time"], dtype="datetime64[us]"), pa.timestamp("us", rng.choice((None, "UTC")))
    )
    for name, values in STRANGE.items():
        for at in range(rows if odd else 0):
            if rng.random() < odd:
                columns[name][at] = rng.choice(values)
    kinds = {**dict.fromkeys(columns, pa.float64()), **dict.fromkeys(("user", "time", "kind", "note"), pa.string())}
    kinds["tested"] = pa.bool_()
    made = pa.table({name: pa.array(values, kinds[name]) for name, values in columns.items()})
    if rng.random() < 0.5:
        made = made.drop_columns(["x", "y"])
    if not odd and rng.random() < 0.5:
        made = made.set_column(made.column_names.index("time"), "time", instants)
    kind = rng.choice(("memory", "parquet", "csv"))
    if kind == "memory":
        return made
    path = folder / f"table.{kind}"
    pq.write_table(made, path) if kind == "parquet" else pyarrow.csv.write_csv(made, path)
    return path
