"""What may be forgotten: reports that have expired are refused by their time, so their ids need not be known.

Those of an aggregation job that is under way are kept until it is done: the other server may have counted them with the
others of the job, which are not to be lost with one of them.
"""

from hazemap.protocols.dap.aggregator_task import AggregatorTask
from hazemap.service.store import Write


def expiry_writes(number: int, task: AggregatorTask, now: int) -> list[Write]:
    """Forget the expired reports of a task, claims to them, shares of their sums; what was collected is kept."""
    if task.report_expiry is None:
        return []
    before = task.earliest(now)
    verifying = "(SELECT job FROM jobs WHERE task = ? AND request IS NOT NULL)"
    claimed = f"(SELECT report FROM claims WHERE task = ? AND time < ? AND job IN {verifying})"  # noqa: S608 - ours
    reports = f"DELETE FROM reports WHERE task = ? AND time < ? AND report NOT IN {claimed}"  # noqa: S608 - ours
    claims = f"DELETE FROM claims WHERE task = ? AND time < ? AND job NOT IN {verifying}"  # noqa: S608 - ours
    return [
        Write(reports, (number, before, number, before, number)),
        Write(claims, (number, before, number)),
        Write("UPDATE shards SET share = NULL WHERE task = ? AND last_time < ?", (number, before)),
    ]
