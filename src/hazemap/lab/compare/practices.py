"""The methods under comparison, and what offices publish today: true counts with a rule for small ones.

To add a method, add a line to `METHODS`. Practices draw nothing at random: the same people always give the same map,
and their ε is infinite.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import cos, log2, radians
from typing import Any, ClassVar

import numpy as np

from hazemap.algorithms import PrivateBoundingBox
from hazemap.cellmap import Reading
from hazemap.errors import InputError
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.privacy.budget import PureDP, exact
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.specs.method_from_name import method_from_name
from hazemap.specs.parsing import QuadtreeCells
from hazemap.tables.contribution_bounding import Bounding, RowIsPerson

LEFT_OUT = 20
"""A part of 1 / LEFT_OUT of a square's people may be left out where it is cut."""

EQUATOR = 40_075_016.686
"""Metres of the side of the world's square in Web Mercator, at the equator."""


@dataclass(frozen=True)
class Practice(ABC):
    """A rule with its number, which `name` writes behind it: `k-anonymity:5`.

    `published` makes a map of another: people in each pixel, float64[side, side], those of a larger square spread
    evenly over it. O(pixels).
    """

    number: int
    word: ClassVar[str]
    what: ClassVar[str]

    @property
    def name(self) -> str:
        """What tables and figures call it."""
        return f"{self.word}:{self.number}"

    @property
    def spelled(self) -> str:
        """What users type."""
        return self.name

    @property
    def at(self) -> float | None:
        """No place along an axis."""
        return None

    @property
    def settings(self) -> dict[str, float | str]:
        """Nothing but its number, which its name holds."""
        return {}

    @abstractmethod
    def published(self, place: GroundTruthMap) -> Floats:
        """The map that this rule makes of another."""


class KAnonymity(Practice):
    """Squares are cut in four as long as a twentieth of their people at most is in quarters of fewer than so many.

    Those few are left out, the other quarters counted: the smallest squares that tell of nobody alone. Of fewer people
    than that in all, nothing is published.

    >>> three = GroundTruthMap.of("three", np.array([[30, 0], [1, 2]]))
    >>> KAnonymity(2).published(three).tolist(), KAnonymity(3).published(three).tolist()
    ([[30.0, 0.0], [0.0, 2.0]], [[8.25, 8.25], [8.25, 8.25]])
    """

    word: ClassVar[str] = "k-anonymity"
    what: ClassVar[str] = "squares of at least so many people, as small as can be"

    def published(self, place: GroundTruthMap) -> Floats:
        """The map that this rule makes of another."""
        levels = list(_levels(place.counts))
        shown = np.asarray(levels[0] * (levels[0] >= self.number), np.float64)
        cut = shown > 0  # whether a square was reached by cutting, and is told
        for above, counts in pairwise(levels):
            few = _quarters(np.where(counts < self.number, counts, 0)).sum(axis=(1, 3))
            reached = _doubled(cut & (LEFT_OUT * few <= above))
            shown = np.where(reached, np.where(counts >= self.number, counts, 0), _doubled(shown) / 4)
            cut = reached & (counts >= self.number)
        return shown


class Suppression(Practice):
    """Counts of pixels, those below so many left out: readers take them for 0.

    >>> Suppression(3).published(GroundTruthMap.of("three", np.array([[3, 0], [0, 2]]))).tolist()
    [[3.0, 0.0], [0.0, 0.0]]
    """

    word: ClassVar[str] = "suppression"
    what: ClassVar[str] = "true counts of pixels, those below so many left out"

    def published(self, place: GroundTruthMap) -> Floats:
        """The map that this rule makes of another."""
        return np.where(place.counts < self.number, 0.0, place.counts)


class Rounding(Practice):
    """Counts of pixels, rounded to the nearest multiple of so many; a half goes up.

    >>> Rounding(5).published(GroundTruthMap.of("three", np.array([[3, 0], [0, 2]]))).tolist()
    [[5.0, 0.0], [0.0, 0.0]]
    """

    word: ClassVar[str] = "rounding"
    what: ClassVar[str] = "true counts of pixels, rounded to multiples of so many"

    def published(self, place: GroundTruthMap) -> Floats:
        """The map that this rule makes of another."""
        return np.asarray((2 * place.counts + self.number) // (2 * self.number) * self.number, np.float64)


class GridBlur(Practice):
    """Everybody is moved to the middle of a square of at least so many metres: true counts of these squares.

    >>> GridBlur(30_000).published(GroundTruthMap.of("three", np.array([[3, 0], [0, 1]]))).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """

    word: ClassVar[str] = "grid-blur"
    what: ClassVar[str] = "true counts of squares that have at least so many metres a side"

    @property
    def name(self) -> str:
        """What tables and figures call it."""
        return f"{self.word}:{self.number}m"

    def published(self, place: GroundTruthMap) -> Floats:
        """The map that this rule makes of another."""
        _, south, _, north = (float(edge[0]) for edge in place.tree.bounds(place.tree.root))
        pixel = EQUATOR * place.tree.side / place.side * cos(radians((south + north) / 2))
        block = 1 << min(max(int(np.ceil(log2(self.number / pixel))), 0), place.tree.depth)
        side = place.side // block
        sums = place.counts.reshape(side, block, side, block).sum(axis=(1, 3))
        return np.repeat(np.repeat(sums / block**2, block, axis=0), block, axis=1)


PRACTICES: tuple[type[Practice], ...] = (KAnonymity, Suppression, Rounding, GridBlur)
"""To add one, add a line."""

LARGEST = 1_000_000
"""Of a practice's number."""


def practice_named(text: str) -> Practice:
    """A practice as users write it.

    >>> practice_named("grid-blur:500m").name, practice_named("k-anonymity:5").number
    ('grid-blur:500m', 5)
    """
    word, _, number = text.partition(":")
    for kind in PRACTICES:
        if kind.word == word:
            plain = number.removesuffix("m") if kind is GridBlur else number
            if not (plain.isascii() and plain.isdecimal() and len(plain) < 9 and 1 <= int(plain) <= LARGEST):
                unit = "a whole number of metres" if kind is GridBlur else "a whole number"
                raise InputError(f"{word} takes {unit} of 1 to {LARGEST:,}, as in {kind(500).name}; found {text!r}")
            return kind(int(plain))
    known = ", ".join(f"{kind(10).name} ({kind.what})" for kind in PRACTICES)
    raise InputError(f"there is no practice {text!r} to compare with; there are {known}")


def _levels(counts: Ints) -> Iterator[Ints]:
    """The counts of squares of each level, the whole map first, the pixels last."""
    found = [counts]
    while len(found[-1]) > 1:
        found.append(_quarters(found[-1]).sum(axis=(1, 3)))
    yield from reversed(found)


def _quarters(grid: np.ndarray) -> np.ndarray:
    """The four quarters of each square along axes 1 and 3."""
    half = len(grid) // 2
    return grid.reshape(half, 2, half, 2)


def _doubled(grid: np.ndarray) -> np.ndarray:
    """Each square as its four quarters."""
    return np.repeat(np.repeat(grid, 2, axis=0), 2, axis=1)


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
