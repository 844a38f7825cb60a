"""The made-up city at each time: where its people are in every slot, and how far maps of slots misplace them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Tree
from hazemap.errors import InputError
from hazemap.estimate.slot_maps import SlotMaps
from hazemap.machine_code.arrays import Floats
from hazemap.planning.synthetic_city import DAYS, START, Habit, Quarter, SyntheticTable
from hazemap.privacy.random_stream import Stream
from hazemap.tables.contribution_bounding import Bounding
from hazemap.tables.votes import Votes
from hazemap.temporal.time_slots import DAY, HOUR, Slots, Spans, local
from hazemap.values.timed_tree import PlacesAndSlots, TimedTree

MOST_SLOTS = 200
"""Slots that a plan is tried for, at most: the city has hundreds of thousands of plots in each."""

EACH = 300
"""Seconds between the moments at which the city is looked at; fewer where slots are short."""


@dataclass(frozen=True, eq=False)
class CityInSlots:
    """The people of a made-up city in each slot: they do what they do at the hours of their habits, on all days alike.

    `density` is the law of where and when they are, float64[slots, plots] of sum 1, and `people` how many there are.

    >>> from hazemap.spatial.bounding_box import Box
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> from hazemap.temporal.time_slots import Clock
    >>> box = Box(2.2, 48.8, 2.5, 48.9)
    >>> city = CityInSlots.of(SyntheticTable.of(Quadtree.around(box, 6), box, 1_000), Clock.hours("UTC"), 1_000)
    >>> city.people.shape[0], bool(abs(city.density.sum() - 1) < 1e-9)
    (24, True)
    """

    city: SyntheticTable
    slots: Slots
    density: Floats
    people: NDArray[np.int64]

    @classmethod
    def of(cls, city: SyntheticTable, slots: Slots, people: int) -> "CityInSlots":
        """A city of about this many people, the same every time. `InputError` for more slots than a plan can try."""
        if len(slots.names) > MOST_SLOTS:
            raise InputError(f"a plan is tried for at most {MOST_SLOTS} slots; found {len(slots.names):,}")
        density = np.zeros((len(slots.names), len(city.base)))
        moments = moments_of(slots)
        for habit in city.habits:
            place = habit.quarter.density.ravel()[city.inside]
            density += np.outer(habit.share * shares_of(habit, slots, moments), place)
        density /= density.sum()
        return cls(city, slots, density, Quarter(density).counts(Stream.fixed(b"the slots of a plan"), people))

    def votes(self, tree: Tree, bounding: Bounding) -> Votes:
        """Everybody gives as much as the rule allows, all of it in their plot and slot."""
        if not isinstance(tree, TimedTree):
            return Votes.gathered(self.city.base_in(tree), self.people.sum(axis=0) * bounding.sensitivity.l1)
        slot, plot = np.nonzero(self.people)
        where = PlacesAndSlots(self.city.base_in(tree.tree)[plot], slot)
        return Votes.gathered(tree.numbered(where), self.people[slot, plot] * bounding.sensitivity.l1)

    def misplaced(self, made: SlotMaps) -> float:
        """The part of a slot's people that its map puts in a wrong plot; the mean of all slots, by their people."""
        return sum(self._wrong(made, slot) for slot in range(len(self.density)))

    def _wrong(self, made: SlotMaps, slot: int) -> float:
        shown = made.during([slot])
        at = shown.cells.locate(self.city.base_in(shown.cells.tree))
        guess = np.maximum(shown.values, 0)[at] / np.bincount(at, minlength=shown.cells.size)[at]
        people = float(self.density[slot].sum())
        return float(np.abs(guess * (people / max(guess.sum(), 1e-9)) - self.density[slot]).sum() / 2)


def moments_of(slots: Slots) -> Floats:
    """Moments that cover all slots evenly, seconds since 1970: four weeks, or all stretches of time."""
    if isinstance(slots, Spans):
        first, last = slots.edges[0], slots.edges[-1]
        number = max(min((last - first) // EACH, 1 << 20), 8 * len(slots.names))
        return np.asarray(first + (np.arange(number) + 0.5) * ((last - first) / number))
    return np.asarray(START + EACH * np.arange(DAYS * DAY // EACH) + EACH / 2)


def shares_of(habit: Habit, slots: Slots, moments: Floats) -> Floats:
    """The part of a habit that is in each slot: its hours are those that the clocks of the slots show."""
    hours = local(getattr(slots, "zone", "UTC"), moments) % DAY / HOUR
    away = np.abs(hours - habit.usual)
    away = np.minimum(away, 24 - away)
    often = np.exp(-0.5 * (away / habit.spread) ** 2)
    slot = slots.at(moments)
    found = np.bincount(slot[slot >= 0], often[slot >= 0], len(slots.names))
    return np.asarray(found / max(found.sum(), 1e-300))
