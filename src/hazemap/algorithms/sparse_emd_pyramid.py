"""A sparse map close to the truth in earth mover's distance, from few people."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hazemap.algorithms.count_queries import fan_out, with_nowhere
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import NOWHERE, Leaves, Tree
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate import Measurement, consistent, measurements, nonnegative, read
from hazemap.estimate.transcript_measurements import with_sampling
from hazemap.queries.algorithm_disclosure import Disclosure, Learned, counted
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
