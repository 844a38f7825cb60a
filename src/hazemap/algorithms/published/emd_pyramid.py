"""Sparse aggregation under the earth mover's distance, as published (Ghazi et al., NeurIPS 2022)."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hazemap.algorithms.count_queries import positions, with_nowhere
from hazemap.algorithms.sparse_emd_pyramid import check_gamma, decayed, first_level, fullest, sides
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import NOWHERE, Leaves, Tree
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate import read
from hazemap.estimate.tree_emd_projection import nearest
from hazemap.queries.algorithm_disclosure import Disclosure, Learned, counted
from hazemap.queries.noisy_queries import Answer, Prices, Query, Question, Rounds
from hazemap.tables.contribution_bounding import Bounding, OneVote


@dataclass(frozen=True)
class PublishedPyramid:
    """Algorithms 1 and 2: the children of the `kept` fullest cells of each level, then the nearest distribution.

    Level i counts for 2^−i: that is how far a vote in a wrong cell may be from home. From the finest level of at most w
    = `kept` cells on (q), each level is asked for the children of the w fullest cells of the one before, and the budget
    is ε γ^(i − q) up to a factor; γ is `gamma`, or 1/√2 for None. What is shown is the distribution nearest to all
    answers, the least Σ 2^−i |ŷ − mass|, where ŷ is 0 in all cells that were left out (`estimate.tree_emd_projection`,
    exact). For every λ < 1 and w of order k/λ², its EMD to the truth is at most λ times that of the best map of k
    points, and O(√k/(λ ε)) in votes times the side more (theorem 3.1, with probability 0.99).

    Where the paper no longer asks for cells that were left out, they are asked for here again in later rounds, at no
    price, so that in the end every cell has an unbiased number; the picture does not use it. `Pyramid` does, and is
    nearer.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> PublishedPyramid(Quadtree.world(depth=8)).first
    2
    """

    tree: Tree
    bounding: Bounding = OneVote()
    kept: int = 20
    gamma: Fraction | None = None
    disclosure: ClassVar[Disclosure] = counted(Learned.FINENESS)

    def __post_init__(self) -> None:
        if self.kept < 1:
            raise InputError(f"a pyramid must keep at least 1 cell per level, not {self.kept}")
        check_gamma(self.gamma)

    @property
    def first(self) -> int:
        """q: the finest level with at most `kept` cells."""
        return first_level(self.tree, self.kept)

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """The part of the budget of each level, from the first to the last."""
        parts = [decayed(i, self.gamma) for i in range(self.tree.depth - self.first + 1)]
        return tuple(Fraction(part, sum(parts)) for part in parts)

    def rounds(self, prices: Prices) -> Rounds[CellMap]:  # noqa: ARG002 - shares are fixed
        """One query a level."""
        transcript: list[tuple[Question, Answer]] = []
        numbers, inside, above = list[NDArray[np.int64]](), list[NDArray[np.bool_]](), list[NDArray[np.int64]]()
        todo = Leaves.at_level(self.tree, self.first).cells
        done, upper, start = todo[:0], np.full(len(todo), -1), 0
        for turn, share in enumerate(self.shares):
            cells = with_nowhere(Leaves(self.tree, np.concatenate([todo, done])), self.bounding)
            query = Query(Counts(cells, self.bounding), share)
            answer = yield query
            transcript.append((query, answer))
            numbers.append(answer.sums[: len(todo)])
            inside.append(fullest(numbers[-1], self.kept, -np.inf))
            above.append(upper)
            if turn + 1 < len(self.shares):
                cut = todo[inside[-1]]
                lower = self.tree.children(cut)
                upper = start + np.flatnonzero(inside[-1])[positions(self.tree.parent(lower), cut)]
                start += len(todo)
                done, todo = np.concatenate([todo[~inside[-1]], done]), lower
        mass = self._nearest(numbers, inside, np.concatenate(above))
        made = read(transcript, cells, Reading.UNBIASED)
        left = [each[~kept] for each, kept in zip(mass[-2::-1], inside[-2::-1], strict=True)]
        nowhere = np.maximum(made.unbiased[cells.cells == NOWHERE], 0)
        return replace(made, values=np.concatenate([mass[-1], *left, nowhere]))

    def _nearest(
        self, numbers: list[NDArray[np.int64]], inside: list[NDArray[np.bool_]], above: NDArray[np.int64]
    ) -> list[NDArray[np.float64]]:
        """The masses of the cells that were asked for, level by level.

        A cell that was left out has nothing below it: it stands for all its levels, at the price of all of them.
        """
        sizes = [len(each) for each in numbers]
        levels, kept = np.repeat(self.first + np.arange(len(sizes)), sizes), np.concatenate(inside)
        weight = sides(self.tree)
        weights = np.where(kept, weight[levels], np.cumsum(weight[::-1])[::-1][levels])
        wanted = np.where(kept, np.concatenate(numbers) / self.bounding.unit, 0.0)
        return np.split(nearest(above, wanted, weights), np.cumsum(sizes)[:-1])
