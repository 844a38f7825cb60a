"""What all methods do when they ask for counts."""

from collections.abc import Sequence

import numpy as np

from hazemap.cells import NOWHERE, Leaves, Tree
from hazemap.encoders import Counts, Stack
from hazemap.errors import InputError
from hazemap.tables.bounding import Bounding


def with_nowhere(cells: Leaves, bounding: Bounding) -> Leaves:
    """These cells, and `NOWHERE` where the bounding rule keeps rows that lie in none: it costs no budget."""
    if not bounding.nowhere or NOWHERE in cells.cells:
        return cells
    return Leaves(cells.tree, np.append(cells.cells, NOWHERE))


def grids_up(tree: Tree, level: int, number: int, bounding: Bounding) -> tuple[Leaves, ...]:
    """The cells of a level and of the levels above it, `number` levels in all, the finest first."""
    if not 0 < number <= level + 1 <= tree.depth + 1:
        raise InputError(f"levels that are asked together end at 1 to {tree.depth} in this tree, not at {level}")
    finest = with_nowhere(Leaves.at_level(tree, level), bounding)
    return (finest, *(Leaves.at_level(tree, level - up) for up in range(1, number)))


def together(levels: Sequence[Leaves], weights: Sequence[int], bounding: Bounding) -> Stack:
    """Counts of several sets of cells in one vector; the budget is divided as the weights are."""
    return Stack(tuple(Counts(cells, bounding) for cells in levels), tuple(weights))
