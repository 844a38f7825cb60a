"""What an aggregator's log says of its work: numbers of reports and batches, and never what is in them."""

import logging
from collections.abc import Iterable

from hazemap.federated.protocols.dap.aggregator_changes import AddQuestion, AddShards, Change, CloseBatch
from hazemap.federated.protocols.dap.aggregator_task import AggregatorTask
from hazemap.federated.protocols.dap.resource_paths import id_text

log = logging.getLogger("hazemap.federated.aggregator")


def log_work(task: AggregatorTask, changes: Iterable[Change], rejected: int) -> None:
    """One line for what was written: reports that were counted or rejected, batches that were closed."""
    name = id_text(task.task.id)[:8]
    counted = sum(shard.count for change in changes if isinstance(change, AddShards) for shard in change.shards)
    if counted or rejected:
        log.info("task %s: %d reports counted, %d rejected", name, counted, rejected)
    for change in changes:
        if isinstance(change, AddQuestion):
            log.info("task %s: question %d about a batch is answered, with noise", name, change.place + 1)
        elif isinstance(change, CloseBatch) and change.keep:
            log.info("task %s: a level of %d reports is verified", name, change.count)
        elif isinstance(change, CloseBatch):
            noise = "without noise" if task.draw_noise is None else "with noise"
            log.info("task %s: a batch of %d reports is collected, %s", name, change.count, noise)
