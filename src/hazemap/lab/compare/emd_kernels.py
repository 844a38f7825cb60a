"""The compiled loops of minimum-cost flow on a grid of pixels; `earth_movers_distance.py` has the formulas.

Arrays are flat, row after row, with a wall of one pixel around the map: `width` is that of a row with both walls. A
wall has a potential so high that no arc to or from it is ever tight. Flow is kept as what goes east and south out of
each pixel (negative: west and north into it), int64[2, pixels]. Tight arcs lead from a pixel to a
neighbour whose potential is lower by exactly 1; flow is on tight arcs only, and may be sent back along them.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.machine_code.arrays import Ints
from hazemap.machine_code.jit import compiled

Small = NDArray[np.int32]

FAR = 1 << 29
"""A distance or label that nothing has."""


@compiled
def _beside(u: int, way: int, width: int) -> int:
    if way < 2:
        return u + 1 - 2 * way
    return u + width * (5 - 2 * way)


@compiled
def _coming(flow: Ints, u: int, w: int, way: int) -> int:
    """The flow that comes from w, the neighbour that way, to u."""
    return int(flow[way >> 1, w]) if way & 1 else -int(flow[way >> 1, u])


@compiled
def _send(flow: Ints, u: int, w: int, way: int, mass: int) -> None:
    if way & 1:
        flow[way >> 1, w] -= mass
    else:
        flow[way >> 1, u] += mass


@compiled
def _label(excess: Ints, potential: Ints, flow: Ints, width: int, label: Small, queue: Small) -> Any:
    """Steps along open arcs from each pixel to the nearest that lacks mass; the pixels that reach one, nearest first.

    True if one of them has mass to spare.
    """
    size, found = 0, False
    for u in range(len(excess)):
        label[u] = FAR
        if excess[u] < 0:
            label[u] = 0
            queue[size] = u
            size += 1
    i = 0
    while i < size:
        w = queue[i]
        i += 1
        for way in range(4):
            u = _beside(w, way, width)
            if label[u] == FAR and (potential[u] - potential[w] == 1 or _coming(flow, u, w, way ^ 1) > 0):
                label[u] = label[w] + 1
                queue[size] = u
                size += 1
                found = found or excess[u] > 0
    return size, found


@compiled
def _flow(excess: Ints, potential: Ints, flow: Ints, width: int, room: Small) -> None:  # noqa: PLR0912, PLR0915 - one loop
    """As much mass as open arcs can carry, from where it is to spare to where it lacks.

    Push–relabel, highest label first (Goldberg and Tarjan 1988), with labels made anew from time to time. If no
    pixel has some label, none above it can reach a lack (a gap): those above rest until the labels are made anew.
    """
    n = len(excess)
    label, queue, head, following, count = room[0], room[1], room[2], room[3], room[4]
    while True:
        size, found = _label(excess, potential, flow, width, label, queue)
        if not found:
            return
        head[:] = -1
        count[:] = 0
        top, gap, work = 0, n, 0
        for i in range(size):
            u = queue[i]
            count[label[u]] += 1
            if excess[u] > 0:
                following[u], head[label[u]] = head[label[u]], u
                top = label[u]
        while top >= 0 and work < 2 * n:
            u = head[top]
            if u < 0:
                top -= 1
                continue
            head[top] = following[u]
            if top > gap:
                continue
            work += 2
            for way in range(4):
                w = _beside(u, way, width)
                if label[w] != top - 1:
                    continue
                mass = excess[u]
                if potential[u] - potential[w] != 1:
                    mass = min(mass, _coming(flow, u, w, way))
                if mass > 0:
                    _send(flow, u, w, way, mass)
                    before = excess[w]
                    excess[u] -= mass
                    excess[w] += mass
                    if before <= 0 and excess[w] > 0:
                        following[w], head[top - 1] = head[top - 1], w
                    if excess[u] == 0:
                        break
            if excess[u] == 0:
                continue
            low = FAR
            for way in range(4):
                w = _beside(u, way, width)
                if label[w] < low and (potential[u] - potential[w] == 1 or _coming(flow, u, w, way) > 0):
                    low = label[w]
            count[top] -= 1
            if count[top] == 0:
                gap = min(gap, top)
            if low + 1 > gap or low + 1 >= n:
                label[u] = FAR
                continue
            label[u] = low + 1
            count[low + 1] += 1
            following[u], head[low + 1] = head[low + 1], u
            top = max(top, low + 1)


@compiled
def _raise(excess: Ints, potential: Ints, flow: Ints, width: int, far: Small, buckets: Small) -> None:
    """Potentials less the cost of the way from mass to spare: then some way to a lack has only tight arcs.

    Dijkstra's walk over reduced costs 1 − f_u + f_w, which are 0, 1 or 2, with three buckets (Dial 1969).
    """
    size = np.zeros(3, dtype=np.int64)
    for u in range(len(excess)):
        far[u] = FAR
        if excess[u] > 0:
            far[u] = 0
            buckets[0, size[0]] = u
            size[0] += 1
    level = last = 0
    while size[0] + size[1] + size[2] > 0:
        now, i = level % 3, 0
        while i < size[now]:
            u = buckets[now, i]
            i += 1
            if far[u] != level:
                continue
            if excess[u] < 0:
                last = level
            for way in range(4):
                w = _beside(u, way, width)
                if potential[u] - potential[w] < -1:
                    continue  # a wall: pixels differ by 1 at most
                cost = 1 - potential[u] + potential[w]
                if _coming(flow, u, w, way) > 0:
                    cost = 0
                if level + cost < far[w]:
                    far[w] = level + cost
                    then = far[w] % 3
                    buckets[then, size[then]] = w
                    size[then] += 1
        size[now] = 0
        level += 1
    for u in range(len(excess)):
        if far[u] < FAR:
            potential[u] -= min(far[u], last)


@compiled
def cheapest(excess: Ints, potential: Ints, flow: Ints, width: int) -> None:
    """Moves all mass to where it lacks (Ford and Fulkerson's primal–dual method, 1962); everything in place.

    Neighbours' potentials differ by at most 1, and flow is on tight arcs: then, and in the end, both are optimal.
    """
    n = len(excess)
    room, buckets = np.empty((5, n), dtype=np.int32), np.empty((3, n), dtype=np.int32)
    while True:
        _flow(excess, potential, flow, width, room)
        if excess.max() <= 0:
            return
        _raise(excess, potential, flow, width, room[0], buckets)
