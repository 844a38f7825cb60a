"""Which places are published, and who counts in which of them, where only values are private: chosen before anything is
paid.

A published place costs everybody who counts in it, so a table with many places has to leave out places, or people in
places. Whereabouts are public here (VALUES ONLY), so all of this is decided from them and from the budget.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from hazemap.algorithms.published.chop_user import CellVisits, ChopUserQuery, chop_user
from hazemap.errors import InputError
from hazemap.machine_code.arrays import Bools, Ints
from hazemap.tables.sample_grouping import PublicLocations
from hazemap.vdaf.compiled_loops import once_compiled

Choose = Callable[[Bools], Bools]
"""Given the places that may be published, bool[places], the pairs that count, bool[pairs]."""

TOO_WIDE = 0.5
"""A place is published if its interval is no wider than this part of the bounds, which is public: the noise tells."""

SPREAD = 1 / sqrt(12)
"""The standard deviation of own means, in parts of the bounds, that is reckoned with: they lie anywhere, evenly."""

ROUNDING = 1e-6
"""Discrete noise has not quite the standard deviation that grows with the weight: 1 of 2²⁰ parts is far below this."""

UNKNOWN = 0.5
"""The error of a place that is not told: half of the bounds, as if their middle were guessed."""

BEGINNINGS = (1.0, 1.5, 2.0, 3.0, 5.0)
"""Of how many times the least number of people the smallest place has that is tried first."""

CHOPPABLE = 1 << 19
"""CHOP-USER is tried on at most this many pairs: it looks at every pair once for each place by which K falls. With
more, only the first two beginnings are tried, too, and every other K."""


@dataclass(frozen=True)
class NoiseScale:
    """The standard deviation of the noise of a sum of values, in parts of the bounds: `unit` times the most that a
    person weighs in all places together, or (`rooted`, discrete Gaussian) times the root of their squares. An
    interval of 95 % reaches `reach` of them to each side.

    >>> NoiseScale(1.4, rooted=False, reach=2.2).stddev(4, 16), NoiseScale(1.4, rooted=True, reach=2.0).stddev(4, 16)
    (5.6, 5.6)
    """

    unit: float
    rooted: bool
    reach: float

    def stddev(self, most: int, squares: int) -> float:
        """Of people who weigh at most `most`, and whose weights' squares add up to at most `squares`."""
        return self.unit * (sqrt(squares) if self.rooted else most)

    def needed(self, most: int, squares: int) -> float:
        """The weight from which on a place can be published."""
        return 2 * self.reach * self.stddev(most, squares) / TOO_WIDE * (1 + ROUNDING)


@dataclass(frozen=True, eq=False)
class ContributionSelection:
    """Which pairs count, bool[pairs], and what follows: the weight in each place, int64[places] (0: it is not told),
    the most that anybody weighs in all, and the most of its squares; how it was found, in how many places anybody
    counts at most, and the expected error per place, averaged over people, in parts of the bounds.
    """

    kept: Bools
    weight: Ints
    most: int
    squares: int
    route: str
    places: int
    error: float


def best_selection(
    where: PublicLocations, records: int, noise_scale: NoiseScale, most_places: int | None = None
) -> ContributionSelection:
    """The selection with the least expected error of all that are tried; `InputError` if no place can be published.

    Expected error of a published place, in parts of the bounds: the root of noise² + SPREAD²·(1/k − 1/n), where k of
    n people count. The second part is what leaving people out at random does to a mean; both routes look at nothing but
    whereabouts, so it holds for them if values do not depend on how many places somebody is in. That is a public
    measure, and no promise: in the worst case the error is 1 − k/n, but a choice by that leaves nobody out and
    publishes nothing, for it assumes that the hash knows the values. A place not published has UNKNOWN. The objective
    is the mean over places, weighted by their people: what somebody who looks up the places of a person drawn at
    random can expect.

    Routes:

    * *drawn*: everybody counts in at most K of the published places, drawn by a keyed hash; K is 1, 2, 4, …, and
      what nobody passes.
    * *even*: the same, but one person after another, those with the least choice first, counts where the least weight
      counts so far. Nobody is of use in a place beyond what it needs, so more places can be published.
    * *chopped*: CHOP-USER (`algorithms.published.chop_user`) chooses who is left out where, at the price ε/K of one
      place.

    Each starts from the places with enough weight (`BEGINNINGS` times what a place needs under that K): a
    place that cannot be published only costs. Then, as long as places keep too little weight, some of the poorest of
    them are given up (`_poorest`), and those who are free count elsewhere. So the least number of people that a place
    has to have is a part of what is chosen. O(pairs) for each try, a hundred or so in all. At 95 % and pure ε a place
    needs 12.3 K/ε people, so of n people at most n · ε/12.3 places can be published, whatever is chosen.

    >>> where = PublicLocations(np.arange(0, 81, 2), np.tile([0, 1], 40).astype(np.int32), np.ones(80, dtype=int), 2)
    >>> best = best_selection(where, 1, NoiseScale(1.0, rooted=False, reach=2.0))
    >>> best.places, best.weight, round(best.error, 3)
    (2, array([40, 40]), 0.05)
    """
    best = min(selections(where, records, noise_scale, most_places), key=lambda each: each.error, default=None)
    if best is None:
        raise InputError(
            "no place can be published: even if everybody counted in one place only, a place needs "
            f"{noise_scale.needed(1, 1):,.0f} people, and none has enough; ask for coarser cells, fewer slots or a "
            "larger "
            "budget (nothing was paid)"
        )
    return best


def selections(
    where: PublicLocations, records: int, noise_scale: NoiseScale, most_places: int | None = None
) -> Iterator[ContributionSelection]:
    """All that are tried, each with its expected error; none where no place can be published."""
    weights = where.weights(records)
    whole = np.zeros(where.number, dtype=np.int64)
    np.add.at(whole, where.place, weights)
    top, small = int(where.counts.max()), len(where.place) <= CHOPPABLE
    if most_places is None:
        powers = range(0, top.bit_length(), 1 if small else 2)
        caps = [*(1 << power for power in powers if 1 << power < top), top]
    else:
        caps = [min(most_places, top)]
    for cap in caps:
        least = noise_scale.needed(cap, cap)
        if least > whole.max():
            break
        routes = {"drawn": _drawn(where, cap), "even": _even(where, cap, weights)}
        before = -1
        for times in BEGINNINGS if small else BEGINNINGS[:2]:
            active = whole >= least * times
            number = int(active.sum())
            if number in (0, before):
                continue
            before = number
            for route, choose in routes.items():
                yield from _settled(where, weights, noise_scale, active, choose, route)
        if small and cap < top:
            active = whole >= least
            choose = _chopped(where, weights, noise_scale, active, cap)
            for found in _settled(where, weights, noise_scale, active, choose, "chopped"):
                if most_places is None or found.places <= most_places:
                    yield found


def _settled(
    where: PublicLocations, weights: Ints, noise_scale: NoiseScale, active: Bools, choose: Choose, route: str
) -> Iterator[ContributionSelection]:
    """Give up some places that cannot be published, choose again, and so on: one selection, or none."""
    active = active.copy()
    while active.any():
        kept = choose(active)
        weight, most, squares = once_compiled(_weigh_loop)(where.firsts, where.place, weights, kept, where.number)
        few = np.flatnonzero(active & (weight < noise_scale.needed(most, squares)))
        if not few.size:
            places = int(np.add.reduceat(kept, where.firsts[:-1], dtype=np.int64).max())
            error = _error(where, kept, weight, noise_scale.stddev(most, squares))
            yield ContributionSelection(kept, weight, most, squares, route, places, error)
            return
        active[_poorest(few, weight, where.people, noise_scale.needed(most, squares))] = False


def _drawn(where: PublicLocations, cap: int) -> Choose:
    return lambda active: once_compiled(_draw_loop)(where.firsts, where.place, active, cap)


def _even(where: PublicLocations, cap: int, weights: Ints) -> Choose:
    def choose(active: Bools) -> Bools:
        options = np.add.reduceat(active[where.place], where.firsts[:-1], dtype=np.int64)
        order = np.argsort(options, kind="stable")
        kept: Bools = once_compiled(_even_loop)(where.firsts, where.place, active, cap, weights, order)
        return kept

    return choose


def _chopped(where: PublicLocations, weights: Ints, noise_scale: NoiseScale, active: Bools, cap: int) -> Choose:
    """CHOP-USER on these places, with the budget of one in `cap`."""
    some = np.flatnonzero(active[where.place])
    epsilon = sqrt(2) / noise_scale.stddev(cap, cap)  # Laplace noise of that standard deviation has this ε
    person, place = where.person[some].astype(np.int64), where.place[some].astype(np.int64)
    chopped = chop_user(CellVisits(person, place, weights[some]), ChopUserQuery(1.0), epsilon)
    order = np.lexsort((place, person))  # as `CellVisits` puts pairs
    kept = np.zeros(len(where.place), dtype=np.bool_)
    kept[some[order[chopped.kept]]] = True
    return lambda still: kept & still[where.place]


def _poorest(few: Ints, weight: Ints, people: Ints, needed: float) -> Ints:
    """Those of these places to give up now: half of what has to be, if everybody in them is of use elsewhere."""
    missing = float((needed - weight[few]).sum()) / needed
    order = np.lexsort((people[few], weight[few]))
    return few[order[: max(1, int(missing / 2))]]


def _error(where: PublicLocations, kept: Bools, weight: Ints, stddev: float) -> float:
    """The expected error per place, averaged over people, where the sum of each place has this noise."""
    people, told = np.bincount(where.place[kept], minlength=where.number), weight > 0
    error = np.full(where.number, UNKNOWN)
    sampled = SPREAD**2 * (1 / people[told] - 1 / where.people[told])
    error[told] = np.sqrt((stddev / weight[told]) ** 2 + sampled)
    return float((np.minimum(error, UNKNOWN) * where.people).sum() / where.people.sum())


def _draw_loop(firsts: Ints, place: NDArray[np.int32], active: Bools, cap: int) -> Bools:  # pragma: no cover - compiled
    """The first `cap` pairs of each person in places that are active, as they were drawn."""
    kept = np.zeros(place.size, dtype=np.bool_)
    for person in range(firsts.size - 1):
        own = 0
        for pair in range(firsts[person], firsts[person + 1]):
            kept[pair] = own < cap and active[place[pair]]
            own += kept[pair]
    return kept


def _even_loop(
    firsts: Ints, place: NDArray[np.int32], active: Bools, cap: int, weights: Ints, order: Ints
) -> Bools:  # pragma: no cover - compiled
    """The same, but each person, in this order, counts in the places in which least weight counts so far."""
    kept, weight = np.zeros(place.size, dtype=np.bool_), np.zeros(active.size, dtype=np.int64)
    for person in order:
        first, last = firsts[person], firsts[person + 1]
        options = np.empty(last - first, dtype=np.int64)
        own = 0
        for pair in range(first, last):
            if active[place[pair]]:
                options[own] = pair
                own += 1
        options = options[:own]
        if own > cap:
            so_far = np.empty(own, dtype=np.int64)
            for i in range(own):
                so_far[i] = weight[place[options[i]]]
            options = options[np.argsort(so_far, kind="mergesort")[:cap]]
        for pair in options:
            kept[pair] = True
            weight[place[pair]] += weights[pair]
    return kept


def _weigh_loop(
    firsts: Ints, place: NDArray[np.int32], weights: Ints, kept: Bools, number: int
) -> tuple[Ints, int, int]:  # pragma: no cover - compiled
    """The weight of kept pairs in each place; the most of a person in all places, and of its squares."""
    weight = np.zeros(number, dtype=np.int64)
    most, squares = 0, 0
    for person in range(firsts.size - 1):
        total, square = 0, 0
        for pair in range(firsts[person], firsts[person + 1]):
            if kept[pair]:
                total += weights[pair]
                square += weights[pair] ** 2
                weight[place[pair]] += weights[pair]
        most, squares = max(most, total), max(squares, square)
    return weight, most, squares
