"""What a browser's form asks for, as a specification: names from a short list, files inside the steward's folder."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hazemap.errors import InputError
from hazemap.specs.parsing import DistrictFiles
from hazemap.specs.parsing import cells as parsed_cells
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.specs.spec_fields import RELEASE, STATISTICS, Field, Value
from hazemap.specs.specification import checked, checked_fields
from hazemap.specs.statistics_spec import StatisticsSpec
from hazemap.studio.refusals import refused
from hazemap.studio.stewards import RootFolder

TABLE = ("source", "person", "lon", "lat", "time", "since", "until", "delimiter", "encoding", "decimal", "multiline")
PRICE = ("epsilon", "delta", "rho")
MAP = (*PRICE, "bounding", "box", "cells", "method")
"""What a plan of a map needs to know."""
VALUES = (
    *PRICE,
    *("low", "high", "bounds", "max_cells_per_person", "max_records_per_cell", "select", "box", "cells"),
    *("slots", "time_zone", "variance", "quantiles", "bins", "mean_of"),
)
"""What a plan of statistics needs to know."""
NAMES = frozenset({*TABLE, *MAP, "value", "dataset", "slots", "time_zone", "outside", "mark", "output"})
"""What a form may say of a map. Files that first cells are read from are for the command line."""
VALUE_NAMES = frozenset({*TABLE, *VALUES, "value", "dataset", "output"})
"""What a form may say of statistics; those in which whereabouts are public are for the command line."""
_CELLS = re.compile(r"quadtree(:[0-9]{1,2})?|h3:[0-9]{1,2}(-[0-9]{1,2})?")
_DISTRICTS = {".geojson": b"{", ".json": b"{", ".gpkg": b"SQLite format 3\0", ".fgb": b"fgb"}
"""How files of districts end and begin: in other formats a file may name others, anywhere."""
LONGEST = 2_000
"""Characters of a text."""

STATISTICS_KIND = "statistics"

Order = dict[str, Value]
"""Names of `hazemap.release` and their values, those that are left blank left out; files are named from the folder.

Those of `hazemap.stats` where `kind` is "statistics".
"""


def is_statistics(order: Mapping[str, Value]) -> bool:
    """Whether an order is of statistics of a value."""
    return order.get("kind") == STATISTICS_KIND


def fields_of(order: Mapping[str, Value]) -> dict[str, Field]:
    """The fields that an order may have."""
    return STATISTICS if is_statistics(order) else RELEASE


def order_of(data: object, names: frozenset[str] | None = None) -> Order:
    """The fields of a form; `InputError` for a name that is not on the list, and for a value of another type."""
    given = checked(data)
    kind: Order = {"kind": STATISTICS_KIND} if given.pop("kind", None) == STATISTICS_KIND else {}
    known = fields_of(kind)
    allowed = names if names is not None else VALUE_NAMES if kind else NAMES
    if unknown := sorted(given.keys() - (allowed & known.keys())):
        raise InputError(f"the studio has no field {', '.join(map(repr, unknown))[:200]}: use the command line")
    order = {name: value for name, value in given.items() if value is not False and value not in ("", [])}
    for name, value in order.items():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and len(text) > LONGEST:
                raise refused(InputError, "textTooLong", name=name, most=LONGEST)
    cells = order.get("cells", "quadtree")
    if not isinstance(cells, str) or not (_CELLS.fullmatch(cells) or cells.startswith("districts")):
        raise InputError("in the studio cells are quadtree, quadtree:DEPTH, h3:COARSEST-FINEST or districts:FILE,…")
    read = checked_fields(order, known)
    return kind | {name: read[name] for name in known if name in read}


def release_of(order: Order, root: RootFolder) -> ReleaseSpec | StatisticsSpec:
    """The specification of a whole order, with whole paths."""
    for name, sentence in (("source", "chooseATable"), ("output", "nameAFile")):
        if name not in order:
            raise refused(InputError, sentence)
    source, output = root.table(str(order["source"])), root.inside(str(order["output"]))
    return _spec({**order, "source": str(source), "output": str(output)}, root)


def plan_of(data: Mapping[str, Any], root: RootFolder) -> tuple[Order, int, ReleaseSpec | StatisticsSpec]:
    """What a plan is for, and for how many people (0 for statistics); it knows of no table."""
    rest = dict(data)
    if rest.get("kind") == STATISTICS_KIND:
        order, people = order_of(rest, frozenset(VALUES)), 0
        return order, people, _spec({**order, "value": "value"}, root)
    people = rest.pop("people", None)
    if type(people) is not int:
        raise refused(InputError, "planPeople")
    order = order_of(rest, frozenset(MAP))
    if "box" not in order:
        raise refused(InputError, "planBox")
    return order, people, _spec(order, root)


def _spec(order: Order, root: RootFolder) -> ReleaseSpec | StatisticsSpec:
    rest = {name: value for name, value in order.items() if name != "kind"}
    cells = rest.get("cells", "")
    if isinstance(cells, str) and cells.startswith("districts"):
        rest["cells"] = _districts(cells, root)
    return StatisticsSpec.from_json(rest) if is_statistics(order) else ReleaseSpec.from_json(rest)


def _districts(text: str, root: RootFolder) -> str:
    """The same districts by the whole paths of their files, all of them in the folder."""
    try:
        found = parsed_cells(text)
    except InputError:
        raise refused(InputError, "oddDistricts") from None
    if not isinstance(found, DistrictFiles):
        raise refused(InputError, "oddDistricts")
    layers = [(_district_file(root.file(file)), names, parents) for file, names, parents in found.layers]
    if any("," in file or ":" in file for file, _, _ in layers):
        raise refused(InputError, "oddFolder")
    return DistrictFiles(tuple(layers), found.squares).text


def _district_file(path: Path) -> str:
    begins = _DISTRICTS.get(path.suffix.lower())
    with path.open("rb") as file:
        if begins is None or not file.read(1024).lstrip().startswith(begins):
            raise refused(InputError, "oddDistricts")
    return str(path)
