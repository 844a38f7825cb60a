"""Who did what: a log that only grows, each entry's hash over the one before (`protocols.chained_log`)."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from hazemap.codec import Limits
from hazemap.federated.protocols.chained_log import LogFormat, LogHead
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.server.hash_chain import HashChain
from hazemap.federated.server.roles import Principal
from hazemap.federated.service.store import instant

FIELDS = ("seq", "time", "who", "role", "act", "object", "outcome", "previous")
FORMAT = LogFormat("the audit log", b"hazemap audit 1", FIELDS, Limits(length=4_096, items=32, work=0, depth=1))


def checked(lines: Iterable[str]) -> LogHead:
    """Check a log's JSON lines from its beginning; `CodecError` names the first entry that does not follow.

    >>> checked([])
    LogHead(entries=0, digest='0000000000000000000000000000000000000000000000000000000000000000')
    """
    return FORMAT.checked(lines)


class AuditLog:
    """The log of a server's store."""

    def __init__(self, store: CampaignStore) -> None:
        self._chain = HashChain(store, "audit_log", FORMAT)

    @property
    def entries(self) -> int:
        """How many there are."""
        return self._chain.entries

    async def record(self, who: Principal, act: str, what: str, outcome: str) -> None:
        """One more entry, on the disk when this returns."""
        await self._chain.append(instant(), who.name, who.role.value, act, what[:200], outcome[:200])

    @asynccontextmanager
    async def recorded(self, who: Principal, act: str, what: str = "") -> AsyncIterator[None]:
        """Note that something is asked for before it is done, and afterwards what became of it."""
        await self.record(who, act, what, "asked")
        try:
            yield
        except Exception as error:
            await self.record(who, act, what, f"refused: {type(error).__name__}")
            raise
        await self.record(who, act, what, "done")

    def lines(self, after: int) -> list[str]:
        """Up to a thousand entries after this one, as JSON lines."""
        return self._chain.lines(after)
