"""Who is signed in: one-time links, sessions, and tickets for what a browser fetches by itself.

A session is two secrets: a cookie, which no script can read, and a key, which a script of the same origin sends with
every request. Cookies of 127.0.0.1 go to every port of it; the key goes to none. All of it ends with the process.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from hazemap.federated.service.access_tokens import fresh, kept, same

T = TypeVar("T")

LASTS = 12 * 3600.0
"""Seconds of a session."""
TICKET = 60.0
"""Seconds in which a ticket is used."""
SESSIONS, TICKETS = 64, 32
"""So many at one time; the oldest goes."""


@dataclass(frozen=True)
class Session:
    """Somebody who is signed in, by name; the key that goes with their cookie; and what their token was then."""

    name: str
    key: str
    token: bytes = b""


class _Secrets(Generic[T]):
    """What secrets stand for, by their hashes, for so many seconds."""

    def __init__(self, most: int, lasts: float, clock: Callable[[], float]) -> None:
        self._most, self._lasts, self._clock = most, lasts, clock
        self._known: OrderedDict[bytes, tuple[float, T]] = OrderedDict()

    def made(self, thing: T) -> str:
        secret, now = fresh(), self._clock()
        for digest in [digest for digest, (until, _) in self._known.items() if until < now]:
            del self._known[digest]
        self._known[kept(secret)] = now + self._lasts, thing
        while len(self._known) > self._most:
            self._known.popitem(last=False)
        return secret

    def found(self, secret: str, once: bool = False) -> T | None:
        digest = kept(secret)
        until, thing = self._known.get(digest, (0.0, None))
        if thing is None or until < self._clock():
            self._known.pop(digest, None)
            return None
        if once:
            del self._known[digest]
        return thing

    def ended(self, secret: str) -> None:
        self._known.pop(kept(secret), None)


@dataclass(eq=False)
class Sessions:
    """Everybody who is signed in, and the links and tickets that are out.

    >>> sessions = Sessions()
    >>> link = sessions.link("steward")
    >>> sessions.entered(link), sessions.entered(link)
    ('steward', None)
    """

    clock: Callable[[], float] = time.monotonic
    _links: _Secrets[str] = field(init=False)
    _out: dict[str, str] = field(default_factory=dict)
    _sessions: _Secrets[Session] = field(init=False)
    _tickets: "_Secrets[tuple[str, Fetched]]" = field(init=False)

    def __post_init__(self) -> None:
        self._links = _Secrets(SESSIONS, LASTS, self.clock)
        self._sessions = _Secrets(SESSIONS, LASTS, self.clock)
        self._tickets = _Secrets(TICKETS, TICKET, self.clock)

    def link(self, name: str) -> str:
        """The secret of a link that lets its first user in as somebody: the one that is out, as long as it is good.

        So nobody makes the owner's link worthless by asking for others.
        """
        if self._links.found(self._out.get(name, "")) is None:
            self._out[name] = self._links.made(name)
        return self._out[name]

    def entered(self, secret: str) -> str | None:
        """Whom a link lets in, once."""
        return self._links.found(secret, once=True)

    def begun(self, name: str, token: bytes = b"") -> tuple[str, Session]:
        """A new session: its cookie, and what the server knows of it."""
        session = Session(name, fresh(), token)
        return self._sessions.made(session), session

    def of_cookie(self, cookie: str) -> Session | None:
        """The session of a cookie alone: enough for nothing but a ticket."""
        return self._sessions.found(cookie)

    def of(self, cookie: str, key: str) -> Session | None:
        """The session of a cookie and its key."""
        session = self.of_cookie(cookie)
        return session if session is not None and same(key, session.key) else None

    def ended(self, cookie: str) -> None:
        """Sign out."""
        self._sessions.ended(cookie)

    def ticket(self, name: str, fetched: "Fetched") -> str:
        """A secret for which somebody can fetch something once, in a minute."""
        return self._tickets.made((name, fetched))

    def fetched(self, name: str, ticket: str) -> "Fetched | None":
        """What a ticket is for; None unless it is theirs, and new."""
        owner, found = self._tickets.found(ticket, once=True) or ("", None)
        return found if owner == name else None


@dataclass(frozen=True)
class Fetched:
    """Bytes that a browser fetches by a ticket: a page to be framed, or a file to be saved under a name."""

    content: bytes
    kind: str
    name: str | None = None
