"""What may be forgotten: reports that have expired are refused by their time, so their ids need not be known.

That time is written in the change that deletes them, and never goes back: a report whose claim was deleted is not
claimed again, though a clock that was ahead is put right. So a report is claimed once a level in all of a task's life.

Those of an aggregation job that is under way are kept until it is done: the other server may have counted them with the
others of the job, which are not to be lost with one of them. A helper gives a job up that has none but expired ones:
its leader may have done so long ago, and does not always say it.
"""

from hazemap.federated.protocols.dap.aggregator_task import AggregatorTask
from hazemap.federated.protocols.dap.basic_types import Role
from hazemap.federated.service.store import Write

_MARK = (
    "INSERT INTO forgotten VALUES (?, ?) ON CONFLICT (task) DO UPDATE SET earliest = "
    "CASE WHEN excluded.earliest > forgotten.earliest THEN excluded.earliest ELSE forgotten.earliest END"
)
_BEFORE = "(SELECT earliest FROM forgotten WHERE task = ?)"


def expiry_writes(number: int, task: AggregatorTask, now: int) -> list[Write]:
    """Forget the expired reports of a task, claims to them, shares of their sums; what was collected is kept."""
    if task.report_expiry is None:
        return []
    verifying = "(SELECT job FROM jobs WHERE task = ? AND request IS NOT NULL)"
    old = f"task = ? AND time < {_BEFORE}"
    claimed = f"(SELECT report FROM claims WHERE {old} AND job IN {verifying})"  # noqa: S608 - ours
    reports = f"DELETE FROM reports WHERE {old} AND report NOT IN {claimed}"  # noqa: S608 - ours
    claims = f"DELETE FROM claims WHERE {old} AND job NOT IN {verifying}"  # noqa: S608 - ours
    shards = f"UPDATE shards SET share = NULL WHERE task = ? AND last_time < {_BEFORE}"  # noqa: S608 - ours
    going = f"(SELECT job FROM claims WHERE task = ? AND time >= {_BEFORE})"  # noqa: S608 - ours
    given_up = f"task = ? AND request IS NOT NULL AND job NOT IN {going}"
    released = f"UPDATE jobs SET request = NULL WHERE {given_up}"  # noqa: S608 - ours
    return [
        Write(_MARK, (number, task.earliest(now))),
        *([Write(released, (number,) * 3)] if task.role is Role.HELPER else []),
        Write(reports, (number,) * 5),
        Write(claims, (number,) * 3),
        Write(shards, (number,) * 2),
    ]
