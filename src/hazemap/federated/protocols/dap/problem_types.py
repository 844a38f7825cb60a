"""Why a request or a report failed, in the standard's terms (draft-ietf-ppm-dap-18, 3.6, 4.5.2; RFC 9457)."""

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Self

from hazemap.errors import CodecError, Refused
from hazemap.federated.protocols.dap.basic_types import ReportError
from hazemap.federated.protocols.dap.resource_paths import PROBLEM, id_text
from hazemap.vdaf.ping_pong import Rejected

PREFIX: Final = "urn:ietf:params:ppm:dap:error:"
_LARGEST = 1 << 16
_LONGEST = 1000
_MOST = 1000


class ProblemType(StrEnum):
    """The standard's names; the last five are draft 09's alone.

    >>> ProblemType.BATCH_OVERLAP.urn
    'urn:ietf:params:ppm:dap:error:batchOverlap'
    """

    INVALID_MESSAGE = "invalidMessage"
    UNRECOGNIZED_TASK = "unrecognizedTask"
    UNRECOGNIZED_AGGREGATION_JOB = "unrecognizedAggregationJob"
    BATCH_INVALID = "batchInvalid"
    INVALID_BATCH_SIZE = "invalidBatchSize"
    INVALID_AGGREGATION_PARAMETER = "invalidAggregationParameter"
    BATCH_MISMATCH = "batchMismatch"
    STEP_MISMATCH = "stepMismatch"
    BATCH_OVERLAP = "batchOverlap"
    UNSUPPORTED_EXTENSION = "unsupportedExtension"
    INVALID_EXTENSION = "invalidExtension"
    OUTDATED_CONFIG = "outdatedConfig"
    REPORT_REJECTED = "reportRejected"
    REPORT_TOO_EARLY = "reportTooEarly"
    UNAUTHORIZED_REQUEST = "unauthorizedRequest"
    MISSING_TASK_ID = "missingTaskID"

    @property
    def urn(self) -> str:
        """Its name in a problem document."""
        return PREFIX + self.value


@dataclass(frozen=True)
class ProblemDocument:
    """A problem as it travels: `type` is a URI, the standard's or another's.

    >>> problem = ProblemDocument(ProblemType.BATCH_OVERLAP.urn, 400, "collected before")
    >>> ProblemDocument.from_json(problem.to_json()) == problem
    True
    """

    type: str
    status: int
    detail: str = ""
    task_id: str | None = None
    unsupported_extensions: tuple[int, ...] = ()

    @property
    def problem(self) -> ProblemType | None:
        """The standard's name for it, if it has one."""
        name = self.type.removeprefix(PREFIX)
        return ProblemType(name) if self.type.startswith(PREFIX) and name in set(ProblemType) else None

    def in_words(self) -> str:
        """For a log: the status, the last part of its type, and what the other side says of it."""
        return f"HTTP {self.status}, {self.type.rpartition(':')[2]}: {self.detail!r}"

    def to_json(self) -> bytes:
        """The body of a response."""
        members: dict[str, object] = {"type": self.type, "status": self.status, "detail": self.detail}
        if self.task_id is not None:
            members["taskid"] = self.task_id
        if self.unsupported_extensions:
            members["unsupported_extensions"] = list(self.unsupported_extensions)
        return json.dumps(members).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """What another side says; members that are unknown are passed over, as RFC 9457 asks; CodecError otherwise."""
        if len(data) > _LARGEST:
            raise CodecError(f"a problem document has at most {_LARGEST} bytes, not {len(data)}")
        try:
            members = json.loads(data)
        except (ValueError, RecursionError):
            raise CodecError("a problem document is not JSON") from None
        if not isinstance(members, dict):
            raise CodecError("a problem document is an object of JSON")
        extensions = members.get("unsupported_extensions", [])
        status = members.get("status", 400)
        if not isinstance(extensions, list) or len(extensions) > _MOST:
            raise CodecError(f"unsupported extensions are a list of at most {_MOST} numbers")
        if not all(type(number) is int and 0 <= number <= 0xFFFF for number in extensions):
            raise CodecError("unsupported extensions are numbers of 16 bits")
        if type(status) is not int or not 400 <= status <= 599:
            raise CodecError("the status of a problem is that of an error, 400 to 599")
        texts = [members.get(name, default) for name, default in (("type", "about:blank"), ("detail", ""))]
        task_id = members.get("taskid")
        if not all(isinstance(text, str) for text in [*texts, "" if task_id is None else task_id]):
            raise CodecError("the type, the detail and the task id of a problem are texts")
        kind, detail = (text[:_LONGEST] for text in texts)
        if not (kind.isascii() and kind.isprintable()):
            raise CodecError("the type of a problem is a URI")
        return cls(kind, status, detail, None if task_id is None else task_id[:_LONGEST], tuple(extensions))


def read_problem(status: int, content_type: str, content: bytes) -> ProblemDocument:
    """What a response of an error says; one without a (readable) problem document is told by its status alone.

    >>> read_problem(404, "text/html", b"<p>lost").in_words()
    "HTTP 404, blank: ''"
    """
    if content_type.partition(";")[0].strip().lower() == PROBLEM:
        try:
            return replace(ProblemDocument.from_json(content), status=status)
        except CodecError:
            pass
    return ProblemDocument("about:blank", status)


class DapProblem(Refused):
    """A request that a role of DAP refuses, by the standard's type of problem."""

    def __init__(
        self,
        type: ProblemType,  # noqa: A002 - the standard's name of the member
        detail: str,
        task_id: bytes | None = None,
        unsupported_extensions: tuple[int, ...] = (),
    ) -> None:
        super().__init__(detail)
        self.type = type
        self.task_id = task_id
        self.unsupported_extensions = unsupported_extensions

    def document(self) -> ProblemDocument:
        """What is sent back: always a client's error, 400, which the standard lets stand for all of its class."""
        name = None if self.task_id is None else id_text(self.task_id)
        return ProblemDocument(self.type.urn, 400, str(self), name, self.unsupported_extensions)


VERIFIED = (None, ReportError.VDAF_VERIFY_ERROR)
"""No error, or the one that only verification finds: such a report is never verified again."""


def rejection(state: Rejected) -> ReportError:
    """Whether its bytes were no shares at all, or shares of nothing that may be measured."""
    return ReportError.INVALID_MESSAGE if state.error.undecodable else ReportError.VDAF_VERIFY_ERROR
