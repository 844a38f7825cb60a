"""Scores of readings by how well the people on either side of one balance: a private robust mean in one choice."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hazemap.encoders.array_quantile_scores import HALF
from hazemap.encoders.single_cell_sums import samples
from hazemap.errors import InputError
from hazemap.tables.votes import VotesTable
from hazemap.values.quantizer import Quantizer


@dataclass(frozen=True)
class RobustMeanScores:
    """The reading t at which people's means x_ℓ, each of weight c_ℓ = min(m_ℓ, most), balance: Huber's M-estimate.

    A person pulls with c_ℓ ψ(x_ℓ − t), where ψ(z) = z clipped to ±reach. Candidates are the readings 0 … steps; the
    score of one is −|Σ_ℓ c_ℓ ψ(x_ℓ − t)|, an integer, 0 where they balance. For a small reach it is the weighted
    median, for a large one the weighted mean.

    VALUES ONLY: weights are public, so new values of one person change their pull by 2 · reach · most at the most.
    Divided by that, the score is how many people would have to change before t balances, up to rounding: the inverse
    sensitivity mechanism (Asi and Duchi 2020).

    >>> RobustMeanScores(Quantizer(0, 65, steps=650), most=100, reach=40).sensitivity(Fraction(1, 2))
    8000
    """

    quantizer: Quantizer
    most: int
    reach: int
    ranks: ClassVar[tuple[Fraction, ...]] = (HALF,)
    choices: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.most < 1 or not 1 <= self.reach <= self.quantizer.steps:
            raise InputError(f"a weight is 1 or more and a reach 1 to {self.quantizer.steps} readings")

    def sensitivity(self, rank: Fraction) -> int:  # noqa: ARG002 - of the one rank
        """How far one person's values can move a score."""
        return 2 * self.reach * self.most

    def scores(self, table: VotesTable, rank: Fraction) -> NDArray[np.int64]:  # noqa: ARG002 - of the one rank
        """The score of every reading, int64[steps + 1]. O(rows + steps)."""
        found, steps, reach = samples(table), self.quantizer.steps, self.reach
        means, weights = found.means(self.quantizer), found.contributions.kept(self.most)
        held = np.zeros(steps + 1, dtype=np.int64)
        np.add.at(held, means, weights)
        upto = np.concatenate([np.zeros(reach, np.int64), np.cumsum(held), np.full(reach, weights.sum())])
        near = upto[2 * reach :] - upto[: steps + 1]  # weight at t − reach + 1 … t + reach
        pull = (weights * np.minimum(means, reach)).sum() - np.concatenate([[0], np.cumsum(near[:-1])])
        scores: NDArray[np.int64] = -np.abs(pull)
        return scores
