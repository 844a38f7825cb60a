"""An aggregator opens its share of a report and looks at it (draft-ietf-ppm-dap-18, sections 4.5.2.3 and 4.5.2.4)."""

from collections.abc import Collection
from typing import Protocol

from hazemap.errors import CodecError, Refused
from hazemap.federated.protocols.dap.aggregator_task import AggregatorTask
from hazemap.federated.protocols.dap.basic_types import HpkeCiphertext, ReportError
from hazemap.federated.protocols.dap.report_credentials import CREDENTIAL, ReportCredential
from hazemap.federated.protocols.dap.upload_messages import PlaintextInputShare, ReportMetadata
from hazemap.federated.protocols.dap.vdaf_configuration import check_extensions


def known_extensions(task: AggregatorTask) -> Collection[int]:
    """Types of public report extensions that are understood: none are registered, and private ones never."""
    return () if task.task.admission is None else (CREDENTIAL,)


class DecryptionKeys(Protocol):
    """The HPKE keys that an aggregator still opens with."""

    def knows(self, config_id: int) -> bool:
        """Whether it has this key."""
        ...

    def open(self, sealed: HpkeCiphertext, info: bytes, aad: bytes) -> bytes:
        """What was sealed; `Refused` if it does not open, or the key is gone."""
        ...


class RejectedReport(Exception):
    """One report that is not taken; the others of its message may be."""

    def __init__(self, error: ReportError) -> None:
        super().__init__(error.name.lower())
        self.error = error


def check_time(task: AggregatorTask, time: int, now: int, earliest: int) -> None:
    """Reject a report that is made too early, before or after the task's time, or before the earliest one taken."""
    if time > task.latest(now):
        raise RejectedReport(ReportError.REPORT_TOO_EARLY)
    if task.task.interval is not None:
        if time < task.task.interval.start:
            raise RejectedReport(ReportError.TASK_NOT_STARTED)
        if time >= task.task.interval.end:
            raise RejectedReport(ReportError.TASK_EXPIRED)
    if time < earliest:
        raise RejectedReport(ReportError.REPORT_DROPPED)


def opened_share(
    task: AggregatorTask,
    keys: DecryptionKeys,
    metadata: ReportMetadata,
    public_share: bytes,
    sealed: HpkeCiphertext,
) -> bytes:
    """This aggregator's input share; `RejectedReport` for one that may not be aggregated. Costs one key agreement.

    Where the report carries a credential, the share is the one that the device made for this server.
    """
    try:
        check_extensions(metadata.public_extensions, known_extensions(task))
    except CodecError:
        raise RejectedReport(ReportError.INVALID_MESSAGE) from None
    try:
        aad = task.input_share_aad(metadata, public_share)
        plain = keys.open(sealed, task.task.version.input_share_info(task.role), aad)
    except Refused:
        raise RejectedReport(ReportError.HPKE_DECRYPT_ERROR) from None
    try:
        share = task.read_input_share(plain)
        extensions = share.private_extensions if isinstance(share, PlaintextInputShare) else share.extensions
        check_extensions(extensions, ())
        admitted = task.task.admission is None or ReportCredential.of(metadata.public_extensions).covers(
            task.role, plain
        )
    except CodecError:
        raise RejectedReport(ReportError.INVALID_MESSAGE) from None
    if not admitted:
        raise RejectedReport(ReportError.INVALID_MESSAGE)
    return share.payload
