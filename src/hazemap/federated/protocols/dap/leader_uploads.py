"""The leader takes reports (draft-ietf-ppm-dap-18, section 4.4.2), and may add them to buckets (section 4.5.3.3).

What can be seen from outside is checked at once. Shares are opened when they are aggregated, so that a report costs a
device's request no more than two signatures, and a row: nothing is stored of a report that is not admitted, or for
which a task has no room.

By default a report counts once, and a bucket is collected once. A task whose shares carry noise may let a batch be
collected several times, with parameters that the VDAF allows one after the other: then each collection is of the same
buckets, a report is verified once a level, and only those count again that counted in the collection before.
"""

from collections.abc import Collection, Mapping

from hazemap.federated.protocols.dap.aggregator_changes import (
    AddReports,
    AggregatorRecords,
    Change,
    LeaderRecords,
    Outcome,
)
from hazemap.federated.protocols.dap.aggregator_task import AggregatorTask, parsed
from hazemap.federated.protocols.dap.basic_types import DAP_09, ReportError
from hazemap.federated.protocols.dap.batches import Batch, bucket_at
from hazemap.federated.protocols.dap.problem_types import ProblemType
from hazemap.federated.protocols.dap.report_checks import (
    CredentialChecks,
    DecryptionKeys,
    RejectedReport,
    check_time,
    known_extensions,
)
from hazemap.federated.protocols.dap.report_sizes import ReportSizes
from hazemap.federated.protocols.dap.upload_messages import (
    DapReport,
    Report09,
    ReportMetadata,
    ReportUploadStatus,
    UploadErrors,
    UploadRequest,
)
from hazemap.federated.protocols.dap.vdaf_configuration import (
    InvalidExtensions,
    UnsupportedExtensions,
    check_extensions,
)


def parameters_before(records: AggregatorRecords, batch: Batch) -> dict[Batch, tuple[bytes, ...]]:
    """The collections that overlap a batch: of which buckets, and with which parameters, in their order."""
    found = dict[Batch, tuple[bytes, ...]]()
    for collected, agg_param in records.collected(batch):
        found[collected] = (*found.get(collected, ()), agg_param)
    return found


def ineligible_reports(
    task: AggregatorTask,
    records: AggregatorRecords,
    agg_param: bytes,
    buckets: Mapping[bytes, bytes],
    claimed: bool = False,
) -> dict[bytes, ReportError]:
    """Why reports, given with their buckets, may not be added; `claimed` if this very job has claimed them."""
    if not buckets:
        return {}
    refused = dict[bytes, ReportError]()
    if not claimed:
        before = records.claimed(task.level(agg_param), buckets.keys())
        refused = dict.fromkeys(before, ReportError.REPORT_REPLAYED)
    for batch, parameters in parameters_before(records, Batch(min(buckets.values()), max(buckets.values()))).items():
        members = {report_id for report_id, bucket in buckets.items() if bucket in batch}
        if not members:
            continue
        closed = agg_param in parameters or len(parameters) >= task.collections
        again = set() if closed else records.counted(task.level(parameters[-1]), parameters[-1], members)
        refused |= dict.fromkeys(members - again - refused.keys(), ReportError.BATCH_COLLECTED)
    return refused


def check_collectable(task: AggregatorTask, records: AggregatorRecords, batch: Batch, agg_param: bytes) -> None:
    """Refuse to collect a batch that was collected before, or overlaps one, or with a parameter that may not follow."""
    for other, parameters in parameters_before(records, batch).items():
        if other != batch:
            raise task.problem(ProblemType.BATCH_OVERLAP, "some of these reports were collected in another batch")
        if len(parameters) >= task.collections:
            most = "once" if task.collections == 1 else f"{task.collections} times"
            raise task.problem(ProblemType.BATCH_OVERLAP, f"this batch was collected before, and may be {most}")
        task.check_parameter(agg_param, parameters)


def uploaded(
    task: AggregatorTask, keys: DecryptionKeys, records: LeaderRecords, body: bytes, now: int, room: int
) -> Outcome:
    """Answer an `UploadRequest`: an empty body, or the reports that are not taken. There is `room` for so many more."""
    if task.task.version == DAP_09:
        raise task.problem(ProblemType.INVALID_MESSAGE, "reports of this task are uploaded as draft 09 has it")
    request = parsed(task, UploadRequest, body)
    if not request.reports:
        raise task.problem(ProblemType.INVALID_MESSAGE, "an upload has a report or more")
    changes, refused = checked_reports(task, keys, records, request.reports, now, room)
    statuses = tuple(ReportUploadStatus(report.metadata.report_id, error) for report, error in refused)
    message = UploadErrors(statuses).to_bytes() if statuses else b""
    times = tuple(report.metadata.time for report in request.reports)
    return Outcome(message, changes=changes, rejected=tuple(error for _, error in refused), times=times)


def checked_reports(
    task: AggregatorTask,
    keys: DecryptionKeys,
    records: LeaderRecords,
    reports: Collection[DapReport],
    now: int,
    room: int,
) -> tuple[tuple[Change, ...], list[tuple[DapReport, ReportError]]]:
    """What is to be written of the reports that are taken, and why the others are not, in their order."""
    for report in reports:
        try:
            check_extensions(report.metadata.public_extensions, known_extensions(task))
        except UnsupportedExtensions as error:
            raise task.problem(ProblemType.UNSUPPORTED_EXTENSION, str(error), error.types) from None
        except InvalidExtensions as error:
            raise task.problem(ProblemType.INVALID_MESSAGE, str(error)) from None
    # what is spent is read first: a report that is written meanwhile is then found among those that were uploaded
    checks = CredentialChecks.of(task, records, [(each.metadata, each.public_share) for each in reports], room)
    before = records.uploaded([report.metadata.report_id for report in reports])
    closed = _closed(task, records, reports)
    accepted, refused = list[DapReport](), list[tuple[DapReport, ReportError]]()
    earliest, sizes = max(task.earliest(now), records.forgotten_before()), ReportSizes.of(task.task, task.vdaf)
    for report in reports:
        report_id, time = report.metadata.report_id, report.metadata.time
        try:
            _check_time(task, time, now, earliest)
            if not keys.knows(report.leader_share.config_id):
                raise RejectedReport(ReportError.OUTDATED_CONFIG)
            if not sizes.fit(report):
                raise RejectedReport(ReportError.INVALID_MESSAGE)
            if report_id in before or any(bucket_at(time) in batch for batch in closed):
                raise RejectedReport(ReportError.REPORT_REPLAYED)
            if len(accepted) >= room:
                raise RejectedReport(ReportError.REPORT_DROPPED)
            checks.check(report.metadata, report.public_share)
        except RejectedReport as rejected:
            refused.append((report, rejected.error))
            continue
        before.add(report_id)
        accepted.append(report)
        checks.spend(report.metadata, report.public_share)
    if not accepted:
        return (), refused
    return (*checks.changes(before), AddReports(tuple(accepted))), refused


def _closed(task: AggregatorTask, records: LeaderRecords, reports: Collection[DapReport]) -> list[Batch]:
    times = [report.metadata.time for report in reports]
    if not task.by_time or not times:
        return []
    return list(parameters_before(records, Batch(bucket_at(min(times)), bucket_at(max(times)))))


def _check_time(task: AggregatorTask, time: int, now: int, earliest: int) -> None:
    try:
        check_time(task, time, now, earliest)
    except RejectedReport as rejected:
        if rejected.error in {ReportError.TASK_NOT_STARTED, ReportError.TASK_EXPIRED}:
            raise RejectedReport(ReportError.REPORT_DROPPED) from None
        raise


def uploaded_09(
    task: AggregatorTask, keys: DecryptionKeys, records: LeaderRecords, body: bytes, now: int, room: int
) -> Outcome:
    """Take the one report of an upload of DAP-09; `DapProblem` if it is not taken. One that is here already is fine."""
    if task.task.version != DAP_09:
        raise task.problem(ProblemType.INVALID_MESSAGE, "reports of this task are uploaded as draft 18 has it")
    older = parsed(task, Report09, body)
    time, rest = divmod(older.metadata.time, task.task.time_precision)
    if rest:
        raise task.problem(ProblemType.INVALID_MESSAGE, "the time of a report is rounded down to the time precision")
    metadata = ReportMetadata(older.metadata.report_id, time)
    report = DapReport(metadata, older.public_share, older.leader_share, older.helper_share)
    if records.uploaded([metadata.report_id]):
        return Outcome(b"")
    changes, refused = checked_reports(task, keys, records, [report], now, room)
    for _, error in refused:
        raise task.problem(
            _PROBLEMS_09.get(error, ProblemType.REPORT_REJECTED), f"the report is not taken: {error.name}"
        )
    return Outcome(b"", changes=changes, times=(time,))


_PROBLEMS_09 = {
    ReportError.OUTDATED_CONFIG: ProblemType.OUTDATED_CONFIG,
    ReportError.REPORT_TOO_EARLY: ProblemType.REPORT_TOO_EARLY,
}
