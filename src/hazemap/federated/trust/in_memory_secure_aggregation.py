"""Devices in one process that run the real protocol: for tests, for teaching, and for a few hundred people."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError, NotOpened
from hazemap.federated.protocols.secure_aggregation import merkle_roster as roster
from hazemap.federated.protocols.secure_aggregation.in_memory_round import secure_sum
from hazemap.federated.protocols.secure_aggregation.messages import Stage
from hazemap.federated.protocols.secure_aggregation.neighbour_graph import commitment
from hazemap.federated.protocols.secure_aggregation.session_parameters import HASH, Mode, SessionParameters
from hazemap.federated.protocols.secure_aggregation.unmasking import Opened
from hazemap.federated.trust.checked_contribution import contribution
from hazemap.federated.trust.cohort_assumptions import Cohort, Participation, Sampling
from hazemap.federated.trust.device_tasks import Task, check, parameters_for, pure, round_price
from hazemap.federated.trust.random_sampling import happens, without_replacement
from hazemap.federated.trust.randomised_reports import debiased, randomised
from hazemap.federated.trust.sampled_table import one_by_one
from hazemap.federated.trust.simulated_secure_aggregation import SecureSumTrust, asked
from hazemap.privacy.budget import ZCDP, Budget, PureDP
from hazemap.privacy.random_permutation import in_any_order
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.signing_identities import Identity
from hazemap.queries.noisy_queries import Answer, Question

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
        query = asked(question)
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
    return secure_sum(terms, identities, vectors, seed, silent, _Agreed(task), stream)


@dataclass(frozen=True)
class _Person:
    identity: Identity
    table: MemoryTable


@dataclass(frozen=True)
class _Agreed:
    """Insists on the parameters that follow from the task, as a device does."""

    task: Task

    def check(self, terms: SessionParameters) -> None:
        check(self.task, terms)
