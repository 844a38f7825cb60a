"""The loops of `keeping`, compiled: one pass over all pairs each."""

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Bools, Ints
from hazemap.jit import compiled


@compiled
def draw(firsts: Ints, place: NDArray[np.int32], active: Bools, cap: int) -> Bools:  # pragma: no cover - compiled
    """The first `cap` pairs of each person in places that are active, as they were drawn."""
    kept = np.zeros(place.size, dtype=np.bool_)
    for person in range(firsts.size - 1):
        own = 0
        for pair in range(firsts[person], firsts[person + 1]):
            kept[pair] = own < cap and active[place[pair]]
            own += kept[pair]
    return kept


@compiled
def even(
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


@compiled
def weigh(
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
