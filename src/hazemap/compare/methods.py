"""The methods that are compared. To add one is to add a line to `METHODS`."""

from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

from hazemap.algorithms import FoundBox
from hazemap.cellmap import Reading
from hazemap.domains import Box, Quadtree
from hazemap.errors import InputError
from hazemap.orders.spelling import Squares
from hazemap.orders.ways import way
from hazemap.tables.bounding import Bounding, RowIsPerson


@dataclass(frozen=True)
class Method:
    """A method by the name that orders know it by, and the fields of it that are set otherwise.

    `name` is what tables and figures call it. A method of the literature is `published`: it shows its unbiased
    estimate as it is, without our shrinking or mending of signs.

    >>> from hazemap.tables.bounding import RowIsPerson
    >>> Method("singular", "flat", published=True).algorithm(Quadtree.world(3), RowIsPerson()).level
    3
    """

    name: str
    spelled: str
    published: bool = False
    changes: tuple[tuple[str, Any], ...] = ()

    def but(self, **changes: Any) -> "Method":
        """The same method with other parameters."""
        return replace(self, changes=(*self.changes, *changes.items()))

    def algorithm(self, tree: Quadtree, rule: Bounding) -> Any:
        """The method over the pixels of a map; `InputError` if no method has this name or these parameters."""
        text = self.spelled
        found: Any = way(text, Squares(tree.depth), _box(tree), rule)
        known = {field.name for field in fields(found)}
        if isinstance(found, FoundBox) or "tree" not in known:
            raise InputError(f"the method {text!r} has no map of its own to be compared on")
        changes = dict(self.changes)
        if self.published and "reading" in known:
            changes.setdefault("reading", Reading.UNBIASED)
        if strange := set(changes) - known:
            raise InputError(
                f"the method {text!r} has no {', '.join(sorted(strange))}; it has {', '.join(sorted(known))}"
            )
        return replace(found, tree=tree, **changes)

    @property
    def settings(self) -> dict[str, float | str]:
        """What is set otherwise, as numbers where they are numbers."""
        return {name: _plain(value) for name, value in self.changes}


@cache
def _box(tree: Quadtree) -> Box:
    return Box(*(float(edge[0]) for edge in tree.bounds(tree.root)))


def _plain(value: Any) -> float | str:
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)


SINGULAR = Method("singular", "flat", published=True)
UG = Method("UG", "uniform-grid", published=True)
AG = Method("AG", "adaptive-grid", published=True)
QUADTREE_UNIFORM = Method("quadtree (uniform)", "hierarchical", published=True)
QUADTREE = Method("quadtree (geometric)", "geometric", published=True)
PREFIX = Method("prefix tree", "prefix", published=True)
ADAPTIVE = Method("adaptive", "adaptive")

METHODS: tuple[Method, ...] = (
    SINGULAR,
    UG,
    AG,
    QUADTREE_UNIFORM,
    QUADTREE,
    PREFIX,
    ADAPTIVE,
)
"""Every method for maps of people with one row each, in the order of tables: theirs, then ours."""


def method_named(text: str) -> Method:
    """A method of `METHODS` by its name, or any that orders know by theirs.

    >>> method_named("AG").spelled, method_named("flat:6").name
    ('adaptive-grid', 'flat:6')
    """
    for method in METHODS:
        if text in (method.name, method.spelled):
            return method
    found = Method(text, text)
    try:
        found.algorithm(Quadtree.world(12), RowIsPerson())
    except InputError as error:
        names = ", ".join(method.name for method in METHODS)
        raise InputError(
            f"there is no method {text!r} to compare. There are {names}, and by the names of orders: {error}"
        ) from error
    return found
