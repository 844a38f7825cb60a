"""What a browser's form asks for, as a specification: names from a short list, files inside the steward's folder."""

import re
from collections.abc import Mapping
from typing import Any

from hazemap.errors import InputError
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.specs.spec_fields import RELEASE, Value
from hazemap.specs.specification import checked, checked_fields
from hazemap.studio.root_folder import RootFolder

TABLE = ("source", "person", "lon", "lat", "time", "since", "until", "delimiter", "encoding", "decimal", "multiline")
MAP = ("epsilon", "delta", "rho", "bounding", "box", "cells", "method")
"""What a plan needs to know."""
NAMES = frozenset({*TABLE, *MAP, "value", "dataset", "slots", "time_zone", "outside", "mark", "output"})
"""What a form may say. Files that cells, districts or first cells are read from are for the command line."""
_CELLS = re.compile(r"quadtree(:[0-9]{1,2})?|h3:[0-9]{1,2}(-[0-9]{1,2})?")
LONGEST = 2_000
"""Characters of a text."""

Order = dict[str, Value]
"""Names of `hazemap.release` and their values, those that are left blank left out; files are named from the folder."""


def order_of(data: object, names: frozenset[str] = NAMES) -> Order:
    """The fields of a form; `InputError` for a name that is not on the list, and for a value of another type."""
    given = checked(data)
    if unknown := sorted(given.keys() - names):
        raise InputError(f"the studio has no field {', '.join(map(repr, unknown))[:200]}: use the command line")
    order = {name: value for name, value in given.items() if value not in ("", [], False)}
    for name, value in order.items():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and len(text) > LONGEST:
                raise InputError(f"{name} has more than {LONGEST:,} letters")
    cells = order.get("cells", "quadtree")
    if not isinstance(cells, str) or not _CELLS.fullmatch(cells):
        raise InputError("in the studio cells are quadtree, quadtree:DEPTH or h3:COARSEST-FINEST")
    checked_fields(order, RELEASE)
    return {name: order[name] for name in RELEASE if name in order}


def release_of(order: Order, root: RootFolder) -> ReleaseSpec:
    """The specification of a whole order, with whole paths."""
    for name, what in (("source", "a table"), ("output", "a file for the map, such as map.parquet")):
        if name not in order:
            raise InputError(f"choose {what}")
    source, output = root.table(str(order["source"])), root.inside(str(order["output"]))
    return ReleaseSpec.from_json({**order, "source": str(source), "output": str(output)})


def plan_of(data: Mapping[str, Any]) -> tuple[Order, int, ReleaseSpec]:
    """What a plan is for, and for how many people; it knows of no table."""
    rest = dict(data)
    people = rest.pop("people", None)
    if type(people) is not int:
        raise InputError("say about how many people there are, as a whole number: it has to be publicly known")
    order = order_of(rest, frozenset(MAP))
    if "box" not in order:
        raise InputError("a plan needs a box: declare west,south,east,north in degrees")
    return order, people, ReleaseSpec.from_json(order)
