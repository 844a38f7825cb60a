"""Roles and the log of what they did: operators, analysts and auditors, each with a token that ends.

Of a token only the hash is stored. The token in the server's folder is the first operator's; it ends when its file is
removed and the server is started again. The log only grows, each entry's hash over the one before
(`federated.protocols.chained_log`).
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from fractions import Fraction
from typing import Any

from hazemap.codec import Limits
from hazemap.errors import InputError
from hazemap.federated.protocols.chained_log import BEGINNING, PAGE, LogFormat, LogHead
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.service.access_tokens import fresh, kept
from hazemap.federated.service.store import Write, instant

FIRST = "operator"
"""The name of whoever has the token in the server's folder."""
LONGEST = 3_650
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_KNOWN = "SELECT name, role, token, expires, epsilon, campaigns FROM tokens WHERE revoked IS NULL"
_ALL = "SELECT name, role, issued, expires, revoked, epsilon, campaigns FROM tokens ORDER BY name"
_ISSUE = (
    "INSERT INTO tokens (name, role, token, issued, expires, epsilon, campaigns) VALUES (?, ?, ?, ?, ?, ?, ?) ON "
    "CONFLICT (name) DO UPDATE SET token = excluded.token, issued = excluded.issued, expires = excluded.expires, "
    "revoked = NULL, epsilon = excluded.epsilon, campaigns = excluded.campaigns"
)
_REVOKE = "UPDATE tokens SET revoked = ?, token = ? WHERE name = ?"


class OperatorRole(Enum):
    """What a token is for.

    >>> OperatorRole("auditor").name
    'AUDITOR'
    """

    OPERATOR = "operator"
    """Begins and ends campaigns, and manages devices, codes and tokens."""
    ANALYST = "analyst"
    """Begins campaigns within its limits, and reads results."""
    AUDITOR = "auditor"
    """Reads status, log and metrics, and changes nothing."""


@dataclass(frozen=True)
class Principal:
    """Somebody with a token: `epsilon` all their campaigns may cost together, `campaigns` may run at a time.

    >>> Principal("anna", OperatorRole.ANALYST, Fraction(2), 1).role.value
    'analyst'
    """

    name: str
    role: OperatorRole
    epsilon: Fraction | None = None
    campaigns: int | None = None


@dataclass(frozen=True)
class TokenRequest:
    """A token that is to be issued: whose, for what, how many days, and within which limits. Checked when it is made.

    >>> TokenRequest.read({"name": "anna", "role": "analyst", "days": 90, "epsilon": "2", "campaigns": 1}).epsilon
    Fraction(2, 1)
    """

    name: str
    role: OperatorRole
    days: int
    epsilon: Fraction | None = None
    campaigns: int | None = None

    @classmethod
    def read(cls, data: Any) -> "TokenRequest":
        """From JSON; `InputError` says what is wrong with it."""
        if not isinstance(data, dict) or not {"name", "role", "days"} <= set(data) <= set(cls.__match_args__):
            raise InputError("a token is asked for with name, role, days, and for an analyst epsilon and campaigns")
        name, role, days = data["name"], data["role"], data["days"]
        epsilon, campaigns = data.get("epsilon"), data.get("campaigns")
        if not isinstance(name, str) or not NAME.fullmatch(name) or name == FIRST:
            raise InputError(
                f"a name has 1 to 64 letters, digits and . _ @ -, and is not {FIRST!r}; found {str(name)!r:.40}"
            )
        if role not in [each.value for each in OperatorRole]:
            raise InputError(f"a role is operator, analyst or auditor; found {str(role)!r:.40}")
        if type(days) is not int or not 1 <= days <= LONGEST:
            raise InputError(f"a token lasts 1 to {LONGEST:,} days; found {str(days)!r:.40}")
        if role != OperatorRole.ANALYST.value:
            if epsilon is not None or campaigns is not None:
                raise InputError(f"epsilon and campaigns limit analysts; an {role} has no such limits")
            return cls(name, OperatorRole(role), days)
        if not isinstance(epsilon, str) or not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9}|/[0-9]{1,9})?", epsilon):
            raise InputError("an analyst's campaigns have a limit: epsilon, such as 2 or 1/2, for all of them together")
        if campaigns is not None and (type(campaigns) is not int or not 1 <= campaigns <= 1_000):
            raise InputError(f"an analyst runs 1 to 1,000 campaigns at a time; found {str(campaigns)!r:.40}")
        if epsilon.partition("/")[2].strip("0") == "" and "/" in epsilon:
            raise InputError("an epsilon has no denominator of zero")
        return cls(name, OperatorRole(role), days, Fraction(epsilon), campaigns or 1)


class RoleTokens:
    """Everybody who has a token, in memory; `first` is the secret in the server's folder."""

    def __init__(self, store: CampaignStore, first: str) -> None:
        self._store = store
        self._by_hash: dict[bytes, tuple[Principal, str]] = {
            kept(first): (Principal(FIRST, OperatorRole.OPERATOR), "9999")
        }
        for name, role, token, expires, epsilon, campaigns in store.read(_KNOWN):
            limit = None if epsilon is None else Fraction(epsilon)
            self._by_hash[bytes(token)] = Principal(name, OperatorRole(role), limit, campaigns), expires

    def holder(self, secret: str) -> Principal | None:
        """Whose token this is, if it has not ended. O(1), by its hash: the time reveals nothing."""
        found = self._by_hash.get(kept(secret))
        return found[0] if found is not None and found[1] > instant() else None

    async def issue(self, asked: TokenRequest) -> str:
        """A new token, on the disk when this returns. One of the same name ends at once."""
        every = {row["name"]: row for row in await self.all()}
        if asked.name in every and every[asked.name]["role"] != asked.role.value:
            raise InputError(f"{asked.name} is {every[asked.name]['role']}: a name keeps its role, so choose another")
        secret, now = fresh(), datetime.now(UTC)
        end = instant(now + timedelta(days=asked.days))
        limit = None if asked.epsilon is None else str(asked.epsilon)
        row = (asked.name, asked.role.value, kept(secret), instant(now), end, limit, asked.campaigns)
        await self._store.write(Write(_ISSUE, row))
        self._forget(asked.name)
        self._by_hash[kept(secret)] = Principal(asked.name, asked.role, asked.epsilon, asked.campaigns), end
        return secret

    async def revoke(self, name: str) -> None:
        """This name's token opens nothing from now on."""
        if name == FIRST:
            raise InputError("the first operator's token is a file: remove operator.token, and start the server again")
        if name not in {row["name"] for row in await self.all()}:
            raise InputError(f"nobody called {name!r:.40} has a token: `hazemap server tokens` lists them")
        self._forget(name)
        await self._store.write(Write(_REVOKE, (instant(), kept(fresh()), name)))

    async def all(self) -> list[dict[str, Any]]:
        """Every token that was ever issued, without its secret."""
        names = ("name", "role", "issued", "expires", "revoked", "epsilon", "campaigns")
        return [dict(zip(names, row, strict=True)) for row in await asyncio.to_thread(self._store.read, _ALL)]

    def _forget(self, name: str) -> None:
        self._by_hash = {key: held for key, held in self._by_hash.items() if held[0].name != name}


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


FIELDS = ("seq", "time", "who", "role", "act", "object", "outcome", "previous")
FORMAT = LogFormat("the audit log", b"hazemap audit 1", FIELDS, Limits(length=4_096, items=32, work=0, depth=1))


def checked(lines: Iterable[str]) -> LogHead:
    """Check a log's JSON lines from its beginning; `CodecError` names the first entry that does not follow.

    >>> checked([])
    LogHead(entries=0, digest='0000000000000000000000000000000000000000000000000000000000000000')
    """
    return FORMAT.checked(lines)


class AuditLog(HashChain):
    """The log of what operators, analysts and auditors did."""

    def __init__(self, store: CampaignStore) -> None:
        super().__init__(store, "audit_log", FORMAT)

    async def record(self, who: Principal, act: str, what: str, outcome: str) -> None:
        """One more entry, on the disk when this returns."""
        await self.append(instant(), who.name, who.role.value, act, what[:200], outcome[:200])

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
