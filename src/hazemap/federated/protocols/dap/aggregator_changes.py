"""What an aggregator's state machine reads from its storage, and the changes that it asks it to write.

All changes of one message are written together, or none. Each says what must not be there before. A storage that finds
it there refuses all of them, and the message is handled again with what is known by then.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Protocol

from hazemap.federated.protocols.dap.basic_types import ReportError, TimeInterval
from hazemap.federated.protocols.dap.batches import Batch, BucketShard
from hazemap.federated.protocols.dap.upload_messages import DapReport


@dataclass(frozen=True)
class AddReports:
    """Reports that were uploaded. One whose id is there already is passed over."""

    reports: tuple[DapReport, ...] = field(repr=False)


@dataclass(frozen=True)
class SpendCredentials:
    """Serials, each with the digest of the report that it was spent on; one that is there already contradicts it."""

    credentials: tuple[tuple[bytes, bytes], ...] = field(repr=False)


@dataclass(frozen=True)
class ClaimReports:
    """These reports are verified by this job at this level, and by no other ever: a claim of another contradicts it.

    `reports` are their ids and times; a claim is kept until its report expires.
    """

    job_id: bytes
    level: int
    reports: tuple[tuple[bytes, int], ...]


@dataclass(frozen=True)
class CountReports:
    """These claimed reports are in the sum."""

    job_id: bytes
    level: int
    report_ids: tuple[bytes, ...]


@dataclass(frozen=True)
class ScrubReports:
    """What these reports said is not needed any more; their ids are kept."""

    report_ids: tuple[bytes, ...]


@dataclass(frozen=True)
class ScrubBatch:
    """What the reports of a batch of times said is not needed any more."""

    batch: Batch


@dataclass(frozen=True)
class AggregationJob:
    """A job of either aggregator. `request` is kept while it is under way: from it the verification is taken up again.

    The helper keeps the first request, and of the last one, of `step`, the digest and the answer. The leader keeps the
    request of `step`, which it sends until it is answered, the answer of the step before, and the helper's id of it.
    """

    job_id: bytes
    agg_param: bytes
    batch: Batch
    step: int
    digest: bytes
    answer: bytes = field(repr=False)
    request: bytes | None = field(default=None, repr=False)
    peer: bytes = b""

    @property
    def done(self) -> bool:
        """Whether nothing is left to verify."""
        return self.request is None


@dataclass(frozen=True)
class AddJob:
    """A job that was not there."""

    job: AggregationJob


@dataclass(frozen=True)
class AdvanceJob:
    """A job that was at step `before`, and not done."""

    job: AggregationJob
    before: int


@dataclass(frozen=True)
class AddShards:
    """What a job adds to its buckets; a bucket that was collected with this parameter meanwhile contradicts it."""

    job_id: bytes
    agg_param: bytes
    shards: tuple[BucketShard, ...]


@dataclass(frozen=True)
class CloseBatch:
    """The batch is collected with this parameter: no report is added any more, and its shards are scrubbed.

    A batch that overlaps it, and was closed with this parameter or is another, contradicts it; so do shards of another
    number of reports than `count`. With `keep`, its shards stay, for further questions about them.
    """

    batch: Batch
    agg_param: bytes
    count: int
    keep: bool = False


@dataclass(frozen=True)
class AddQuestion:
    """A question about the batch is answered: as the `place`-th, from 0. One that is there already contradicts it."""

    batch: Batch
    place: int
    question: bytes = field(repr=False)


@dataclass(frozen=True)
class WithdrawQuestion:
    """The last question about the batch was never answered by the helper: the leader's account is as it was before.

    `agg_param` is the level that was closed for it, which is open again; None if it was closed before.
    """

    batch: Batch
    place: int
    question: bytes = field(repr=False)
    agg_param: bytes | None


@dataclass(frozen=True)
class AddAggregateShare:
    """The helper's answer for a batch, sealed with its noise in it."""

    share_id: bytes
    digest: bytes
    answer: bytes = field(repr=False)


@dataclass(frozen=True)
class CollectionJob:
    """A collection job of the leader: asked, then closed (its own share is sealed, the helper is asked), then done."""

    job_id: bytes
    request: bytes = field(repr=False)
    batch: Batch | None = None
    helper_request: bytes | None = field(default=None, repr=False)
    count: int = 0
    interval: TimeInterval | None = None
    leader_share: bytes | None = field(default=None, repr=False)
    answer: bytes | None = field(default=None, repr=False)
    problem: bytes | None = None

    @property
    def state(self) -> str:
        """How far it is."""
        if self.problem is not None:
            return "failed"
        if self.answer is not None:
            return "done"
        return "asked" if self.helper_request is None else "closed"


@dataclass(frozen=True)
class PutCollection:
    """A collection job, as it is now; `before` is the state it was in, or None where it was not there."""

    job: CollectionJob
    before: str | None


@dataclass(frozen=True)
class DropJob:
    """A job that was abandoned. Its claims stay, so that none of its reports is verified twice."""

    job_id: bytes


Change = (
    AddReports
    | SpendCredentials
    | ClaimReports
    | CountReports
    | ScrubReports
    | ScrubBatch
    | AddJob
    | AdvanceJob
    | AddShards
    | CloseBatch
    | AddQuestion
    | WithdrawQuestion
    | AddAggregateShare
    | PutCollection
    | DropJob
)


@dataclass(frozen=True)
class Outcome:
    """What handling a message comes to: write the changes, then answer with `message`; `resource` is what it is about.

    `state` may be kept in memory to go on faster; what is written is enough to go on.
    """

    message: bytes
    resource: bytes = b""
    changes: tuple[Change, ...] = ()
    state: object = field(default=None, repr=False)
    rejected: tuple[ReportError, ...] = ()
    """why reports were not taken, one entry each"""
    times: tuple[int, ...] = ()
    """of the reports that were uploaded, taken or not, in time precisions"""


class AggregatorRecords(Protocol):
    """Both aggregators' records of one task."""

    def job(self, job_id: bytes, whole: bool = True) -> AggregationJob | None:
        """An aggregation job; if not `whole`, a request that is kept is b"", and `peer` too."""
        ...

    def claimed(self, level: int, report_ids: Collection[bytes]) -> set[bytes]:
        """Those of the reports that a job has claimed at this level."""
        ...

    def counted(self, level: int, agg_param: bytes, report_ids: Collection[bytes]) -> set[bytes]:
        """Those of the reports that are in a sum with this parameter, which is of this level."""
        ...

    def forgotten_before(self) -> int:
        """The time before which reports have expired and claims to them were deleted: none is taken again."""
        ...

    def collected(self, batch: Batch) -> list[tuple[Batch, bytes]]:
        """The collected batches that overlap this one, each with its parameter, in the order of their collection."""
        ...

    def shards(self, agg_param: bytes, batch: Batch) -> list[BucketShard]:
        """What is in a batch that is not collected, or whose shards are kept."""
        ...

    def questions(self, batch: Batch) -> list[bytes]:
        """The questions that were answered about this batch, in their order."""
        ...

    def strays(self, batch: Batch, agg_param: bytes, before: bytes) -> int:
        """How many reports of a batch of times are in the sum with one parameter, and not in that with another."""
        ...

    def spent(self, serials: list[bytes]) -> dict[bytes, bytes]:
        """Those of the serials that were spent, each with the digest of its report."""
        ...

    def aggregate_share(self, share_id: bytes) -> tuple[bytes, bytes] | None:
        """The digest of the request for an aggregate share, and the answer."""
        ...


class LeaderRecords(AggregatorRecords, Protocol):
    """What the leader knows besides."""

    def uploaded(self, report_ids: Collection[bytes]) -> set[bytes]:
        """Those of the reports that were uploaded before."""
        ...

    def reports(self, report_ids: Collection[bytes]) -> dict[bytes, DapReport]:
        """Those of the reports that still are whole, by their ids."""
        ...

    def waiting(self, level: int, batch: Batch | None, most: int) -> list[DapReport]:
        """Reports that no job has claimed at this level, of these times, the oldest first."""
        ...

    def open_jobs(self, agg_param: bytes, batch: Batch) -> int:
        """How many aggregation jobs with this parameter are under way in a batch."""
        ...

    def with_helper(self, batch: Batch) -> int:
        """How many collection jobs of a batch are closed here, and wait for the helper's share."""
        ...

    def collection(self, job_id: bytes) -> CollectionJob | None:
        """A collection job."""
        ...

    def batches_ready(self, agg_param: bytes, least: int) -> list[bytes]:
        """The leader's own batches that are not collected and hold at least so many reports, the oldest first."""
        ...
