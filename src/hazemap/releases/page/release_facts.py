"""What the page of every kind of release is told first: its heading, its statement, colours, and what lies beneath."""

from typing import TYPE_CHECKING, Any

from hazemap.base_map import base_map
from hazemap.draw.colour_scales import DENSITY_COLOURS, ERROR_BREAKS, ERROR_COLOURS, UNKNOWN
from hazemap.privacy.statement_facts import Estimand
from hazemap.spatial.plane import PlaneQuadtree, ground_unit, plane_of

if TYPE_CHECKING:
    from hazemap.releases.base_release import BaseRelease

VERSION = 1
"""The version of the data; a page of another one says so."""

AROUND = 1.0
"""Of the sides of a map: so much of the base map is on either side of it, for wide windows and for zooming out."""


def release_facts(release: "BaseRelease", kind: str, title: str | None) -> dict[str, Any]:
    """Everything of a release's page but its numbers, as JSON; `kind` says which numbers follow."""
    tree, statement = release.cells.tree, release.statement
    plane = plane_of(tree)
    return {
        "page": VERSION,
        "kind": kind,
        "title": statement.dataset if title is None else title,
        "counted": release.counted,
        "estimand": Estimand.of(statement.bounding)._asdict(),
        "line": statement.line(),
        "text": statement.text(),
        "statement": statement.to_json(),
        "method": statement.method,
        "unit": ground_unit(tree).name,
        "plane": None if plane is None else _plane(plane),
        "colours": {
            "density": list(DENSITY_COLOURS),
            "error": list(ERROR_COLOURS),
            "breaks": list(ERROR_BREAKS),
            "unknown": UNKNOWN,
        },
        "base": None if plane is not None else base_map(release.ground.extent, AROUND).to_json(),
    }


def _plane(plane: PlaneQuadtree) -> dict[str, Any]:
    facts = ("unit", "crs", "down", "x", "y", "size")
    return {name: getattr(plane, name) for name in facts}
