"""A task of a leader or a helper with its storage: each request is handled, written and answered.

A leader takes reports, answers collectors, and says what to ask the helper next. Its driver asks for requests, sends
them, and gives back what came: `requests`, then `answered` or `failed`. A request stays until it is answered, through
any number of restarts, and is the same bytes each time. A lease keeps two workers from sending the same one; sending it
twice does no harm, so leases are in memory alone.

A task has room for as many reports as there are credentials, or as it is declared open to. Reports that have expired
are refused by their time, so their ids are deleted. That time is written in the change that deletes them, and never
goes back: a report whose claim was deleted is not claimed again, though a clock that was ahead is put right. Reports of
an aggregation job that is under way are kept until it is done, since the other server may have counted them with the
rest of the job. A helper gives a job up that has only expired reports: its leader may have done so long ago.
"""

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Lock
from typing import Final

from hazemap.errors import CodecError
from hazemap.federated.aggregator.change_writes import change_writes, rejection_writes
from hazemap.federated.aggregator.hpke_key_ring import DecryptionKeyRing, OpenedShares, RememberingKeys
from hazemap.federated.aggregator.task_records import TaskRecords
from hazemap.federated.protocols.dap.aggregator_changes import (
    AddQuestion,
    AddReports,
    AddShards,
    Change,
    CloseBatch,
    CollectionJob,
    Outcome,
    SpendCredentials,
)
from hazemap.federated.protocols.dap.aggregator_task import AggregatorTask
from hazemap.federated.protocols.dap.basic_types import BATCH_ID, DapRole
from hazemap.federated.protocols.dap.batches import Batch
from hazemap.federated.protocols.dap.collection_messages import AggregateShareReq, CollectionJobReq
from hazemap.federated.protocols.dap.helper import ContinueJob, Helper
from hazemap.federated.protocols.dap.leader_jobs import AbandonedJob, LeaderCollections, LeaderJobs
from hazemap.federated.protocols.dap.leader_uploads import uploaded, uploaded_09
from hazemap.federated.protocols.dap.problem_types import DapProblem, ProblemDocument
from hazemap.federated.protocols.dap.report_checks import DecryptionKeys
from hazemap.federated.protocols.dap.report_sizes import ReportSizes, longest_aggregation_answer, longest_share
from hazemap.federated.protocols.dap.resource_paths import id_text
from hazemap.federated.service.prometheus_text import DurationHistogram
from hazemap.federated.service.store import Contradiction, Store, Write

LEASE: Final = 600
"""Seconds that a worker has for a request before another may send it."""


class RequestLeases:
    """The leases of one task's requests, by the ids of their jobs.

    >>> leases = RequestLeases()
    >>> leases.take(b"job", b"first", 100), leases.take(b"job", b"second", 100)
    (True, False)
    >>> leases.take(b"job", b"second", 100 + LEASE)
    True
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._leases: dict[bytes, tuple[bytes, int]] = {}

    def free(self, job_id: bytes, now: int) -> bool:
        """Whether nobody works on a request or waits with it; no lease is longer than `LEASE` but by a wrong clock."""
        until = self._leases.get(job_id, (b"", 0))[1]
        return until <= now or until > now + LEASE

    def take(self, job_id: bytes, lease: bytes, now: int) -> bool:
        """Whether a request is free: it is then leased by this name, which nobody else knows."""
        with self._lock:
            if not self.free(job_id, now):
                return False
            self._leases = {job: own for job, own in self._leases.items() if own[1] > now}
            self._leases[job_id] = lease, now + LEASE
            return True

    def wait(self, job_id: bytes, lease: bytes, until: int) -> None:
        """Whoever has this lease does not work on it any more: it is free from then on."""
        with self._lock:
            if self._leases.get(job_id, (b"", 0))[0] == lease:
                self._leases[job_id] = lease, until

    def end(self, job_id: bytes) -> None:
        """The request is answered, or given up: whatever comes next of its job is free."""
        with self._lock:
            self._leases.pop(job_id, None)


log = logging.getLogger("hazemap.federated.aggregator")


def log_work(task: AggregatorTask, changes: Iterable[Change], rejected: int) -> None:
    """One line for what was written: reports that were counted or rejected, batches that were closed."""
    name = id_text(task.task.id)[:8]
    counted = sum(shard.count for change in changes if isinstance(change, AddShards) for shard in change.shards)
    if counted or rejected:
        log.info("task %s: %d reports counted, %d rejected", name, counted, rejected)
    for change in changes:
        if isinstance(change, AddQuestion):
            log.info("task %s: question %d about a batch is answered, with noise", name, change.place + 1)
        elif isinstance(change, CloseBatch) and change.keep:
            log.info("task %s: a level of %d reports is verified", name, change.count)
        elif isinstance(change, CloseBatch):
            noise = "without noise" if task.draw_noise is None else "with noise"
            log.info("task %s: a batch of %d reports is collected, %s", name, change.count, noise)


LOOK: Final = 60
"""Seconds between two counts of a task that is full: reports that have expired leave room again."""
_PART: Final = 8
"""A task is counted again once this part of the room that there was is taken: some 100 times until it is full."""


class ReportRoom:
    """A task's room. What is stored is counted seldom, as that is a walk over an index.

    Another process that takes reports of the same task is seen at the next count; credentials count once all the same.
    """

    def __init__(self, task: AggregatorTask, records: TaskRecords) -> None:
        admission = task.task.admission
        self._most = (task.open_reports or 0) if admission is None else admission.reports
        self._count = records.stored if admission is None else records.all_spent
        self._stored = self._until = 0
        self._looked: int | None = None

    def left(self, now: int) -> int:
        """Reports that there is room for."""
        full = self._stored >= self._most
        if self._looked is None or (full and not 0 <= now - self._looked < LOOK):
            self._stored, self._looked = self._count(), now
            self._until = self._stored + max(0, self._most - self._stored) // _PART
        return max(0, self._most - self._stored)

    def taken(self, reports: int) -> None:
        """So many more are stored, or about to be; some of them may have been here."""
        self._stored += reports
        if reports and self._stored >= self._until:
            self._looked = None


JOB: Final = 256
"""Reports of one aggregation job, at most."""
OPEN: Final = 4
"""Aggregation jobs of one task that are under way at a time."""
STATES: Final = 8
"""Jobs whose states and requests are kept in memory; others are taken up again from what is written."""
RANDOM: Final = 32
AGES: Final = (-86_400.0, -3_600.0, -300.0, 0.0, 300.0, 3_600.0, 86_400.0, 604_800.0)
"""Ends of buckets, in seconds, of how old reports say that they are; below 0 their clocks are ahead."""


class RequestKind(StrEnum):
    """What the leader asks the helper for."""

    INIT_JOB = "init"
    CONTINUE_JOB = "continue"
    AGGREGATE_SHARE = "share"


@dataclass(frozen=True)
class _Going:
    """What is in memory of a job under way: the request that is written, and the state that it can be gone on from."""

    request: bytes = field(repr=False)
    state: object = field(repr=False)


@dataclass(frozen=True)
class HelperRequest:
    """A request that is to be sent. `job_id` is the leader's; `peer` the helper's id of an aggregation job."""

    kind: RequestKind
    job_id: bytes
    body: bytes = field(repr=False)
    peer: bytes
    lease: bytes = field(repr=False)


class TaskService:
    """One task of an aggregator. `draw` gives fresh random bytes; `opened` are shares that walks open once."""

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
        self._going: OrderedDict[bytes, _Going] = OrderedDict()

    def _remembering(self, keys: DecryptionKeyRing) -> DecryptionKeys:
        """The keys; where reports are opened level after level, with the shares that they opened."""
        return RememberingKeys(keys, self._opened) if self.task.collections > 1 else keys

    def _writes(self, outcome: Outcome) -> list[Write]:
        reasons = dict(Counter(error.name.lower() for error in outcome.rejected))
        return [*change_writes(self._number, outcome.changes), *rejection_writes(self._number, reasons)]

    def _remember(self, outcome: Outcome) -> None:
        """Keep the state of a job under way, and let go of the oldest; one that has moved without a state has none."""
        if outcome.state:
            self._going[outcome.resource] = _Going(outcome.message, outcome.state)
            while len(self._going) > STATES:
                self._going.popitem(last=False)
        elif outcome.changes:
            self._going.pop(outcome.resource, None)


class LeaderService(TaskService):
    """One task of a leader."""

    def __init__(
        self,
        store: Store,
        number: int,
        task: AggregatorTask,
        draw: Callable[[int], bytes],
        opened: OpenedShares | None = None,
    ) -> None:
        super().__init__(store, number, task, draw, opened)
        self.sizes = ReportSizes.of(task.task, task.vdaf)
        self._counting = Lock()
        self._leases = RequestLeases()
        self._taken: tuple[bytes, Batch | None] | None = None
        self.ages = DurationHistogram(AGES)
        self.listener: Callable[[], None] = lambda: None
        """who is told, from any thread, that there may be something to do"""

    def longest_upload(self, now: int) -> int:
        """Bytes of the longest upload: of one report, which may be here, where the task has room for no other."""
        return self.sizes.longest_upload if self._room.left(now) else self.sizes.longest

    def upload(self, body: bytes, keys: DecryptionKeyRing, now: int) -> tuple[bytes, list[Write]]:
        """The answer to an `UploadRequest`, and what must be written before it is given.

        A `Contradiction` at writing means that another upload was faster: ask again.
        """
        outcome = uploaded(self.task, keys, self._records, body, now, self._room.left(now))
        return outcome.message, self._taken_in(outcome, now)

    def upload_09(self, body: bytes, keys: DecryptionKeyRing, now: int) -> list[Write]:
        """What must be written before an upload of DAP-09 is answered."""
        return self._taken_in(uploaded_09(self.task, keys, self._records, body, now, self._room.left(now)), now)

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
            return self._leased(keys, now, most)

    def answered(self, request: HelperRequest, peer: bytes, body: bytes, keys: DecryptionKeyRing) -> None:
        """The helper has answered a request with success."""
        with self._lock:
            if request.kind is RequestKind.AGGREGATE_SHARE:
                self._written(self._collections.helper_answered(request.job_id, body))
                return
            if not self._waits_for(request):
                return
            jobs, going = self._jobs(keys), self._going.get(request.job_id)
            try:
                self._written(jobs.job_answered(request.job_id, peer or request.peer, body, going and going.state))
            except AbandonedJob:
                self._written(jobs.drop_job(request.job_id))
                raise

    def refused(self, request: HelperRequest, document: ProblemDocument, keys: DecryptionKeyRing) -> None:
        """The helper refuses a request for good."""
        with self._lock:
            if request.kind is RequestKind.AGGREGATE_SHARE:
                self._written(self._collections.refused(request.job_id, document))
            elif self._waits_for(request):
                self._written(self._jobs(keys).drop_job(request.job_id))

    def failed(self, request: HelperRequest, again: int) -> None:
        """The request could not be sent, or not answered now: it may be sent from `again` (seconds) on."""
        self._leases.wait(request.job_id, request.lease, again)

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
        return LeaderJobs(self.task, self._remembering(keys), self._records)

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

    def _leased(self, keys: DecryptionKeyRing, now: int, most: int) -> list[HelperRequest]:
        """What nobody works on, or waits to send again, of collections first."""
        shares = "SELECT job, 0, TRUE FROM collections WHERE task = ? AND state = 'closed' ORDER BY job"
        jobs = "SELECT job, step, FALSE FROM jobs WHERE task = ? AND request IS NOT NULL ORDER BY job"
        found = list[HelperRequest]()
        for job, step, share in (row for sql in (shares, jobs) for row in self._store.read(sql, self._number)):
            job_id, lease = bytes(job), self._draw(16)
            if len(found) == most or not self._leases.take(job_id, lease, now):
                continue
            kind = RequestKind.CONTINUE_JOB if step else RequestKind.INIT_JOB
            kind = RequestKind.AGGREGATE_SHARE if share else kind
            try:
                bodies = self._begun_again(job_id, keys) if kind is RequestKind.INIT_JOB else self._bodies(kind, job_id)
            except Exception:
                if not found:
                    raise
                self._leases.wait(job_id, lease, now)  # it is met again at the next turn, once what was found is sent
                break
            found += [HelperRequest(kind, job_id, body, peer, lease) for body, peer in bodies]
        return found

    def _waits_for(self, request: HelperRequest) -> bool:
        """Whether an aggregation job is still at the step of a request, which two workers may have sent."""
        job = self._records.job(request.job_id, whole=False)
        return job is not None and not job.done and bool(job.step) == (request.kind is RequestKind.CONTINUE_JOB)

    def _begun_again(self, job_id: bytes, keys: DecryptionKeyRing) -> list[tuple[bytes, bytes]]:
        """A job's first request, from memory or else from its reports; nothing where it was or has to be given up."""
        going = self._going.get(job_id)
        if going is not None:
            return [(going.request, b"")]
        jobs = self._jobs(keys)
        try:
            again = jobs.begun_again(job_id)
        except (AbandonedJob, CodecError) as error:
            log.warning("an aggregation job was abandoned: %s", error)
            again = jobs.drop_job(job_id)
        if again is None or not self._written(again).message:
            return []
        return [(again.message, b"")]

    def _bodies(self, kind: RequestKind, job_id: bytes) -> list[tuple[bytes, bytes]]:
        """What is to be sent of a job, with the helper's id of it; nothing where it was given up meanwhile."""
        share = kind is RequestKind.AGGREGATE_SHARE
        what = "helper_request, job FROM collections" if share else "request, peer FROM jobs"
        rows = self._store.read(f"SELECT {what} WHERE task = ? AND job = ?", self._number, job_id)
        return [(bytes(body), bytes(peer)) for body, peer in rows if body is not None]

    def _taken_in(self, outcome: Outcome, now: int) -> list[Write]:
        with self._counting:
            for time in outcome.times:
                self.ages.observe(now - time * self.task.task.time_precision)
            self._room.taken(sum(len(each.reports) for each in outcome.changes if isinstance(each, AddReports)))
        return self._writes(outcome)

    def _written(self, outcome: Outcome) -> Outcome:
        writes = self._writes(outcome)
        if writes:
            self._store.write_now(*writes)
            log_work(self.task, outcome.changes, len(outcome.rejected))
        if outcome.changes:
            self._leases.end(outcome.resource)
        self._remember(outcome)
        return outcome


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
        *([Write(released, (number,) * 3)] if task.role is DapRole.HELPER else []),
        Write(reports, (number,) * 5),
        Write(claims, (number,) * 3),
        Write(shards, (number,) * 2),
    ]


class HelperService(TaskService):
    """One task of a helper: one request at a time."""

    def init_job(self, body: bytes, keys: DecryptionKeyRing, now: int) -> Outcome:
        """Answer an `AggregationJobInitReq`."""
        return self._written(lambda: self._helper(keys).init_job(body, now, self._room.left(now)))

    def continue_job(self, job_id: bytes, body: bytes, keys: DecryptionKeyRing) -> Outcome:
        """Answer an `AggregationJobContinueReq`."""
        message = ContinueJob(job_id, body)

        def go_on() -> Outcome:
            going = self._going.get(job_id)
            return self._helper(keys).continue_job(message, going and going.state)

        return self._written(go_on)

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
        return Helper(self.task, self._remembering(keys), self._records)

    def _written(self, handle: Callable[[], Outcome]) -> Outcome:
        with self._lock:
            try:
                outcome = self._once(handle)
            except Contradiction:  # something else was written meanwhile: handle it with what is known by now
                outcome = self._once(handle)
            self._remember(outcome)
            return outcome

    def _once(self, handle: Callable[[], Outcome]) -> Outcome:
        outcome = handle()
        if outcome.changes or outcome.rejected:
            self._store.write_now(*self._writes(outcome))
            spent = (len(each.credentials) for each in outcome.changes if isinstance(each, SpendCredentials))
            self._room.taken(sum(spent))
            log_work(self.task, outcome.changes, len(outcome.rejected))
        return outcome
