"""How cells are cut into parts that hold about as many people as the noise allows."""

from collections.abc import Sequence

import numpy as np

from hazemap.algorithms.count_queries import fan_out, positions
from hazemap.cells import NOWHERE, Cells, Leaves, Tree
from hazemap.estimate import ConsistentEstimate, Measurement
from hazemap.estimate.empirical_bayes import likely
from hazemap.estimate.tree_levels import TreeLevels
from hazemap.machine_code.arrays import Floats, Ints

BESIDE, AT_MOST = 1.5, 4
"""How much denser than a cell one beside it has to be to count, and how many times a cell's own people at most."""


def coarsest(tree: Tree, cells: int) -> Leaves:
    """The coarsest level with at least this many cells (the finest level if none has)."""
    level = 0
    while (grid := Leaves.at_level(tree, level)).size < cells and level < tree.depth:
        level += 1
    return grid


def bordering(asked: Sequence[Measurement], known: ConsistentEstimate) -> Floats:
    """The numbers that cells are cut by on an even map: higher where a cell is at the border of what is full.

    A cell across a border is only part full, so it would be cut less than the full ones beside it, and yet it is the
    one that shows something. So a cell counts as if it were 1/`BESIDE` as dense as the densest cell beside it, but for
    no more than `AT_MOST` times what it holds: what is empty stays large. Both by the most plausible map of all answers
    so far, since of four noisy numbers the largest says little.
    """
    cells, numbers = known.leaves, known.numbers
    total = float(numbers[cells.cells != NOWHERE].sum())
    if total <= 0:
        return numbers
    plausible = likely(asked, cells, total)
    beside = TreeLevels(cells).fullest_beside(plausible) / BESIDE
    return np.asarray(np.maximum(numbers, np.minimum(beside, AT_MOST * np.maximum(numbers, plausible))))


def cut(cells: Leaves, numbers: Floats, fullness: float, limit: Ints | None = None) -> Leaves:
    """Each cell replaced by its descendants k levels down, k so that one of them holds about `fullness`.

    `numbers` are how many people each cell holds, float64[cells]; `limit` is the largest k of each, if there is one.
    """
    tree, places = cells.tree, cells.cells != NOWHERE
    todo: Cells = cells.cells[places]
    parts = np.maximum(numbers[places] / fullness, 1.0)
    times = np.rint(np.log(parts) / np.log(round(fan_out(tree)))).astype(np.int64)
    times = np.minimum(times, tree.depth - tree.level(todo))
    if limit is not None:
        times = np.minimum(times, limit[places])
    done: list[Cells] = []
    while len(todo):
        done.append(todo[times <= 0])
        todo, times = todo[times > 0], times[times > 0]
        children = tree.children(todo)
        times = times[positions(tree.parent(children), todo)] - 1
        todo = children
    return Leaves(tree, np.concatenate(done))
