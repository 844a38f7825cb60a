"""The distribution nearest to noisy sums on a tree: the exact solution of the linear programme behind EMD heatmaps.

Given a tree with a number ŷ_v and a weight w_v ≥ 0 for each node, find masses x ≥ 0 on the leaves such that

    Σ_v w_v · |ŷ_v − (mass below v)|

is least. Ghazi et al. (2022) solve it by linear programming. On a tree it needs no solver: let g_v(m) be the least
cost of the subtree of v if its leaves hold m in all. A leaf has g_v = w_v |ŷ_v − m| on m ≥ 0; and g_v is w_v |ŷ_v − m|
plus the infimal convolution of the children's g, which sorts the linear pieces of all of them by slope, the steepest
descent first (Rockafellar 1970, theorem 16.4). All g are convex and piecewise linear with at most one break for each
node below. At the root the mass is taken where the slope turns positive; then each node hands its mass down, to the
cheapest pieces first. Breaks are sums of ŷ's, so whole numbers give a whole solution.

In the compiled loops nodes stand level by level, the children of a node side by side, roots first. A g is kept as the
slopes of its pieces in ascending order with their lengths, and the slope of the last piece, which never ends.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.vdaf.compiled_loops import compiled


def nearest(parent: NDArray[np.int64], numbers: Floats, weights: Floats) -> Floats:
    """The mass of every node, float64[nodes]: O(nodes · depth) at worst, near O(nodes) where few weights differ.

    `parent` is −1 for roots; it ascends, so that the roots come first and siblings are together (the order of a
    breadth-first walk). Of several solutions one with little mass is given.

    >>> nearest(np.array([-1, 0, 0]), np.array([4.0, 5.0, -1.0]), np.array([1.0, 2.0, 2.0]))
    array([5., 5., 0.])
    """
    parent, wanted, weight = np.asarray(parent, np.int64), floats(numbers), floats(weights)
    n = len(parent)
    if not parent.shape == wanted.shape == weight.shape == (n,):
        raise InputError("a tree needs one parent, one number and one weight for each node")
    if (np.diff(parent) < 0).any() or (parent >= np.arange(n)).any() or (n and parent[0] < -1):
        raise InputError(
            "parents must come before their children, and siblings must be together: list the nodes level by level"
        )
    check_numbers(weight, wanted)
    roots = int(np.searchsorted(parent, 0))
    number = np.bincount(parent[roots:], minlength=n)
    first = roots + np.concatenate([[0], np.cumsum(number)[:-1]]) if n else number
    found: Floats = masses(first, number, wanted, weight, roots, *costs(first, number, wanted, weight, max(64, n)))
    return found


def check_numbers(weights: Floats, *numbers: Floats) -> None:
    """`InputError` for numbers that are not finite, and for weights below 0."""
    if not (all(np.isfinite(each).all() for each in (weights, *numbers)) and (weights >= 0).all()):
        raise InputError("numbers and weights must be finite, and no weight may be negative")


def floats(numbers: Sequence[float] | Floats) -> Floats:
    """Numbers side by side, as the loops take them."""
    return np.ascontiguousarray(numbers, dtype=np.float64)


@compiled
def _put(slope: Floats, length: Floats, start: int, used: int, s: float, long: float) -> int:
    """One piece more, joined to the piece before it if it is as steep."""
    if used > start and slope[used - 1] == s:
        length[used - 1] += long
        return used
    slope[used], length[used] = s, long
    return used + 1


@compiled
def costs(first: Ints, number: Ints, wanted: Floats, weight: Floats, size: int) -> Any:  # noqa: PLR0912, PLR0915 - one loop
    """Bottom up: the pieces of every inner node, in arrays that grow from `size` places."""
    n = len(wanted)
    start, end = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    slope, length = np.empty(size), np.empty(size)
    last = np.empty(n)
    used = 0
    one, two = np.empty(64), np.empty(64)
    for v in range(n - 1, -1, -1):
        if number[v] == 0:
            last[v] = weight[v]
            continue
        most, ceiling = 1, np.inf
        for c in range(first[v], first[v] + number[v]):
            ceiling = min(ceiling, last[c])
            most += 1 if number[c] == 0 else end[c] - start[c]
        if len(one) < most:
            one, two = np.empty(2 * most), np.empty(2 * most)
        count = 0
        for c in range(first[v], first[v] + number[v]):  # all pieces of the children that end below the ceiling
            if number[c] == 0:
                if wanted[c] > 0 and -weight[c] < ceiling:
                    one[count], two[count] = -weight[c], wanted[c]
                    count += 1
            else:
                for i in range(start[c], end[c]):
                    if slope[i] >= ceiling:
                        break
                    one[count], two[count] = slope[i], length[i]
                    count += 1
        if count > 24:
            order = np.argsort(one[:count], kind="mergesort")
            one[:count], two[:count] = one[:count][order], two[:count][order]
        else:
            for i in range(1, count):
                s, long, j = one[i], two[i], i - 1
                while j >= 0 and one[j] > s:
                    one[j + 1], two[j + 1] = one[j], two[j]
                    j -= 1
                one[j + 1], two[j + 1] = s, long
        if used + count + 1 > len(slope):
            grown = 2 * len(slope) + count + 1
            more = np.empty(grown)
            more[:used] = slope[:used]
            slope = more
            more = np.empty(grown)
            more[:used] = length[:used]
            length = more
        start[v] = used
        left, w = wanted[v], weight[v]  # this node's own cost: slope −w for the mass it wants, w beyond
        for i in range(count):
            rest = two[i]
            if left > 0:
                part = min(left, rest)
                used = _put(slope, length, start[v], used, one[i] - w, part)
                left, rest = left - part, rest - part
            if rest > 0:
                used = _put(slope, length, start[v], used, one[i] + w, rest)
        if left > 0 and w > 0:
            used = _put(slope, length, start[v], used, ceiling - w, left)
        end[v], last[v] = used, ceiling + w
    return start, end, slope, length, last


@compiled
def masses(  # noqa: PLR0912 - two kinds of nodes
    first: Ints,
    number: Ints,
    wanted: Floats,
    weight: Floats,
    roots: int,
    start: Ints,
    end: Ints,
    slope: Floats,
    length: Floats,
    last: Floats,
) -> Floats:
    """Top down: what each node gets, cheapest pieces first."""
    n = len(wanted)
    mass = np.zeros(n)
    for v in range(roots):
        if number[v] == 0:
            mass[v] = max(wanted[v], 0.0) if weight[v] > 0 else 0.0
        else:
            for i in range(start[v], end[v]):
                if slope[i] >= 0:
                    break
                mass[v] += length[i]
    head = np.zeros(n, dtype=np.int64)
    for v in range(n):
        left, low = mass[v], first[v]
        high = low + number[v]
        for c in range(low, high):
            head[c] = start[c]
        while left > 0:
            best, steep, room = -1, np.inf, np.inf
            for c in range(low, high):
                if number[c] == 0:
                    more = head[c] == 0 and wanted[c] > 0 and weight[c] > 0
                    s, long = (-weight[c], wanted[c]) if more else (last[c], np.inf)
                else:
                    more = head[c] < end[c]
                    s, long = (slope[head[c]], length[head[c]]) if more else (last[c], np.inf)
                if s < steep:
                    best, steep, room = c, s, long
            if best < 0:
                break
            part = min(left, room)
            mass[best] += part
            left -= part
            head[best] += 1
    return mass
