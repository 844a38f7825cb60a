"""Which bucket a report belongs to, and which buckets a batch is made of (draft-ietf-ppm-dap-18, section 5).

A bucket is a key of bytes: eight of a time, or the 32 of a batch that the leader chose. Keys of one task have one
length and ascend as their times do, so a batch is a range of keys, and a database can compare them.
"""

from dataclasses import dataclass
from typing import Final

from hazemap.errors import CodecError
from hazemap.federated.protocols.dap.basic_types import BATCH_ID, Interval
from hazemap.federated.protocols.dap.collection_messages import BatchSelector, Query

MOST_BUCKETS: Final = 1 << 20
"""Buckets of the longest batch: two years of minutes."""


@dataclass(frozen=True)
class Batch:
    """All buckets from one key to another, both included.

    >>> day = Batch.of(Interval(10, 2))
    >>> bucket_at(11) in day, bucket_at(12) in day, day.overlaps(Batch.of(Interval(11, 5))), day.interval.duration
    (True, False, True, 2)
    """

    first: bytes
    last: bytes

    @classmethod
    def of(cls, selected: Interval | bytes) -> "Batch":
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

    def overlaps(self, other: "Batch") -> bool:
        """Whether a bucket is in both."""
        return self.first <= other.last and other.first <= self.last

    @property
    def interval(self) -> Interval:
        """Its times; InputError cannot be: only batches of times are asked."""
        start = int.from_bytes(self.first, "big")
        return Interval(start, int.from_bytes(self.last, "big") - start + 1)

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


def asked_batch(query: Query) -> Batch | None:
    """The batch that a collector names, or None where it takes the leader's next."""
    interval = query.interval()
    return None if interval is None else Batch.of(interval)
