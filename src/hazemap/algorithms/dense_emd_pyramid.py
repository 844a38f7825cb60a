"""A map close to the truth in earth mover's distance, however many places people are spread over."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hazemap.algorithms.count_queries import laplace_epsilon, mapped, number_of_people, positions
from hazemap.algorithms.sparse_emd_pyramid import sides
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import MOST_CELLS, Leaves, Tree
from hazemap.errors import InputError
from hazemap.estimate.tree_emd_projection import nearest
from hazemap.queries.algorithm_disclosure import DisclosesPeople
from hazemap.queries.noisy_queries import Prices, Rounds
from hazemap.tables.contribution_bounding import Bounding, OneVote


@dataclass(frozen=True)
class DensePyramid(DisclosesPeople):
    """One level of about εn/3 cells, and the distribution nearest to its noisy sums at all levels above.

    Dense aggregation under the earth mover's distance (Ghazi et al., NeurIPS 2022, appendix D): for any people the EMD,
    of the side and normalised, is O(1/√(εn)), and nobody can promise better (corollary D.2). Snapping people to cells
    of the side 1/√(εn) moves nobody further than that, and finer cells would be noise. What is shown has the least
    Σ 2^−i |ŷ − mass| over all levels i, ŷ the sums of the noisy numbers: the earth mover's distance to them along the
    tree, which the paper minimises over the ground by a linear programme (its own bound goes by the tree).

    n is `people` where it is public; otherwise `share_of_number` of the budget buys it. For any noise ε is read as
    √2/σ. The grid is the level of the tree whose number of cells is nearest (in ratio) to εn/`people_a_cell`: the
    paper's proof has 1, and 3 was best on made-up cities of 50 to 5,000 people at ε from 0.1 to 10.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> DensePyramid(Quadtree.world(depth=8), people=200).people
    200
    """

    tree: Tree
    bounding: Bounding = OneVote()
    people: int | None = None
    share_of_number: Fraction = Fraction(1, 50)
    people_a_cell: int = 3

    def __post_init__(self) -> None:
        if not 0 < self.share_of_number < 1 or (self.people is not None and self.people < 1) or self.people_a_cell < 1:
            raise InputError("a dense pyramid needs at least 1 person, or a part of the budget to count people with")

    def rounds(self, prices: Prices) -> Rounds[CellMap]:
        """The number of people if it is not public, then one grid."""
        people, share, _ = yield from number_of_people(self.tree, self.bounding, self.share_of_number, self.people)
        # No more than ten cells a person, however large the budget is; 3 people a cell was best up to ε = 10.
        epsilon = laplace_epsilon(prices, self.tree, self.bounding, share, 10 * self.people_a_cell)
        grids = self._grids(max(people * epsilon / self.people_a_cell, 1.0))
        made = yield from mapped(grids[-1], self.bounding, Reading.UNBIASED, share)
        nowhere = np.maximum(made.unbiased[~made.places], 0)
        return replace(made, values=np.concatenate([self._nearest(grids, made.unbiased[made.places]), nowhere]))

    def _grids(self, wanted: float) -> list[Leaves]:
        """All levels down to the one with about `wanted` cells."""
        grids, fan_out = [Leaves(self.tree, self.tree.root)], sides(self.tree)[:2][-1] ** -2
        while len(grids) <= self.tree.depth and (size := grids[-1].size) * size * fan_out < wanted**2:
            if size * fan_out > MOST_CELLS:
                break
            grids.append(Leaves(self.tree, self.tree.children(grids[-1].cells)))
        return grids

    def _nearest(self, grids: list[Leaves], numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The masses of the cells of the last level."""
        wanted, above = [numbers], list[NDArray[np.int64]]()
        starts = np.cumsum([0, *(grid.size for grid in grids)])
        for upper, lower, start in zip(grids[-2::-1], grids[:0:-1], starts[-3::-1], strict=True):
            place = positions(self.tree.parent(lower.cells), upper.cells)
            wanted.append(np.bincount(place, wanted[-1], upper.size).astype(np.float64))
            above.append(start + place)
        parents = np.concatenate([np.full(grids[0].size, -1), *above[::-1]])
        weights = np.repeat(sides(self.tree)[: len(grids)], np.diff(starts))
        return nearest(parents, np.concatenate(wanted[::-1]), weights)[starts[-2] :]
