"""What may be forgotten: reports that have expired are refused by their time, so their ids need not be known."""

from hazemap.protocols.dap.aggregator_task import AggregatorTask
from hazemap.service.store import Write


def expiry_writes(number: int, task: AggregatorTask, now: int) -> list[Write]:
    """Forget the expired reports of a task, claims to them, shares of their sums; what was collected is kept."""
    if task.report_expiry is None:
        return []
    before = task.earliest(now)
    return [
        Write("DELETE FROM reports WHERE task = ? AND time < ?", (number, before)),
        Write("DELETE FROM claims WHERE task = ? AND time < ?", (number, before)),
        Write("UPDATE shards SET share = NULL WHERE task = ? AND last_time < ?", (number, before)),
    ]
