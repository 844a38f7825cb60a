"""How the two aggregators verify reports together (draft-ietf-ppm-dap-18, section 4.5)."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Final, Self

from hazemap.errors import CodecError, InputError
from hazemap.federated.protocols.dap.basic_types import REPORT_ID, HpkeCiphertext, Payload, ReportError, ReportId, Share
from hazemap.federated.protocols.dap.resource_paths import DapMessage
from hazemap.federated.protocols.dap.upload_messages import ReportMetadata
from hazemap.federated.protocols.dap.vdaf_configuration import Extensions
from hazemap.vdaf.tls_encoding import Structure, TlsReader, TlsWriter, code, number, part, rest

LEADER_SELECTED_BATCH_ID: Final = 1
"""The type of the aggregation job extension that names the batch its reports go to."""
MOST_REPORTS: Final = 1 << 16
"""Reports of one aggregation job, at most: they are read in 0.6 s."""


@dataclass(frozen=True)
class DapReportShare(Structure):
    """The helper's part of a report."""

    metadata: Annotated[ReportMetadata, part(ReportMetadata)]
    public_share: Share
    encrypted_input_share: Annotated[HpkeCiphertext, part(HpkeCiphertext)]


@dataclass(frozen=True)
class VerifyInit(Structure):
    """The helper's part of a report, with the leader's first message of ping-pong about it."""

    report_share: Annotated[DapReportShare, part(DapReportShare)]
    payload: Payload


@dataclass(frozen=True)
class AggregationJobInitReq(DapMessage, name="aggregation-job-init-req"):
    """Reports to verify together; the reports fill the message to its end."""

    verification_key_id: Annotated[int, number(1)]
    agg_param: Share
    extensions: Extensions
    verify_inits: Annotated[tuple[VerifyInit, ...], rest(VerifyInit, MOST_REPORTS)]


class VerifyRespType(IntEnum):
    """What the helper made of a report.

    >>> VerifyRespType.REJECT.value
    2
    """

    CONTINUE = 0
    FINISH = 1
    REJECT = 2


_TYPE, _ERROR = code(VerifyRespType, 1), code(ReportError, 1)


@dataclass(frozen=True)
class VerifyResp(Structure):
    """The helper's answer about one report: its message of ping-pong, that it is done, or why it refuses.

    >>> VerifyResp.rejected(bytes(16), ReportError.REPORT_REPLAYED).to_bytes().hex()[-4:]
    '0202'
    """

    report_id: ReportId
    type: VerifyRespType
    payload: bytes = b""
    error: ReportError | None = None

    def __post_init__(self) -> None:
        if bool(self.payload) != (self.type is VerifyRespType.CONTINUE):
            raise InputError("a helper that goes on with a report sends a message, and only then")
        if (self.error is not None) != (self.type is VerifyRespType.REJECT):
            raise InputError("a helper that refuses a report says why, and only then")

    @classmethod
    def continued(cls, report_id: bytes, payload: bytes) -> Self:
        """A message for the leader."""
        return cls(report_id, VerifyRespType.CONTINUE, payload)

    @classmethod
    def finished(cls, report_id: bytes) -> Self:
        """Nothing is left to say."""
        return cls(report_id, VerifyRespType.FINISH)

    @classmethod
    def rejected(cls, report_id: bytes, error: ReportError) -> Self:
        """The report is not taken."""
        return cls(report_id, VerifyRespType.REJECT, error=error)

    def write(self, writer: TlsWriter) -> TlsWriter:
        """uint8 type, and what goes with it."""
        writer.fixed(self.report_id, REPORT_ID).number(self.type, 1)
        if self.error is not None:
            return writer.number(self.error, 1)
        return writer.opaque(self.payload, 4) if self.payload else writer

    @classmethod
    def read(cls, reader: TlsReader) -> Self:
        """What `write` wrote."""
        report_id: bytes = reader.fixed(REPORT_ID)
        match _TYPE.read(reader):
            case VerifyRespType.CONTINUE:
                payload = reader.opaque(4)
                if not payload:
                    raise CodecError("a helper that goes on with a report sends a message")
                return cls.continued(report_id, payload)
            case VerifyRespType.FINISH:
                return cls.finished(report_id)
            case _:
                return cls.rejected(report_id, _ERROR.read(reader))


@dataclass(frozen=True)
class AggregationJobResp(DapMessage, name="aggregation-job-resp"):
    """The helper's answers, in the order of the reports."""

    verify_resps: Annotated[tuple[VerifyResp, ...], rest(VerifyResp, MOST_REPORTS)]


@dataclass(frozen=True)
class VerifyContinue(Structure):
    """The leader's next message of ping-pong about one report."""

    report_id: ReportId
    payload: Payload


@dataclass(frozen=True)
class AggregationJobContinueReq(DapMessage, name="aggregation-job-continue-req"):
    """The next step of a job, with the reports that are still in it, in their order."""

    step: Annotated[int, number(2)]
    verify_continues: Annotated[tuple[VerifyContinue, ...], rest(VerifyContinue, MOST_REPORTS)]
