"""How long reports of a task are: whatever it measures, each is as long as the others, but for the key of who opens it.

So a body that holds no reports of a task is known by its length, before any of it is read.
"""

from dataclasses import dataclass
from typing import Final

from hazemap.protocols.dap.basic_types import REPORT_ID
from hazemap.protocols.dap.upload_messages import Report
from hazemap.protocols.vdaf.vdaf import Vdaf

TAG: Final = 16
"""Bytes that each AEAD of HPKE adds."""
SHORTEST_KEY, LONGEST_KEY = 32, 133
"""Bytes of the shortest and the longest encapsulated key: points of X25519 and of P-521."""
OTHERS: Final = 1_024
"""Bytes of extensions that a report may seal for a helper of another implementation, which may know some."""
AT_ONCE: Final = 1 << 20
"""Bytes of the longest upload of several reports."""

_METADATA = REPORT_ID + 8 + 2
_SEALED = 1 + 2 + 4
_PLAIN = 2 + 4


@dataclass(frozen=True)
class ReportSizes:
    """Bytes of the parts of a report: its public share, and both input shares.

    >>> ReportSizes(0, 48, 32).longest_upload, ReportSizes(0, 10**7, 32).longest_upload
    (1048576, 10001410)
    """

    public: int
    leader: int
    helper: int

    @classmethod
    def of(cls, vdaf: Vdaf) -> "ReportSizes":
        """Those of a function."""
        return cls(*vdaf.share_sizes)

    @property
    def least(self) -> int:
        """Bytes of a report of DAP-09, the shorter one, whose keys are the shortest."""
        sealed = _SEALED + SHORTEST_KEY + _PLAIN + TAG
        return _METADATA - 2 + 4 + self.public + 2 * sealed + self.leader + self.helper

    @property
    def longest_upload(self) -> int:
        """Bytes of the longest upload: of one report, or of several short ones."""
        return max(AT_ONCE, self.least + 2 + 2 * (LONGEST_KEY - SHORTEST_KEY) + OTHERS)

    def fit(self, report: Report) -> bool:
        """Whether a report's parts have their lengths: what is sealed for the leader exactly."""
        helper = len(report.helper_share.payload) - (_PLAIN + self.helper + TAG)
        return (
            len(report.public_share) == self.public
            and len(report.leader_share.payload) == _PLAIN + self.leader + TAG
            and 0 <= helper <= OTHERS
            and max(len(report.leader_share.enc), len(report.helper_share.enc)) <= LONGEST_KEY
        )
