"""How a batch is collected (draft-ietf-ppm-dap-18, sections 4.6 and 5)."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Final, Self

from hazemap.errors import CodecError
from hazemap.federated.protocols.dap.basic_types import BATCH_ID, HpkeCiphertext, Share, TaskId, TimeInterval
from hazemap.federated.protocols.dap.resource_paths import DapMessage
from hazemap.federated.protocols.dap.task import BatchMode, Configuration, read_interval
from hazemap.federated.protocols.dap.vdaf_configuration import Extensions
from hazemap.vdaf.tls_encoding import Structure, code, fixed, number, opaque, part

CHECKSUM: Final = 32
_SMALL = 1 << 26


@dataclass(frozen=True)
class BatchQuery(Structure):
    """Which batch the collector asks for.

    >>> BatchQuery.of_interval(TimeInterval(1, 2)).interval()
    TimeInterval(start=1, duration=2)
    """

    batch_mode: Annotated[BatchMode, code(BatchMode, 1)]
    config: Annotated[bytes, opaque(2)]

    @classmethod
    def of_interval(cls, interval: TimeInterval) -> Self:
        """The reports whose time is in an interval."""
        return cls(BatchMode.TIME_INTERVAL, interval.to_bytes())

    @classmethod
    def next_batch(cls) -> Self:
        """The next batch of the leader's."""
        return cls(BatchMode.LEADER_SELECTED, b"")

    def interval(self) -> TimeInterval | None:
        """The interval asked for, or None for the next batch; CodecError if it asks for neither."""
        if self.batch_mode is BatchMode.TIME_INTERVAL:
            return read_interval(self.config)
        if self.batch_mode is BatchMode.LEADER_SELECTED and not self.config:
            return None
        raise CodecError("a query asks for an interval of times or, with nothing more, for the next batch")


@dataclass(frozen=True)
class BatchSelector(Structure):
    """Which batch the leader means.

    >>> BatchSelector.of_batch(bytes(32)).batch() == bytes(32)
    True
    """

    batch_mode: Annotated[BatchMode, code(BatchMode, 1)]
    config: Annotated[bytes, opaque(2)]

    @classmethod
    def of_interval(cls, interval: TimeInterval) -> Self:
        """The reports whose time is in an interval."""
        return cls(BatchMode.TIME_INTERVAL, interval.to_bytes())

    @classmethod
    def of_batch(cls, batch_id: bytes) -> Self:
        """The batch of this name."""
        return cls(BatchMode.LEADER_SELECTED, batch_id)

    def batch(self) -> TimeInterval | bytes:
        """The interval or the id of the batch; CodecError if it is neither."""
        if self.batch_mode is BatchMode.TIME_INTERVAL:
            return read_interval(self.config)
        if self.batch_mode is BatchMode.LEADER_SELECTED and len(self.config) == BATCH_ID:
            return self.config
        raise CodecError(f"a batch is an interval of times, or has an id of {BATCH_ID} bytes")

    def answers(self, query: BatchQuery) -> bool:
        """Whether this batch is one that the query asks for."""
        batch, asked = self.batch(), query.interval()
        if self.batch_mode is not query.batch_mode:
            return False
        return asked is None or (isinstance(batch, TimeInterval) and batch.within(asked))


@dataclass(frozen=True)
class CollectionJobReq(DapMessage, name="collection-job-req", largest=_SMALL):
    """What a collector asks the leader for; both aggregate shares are bound to it, byte for byte.

    >>> CollectionJobReq(BatchQuery.next_batch(), b"012345").to_bytes().hex()
    '020000000000063031323334350000'
    """

    query: Annotated[BatchQuery, part(BatchQuery)]
    agg_param: Share
    extensions: Extensions = ()


@dataclass(frozen=True)
class CollectionJobResp(DapMessage, name="collection-job-resp"):
    """How many reports, of which times, and the shares of their sum, sealed for the collector."""

    report_count: Annotated[int, number(8)]
    interval: Annotated[TimeInterval, part(TimeInterval)]
    leader_share: Annotated[HpkeCiphertext, part(HpkeCiphertext)]
    helper_share: Annotated[HpkeCiphertext, part(HpkeCiphertext)]


@dataclass(frozen=True)
class AggregateShareReq(DapMessage, name="aggregate-share-req", largest=_SMALL):
    """What the leader asks the helper for: the same batch, with as many and the same reports."""

    collection_job_req: Annotated[CollectionJobReq, part(CollectionJobReq)]
    batch_selector: Annotated[BatchSelector, part(BatchSelector)]
    report_count: Annotated[int, number(8)]
    checksum: Annotated[bytes, fixed(CHECKSUM)]


@dataclass(frozen=True)
class AggregateShare(DapMessage, name="aggregate-share"):
    """The helper's share of the sum, sealed for the collector."""

    encrypted_aggregate_share: Annotated[HpkeCiphertext, part(HpkeCiphertext)]


@dataclass(frozen=True)
class AggregateShareAad(Structure):
    """What an aggregate share is bound to."""

    task_id: TaskId
    task_configuration: Configuration
    collection_job_req: Annotated[CollectionJobReq, part(CollectionJobReq)]


def checksum(report_ids: Iterable[bytes], before: bytes = bytes(CHECKSUM)) -> bytes:
    """The exclusive or of the SHA-256 of report ids, beginning with that of others (section 4.5.3.3).

    >>> twice = checksum([bytes(16)], before=checksum([bytes(16)]))
    >>> twice == bytes(32)
    True
    """
    total = int.from_bytes(before, "big")
    for report_id in report_ids:
        total ^= int.from_bytes(sha256(report_id).digest(), "big")
    return total.to_bytes(CHECKSUM, "big")
