"""Whether a report may still be added to its bucket (draft-ietf-ppm-dap-18, section 4.5.3.3), and a batch collected.

By default a report counts once, and a bucket is collected once. A task whose shares carry noise may let a batch be
collected several times, with parameters that the VDAF allows one after the other: then each collection is of the same
buckets, a report is verified once a level, and only those count again that counted in the collection before.
"""

from collections.abc import Mapping

from hazemap.federated.protocols.dap.aggregator_records import AggregatorRecords
from hazemap.federated.protocols.dap.aggregator_task import AggregatorTask
from hazemap.federated.protocols.dap.basic_types import ReportError
from hazemap.federated.protocols.dap.batches import Batch
from hazemap.federated.protocols.dap.problem_types import ProblemType


def parameters_before(records: AggregatorRecords, batch: Batch) -> dict[Batch, tuple[bytes, ...]]:
    """The collections that overlap a batch: of which buckets, and with which parameters, in their order."""
    found = dict[Batch, tuple[bytes, ...]]()
    for collected, agg_param in records.collected(batch):
        found[collected] = (*found.get(collected, ()), agg_param)
    return found


def ineligible_reports(
    task: AggregatorTask,
    records: AggregatorRecords,
    agg_param: bytes,
    buckets: Mapping[bytes, bytes],
    claimed: bool = False,
) -> dict[bytes, ReportError]:
    """Why reports, given with their buckets, may not be added; `claimed` if this very job has claimed them."""
    if not buckets:
        return {}
    refused = dict[bytes, ReportError]()
    if not claimed:
        before = records.claimed(task.level(agg_param), buckets.keys())
        refused = dict.fromkeys(before, ReportError.REPORT_REPLAYED)
    for batch, parameters in parameters_before(records, Batch(min(buckets.values()), max(buckets.values()))).items():
        members = {report_id for report_id, bucket in buckets.items() if bucket in batch}
        if not members:
            continue
        closed = agg_param in parameters or len(parameters) >= task.collections
        again = set() if closed else records.counted(task.level(parameters[-1]), parameters[-1], members)
        refused |= dict.fromkeys(members - again - refused.keys(), ReportError.BATCH_COLLECTED)
    return refused


def check_collectable(task: AggregatorTask, records: AggregatorRecords, batch: Batch, agg_param: bytes) -> None:
    """Refuse to collect a batch that was collected before, or overlaps one, or with a parameter that may not follow."""
    for other, parameters in parameters_before(records, batch).items():
        if other != batch:
            raise task.problem(ProblemType.BATCH_OVERLAP, "some of these reports were collected in another batch")
        if len(parameters) >= task.collections:
            most = "once" if task.collections == 1 else f"{task.collections} times"
            raise task.problem(ProblemType.BATCH_OVERLAP, f"this batch was collected before, and may be {most}")
        task.check_parameter(agg_param, parameters)
