"""One party that holds every row and adds the noise itself."""

from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Cells, Leaves
from hazemap.encoders import Encoder, EvenSplitScores, MedianSplitScores
from hazemap.encoders.sample_statistics import PlaceChoices
from hazemap.errors import Unanswerable
from hazemap.privacy.budget import Budget, PureDP
from hazemap.privacy.mechanisms import noise_for, share_for
from hazemap.privacy.private_splitting import SplittingNoise
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers import discrete_laplace, permute_and_flip, permute_and_flip_each
from hazemap.privacy.samplers.laplace import LARGEST_SCALE
from hazemap.queries.noisy_queries import Answer, Choice, Growth, Measure, Query, Question
from hazemap.tables.votes import VotesTable


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
    Sheldon 2020); a tree is grown as `privacy.private_splitting` proves. The curator sees every row, and is trusted.
    """

    table: VotesTable
    stream: Stream = field(default_factory=Stream.from_os)

    def prices(self, budget: Budget) -> CentralPrices:
        """What a share of this budget buys."""
        return CentralPrices(budget)

    def answers(self, question: type[Question]) -> bool:  # noqa: ARG002 - it answers them all
        """Every type of query."""
        return True

    def prepare(self, question: Question) -> None:
        """Read the rows that a question is about, and keep what they come to in the table; nothing leaves here.

        So a file that is damaged in the middle is found out before anything is paid, and little time is left between
        the instant that an answer is drawn and that it is stored. O(rows) the first time of a tree and a rule.
        """
        if question.where is not None:
            cells, rule = question.where
            self.table.votes(cells.tree, rule)
        elif isinstance(question, Query):
            question.encoder.total(self.table)

    def answer(self, question: Question, price: Budget) -> Answer:
        """Exact sums plus exact noise: O(cells), after the first query of a tree, which reads the rows."""
        if question.cohort is not None:
            raise Unanswerable("a curator asks everyone at once; cohorts are for devices")
        if isinstance(question, Choice):
            return self._choose(question, price)
        if isinstance(question, Growth):
            cells = grown(self.table, self.stream, question, epsilon_of(price))
            return Answer(cells.astype(np.int64), np.array([0.0]))
        asked = question.scores if isinstance(question, Measure) else question.encoder
        noise = noise_for(price, asked.sensitivity)
        if not noise.fits:  # 64 bits: then the answer is noise alone, which is less wide and errs no more than is said
            return Answer(noise.widest.draw(self.stream, asked.size), np.array([noise.stddev]), noise.kurtosis)
        sums = asked.total(self.table) + noise.draw(self.stream, asked.size)
        return Answer(sums, np.array([noise.stddev]), noise.kurtosis)

    def _choose(self, question: Choice, price: Budget) -> Answer:
        scores = question.scores
        if isinstance(scores, MedianSplitScores | EvenSplitScores):
            lines, starts = scores.candidates
            found, by, epsilon = telling(scores.scores(self.table), scores.sensitivity, epsilon_of(price))
            each = permute_and_flip_each(self.stream, found, starts, by, epsilon)
            return Answer(lines[starts[:-1] + each], np.array([0.0]))
        if isinstance(scores, PlaceChoices):  # whoever is in K places moves K times as many scores as in one
            part = epsilon_of(price.part(Fraction(1, scores.of_one_person)))
            picked = [permute_and_flip(self.stream, *telling(*each, part)) for each in scores.scored(self.table)]
            return Answer(np.array(picked), np.array([float(2 / part)]))
        part = epsilon_of(price.part(Fraction(1, len(scores.ranks))))
        asked = ((scores.scores(self.table, rank), scores.sensitivity(rank), part) for rank in scores.ranks)
        chosen = [permute_and_flip(self.stream, *telling(*each)) for each in asked]
        return Answer(np.array(chosen), np.array([0.0]))


def epsilon_of(price: Budget) -> Fraction:
    """The ε that a price buys. ε-DP implies ε²/2-zCDP, so ρ buys √(2ρ), rounded down by an integer root."""
    if isinstance(price, PureDP):
        return price.epsilon
    digits = 20 + max(0, price.rho.denominator.bit_length() - price.rho.numerator.bit_length())
    return Fraction(isqrt(int(2 * price.rho * 4**digits)), 2**digits)


def telling(scores: NDArray[np.int64], sensitivity: int, epsilon: Fraction) -> tuple[NDArray[np.int64], int, Fraction]:
    """What a choice is made from; where so little is paid that its coins do not fit 64 bits, nothing of the rows."""
    least = Fraction(2 * sensitivity, LARGEST_SCALE)
    return (scores, sensitivity, epsilon) if epsilon >= least else (np.zeros_like(scores), sensitivity, least)


def grown(table: VotesTable, stream: Stream, question: Growth, epsilon: Fraction) -> Cells:
    """The cells of a private tree that were not split, in the order of their spans (`privacy.private_splitting`).

    O(depth · votes + cells).
    """
    tree = question.tree
    law = SplittingNoise.within(epsilon, question.bounding.sensitivity.l1, question.fan, tree.depth)
    if law.scale > LARGEST_SCALE:  # noise does not fit 64 bits: then nothing of the rows decides
        return tree.root
    votes = table.votes(tree, question.bounding)
    kept, todo = [], tree.root
    for depth in range(tree.depth):
        counts = Leaves(tree, todo).total(votes.cells, votes.weights)
        biased = np.maximum(counts - depth * law.decay, question.threshold - law.decay)
        split = biased + discrete_laplace(stream, law.scale, len(todo)) > question.threshold
        kept.append(todo[~split])
        todo = tree.children(todo[split])
    cells = np.concatenate([*kept, todo])
    ordered: Cells = cells[np.argsort(tree.span(cells)[0])]
    return ordered
