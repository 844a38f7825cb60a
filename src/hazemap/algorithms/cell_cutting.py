"""How cells are cut into parts that hold about as many people as the noise allows, and whether a map looks even."""

from collections.abc import Sequence
from fractions import Fraction
from math import inf

import numpy as np

from hazemap.algorithms.count_queries import fan_out, positions
from hazemap.cells import NOWHERE, Cells, Leaves, Tree
from hazemap.estimate import ConsistentEstimate, Measurement, roughness
from hazemap.estimate.empirical_bayes import likely
from hazemap.estimate.shrinkage import TreeLevels
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


CLEAR = (4, 64)
"""Standard errors that a cell holds whose roughness is looked at: those below do not show it, those above are cut."""

EVENLY = (10, 16)
"""Least and most standard errors that a cell of an even map holds, as measured on maps to learn from."""

HIDDEN = 0.5
"""Roughness over all cells of a second look above which a map only looked even: about 0.3 where it was even, 1 to 2 of
stops and rounded coordinates (docs/decisions/0022-a-second-look-at-even-maps.md)."""

STEEP = 1.4
"""Fullness falls with this power of roughness, as fitted on maps to learn from (docs/results/strange-maps.md)."""


def looks_even(asked: Sequence[Measurement], cells: Leaves, noise: float, below: Fraction | None) -> bool:
    """Whether parts of all cells that stand out of the noise differ little from what is around them.

    On maps with borders the small ones alone differ much, though all that is in between is even. `noise` is the
    standard error of cells as all that is left could count them.
    """
    return below is not None and bool(roughness(asked, cells, CLEAR[0] * noise, inf) < below)


def looks_smooth(asked: Sequence[Measurement], cells: Leaves, noise: float, below: Fraction | None) -> bool:
    """The same of cells that are not far above the noise: those at borders."""
    return below is not None and bool(roughness(asked, cells, CLEAR[0] * noise, CLEAR[1] * noise) < below)


def hides_places(asked: Sequence[Measurement], cells: Leaves) -> bool:
    """Whether people are in few of the cells, although noise hides in which: all cells together tell it."""
    return roughness(asked, cells, 0.0, inf) >= HIDDEN


def fullness_by_roughness(
    asked: Sequence[Measurement], cells: Leaves, noise: float, contrast: float, power: float, even: bool
) -> float:
    """How full the last cells are, in standard errors: `contrast` by the roughness of cells well above the noise.

    A part that differs from its neighbours by τ of its number shows where it is more than some noise/τ; so the
    rougher a map, the smaller the cells that show something. Where parts differ little, a rectangle that cuts a
    cell errs little too, and larger cells bring it less noise: so τ counts a little more (`power`) where maps are told
    apart by it. At least `contrast` itself; of an even map, from all cells, within `EVENLY`.
    """
    rough = min(roughness(asked, cells, CLEAR[0] * noise, inf if even else CLEAR[1] * noise), 1.0)
    found = contrast / max(rough, 1e-9) ** power
    return float(min(max(found, EVENLY[0]), EVENLY[1]) if even else found)
