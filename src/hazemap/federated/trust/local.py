"""Nobody is trusted: every person randomises what they say before it leaves them.

It is the baseline that secure aggregation is measured against: the noise of n people is about √n times as large as
that which one curator would add. A person's vector is 1 in one place and 0 elsewhere, and the randomisers throw a coin
for every place (randomised response, Warner 1965); their functions of sums draw, undo and describe what becomes of the
reports of many people together.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from hazemap.encoders import Encoder
from hazemap.errors import InputError, Unanswerable
from hazemap.federated.trust.checked_contribution import within
from hazemap.federated.trust.randomised_reports import debiased, least_share, stddev_of
from hazemap.privacy.budget import Budget, PureDP
from hazemap.privacy.local_randomisers import Randomiser, Symmetric
from hazemap.privacy.random_stream import Stream
from hazemap.queries.noisy_queries import Answer, Query, Question
from hazemap.tables.votes import VotesTable


@dataclass(frozen=True)
class LocalPrices:
    """What a share of a budget buys where each person randomises alone: noise grows with √people."""

    budget: PureDP
    people: int
    randomiser: Callable[[Fraction], Randomiser]

    def stddev(self, encoder: Encoder, share: Fraction) -> float:
        """The standard deviation of the noise in each sum, where people are spread evenly."""
        return stddev_of(self.randomiser(self.budget.part(share).epsilon), self.people, encoder.size)

    def share(self, encoder: Encoder, stddev: float) -> Fraction:
        """The least multiple of 2^−30 that buys a standard deviation this small; 64 if no share will do."""
        return least_share(lambda share: self.stddev(encoder, share), stddev)


@dataclass(frozen=True)
class LocalReports:
    """Answers from reports that every person randomised: in simulation, by the exact law of their sum.

    All of `people` report in every round, also those without a row, whose vector is zero: silence would tell. Rounds
    compose: a person pays the shares of all. The price of a round is the ε of `randomiser`, which says between which
    neighbours. Only queries to which a person adds a single 1 can be answered. Answers are the unbiased numbers,
    rounded up or down at random so that they stay unbiased; that adds at most ¼ to the variance, which is stated with
    it. (Where the variance depends on the count, the noisy one is put in.) Drawing costs about people · cells / 4
    bytes of the stream, memory O(cells).

    >>> import numpy as np
    >>> from hazemap import AtMostRows, Flat, MemoryTable, Quadtree, Unrecorded, run
    >>> rng = np.random.default_rng(5)
    >>> table = MemoryTable(np.arange(9_000), {"lon": rng.normal(0, 9, 9_000), "lat": rng.normal(0, 9, 9_000)})
    >>> made = run(Flat(Quadtree.world(depth=3), 2), LocalReports(table, 9_000), PureDP(1), Unrecorded())
    >>> made.value.stddev.round(1)[:2]
    array([91., 91.])
    """

    table: VotesTable
    people: int
    randomiser: Callable[[Fraction], Randomiser] = Symmetric
    stream: Stream = field(default_factory=Stream.from_os)

    def __post_init__(self) -> None:
        if self.people < 1:
            raise InputError(f"reports come from 1 person or more, not from {self.people}")

    def prices(self, budget: Budget) -> LocalPrices:
        """What a share of this budget buys; `InputError` unless it is in pure ε."""
        return LocalPrices(_pure(budget), self.people, self.randomiser)

    def answers(self, question: type[Question]) -> bool:
        """Sums, and nothing else."""
        return question is Query

    def answer(self, question: Question, price: Budget) -> Answer:
        """The unbiased numbers, with the law of their errors."""
        if not isinstance(question, Query) or question.cohort is not None:
            raise Unanswerable("reports of everyone answer queries for sums; they do not choose, and have no cohorts")
        if question.encoder.sensitivity.l1 != 1:
            raise Unanswerable(
                f"a person randomises a vector with a single 1, but this query lets them add "
                f"{question.encoder.sensitivity.l1} in all: ask one level at a time, of one row a person"
            )
        counts = question.encoder.total(self.table)
        if counts.sum() > self.people:
            raise InputError(f"{self.people:,} people were said to report, but more have a row that counts")
        within(counts, question.encoder.sensitivity, self.people)
        chosen = self.randomiser(_pure(price).epsilon)
        return debiased(chosen, chosen.sums(self.stream, counts, self.people), self.people, self.stream)


def _pure(budget: Budget) -> PureDP:
    if not isinstance(budget, PureDP):
        raise InputError(f"randomised response spends pure ε, not {budget}: give epsilon alone, without delta or rho")
    return budget
