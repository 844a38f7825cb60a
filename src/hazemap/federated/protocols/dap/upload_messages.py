"""Reports, and what a leader answers (draft-ietf-ppm-dap-18, section 4.4.2)."""

from dataclasses import dataclass
from typing import Annotated, Final

from hazemap.federated.protocols.dap.basic_types import (
    HpkeCiphertext,
    Payload,
    ReportError,
    ReportId,
    Share,
    TaskId,
    Time,
)
from hazemap.federated.protocols.dap.extensions import Extensions
from hazemap.federated.protocols.dap.media_types import Message
from hazemap.federated.protocols.dap.task_configuration import Configuration
from hazemap.vdaf.tls_encoding import Structure, code, part, rest

MOST_REPORTS: Final = 1 << 14
"""Reports of one upload, at most: they are read in 0.2 s."""


@dataclass(frozen=True)
class ReportMetadata(Structure):
    """What both aggregators may know of a report.

    >>> len(ReportMetadata(bytes(16), 12345, ()).to_bytes())
    26
    """

    report_id: ReportId
    time: Time
    public_extensions: Extensions = ()


@dataclass(frozen=True)
class Report(Structure):
    """A measurement, shared between the two aggregators.

    >>> share = HpkeCiphertext(1, b"key", b"sealed")
    >>> len(Report(ReportMetadata(bytes(16), 12345), b"", share, share).to_bytes())
    62
    """

    metadata: Annotated[ReportMetadata, part(ReportMetadata)]
    public_share: Share
    leader_share: Annotated[HpkeCiphertext, part(HpkeCiphertext)]
    helper_share: Annotated[HpkeCiphertext, part(HpkeCiphertext)]


@dataclass(frozen=True)
class UploadRequest(Message, name="upload-req"):
    """Reports of one task, one after another."""

    reports: Annotated[tuple[Report, ...], rest(Report, MOST_REPORTS)]


@dataclass(frozen=True)
class ReportUploadStatus(Structure):
    """Why one report of an upload was not taken."""

    report_id: ReportId
    error: Annotated[ReportError, code(ReportError, 1)]


@dataclass(frozen=True)
class UploadErrors(Message, name="upload-errors"):
    """The reports of an upload that were not taken, in the order in which they came."""

    statuses: Annotated[tuple[ReportUploadStatus, ...], rest(ReportUploadStatus, MOST_REPORTS)]


@dataclass(frozen=True)
class PlaintextInputShare(Structure):
    """What one aggregator opens: its share of the measurement, with what is for its eyes only.

    >>> PlaintextInputShare((), b"0123").to_bytes().hex()
    '00000000000430313233'
    """

    private_extensions: Extensions
    payload: Payload


@dataclass(frozen=True)
class InputShareAad(Structure):
    """What an input share is bound to: a share that was moved to another task or report does not open."""

    task_id: TaskId
    task_configuration: Configuration
    metadata: Annotated[ReportMetadata, part(ReportMetadata)]
    public_share: Share
