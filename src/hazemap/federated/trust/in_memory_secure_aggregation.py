"""Secure aggregation in one process: the real protocol among a few hundred people, or its exact law for a million."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError, NotOpened, TranscriptMismatch
from hazemap.federated.protocols.secure_aggregation import merkle_roster as roster
from hazemap.federated.protocols.secure_aggregation.in_memory_round import secure_sum
from hazemap.federated.protocols.secure_aggregation.messages import Stage
from hazemap.federated.protocols.secure_aggregation.neighbour_graph import commitment
from hazemap.federated.protocols.secure_aggregation.session_parameters import HASH, Mode, SessionParameters
from hazemap.federated.protocols.secure_aggregation.unmasking import Opened
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.recipes.recipe_bins import RecipeBins, RecipeTable
from hazemap.federated.trust.checked_contribution import contribution, within
from hazemap.federated.trust.cohort_assumptions import Cohort, Participation, Sampling, SecureSumPrices
from hazemap.federated.trust.device_tasks import Task, check, check_report, parameters_for, pure, round_price
from hazemap.federated.trust.randomised_reports import (
    ReportLaw,
    ReportPrices,
    check_most,
    debiased,
    law_for_numbers,
    randomised,
)
from hazemap.federated.trust.report_batch import asked_of
from hazemap.federated.trust.sampled_table import SampledTable, happens, one_by_one, without_replacement
from hazemap.privacy.budget import ZCDP, Budget, PureDP
from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.privacy.local_randomisers import Asymmetric, Symmetric, UnaryEncoding
from hazemap.privacy.random_stream import Stream, in_any_order
from hazemap.privacy.signing_identities import Identity
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
        query = asked_of(question, "secure sums")
        law = self.law(query, price)
        sample = self._sample or SampledTable(self.table, self.cohort.people, self._stream, self._answering)
        if self.cohort.sampling is Sampling.ONE:
            self._sample = sample
        sums = query.encoder.total(sample)
        turnout = self._turnout
        if turnout is None:
            raise TranscriptMismatch("nobody's votes were asked for in this round")
        within(sums, query.encoder.sensitivity, turnout.people)
        self.turnouts.append(turnout)
        sample.next_round()
        self._turnout = None
        turnout.need()
        if law is not None:
            sums = law.sums(self._stream, sums, turnout.people)
            return debiased(law, sums, turnout.people, self._stream)
        scale = query.encoder.sensitivity.l1 / pure(price).epsilon
        for honest, people in turnout.by_honest.items():
            sums += DistributedNoise(scale, honest).together(self._stream, len(sums), people)
        return turnout.answer(sums, scale)


_BEFORE_THE_VECTOR = {
    Mode.SEMI_HONEST: (Stage.KEYS, Stage.SHARES, Stage.MASKED),
    Mode.MALICIOUS: (Stage.KEYS, Stage.PICKS, Stage.SHARES, Stage.MASKED),
}


class SecureAggregation(SecureSumTrust):
    """Answers by secure sums among the people of a table: each is a client with an identity and a share of the noise.

    Each person asked drops out with probability `dropping`, at any stage before their vector is sent. A shard that
    cannot be opened is lost; if all are, the round raises `NotOpened`. `turnouts` tells what became of each round. A
    person's part costs some 10 ms a round: for many people take `SimulatedSecureAggregation`, whose answers have the
    same law.

    >>> from hazemap import AtMostRows, Counts, Leaves, MemoryTable, Quadtree, Query
    >>> table = MemoryTable(np.arange(12), {"lon": np.full(12, 2.35), "lat": np.full(12, 48.85)})
    >>> trust = SecureAggregation(table, Cohort(12, 6, dropout=Fraction(0), corrupt=Fraction(1, 6)))
    >>> tree = Quadtree.world(depth=1)
    >>> answer = trust.answer(Query(Counts(Leaves(tree, tree.root), AtMostRows(1)), 1), PureDP(50))
    >>> answer.sums, answer.people
    (array([12]), 12)
    """

    def __init__(
        self,
        table: MemoryTable,
        cohort: Cohort,
        stream: Stream | None = None,
        dropping: Fraction = Fraction(0),
        local_epsilon: Fraction | None = None,
    ) -> None:
        super().__init__(cohort, stream, dropping, local_epsilon)
        self._people = [_Person(Identity.create(), own) for own in one_by_one(table)]
        self._sample: NDArray[np.int64] | None = None
        if len(self._people) < cohort.people:
            raise InputError(f"{cohort.people} people are to be asked, but only {len(self._people)} are in the table")

    def answer(self, question: Question, price: Budget) -> Answer:
        """Draw people, form shards, run the protocol in each, and add up what was opened."""
        query = asked_of(question, "secure sums")
        law = self.law(query, price)
        each = pure(price) if law is None else round_price(price)
        budget = PureDP(each.epsilon / query.share) if isinstance(each, PureDP) else ZCDP(each.rho / query.share)
        task = Task("in memory", "to try things out", len(self.turnouts) + 1, query, each, budget, self.cohort, law)
        stream, cohort = self._stream, self.cohort
        sample = self._sample
        if sample is None:
            sample = without_replacement(stream, len(self._people), cohort.people)
        if cohort.sampling is Sampling.ONE:
            self._sample = sample
        shuffled = sample[in_any_order(stream, len(sample))]
        sums, answered = np.zeros(query.encoder.size, dtype=np.int64), []
        for shard in np.split(shuffled, np.cumsum(cohort.shards[:-1])):
            try:
                opened = self._run(task, [self._people[person] for person in shard.tolist()])
            except NotOpened:
                answered.append(0)
                continue
            sums += opened.sums
            answered.append(opened.people)
        turnout = Participation(cohort, tuple(answered))
        self.turnouts.append(turnout)
        turnout.need()
        if law is not None:
            return debiased(law, sums, turnout.people, stream)
        return turnout.answer(sums, query.encoder.sensitivity.l1 / pure(price).epsilon)

    def _run(self, task: Task, people: Sequence["_Person"]) -> Opened:
        vectors = [self._vector(task, person) for person in people]
        return session_of(task, [person.identity for person in people], vectors, self.dropping, self._stream)

    def _vector(self, task: Task, person: "_Person") -> NDArray[np.int64]:
        sums = contribution(task.question.encoder, lambda: person.table).sums
        return sums if task.randomiser is None else randomised(task.randomiser, sums, self._stream)


def session_of(
    task: Task,
    identities: Sequence[Identity],
    vectors: Sequence[NDArray[np.int64]],
    dropping: Fraction,
    stream: Stream,
) -> Opened:
    """One session among these people, of whom some drop out at a stage drawn for each; `NotOpened` if too many do."""
    mode = task.cohort.mode
    seed = os.urandom(HASH) if mode is Mode.SEMI_HONEST else None
    root = roster.root([each.public for each in identities])
    graph = commitment(seed) if seed else bytes(HASH)
    terms = parameters_for(task, root, len(identities), graph, os.urandom(HASH))
    stages = _BEFORE_THE_VECTOR[mode]
    leaving = np.flatnonzero(happens(stream, len(identities), dropping)).tolist()
    silent = {position: stages[stream.below(len(stages))] for position in leaving}
    return secure_sum(terms, identities, vectors, seed, silent, _Agreement(task), stream)


@dataclass(frozen=True)
class _Person:
    identity: Identity
    table: MemoryTable


@dataclass(frozen=True)
class _Agreement:
    """Insists on the parameters that follow from the task, as a device does."""

    task: Task

    def check(self, terms: SessionParameters) -> None:
        check(self.task, terms)


@dataclass(frozen=True)
class RecipeSecureSums:
    """Answers recipes at the price that they state, by secure sums of people's reports.

    `table` says which bin each person reports: a `PopulationTable`, or the event stores of many devices
    (`EventPopulation`). Each round asks people drawn anew, each a client with an identity, who randomises one report
    and drops out with probability `dropping` before it is sent. Reports have the law of `LocalReports` over the people
    who answered. A shard that cannot be opened is lost; if all are, the round raises `NotOpened`. `turnouts`
    tells what became of each round. A person's part costs some 10 ms a round.

    >>> from hazemap.federated.recipes.features import Categories, Feature
    >>> from hazemap.federated.recipes.population_table import PopulationTable
    >>> from hazemap.federated.recipes.sql_query import SqlQuery
    >>> from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
    >>> words = Recipe(
    ...     "words", 1, "keyboard", "which words are typed", SqlQuery("SELECT word FROM keyboard"), (),
    ...     (Feature("word", Categories(("so", "be"))),), Fraction(4), Fraction(4), Fraction(1, 10**6), 9,
    ... )
    >>> people = PopulationTable.of_people(np.arange(10), (["so"] * 10,))
    >>> sums = RecipeSecureSums(people, Cohort(10, 10, corrupt=Fraction(0), mode=Mode.SEMI_HONEST))
    >>> answer = sums.answer(words)
    >>> answer.people, answer.sums.shape
    (10, (4,))
    """

    table: RecipeTable
    cohort: Cohort
    stream: Stream = field(default_factory=Stream.from_os)
    dropping: Fraction = Fraction(0)
    turnouts: list[Participation] = field(default_factory=list)
    _identities: list[Identity] = field(default_factory=list, repr=False)

    def answer(self, recipe: Recipe, randomiser: Symmetric | Asymmetric | UnaryEncoding | None = None) -> Answer:
        """The unbiased numbers of people in each bin; `InputError` where a sum would cost more than the recipe says."""
        task = Task.asking(recipe, "in memory", len(self.turnouts) + 1, self.cohort, randomiser=randomiser)
        law = task.randomiser
        if law is None:
            raise InputError("a recipe is answered by reports that are randomised")
        bins = RecipeBins(recipe).bins(self.table)
        if len(bins) < self.cohort.people:
            raise InputError(f"{self.cohort.people} people are to be asked, but only {len(bins)} are in the table")
        self._identities.extend(Identity.create() for _ in range(len(bins) - len(self._identities)))
        sample = without_replacement(self.stream, len(bins), self.cohort.people)
        sums, answered = np.zeros(recipe.size, dtype=np.int64), []
        shuffled = sample[in_any_order(self.stream, len(sample))]
        for shard in np.split(shuffled, np.cumsum(self.cohort.shards[:-1])):
            reports = [law.report(self.stream, int(bins[one]), recipe.size).astype(np.int64) for one in shard]
            people = [self._identities[one] for one in shard.tolist()]
            try:
                opened = session_of(task, people, reports, self.dropping, self.stream)
            except NotOpened:
                answered.append(0)
                continue
            sums += opened.sums
            answered.append(opened.people)
        turnout = Participation(self.cohort, tuple(answered))
        self.turnouts.append(turnout)
        turnout.need()
        return debiased(law, sums, turnout.people, self.stream)
