"""A million devices in seconds: the same sums as theirs, by their exact law, without cryptography."""

from fractions import Fraction

from hazemap.errors import InputError, Unanswerable
from hazemap.privacy.budget import Budget
from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.privacy.random_stream import Stream
from hazemap.queries import Answer, Query, Question
from hazemap.tables.votes import VotesTable
from hazemap.trust.checked_contribution import within
from hazemap.trust.cohorts import Cohort, Sampling
from hazemap.trust.device_tasks import pure
from hazemap.trust.distributed_noise_prices import SecureSumPrices
from hazemap.trust.dropout import Participation
from hazemap.trust.sampled_table import SampledTable


class SimulatedSecureAggregation:
    """Answers as devices would: some people are drawn, some of them drop out, the others bring votes and noise.

    Each person asked drops out with probability `dropping`, on their own. A shard with too few people left is lost;
    if all are, the round raises `NotOpened`. Every sum has exactly the law of `SecureAggregation` (tests/trust/
    test_one_law.py): who survives in which shard does not depend on what they say, so it is enough to draw how many
    survive in each, and then that many people. `turnouts` tells what became of each round.

    A `MemoryTable` may hold several rows and votes a person; its people are all who have a row. Of any other table only
    votes are known, so a person must have one vote; its people are those votes. O(people asked + cells) a round, beyond
    reading the table once. Whoever runs it sees every row: it is for research, plans and tests.

    >>> import numpy as np
    >>> from hazemap import Adaptive, AtMostRows, MemoryTable, Quadtree, PureDP, Unrecorded, run
    >>> rng = np.random.default_rng(5)
    >>> table = MemoryTable(np.arange(5_000), {"lon": rng.normal(0, 9, 5_000), "lat": rng.normal(0, 9, 5_000)})
    >>> trust = SimulatedSecureAggregation(table, Cohort(people=2_000, shard=1_000), dropping=Fraction(1, 20))
    >>> result = run(Adaptive(Quadtree.world(depth=8), AtMostRows(1)), trust, PureDP(1), Unrecorded())
    >>> [turnout.opened for turnout in trust.turnouts]
    [2, 2, 2, 2, 2, 2]
    """

    def __init__(
        self, table: VotesTable, cohort: Cohort, stream: Stream | None = None, dropping: Fraction = Fraction(0)
    ) -> None:
        if not 0 <= dropping <= 1:
            raise InputError(f"the probability of dropping out is a fraction from 0 to 1, not {dropping}")
        self.table, self.cohort, self.dropping = table, cohort, dropping
        self.turnouts: list[Participation] = []
        self._stream = stream or Stream.from_os()
        self._sample: SampledTable | None = None

    def prices(self, budget: Budget) -> SecureSumPrices:
        """What a share of this budget buys; `InputError` unless it is in pure ε."""
        return SecureSumPrices(pure(budget), self.cohort)

    def answers(self, question: type[Question]) -> bool:
        """Sums, and nothing else."""
        return question is Query

    def answer(self, question: Question, price: Budget) -> Answer:
        """The sums of those who answered, and their noise."""
        scale = asked(question).encoder.sensitivity.l1 / pure(price).epsilon
        sample = self._sample or SampledTable(self.table, self.cohort, self._stream, self.dropping)
        if self.cohort.sampling is Sampling.ONE:
            self._sample = sample
        sums = asked(question).encoder.total(sample)
        turnout = sample.turnout
        within(sums, asked(question).encoder.sensitivity, turnout.people)
        self.turnouts.append(turnout)
        sample.next_round()
        turnout.need()
        for honest, people in turnout.by_honest.items():
            sums += DistributedNoise(scale, honest).together(self._stream, len(sums), people)
        return turnout.answer(sums, scale)


def asked(question: Question) -> Query:
    """The question, if people can answer it in a secure sum."""
    if not isinstance(question, Query):
        raise Unanswerable(f"a secure sum answers queries for sums, not a {type(question).__name__}")
    if question.cohort is not None:
        raise Unanswerable(
            "this trust model draws the people of each round itself; it does not divide them into cohorts that are "
            "asked by number: ask everyone (cohort=None)"
        )
    return question
