"""Replies to recipes, kept as they were sent: who asks again for the same, for the same people, gets the same bytes.

A reply is kept in the transaction that charges it, before anything is sent. So a crash before the transaction means
that nothing was said and nothing is owed, and after it the same bytes are sent for the charge that stands. Another
roster, shard or round has another key: fresh randomness, and another charge.
"""

from dataclasses import dataclass

from hazemap.device.encrypted_store import EncryptedStore, Write


@dataclass(frozen=True)
class ReportRecords:
    """The replies of one device, by the key of their request (`report_request`)."""

    store: EncryptedStore
    device: int

    def find(self, key: bytes) -> bytes | None:
        """The bytes that were made for a request; None where none were."""
        tag = self._tag(key)
        found = self.store.read("SELECT sealed FROM reports WHERE device = ? AND tag = ?", self.device, tag)
        return self.store.unseal("reports", self.device, tag, found[0][0]) if found else None

    def kept(self, key: bytes, reply: bytes) -> Write:
        """The statement that keeps a reply; it fails where there is one."""
        tag = self._tag(key)
        sealed = self.store.seal("reports", self.device, tag, reply)
        return Write("INSERT INTO reports VALUES (?, ?, ?)", (self.device, tag, sealed))

    def _tag(self, key: bytes) -> bytes:
        return self.store.tag(self.device, b"report" + key)
