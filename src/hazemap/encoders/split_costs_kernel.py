"""The hot loop of `cut_costs`: it is imported where it is called."""

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Ints
from hazemap.jit import compiled


@compiled
def sides(
    begin: Ints,
    end: Ints,
    axis: NDArray[np.int8],
    lines: Ints,
    before: Ints,
    behind: Ints,
    x: NDArray[np.int32],
    y: NDArray[np.int32],
    weights: Ints,
) -> Ints:
    """Votes on a side, the votes of its pixels with more than the mean, and how many those are; then the other side.

    Cell i has the votes begin[i] … end[i]; a whole number is above the mean of `before` (or `behind`) pixels if it is
    above the mean rounded down. int64[6, cells, candidates], O(votes · candidates). The inner loops have no branch and
    begin at 0, so that the compiler takes several votes at once.
    """
    cells, candidates = lines.shape
    found = np.zeros((6, cells, candidates), np.int64)
    for i in range(cells):
        place = x[begin[i] : end[i]] if axis[i] == 0 else y[begin[i] : end[i]]
        votes = weights[begin[i] : end[i]]
        every = 0
        for k in range(votes.size):
            every += votes[k]
        for j in range(candidates):
            line = np.int32(lines[i, j])
            first = 0
            for k in range(votes.size):
                first += votes[k] if place[k] < line else 0
            mean, mean_2 = first // before[i, j], (every - first) // behind[i, j]
            sum_1, times_1, sum_2, times_2 = 0, 0, 0, 0
            for k in range(votes.size):
                here, more, more_2 = place[k] < line, votes[k] > mean, votes[k] > mean_2
                sum_1 += votes[k] if here & more else 0
                times_1 += 1 if here & more else 0
                sum_2 += votes[k] if more_2 & (not here) else 0
                times_2 += 1 if more_2 & (not here) else 0
            found[0, i, j], found[1, i, j], found[2, i, j] = first, sum_1, times_1
            found[3, i, j], found[4, i, j], found[5, i, j] = every - first, sum_2, times_2
    return found
