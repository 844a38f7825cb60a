"""How long the reports of a task are, and how long an aggregator's answers can be.

All reports of a task are equally long, but for the key of the party that opens them. So a body that holds no reports of
a task is known by its length, before any of it is read, and answers are read no further than they can be long.
"""

from dataclasses import dataclass
from typing import Final

from hazemap.errors import CodecError
from hazemap.federated.protocols.dap.basic_types import REPORT_ID
from hazemap.federated.protocols.dap.prefix_question import read_question
from hazemap.federated.protocols.dap.report_credentials import ReportCredential
from hazemap.federated.protocols.dap.resource_paths import LARGEST
from hazemap.federated.protocols.dap.task import DapTask
from hazemap.federated.protocols.dap.upload_messages import DapReport
from hazemap.vdaf.idpf import SIZE_INNER
from hazemap.vdaf.vdaf import Vdaf

TAG: Final = 16
"""Bytes that each AEAD of HPKE adds."""
SHORTEST_KEY, LONGEST_KEY = 32, 133
"""Bytes of the shortest and the longest encapsulated key: points of X25519 and of P-521."""
OTHERS: Final = 1_024
"""Bytes of extensions that a report to an open task may seal for a helper of another implementation."""
AT_ONCE: Final = 1 << 20
"""Bytes of the longest upload of several reports."""

_METADATA = REPORT_ID + 8
_LIST = 2
_EXTENSION = 2 + 2
_SEALED = 1 + 2 + 4
_PLAIN = 2 + 4


@dataclass(frozen=True)
class ReportSizes:
    """Bytes of the parts of a report: its public share, both input shares, and what every report says in the clear.

    >>> ReportSizes(0, 48, 32, 0).longest_upload, ReportSizes(0, 10**7, 32, 0).longest_upload
    (1048576, 10001410)
    """

    public: int
    leader: int
    helper: int
    credential: int
    """bytes of the credential; 0 where the task is open"""

    @classmethod
    def of(cls, task: DapTask, vdaf: Vdaf) -> "ReportSizes":
        """Those of a task."""
        public, leader, helper = vdaf.share_sizes
        return cls(public, leader, helper, 0 if task.admission is None else _EXTENSION + ReportCredential.SIZE)

    @property
    def least(self) -> int:
        """Bytes of the shortest report: of an open task one of DAP-09, which has no list of extensions."""
        sealed = _SEALED + SHORTEST_KEY + _PLAIN + TAG
        said = _LIST + self.credential if self.credential else 0
        return _METADATA + said + 4 + self.public + 2 * sealed + self.leader + self.helper

    @property
    def longest(self) -> int:
        """Bytes of the longest report."""
        more = 0 if self.credential else _LIST + OTHERS
        return self.least + more + 2 * (LONGEST_KEY - SHORTEST_KEY)

    @property
    def longest_upload(self) -> int:
        """Bytes of the longest upload: of one report, or of several short ones."""
        return max(AT_ONCE, self.longest)

    def check_upload(self, size: int) -> None:
        """CodecError for a body of so many bytes that no number of reports has: before any of it is read."""
        reports = -(-size // self.longest)
        if not reports or reports * self.least > size:
            raise CodecError(
                f"a report of this task has {self.least:,} to {self.longest:,} bytes: no number of them has {size:,}"
            )

    def fit(self, report: DapReport) -> bool:
        """Whether a report's parts have their lengths: what is sealed for the leader exactly."""
        helper = len(report.helper_share.payload) - (_PLAIN + self.helper + TAG)
        return (
            len(report.public_share) == self.public
            and len(report.leader_share.payload) == _PLAIN + self.leader + TAG
            and 0 <= helper <= (0 if self.credential else OTHERS)
            and max(len(report.leader_share.enc), len(report.helper_share.enc)) <= LONGEST_KEY
        )


WORDS: Final = 1 << 16
"""Bytes of a problem document, or of all that goes around a share: at most."""


def longest_aggregation_answer(request: int) -> int:
    """Of a helper to a request of so many bytes about reports.

    It answers each report by at most one message and one verifier share. The request holds a share of the leader's for
    each, and a message is no longer than one.

    >>> longest_aggregation_answer(1_000)
    67536
    """
    return min(LARGEST, 2 * request + WORDS)


def longest_share(task: DapTask, vdaf: Vdaf, agg_param: bytes) -> int:
    """Of a helper that gives its share of a batch's sums, sealed."""
    if task.walk is not None:
        return read_question(agg_param).size * SIZE_INNER + WORDS
    return vdaf.output_length(agg_param) * ((vdaf.modulus(agg_param).bit_length() + 7) // 8) + WORDS


def longest_result(task: DapTask, vdaf: Vdaf, agg_param: bytes) -> int:
    """Of a leader that gives both shares."""
    return 2 * longest_share(task, vdaf, agg_param)
