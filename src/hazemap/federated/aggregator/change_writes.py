"""What the state machines want written, as SQL: all writes of one message are one job of the store.

The database decides, not what was read before: keys refuse a second claim, and conditions with a number of rows refuse
what was true when it was read and is no longer.
"""

from collections.abc import Iterable

from hazemap.federated.aggregator.task_records import batch_times, parameter_digest
from hazemap.federated.protocols.dap.aggregator_changes import (
    AddAggregateShare,
    AddJob,
    AddQuestion,
    AddReports,
    AddShards,
    AdvanceJob,
    Change,
    ClaimReports,
    CloseBatch,
    CountReports,
    DropJob,
    PutCollection,
    ScrubBatch,
    ScrubReports,
    SpendCredentials,
    WithdrawQuestion,
)
from hazemap.federated.protocols.dap.leader_jobs import REJECTED_JOB
from hazemap.federated.service.store import Write


def change_writes(task: int, changes: Iterable[Change]) -> list[Write]:
    """The writes of these changes of the task with this number, in their order."""
    return [write for change in changes for write in _writes(task, change)]


def rejection_writes(task: int, reasons: dict[str, int]) -> list[Write]:
    """So many more reports were not taken."""
    sql = (
        "INSERT INTO rejections VALUES (?, ?, ?) "
        "ON CONFLICT (task, reason) DO UPDATE SET number = rejections.number + excluded.number"
    )
    return [Write(sql, (task, reason, number)) for reason, number in sorted(reasons.items())]


def _writes(task: int, change: Change) -> list[Write]:
    match change:
        case AddReports() | SpendCredentials():
            return _reports(task, change)
        case ClaimReports() | CountReports() | ScrubReports() | ScrubBatch():
            return _claims(task, change)
        case AddShards():
            return _shards(task, change)
        case CloseBatch() | WithdrawQuestion():
            return _closed(task, change) if isinstance(change, CloseBatch) else _withdrawn(task, change)
        case AddQuestion() | AddAggregateShare() | PutCollection():
            return [_collection(task, change)]
        case _:
            return [_job(task, change)]


def _reports(task: int, change: AddReports | SpendCredentials) -> list[Write]:
    if isinstance(change, SpendCredentials):
        return [Write("INSERT INTO credentials VALUES (?, ?, ?)", (task, *each)) for each in change.credentials]
    sql = "INSERT INTO reports VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
    return [Write(sql, (task, each.metadata.report_id, each.metadata.time, each.to_bytes())) for each in change.reports]


def _claims(task: int, change: ClaimReports | CountReports | ScrubReports | ScrubBatch) -> list[Write]:
    if isinstance(change, ClaimReports):
        return [_claim(task, change, report, time) for report, time in change.reports]
    if isinstance(change, CountReports):
        sql = "UPDATE claims SET counted = 1 WHERE task = ? AND level = ? AND report = ? AND job = ? AND counted = 0"
        return [Write(sql, (task, change.level, report, change.job_id), rows=1) for report in change.report_ids]
    if isinstance(change, ScrubBatch):
        sql = "UPDATE reports SET body = NULL WHERE task = ? AND time >= ? AND time <= ?"
        return [Write(sql, (task, *batch_times(change.batch)))]
    sql = "UPDATE reports SET body = NULL WHERE task = ? AND report = ?"
    return [Write(sql, (task, report)) for report in change.report_ids]


def _claim(task: int, change: ClaimReports, report: bytes, time: int) -> Write:
    """A claim to a report, unless claims of its time were deleted: it may have been counted by one of those."""
    values = (task, change.level, report, change.job_id, time)
    if change.job_id == REJECTED_JOB:  # nobody counts it
        return Write("INSERT INTO claims VALUES (?, ?, ?, ?, ?, 0)", values)
    sql = (
        "INSERT INTO claims SELECT ?, ?, ?, ?, ?, 0 "
        "WHERE NOT EXISTS (SELECT 1 FROM forgotten WHERE task = ? AND earliest > ?)"
    )
    return Write(sql, (*values, task, time), rows=1)


def _job(task: int, change: AddJob | AdvanceJob | DropJob) -> Write:
    if isinstance(change, DropJob):
        return Write("UPDATE jobs SET request = NULL WHERE task = ? AND job = ?", (task, change.job_id))
    job = change.job
    moved = (job.step, job.digest, job.answer, job.request, job.peer)
    if isinstance(change, AdvanceJob):
        sql = (
            "UPDATE jobs SET step = ?, digest = ?, answer = ?, request = ?, peer = ? "
            "WHERE task = ? AND job = ? AND step = ? AND request IS NOT NULL"
        )
        return Write(sql, (*moved, task, job.job_id, change.before), rows=1)
    sql = "INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    key = (task, job.job_id, parameter_digest(job.agg_param), job.agg_param, job.batch.first, job.batch.last)
    return Write(sql, (*key, *moved))


def _shards(task: int, change: AddShards) -> list[Write]:
    parameter = parameter_digest(change.agg_param)
    sql = (
        "INSERT INTO shards SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE NOT EXISTS "
        "(SELECT 1 FROM collected WHERE task = ? AND parameter = ? AND first <= ? AND last >= ?)"
    )
    return [
        Write(
            sql,
            (
                *(task, parameter, each.bucket, change.job_id),
                *(each.share, each.count, each.checksum, each.first_time, each.last_time),
                *(task, parameter, each.bucket, each.bucket),
            ),
            rows=1,
        )
        for each in change.shards
    ]


def _closed(task: int, change: CloseBatch) -> list[Write]:
    parameter, first, last = parameter_digest(change.agg_param), change.batch.first, change.batch.last
    sql = (
        "INSERT INTO collected SELECT ?, (SELECT coalesce(max(seq), 0) + 1 FROM collected WHERE task = ?), ?, ?, ?, ? "
        "WHERE NOT EXISTS (SELECT 1 FROM collected WHERE task = ? AND first <= ? AND last >= ? "
        "AND NOT (first = ? AND last = ? AND parameter <> ?)) "
        "AND (SELECT coalesce(sum(count), 0) FROM shards WHERE task = ? AND parameter = ? AND bucket >= ? "
        "AND bucket <= ? AND share IS NOT NULL) = ?"
    )
    values = (
        *(task, task, parameter, change.agg_param, first, last),
        *(task, last, first, first, last, parameter),
        *(task, parameter, first, last, change.count),
    )
    scrub = "UPDATE shards SET share = NULL WHERE task = ? AND parameter = ? AND bucket >= ? AND bucket <= ?"
    closed = Write(sql, values, rows=1)
    return [closed] if change.keep else [closed, Write(scrub, (task, parameter, first, last))]


def _withdrawn(task: int, change: WithdrawQuestion) -> list[Write]:
    batch = (task, change.batch.first, change.batch.last)
    sql = "DELETE FROM questions WHERE task = ? AND first = ? AND last = ? AND place = ? AND question = ?"
    asked = Write(sql, (*batch, change.place, change.question), rows=1)
    if change.agg_param is None:
        return [asked]
    sql = "DELETE FROM collected WHERE task = ? AND first = ? AND last = ? AND parameter = ?"
    return [asked, Write(sql, (*batch, parameter_digest(change.agg_param)), rows=1)]


def _collection(task: int, change: AddQuestion | AddAggregateShare | PutCollection) -> Write:
    if isinstance(change, AddQuestion):
        asked = (task, change.batch.first, change.batch.last, change.place, change.question)
        return Write("INSERT INTO questions VALUES (?, ?, ?, ?, ?)", asked)
    if isinstance(change, AddAggregateShare):
        share = (task, change.share_id, change.digest, change.answer)
        return Write("INSERT INTO aggregate_shares VALUES (?, ?, ?, ?)", share)
    job = change.job
    first, last = (None, None) if job.batch is None else (job.batch.first, job.batch.last)
    start, duration = (None, None) if job.interval is None else (job.interval.start, job.interval.duration)
    found = (
        *(job.state, job.request, first, last, job.helper_request, job.count, start, duration),
        *(job.leader_share, job.answer, job.problem),
    )
    if change.before is None:
        sql = "INSERT INTO collections VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        return Write(sql, (task, job.job_id, *found))
    sql = (
        "UPDATE collections SET state = ?, request = ?, first = ?, last = ?, helper_request = ?, count = ?, start = ?, "
        "duration = ?, leader_share = ?, answer = ?, problem = ? "
        "WHERE task = ? AND job = ? AND state = ?"
    )
    return Write(sql, (*found, task, job.job_id, change.before), rows=1)
