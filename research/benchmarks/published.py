"""What the heatmap paper does and we do not: even budgets, sums that overflow, every entry rounded on its own."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from hazemap.cellmap import CellMap, Reading
from hazemap.cells import Leaves, distinct
from hazemap.encoders import Counts, Encoder
from hazemap.engines.memory import MemoryTable
from hazemap.estimate import read
from hazemap.federated.trust.cohort_assumptions import Cohort, SecureSumPrices
from hazemap.privacy.budget import PureDP
from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_disclosure import Disclosure, Learned, counted
from hazemap.queries.noisy_queries import Answer, Prices, Query, Question, Rounds, Trust
from hazemap.tables.contribution_bounding import Bounding, RowIsPerson, Sensitivity

ROWS = RowIsPerson()
RNG = np.random.default_rng(5)


@dataclass(frozen=True)
class Rounded:
    """`Counts` under `OneVote`, every entry rounded on its own: a sensitivity of S + k, as the paper has it."""

    counts: Counts

    @property
    def size(self) -> int:
        """How many cells."""
        return self.counts.size

    @property
    def sensitivity(self) -> Sensitivity:
        """S + k."""
        most = self.counts.bounding.unit + self.counts.size
        return Sensitivity(most, most**2)

    def total(self, table: MemoryTable) -> np.ndarray:
        """Everybody's rounded vectors, summed."""
        tree, size = self.counts.cells.tree, self.size
        position = self.counts.cells.locate(tree.cell_at(table.columns, tree.depth))
        _, person, rows = np.unique(table.person, return_inverse=True, return_counts=True)
        pairs = person.astype(np.uint64) * np.uint64(size) + position.astype(np.uint64)
        ordered, once = np.sort(pairs), distinct(pairs)
        visits = np.diff(np.searchsorted(ordered, np.append(once, np.iinfo(np.uint64).max)))
        wanted = self.counts.bounding.unit * visits / rows[(once // np.uint64(size)).astype(np.int64)]
        rounded = np.floor(wanted + RNG.random(len(wanted))).astype(np.int64)
        sums = np.zeros(size, dtype=np.int64)
        np.add.at(sums, (once % np.uint64(size)).astype(np.int64), rounded)
        return sums


def rounded(encoder: Encoder) -> Encoder:
    """The same question, rounded as published."""
    return Rounded(encoder) if isinstance(encoder, Counts) else encoder


class PublishedPrices(SecureSumPrices):
    """Prices of the same question with the sensitivity S + k."""

    def stddev(self, encoder: Encoder, share: Fraction) -> float:
        """With that sensitivity."""
        return super().stddev(rounded(encoder), share)

    def share(self, encoder: Encoder, stddev: float) -> Fraction:
        """With that sensitivity."""
        return super().share(rounded(encoder), stddev)


class PublishedRounding:
    """Everybody in one secure sum, by the law of its noise; each rounds their entries one by one.

    A person's weights are normalised, scaled by S and rounded up or down, each by its own coin. So the rounded vector
    may sum to S + k for a vector of k cells, and the noise must be for S + k. (Dependent rounding keeps the sum at S.)
    """

    def __init__(self, table: MemoryTable, cohort: Cohort) -> None:
        self.table, self.cohort, self.stream = table, cohort, Stream.from_os()

    def prices(self, budget: PureDP) -> PublishedPrices:
        """What a share of this budget buys."""
        return PublishedPrices(budget, self.cohort)

    def answers(self, question: type[Question]) -> bool:
        """Sums, and nothing else."""
        return question is Query

    def answer(self, question: Question, price: PureDP) -> Answer:
        """Rounded sums and noise for them."""
        encoder, people = rounded(question.encoder), self.cohort.people
        noise = DistributedNoise(encoder.sensitivity.l1 / price.epsilon, self.cohort.honest(people))
        sums = encoder.total(self.table) + noise.together(self.stream, encoder.size, people)
        return Answer(sums, np.array([noise.stddev(people)]), noise.kurtosis(people), people)


@dataclass(frozen=True)
class EvenRounds:
    """Table 3: the tree of the paper with equal parts of the budget for the levels; a cell above T, or 2σ, is split."""

    tree: Any
    levels: int
    split_above: int | None = None
    bounding: Bounding = ROWS
    disclosure: ClassVar[Disclosure] = counted(Learned.FINENESS)

    def rounds(self, prices: Prices) -> Rounds[CellMap]:
        """Level after level, until nothing is split."""
        share, todo = Fraction(1, self.levels), Leaves(self.tree, self.tree.children(self.tree.root))
        transcript: list[tuple[Question, Answer]] = []
        for _ in range(self.levels):
            cells = todo
            query = Query(Counts(cells, self.bounding), share)
            answer = yield query
            transcript.append((query, answer))
            threshold = self.split_above or 2 * prices.stddev(query.encoder, share)
            split = (answer.sums > threshold) & (cells.levels < self.tree.depth)
            if not split.any():
                break
            todo = Leaves(self.tree, np.concatenate([cells.cells[~split], self.tree.children(cells.cells[split])]))
        return read(transcript, cells, Reading.UNBIASED)


class Wrapping:
    """A secure sum whose modulus is 2^bits whatever may come: sums outside it come back on the other side."""

    def __init__(self, trust: Trust, bits: int) -> None:
        self.trust, self.bits = trust, bits
        self.prices, self.answers = trust.prices, trust.answers

    def answer(self, question: Question, price: PureDP) -> Answer:
        """The sums modulo 2^bits."""
        answer, half = self.trust.answer(question, price), 1 << (self.bits - 1)
        return replace(answer, sums=(answer.sums + half) % (2 * half) - half)
