"""What somebody learns of a person from a map that is published, beside the map's errors.

Two attackers, each of whom knows where everybody else is, as differential privacy supposes. One is given a map and
says whether a person is among its people; the other is given the maps of two days, between which one person came, and
says where this person is. Both are weak for what they know: they look at one cell, or at one difference.
"""

from dataclasses import dataclass, replace
from math import tanh
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hazemap.cellmap import CellMap
from hazemap.errors import InputError
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap, owners, painted
from hazemap.lab.compare.map_scores import seen_at
from hazemap.lab.compare.practices import Method, Practice
from hazemap.lab.compare.trial_settings import Everyone, Row, scorer, timed
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.privacy.random_stream import Stream
from hazemap.trust.curator import Curator

AREAS = 4
"""A newcomer is looked for in 4^AREAS areas of the map."""


class AttackedPublication(NamedTuple):
    """A map as pixels, float64[side, side], and what it says of the people in the cell around each of some pixels."""

    shown: Floats
    nearby: Floats


@dataclass(frozen=True)
class Attacked(Everyone):
    """A curator publishes one map; `targets` of its people are looked for, each in two maps, with and without them.

    The people are drawn alike for every method, anew for each repetition. Practices without noise are compared here
    too. Beside the errors of `Everyone`:

    * `advantage`: how often the first attacker is right about people who are there, less how often wrong about
      people who are not (0: no better than a coin, 1: always right);
    * `bound`: what no attacker exceeds, tanh(ε/2), whatever else they know; 1 where there is no ε;
    * `located`: how often the second attacker names the area of a newcomer, of 256; both maps cost ε, and
    * `chance`: how often one would who always names the area with the most people.
    """

    methods: ClassVar[tuple[type, ...]] = (Method, Practice)

    targets: int = 40

    def algorithm(self, place: GroundTruthMap, method: Any, epsilon: str) -> Any:
        """As orders would run it; a practice is what it does."""
        return method if isinstance(method, Practice) else super().algorithm(place, method, epsilon)

    def measured(self, place: GroundTruthMap, method: Any, epsilon: str, repetition: int) -> Row:
        """Errors of one release, and the attacks on others."""
        if isinstance(method, Practice):
            picture = method.published(place)
            row = scorer(place).all(picture, picture) | self.beside(place, picture)
        else:
            row = super().measured(place, method, epsilon, repetition)
        return row | self._attacks(place, method, epsilon, repetition)

    def _attacks(self, place: GroundTruthMap, method: Any, epsilon: str, repetition: int) -> Row:
        """Both, on each of the targets."""
        pixels = people_of(place, self.targets, f"targets {repetition}".encode())
        depth = min(AREAS, place.tree.depth)
        fullest = int(seen_at(np.asarray(place.counts, np.float64), depth).argmax())
        right, found = list[float](), list[float]()
        for pixel in pixels.tolist():
            without = less_one(place, pixel)
            there, gone = (self._published(each, method, epsilon, pixel) for each in (place, without))
            right.append(_said_there(there, gone, method))
            found.append(_area(there.shown - gone.shown, depth, fullest) == _area_of(pixel, place.side, depth))
        areas = [_area_of(pixel, place.side, depth) for pixel in pixels.tolist()]
        bound = 1.0 if isinstance(method, Practice) else tanh(float(epsilon) / 2)
        return {
            "advantage": float(np.mean(right)),
            "bound": bound,
            "located": float(np.mean(found)),
            "chance": float(np.mean([area == fullest for area in areas])),
        }

    def _published(self, place: GroundTruthMap, method: Any, epsilon: str, pixel: int) -> AttackedPublication:
        """One map, and how much it says is in the cell around a pixel more than those who are known to be there."""
        if isinstance(method, Practice):
            return AttackedPublication(method.published(place), np.zeros(0))
        made = timed(self.algorithm(place, method, epsilon), Curator(place.table), epsilon)[0].value
        return AttackedPublication(painted(made, place.tree)[0], _around(made, place, pixel))


def _around(made: CellMap, place: GroundTruthMap, pixel: int) -> Floats:
    """The unbiased number of the cell that holds a pixel, and the people who are truly there: float64[2]."""
    whose = owners(made.cells, place.tree)
    cell = int(whose.ravel()[pixel])
    if cell < 0:
        return np.zeros(2)
    return np.array([made.unbiased[cell], place.counts[whose == cell].sum()])


def _said_there(there: AttackedPublication, gone: AttackedPublication, method: Any) -> float:
    """Right about who is there, less wrong about who is not: 1, 0 or −1.

    Nothing is drawn by a practice, so its attacker publishes the others' map again and sees whether it differs.
    Of a noisy map the number of the person's cell is taken: nearer to the others alone, or to one more?
    """
    if isinstance(method, Practice):
        return float(not np.array_equal(there.shown, gone.shown))
    others = there.nearby[1] - 1 if there.nearby[1] > 0 else 0.0
    hit = there.nearby[0] > others + 0.5
    wrong = gone.nearby[0] > gone.nearby[1] + 0.5
    return float(hit) - float(wrong)


def _area(more: Floats, depth: int, fullest: int) -> int:
    """The area in which most was added; where nothing was, the fullest."""
    added = seen_at(more, depth)
    return int(added.argmax()) if added.max() > 0 else fullest


def _area_of(pixel: int, side: int, depth: int) -> int:
    row, column = divmod(pixel, side)
    block = side >> depth
    return (row // block) * (1 << depth) + column // block


def people_of(place: GroundTruthMap, number: int, seed: bytes) -> Ints:
    """The pixels of so many people drawn with replacement, everybody as likely: int64[number]; the same for a seed."""
    if not place.people:
        raise InputError(f"the map {place.name} has nobody who could be looked for")
    luck = Stream.fixed(b"people to be looked for " + seed).words(number) >> np.uint64(11)
    until = np.cumsum(place.counts.ravel())
    which = np.floor(luck.astype(np.float64) * 2.0**-53 * until[-1]).astype(np.int64)
    return np.asarray(np.searchsorted(until, which, "right"), np.int64)


def less_one(place: GroundTruthMap, pixel: int) -> GroundTruthMap:
    """The same people without one of this pixel."""
    counts = place.counts.copy()
    counts.ravel()[pixel] -= 1
    return replace(place, counts=counts)
