"""The leader answers a collector (draft-ietf-ppm-dap-18, section 4.6): asked, closed, done.

A collection job is closed in one change: noise is drawn, the leader's share is sealed, its shards are scrubbed and the
request to the helper is written, before anybody sees any of it. From then on the request is sent, the same bytes each
time, until the helper answers.
"""

from dataclasses import replace

from hazemap.errors import CodecError
from hazemap.federated.protocols.dap.aggregator_changes import CollectionJob, Outcome, PutCollection, ScrubBatch
from hazemap.federated.protocols.dap.aggregator_records import LeaderRecords
from hazemap.federated.protocols.dap.aggregator_task import AggregatorTask
from hazemap.federated.protocols.dap.basic_types import HpkeCiphertext
from hazemap.federated.protocols.dap.batch_collection import batch_collection
from hazemap.federated.protocols.dap.batch_questions import question_of, withdrawn_question
from hazemap.federated.protocols.dap.batches import Batch, asked_batch
from hazemap.federated.protocols.dap.collection_messages import (
    AggregateShare,
    AggregateShareReq,
    CollectionJobReq,
    CollectionJobResp,
)
from hazemap.federated.protocols.dap.problem_types import PREFIX, DapProblem, ProblemDocument, ProblemType
from hazemap.federated.protocols.dap.report_eligibility import parameters_before
from hazemap.federated.protocols.dap.request_checks import check_no_extensions, parsed
from hazemap.federated.protocols.dap.resource_ids import resource_id


class FailedCollection(DapProblem):
    """A collection job that failed, with the problem document that says of what."""

    def __init__(self, document: ProblemDocument) -> None:
        super().__init__(document.problem or ProblemType.INVALID_MESSAGE, document.detail)
        self._document = document

    def document(self) -> ProblemDocument:
        """The problem as it was, the leader's own or the helper's."""
        return self._document


class LeaderCollections:
    """The collection jobs of one task's leader."""

    def __init__(self, task: AggregatorTask, records: LeaderRecords) -> None:
        self._task, self._records = task, records

    def asked(self, body: bytes) -> Outcome:
        """Answer a `CollectionJobReq`: with nothing yet, or, sent again, with how the job is.

        One that failed for too few reports is tried again.
        """
        task, records = self._task, self._records
        job_id = resource_id(task, body)
        known = records.collection(job_id)
        if known is not None and not _too_few(known):
            return self.polled(job_id)
        request = parsed(task, CollectionJobReq, body)
        if request.query.batch_mode is not task.task.batch_mode:
            raise task.problem(ProblemType.INVALID_MESSAGE, "the task has batches of another mode")
        task.check_parameter(
            request.agg_param if task.task.walk is None else question_of(task, request.agg_param).parameter
        )
        try:
            batch = asked_batch(request.query)
        except CodecError as error:
            raise task.problem(ProblemType.BATCH_INVALID, str(error)) from None
        if batch is not None:
            batch_collection(task, records, batch, request)
        check_no_extensions(task, request.extensions)
        put = PutCollection(CollectionJob(job_id, body, batch), None if known is None else known.state)
        return Outcome(b"", job_id, (put,))

    def polled(self, job_id: bytes) -> Outcome:
        """How a job is: its answer, or nothing yet; `FailedCollection` if it failed."""
        job = self._records.collection(job_id)
        if job is None:
            raise self._task.problem(ProblemType.INVALID_MESSAGE, "there is no such collection job")
        if job.problem is not None:
            raise FailedCollection(ProblemDocument.from_json(job.problem))
        return Outcome(job.answer or b"", job_id)

    def closed(self, job_id: bytes, now: int, randomness: bytes) -> Outcome | None:
        """Close a job's batch if that can be done now: the outcome's message is for the helper. None: wait.

        `randomness` is 32 fresh bytes, for sealing. Noise is drawn by the task.
        """
        task, records, job = self._task, self._records, self._records.collection(job_id)
        if job is None or job.state != "asked":
            return None
        request = CollectionJobReq.from_bytes(job.request)
        batch = job.batch or self._next_batch(request.agg_param)
        if batch is None or self._waits(request.agg_param, batch):
            return None
        try:
            collection = batch_collection(task, records, batch, request)
            if collection.verifies and self._verifying(collection.parameter, batch, job.batch is not None):
                return None
            total = collection.total
            over = job.batch is not None and batch.interval.end <= task.time(now)
            if total.count < max(1, task.least) and not over:
                return None  # more may come
            share = collection.sealed(randomness)
        except DapProblem as problem:
            return self.failed(job_id, problem.document())
        body = AggregateShareReq(request, batch.selector(), total.count, total.checksum).to_bytes()
        new = replace(
            job,
            batch=batch,
            helper_request=body,
            count=total.count,
            interval=total.interval,
            leader_share=share.to_bytes(),
        )
        scrub = (ScrubBatch(batch),) if collection.last and task.task.walk is None else ()
        return Outcome(body, job_id, (*collection.changes, *scrub, PutCollection(new, "asked")))

    def _waits(self, agg_param: bytes, batch: Batch) -> bool:
        """Whether a batch is not to be closed yet, which is seen without a look at the whole account of its questions.

        Both servers answer questions in one order, from the same levels; and reports may be under verification.
        """
        task, records = self._task, self._records
        if task.task.walk is not None and records.with_helper(batch):
            return True
        parameter = task.verified_with(agg_param)
        return records.open_jobs(parameter, batch) > 0 and all(
            done != parameter for _, done in records.collected(batch)
        )

    def _verifying(self, parameter: bytes, batch: Batch, by_time: bool) -> bool:
        """Whether reports of a batch are still to be verified, or under verification."""
        if self._records.open_jobs(parameter, batch) > 0:
            return True
        return by_time and bool(self._records.waiting(self._task.level(parameter), batch, 1))

    def _next_batch(self, agg_param: bytes) -> Batch | None:
        ready = self._records.batches_ready(agg_param, self._task.least)
        return Batch(ready[0], ready[0]) if ready else None

    def helper_answered(self, job_id: bytes, body: bytes) -> Outcome:
        """The helper's aggregate share has come; a body that is none fails the job."""
        job = self._records.collection(job_id)
        if job is None or job.state != "closed" or job.interval is None or job.leader_share is None:
            return Outcome(b"", job_id)
        try:
            theirs = AggregateShare.from_bytes(body).encrypted_aggregate_share
        except CodecError:
            problem = self._task.problem(ProblemType.INVALID_MESSAGE, "the helper's aggregate share is none")
            return self.failed(job_id, problem.document())
        ours = HpkeCiphertext.from_bytes(job.leader_share)
        answer = CollectionJobResp(job.count, job.interval, ours, theirs).to_bytes()
        put = PutCollection(replace(job, answer=answer, leader_share=None), "closed")
        return Outcome(answer, job_id, (put, *self._walked(job)))

    def refused(self, job_id: bytes, document: ProblemDocument) -> Outcome:
        """The helper refuses a job that is closed here, and has answered nothing: of a question nothing is kept."""
        outcome, job = self.failed(job_id, document), self._records.collection(job_id)
        if job is None or job.state != "closed" or job.batch is None or self._task.task.walk is None:
            return outcome
        asked = CollectionJobReq.from_bytes(job.request).agg_param
        withdrawn = withdrawn_question(self._records, job.batch, asked)
        return replace(outcome, changes=(*outcome.changes, *withdrawn))

    def _walked(self, job: CollectionJob) -> tuple[ScrubBatch, ...]:
        """Reports of a walk are not needed any more once both servers have answered about its last level."""
        if self._task.task.walk is None or job.batch is None:
            return ()
        levels = parameters_before(self._records, job.batch).get(job.batch, ())
        return (ScrubBatch(job.batch),) if len(levels) == self._task.collections else ()

    def failed(self, job_id: bytes, document: ProblemDocument) -> Outcome:
        """The job has failed, here or at the helper. A batch that was closed stays closed."""
        job = self._records.collection(job_id)
        if job is None:
            return Outcome(b"", job_id)
        put = PutCollection(replace(job, problem=document.to_json(), leader_share=None), job.state)
        return Outcome(b"", job_id, (put,))


def _too_few(job: CollectionJob) -> bool:
    return (
        job.problem is not None
        and job.helper_request is None
        and ProblemDocument.from_json(job.problem).type == PREFIX + ProblemType.INVALID_BATCH_SIZE
    )
