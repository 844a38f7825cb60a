"""A log that only grows (`protocols.chained_log`), in a table of a server's store."""

from typing import Any

from hazemap.federated.protocols.chained_log import BEGINNING, PAGE, LogFormat
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.service.store import Write


class HashChain:
    """A log in a table (seq, entry, digest) of a server's store, which only it writes to.

    Entries are numbered by the event loop and written in their order.
    """

    def __init__(self, store: CampaignStore, table: str, shape: LogFormat) -> None:
        self._store, self._shape = store, shape
        self._add = f"INSERT INTO {table} (seq, entry, digest) VALUES (?, ?, ?)"  # noqa: S608 - a table of ours
        self._some = f"SELECT entry, digest FROM {table} WHERE seq > ? ORDER BY seq LIMIT ?"  # noqa: S608
        rows = store.read(f"SELECT seq, digest FROM {table} ORDER BY seq DESC LIMIT 1")  # noqa: S608
        self.entries, self._last = (int(rows[0][0]), bytes(rows[0][1])) if rows else (0, BEGINNING)

    async def append(self, *values: Any, also: tuple[Write, ...] = ()) -> None:
        """One more entry, on the disk when this returns, in one transaction with what else is to be written."""
        self.entries += 1
        fields = dict(zip(self._shape.fields, (self.entries, *values, self._last.hex()), strict=True))
        text = self._shape.text(fields)
        self._last = self._shape.digest(text)
        await self._store.write(*also, Write(self._add, (self.entries, text, self._last)))

    def lines(self, after: int) -> list[str]:
        """Up to a thousand entries after this one, as JSON lines."""
        rows = self._store.read(self._some, after, PAGE)
        return [f'{text[:-1]},"digest":"{bytes(digest).hex()}"}}' for text, digest in rows]
