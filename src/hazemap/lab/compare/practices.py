"""What offices publish today without differential privacy: true counts, and a rule for those that are too small.

Each is as its users would have it: nothing is drawn, and the same people always give the same map. Their ε is infinite.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import cos, log2, radians
from typing import ClassVar

import numpy as np

from hazemap.errors import InputError
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap
from hazemap.machine_code.arrays import Floats, Ints

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
