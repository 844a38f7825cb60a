"""When a task is over for good, and what is then forgotten of it: reports, jobs, shares, results and terms.

Until then a collector that comes late gets what it paid for, by the same bytes. A row with the task's id stays, so that
nobody begins the same task again: reports that devices paid for once would then be added up with new noise.
"""

from typing import Final

from hazemap.federated.aggregator.task_file import TaskFile
from hazemap.federated.service.store import Write

KEPT: Final = 14 * 86_400
"""Seconds after its end for which a task is served whose file does not say after how many its reports expire."""
FORGOTTEN: Final = b""
"""The terms of a task that is over, in the store."""
_ROWS: Final = (
    "claims",
    "shards",
    "jobs",
    "reports",
    "credentials",
    "questions",
    "aggregate_shares",
    "collections",
    "collected",
    "rejections",
)


def retention(file: TaskFile) -> int:
    """Seconds after its end for which a task is served: as long as its last reports, and what was made of them.

    >>> KEPT // 86_400
    14
    """
    return KEPT if file.report_expiry is None else file.report_expiry


def over(file: TaskFile, now: int) -> bool:
    """Whether a task's time is over, and the time for which it is kept after that. One without an end is never over."""
    interval = file.task.interval
    return interval is not None and interval.end * file.task.time_precision + retention(file) < now


def ending_write(number: int) -> Write:
    """From now on this task is nobody's: whatever else is left of it is deleted afterwards, or at the next start."""
    return Write("UPDATE tasks SET terms = ? WHERE task = ?", (FORGOTTEN, number))


def forgetting_writes(number: int) -> list[Write]:
    """Delete all that is left of a task, a table at a time."""
    return [Write(f"DELETE FROM {table} WHERE task = ?", (number,)) for table in _ROWS]  # noqa: S608 - ours
