"""What one draft of DAP says otherwise than another: one line a draft."""

from dataclasses import dataclass
from typing import Final

from hazemap.errors import InputError
from hazemap.federated.protocols.dap.basic_types import TASK_ID, DapRole


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
