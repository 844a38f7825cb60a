"""What an aggregator's state machine must be told of what was written before: the reading half of its storage."""

from collections.abc import Collection
from typing import Protocol

from hazemap.federated.protocols.dap.aggregator_changes import AggregationJob, CollectionJob
from hazemap.federated.protocols.dap.batches import Batch
from hazemap.federated.protocols.dap.bucket_shards import BucketShard
from hazemap.federated.protocols.dap.upload_messages import Report


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

    def reports(self, report_ids: Collection[bytes]) -> dict[bytes, Report]:
        """Those of the reports that still are whole, by their ids."""
        ...

    def waiting(self, level: int, batch: Batch | None, most: int) -> list[Report]:
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
