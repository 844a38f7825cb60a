"""The weighted k-median problem on a sphere, solved without randomness.

Points are unit vectors, float64[n, 3]; distances are great-circle angles, in radians. Points are gathered to at most
`POINTS` groups. If there are few ways to choose k of them all are tried; else k are added one by one, each the one that
helps most, and then one is exchanged for another as long as that helps. Such a choice costs at most 5 times as much as
the best k of the groups (Arya et al. 2004, theorem 3.2), which costs at most twice as much as any k places. From there
every centre goes to the median of the points that are nearest to it, which only makes it cheaper.
"""

from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from hazemap.machine_code.arrays import Floats, Ints

POINTS = 1024
"""Groups among which centres are chosen: their distances fill 8 MB."""
MIDDLES = 1 << 15
"""Groups whose median each centre goes to."""
ALL_WAYS = 20_000
"""Up to this many choices are tried one by one."""
_ROUNDS = 100
_ENOUGH = 1e-9
"""A gain that is a smaller part of the cost is none."""


class KMedianCentres(NamedTuple):
    """Centres, float64[k, 3]; which of them is nearest to each point, and its distance."""

    centres: Floats
    nearest: Ints
    distance: Floats


def k_median(points: Floats, weights: Floats, k: int) -> KMedianCentres:
    """At most k centres for points of weights above 0: O(n (k + log n)), O(POINTS² k) an exchange, MIDDLES · k a round.

    >>> there = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]])
    >>> k_median(there, np.array([5.0, 1.0, 1.0]), 1).centres
    array([[1., 0., 0.]])
    """
    middles, weight = _gathered(points, weights, MIDDLES)
    groups, heavy = _gathered(middles, weight, POINTS)
    found = _assigned(middles, groups[chosen(apart(groups, groups), heavy, k)])
    for _ in range(_ROUNDS):
        moved = _assigned(middles, _medians(middles, weight, found))
        cost, less = weight @ found.distance, weight @ moved.distance
        if less >= cost * (1 - _ENOUGH):
            break
        found = moved
    return found if len(middles) == len(points) else _assigned(points, found.centres)


def apart(some: Floats, others: Floats) -> Floats:
    """Angles between points, float64[some, others]; exact for near ones."""
    chord = np.zeros((len(some), len(others)))
    for axis in range(3):
        chord += np.square(some[:, axis, None] - others[None, :, axis])
    angle: Floats = 2 * np.arcsin(np.minimum(np.sqrt(chord) / 2, 1))
    return angle


def chosen(distance: Floats, weights: Floats, k: int) -> Ints:
    """Which k of m points are centres, given their distances float64[m, m], in ascending order."""
    m = len(weights)
    if k >= m:
        return np.arange(m)
    if comb(m, k) <= ALL_WAYS:
        ways = np.array(list(combinations(range(m), k)))
        costs = [weights @ distance[:, way].min(axis=1) for way in ways]
        return np.asarray(ways[int(np.argmin(costs))])
    return _exchanged(distance, weights, _added(distance, weights, k))


def _added(distance: Floats, weights: Floats, k: int) -> Ints:
    """Greedily: each the one that helps most."""
    found, least = list[int](), np.full(len(weights), np.inf)
    for _ in range(k):
        costs = weights @ np.minimum(distance, least[:, None])
        costs[found] = np.inf
        found.append(int(np.argmin(costs)))
        least = np.minimum(least, distance[:, found[-1]])
    return np.array(found)


def _exchanged(distance: Floats, weights: Floats, found: Ints) -> Ints:
    """The best exchange of one for another, again and again; all are weighed at once (Schubert and Rousseeuw 2021)."""
    m, k = len(weights), len(found)
    while True:
        order = np.argsort(distance[:, found], axis=1, kind="stable")[:, :2]
        first = np.take_along_axis(distance[:, found], order[:, :1], axis=1)
        second = np.take_along_axis(distance[:, found], order[:, 1:], axis=1) if k > 1 else np.full((m, 1), np.inf)
        near = np.minimum(distance, first)
        costs = weights @ near  # with one more
        lost = np.minimum(distance, second) - near
        without = (weights * (order[:, 0] == np.arange(k)[:, None])) @ lost  # and one less
        total = costs + without
        total[:, found] = np.inf
        best = int(np.argmin(total))
        if total.ravel()[best] >= float(weights @ first[:, 0]) * (1 - _ENOUGH):
            return np.sort(found)
        found = found.copy()
        found[best // m] = best % m


def _gathered(points: Floats, weights: Floats, most: int) -> tuple[Floats, Floats]:
    """Neighbours as one point in the middle of their weights, in cubes as small as so many allow."""
    if len(points) <= most:
        return points, weights
    member, groups, grain = np.arange(len(points)), len(points), 1 << 12
    low, extent = points.min(axis=0), float(np.ptp(points, axis=0).max()) * (1 + 1e-9)
    while groups > most:
        x, y, z = np.floor((points - low) / extent * grain).astype(np.int64).T
        distinct, member = np.unique((x * grain + y) * grain + z, return_inverse=True)
        groups, grain = len(distinct), grain // 2
    middles = [np.bincount(member, weights * points[:, axis]) for axis in range(3)]
    return _onto(np.column_stack(middles)), np.bincount(member, weights).astype(np.float64)


def _assigned(points: Floats, centres: Floats) -> KMedianCentres:
    nearest, distance = np.zeros(len(points), dtype=np.int64), np.full(len(points), np.inf)
    for i, centre in enumerate(centres):
        angle = apart(points, centre[None])[:, 0]
        nearest[angle < distance] = i
        distance = np.minimum(distance, angle)
    return KMedianCentres(centres, nearest, distance)


def _medians(points: Floats, weights: Floats, found: KMedianCentres) -> Floats:
    """One step of each centre toward the median of its points (Weiszfeld 1937, on the sphere; Vardi and Zhang 2000)."""
    k, own = len(found.centres), found.centres[found.nearest]
    cosine = np.cos(found.distance)
    there = found.distance < 1e-12
    pull = np.where(there, 0, weights / np.where(there, 1, np.sin(found.distance)))
    toward = pull[:, None] * (points - cosine[:, None] * own)  # weight · the unit tangent toward the point
    push = np.column_stack([np.bincount(found.nearest, toward[:, axis], k) for axis in range(3)])
    stays = np.bincount(found.nearest, weights * there, k)
    strength = np.linalg.norm(push, axis=1)
    inverse = np.bincount(found.nearest, np.where(there, 0, weights / np.where(there, 1, found.distance)), k)
    free = np.maximum(strength - stays, 0)  # what is left when the points at the centre hold it
    step = np.where((strength > 0) & (inverse > 0), free / np.where(strength > 0, strength, 1), 0)
    step = step / np.where(inverse > 0, inverse, 1)
    return _onto(found.centres + push * step[:, None])


def _onto(vectors: Floats) -> Floats:
    """On the sphere again; steps are small, so straight is as good as along it."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1))
