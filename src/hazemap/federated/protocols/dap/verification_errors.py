"""What is said of a report whose verification failed (draft-ietf-ppm-dap-18, sections 4.5.2.2 and 4.5.2.4)."""

from hazemap.federated.protocols.dap.basic_types import ReportError
from hazemap.vdaf.ping_pong import Rejected

VERIFIED = (None, ReportError.VDAF_VERIFY_ERROR)
"""No error, or the one that only verification finds: such a report is never verified again."""


def rejection(state: Rejected) -> ReportError:
    """Whether its bytes were no shares at all, or shares of nothing that may be measured."""
    return ReportError.INVALID_MESSAGE if state.error.undecodable else ReportError.VDAF_VERIFY_ERROR
