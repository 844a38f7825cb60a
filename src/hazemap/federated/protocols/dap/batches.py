"""Buckets of reports, batches of buckets, and shards of a bucket (draft-ietf-ppm-dap-18, sections 5 and 4.5.3.3).

A bucket is a key of bytes: eight of a time, or the 32 of a batch that the leader chose. Keys of one task have one
length and ascend as their times do, so a batch is a range of keys, and a database can compare them. A shard is what one
aggregation job adds to one bucket: a sum, a count, a checksum. Jobs never change each other's shards, so nothing is
read to be written again; a batch is the sum of its shards.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import xor
from typing import Final

from hazemap.errors import CodecError
from hazemap.federated.protocols.dap.basic_types import BATCH_ID, TimeInterval
from hazemap.federated.protocols.dap.collection_messages import CHECKSUM, BatchQuery, BatchSelector, checksum
from hazemap.machine_code.arrays import Words
from hazemap.vdaf.vdaf import Vdaf

MOST_BUCKETS: Final = 1 << 20
"""Buckets of the longest batch: two years of minutes."""


@dataclass(frozen=True)
class Batch:
    """All buckets from one key to another, both included.

    >>> day = Batch.of(TimeInterval(10, 2))
    >>> bucket_at(11) in day, bucket_at(12) in day, day.interval.duration
    (True, False, 2)
    """

    first: bytes
    last: bytes

    @classmethod
    def of(cls, selected: TimeInterval | bytes) -> "Batch":
        """The batch of an interval of times, or of the id that the leader gave it; CodecError where it is neither."""
        if isinstance(selected, bytes):
            if len(selected) != BATCH_ID:
                raise CodecError(f"the id of a batch has {BATCH_ID} bytes, not {len(selected)}")
            return cls(selected, selected)
        selected.checked()
        if selected.duration > MOST_BUCKETS:
            raise CodecError(f"a batch has at most {MOST_BUCKETS:,} buckets of time, not {selected.duration:,}")
        return cls(bucket_at(selected.start), bucket_at(selected.end - 1))

    def __contains__(self, bucket: object) -> bool:
        return isinstance(bucket, bytes) and self.first <= bucket <= self.last

    @property
    def interval(self) -> TimeInterval:
        """Its times; InputError cannot be: only batches of times are asked."""
        start = int.from_bytes(self.first, "big")
        return TimeInterval(start, int.from_bytes(self.last, "big") - start + 1)

    def selector(self) -> BatchSelector:
        """How the leader names it to the helper."""
        return (
            BatchSelector.of_batch(self.first)
            if len(self.first) == BATCH_ID
            else BatchSelector.of_interval(self.interval)
        )


def bucket_at(time: int) -> bytes:
    """The bucket of a report's time, where batches are intervals of time.

    >>> bucket_at(258).hex()
    '0000000000000102'
    """
    return time.to_bytes(8, "big")


def asked_batch(query: BatchQuery) -> Batch | None:
    """The batch that a collector names, or None where it takes the leader's next."""
    interval = query.interval()
    return None if interval is None else Batch.of(interval)


@dataclass(frozen=True)
class OutputShare:
    """One report's share of the sum, once it is verified."""

    report_id: bytes
    time: int
    bucket: bytes
    share: Words = field(repr=False)


@dataclass(frozen=True)
class BucketShard:
    """The reports of one job in one bucket: their encoded share of the sum, their number, their ids, their times."""

    bucket: bytes
    share: bytes = field(repr=False)
    count: int
    checksum: bytes
    first_time: int
    last_time: int


def bucket_shards(vdaf: Vdaf, agg_param: bytes, shares: Sequence[OutputShare]) -> tuple[BucketShard, ...]:
    """The shards of a job's verified reports, one a bucket; O(reports × length of a share)."""
    buckets = dict[bytes, list[OutputShare]]()
    for each in shares:
        buckets.setdefault(each.bucket, []).append(each)
    return tuple(
        BucketShard(
            bucket,
            vdaf.encode_agg_share(agg_param, vdaf.merge(agg_param, [each.share for each in members])),
            len(members),
            checksum(each.report_id for each in members),
            min(each.time for each in members),
            max(each.time for each in members),
        )
        for bucket, members in sorted(buckets.items())
    )


@dataclass(frozen=True)
class BatchTotal:
    """All shards of a batch together. `share` is one aggregator's, without noise: it must not leave as it is."""

    share: Words = field(repr=False)
    count: int
    checksum: bytes
    interval: TimeInterval


def batch_total(vdaf: Vdaf, agg_param: bytes, shards: Iterable[BucketShard]) -> BatchTotal:
    """The sum of the shards; of none at all it is empty."""
    members = list(shards)
    digest = bytes(CHECKSUM)
    for each in members:
        digest = bytes(map(xor, digest, each.checksum))
    start = min((each.first_time for each in members), default=0)
    end = max((each.last_time + 1 for each in members), default=0)
    share = vdaf.merge(agg_param, (vdaf.decode_agg_share(agg_param, each.share) for each in members))
    return BatchTotal(share, sum(each.count for each in members), digest, TimeInterval(start, end - start))
