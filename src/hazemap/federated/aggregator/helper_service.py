"""The helper with its storage: each request is handled, written and answered, one at a time for a task."""

from collections import Counter, OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Final

from hazemap.federated.aggregator.change_writes import change_writes, rejection_writes
from hazemap.federated.aggregator.hpke_key_ring import DecryptionKeyRing, OpenedShares, RememberingKeys
from hazemap.federated.aggregator.leader_service import ReportRoom
from hazemap.federated.aggregator.task_records import TaskRecords
from hazemap.federated.aggregator.work_log import log_work
from hazemap.federated.protocols.dap.aggregator_changes import Outcome, SpendCredentials
from hazemap.federated.protocols.dap.aggregator_task import AggregatorTask
from hazemap.federated.protocols.dap.helper import ContinueJob, Helper
from hazemap.federated.protocols.dap.problem_types import DapProblem
from hazemap.federated.service.store import Contradiction, Store

STATES: Final = 8
"""Jobs whose states are kept in memory; others are taken up again from what is written."""
RANDOM: Final = 32
"""Fresh bytes for sealing an aggregate share."""


class HelperService:
    """One task of a helper. `draw` gives fresh random bytes; `opened` are shares that walks open once."""

    def __init__(
        self,
        store: Store,
        number: int,
        task: AggregatorTask,
        draw: Callable[[int], bytes],
        opened: OpenedShares | None = None,
    ) -> None:
        self.task, self._opened = task, opened or OpenedShares()
        self._store, self._number, self._draw = store, number, draw
        self._records = TaskRecords(store.read, number)
        self._room = ReportRoom(task, self._records)
        self._lock = Lock()
        self._states: OrderedDict[bytes, object] = OrderedDict()

    def init_job(self, body: bytes, keys: DecryptionKeyRing, now: int) -> Outcome:
        """Answer an `AggregationJobInitReq`."""
        return self._written(lambda: self._helper(keys).init_job(body, now, self._room.left(now)))

    def continue_job(self, job_id: bytes, body: bytes, keys: DecryptionKeyRing) -> Outcome:
        """Answer an `AggregationJobContinueReq`."""
        message = ContinueJob(job_id, body)
        return self._written(lambda: self._helper(keys).continue_job(message, self._states.get(job_id)))

    def aggregate_share(self, body: bytes, keys: DecryptionKeyRing) -> Outcome:
        """Answer an `AggregateShareReq`."""

        def ask() -> Outcome:
            return self._helper(keys).aggregate_share(body, self._draw(RANDOM))

        try:
            return self._written(ask)
        except DapProblem:  # another process may have answered the same request while this one read: then it is known
            return self._written(ask)

    def job(self, job_id: bytes, step: int, keys: DecryptionKeyRing) -> Outcome:
        """A job's answer, for a leader that polls."""
        return self._helper(keys).job(job_id, step)

    def drop_job(self, job_id: bytes, keys: DecryptionKeyRing) -> Outcome:
        """Forget a job that the leader has abandoned."""
        return self._written(lambda: self._helper(keys).drop_job(job_id))

    def _helper(self, keys: DecryptionKeyRing) -> Helper:
        again = self.task.collections > 1
        return Helper(self.task, RememberingKeys(keys, self._opened) if again else keys, self._records)

    def _written(self, handle: Callable[[], Outcome]) -> Outcome:
        with self._lock:
            try:
                outcome = self._once(handle)
            except Contradiction:  # something else was written meanwhile: handle it with what is known by now
                outcome = self._once(handle)
            if outcome.state:
                self._states[outcome.resource] = outcome.state
                while len(self._states) > STATES:
                    self._states.popitem(last=False)
            elif outcome.changes:
                self._states.pop(outcome.resource, None)
            return outcome

    def _once(self, handle: Callable[[], Outcome]) -> Outcome:
        outcome = handle()
        if outcome.changes or outcome.rejected:
            reasons = dict(Counter(error.name.lower() for error in outcome.rejected))
            self._store.write_now(
                *change_writes(self._number, outcome.changes), *rejection_writes(self._number, reasons)
            )
            spent = (len(each.credentials) for each in outcome.changes if isinstance(each, SpendCredentials))
            self._room.taken(sum(spent))
            log_work(self.task, outcome.changes, len(outcome.rejected))
        return outcome
