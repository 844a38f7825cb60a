"""Maps close to the truth in earth mover's distance: sparse ones (ours, as published) and dense ones.

Ghazi et al., NeurIPS 2022.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hazemap.algorithms.count_queries import fan_out, laplace_epsilon, mapped, number_of_people, positions, with_nowhere
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import MOST_CELLS, NOWHERE, Leaves, Tree
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate import Measurement, consistent, measurements, nonnegative, read
from hazemap.estimate.transcript_measurements import with_sampling
from hazemap.estimate.tree_emd_projection import nearest
from hazemap.queries.algorithm_disclosure import DisclosesPeople, Disclosure, Learned, counted
from hazemap.queries.noisy_queries import Answer, Prices, Query, Question, Rounds
from hazemap.tables.contribution_bounding import Bounding, OneVote

FIRST_CELLS = 20
"""The first level has no more cells than this: w, the sparsity in the experiments of Ghazi et al. (2022)."""

_WHOLE = 1 << 20


@dataclass(frozen=True)
class Pyramid:
    """Level by level the fullest cells are cut, if they stand out of the noise; all others are counted again.

    A sparse map under the earth mover's distance (Ghazi et al., NeurIPS 2022), with their budgets: each level has γ of
    the budget of the one before (`gamma`; 1/√2 for None), in distance 2^−i a vote. This differs from what they publish,
    which is `PublishedPyramid`, in three ways; on 200 people it is 1.6 to 2.2 times as near (docs/results/pyramid.md).

    * A cell that is not cut is asked for again in every later round. That costs nothing, since the cells of a round are
      disjoint, and it is known better and better; they take it for empty.
    * A cell is cut only if its number is more than `above` standard errors of the next round, and it is one of the
      `kept` fullest. None: all of them, so that the budget tells how sparse the map may be. Once no cell stands out the
      rest of the budget counts those that there are, instead of noise in levels that nobody needs.
    * The picture is the least-squares estimate from all rounds without minus signs, in the place of least absolute
      deviations. Its total is the mean of the rounds' totals, each of which is unbiased.

    The cells of the last round were fixed before its noise was drawn: numbers with intervals are from it alone.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> Pyramid(Quadtree.world(depth=8)).first
    2
    """

    tree: Tree
    bounding: Bounding = OneVote()
    kept: int | None = None
    above: Fraction = Fraction(2)
    gamma: Fraction | None = None
    disclosure: ClassVar[Disclosure] = counted(Learned.FINENESS)

    def __post_init__(self) -> None:
        if (self.kept is not None and self.kept < 1) or self.above < 0:
            raise InputError("a pyramid must cut at least one cell per level, and its threshold cannot be negative")
        check_gamma(self.gamma)

    @property
    def first(self) -> int:
        """q: the finest level with at most `FIRST_CELLS` cells."""
        return first_level(self.tree, FIRST_CELLS)

    def rounds(self, prices: Prices) -> Rounds[CellMap]:
        """One query a level, each about cells that tile the whole."""
        level, left = self.first, self.tree.depth - self.first
        todo = Leaves.at_level(self.tree, level).cells
        done, ended = todo[:0], left == 0
        transcript: list[tuple[Question, Answer]] = []
        for turn in range(left + 1):
            cells = with_nowhere(Leaves(self.tree, np.concatenate([todo, done])), self.bounding)
            query = Query(Counts(cells, self.bounding), share(turn, ended, self.gamma))
            answer = yield query
            transcript.append((query, answer))
            if ended:
                break
            following = share(turn + 1, turn + 1 == left, self.gamma)
            noise = prices.stddev(query.encoder, following)
            # Where noise is next to nothing, one person need not be cut.
            cut = fullest(answer.sums[: len(todo)], self.kept, max(float(self.above) * noise, self.bounding.unit))
            ended = turn + 1 == left or not cut.any()
            if not cut.any():  # the last cells must be new: the noise that left them uncut would bias their numbers
                cut = fullest(answer.sums[: len(todo)], 1, -np.inf)
            done, todo = np.concatenate([done, todo[~cut]]), self.tree.children(todo[cut])
        made = read(transcript, cells, Reading.UNBIASED)
        return replace(made, values=_guessed(measurements(transcript, cells), cells))


def check_gamma(gamma: Fraction | None) -> None:
    """Refuse a γ by which levels would get next to nothing, or more than the one before."""
    if gamma is not None and not Fraction(1, 2) <= gamma <= Fraction(99, 100):
        raise InputError(f"γ, the budget of a level by that of the one before, is 0.5 to 0.99, not {float(gamma):g}")


def decayed(turn: int, gamma: Fraction | None) -> int:
    """γ^turn in whole parts of 2^−32; of 2^−20 for 1/√2, which is meant by None.

    >>> decayed(2, None) / decayed(0, None), decayed(2, Fraction(7, 10)) / decayed(0, Fraction(7, 10))
    (0.5, 0.4899999999906868)
    """
    return isqrt(_WHOLE * _WHOLE >> turn) if gamma is None else int(gamma**turn * 2**32)


def share(turn: int, last: bool, gamma: Fraction | None = None) -> Fraction:
    """1 − γ of what is left of the budget, or all of it."""
    whole, left, then = (decayed(i, gamma) for i in (0, turn, turn + 1))
    return Fraction(left if last else left - then, whole)


def first_level(tree: Tree, most: int) -> int:
    """The finest level of a tree with at most this many cells, or its root."""
    level, cells = 0, tree.root
    while level < tree.depth and len(cells := tree.children(cells)) <= most:
        level += 1
    return level


def sides(tree: Tree) -> NDArray[np.float64]:
    """How wide the cells of each level are, of the root's: 2^−i for squares; float64[depth + 1].

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> sides(Quadtree.world(depth=3))
    array([1.   , 0.5  , 0.25 , 0.125])
    """
    return np.asarray(fan_out(tree) ** (-np.arange(tree.depth + 1) / 2))


def fullest(numbers: NDArray[np.int64], most: int | None, above: float) -> NDArray[np.bool_]:
    """Which numbers are above a limit, and among the `most` largest."""
    chosen = np.zeros(len(numbers), dtype=np.bool_)
    chosen[np.argsort(-numbers, kind="stable")[:most]] = True
    return chosen & (numbers > above)


def _guessed(asked: Sequence[Measurement], cells: Leaves) -> NDArray[np.float64]:
    """The picture, from all rounds."""
    places = [part.leaves.cells != NOWHERE for part in asked]
    totals = [part.numbers[there].sum() for part, there in zip(asked, places, strict=True)]
    trust = [1 / part.variances[there].sum() for part, there in zip(asked, places, strict=True)]
    total = float(np.average(totals, weights=trust))
    guess = consistent(asked, cells, total)
    if any(part.sample is not None for part in asked):
        guess = consistent(with_sampling(asked, guess), cells, total)
    return nonnegative(cells, guess.numbers)


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
