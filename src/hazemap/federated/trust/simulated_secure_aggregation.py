"""A million devices in seconds: the same sums as theirs, by their exact law, without cryptography."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from hazemap.errors import InputError, TranscriptMismatch, Unanswerable
from hazemap.federated.trust.checked_contribution import within
from hazemap.federated.trust.cohort_assumptions import Cohort, Participation, Sampling, SecureSumPrices
from hazemap.federated.trust.device_tasks import check_report, pure, round_price
from hazemap.federated.trust.randomised_reports import ReportLaw, ReportPrices, check_most, debiased, law_for_numbers
from hazemap.federated.trust.sampled_table import SampledTable, happens
from hazemap.privacy.budget import Budget
from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.privacy.random_stream import Stream
from hazemap.queries.noisy_queries import Answer, Query, Question
from hazemap.tables.votes import VotesTable


class SecureSumTrust:
    """What the devices of one process have in common, whether they run the protocol or are simulated."""

    def __init__(
        self, cohort: Cohort, stream: Stream | None, dropping: Fraction, local_epsilon: Fraction | None = None
    ) -> None:
        if not 0 <= dropping <= 1:
            raise InputError(f"the probability of dropping out is a fraction from 0 to 1, not {dropping}")
        if local_epsilon is not None:
            check_most(local_epsilon)
        self.cohort, self.dropping, self.local_epsilon = cohort, dropping, local_epsilon
        self.turnouts: list[Participation] = []
        self._stream = stream or Stream.from_os()

    def prices(self, budget: Budget) -> SecureSumPrices | ReportPrices:
        """What a share of this budget buys; `InputError` unless it is in pure ε, or reports are randomised."""
        if self.local_epsilon is not None:
            return ReportPrices(budget, self.cohort, self.local_epsilon)
        return SecureSumPrices(pure(budget), self.cohort)

    def law(self, question: Query, price: Budget) -> ReportLaw | None:
        """What each person does to their report; None where they add shares of noise instead."""
        if self.local_epsilon is None:
            return None
        check_report(question.encoder)
        honest = self.cohort.fewest_honest
        return law_for_numbers(round_price(price), honest, self.local_epsilon, question.size)

    def answers(self, question: type[Question]) -> bool:
        """Sums, and nothing else."""
        return question is Query


class SimulatedSecureAggregation(SecureSumTrust):
    """Answers as devices would: some people are drawn, some of them drop out, the others bring votes and noise.

    Each person asked drops out with probability `dropping`, on their own. A shard with too few people left is lost;
    if all are, the round raises `NotOpened`. Every sum has exactly the law of `SecureAggregation`
    (tests/federated/trust/test_one_law.py): who survives in which shard does not depend on what they say, so it is
    enough to draw how many survive in each, and then that many people. `turnouts` tells what became of each round.

    With a `local_epsilon` people add no noise in shares: each sends one report, randomised with that ε or less.

    A `MemoryTable` may hold several rows and votes a person; its people are all who have a row. A `PopulationTable`
    answers recipes, and its people are all, with or without a row. Of any other table only votes are known, so a person
    must have one vote; its people are those votes. O(people asked + cells) a round, beyond
    reading the table once. Whoever runs it sees every row: it is for research, plans and tests.

    >>> import numpy as np
    >>> from hazemap import Adaptive, AtMostRows, MemoryTable, Quadtree, PureDP, Unrecorded, run
    >>> rng = np.random.default_rng(5)
    >>> table = MemoryTable(np.arange(5_000), {"lon": rng.normal(0, 9, 5_000), "lat": rng.normal(0, 9, 5_000)})
    >>> trust = SimulatedSecureAggregation(table, Cohort(people=2_000, shard=1_000), dropping=Fraction(1, 20))
    >>> result = run(Adaptive(Quadtree.world(depth=8), AtMostRows(1)), trust, PureDP(1), Unrecorded())
    >>> [turnout.opened for turnout in trust.turnouts]
    [2, 2, 2, 2, 2]
    """

    def __init__(
        self,
        table: VotesTable,
        cohort: Cohort,
        stream: Stream | None = None,
        dropping: Fraction = Fraction(0),
        local_epsilon: Fraction | None = None,
    ) -> None:
        super().__init__(cohort, stream, dropping, local_epsilon)
        self.table = table
        self._sample: SampledTable | None = None
        self._turnout: Participation | None = None

    def _answering(self, asked: int) -> int:
        """Who drops out, shard by shard: how many people are in the shards that were opened."""
        cohort = replace(self.cohort, people=asked)
        stays = ~happens(self._stream, asked, self.dropping)
        begins = np.cumsum([0, *cohort.shards[:-1]])
        self._turnout = Participation(cohort, tuple(np.add.reduceat(stays.astype(np.int64), begins).tolist()))
        return self._turnout.people

    def answer(self, question: Question, price: Budget) -> Answer:
        """The sums of those who answered, and their noise."""
        law = self.law(asked(question), price)
        sample = self._sample or SampledTable(self.table, self.cohort.people, self._stream, self._answering)
        if self.cohort.sampling is Sampling.ONE:
            self._sample = sample
        sums = asked(question).encoder.total(sample)
        turnout = self._turnout
        if turnout is None:
            raise TranscriptMismatch("nobody's votes were asked for in this round")
        within(sums, asked(question).encoder.sensitivity, turnout.people)
        self.turnouts.append(turnout)
        sample.next_round()
        self._turnout = None
        turnout.need()
        if law is not None:
            sums = law.sums(self._stream, sums, turnout.people)
            return debiased(law, sums, turnout.people, self._stream)
        scale = asked(question).encoder.sensitivity.l1 / pure(price).epsilon
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
