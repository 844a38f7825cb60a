"""Reports as draft-ietf-ppm-dap-09 has them (section 4.3.2): no public extensions, no task configuration."""

from dataclasses import dataclass
from typing import Annotated, Final

from hazemap.federated.protocols.dap.basic_types import HpkeCiphertext, ReportId, Share, TaskId, Time
from hazemap.federated.protocols.dap.extensions import Extensions
from hazemap.federated.protocols.dap.media_types import Message
from hazemap.vdaf.tls_encoding import Structure, part

REPORT: Final = "application/dap-report"
HPKE_CONFIG_LIST: Final = "application/dap-hpke-config-list"
"""The media types of this draft; its list of HPKE configurations is written as that of draft 18."""


@dataclass(frozen=True)
class ReportMetadata09(Structure):
    """What both aggregators may know of a report; its time is in seconds."""

    report_id: ReportId
    time: Time


@dataclass(frozen=True)
class Report09(Message, name="report"):
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
