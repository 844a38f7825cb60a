"""One party that holds every row and adds the noise itself."""

from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt

import numpy as np

from hazemap.encoders import Encoder, Medians
from hazemap.errors import Unanswerable
from hazemap.privacy.budget import Budget, PureDP
from hazemap.privacy.mechanisms import noise_for, share_for
from hazemap.privacy.samplers import permute_and_flip, permute_and_flip_each
from hazemap.privacy.stream import Stream
from hazemap.rounds import Answer, Choice, Growth, Measure, Question
from hazemap.tables import Table
from hazemap.trust.growing import grown


@dataclass(frozen=True)
class CentralPrices:
    """What a share of a budget buys where one party adds the noise."""

    budget: Budget

    def stddev(self, encoder: Encoder, share: Fraction) -> float:
        """The standard deviation of the noise in each sum."""
        return noise_for(self.budget.part(share), encoder.sensitivity).stddev

    def share(self, encoder: Encoder, stddev: float) -> Fraction:
        """The least share that buys a standard deviation this small."""
        return share_for(self.budget, encoder.sensitivity, stddev)


@dataclass(frozen=True)
class Curator:
    """Answers every type of query, from one table, with fresh exact noise.

    Privacy: each answer is the discrete Laplace (pure ε) or discrete Gaussian (ρ) mechanism on sums that
    one person moves by at most `encoder.sensitivity`, and on costs likewise; a choice is permute-and-flip (McKenna and
    Sheldon 2020); a tree is grown as `privacy.growth` proves. Whoever runs it sees every row, and is trusted to.
    """

    table: Table
    stream: Stream = field(default_factory=Stream.from_os)

    def prices(self, budget: Budget) -> CentralPrices:
        """What a share of this budget buys."""
        return CentralPrices(budget)

    def answers(self, question: type[Question]) -> bool:  # noqa: ARG002 - it answers them all
        """Every type of query."""
        return True

    def answer(self, question: Question, price: Budget) -> Answer:
        """Exact sums plus exact noise: O(cells), after the first query of a tree, which reads the rows."""
        if question.cohort is not None:
            raise Unanswerable("a curator asks everyone at once; cohorts are for devices")
        if isinstance(question, Choice):
            return self._choose(question, price)
        if isinstance(question, Growth):
            cells = grown(self.table, self.stream, question, _pure(price))
            return Answer(cells.astype(np.int64), np.array([0.0]))
        asked = question.scores if isinstance(question, Measure) else question.encoder
        noise = noise_for(price, asked.sensitivity)
        sums = asked.total(self.table) + noise.draw(self.stream, asked.size)
        return Answer(sums, np.array([noise.stddev]), noise.kurtosis)

    def _choose(self, question: Choice, price: Budget) -> Answer:
        scores = question.scores
        if isinstance(scores, Medians):
            lines, starts = scores.candidates
            each = permute_and_flip_each(
                self.stream, scores.scores(self.table), starts, scores.sensitivity, _pure(price)
            )
            return Answer(lines[starts[:-1] + each], np.array([0.0]))
        epsilon = _pure(price.part(Fraction(1, len(scores.ranks))))
        chosen = [
            permute_and_flip(self.stream, scores.scores(self.table, rank), scores.sensitivity(rank), epsilon)
            for rank in scores.ranks
        ]
        return Answer(np.array(chosen), np.array([0.0]))


def _pure(price: Budget) -> Fraction:
    """The ε that a price buys. ε-DP implies ε²/2-zCDP, so ρ buys √(2ρ), rounded down to 2⁻²⁰ by an integer root."""
    return price.epsilon if isinstance(price, PureDP) else Fraction(isqrt(int(2 * price.rho * 2**40)), 2**20)
