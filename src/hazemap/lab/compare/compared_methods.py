"""The methods under comparison. To add one, add a line to `METHODS`."""

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cache
from typing import Any

from hazemap.algorithms import PrivateBoundingBox
from hazemap.cellmap import Reading
from hazemap.errors import InputError
from hazemap.privacy.budget import PureDP, exact
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.specs.method_from_name import method_from_name
from hazemap.specs.parsing import QuadtreeCells
from hazemap.tables.contribution_bounding import Bounding, RowIsPerson


@dataclass(frozen=True)
class Epsilons:
    """So much ε of a run's budget, whatever that is: papers fix amounts where methods here have shares.

    >>> Epsilons("0.001").of("0.1")
    Fraction(1, 100)
    """

    amount: str

    def of(self, epsilon: str) -> Fraction:
        """The share of a budget."""
        return exact(self.amount, "a part of the budget") / exact(epsilon, "epsilon")

    def __float__(self) -> float:
        return float(self.amount)


@dataclass(frozen=True)
class Method:
    """A method by the name that orders know it by, and the fields of it that are set otherwise.

    `name` is what tables and figures call it. A method of the literature is `published`: it shows its unbiased
    estimate as it is, without our shrinking or mending of signs.

    >>> from hazemap.tables.contribution_bounding import RowIsPerson
    >>> Method("singular", "flat", published=True).algorithm(Quadtree.world(3), RowIsPerson(), "1").level
    3
    """

    name: str
    spelled: str
    published: bool = False
    changes: tuple[tuple[str, Any], ...] = ()
    at: float | None = None

    def placed(self, at: float) -> "Method":
        """The same method at this place along the axis of a figure; where that is changes nothing of what it does."""
        return replace(self, at=at)

    def but(self, **changes: Any) -> "Method":
        """The same method with other parameters."""
        return replace(self, changes=(*self.changes, *changes.items()))

    def algorithm(self, tree: Quadtree, rule: Bounding, epsilon: str) -> Any:
        """The method over the pixels of a map; `InputError` if no method has this name or these parameters."""
        text = self.spelled
        found: Any = method_from_name(text, QuadtreeCells(tree.depth), _box(tree), rule, PureDP(epsilon))
        known = {field.name for field in fields(found)}
        if isinstance(found, PrivateBoundingBox) or "tree" not in known:
            raise InputError(f"the method {text!r} has no map of its own to be compared on")
        changes = {name: value.of(epsilon) if isinstance(value, Epsilons) else value for name, value in self.changes}
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
        return {name: _plain(value) for name, value in self.changes if value is not None}


@cache
def _box(tree: Quadtree) -> Box:
    return Box(*(float(edge[0]) for edge in tree.bounds(tree.root)))


def _plain(value: Any) -> float | str:
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)


SINGULAR = Method("singular", "singular", published=True)
ONE_COUNT = Method("one count", "total", published=True)
UG = Method("UG", "uniform-grid", published=True)
AG = Method("AG", "adaptive-grid", published=True)
QUADTREE_UNIFORM = Method("quadtree (uniform)", "hierarchical", published=True)
QUADTREE = Method("quadtree (geometric)", "geometric", published=True)
HB = Method("HB", "hb", published=True)
PRIVLET = Method("Privlet", "privlet", published=True)
KD_GEOMETRIC = Method("kd-tree (geometric)", "kd-tree", published=True)
KD_UNIFORM = Method("kd-tree (uniform)", "kd-tree-uniform", published=True)
KD_HYBRID = Method("kd-tree (hybrid)", "kd-hybrid", published=True)
PRIVTREE = Method("PrivTree", "privtree", published=True)
HTF = Method("HTF", "htf-published", published=True)
PREFIX = Method("prefix tree", "prefix", published=True)
HTF_PLUS = Method("HTF+", "htf+")
HB_LEAST = Method("HB+", "hb-least")
ADAPTIVE = Method("adaptive", "auto")
AUTO = Method("auto", "auto")

METHODS: tuple[Method, ...] = (
    SINGULAR,
    ONE_COUNT,
    UG,
    AG,
    QUADTREE_UNIFORM,
    QUADTREE,
    HB,
    PRIVLET,
    KD_GEOMETRIC,
    KD_UNIFORM,
    KD_HYBRID,
    PRIVTREE,
    HTF,
    PREFIX,
    HTF_PLUS,
    HB_LEAST,
    AUTO,
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
        found.algorithm(Quadtree.world(12), RowIsPerson(), "1")
    except InputError as error:
        names = ", ".join(method.name for method in METHODS)
        raise InputError(
            f"there is no method {text!r} to compare. There are {names}, and by the names of orders: {error}"
        ) from error
    return found
