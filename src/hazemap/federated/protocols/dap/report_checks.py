"""An aggregator opens its share of a report and looks at it (draft-ietf-ppm-dap-18, sections 4.5.2.3 and 4.5.2.4).

Each credential of a task counts once at a server: the same report again is the same, another one is refused. A server
keeps, for as long as it keeps the task, each serial with a digest of the report that it was spent on. So a report that
comes again, as at each level of a walk, is known without its signatures, and a crash forgets nothing.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Protocol

from hazemap.errors import CodecError, Refused
from hazemap.federated.protocols.dap.aggregator_changes import SpendCredentials
from hazemap.federated.protocols.dap.aggregator_task import AggregatorTask
from hazemap.federated.protocols.dap.basic_types import HpkeCiphertext, ReportError
from hazemap.federated.protocols.dap.report_credentials import CREDENTIAL, ReportCredential, credited
from hazemap.federated.protocols.dap.upload_messages import PlaintextInputShare, ReportMetadata
from hazemap.federated.protocols.dap.vdaf_configuration import check_extensions


def known_extensions(task: AggregatorTask) -> Collection[int]:
    """Types of public report extensions that are understood: none are registered, and private ones never."""
    return () if task.task.admission is None else (CREDENTIAL,)


class DecryptionKeys(Protocol):
    """The HPKE keys that an aggregator still opens with."""

    def knows(self, config_id: int) -> bool:
        """Whether it has this key."""
        ...

    def open(self, sealed: HpkeCiphertext, info: bytes, aad: bytes) -> bytes:
        """What was sealed; `Refused` if it does not open, or the key is gone."""
        ...


class RejectedReport(Exception):
    """One report that is not taken; the others of its message may be."""

    def __init__(self, error: ReportError) -> None:
        super().__init__(error.name.lower())
        self.error = error


def check_time(task: AggregatorTask, time: int, now: int, earliest: int) -> None:
    """Reject a report that is made too early, before or after the task's time, or before the earliest one taken."""
    if time > task.latest(now):
        raise RejectedReport(ReportError.REPORT_TOO_EARLY)
    if task.task.interval is not None:
        if time < task.task.interval.start:
            raise RejectedReport(ReportError.TASK_NOT_STARTED)
        if time >= task.task.interval.end:
            raise RejectedReport(ReportError.TASK_EXPIRED)
    if time < earliest:
        raise RejectedReport(ReportError.REPORT_DROPPED)


def opened_share(
    task: AggregatorTask,
    keys: DecryptionKeys,
    metadata: ReportMetadata,
    public_share: bytes,
    sealed: HpkeCiphertext,
) -> bytes:
    """This aggregator's input share; `RejectedReport` for one that may not be aggregated. Costs one key agreement.

    Where the report carries a credential, the share is the one that the device made for this server.
    """
    try:
        check_extensions(metadata.public_extensions, known_extensions(task))
    except CodecError:
        raise RejectedReport(ReportError.INVALID_MESSAGE) from None
    try:
        aad = task.input_share_aad(metadata, public_share)
        plain = keys.open(sealed, task.task.version.input_share_info(task.role), aad)
    except Refused:
        raise RejectedReport(ReportError.HPKE_DECRYPT_ERROR) from None
    try:
        share = task.read_input_share(plain)
        extensions = share.private_extensions if isinstance(share, PlaintextInputShare) else share.extensions
        check_extensions(extensions, ())
        admitted = task.task.admission is None or ReportCredential.of(metadata.public_extensions).covers(
            task.role, plain
        )
    except CodecError:
        raise RejectedReport(ReportError.INVALID_MESSAGE) from None
    if not admitted:
        raise RejectedReport(ReportError.INVALID_MESSAGE)
    return share.payload


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
