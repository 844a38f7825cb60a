"""A sparse map that is near the truth in earth mover's distance, from few people."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import isqrt

import numpy as np

from hazemap.algorithms.asking import with_nowhere
from hazemap.cellmap import CellMap, Independent
from hazemap.cells import NOWHERE, Cells, Leaves, Tree
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate.nearest import nearest
from hazemap.rounds import Answer, Prices, Query, Rounds
from hazemap.tables.bounding import Bounding, OneVote

_STEP = 1 << 20  # shares are multiples of 2^−20


@dataclass(frozen=True)
class Pyramid:
    """Sparse aggregation under the earth mover's distance (Ghazi et al., NeurIPS 2022, algorithms 1 and 2).

    Level i of the quadtree counts for 2^−i: that is how far a vote in a wrong cell may be from home. From the finest
    level of at most `kept` cells on, each level asks the children of the `kept` fullest cells of the one before, and
    the budget is ε γ^|i − q| up to a factor, γ = 1/√2, q that first level. What is shown is the distribution nearest to
    all answers, Σ 2^−i |ŷ − mass|, with nothing expected in cells that were left out (`estimate.nearest`, exact).

    The published method reads off its numbers from the answers that chose the cells. Here `counting` of the budget
    counts the cells once more when they are fixed, so that numbers with intervals are unbiased; the picture uses both.

    >>> from hazemap.domains import Quadtree
    >>> Pyramid(Quadtree.world(depth=8)).first
    2
    """

    tree: Tree
    bounding: Bounding = OneVote()
    kept: int = 20
    counting: Fraction = Fraction(1, 10)

    def __post_init__(self) -> None:
        if self.kept < 4 or not 0 < self.counting < 1:
            raise InputError("a pyramid keeps 4 cells a level or more, and counts them with a part of the budget")
        if not 0 < self.first <= self.tree.depth:
            raise InputError(
                f"{self.kept} cells are more than a tree of depth {self.tree.depth} has at its first level"
            )

    @property
    def first(self) -> int:
        """q: the finest level with at most `kept` cells."""
        level, cells = 0, len(self.tree.root)
        while level < self.tree.depth and 4 * cells <= self.kept:
            level, cells = level + 1, 4 * cells
        return level

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """The part of the budget of each level, from the first to the last."""
        number = self.tree.depth - self.first + 1
        parts = [isqrt(_STEP * _STEP >> i) for i in range(number)]  # γ^i · 2^20
        return tuple((1 - self.counting) * Fraction(part, sum(parts)) for part in parts)

    def rounds(self, prices: Prices) -> Rounds[CellMap]:  # noqa: ARG002 - shares are fixed
        """One query a level, then one for the cells that are left."""
        asked, answers, kept = list[Cells](), list[Answer](), list[Cells]()
        todo = Leaves.at_level(self.tree, self.first).cells
        for share in self.shares:
            answers.append((yield Query(Counts(Leaves(self.tree, todo), self.bounding), share)))
            fullest = np.argsort(-answers[-1].sums, kind="stable")[: self.kept]
            asked.append(todo)
            kept.append(todo[fullest])
            todo = self.tree.children(todo[fullest]) if len(asked) < len(self.shares) else todo
        left = [cells[~np.isin(cells, inner)] for cells, inner in zip(asked[:-1], kept[:-1], strict=True)]
        leaves = with_nowhere(Leaves(self.tree, np.concatenate([*left, asked[-1]])), self.bounding)
        counted = yield Query(Counts(leaves, self.bounding), self.counting)
        return self._read(leaves, counted, asked, kept, answers)

    def _read(
        self, leaves: Leaves, counted: Answer, asked: list[Cells], kept: list[Cells], answers: list[Answer]
    ) -> CellMap:
        """The counts of the leaves with their errors, and the nearest distribution to all answers."""
        unit = self.bounding.unit
        unbiased = counted.sums / unit
        stddev = np.broadcast_to(counted.stddev / unit, unbiased.shape).copy()
        # By level, and in a level by where a cell begins: so siblings are together, and in the order of their parents.
        orders = [np.argsort(self.tree.span(cells)[0]) for cells in asked]
        cells = [each[order] for each, order in zip(asked, orders, strict=True)]
        inside = np.concatenate([np.isin(each, chosen) for each, chosen in zip(cells, kept, strict=True)])
        numbers = np.concatenate([answer.sums[order] / unit for answer, order in zip(answers, orders, strict=True)])
        starts = np.cumsum([0, *map(len, cells)])
        above = [
            np.flatnonzero(np.isin(upper, chosen))[
                np.searchsorted(np.sort(self.tree.span(chosen)[0]), self.tree.span(lower)[0], "right") - 1
            ]
            for (upper, lower), chosen in zip(pairwise(cells), kept, strict=False)
        ]
        parent = np.concatenate(
            [np.full(starts[1], -1), *(start + each for start, each in zip(starts, above, strict=False))]
        )
        levels = np.repeat(self.first + np.arange(len(cells)), np.diff(starts))
        weights = np.where(inside, 2.0**-levels, 2.0 ** (1 - levels) - 2.0**-self.tree.depth)
        mass = nearest(parent, np.where(inside, numbers, 0.0), weights)
        every = np.concatenate(cells)
        by_cell = np.argsort(every)
        values = np.zeros(leaves.size)
        real = leaves.cells != NOWHERE
        values[real] = mass[by_cell[np.searchsorted(every[by_cell], leaves.cells[real])]]
        values[~real] = np.maximum(unbiased[~real], 0)
        return CellMap(leaves, values, unbiased, stddev, Independent(stddev, counted.kurtosis))
