"""The leader verifies reports with the helper (draft-ietf-ppm-dap-18, section 4.5): one job after another.

No I/O, clock or randomness. A job's claims and all that is needed to take it up again are written before its request is
sent, the same bytes each time until it is answered. Of the first request, which repeats what was uploaded, only the
reports' ids are written, and its digest: a leader that was ended makes it again from the reports. One that would write
other bytes, after an upgrade, gives the job up.
"""

from dataclasses import dataclass
from hashlib import sha256

from hazemap.errors import CodecError, Refused
from hazemap.federated.protocols.dap.aggregation_messages import (
    LEADER_SELECTED_BATCH_ID,
    AggregationJobContinueReq,
    AggregationJobInitReq,
    AggregationJobResp,
    VerifyContinue,
    VerifyInit,
    VerifyResp,
    VerifyRespType,
)
from hazemap.federated.protocols.dap.aggregation_messages import ReportShare as SentShare
from hazemap.federated.protocols.dap.aggregator_changes import (
    AddJob,
    AddShards,
    AdvanceJob,
    AggregationJob,
    Change,
    ClaimReports,
    CountReports,
    DropJob,
    Outcome,
    ScrubReports,
)
from hazemap.federated.protocols.dap.aggregator_records import LeaderRecords
from hazemap.federated.protocols.dap.aggregator_task import VERIFICATION_KEY_ID, AggregatorTask
from hazemap.federated.protocols.dap.basic_types import REPORT_ID, ReportError
from hazemap.federated.protocols.dap.batches import Batch
from hazemap.federated.protocols.dap.bucket_shards import OutputShare, bucket_shards
from hazemap.federated.protocols.dap.extensions import Extension
from hazemap.federated.protocols.dap.input_share_opening import DecryptionKeys, RejectedReport, check_time, opened_share
from hazemap.federated.protocols.dap.report_eligibility import ineligible_reports
from hazemap.federated.protocols.dap.resource_ids import resource_id
from hazemap.federated.protocols.dap.upload_messages import Report
from hazemap.federated.protocols.dap.verification_errors import rejection
from hazemap.vdaf.ping_pong import Continued, Finished, FinishedWithOutbound, Rejected, leader_continued, leader_init
from hazemap.vdaf.vdaf import ReportShare

REJECTED_JOB = b""
"""The job that claims reports which are verified by none."""


class AbandonedJob(Refused):
    """The helper does not keep to the protocol in a job: the leader gives it up."""


@dataclass(frozen=True)
class _Verified:
    """A report under verification."""

    report: Report
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
        self, agg_param: bytes, reports: list[Report], batch_id: bytes | None, now: int
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
        self, agg_param: bytes, reports: list[Report], now: int | None
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
                SentShare(each.report.metadata, each.report.public_share, each.report.helper_share),
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
