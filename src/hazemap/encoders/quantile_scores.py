"""Scores that only somebody who sees all rows can compute: where a given part of the votes lies below."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Partition
from hazemap.errors import InputError
from hazemap.field_types import check_fields
from hazemap.tables.contribution_bounding import AtMostRows, Bounding
from hazemap.tables.votes import VotesTable


@dataclass(frozen=True)
class QuantileScores:
    """For each rank, a cut between the cells of a partition with that part of all votes before it.

    Candidates are the `size + 1` cuts 0 … size in the order of the partition (medians of a kd-tree, the
    quantiles of a value). The score of a cut is −|before − rank · all|, times the denominator of the rank
    so that it is an integer.

    >>> QuantileScores.__name__
    'QuantileScores'
    """

    cells: Partition
    ranks: tuple[Fraction, ...]
    bounding: Bounding = AtMostRows(1)

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.ranks or not all(0 <= rank <= 1 for rank in self.ranks):
            raise InputError("ranks are parts of 1, such as 1/2 for the median")

    @property
    def choices(self) -> int:
        """One cut a rank."""
        return len(self.ranks)

    def sensitivity(self, rank: Fraction) -> int:
        """How far one person can move a score: a vote before the cut moves it by 1 − rank, one behind by rank."""
        return int(self.bounding.sensitivity.l1 * max(rank, 1 - rank) * rank.denominator)

    def scores(self, table: VotesTable, rank: Fraction) -> NDArray[np.int64]:
        """The score of every cut, int64[size + 1]."""
        votes = table.votes(self.cells.tree, self.bounding)
        before = np.concatenate([[0], np.cumsum(self.cells.total(votes.cells, votes.weights))])
        scores: NDArray[np.int64] = -np.abs(rank.denominator * before - rank.numerator * before[-1])
        return scores
