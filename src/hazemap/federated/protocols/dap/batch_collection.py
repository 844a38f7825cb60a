"""What an aggregator is about to give for a batch: the sums of one parameter, or the answer to a question."""

from dataclasses import dataclass, field
from functools import cached_property

from hazemap.federated.protocols.dap.aggregate_share_sealing import sealed_share
from hazemap.federated.protocols.dap.aggregator_changes import AggregatorRecords, Change, CloseBatch
from hazemap.federated.protocols.dap.aggregator_task import AggregatorTask
from hazemap.federated.protocols.dap.basic_types import HpkeCiphertext
from hazemap.federated.protocols.dap.batch_questions import AskedQuestion, asked_question
from hazemap.federated.protocols.dap.batches import Batch, BatchTotal, batch_total
from hazemap.federated.protocols.dap.collection_messages import CollectionJobReq
from hazemap.federated.protocols.dap.leader_uploads import check_collectable


@dataclass(frozen=True)
class CollectedParameter:
    """A batch that may be collected with the parameter of a collection job: make one with `batch_collection`."""

    task: AggregatorTask
    records: AggregatorRecords = field(repr=False)
    batch: Batch
    request: CollectionJobReq

    verifies = True
    """Its reports are verified for it."""

    @property
    def parameter(self) -> bytes:
        """What reports are verified with."""
        return self.request.agg_param

    @property
    def last(self) -> bool:
        """Whether the batch cannot be collected again, although it could have been several times."""
        most = self.task.collections
        return most > 1 and len(self.records.collected(self.batch)) + 1 == most

    @cached_property
    def total(self) -> BatchTotal:
        """This aggregator's share of the sums, without noise, and the reports."""
        return batch_total(self.task.vdaf, self.parameter, self.records.shards(self.parameter, self.batch))

    @property
    def changes(self) -> tuple[Change, ...]:
        """What is written with the answer: the batch is closed."""
        return (CloseBatch(self.batch, self.parameter, self.total.count),)

    def sealed(self, randomness: bytes) -> HpkeCiphertext:
        """The share with its noise, drawn now; the caller stores it, with `changes`."""
        return sealed_share(self.task, self.request, self.total, randomness)


def batch_collection(
    task: AggregatorTask, records: AggregatorRecords, batch: Batch, request: CollectionJobReq
) -> CollectedParameter | AskedQuestion:
    """What a collection job may be given of a batch, or the problem why it may not be given anything."""
    if task.task.walk is not None:
        return asked_question(task, task.task.walk, records, batch, request)
    check_collectable(task, records, batch, request.agg_param)
    return CollectedParameter(task, records, batch, request)
