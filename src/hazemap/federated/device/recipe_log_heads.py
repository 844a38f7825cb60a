"""How much of a server's public log of recipes a device has seen, kept on its disk (`public_recipe_log`)."""

import json
from dataclasses import dataclass

from hazemap.federated.device.encrypted_store import EncryptedStore, Write
from hazemap.federated.protocols.chained_log import LogHead


@dataclass(frozen=True)
class RecipeLogHeads:
    """The last entry of every server's log that one device has seen; a server is known by its address."""

    store: EncryptedStore
    device: int

    def seen(self, server: str) -> LogHead:
        """The last entry of this server's log that was seen; number 0 where none was."""
        tag = self._tag(server)
        found = self.store.read("SELECT entries, sealed FROM logs WHERE device = ? AND tag = ?", self.device, tag)
        for entries, sealed in found:
            return LogHead(entries, json.loads(self.store.unseal("logs", self.device, tag, sealed, entries)))
        return LogHead()

    def kept(self, server: str, head: LogHead) -> tuple[Write, ...]:
        """The statement that keeps a head that goes on from the one that was seen; none where it is the same.

        It fails where another process has seen more meanwhile.
        """
        if head == self.seen(server):
            return ()
        tag = self._tag(server)
        sealed = self.store.seal("logs", self.device, tag, json.dumps(head.digest).encode(), head.entries)
        return (
            Write(
                "INSERT INTO logs VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET entries = excluded.entries,"
                " sealed = excluded.sealed WHERE entries <= excluded.entries",
                (self.device, tag, head.entries, sealed),
            ),
        )

    def forgotten(self, server: str) -> tuple[Write, ...]:
        """The statement that forgets a server's log: its owner says that it is another server now."""
        if not self.seen(server).entries:
            return ()
        return (Write("DELETE FROM logs WHERE device = ? AND tag = ?", (self.device, self._tag(server))),)

    def _tag(self, server: str) -> bytes:
        return self.store.tag(self.device, b"recipe log" + server.encode())
