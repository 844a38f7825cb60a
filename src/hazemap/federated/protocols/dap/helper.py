"""The helper: verifies with the leader what it is sent, and gives its share of a batch once (DAP-18, 4.5 and 4.6.3).

No I/O, clock or randomness: a message, the time and what was written before go in; what to write and what to answer
come out. Every request may come again: its answer is the first one's, found by the hash of its bytes.
"""

from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise

from hazemap.errors import CodecError
from hazemap.federated.protocols.dap.aggregation_messages import (
    LEADER_SELECTED_BATCH_ID,
    AggregationJobContinueReq,
    AggregationJobInitReq,
    AggregationJobResp,
    VerifyInit,
    VerifyResp,
)
from hazemap.federated.protocols.dap.aggregator_changes import (
    AddAggregateShare,
    AddJob,
    AddShards,
    AdvanceJob,
    AggregationJob,
    AggregatorRecords,
    Change,
    ClaimReports,
    CountReports,
    DropJob,
    Outcome,
)
from hazemap.federated.protocols.dap.aggregator_task import (
    VERIFICATION_KEY_ID,
    AggregatorTask,
    check_no_extensions,
    parsed,
    resource_id,
)
from hazemap.federated.protocols.dap.basic_types import BATCH_ID, ReportError
from hazemap.federated.protocols.dap.batch_collection import batch_collection, check_least
from hazemap.federated.protocols.dap.batches import Batch, OutputShare, bucket_shards
from hazemap.federated.protocols.dap.collection_messages import AggregateShare, AggregateShareReq
from hazemap.federated.protocols.dap.leader_uploads import ineligible_reports
from hazemap.federated.protocols.dap.problem_types import VERIFIED, ProblemType, rejection
from hazemap.federated.protocols.dap.report_checks import (
    CredentialChecks,
    DecryptionKeys,
    RejectedReport,
    check_time,
    opened_share,
)
from hazemap.federated.protocols.dap.vdaf_configuration import UnsupportedExtensions, check_extensions
from hazemap.vdaf.ping_pong import Continued, Finished, Rejected, State, helper_continued, helper_init
from hazemap.vdaf.vdaf import ReportShare


@dataclass(frozen=True)
class ContinueJob:
    """The leader's next step of a job."""

    job_id: bytes
    body: bytes


@dataclass(frozen=True)
class _Report:
    """What is known of a report besides its shares."""

    report_id: bytes
    time: int
    bucket: bytes


@dataclass(frozen=True)
class _Going:
    """A report that needs another step."""

    report: _Report
    state: Continued


@dataclass(frozen=True)
class _Step:
    """What one step of a job came to, report by report."""

    responses: list[VerifyResp]
    shares: list[OutputShare]
    going: dict[bytes, _Going]
    rejected: dict[bytes, ReportError]

    @classmethod
    def of(cls, reports: list[_Report], states: dict[bytes, State], refused: dict[bytes, ReportError]) -> "_Step":
        """Of reports in the leader's order: the states of those that were verified, the others with the reason."""
        step = cls([], [], {}, {})
        for report in reports:
            report_id = report.report_id
            state = states.get(report_id)
            if state is None or isinstance(state, Rejected):
                error = refused[report_id] if state is None else rejection(state)
                step.rejected[report_id] = error
                step.responses.append(VerifyResp.rejected(report_id, error))
                continue
            if isinstance(state, Continued):
                step.going[report_id] = _Going(report, state)
            else:
                step.shares.append(OutputShare(report_id, report.time, report.bucket, state.out_share))
            step.responses.append(
                VerifyResp.finished(report_id)
                if isinstance(state, Finished)
                else VerifyResp.continued(report_id, state.outbound)
            )
        return step

    def answer(self) -> bytes:
        """For the leader."""
        return AggregationJobResp(tuple(self.responses)).to_bytes()


class Helper:
    """The helper of one task, for one message: make another one for the next."""

    def __init__(self, task: AggregatorTask, keys: DecryptionKeys, records: AggregatorRecords) -> None:
        self._task, self._keys, self._records = task, keys, records

    def init_job(self, body: bytes, now: int, room: int) -> Outcome:
        """Answer an `AggregationJobInitReq`. There is `room` for so many credentials that are not spent yet."""
        digest = sha256(body).digest()
        job_id = resource_id(self._task, body)
        if (known := self._records.job(job_id)) is not None:
            return Outcome(known.answer, job_id)
        request, batch_id = self._read_init(body)
        task, agg_param = self._task, request.agg_param
        task.check_parameter(agg_param)
        shares = [each.report_share for each in request.verify_inits]
        reports = [(each.metadata, each.public_share) for each in shares]
        checks = CredentialChecks.of(task, self._records, reports, room)
        step = self._verify_all(request, batch_id, now, checks)
        answer = step.answer()
        buckets = [task.bucket(each.metadata.time, batch_id) for each in shares]
        batch = Batch(min(buckets), max(buckets))
        job = AggregationJob(job_id, agg_param, batch, 0, digest, answer, body if step.going else None)
        times = {each.metadata.report_id: each.metadata.time for each in shares}
        begun = tuple(each for each in times.items() if step.rejected.get(each[0]) in VERIFIED)
        claim = (ClaimReports(job_id, task.level(agg_param), begun),) if begun else ()
        claim = (*claim, *checks.changes({report_id for report_id, _ in begun}))
        changes = (AddJob(job), *claim, *self._committed(job, step.shares))
        return Outcome(answer, job_id, changes, step.going, tuple(step.rejected.values()))

    def continue_job(self, message: ContinueJob, state: object = None) -> Outcome:
        """Answer an `AggregationJobContinueReq`; `state` is that of the outcome before, where it is still there."""
        task, job = self._task, self._records.job(message.job_id, whole=not isinstance(state, dict))
        if job is None:
            raise task.problem(ProblemType.UNRECOGNIZED_AGGREGATION_JOB, "there is no such aggregation job")
        request = parsed(task, AggregationJobContinueReq, message.body)
        digest = sha256(message.body).digest()
        if request.step == 0:
            raise task.problem(ProblemType.INVALID_MESSAGE, "the step of a job that goes on is 1 or more")
        if request.step == job.step:
            if digest != job.digest:
                raise task.problem(ProblemType.STEP_MISMATCH, "this step was asked for with other contents")
            return Outcome(job.answer, job.job_id)
        if request.step != job.step + 1 or job.request is None:
            raise task.problem(ProblemType.STEP_MISMATCH, f"the job is at step {job.step}, not before {request.step}")
        verifying = state if isinstance(state, dict) else self._taken_up(job, job.request)
        order = {report_id: place for place, report_id in enumerate(verifying)}
        places = [order.get(each.report_id, -1) for each in request.verify_continues]
        if -1 in places or any(left >= right for left, right in pairwise(places)):
            raise task.problem(ProblemType.INVALID_MESSAGE, "the reports are not those of the step before, in order")
        return self._continued(job, request, digest, verifying)

    def aggregate_share(self, body: bytes, randomness: bytes) -> Outcome:
        """Answer an `AggregateShareReq`: noise is drawn, and the batch is closed, in one change."""
        task, records = self._task, self._records
        share_id = resource_id(task, body)
        if (known := records.aggregate_share(share_id)) is not None:
            return Outcome(known[1], share_id)
        request = parsed(task, AggregateShareReq, body)
        asked, selector = request.collection_job_req, request.batch_selector
        if selector.batch_mode is not task.task.batch_mode:
            raise task.problem(ProblemType.INVALID_MESSAGE, "the task has batches of another mode")
        try:
            batch = Batch.of(selector.batch())
            if not selector.answers(asked.query):
                raise CodecError("the batch is not one that the collector asked for")
        except CodecError as error:
            raise task.problem(ProblemType.BATCH_INVALID, str(error)) from None
        check_no_extensions(task, asked.extensions)
        collection = batch_collection(task, records, batch, asked)
        task.check_parameter(collection.parameter)
        total = collection.total
        check_least(task, total)
        if (total.count, total.checksum) != (request.report_count, request.checksum):
            raise task.problem(
                ProblemType.BATCH_MISMATCH,
                f"the batch has {total.count} reports here and {request.report_count} at the leader, or others",
            )
        answer = AggregateShare(collection.sealed(randomness)).to_bytes()
        stored = AddAggregateShare(share_id, sha256(body).digest(), answer)
        return Outcome(answer, share_id, (*collection.changes, stored))

    def job(self, job_id: bytes, step: int) -> Outcome:
        """The answer of a job at its step, for a leader that polls."""
        job = self._records.job(job_id)
        if job is None:
            raise self._task.problem(ProblemType.UNRECOGNIZED_AGGREGATION_JOB, "there is no such aggregation job")
        if job.step != step:
            raise self._task.problem(ProblemType.STEP_MISMATCH, f"the job is at step {job.step}, not {step}")
        return Outcome(job.answer, job_id)

    def drop_job(self, job_id: bytes) -> Outcome:
        """Forget a job that the leader has abandoned; what it has counted stays counted."""
        return Outcome(b"", job_id, (DropJob(job_id),) if self._records.job(job_id) else ())

    def _read_init(self, body: bytes) -> tuple[AggregationJobInitReq, bytes | None]:
        task = self._task
        request = parsed(task, AggregationJobInitReq, body)
        try:
            found = check_extensions(request.extensions, () if task.by_time else (LEADER_SELECTED_BATCH_ID,))
        except UnsupportedExtensions as error:
            raise task.problem(ProblemType.UNSUPPORTED_EXTENSION, str(error), error.types) from None
        except CodecError as error:
            raise task.problem(ProblemType.INVALID_MESSAGE, str(error)) from None
        batch_id = None if task.by_time else found.get(LEADER_SELECTED_BATCH_ID, b"")
        if batch_id is not None and len(batch_id) != BATCH_ID:
            raise task.problem(ProblemType.INVALID_MESSAGE, f"a job names its batch by {BATCH_ID} bytes")
        ids = [each.report_share.metadata.report_id for each in request.verify_inits]
        if request.verification_key_id != VERIFICATION_KEY_ID:
            raise task.problem(ProblemType.INVALID_MESSAGE, "the task has one verification key, with the id 0")
        if not ids or len(set(ids)) != len(ids):
            raise task.problem(ProblemType.INVALID_MESSAGE, "a job has reports, and each of them once")
        return request, batch_id

    def _verify_all(
        self,
        request: AggregationJobInitReq,
        batch_id: bytes | None,
        now: int | None,
        checks: CredentialChecks | None,
        taken_up: frozenset[bytes] | None = None,
    ) -> _Step:
        """Verify the reports of a first request, or, of a job that is taken up again, those that went on.

        The `checks` of credentials were made before a job was begun, and their serials spent then.
        """
        task, agg_param = self._task, request.agg_param
        inits = {
            each.report_share.metadata.report_id: each
            for each in request.verify_inits
            if taken_up is None or each.report_share.metadata.report_id in taken_up
        }
        buckets = {
            report_id: task.bucket(each.report_share.metadata.time, batch_id) for report_id, each in inits.items()
        }
        again = taken_up is not None
        refused = ineligible_reports(task, self._records, agg_param, buckets, claimed=again)
        opened, earliest = dict[bytes, ReportShare](), self._records.forgotten_before()
        for report_id, each in inits.items():
            if report_id in refused and not again:
                continue
            try:
                if now is not None:  # those of a job that is taken up again were in time when it began
                    check_time(task, each.report_share.metadata.time, now, earliest)
                shared = each.report_share
                if checks is not None:
                    checks.check(shared.metadata, shared.public_share)
                opened[report_id] = ReportShare(report_id, shared.public_share, self._open(each))
                if checks is not None:
                    checks.spend(shared.metadata, shared.public_share)
            except RejectedReport as rejected:
                refused[report_id] = rejected.error
        states = helper_init(
            task.vdaf,
            task.verify_key,
            task.task.context,
            agg_param,
            list(opened.values()),
            [inits[report_id].payload for report_id in opened],
        )
        reports = [
            _Report(report_id, inits[report_id].report_share.metadata.time, buckets[report_id]) for report_id in inits
        ]
        return _Step.of(reports, dict(zip(opened, states, strict=True)), refused)

    def _open(self, init: VerifyInit) -> bytes:
        share = init.report_share
        return opened_share(self._task, self._keys, share.metadata, share.public_share, share.encrypted_input_share)

    def _taken_up(self, job: AggregationJob, body: bytes) -> dict[bytes, _Going]:
        """The states of a job that were in memory, from its request and its first answer."""
        if job.step:
            raise self._task.problem(ProblemType.STEP_MISMATCH, "this job cannot be gone on with: abandon it")
        request, batch_id = self._read_init(body)
        answered = AggregationJobResp.from_bytes(job.answer).verify_resps
        accepted = frozenset(each.report_id for each in answered if each.payload)
        return self._verify_all(request, batch_id, None, None, accepted).going

    def _continued(
        self, job: AggregationJob, request: AggregationJobContinueReq, digest: bytes, before: dict[bytes, _Going]
    ) -> Outcome:
        task, agg_param = self._task, job.agg_param
        reports = [before[each.report_id].report for each in request.verify_continues]
        buckets = {report.report_id: report.bucket for report in reports}
        refused = ineligible_reports(task, self._records, agg_param, buckets, claimed=True)
        inbound = {each.report_id: each.payload for each in request.verify_continues if each.report_id not in refused}
        states = helper_continued(
            task.vdaf,
            task.task.context,
            agg_param,
            [before[report_id].state for report_id in inbound],
            list(inbound.values()),
        )
        step = _Step.of(reports, dict(zip(inbound, states, strict=True)), refused)
        answer = step.answer()
        whole = self._records.job(job.job_id) if step.going else None
        kept = None if whole is None else whole.request
        moved = AggregationJob(job.job_id, agg_param, job.batch, request.step, digest, answer, kept)
        changes = (AdvanceJob(moved, job.step), *self._committed(moved, step.shares))
        return Outcome(answer, job.job_id, changes, step.going, tuple(step.rejected.values()))

    def _committed(self, job: AggregationJob, shares: list[OutputShare]) -> tuple[Change, ...]:
        if not shares:
            return ()
        level = self._task.level(job.agg_param)
        counted = CountReports(job.job_id, level, tuple(each.report_id for each in shares))
        return counted, AddShards(job.job_id, job.agg_param, bucket_shards(self._task.vdaf, job.agg_param, shares))
