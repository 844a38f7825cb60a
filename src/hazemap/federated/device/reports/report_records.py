"""Reports to other servers, kept as they were made: the same bytes are sent until they are there, for one charge.

A report is kept in the transaction that charges it, before anything is sent. So a crash before the transaction means
that nothing was said and nothing is owed, and after it the same bytes are sent for the charge that stands. Once it has
arrived, or will never be taken, its bytes are deleted: what it answered stays.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from hazemap.federated.device.store.encrypted_store import EncryptedStore, StoreWrite

_NUMBER: Final = 8
_WORDS: Final = 32
_HEAD: Final = 2 * _NUMBER + _WORDS
_SEALED: Final = 28
MOST_KEPT, LARGEST_KEPT = 64, 1 << 26
"""Reports that one device keeps to be sent, and their bytes: a server may announce without end, and take none."""


@dataclass(frozen=True)
class KeptReport:
    """Its line in the log, until when it is kept (seconds since 1970), the digest of the announcement that it answers.

    `parcel` are the bytes to send: none where they have arrived, or are not sent any more.
    """

    number: int
    until: int
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
        return self._opened(tag, found[0][0]) if found else None

    def full(self) -> str | None:
        """Why no other report can be kept; None where it can."""
        sql = "SELECT count(*), coalesce(sum(length(sealed)), 0) FROM reports WHERE device = ? AND length(sealed) > ?"
        [(number, size)] = self.store.read(sql, self.device, _HEAD + _SEALED)
        if number < MOST_KEPT and size < LARGEST_KEPT:
            return None
        return (
            f"this device keeps {number:,} reports of {size:,} bytes that no server has taken yet, and makes no other:"
            " it leaves them a day after their time"
        )

    def kept(self, batch: bytes, report: KeptReport) -> StoreWrite:
        """The statement that keeps a report; it fails where there is one."""
        tag = self._tag(batch)
        return StoreWrite("INSERT INTO reports VALUES (?, ?, ?)", (self.device, tag, self._closed(tag, report)))

    def emptied(self, batch: bytes, report: KeptReport) -> StoreWrite:
        """The statement that deletes the bytes of a report."""
        return self._emptied(self._tag(batch), report)

    def forsaken(self, now: datetime) -> list[tuple[KeptReport, StoreWrite]]:
        """The reports that no server took in time, and the statements that delete them; one is read at a time."""
        tags = "SELECT tag FROM reports WHERE device = ? AND length(sealed) > ?"
        left = []
        for (tag,) in self.store.read(tags, self.device, _HEAD + _SEALED):
            for (sealed,) in self.store.read(
                "SELECT sealed FROM reports WHERE device = ? AND tag = ?", self.device, tag
            ):
                report = replace(self._opened(tag, sealed), parcel=b"")
                if report.until < now.timestamp():
                    left.append((report, self._emptied(tag, report)))
        return left

    def _emptied(self, tag: bytes, report: KeptReport) -> StoreWrite:
        sealed = self._closed(tag, replace(report, parcel=b""))
        return StoreWrite("UPDATE reports SET sealed = ? WHERE device = ? AND tag = ?", (sealed, self.device, tag))

    def _closed(self, tag: bytes, report: KeptReport) -> bytes:
        numbers = report.number.to_bytes(_NUMBER, "big") + report.until.to_bytes(_NUMBER, "big")
        return self.store.seal("reports", self.device, tag, numbers + report.answers + report.parcel)

    def _opened(self, tag: bytes, sealed: bytes) -> KeptReport:
        plain = self.store.unseal("reports", self.device, tag, sealed)
        number, until = (int.from_bytes(plain[at : at + _NUMBER], "big") for at in (0, _NUMBER))
        return KeptReport(number, until, plain[2 * _NUMBER : _HEAD], plain[_HEAD:])

    def _tag(self, batch: bytes) -> bytes:
        return self.store.tag(self.device, b"report" + batch)
