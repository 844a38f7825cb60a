"""The leader verifies reports with the helper, and answers collectors (draft-ietf-ppm-dap-18, sections 4.5 and 4.6).

No I/O, clock or randomness. A job's claims and all that is needed to take it up again are written before its request is
sent, the same bytes each time until it is answered. Of the first request, which repeats what was uploaded, only the
reports' ids are written, and its digest: a leader that was ended makes it again from the reports. A leader that would
write other bytes, after an upgrade, gives the job up.

A collection job is closed in one change: noise is drawn, the leader's share is sealed, its shards are scrubbed and the
request to the helper is written, before anybody sees any of it. From then on the request is sent, the same bytes each
time, until the helper answers.
"""

from dataclasses import dataclass, replace
from hashlib import sha256

from hazemap.errors import CodecError, Refused
from hazemap.federated.protocols.dap.aggregation_messages import (
    LEADER_SELECTED_BATCH_ID,
    AggregationJobContinueReq,
    AggregationJobInitReq,
    AggregationJobResp,
    DapReportShare,
    VerifyContinue,
    VerifyInit,
    VerifyResp,
    VerifyRespType,
)
from hazemap.federated.protocols.dap.aggregator_changes import (
    AddJob,
    AddShards,
    AdvanceJob,
    AggregationJob,
    Change,
    ClaimReports,
    CollectionJob,
    CountReports,
    DropJob,
    LeaderRecords,
    Outcome,
    PutCollection,
    ScrubBatch,
    ScrubReports,
)
from hazemap.federated.protocols.dap.aggregator_task import (
    VERIFICATION_KEY_ID,
    AggregatorTask,
    check_no_extensions,
    parsed,
    resource_id,
)
from hazemap.federated.protocols.dap.basic_types import REPORT_ID, HpkeCiphertext, ReportError
from hazemap.federated.protocols.dap.batch_collection import batch_collection, question_of, withdrawn_question
from hazemap.federated.protocols.dap.batches import Batch, OutputShare, asked_batch, bucket_shards
from hazemap.federated.protocols.dap.collection_messages import (
    AggregateShare,
    AggregateShareReq,
    CollectionJobReq,
    CollectionJobResp,
)
from hazemap.federated.protocols.dap.leader_uploads import ineligible_reports, parameters_before
from hazemap.federated.protocols.dap.problem_types import PREFIX, DapProblem, ProblemDocument, ProblemType, rejection
from hazemap.federated.protocols.dap.report_checks import DecryptionKeys, RejectedReport, check_time, opened_share
from hazemap.federated.protocols.dap.upload_messages import DapReport
from hazemap.federated.protocols.dap.vdaf_configuration import Extension
from hazemap.vdaf.ping_pong import Continued, Finished, FinishedWithOutbound, Rejected, leader_continued, leader_init
from hazemap.vdaf.vdaf import ReportShare

REJECTED_JOB = b""
"""The job that claims reports which are verified by none."""


class AbandonedJob(Refused):
    """The helper does not keep to the protocol in a job: the leader gives it up."""


@dataclass(frozen=True)
class _Verified:
    """A report under verification."""

    report: DapReport
    bucket: bytes
    state: Continued | FinishedWithOutbound


class LeaderJobs:
    """The aggregation jobs of one task's leader."""

    def __init__(self, task: AggregatorTask, keys: DecryptionKeys, records: LeaderRecords) -> None:
        self._task, self._keys, self._records = task, keys, records

    def make_job(
        self, agg_param: bytes, now: int, most: int, batch: Batch | None = None, batch_id: bytes | None = None
    ) -> Outcome | None:
        """A job of reports that wait, at most so many; None if none do. What the outcome says is to be sent.

        An outcome without a message is of reports that were all rejected.
        """
        task, level = self._task, self._task.level(agg_param)
        waiting = self._records.waiting(level, batch, most)
        if not waiting:
            return None
        states, rejected = self._begun(agg_param, waiting, batch_id, now)
        gone = ScrubReports(tuple(rejected))
        times = {each.metadata.report_id: each.metadata.time for each in waiting}
        lost = tuple((report_id, times[report_id]) for report_id in rejected)
        none = (ClaimReports(REJECTED_JOB, level, lost), gone) if rejected else ()
        errors = tuple(rejected.values())
        if not states:
            return Outcome(b"", changes=none, rejected=errors)
        body = self._request(agg_param, batch_id, states)
        job_id = resource_id(task, body)
        buckets = [each.bucket for each in states.values()]
        whole = Batch(min(buckets), max(buckets))
        job = AggregationJob(job_id, agg_param, whole, 0, sha256(body).digest(), b"", b"".join(states))
        claim = ClaimReports(job_id, level, tuple((report_id, times[report_id]) for report_id in states))
        return Outcome(body, job_id, (AddJob(job), claim, *none), states, errors)

    def job_answered(self, job_id: bytes, peer: bytes, body: bytes, state: object = None) -> Outcome:
        """Go on with what the helper answers: an outcome without a message is of a job that is done.

        `AbandonedJob` if the helper does not keep to the protocol.
        """
        job = self._records.job(job_id, whole=not isinstance(state, dict))
        if job is None or job.request is None:
            return Outcome(b"", job_id)
        before = state if isinstance(state, dict) else self._taken_up(job)
        try:
            answers = AggregationJobResp.from_bytes(body).verify_resps
        except CodecError as error:
            raise AbandonedJob(f"the helper's answer is no answer: {error}") from None
        if [each.report_id for each in answers] != list(before):
            raise AbandonedJob("the helper's answer is not about the reports of the request, in their order")
        agg_param = job.agg_param
        after = self._next(agg_param, before, {each.report_id: each for each in answers})
        shares, verifying = list[OutputShare](), dict[bytes, _Verified]()
        rejected = dict[bytes, ReportError]()
        for report_id, found in after.items():
            report = before[report_id]
            if isinstance(found, ReportError):
                rejected[report_id] = found
            elif isinstance(found, Finished):
                shares.append(OutputShare(report_id, report.report.metadata.time, report.bucket, found.out_share))
            else:
                verifying[report_id] = _Verified(report.report, report.bucket, found)
        request = None
        if verifying:
            step = tuple(VerifyContinue(report_id, each.state.outbound) for report_id, each in verifying.items())
            request = AggregationJobContinueReq(job.step + 1, step).to_bytes()
        digest = job.digest if request is None else sha256(request).digest()
        moved = AggregationJob(job_id, agg_param, job.batch, job.step + 1, digest, body, request, peer)
        committed = self._committed(moved, shares, rejected)
        changes = (AdvanceJob(moved, job.step), *committed)
        return Outcome(request or b"", job_id, changes, verifying, tuple(rejected.values()))

    def begun_again(self, job_id: bytes) -> Outcome | None:
        """The first request of a job that is not in memory any more, with its state; None for a job that is over.

        `AbandonedJob` if it does not come out as it was.
        """
        job = self._records.job(job_id)
        if job is None or job.request is None or job.step:
            return None
        states = self._taken_up(job)
        body = self._request(job.agg_param, self._batch_id(job), states)
        if sha256(body).digest() != job.digest:
            raise AbandonedJob("the request of a job does not come out as it was")
        return Outcome(body, job_id, state=states)

    def drop_job(self, job_id: bytes) -> Outcome:
        """Give a job up. Its reports are not verified again: nobody knows what the helper has counted."""
        return Outcome(b"", job_id, (DropJob(job_id),))

    def _begun(
        self, agg_param: bytes, reports: list[DapReport], batch_id: bytes | None, now: int
    ) -> tuple[dict[bytes, _Verified], dict[bytes, ReportError]]:
        task = self._task
        buckets = {each.metadata.report_id: task.bucket(each.metadata.time, batch_id) for each in reports}
        refused = ineligible_reports(task, self._records, agg_param, buckets)
        taken = [each for each in reports if each.metadata.report_id not in refused]
        started, rejected = self._started(agg_param, taken, now)
        states = {
            each.metadata.report_id: _Verified(each, buckets[each.metadata.report_id], started[each.metadata.report_id])
            for each in taken
            if each.metadata.report_id in started
        }
        return states, refused | rejected

    def _started(
        self, agg_param: bytes, reports: list[DapReport], now: int | None
    ) -> tuple[dict[bytes, Continued], dict[bytes, ReportError]]:
        task = self._task
        shares, rejected = list[ReportShare](), dict[bytes, ReportError]()
        earliest = self._records.forgotten_before()
        for each in reports:
            report_id = each.metadata.report_id
            try:
                if now is not None:  # those of a job that is taken up again were in time when it began
                    check_time(task, each.metadata.time, now, earliest)
                share = opened_share(task, self._keys, each.metadata, each.public_share, each.leader_share)
                shares.append(ReportShare(report_id, each.public_share, share))
            except RejectedReport as error:
                rejected[report_id] = error.error
        states = dict[bytes, Continued]()
        begun = leader_init(task.vdaf, task.verify_key, task.task.context, agg_param, shares)
        for share_, state in zip(shares, begun, strict=True):
            if isinstance(state, Rejected):
                rejected[share_.nonce] = rejection(state)
            else:
                states[share_.nonce] = state
        return states, rejected

    def _request(self, agg_param: bytes, batch_id: bytes | None, states: dict[bytes, _Verified]) -> bytes:
        extensions = () if batch_id is None else (Extension(LEADER_SELECTED_BATCH_ID, batch_id),)
        inits = tuple(
            VerifyInit(
                DapReportShare(each.report.metadata, each.report.public_share, each.report.helper_share),
                each.state.outbound,
            )
            for each in states.values()
        )
        return AggregationJobInitReq(VERIFICATION_KEY_ID, agg_param, extensions, inits).to_bytes()

    def _next(
        self, agg_param: bytes, before: dict[bytes, _Verified], answers: dict[bytes, VerifyResp]
    ) -> dict[bytes, Continued | FinishedWithOutbound | Finished | ReportError]:
        """Each report after the helper's answer about it."""
        after = dict[bytes, Continued | FinishedWithOutbound | Finished | ReportError]()
        states = dict[bytes, Continued]()
        for report_id, answer in answers.items():
            state = before[report_id].state
            if answer.error is not None:
                after[report_id] = answer.error
            elif isinstance(state, FinishedWithOutbound) and answer.type is VerifyRespType.FINISH:
                after[report_id] = Finished(state.out_share)
            elif isinstance(state, Continued) and answer.type is VerifyRespType.CONTINUE:
                states[report_id] = state
            else:
                raise AbandonedJob("the helper's answer does not fit the step of the job")
        inbound = [answers[report_id].payload for report_id in states]
        context = self._task.task.context
        new = leader_continued(self._task.vdaf, context, agg_param, list(states.values()), inbound)
        for report_id, found in zip(states, new, strict=True):
            after[report_id] = rejection(found) if isinstance(found, Rejected) else found
        return {report_id: after[report_id] for report_id in answers}

    def _taken_up(self, job: AggregationJob) -> dict[bytes, _Verified]:
        """The states of a job that were in memory, from its reports and the helper's first answer.

        Reports whose shares do not open any more (their key has expired) end the job.
        """
        if job.step > 1 or job.request is None:
            raise AbandonedJob("a job of more than two steps cannot be taken up again")
        answers = dict[bytes, VerifyResp]()
        if job.step == 0:
            ids = [job.request[at : at + REPORT_ID] for at in range(0, len(job.request), REPORT_ID)]
        else:
            going = AggregationJobContinueReq.from_bytes(job.request).verify_continues
            ids = [each.report_id for each in going]
            every = {each.report_id: each for each in AggregationJobResp.from_bytes(job.answer).verify_resps}
            answers = {report_id: every[report_id] for report_id in ids}
        found = self._records.reports(ids)
        if set(found) != set(ids):
            raise AbandonedJob("reports of a job are not whole any more")
        started, rejected = self._started(job.agg_param, [found[report_id] for report_id in ids], None)
        batch_id = self._batch_id(job)
        if rejected:
            raise AbandonedJob("reports of a job can no longer be opened")
        states = {
            report_id: _Verified(each, self._task.bucket(each.metadata.time, batch_id), started[report_id])
            for report_id, each in ((report_id, found[report_id]) for report_id in ids)
        }
        for report_id, state in self._next(job.agg_param, states, answers).items() if answers else ():
            if isinstance(state, Finished | ReportError):
                raise AbandonedJob("a job that was taken up again came to something else")
            states[report_id] = _Verified(states[report_id].report, states[report_id].bucket, state)
        return states

    def _batch_id(self, job: AggregationJob) -> bytes | None:
        """The batch that a job's reports go to, where the leader chooses."""
        return None if self._task.by_time else job.batch.first

    def _committed(
        self, job: AggregationJob, shares: list[OutputShare], rejected: dict[bytes, ReportError]
    ) -> tuple[Change, ...]:
        task = self._task
        changes = list[Change]()
        counted = tuple(each.report_id for each in shares)
        if shares:
            changes.append(CountReports(job.job_id, task.level(job.agg_param), counted))
            changes.append(AddShards(job.job_id, job.agg_param, bucket_shards(task.vdaf, job.agg_param, shares)))
        kept = task.collections > 1 or task.task.walk is not None  # until its last level is answered
        gone = tuple(rejected) if kept else (*counted, *rejected)
        return (*changes, ScrubReports(gone)) if gone else tuple(changes)


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
