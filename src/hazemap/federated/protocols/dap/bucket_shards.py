"""What one aggregation job adds to one bucket (draft-ietf-ppm-dap-18, section 4.5.3.3): a sum, a count, a checksum.

Jobs never change each other's shards, so nothing is read to be written again; a batch is the sum of its shards.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import xor

from hazemap.federated.protocols.dap.basic_types import Interval
from hazemap.federated.protocols.dap.collection_messages import CHECKSUM, checksum
from hazemap.machine_code.arrays import Words
from hazemap.vdaf.vdaf import Vdaf


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
    interval: Interval


def batch_total(vdaf: Vdaf, agg_param: bytes, shards: Iterable[BucketShard]) -> BatchTotal:
    """The sum of the shards; of none at all it is empty."""
    members = list(shards)
    digest = bytes(CHECKSUM)
    for each in members:
        digest = bytes(map(xor, digest, each.checksum))
    start = min((each.first_time for each in members), default=0)
    end = max((each.last_time + 1 for each in members), default=0)
    share = vdaf.merge(agg_param, (vdaf.decode_agg_share(agg_param, each.share) for each in members))
    return BatchTotal(share, sum(each.count for each in members), digest, Interval(start, end - start))
