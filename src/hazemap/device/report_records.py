"""Reports to other servers, kept as they were made: the same bytes are sent until they are there, for one charge.

A report is kept in the transaction that charges it, before anything is sent. So a crash before the transaction means
that nothing was said and nothing is owed, and after it the same bytes are sent for the charge that stands.
"""

from dataclasses import dataclass, field
from typing import Final

from hazemap.device.encrypted_store import EncryptedStore, Write

_NUMBER: Final = 8
_WORDS: Final = 32


@dataclass(frozen=True)
class KeptReport:
    """Its line in the log, the digest of the announcement that it answers, and the bytes to send."""

    number: int
    answers: bytes
    parcel: bytes = field(repr=False)


@dataclass(frozen=True)
class ReportRecords:
    """The reports of one device, by the name of their batch."""

    store: EncryptedStore
    device: int

    def find(self, batch: bytes) -> KeptReport | None:
        """The report that was made for a batch; None where none was."""
        tag = self._tag(batch)
        found = self.store.read("SELECT sealed FROM reports WHERE device = ? AND tag = ?", self.device, tag)
        if not found:
            return None
        plain = self.store.unseal("reports", self.device, tag, found[0][0])
        head = _NUMBER + _WORDS
        return KeptReport(int.from_bytes(plain[:_NUMBER], "big"), plain[_NUMBER:head], plain[head:])

    def kept(self, batch: bytes, report: KeptReport) -> Write:
        """The statement that keeps a report; it fails where there is one."""
        tag = self._tag(batch)
        plain = report.number.to_bytes(_NUMBER, "big") + report.answers + report.parcel
        return Write(
            "INSERT INTO reports VALUES (?, ?, ?)",
            (self.device, tag, self.store.seal("reports", self.device, tag, plain)),
        )

    def _tag(self, batch: bytes) -> bytes:
        return self.store.tag(self.device, b"report" + batch)
