"""How methods ask for counts."""

from collections.abc import Sequence
from fractions import Fraction
from math import inf, log2, sqrt
from typing import NamedTuple

import numpy as np

from hazemap.cellmap import CellMap, Reading
from hazemap.cells import NOWHERE, Cells, Leaves, Tree
from hazemap.encoders import Concatenation, Counts
from hazemap.errors import InputError
from hazemap.estimate import read
from hazemap.machine_code.arrays import Ints
from hazemap.queries.noisy_queries import Answer, Prices, Query, Question, Rounds
from hazemap.spatial.plane import plane_of
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import Bounding

WHOLE = Fraction(1)
"""The share that is all of the budget."""

LEAST_NOISE = 0.1
"""People: less noise in a count is taken for this much. Counts are whole, so nothing finer can be seen with less."""


class CountedPeople(NamedTuple):
    """How many people there seem to be, what is left of the budget, and what was asked for it."""

    people: float
    left: Fraction
    transcript: list[tuple[Question, Answer]]


def number_of_people(
    tree: Tree, bounding: Bounding, share: Fraction, public: int | None = None
) -> Rounds[CountedPeople]:
    """The number of people, which a share of the budget buys; nothing is asked where it is `public`."""
    if public is not None:
        return CountedPeople(float(public), Fraction(1), [])
    query = Query(Counts(Leaves(tree, tree.root), bounding), share)
    answer = yield query
    return CountedPeople(float(answer.sums.sum()) / bounding.unit, 1 - share, [(query, answer)])


def square_of(tree: Tree, what: str) -> Quadtree:
    """The square that is cut; `InputError` where a method is to cut rectangles of its own into other cells."""
    if plane_of(tree):
        raise InputError(f"{what} cuts rectangles of the ground: on a plane choose auto, flat or another")
    if not isinstance(tree, Quadtree):
        raise InputError(f"{what} cuts a square into rectangles of its own: choose quadtree cells")
    return tree


def laplace_epsilon(prices: Prices, tree: Tree, bounding: Bounding, share: Fraction, most: float = inf) -> float:
    """The ε of Laplace noise of the deviation that a share buys in a count of people, √2/σ: methods choose cells by it.

    It is `most` at most, so that there are not more cells than methods want per person, however large the budget is.

    Where σ is below one person the noise of integers falls like e^(−ε/2), and not like 1/ε: then √2/σ says nothing, and
    what smaller shares buy is followed by its power law (1/ε in pure ε, 1/√ρ) up to this one.
    """
    root = Counts(Leaves(tree, tree.root), bounding)

    def noise(part: Fraction) -> float:
        return prices.stddev(root, part) / bounding.unit

    if noise(share) >= 1:
        return min(sqrt(2) / noise(share), most)
    small = share / 2
    while noise(small) < WIDE and small > TINY:
        small /= 2
    power = log2(noise(small / 2) / noise(small))
    return min(float(sqrt(2) / noise(small) * float(share / small) ** power), most)


WIDE, TINY = 8.0, Fraction(1, 1 << 60)
"""From this many people on the noise of integers follows the continuous law; smaller shares than this are not tried."""


def with_nowhere(cells: Leaves, bounding: Bounding) -> Leaves:
    """These cells, and `NOWHERE` where the bounding rule keeps rows that lie in none: it costs no budget."""
    if not bounding.outside.asked or NOWHERE in cells.cells:
        return cells
    return Leaves(cells.tree, np.append(cells.cells, NOWHERE))


def grids_up(tree: Tree, level: int, number: int, bounding: Bounding) -> tuple[Leaves, ...]:
    """The cells of a level and of the levels above it, `number` levels in all, the finest first."""
    if not 0 < number <= level + 1 <= tree.depth + 1:
        raise InputError(
            f"levels that are asked together must end at level 1 to {tree.depth} in this tree, not at {level}"
        )
    finest = with_nowhere(Leaves.at_level(tree, level), bounding)
    return (finest, *(Leaves.at_level(tree, level - up) for up in range(1, number)))


def positions(cells: Cells, among: Cells) -> Ints:
    """Where each of these cells stands among others, which are in any order."""
    order = np.argsort(among)
    return np.asarray(order[np.searchsorted(among[order], cells)])


def fan_out(tree: Tree) -> float:
    """How many children the cells of a tree have, as far as its roots tell; at least 2, the least that divides a cell.

    One district on top of a tree has one child, and numbers of levels are logarithms to this base.
    """
    return max(len(tree.children(tree.root)) / len(tree.root), 2.0) if tree.depth else 2.0


def together(levels: Sequence[Leaves], weights: Sequence[int], bounding: Bounding) -> Concatenation:
    """Counts of several sets of cells in one vector; the budget is divided as the weights are."""
    return Concatenation(tuple(Counts(cells, bounding) for cells in levels), tuple(weights))


def mapped(
    cells: Leaves,
    bounding: Bounding,
    reading: Reading,
    share: Fraction = WHOLE,
    asked: Sequence[tuple[Question, Answer]] = (),
) -> Rounds[CellMap]:
    """The map of cells, and of `NOWHERE` where it is asked for: counted now, after what was `asked` before."""
    cells = with_nowhere(cells, bounding)
    query = Query(Counts(cells, bounding), share)
    return read([*asked, (query, (yield query))], cells, reading)


def mapped_together(
    levels: Sequence[Leaves], weights: Sequence[int], bounding: Bounding, reading: Reading, share: Fraction = WHOLE
) -> Rounds[CellMap]:
    """The map of the first of several sets of cells that are counted in one vector."""
    query = Query(together(levels, weights, bounding), share)
    return read([(query, (yield query))], levels[0], reading)
