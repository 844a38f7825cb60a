"""The id of what a request makes, by the request: sent again, it finds what it made (DAP-18, section 3.2)."""

from hashlib import sha256

from hazemap.federated.protocols.dap.aggregator_task import AggregatorTask
from hazemap.federated.protocols.dap.basic_types import JOB_ID


def resource_id(task: AggregatorTask, body: bytes) -> bytes:
    """Of the task, who serves it, and the bytes of the request: 16 bytes, of which nobody finds two requests."""
    return sha256(b"hazemap resource" + task.task.id + bytes([task.role]) + body).digest()[:JOB_ID]
