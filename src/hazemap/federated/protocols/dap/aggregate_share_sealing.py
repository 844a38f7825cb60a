"""An aggregator's share of a sum, with its noise, sealed for the collector (draft-ietf-ppm-dap-18, section 4.6.4)."""

from hazemap.federated.protocols.dap.aggregator_task import AggregatorTask
from hazemap.federated.protocols.dap.basic_types import HpkeCiphertext
from hazemap.federated.protocols.dap.batches import BatchTotal
from hazemap.federated.protocols.dap.collection_messages import CollectionJobReq
from hazemap.federated.protocols.dap.problem_types import ProblemType


def sealed_share(
    task: AggregatorTask, request: CollectionJobReq, total: BatchTotal, randomness: bytes
) -> HpkeCiphertext:
    """The share with noise drawn now, for the collector alone; `randomness` is 32 fresh bytes.

    The caller stores what this returns before anybody sees it, and never calls it again for the same batch and
    parameter. A batch below the task's minimum is refused here, whoever asks.
    """
    check_least(task, total)
    vdaf, agg_param = task.vdaf, request.agg_param
    share = total.share
    law = task.task.blank if task.task.privacy is None else task.task.privacy.noise
    if task.draw_noise is not None and law is not None:
        noise = task.draw_noise(law, vdaf.output_length(agg_param)).tolist()
        share = vdaf.merge(agg_param, [share, vdaf.share_of(agg_param, noise)])
    return sealed(task, request, vdaf.encode_agg_share(agg_param, share), randomness)


def check_least(task: AggregatorTask, total: BatchTotal) -> None:
    """Refuse a batch below the task's minimum, or of nobody."""
    if total.count < max(1, task.least):
        raise task.problem(
            ProblemType.INVALID_BATCH_SIZE, f"the batch has {total.count} reports here; the least is {task.least}"
        )


def sealed(task: AggregatorTask, request: CollectionJobReq, plain: bytes, randomness: bytes) -> HpkeCiphertext:
    """A share that has its noise, for the collector alone, bound to what was asked."""
    info = task.task.version.aggregate_share_info(task.role)
    return task.collector.seal(info, task.aggregate_share_aad(request), plain, randomness)
