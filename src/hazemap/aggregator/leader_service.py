"""The leader with its storage: takes reports, answers collectors, and says what to ask the helper next.

Whoever drives it asks for requests, sends them, and gives back what came: `requests`, then `answered` or `failed`. A
request stays until it is answered, through any number of restarts, and is the same bytes each time. A lease keeps two
workers from sending the same one; that it was sent twice does no harm.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Lock
from typing import Final

from hazemap.aggregator.change_writes import change_writes, rejection_writes
from hazemap.aggregator.hpke_key_ring import DecryptionKeyRing
from hazemap.aggregator.opened_shares import OpenedShares, RememberingKeys
from hazemap.aggregator.task_records import TaskRecords
from hazemap.aggregator.work_log import log_work
from hazemap.protocols.dap.aggregator_changes import CollectionJob, Outcome
from hazemap.protocols.dap.aggregator_task import AggregatorTask
from hazemap.protocols.dap.answer_sizes import longest_aggregation_answer, longest_share
from hazemap.protocols.dap.basic_types import BATCH_ID
from hazemap.protocols.dap.batches import Batch
from hazemap.protocols.dap.collection_messages import AggregateShareReq, CollectionJobReq
from hazemap.protocols.dap.leader_collections import LeaderCollections
from hazemap.protocols.dap.leader_jobs import AbandonedJob, LeaderJobs
from hazemap.protocols.dap.leader_uploads import uploaded, uploaded_09
from hazemap.protocols.dap.problem_types import ProblemDocument
from hazemap.service.duration_histogram import Histogram
from hazemap.service.store import Contradiction, Store, Write

LEASE: Final = 600
"""Seconds that a worker has for a request before another may send it."""
JOB: Final = 256
"""Reports of one aggregation job, at most."""
OPEN: Final = 4
"""Aggregation jobs of one task that are under way at a time."""
STATES: Final = 8
"""Jobs whose states are kept in memory; others are taken up again from what is written."""
RANDOM: Final = 32
AGES: Final = (-86_400.0, -3_600.0, -300.0, 0.0, 300.0, 3_600.0, 86_400.0, 604_800.0)
"""Ends of buckets, in seconds, of how old reports say that they are; below 0 their clocks are ahead."""


class RequestKind(StrEnum):
    """What the leader asks the helper for."""

    INIT_JOB = "init"
    CONTINUE_JOB = "continue"
    AGGREGATE_SHARE = "share"


@dataclass(frozen=True)
class HelperRequest:
    """A request that is to be sent. `job_id` is the leader's; `peer` the helper's id of an aggregation job."""

    kind: RequestKind
    job_id: bytes
    body: bytes = field(repr=False)
    peer: bytes
    lease: bytes = field(repr=False)


class LeaderService:
    """One task of a leader. `draw` gives fresh random bytes; `opened` are shares that walks open once."""

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
        self._lock, self._counting = Lock(), Lock()
        self._states: OrderedDict[bytes, object] = OrderedDict()
        self._taken: tuple[bytes, Batch | None] | None = None
        self.ages = Histogram(AGES)
        self.listener: Callable[[], None] = lambda: None
        """who is told, from any thread, that there may be something to do"""
        # a database belongs to one server at a time: leases that are there were a process's that has ended
        freed = " SET lease = NULL, lease_until = 0 WHERE task = ? AND lease IS NOT NULL"
        store.write_now(*(Write(f"UPDATE {table}{freed}", (number,)) for table in ("jobs", "collections")))

    def upload(self, body: bytes, keys: DecryptionKeyRing, now: int) -> tuple[bytes, list[Write]]:
        """The answer to an `UploadRequest`, and what must be written before it is given."""
        outcome = self._looked_at(uploaded(self.task, keys, self._records, body, now), now)
        return outcome.message, self._writes(outcome)

    def upload_09(self, body: bytes, keys: DecryptionKeyRing, now: int) -> list[Write]:
        """What must be written before an upload of DAP-09 is answered."""
        return self._writes(self._looked_at(uploaded_09(self.task, keys, self._records, body, now), now))

    def drop_collection(self, job_id: bytes) -> None:
        """Forget a collection job; its batch stays closed if it was.

        A question that the helper may have answered is not forgotten before it has: both keep the same account.
        """
        kept = " AND state <> 'closed'" if self.task.task.walk is not None else ""
        sql = f"DELETE FROM collections WHERE task = ? AND job = ?{kept}"  # noqa: S608 - ours
        self._store.write_now(Write(sql, (self._number, job_id)))

    def collect(self, body: bytes) -> Outcome:
        """Answer a `CollectionJobReq`."""
        with self._lock:
            outcome = self._written(self._collections.asked(body))
        self.listener()
        return outcome

    def poll_collection(self, job_id: bytes) -> Outcome:
        """How a collection job is."""
        return self._collections.polled(job_id)

    def requests(self, keys: DecryptionKeyRing, now: int, most: int = OPEN) -> list[HelperRequest]:
        """What to send to the helper now, at most so many, each leased; makes jobs and closes batches as needed."""
        with self._lock:
            asked = self._asked()
            if self.task.vdaf.ROUNDS == 1:  # there is but one parameter: nobody needs to ask for it
                self._make_jobs(b"", None, keys, now)
            else:
                for job in asked:
                    asked_with = CollectionJobReq.from_bytes(job.request).agg_param
                    self._make_jobs(self.task.verified_with(asked_with), job.batch, keys, now)
            for job in asked:
                closed = self._collections.closed(job.job_id, now, self._draw(RANDOM))
                if closed is not None:
                    self._written(closed)
            return self._leased(now, most)

    def answered(self, request: HelperRequest, peer: bytes, body: bytes, keys: DecryptionKeyRing) -> None:
        """The helper has answered a request with success."""
        with self._lock:
            if request.kind is RequestKind.AGGREGATE_SHARE:
                self._written(self._collections.helper_answered(request.job_id, body))
                return
            jobs, state = self._jobs(keys), self._states.get(request.job_id)
            try:
                self._written(jobs.job_answered(request.job_id, peer or request.peer, body, state))
            except AbandonedJob:
                self._written(jobs.drop_job(request.job_id))
                raise

    def refused(self, request: HelperRequest, document: ProblemDocument, keys: DecryptionKeyRing) -> None:
        """The helper refuses a request for good."""
        with self._lock:
            if request.kind is RequestKind.AGGREGATE_SHARE:
                self._written(self._collections.refused(request.job_id, document))
            else:
                self._written(self._jobs(keys).drop_job(request.job_id))

    def failed(self, request: HelperRequest, again: int) -> None:
        """The request could not be sent, or not answered now: it may be sent from `again` (seconds) on."""
        table = "collections" if request.kind is RequestKind.AGGREGATE_SHARE else "jobs"
        sql = f"UPDATE {table} SET lease_until = ? WHERE task = ? AND job = ? AND lease = ?"  # noqa: S608 - ours
        self._store.write_now(Write(sql, (again, self._number, request.job_id, request.lease)))

    def longest_answer(self, request: HelperRequest) -> int:
        """Bytes that the helper can answer a request with."""
        if request.kind is not RequestKind.AGGREGATE_SHARE:
            return longest_aggregation_answer(len(request.body))
        asked = AggregateShareReq.from_bytes(request.body).collection_job_req
        return longest_share(self.task.task, self.task.vdaf, asked.agg_param)

    @property
    def _collections(self) -> LeaderCollections:
        return LeaderCollections(self.task, self._records)

    def _jobs(self, keys: DecryptionKeyRing) -> LeaderJobs:
        again = self.task.collections > 1
        return LeaderJobs(self.task, RememberingKeys(keys, self._opened) if again else keys, self._records)

    def _asked(self) -> list[CollectionJob]:
        """Collection jobs that wait for their batch."""
        rows = self._store.read("SELECT job FROM collections WHERE task = ? AND state = 'asked'", self._number)
        found = (self._records.collection(bytes(job)) for (job,) in rows)
        return [job for job in found if job is not None]

    def _make_jobs(self, agg_param: bytes, batch: Batch | None, keys: DecryptionKeyRing, now: int) -> None:
        """Aggregation jobs of what waits, until so many are under way.

        Of what a collector asked for, what came since nothing waited is looked for when those that are under way are
        done: nothing is collected before.
        """
        sql = "SELECT count(*) FROM jobs WHERE task = ? AND request IS NOT NULL"
        [(open_jobs,)] = self._store.read(sql, self._number)
        if batch is not None and self._taken == (agg_param, batch) and self._records.open_jobs(agg_param, batch):
            return
        while open_jobs < OPEN:
            batch_id = None if self.task.by_time else self._filling()
            made = self._jobs(keys).make_job(agg_param, now, JOB, batch, batch_id)
            if made is None:
                self._taken = agg_param, batch
                return
            open_jobs += bool(self._written(made).message)

    def _filling(self) -> bytes:
        """The batch that reports go to now, where the leader chooses: a new one once the last one has enough.

        Jobs that are under way in one that has enough are its last: it is collected once they are done.
        """
        rows = self._store.read(
            "SELECT bucket FROM shards WHERE task = ? AND share IS NOT NULL GROUP BY bucket HAVING sum(count) < ?",
            self._number,
            self.task.least,
        )
        going = self._store.read(
            "SELECT first FROM jobs WHERE task = ? AND request IS NOT NULL AND first NOT IN "
            "(SELECT bucket FROM shards WHERE task = ? GROUP BY bucket HAVING sum(count) >= ?) LIMIT 1",
            self._number,
            self._number,
            self.task.least,
        )
        found = [*rows, *going]
        return bytes(found[0][0]) if found else self._draw(BATCH_ID)

    def _leased(self, now: int, most: int) -> list[HelperRequest]:
        """What nobody works on, or waits to send again. No lease is longer than `LEASE`, unless the clock was ahead."""
        found = list[HelperRequest]()
        free, times = "(lease_until <= ? OR lease_until > ?)", (now, now + LEASE)
        for table, column in (("collections", "helper_request"), ("jobs", "request")):
            step, peer = ("0", "job") if table == "collections" else ("step", "peer")
            state = "state = 'closed'" if table == "collections" else "request IS NOT NULL"
            rows = self._store.read(
                f"SELECT job, {column}, {step}, {peer} FROM {table} WHERE task = ? AND {state} "  # noqa: S608 - ours
                f"AND {free} ORDER BY job LIMIT ?",
                self._number,
                *times,
                most - len(found),
            )
            for job, body, at, other in rows:
                kind = RequestKind.AGGREGATE_SHARE
                if table == "jobs":
                    kind = RequestKind.CONTINUE_JOB if at else RequestKind.INIT_JOB
                lease = self._draw(16)
                sql = f"UPDATE {table} SET lease = ?, lease_until = ? WHERE task = ? AND job = ? AND {free}"  # noqa: S608 - ours
                try:
                    self._store.write_now(Write(sql, (lease, now + LEASE, self._number, bytes(job), *times), rows=1))
                except Contradiction:
                    continue
                found.append(HelperRequest(kind, bytes(job), bytes(body), bytes(other), lease))
        return found

    def _looked_at(self, outcome: Outcome, now: int) -> Outcome:
        with self._counting:
            for time in outcome.times:
                self.ages.observe(now - time * self.task.task.time_precision)
        return outcome

    def _writes(self, outcome: Outcome) -> list[Write]:
        reasons = dict(Counter(error.name.lower() for error in outcome.rejected))
        return [*change_writes(self._number, outcome.changes), *rejection_writes(self._number, reasons)]

    def _written(self, outcome: Outcome) -> Outcome:
        writes = self._writes(outcome)
        if writes:
            self._store.write_now(*writes)
            log_work(self.task, outcome.changes, len(outcome.rejected))
        if outcome.state:
            self._states[outcome.resource] = outcome.state
            while len(self._states) > STATES:
                self._states.popitem(last=False)
        elif outcome.changes:
            self._states.pop(outcome.resource, None)
        return outcome
