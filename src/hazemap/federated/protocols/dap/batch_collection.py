"""What an aggregator gives for a batch: the sums of one parameter, or the answer to a question (DAP-18, section 4.6.4).

A share gets its noise when it is sealed for the collector, and leaves in no other way.

Of the questions about one batch, each aggregator keeps an account for itself: how far the walk down the tree is, and
what is paid. People pay for the questions about where they are, so a question may be asked if nobody in its cells has
then paid more than the budget (`privacy.parallel_composition`, along the strings of all paths). A question that was
answered is answered by the same bytes, which the caller has stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from hazemap.errors import CodecError, Refused
from hazemap.federated.protocols.dap.aggregator_changes import (
    AddQuestion,
    AggregatorRecords,
    Change,
    CloseBatch,
    WithdrawQuestion,
)
from hazemap.federated.protocols.dap.aggregator_task import AggregatorTask
from hazemap.federated.protocols.dap.basic_types import HpkeCiphertext
from hazemap.federated.protocols.dap.batches import Batch, BatchTotal, batch_total
from hazemap.federated.protocols.dap.collection_messages import CollectionJobReq
from hazemap.federated.protocols.dap.leader_uploads import check_collectable, parameters_before
from hazemap.federated.protocols.dap.prefix_question import (
    LONGEST,
    MOST_QUESTIONS,
    LevelShares,
    PrefixQuestion,
    encoded_shares,
    question_shares,
    read_question,
)
from hazemap.federated.protocols.dap.privacy_parameters import Nowhere, WalkTerms
from hazemap.federated.protocols.dap.problem_types import ProblemType
from hazemap.privacy.parallel_composition import Steps
from hazemap.privacy.two_server_noise import TwoServerNoise, residues
from hazemap.vdaf.idpf import MODULUS_INNER
from hazemap.vdaf.poplar1_evaluation import Poplar1Parameter


def sealed_share(
    task: AggregatorTask, request: CollectionJobReq, total: BatchTotal, randomness: bytes
) -> HpkeCiphertext:
    """The share with noise drawn now, for the collector alone; `randomness` is 32 fresh bytes.

    The caller stores what this returns before anybody sees it, and never calls it again for the same batch and
    parameter. A batch below the task's minimum is refused here, whoever asks.
    """
    check_least(task, total)
    vdaf, agg_param = task.vdaf, request.agg_param
    share = total.share
    law = task.task.blank if task.task.privacy is None else task.task.privacy.noise
    if task.draw_noise is not None and law is not None:
        noise = task.draw_noise(law, vdaf.output_length(agg_param)).tolist()
        share = vdaf.merge(agg_param, [share, vdaf.share_of(agg_param, noise)])
    return sealed(task, request, vdaf.encode_agg_share(agg_param, share), randomness)


def check_least(task: AggregatorTask, total: BatchTotal) -> None:
    """Refuse a batch below the task's minimum, or of nobody."""
    if total.count < max(1, task.least):
        raise task.problem(
            ProblemType.INVALID_BATCH_SIZE, f"the batch has {total.count} reports here; the least is {task.least}"
        )


def sealed(task: AggregatorTask, request: CollectionJobReq, plain: bytes, randomness: bytes) -> HpkeCiphertext:
    """A share that has its noise, for the collector alone, bound to what was asked."""
    info = task.task.version.aggregate_share_info(task.role)
    return task.collector.seal(info, task.aggregate_share_aad(request), plain, randomness)


@dataclass(frozen=True)
class AskedQuestion:
    """A question that may be asked, about a batch whose levels so far are `before`: make one with `asked_question`."""

    task: AggregatorTask
    records: AggregatorRecords = field(repr=False)
    batch: Batch
    request: CollectionJobReq
    question: PrefixQuestion
    before: Sequence[bytes] = field(repr=False)
    place: int

    @property
    def parameter(self) -> bytes:
        """What reports are verified with."""
        return self.question.parameter

    @property
    def verifies(self) -> bool:
        """Whether its level is a new one, for which reports have to be verified first."""
        return self.parameter not in self.before

    @property
    def last(self) -> bool:
        """Whether no further level can be verified after it."""
        return len(self.before) + self.verifies == self.task.collections

    @cached_property
    def total(self) -> BatchTotal:
        """The shares of the question's level, and its reports."""
        return self._total(self.parameter)

    @property
    def changes(self) -> tuple[Change, ...]:
        """What is written with the answer: the level is closed, and the question is paid."""
        close = CloseBatch(self.batch, self.parameter, self.total.count, keep=True)
        asked = AddQuestion(self.batch, self.place, self.question.to_bytes())
        return (close, asked) if self.verifies else (asked,)

    def sealed(self, randomness: bytes) -> HpkeCiphertext:
        """This aggregator's shares of the sums with its noise, drawn now; the caller stores it, with `changes`.

        Where noise of this price does not fit 64 bits, noise alone, as of curators.
        """
        check_least(self.task, self.total)
        if self.verifies and self.before and self.records.strays(self.batch, self.parameter, self.before[-1]):
            raise self.task.problem(
                ProblemType.BATCH_MISMATCH, "reports were verified at this level that do not count at the one before"
            )
        terms, draw = self.task.task.walk, self.task.draw_noise
        assert terms is not None  # noqa: S101 - as `asked_question` has seen
        assert draw is not None  # noqa: S101 - as a task of questions has it
        noise = TwoServerNoise.within(terms.budget.part(self.question.share), terms.moved(self.question.sensitivity))
        added = draw((noise if noise.fits else noise.widest).each, self.question.size)
        sums = self._shares() if noise.fits else [0] * self.question.size
        shares = [(a + b) % MODULUS_INNER for a, b in zip(sums, residues(added, MODULUS_INNER), strict=True)]
        return sealed(self.task, self.request, encoded_shares(shares), randomness)

    def _shares(self) -> list[int]:
        levels = dict.fromkeys((*self.before, self.parameter))
        found = []
        for agg_param in levels:
            counts = self._total(agg_param) if agg_param != self.parameter else self.total
            check_least(self.task, counts)
            parameter = parameter_of(self.task, agg_param)
            found.append(LevelShares(parameter, counts.share[:, 0].tolist()))
        try:
            return question_shares(self.question, found, MODULUS_INNER)
        except Refused as error:
            raise self.task.problem(ProblemType.INVALID_AGGREGATION_PARAMETER, str(error)) from None

    def _total(self, agg_param: bytes) -> BatchTotal:
        shards = self.records.shards(agg_param, self.batch)
        if agg_param in self.before and not shards:
            raise self.task.problem(ProblemType.BATCH_INVALID, "the shares of this batch have expired")
        return batch_total(self.task.vdaf, agg_param, shards)


def question_of(task: AggregatorTask, agg_param: bytes) -> PrefixQuestion:
    """The question in a collection job of a task of questions; the problem `invalidAggregationParameter` for none."""
    try:
        question = read_question(agg_param)
    except CodecError as error:
        raise task.problem(ProblemType.INVALID_AGGREGATION_PARAMETER, f"this is no question: {error}") from None
    task.check_parameter(question.parameter)
    return question


def asked_question(
    task: AggregatorTask, terms: WalkTerms, records: AggregatorRecords, batch: Batch, request: CollectionJobReq
) -> AskedQuestion:
    """The question of a collection job, or the problem why it may not be asked: it leaves the walk, or nobody paid."""
    question = question_of(task, request.agg_param)
    if parameter_of(task, question.parameter).level + 1 >= task.task.measured.bits:  # type: ignore[union-attr]  # Poplar1's, as its terms have checked
        raise task.problem(ProblemType.INVALID_AGGREGATION_PARAMETER, "the last bit of a path is never asked")
    _check_places(task, terms, question)
    walked = parameters_before(records, batch)
    if walked.keys() - {batch}:
        raise task.problem(ProblemType.BATCH_OVERLAP, "some of these reports were asked about in another batch")
    before = walked.get(batch, ())
    if question.parameter not in before:
        if len(before) >= terms.levels:
            raise task.problem(
                ProblemType.BATCH_OVERLAP, f"the reports were made for {terms.levels} levels, and those were verified"
            )
        task.check_parameter(question.parameter, before)
    _check_depth(task, question, (*before, question.parameter))
    asked = [read_question(each) for each in records.questions(batch)]
    if len(asked) >= MOST_QUESTIONS or _paid_most(asked, question) > 1:
        raise task.problem(ProblemType.BATCH_OVERLAP, "the budget that these reports were made for does not cover this")
    return AskedQuestion(task, records, batch, request, question, before, len(asked))


def withdrawn_question(records: AggregatorRecords, batch: Batch, agg_param: bytes) -> tuple[Change, ...]:
    """What takes the last question of the leader's account back, as the helper has not answered it.

    Nobody has seen anything of it: the leader's share leaves with the helper's alone. Were it kept, the servers would
    count the same cells at different levels from then on, and add up shares that do not belong together.
    """
    asked = records.questions(batch)
    if not asked or asked[-1] != agg_param:
        return ()
    parameter = read_question(agg_param).parameter
    kept = any(read_question(each).parameter == parameter for each in asked[:-1])
    return (WithdrawQuestion(batch, len(asked) - 1, agg_param, None if kept else parameter),)


def parameter_of(task: AggregatorTask, agg_param: bytes) -> Poplar1Parameter:
    """The level and the prefixes that reports are verified with; CodecError for more than their devices were told."""
    assert task.task.walk is not None  # noqa: S101 - a task of questions
    return Poplar1Parameter.from_bytes(agg_param, task.task.walk.candidates)


def _check_places(task: AggregatorTask, terms: WalkTerms, question: PrefixQuestion) -> None:
    """Refuse to count who is nowhere where nobody pays for it."""
    counted = any(int(part.ends.max()) >> (LONGEST - 1) for part in question.parts)
    if counted and terms.nowhere is Nowhere.REFUSED:
        raise task.problem(ProblemType.INVALID_AGGREGATION_PARAMETER, "who is nowhere is never asked for")


def _check_depth(task: AggregatorTask, question: PrefixQuestion, levels: Sequence[bytes]) -> None:
    """Refuse cells that no level reaches, before anything is done for them."""
    deepest = max(parameter_of(task, each).level + 1 for each in levels)
    if max(max(part.lengths) for part in question.parts) > deepest:
        raise task.problem(
            ProblemType.INVALID_AGGREGATION_PARAMETER, "cells are deeper than every level that is verified"
        )


def _paid_most(asked: Sequence[PrefixQuestion], question: PrefixQuestion) -> Fraction:
    """The largest share of the budget that somebody in the question's cells has paid, with this question."""
    steps = Steps.level(Fraction(0))
    for each in asked:
        steps = steps.raised(*each.stretches, each.share)
    return steps.most(*question.stretches) + question.share


@dataclass(frozen=True)
class CollectedParameter:
    """A batch that may be collected with the parameter of a collection job: make one with `batch_collection`."""

    task: AggregatorTask
    records: AggregatorRecords = field(repr=False)
    batch: Batch
    request: CollectionJobReq

    verifies = True
    """Its reports are verified for it."""

    @property
    def parameter(self) -> bytes:
        """What reports are verified with."""
        return self.request.agg_param

    @property
    def last(self) -> bool:
        """Whether the batch cannot be collected again, although it could have been several times."""
        most = self.task.collections
        return most > 1 and len(self.records.collected(self.batch)) + 1 == most

    @cached_property
    def total(self) -> BatchTotal:
        """This aggregator's share of the sums, without noise, and the reports."""
        return batch_total(self.task.vdaf, self.parameter, self.records.shards(self.parameter, self.batch))

    @property
    def changes(self) -> tuple[Change, ...]:
        """What is written with the answer: the batch is closed."""
        return (CloseBatch(self.batch, self.parameter, self.total.count),)

    def sealed(self, randomness: bytes) -> HpkeCiphertext:
        """The share with its noise, drawn now; the caller stores it, with `changes`."""
        return sealed_share(self.task, self.request, self.total, randomness)


def batch_collection(
    task: AggregatorTask, records: AggregatorRecords, batch: Batch, request: CollectionJobReq
) -> CollectedParameter | AskedQuestion:
    """What a collection job may be given of a batch, or the problem why it may not be given anything."""
    if task.task.walk is not None:
        return asked_question(task, task.task.walk, records, batch, request)
    check_collectable(task, records, batch, request.agg_param)
    return CollectedParameter(task, records, batch, request)
