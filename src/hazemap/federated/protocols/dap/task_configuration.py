"""A task as it is written, and as it is bound into every share (draft-ietf-ppm-dap-18, section 4.2)."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Final

from hazemap.federated.protocols.dap.basic_types import Interval
from hazemap.federated.protocols.dap.extensions import Extensions
from hazemap.federated.protocols.dap.media_types import Message
from hazemap.vdaf.tls_encoding import Form, TlsReader, TlsWriter, code, number, opaque

TASK_INTERVAL: Final = 1
"""The type of the task extension that says when reports may be made."""
_MOST_BYTES = 255 + 5 * 0xFFFF + 64


class BatchMode(IntEnum):
    """How reports are put into batches.

    >>> BatchMode.TIME_INTERVAL.value
    1
    """

    RESERVED = 0
    TIME_INTERVAL = 1
    LEADER_SELECTED = 2


@dataclass(frozen=True)
class TaskConfiguration(Message, name="task-configuration", largest=_MOST_BYTES):
    """What everybody who takes part agrees on; `to_bytes` gives the very bytes that it was read from.

    What the fields mean, and whether they can be, is said by `task.Task`. The floor of `task_info` is a draft's.
    """

    task_info: Annotated[bytes, opaque(1)]
    leader_endpoint: Annotated[bytes, opaque(2, least=1)]
    helper_endpoint: Annotated[bytes, opaque(2, least=1)]
    time_precision: Annotated[int, number(8)]
    min_batch_size: Annotated[int, number(8)]
    batch_mode: Annotated[BatchMode, code(BatchMode, 1)]
    batch_config: Annotated[bytes, opaque(2)]
    vdaf_type: Annotated[int, number(4)]
    vdaf_configuration: Annotated[bytes, opaque(2)]
    extensions: Extensions = ()


def _write(writer: TlsWriter, configuration: bytes) -> TlsWriter:
    return writer.fixed(configuration, len(configuration))


def _read(reader: TlsReader) -> bytes:
    return TaskConfiguration.read(reader).to_bytes()


Configuration = Annotated[bytes, Form(_write, _read)]
"""A task configuration within another structure, kept as the bytes it came in."""


def read_interval(data: bytes) -> Interval:
    """An interval that is the whole of some data; CodecError if it is none, is empty, or ends after time itself."""
    return Interval.from_bytes(data).checked()
