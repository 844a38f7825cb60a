"""Tasks of an aggregator: the folder of task files, the stored rows of each task, its noise, and its end.

Task files never change, and no id is forgotten. Noise is rounded up, never down. A measurement is written as `count`,
`sum:MAX`, `vector:LENGTH:MAX`, `histogram:CELLS`, … When a task is over for good, its reports, jobs, shares, results
and terms are deleted; until then a collector that comes late gets what it paid for, by the same bytes. A row with the
task's id stays, so that the same task is not begun again: reports that devices paid for once would then be added up
with new noise.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable
from fractions import Fraction
from hashlib import sha256
from itertools import islice
from math import ceil, isqrt
from typing import Any, Final

from hazemap.errors import InputError
from hazemap.federated.aggregator.task_file import ROLES, TaskFile
from hazemap.federated.protocols.dap.aggregator_changes import AggregationJob, CollectionJob
from hazemap.federated.protocols.dap.aggregator_task import AggregatorTask, DrawNoise
from hazemap.federated.protocols.dap.basic_types import BATCH_ID, DapRole, TimeInterval
from hazemap.federated.protocols.dap.batches import Batch, BucketShard
from hazemap.federated.protocols.dap.privacy_parameters import MICRO, PrivacyParameters
from hazemap.federated.protocols.dap.task_vdaf import vdaf_of
from hazemap.federated.protocols.dap.upload_messages import DapReport
from hazemap.federated.protocols.dap.vdaf_configuration import (
    CountConfiguration,
    HistogramConfiguration,
    MultihotConfiguration,
    Poplar1Configuration,
    SumConfiguration,
    SumVecConfiguration,
    VdafConfiguration,
)
from hazemap.federated.service.store import Store, Write
from hazemap.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from hazemap.privacy.random_stream import Stream

Read = Callable[..., list[tuple[Any, ...]]]
"""A store's `read`: SQL, then its values."""
LATEST: Final = (1 << 63) - 1
"""The last time that a database can hold; reports of later times are too early for any clock."""
_AT_A_TIME: Final = 500
"""Values of one list in SQL."""
_LOOKED_AT: Final = 64
_AHEAD: Final = 1 << 14
"""Reports that wait, at most, whose ids are looked up together for the jobs to come."""


def parameter_digest(agg_param: bytes) -> bytes:
    """What stands for an aggregation parameter in keys: 16 bytes, however long it is."""
    return sha256(agg_param).digest()[:16]


class TaskRecords:
    """The records of the task with this number, as of the last commit."""

    def __init__(self, read: Read, task: int) -> None:
        self._read, self._task = read, task
        self._ahead: dict[tuple[int, int, int], deque[bytes]] = {}

    def job(self, job_id: bytes, whole: bool = True) -> AggregationJob | None:
        """An aggregation job, if not `whole` without the bytes of its request, which are many, and the other's id."""
        columns = "agg_param, first, last, step, digest, answer, request IS NULL"
        columns += ", request, peer" if whole else ""
        sql = f"SELECT {columns} FROM jobs WHERE task = ? AND job = ?"  # noqa: S608 - ours
        rows = self._read(sql, self._task, job_id)
        if not rows:
            return None
        agg_param, first, last, step, digest, answer, none, *more = rows[0]
        batch = Batch(bytes(first), bytes(last))
        request, peer = more if whole and not none else (b"", more[1] if whole else b"")
        kept = None if none else bytes(request)
        return AggregationJob(job_id, bytes(agg_param), batch, step, bytes(digest), bytes(answer), kept, bytes(peer))

    def claimed(self, level: int, report_ids: Collection[bytes]) -> set[bytes]:
        """Those of the reports that a job has claimed at this level."""
        return self._of(report_ids, "SELECT report FROM claims WHERE task = ? AND level = ?", self._task, level)

    def counted(self, level: int, agg_param: bytes, report_ids: Collection[bytes]) -> set[bytes]:
        """Those of the reports that are in a sum with this parameter, which is of this level."""
        return self._of(
            report_ids,
            "SELECT report FROM claims JOIN jobs ON jobs.task = claims.task AND jobs.job = claims.job "
            "WHERE claims.task = ? AND level = ? AND counted = 1 AND parameter = ?",
            self._task,
            level,
            parameter_digest(agg_param),
        )

    def forgotten_before(self) -> int:
        """The time before which reports have expired and claims to them were deleted: none is taken again."""
        rows = self._read("SELECT earliest FROM forgotten WHERE task = ?", self._task)
        return int(rows[0][0]) if rows else 0

    def uploaded(self, report_ids: Collection[bytes]) -> set[bytes]:
        """Those of the reports that were uploaded before."""
        return self._of(report_ids, "SELECT report FROM reports WHERE task = ?", self._task)

    def stored(self) -> int:
        """How many reports are kept, whole or only by their ids."""
        [(number,)] = self._read("SELECT count(*) FROM reports WHERE task = ?", self._task)
        return int(number)

    def spent(self, serials: list[bytes]) -> dict[bytes, bytes]:
        """Those of the serials that were spent, each with the digest of its report."""
        rows = self._listed(
            serials, "SELECT serial, report FROM credentials WHERE task = ?", self._task, column="serial"
        )
        return {bytes(serial): bytes(report) for serial, report in rows}

    def all_spent(self) -> int:
        """How many were spent."""
        [(number,)] = self._read("SELECT count(*) FROM credentials WHERE task = ?", self._task)
        return int(number)

    def collected(self, batch: Batch) -> list[tuple[Batch, bytes]]:
        """The collected batches that overlap this one, each with its parameter, in the order of their collection."""
        rows = self._read(
            "SELECT first, last, agg_param FROM collected WHERE task = ? AND first <= ? AND last >= ? ORDER BY seq",
            self._task,
            batch.last,
            batch.first,
        )
        return [(Batch(bytes(first), bytes(last)), bytes(agg_param)) for first, last, agg_param in rows]

    def shards(self, agg_param: bytes, batch: Batch) -> list[BucketShard]:
        """What is in a batch that is not collected, or whose shards are kept."""
        rows = self._read(
            "SELECT bucket, share, count, checksum, first_time, last_time FROM shards "
            "WHERE task = ? AND parameter = ? AND bucket >= ? AND bucket <= ? AND share IS NOT NULL",
            self._task,
            parameter_digest(agg_param),
            batch.first,
            batch.last,
        )
        return [
            BucketShard(bytes(bucket), bytes(share), count, bytes(checksum), first, last)
            for bucket, share, count, checksum, first, last in rows
        ]

    def questions(self, batch: Batch) -> list[bytes]:
        """The questions that were answered about this batch, in their order."""
        rows = self._read(
            "SELECT question FROM questions WHERE task = ? AND first = ? AND last = ? ORDER BY place",
            self._task,
            batch.first,
            batch.last,
        )
        return [bytes(question) for (question,) in rows]

    def strays(self, batch: Batch, agg_param: bytes, before: bytes) -> int:
        """How many reports of a batch of times are in the sum with one parameter, and not in that with another."""
        counted = (
            "SELECT report FROM claims JOIN jobs ON jobs.task = claims.task AND jobs.job = claims.job "
            "WHERE claims.task = ? AND counted = 1 AND parameter = ? AND time >= ? AND time <= ?"
        )
        times = batch_times(batch)
        [(number,)] = self._read(
            f"SELECT count(*) FROM ({counted}) AS here WHERE report NOT IN ({counted})",  # noqa: S608 - ours
            self._task,
            parameter_digest(agg_param),
            *times,
            self._task,
            parameter_digest(before),
            *times,
        )
        return int(number)

    def aggregate_share(self, share_id: bytes) -> tuple[bytes, bytes] | None:
        """The digest of the request for an aggregate share, and the answer."""
        rows = self._read(
            "SELECT digest, answer FROM aggregate_shares WHERE task = ? AND share = ?", self._task, share_id
        )
        return (bytes(rows[0][0]), bytes(rows[0][1])) if rows else None

    def reports(self, report_ids: Collection[bytes]) -> dict[bytes, DapReport]:
        """Those of the reports that still are whole, by their ids."""
        sql = "SELECT report, body FROM reports WHERE task = ? AND body IS NOT NULL"
        rows = self._listed(report_ids, sql, self._task)
        return {bytes(report): DapReport.from_bytes(bytes(body)) for report, body in rows}

    def waiting(self, level: int, batch: Batch | None, most: int) -> list[DapReport]:
        """Reports that no job has claimed at this level, of these times, the oldest first.

        Ids are looked up for many jobs at once: who waits is found by passing over all who were claimed.
        """
        first, last = (0, LATEST) if batch is None or len(batch.first) == BATCH_ID else batch_times(batch)
        found, asked = list[DapReport](), (level, first, last)
        ahead = self._ahead.get(asked) or self._unclaimed(*asked)
        while ahead and not found:
            some = list(islice(ahead, max(most, _LOOKED_AT)))
            claimed = self.claimed(level, some)
            free = [each for each in some if each not in claimed][:most]
            whole = self.reports(free)
            found = [whole[each] for each in free if each in whole]
            gone = claimed.union(each for each in free if each not in whole)
            while ahead and ahead[0] in gone:
                ahead.popleft()
            ahead = ahead or self._unclaimed(*asked)
        self._ahead = {asked: ahead}
        return found

    def _unclaimed(self, level: int, first: int, last: int) -> deque[bytes]:
        rows = self._read(
            "SELECT report FROM reports WHERE task = ? AND body IS NOT NULL AND time >= ? AND time <= ? AND NOT EXISTS "
            "(SELECT 1 FROM claims WHERE claims.task = reports.task AND level = ? AND claims.report = reports.report) "
            "ORDER BY time LIMIT ?",
            self._task,
            first,
            last,
            level,
            _AHEAD,
        )
        return deque(bytes(report) for (report,) in rows)

    def open_jobs(self, agg_param: bytes, batch: Batch) -> int:
        """How many aggregation jobs with this parameter are under way in a batch."""
        rows = self._read(
            "SELECT count(*) FROM jobs WHERE task = ? AND request IS NOT NULL AND parameter = ? AND first <= ? "
            "AND last >= ?",
            self._task,
            parameter_digest(agg_param),
            batch.last,
            batch.first,
        )
        number: int = rows[0][0]
        return number

    def with_helper(self, batch: Batch) -> int:
        """How many collection jobs of a batch are closed here, and wait for the helper's share."""
        rows = self._read(
            "SELECT count(*) FROM collections WHERE task = ? AND state = 'closed' AND first <= ? AND last >= ?",
            self._task,
            batch.last,
            batch.first,
        )
        number: int = rows[0][0]
        return number

    def collection(self, job_id: bytes) -> CollectionJob | None:
        """A collection job."""
        rows = self._read(
            "SELECT request, first, last, helper_request, count, start, duration, leader_share, answer, problem "
            "FROM collections WHERE task = ? AND job = ?",
            self._task,
            job_id,
        )
        if not rows:
            return None
        request, first, last, helper_request, count, start, duration, share, answer, problem = rows[0]
        return CollectionJob(
            job_id,
            bytes(request),
            None if first is None else Batch(bytes(first), bytes(last)),
            _bytes(helper_request),
            count,
            None if start is None else TimeInterval(start, duration),
            _bytes(share),
            _bytes(answer),
            _bytes(problem),
        )

    def batches_ready(self, agg_param: bytes, least: int) -> list[bytes]:
        """The leader's own batches that are not collected and hold at least so many reports, the fullest first."""
        rows = self._read(
            "SELECT bucket FROM shards WHERE task = ? AND parameter = ? AND share IS NOT NULL GROUP BY bucket "
            "HAVING sum(count) >= ? ORDER BY sum(count) DESC, bucket",
            self._task,
            parameter_digest(agg_param),
            least,
        )
        return [bytes(bucket) for (bucket,) in rows]

    def _of(self, wanted: Collection[bytes], sql: str, *values: object) -> set[bytes]:
        return {bytes(report) for report, *_ in self._listed(wanted, sql, *values, column="report")}

    def _listed(
        self, wanted: Collection[bytes], sql: str, *values: object, column: str = "report"
    ) -> list[tuple[Any, ...]]:
        """The rows of a query of which one column is among many values."""
        every, rows = list(wanted), list[tuple[Any, ...]]()
        for start in range(0, len(every), _AT_A_TIME):
            part = every[start : start + _AT_A_TIME]
            marks = ", ".join("?" * len(part))
            rows += self._read(f"{sql} AND {column} IN ({marks})", *values, *part)
        return rows


def batch_times(batch: Batch) -> tuple[int, int]:
    """The first and the last time of a batch, as far as a database can hold them."""
    return min(int.from_bytes(batch.first, "big"), LATEST), min(int.from_bytes(batch.last, "big"), LATEST)


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


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


def ending_write(number: int) -> Write:
    """From now on this task is nobody's: whatever else is left of it is deleted afterwards, or at the next start."""
    return Write("UPDATE tasks SET terms = ? WHERE task = ?", (FORGOTTEN, number))


def forgetting_writes(number: int) -> list[Write]:
    """Delete all that is left of a task, a table at a time."""
    return [Write(f"DELETE FROM {table} WHERE task = ?", (number,)) for table in _ROWS]  # noqa: S608 - ours


def aggregator_task(file: TaskFile, stream: Callable[[], Stream] = Stream.from_os) -> AggregatorTask:
    """What an aggregator makes of its file. Its noise is that of the task, each time from a fresh stream."""
    role = ROLES.get(file.party)
    if role is None or file.verify_key is None or file.collector is None:
        raise InputError(f"this is the file of a {file.party}: an aggregator takes a leader's or a helper's")
    task = file.task
    noise: DrawNoise | None = (lambda law, size: law.draw(stream(), size)) if task.noisy else None
    terms = file.report_expiry, file.open_reports
    return AggregatorTask(task, role, vdaf_of(task), file.verify_key, file.collector, noise, *terms)


def register_tasks(store: Store, files: Iterable[TaskFile], role: DapRole) -> dict[bytes, int]:
    """The number of each task in the store; `InputError` for a file of another role, or a task that has changed."""
    numbers = {bytes(task): (number, bytes(terms)) for number, task, terms in store.read("SELECT * FROM tasks")}
    after = max((number for number, _ in numbers.values()), default=0)
    for file in files:
        task = file.task
        if ROLES.get(file.party) is not role:
            raise InputError(f"this aggregator is a {role.name.lower()}; a task file is of a {file.party}")
        terms = sha256(task.configuration + (file.verify_key or b"") + task.version.tag).digest()
        known = numbers.get(task.id)
        if known is not None and known[1] == FORGOTTEN:
            raise InputError("a task of this id is over, and was forgotten: give a new one an id of its own")
        if known is not None and known[1] != terms:
            raise InputError(
                "a task is another than it was: a task never changes, so give the new one an id of its own"
            )
        if known is None:
            after += 1
            store.write_now(Write("INSERT INTO tasks VALUES (?, ?, ?)", (after, task.id, terms)))
            numbers[task.id] = (after, terms)
    return {task: number for task, (number, _) in numbers.items()}


_DOUBLINGS = 60


def noise_within(measured: VdafConfiguration, epsilon: Fraction, delta: Fraction, levels: int) -> PrivacyParameters:
    """The least noise, in millionths, whose price of all levels is within ε: Laplace at δ = 0, else Gaussian.

    >>> from hazemap.federated.protocols.dap.vdaf_configuration import HistogramConfiguration
    >>> noise_within(HistogramConfiguration(64, 8), Fraction(1, 2), Fraction(0), 1).noise
    DiscreteLaplace(scale=Fraction(2, 1))
    """
    if not 0 < epsilon <= 1000 or not 0 <= delta < 1:
        raise InputError("ε is above 0 and at most 1000, and δ from 0 to below 1")
    if (epsilon * MICRO).denominator != 1 or (delta and (1 / delta).denominator != 1):
        raise InputError("ε is a whole number of millionths, and 1/δ a whole number")
    if not delta:
        scale = Fraction(ceil(levels * measured.norm_1 / epsilon * MICRO), MICRO)
        return _checked(PrivacyParameters.of(DiscreteLaplace(scale), levels, epsilon), measured)
    low, high = 0, 1
    while not _fits(measured, Fraction(high, MICRO), levels, epsilon, delta):
        low, high = high, 2 * high
        if high.bit_length() > _DOUBLINGS:
            raise InputError("no noise that can be drawn is within so small a budget")
    while high - low > 1:
        middle = (low + high) // 2
        enough = _fits(measured, Fraction(middle, MICRO), levels, epsilon, delta)
        low, high = (low, middle) if enough else (middle, high)
    noise = DiscreteGaussian(Fraction(high, MICRO))
    return _checked(PrivacyParameters.of(noise, levels, epsilon, delta), measured)


def _fits(measured: VdafConfiguration, variance: Fraction, levels: int, epsilon: Fraction, delta: Fraction) -> bool:
    return PrivacyParameters.of(DiscreteGaussian(variance), levels, epsilon, delta).price(measured) <= epsilon


def _checked(parameters: PrivacyParameters, measured: VdafConfiguration) -> PrivacyParameters:
    parameters.check(measured)
    return parameters


MEASUREMENTS: Final = "count, sum:MAX, vector:LENGTH:MAX, histogram:CELLS, bits:LENGTH:MOST, prefixes:BITS"
_PARTS: Final = {"count": 0, "sum": 1, "vector": 2, "histogram": 1, "bits": 2, "prefixes": 1}


def measurement_of(text: str) -> VdafConfiguration:
    """The VDAF for a measurement; proofs are cut into about as many chunks as each is long, which keeps them short.

    >>> measurement_of("histogram:4096")
    HistogramConfiguration(length=4096, chunk_length=64)
    """
    name, *parts = text.split(":")
    if len(parts) != _PARTS.get(name, -1) or not all(part.isascii() and part.isdecimal() for part in parts):
        raise InputError(f"a task measures one of {MEASUREMENTS}; found {text!r:.60}")
    if any(len(part) > 20 for part in parts):
        raise InputError(f"a number of {text!r:.60} is too large")
    numbers = [int(part) for part in parts]
    match name:
        case "count":
            return CountConfiguration()
        case "sum":
            return SumConfiguration(*numbers)
        case "vector":
            length, most = numbers
            return SumVecConfiguration(length, most, _chunk(length * most.bit_length()))
        case "histogram":
            return HistogramConfiguration(numbers[0], _chunk(numbers[0]))
        case "bits":
            length, most = numbers
            return MultihotConfiguration(length, _chunk(length + most.bit_length()), most)
        case _:
            return Poplar1Configuration(*numbers)


def _chunk(length: int) -> int:
    return max(1, isqrt(length))
