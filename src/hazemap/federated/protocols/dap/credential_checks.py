"""Each credential of a task counts once at a server: the same report again is the same, another one is refused.

A server keeps, for as long as it keeps the task, each serial with a digest of the report that it was spent on. So a
report that comes again, as at each level of a walk, is known without its signatures, and a crash forgets nothing.
"""

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Protocol

from hazemap.errors import CodecError
from hazemap.federated.protocols.dap.aggregator_changes import SpendCredentials
from hazemap.federated.protocols.dap.aggregator_task import AggregatorTask
from hazemap.federated.protocols.dap.basic_types import ReportError
from hazemap.federated.protocols.dap.input_share_opening import RejectedReport
from hazemap.federated.protocols.dap.report_credentials import ReportCredential, credited
from hazemap.federated.protocols.dap.upload_messages import ReportMetadata


class SpentCredentials(Protocol):
    """What a server has written of a task's credentials."""

    def spent(self, serials: list[bytes]) -> dict[bytes, bytes]:
        """Those of the serials that were spent, each with the digest of its report."""
        ...


@dataclass
class CredentialChecks:
    """The credentials of one message's reports. `new` are those that it spends, by the reports' ids."""

    task: AggregatorTask
    spent: dict[bytes, bytes]
    room: int
    new: dict[bytes, tuple[bytes, bytes]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        task: AggregatorTask,
        records: SpentCredentials,
        reports: list[tuple[ReportMetadata, bytes]],
        room: int,
    ) -> "CredentialChecks":
        """The checks of these reports, given with their public shares; they are not made yet.

        `room` is for how many new ones there is room.
        """
        if task.task.admission is None:
            return cls(task, {}, 0)
        serials = []
        for metadata, _ in reports:
            try:
                serials.append(ReportCredential.of(metadata.public_extensions).serial)
            except CodecError:
                continue
        return cls(task, records.spent(serials), room)

    def check(self, metadata: ReportMetadata, public_share: bytes) -> None:
        """`RejectedReport` unless the report is admitted, and is the only one of its serial. Costs two signatures once.

        It is not spent yet: see `spend`.
        """
        admission = self.task.task.admission
        if admission is None:
            return
        try:
            credential = ReportCredential.of(metadata.public_extensions)
        except CodecError:
            raise RejectedReport(ReportError.INVALID_MESSAGE) from None
        report = report_digest(metadata, public_share)
        known = self.spent.get(credential.serial)
        if known is not None:
            if known != report:
                raise RejectedReport(ReportError.REPORT_DROPPED)
            return
        if self.room <= len(self.new):
            raise RejectedReport(ReportError.REPORT_DROPPED)
        shared = credited(metadata.report_id, metadata.time, public_share)
        if not credential.is_genuine(admission.issuer, self.task.task.id, shared):
            raise RejectedReport(ReportError.INVALID_MESSAGE)

    def spend(self, metadata: ReportMetadata, public_share: bytes) -> None:
        """This report, which was checked, is taken: its serial is for no other."""
        if self.task.task.admission is None:
            return
        serial = ReportCredential.of(metadata.public_extensions).serial
        if serial not in self.spent:
            self.spent[serial] = report_digest(metadata, public_share)
            self.new[metadata.report_id] = serial, self.spent[serial]

    def changes(self, report_ids: set[bytes]) -> tuple[SpendCredentials, ...]:
        """What is to be written of the serials that these reports have spent."""
        found = tuple(each for report_id, each in self.new.items() if report_id in report_ids)
        return (SpendCredentials(found),) if found else ()


def report_digest(metadata: ReportMetadata, public_share: bytes) -> bytes:
    """What stands for a report: all that a credential is spent on, and the credential."""
    return sha256(metadata.to_bytes() + public_share).digest()
