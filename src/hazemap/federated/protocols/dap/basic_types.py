"""What all messages of DAP are made of (draft-ietf-ppm-dap-18, section 4.1): ids, roles, times, ciphertexts, errors.

`DapVersion` is what one draft says otherwise than another.
"""

from dataclasses import dataclass
from enum import IntEnum
from math import gcd
from typing import Annotated, Final, Self

from hazemap.errors import CodecError, InputError
from hazemap.vdaf.tls_encoding import Structure, fixed, number, opaque

REPORT_ID: Final = 16
TASK_ID: Final = 32
BATCH_ID: Final = 32
JOB_ID: Final = 16
"""Bytes of an aggregation job's, a collection job's or an aggregate share's id."""
LATEST: Final = (1 << 64) - 1
"""The last time, and the longest duration, that there is."""

ReportId = Annotated[bytes, fixed(REPORT_ID)]
TaskId = Annotated[bytes, fixed(TASK_ID)]
Time = Annotated[int, number(8)]
Duration = Annotated[int, number(8)]
Share = Annotated[bytes, opaque(4)]
"""What a VDAF encodes: a public share, an aggregation parameter."""
Payload = Annotated[bytes, opaque(4, least=1)]


def check_fraction(what: str, numerator: int, denominator: int, least: int = 1) -> None:
    """InputError unless this is a fraction as task extensions hold it: two 64-bit numbers, in lowest terms.

    >>> check_fraction("a chance", 0, 1, least=0)
    """
    if not (least <= numerator <= LATEST and 1 <= denominator <= LATEST and gcd(numerator, denominator) == 1):
        raise InputError(
            f"{what} is a fraction of 64-bit numbers from {least} on, in lowest terms, not {numerator}/{denominator}"
        )


class DapRole(IntEnum):
    """Who takes part.

    >>> DapRole.LEADER.value, DapRole.HELPER.value
    (2, 3)
    """

    COLLECTOR = 0
    CLIENT = 1
    LEADER = 2
    HELPER = 3


class ReportError(IntEnum):
    """Why one report is not taken; the others of its message may be.

    >>> ReportError.REPORT_REPLAYED.value
    2
    """

    RESERVED = 0
    BATCH_COLLECTED = 1
    REPORT_REPLAYED = 2
    REPORT_DROPPED = 3
    HPKE_UNKNOWN_CONFIG_ID = 4
    HPKE_DECRYPT_ERROR = 5
    VDAF_VERIFY_ERROR = 6
    TASK_EXPIRED = 7
    INVALID_MESSAGE = 8
    REPORT_TOO_EARLY = 9
    TASK_NOT_STARTED = 10
    OUTDATED_CONFIG = 11


@dataclass(frozen=True)
class TimeInterval(Structure):
    """From `start` up to, and without, `start + duration`, in time precisions of the task (DAP-09: in seconds).

    >>> day = TimeInterval(10, 2)
    >>> 9 in day, 10 in day, 11 in day, 12 in day, day.end
    (False, True, True, False, 12)
    """

    start: Time
    duration: Duration

    @property
    def end(self) -> int:
        """The first time after it."""
        return self.start + self.duration

    def checked(self) -> Self:
        """Itself; CodecError if it is empty, or ends after the last time there is."""
        if not self.start < self.end <= LATEST:
            raise CodecError(f"an interval of {self.duration} from {self.start} is empty, or ends after time itself")
        return self

    def __contains__(self, time: object) -> bool:
        return isinstance(time, int) and self.start <= time < self.end

    def within(self, other: "TimeInterval") -> bool:
        """Whether all its times are the other's too."""
        return other.start <= self.start and self.end <= other.end


@dataclass(frozen=True)
class HpkeCiphertext(Structure):
    """What one role sealed for another (RFC 9180, base mode), and the key it was sealed for.

    >>> HpkeCiphertext(10, b"0123", b"4567").to_bytes().hex()
    '0a0004303132330000000434353637'
    """

    config_id: Annotated[int, number(1)]
    enc: Annotated[bytes, opaque(2, least=1)]
    payload: Payload


@dataclass(frozen=True)
class DapVersion:
    r"""A draft of the protocol, by the tag that separates its cryptography from that of others.

    >>> DAP_18.input_share_info(DapRole.HELPER)
    b'dap-18 input share\x01\x03'
    >>> DAP_18.vdaf_context(bytes(32))[:8], DAP_09.vdaf_context(bytes(32))
    (b'dap-18\x00\x00', b'')
    """

    tag: bytes
    vdaf: int
    """the version of the VDAF draft that its shares have on the wire"""
    context: bool
    """whether the VDAF is bound to the task"""
    least_task_info: int
    """how few bytes `task_info` of a task configuration may have"""
    times_in_precisions: bool
    """whether a time counts time precisions; otherwise it counts seconds, rounded down to one"""

    def vdaf_context(self, task_id: bytes) -> bytes:
        """The application context of the VDAF: tag ‖ task id, where the draft has one."""
        if len(task_id) != TASK_ID:
            raise InputError(f"a task id has {TASK_ID} bytes, not {len(task_id)}")
        return self.tag + task_id if self.context else b""

    def input_share_info(self, receiver: DapRole) -> bytes:
        """HPKE's `info` for the input share of an aggregator."""
        return self.tag + b" input share" + bytes([DapRole.CLIENT, _aggregator(receiver)])

    def aggregate_share_info(self, sender: DapRole) -> bytes:
        """HPKE's `info` for the aggregate share of an aggregator."""
        return self.tag + b" aggregate share" + bytes([_aggregator(sender), DapRole.COLLECTOR])

    def report_time(self, seconds: int, precision: int) -> int:
        """The time of a report made `seconds` after the epoch, as this draft writes it."""
        if seconds < 0 or precision < 1:
            raise InputError(f"{seconds} s at a precision of {precision} s is no time of a report")
        return seconds // precision if self.times_in_precisions else seconds - seconds % precision


def _aggregator(role: DapRole) -> DapRole:
    if role not in (DapRole.LEADER, DapRole.HELPER):
        raise InputError(f"shares are the leader's or the helper's, not the {role.name.lower()}'s")
    return role


DAP_18: Final = DapVersion(b"dap-18", 18, context=True, least_task_info=1, times_in_precisions=True)
DAP_09: Final = DapVersion(b"dap-09", 8, context=False, least_task_info=1, times_in_precisions=False)
VERSIONS: Final = {version.tag.decode(): version for version in (DAP_18, DAP_09)}
"""Every draft that is spoken, by its tag."""
