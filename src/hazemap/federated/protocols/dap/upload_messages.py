"""Messages of uploads: reports and a leader's answers (draft-ietf-ppm-dap-18, section 4.4.2; reports also of draft 09).

Reports of draft 09 (section 4.3.2) have no public extensions and no task configuration.
"""

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
from hazemap.federated.protocols.dap.resource_paths import DapMessage
from hazemap.federated.protocols.dap.task import Configuration
from hazemap.federated.protocols.dap.vdaf_configuration import Extensions
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
class DapReport(Structure):
    """A measurement, shared between the two aggregators.

    >>> share = HpkeCiphertext(1, b"key", b"sealed")
    >>> len(DapReport(ReportMetadata(bytes(16), 12345), b"", share, share).to_bytes())
    62
    """

    metadata: Annotated[ReportMetadata, part(ReportMetadata)]
    public_share: Share
    leader_share: Annotated[HpkeCiphertext, part(HpkeCiphertext)]
    helper_share: Annotated[HpkeCiphertext, part(HpkeCiphertext)]


@dataclass(frozen=True)
class UploadRequest(DapMessage, name="upload-req"):
    """Reports of one task, one after another."""

    reports: Annotated[tuple[DapReport, ...], rest(DapReport, MOST_REPORTS)]


@dataclass(frozen=True)
class ReportUploadStatus(Structure):
    """Why one report of an upload was not taken."""

    report_id: ReportId
    error: Annotated[ReportError, code(ReportError, 1)]


@dataclass(frozen=True)
class UploadErrors(DapMessage, name="upload-errors"):
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


REPORT: Final = "application/dap-report"
HPKE_CONFIG_LIST: Final = "application/dap-hpke-config-list"
"""The media types of this draft; its list of HPKE configurations is written as that of draft 18."""


@dataclass(frozen=True)
class ReportMetadata09(Structure):
    """What both aggregators may know of a report; its time is in seconds."""

    report_id: ReportId
    time: Time


@dataclass(frozen=True)
class Report09(DapMessage, name="report"):
    """A measurement, shared between the two aggregators; one is the body of an upload."""

    metadata: Annotated[ReportMetadata09, part(ReportMetadata09)]
    public_share: Share
    leader_share: Annotated[HpkeCiphertext, part(HpkeCiphertext)]
    helper_share: Annotated[HpkeCiphertext, part(HpkeCiphertext)]

    @classmethod
    def media_type(cls) -> str:
        """What goes into Content-Type."""
        return REPORT


@dataclass(frozen=True)
class PlaintextInputShare09(Structure):
    """What one aggregator opens; the types of its extensions differ, in any order."""

    extensions: Extensions
    payload: Share


@dataclass(frozen=True)
class InputShareAad09(Structure):
    """What an input share is bound to."""

    task_id: TaskId
    metadata: Annotated[ReportMetadata09, part(ReportMetadata09)]
    public_share: Share
