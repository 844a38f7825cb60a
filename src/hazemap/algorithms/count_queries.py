"""What all methods do when they ask for counts."""

from collections.abc import Sequence
from fractions import Fraction
from math import log2, sqrt

import numpy as np

from hazemap.cells import NOWHERE, Leaves, Tree
from hazemap.encoders import Concatenation, Counts
from hazemap.errors import InputError
from hazemap.queries import Prices
from hazemap.tables.contribution_bounding import Bounding

LEAST_NOISE = 0.1
"""People: less noise in a count is taken for so much. Counts are whole, so nothing finer can be seen with less."""


def laplace_epsilon(prices: Prices, tree: Tree, bounding: Bounding, share: Fraction) -> float:
    """The ε of Laplace noise of the deviation that a share buys in a count of people, √2/σ: methods choose cells by it.

    Where σ is below one person the noise of integers falls like e^(−ε/2), and not like 1/ε: then √2/σ says nothing, and
    what smaller shares buy is followed by its power law (1/ε in pure ε, 1/√ρ) up to this one.
    """
    root = Counts(Leaves(tree, tree.root), bounding)

    def noise(part: Fraction) -> float:
        return prices.stddev(root, part) / bounding.unit

    if noise(share) >= 1:
        return sqrt(2) / noise(share)
    small = share / 2
    while noise(small) < WIDE and small > TINY:
        small /= 2
    power = log2(noise(small / 2) / noise(small))
    return float(sqrt(2) / noise(small) * float(share / small) ** power)


WIDE, TINY = 8.0, Fraction(1, 1 << 60)
"""From so many people on the noise of integers follows the continuous law; smaller shares than this are not tried."""


def with_nowhere(cells: Leaves, bounding: Bounding) -> Leaves:
    """These cells, and `NOWHERE` where the bounding rule keeps rows that lie in none: it costs no budget."""
    if not bounding.outside.asked or NOWHERE in cells.cells:
        return cells
    return Leaves(cells.tree, np.append(cells.cells, NOWHERE))


def grids_up(tree: Tree, level: int, number: int, bounding: Bounding) -> tuple[Leaves, ...]:
    """The cells of a level and of the levels above it, `number` levels in all, the finest first."""
    if not 0 < number <= level + 1 <= tree.depth + 1:
        raise InputError(f"levels that are asked together end at 1 to {tree.depth} in this tree, not at {level}")
    finest = with_nowhere(Leaves.at_level(tree, level), bounding)
    return (finest, *(Leaves.at_level(tree, level - up) for up in range(1, number)))


def together(levels: Sequence[Leaves], weights: Sequence[int], bounding: Bounding) -> Concatenation:
    """Counts of several sets of cells in one vector; the budget is divided as the weights are."""
    return Concatenation(tuple(Counts(cells, bounding) for cells in levels), tuple(weights))
