"""The loops of the exact tree solver, compiled; `tree_emd_projection.py` has the formulas.

Nodes stand level by level, the children of a node side by side, roots first. The cost of giving mass m to the
subtree of a node is convex and piecewise linear; it is kept as the slopes of its pieces in ascending order with
their lengths, and the slope of the last piece, which never ends.
"""

from typing import Any

import numpy as np

from hazemap.machine_code.arrays import Floats, Ints
from hazemap.vdaf.compiled_loops import compiled


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
