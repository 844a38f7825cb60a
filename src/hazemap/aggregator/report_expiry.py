"""What may be forgotten: reports that have expired are refused by their time, so their ids need not be known."""

from hazemap.protocols.dap.aggregator_task import AggregatorTask
from hazemap.service.store import Write


def expiry_writes(number: int, task: AggregatorTask, now: int) -> list[Write]:
    """Forget the expired reports of a task, and the claims to them; what was collected is remembered for ever."""
    if task.report_expiry is None:
        return []
    before = task.earliest(now)
    return [
        Write("DELETE FROM reports WHERE task = ? AND time < ?", (number, before)),
        Write("DELETE FROM claims WHERE task = ? AND time < ?", (number, before)),
    ]
