"""The compiled loops of CHOP-USER. A pair is alive while its person is kept in its cell."""

import numpy as np

from hazemap.machine_code.arrays import Bools, Ints
from hazemap.vdaf.compiled_loops import compiled


@compiled
def error_of(
    samples: int, kept: int, most: int, width: float, variance: bool, epsilon: float
) -> float:  # pragma: no cover - compiled
    """`ChopUserQuery.error` in floats; infinite where nobody is left."""
    if kept == 0:
        return np.inf
    parts = 2.0 if variance else 1.0
    error: float = width * (1 - kept / samples + parts * most / kept / epsilon)
    if variance:
        moved = most * (kept - most) / kept**2 if kept > 2 * most else _largest(kept)
        bias = 0.0
        if kept < samples:
            bias = kept * (samples - kept) / samples**2 if 2 * kept > samples else _largest(samples)
        error += width**2 * (bias + parts * moved / epsilon)
    return error


@compiled
def _largest(samples: int) -> float:  # pragma: no cover - compiled
    return 0.25 if samples % 2 == 0 else 0.25 * (1 - 1 / samples**2)


@compiled
def _next(alive: Bools, by_cell: Ints, place: int, end: int) -> int:  # pragma: no cover - compiled
    while place < end and not alive[by_cell[place]]:
        place += 1
    return place


@compiled
def chop(  # noqa: PLR0912, PLR0915 - one loop of machine code, which calls cannot be taken out of cheaply
    cell: Ints,
    samples: Ints,
    by_cell: Ints,
    starts: Ints,
    by_person: Ints,
    firsts: Ints,
    order: Ints,
    width: float,
    variance: bool,
    epsilon: float,
) -> tuple[Bools, float, float]:  # pragma: no cover - compiled
    """Which pairs are kept, the threshold, and the largest error in the end."""
    cells, people, pairs = len(starts) - 1, len(firsts) - 1, len(cell)
    alive, total = np.ones(pairs, dtype=np.bool_), np.zeros(cells, dtype=np.int64)
    for pair in range(pairs):
        total[cell[pair]] += samples[pair]
    left = total.copy()
    top, second = starts[:-1].copy(), np.minimum(starts[:-1] + 1, starts[1:])  # places in by_cell, those alive
    threshold = 0.0
    for c in range(cells):
        if total[c]:
            first = samples[by_cell[top[c]]]
            threshold = max(threshold, error_of(total[c], total[c], first, width, variance, epsilon))
    # `order` is people by falling numbers of cells: those in as many as anybody are the first `active`
    number = firsts[1:] - firsts[:-1]
    now, level, active = number.copy(), number[order[0]], 0
    gone, afterwards = np.empty(pairs, dtype=np.int64), np.empty(pairs)
    while level > 1:
        while active < people and number[order[active]] >= level:
            active += 1
        # somebody alone at the top goes down to the next in one step: their cells do not depend on each other
        goal = level - 1
        if active == 1:
            goal = max(goal if people == 1 else number[order[1]], 1)
        count, done = 0, True
        for rank in range(active):
            person = order[rank]
            own = 0
            for at in range(firsts[person], firsts[person + 1]):
                pair = by_person[at]
                if alive[pair]:
                    c = cell[pair]
                    where = second[c] if by_cell[top[c]] == pair else top[c]
                    most = samples[by_cell[where]] if where < starts[c + 1] else 0
                    afterwards[own] = error_of(total[c], left[c] - samples[pair], most, width, variance, epsilon)
                    gone[count + own] = pair
                    own += 1
            wanted = now[person] - goal
            if wanted == 1:
                best = 0
                for i in range(1, own):
                    if afterwards[i] < afterwards[best]:
                        best = i
                chosen = np.array([best])
            else:
                chosen = np.argsort(afterwards[:own])[:wanted]
            these = gone[count : count + own][chosen]
            for i in range(wanted):
                if afterwards[chosen[i]] > threshold:
                    done = False
                    break
                pair = these[i]
                c = cell[pair]
                alive[pair] = False
                left[c] -= samples[pair]
                top[c] = _next(alive, by_cell, top[c], starts[c + 1])
                second[c] = _next(alive, by_cell, max(second[c], top[c] + 1), starts[c + 1])
                now[person] -= 1
                gone[count] = pair
                count += 1
            if not done:
                break
        if not done:
            if active > 1:  # the last level was not reached by all: what was left out for it is put back
                for i in range(count):
                    alive[gone[i]] = True
                    left[cell[gone[i]]] += samples[gone[i]]
            break
        level = goal
    largest = 0.0
    for c in range(cells):
        if total[c]:
            place = _next(alive, by_cell, starts[c], starts[c + 1])
            most = samples[by_cell[place]]
            largest = max(largest, error_of(total[c], left[c], most, width, variance, epsilon))
    return alive, threshold, largest
