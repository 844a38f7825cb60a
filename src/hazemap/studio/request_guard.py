"""Before each route: that the browser means this server, that its own page asks, who asks, and how much they send.

* Host: a name that resolves to this machine for a moment (DNS rebinding) is not one of ours.
* Origin and Sec-Fetch-Site: another site, or another port of this machine, asks for nothing here.
* Cookie and key: see `hazemap.studio.request_guard`.
* Headers of every answer: no script but the studio's own files, no frame around it, nothing kept by the browser.
"""

import json
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hazemap import __version__
from hazemap.codec import Limits, parsed
from hazemap.errors import CodecError, ConversationError, HazemapError, InputError
from hazemap.federated.service.access_tokens import fresh, kept, same
from hazemap.federated.service.http_limits import HttpLimits
from hazemap.federated.service.route_guard import (
    Application,
    Codes,
    Endpoint,
    Guard,
    Receive,
    Row,
    Scope,
    Send,
    TooOften,
    body_of,
    recognise,
)
from hazemap.studio.coordinator_access import StrangeAnswer
from hazemap.studio.refusals import refused, told_of
from hazemap.studio.running_releases import Busy, UnknownRun
from hazemap.studio.stewards import ALONE, Steward, Stewards

T = TypeVar("T")

LASTS = 12 * 3600.0
"""Seconds of a session."""
TICKET = 60.0
"""Seconds in which a ticket is used."""
SESSIONS, TICKETS = 64, 32
"""So many at one time; the oldest goes."""


@dataclass(frozen=True)
class StewardSession:
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
    _sessions: _Secrets[StewardSession] = field(init=False)
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

    def begun(self, name: str, token: bytes = b"") -> tuple[str, StewardSession]:
        """A new session: its cookie, and what the server knows of it."""
        session = StewardSession(name, fresh(), token)
        return self._sessions.made(session), session

    def of_cookie(self, cookie: str) -> StewardSession | None:
        """The session of a cookie alone: enough for nothing but a ticket."""
        return self._sessions.found(cookie)

    def of(self, cookie: str, key: str) -> StewardSession | None:
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


log = logging.getLogger("hazemap.studio")

FORM: Final = 64 << 10
"""Bytes of the longest form."""
FIELDS = Limits(length=FORM, items=1_024, work=0, depth=4)
KEY_HEADER = "x-hazemap-key"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
FRAMED = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline' blob:; style-src 'unsafe-inline'; "
    "img-src data: blob:; worker-src blob:; child-src blob:; connect-src blob: data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'"
)
"""Of the page of a release, which is one file with its script in it: it runs apart, and reaches nothing."""
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "geolocation=(), camera=(), microphone=(), payment=(), usb=()",
}

StewardEndpoint = Callable[[Request, Steward], Awaitable[Response]]


class NotSignedIn(HazemapError):
    """A request without a session."""


class Foreign(HazemapError):
    """A request that another site has made, or that names another server."""


class SystemRefused(HazemapError):
    """What the operating system did not do."""


class Bug(HazemapError):
    """What the studio should have dealt with."""


class NoJson(HazemapError):
    """A body that is not said to be JSON."""


_CODES: Final[Codes] = (
    (NotSignedIn, 401),
    (Foreign, 403),
    (NoJson, 415),
    (UnknownRun, 404),
    (Busy, 409),
    (StrangeAnswer, 502),
    (ConversationError, 422),
)


@dataclass(frozen=True)
class Origins:
    """The names by which browsers may reach the studio: `host:port` each, and how they speak to it."""

    hosts: frozenset[str]
    secure: bool

    @property
    def origins(self) -> frozenset[str]:
        """As an Origin header says it."""
        return frozenset(f"{'https' if self.secure else 'http'}://{host}" for host in self.hosts)

    @classmethod
    def of(cls, host: str, port: int, secure: bool, names: tuple[str, ...] = ()) -> "Origins":
        """Those of an address; of this machine all its own names.

        >>> sorted(Origins.of("127.0.0.1", 8475, False).hosts)
        ['127.0.0.1:8475', '[::1]:8475', 'localhost:8475']
        """
        from hazemap.federated.service.served_address import loopback

        own = (host, "127.0.0.1", "localhost", "::1") if loopback(host) else (host,)
        every = [f"[{name}]" if ":" in name else name.lower() for name in (*own, *names)]
        usual = 443 if secure else 80
        hosts = {f"{name}:{port}" for name in every} | ({*every} if port == usual else set())
        return cls(frozenset(hosts), secure)


class OwnHostOnly:
    """An application that answers to its own names alone, with the studio's headers on every answer."""

    def __init__(self, inner: Application, origins: Origins) -> None:
        self._inner, self._origins = inner, origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return

        async def guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                there = {name for name, _ in message["headers"]}
                more = [(n.encode(), v.encode()) for n, v in HEADERS.items() if n.encode() not in there]
                if self._origins.secure:
                    more.append((b"strict-transport-security", b"max-age=31536000"))
                message["headers"] = [*message["headers"], *more]
            await send(message)

        hosts = [value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or hosts[0] not in self._origins.hosts:
            wrong = Foreign("this studio is not called so: open it by the address that it printed")
            await _problem(421, wrong)(scope, receive, guarded)
            return
        await self._inner(scope, receive, guarded)


class StewardGuard(Guard):
    """Stands before the routes of a studio."""

    wrong = ()  # routes say themselves what is a guess

    def __init__(
        self, stewards: Stewards, sessions: Sessions, origins: Origins, cookie: str, limits: HttpLimits
    ) -> None:
        super().__init__(log, limits, codes=_CODES)
        self.stewards, self.sessions, self.cookie, self._origins = stewards, sessions, cookie, origins

    def page(self, endpoint: Endpoint) -> Endpoint:
        """A route for the studio's own page, signed in or not."""

        async def checked(request: Request) -> Response:
            self._own_page(request)
            return await endpoint(request)

        return wraps(endpoint)(checked)

    def steward(self, endpoint: StewardEndpoint) -> Endpoint:
        """A route for somebody who is signed in, asked for by the studio's own page."""

        async def checked(request: Request) -> Response:
            self._own_page(request)
            cookie = request.cookies.get(self.cookie, "")
            session = self.sessions.of(cookie, request.headers.get(KEY_HEADER, ""))
            return await endpoint(request, self._recognised(request, session))

        return wraps(endpoint)(checked)

    def ticket(self, endpoint: StewardEndpoint) -> Endpoint:
        """A route that a browser opens by itself, for whoever's cookie it shows."""

        async def checked(request: Request) -> Response:
            self._own_page(request)
            session = self.sessions.of_cookie(request.cookies.get(self.cookie, ""))
            return await endpoint(request, self._recognised(request, session))

        return wraps(endpoint)(checked)

    def who(self, session: StewardSession | None) -> Steward:
        """The steward of a session, as long as their token is what it was."""
        steward = None if session is None else self.stewards.by_name.get(session.name)
        if steward is None or session is None or self.stewards.fingerprint(steward.name) != session.token:
            raise refused(NotSignedIn, "signedOut")
        return steward

    def _recognised(self, request: Request, session: StewardSession | None) -> Steward:
        steward = self.who(session)
        recognise(request.scope)
        return steward

    def guessed(self, request: Request) -> None:
        """Count a wrong guess; `TooOften` where an address has made too many."""
        try:
            self.guesses.count(request.scope)
        except TooOften:
            raise refused(TooOften, "tooOften") from None

    def failed(self, request: Request, error: Exception) -> Response:
        """The answer to an error: what the system refuses is nobody's fault here."""
        if isinstance(error, OSError):
            error = refused(SystemRefused, "systemRefused", why=error.strerror or type(error).__name__)
        return super().failed(request, error)

    def bug(self) -> HazemapError:
        """What the page can tell in the reader's language."""
        return refused(Bug, "bug")

    def answer(self, error: Exception, code: int) -> Response:
        """An error as the page tells it."""
        return _problem(code, error)

    def _own_page(self, request: Request) -> None:
        site = request.headers.get("sec-fetch-site")
        if site not in (None, "same-origin"):
            raise Foreign("another site asked for this; the studio answers its own page alone")
        origin = request.headers.get("origin")
        changes = request.method not in ("GET", "HEAD")
        if (origin is not None or changes) and origin not in self._origins.origins:
            raise Foreign("another site asked for this; the studio answers its own page alone")


async def form(request: Request) -> dict[str, Any]:
    """The object that a request sends as JSON, of at most `FORM` bytes."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise NoJson("forms are sent as application/json")
    data = parsed(await body_of(request, FORM), FIELDS)
    if not isinstance(data, dict):
        raise CodecError("a form is a JSON object")
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise CodecError("a form holds valid text") from None
    return data


def _problem(status: int, error: Exception) -> Response:
    return JSONResponse({"error": told_of(error)}, status)


class SignInRoutes:
    """The routes of whoever comes. `print_link` shows a new link to whoever sees the studio's terminal."""

    def __init__(self, guard: StewardGuard, secure: bool, print_link: Callable[[], str]) -> None:
        self._guard, self._secure, self._print_link = guard, secure, print_link

    def routes(self) -> list[Row]:
        """All of them."""
        page, steward = self._guard.page, self._guard.steward
        return [
            ("/v1/session", page(self.sign_in), "POST"),
            ("/v1/session", steward(self.who), "GET"),
            ("/v1/session", steward(self.sign_out), "DELETE"),
            ("/v1/link", page(self.new_link), "POST"),
            ("/v1/tickets/{ticket}", self._guard.ticket(self.fetched), "GET"),
        ]

    async def sign_in(self, request: Request) -> Response:
        """A session for whoever shows a link's secret or a token, however many others guess."""
        data = await form(request)
        secret = data.get("link", data.get("token"))
        if len(data) != 1 or not isinstance(secret, str) or not 0 < len(secret) <= 1_000:
            raise InputError("sign in with a link or with a token")
        name = self._guard.sessions.entered(secret) if "link" in data else None
        if "token" in data and (holder := self._guard.stewards.holder(secret)):
            name = holder.name
        if name is None:
            self._guard.guessed(request)
            raise refused(NotSignedIn, "linkUsed" if "link" in data else "tokenUnknown")
        cookie, session = self._guard.sessions.begun(name, self._guard.stewards.fingerprint(name))
        answer = JSONResponse({"name": name, "key": session.key, "version": __version__}, 201)
        self._set(answer, cookie, int(LASTS))
        return answer

    async def who(self, _: Request, who: Steward) -> Response:
        """Who is signed in."""
        server = None if who.server is None else who.server.url
        return JSONResponse({"name": who.name, "root": str(who.root.path), "server": server, "version": __version__})

    async def sign_out(self, request: Request, _: Steward) -> Response:
        """End a session."""
        self._guard.sessions.ended(request.cookies.get(self._guard.cookie, ""))
        answer = Response(status_code=204)
        self._set(answer, "", 0)
        return answer

    async def new_link(self, request: Request) -> Response:
        """Print a link that is good in the studio's terminal; whoever asks does not see it."""
        self._guard.guessed(request)  # asking counts: nobody fills a terminal
        if ALONE not in self._guard.stewards.by_name:
            raise refused(InputError, "usersHaveTokens")
        self._print_link()
        return Response(status_code=204)

    async def fetched(self, request: Request, who: Steward) -> Response:
        """What a ticket is for, once."""
        found = self._guard.sessions.fetched(who.name, request.path_params["ticket"])
        if found is None:
            raise refused(InputError, "ticketUsed")
        headers = {"content-security-policy": FRAMED, "x-frame-options": "SAMEORIGIN"}
        if found.name is not None:
            headers = {"content-disposition": f"attachment; filename*=UTF-8''{quote(found.name, safe='')}"}
        return Response(found.content, headers=headers, media_type=found.kind)

    def _set(self, answer: Response, cookie: str, seconds: int) -> None:
        answer.set_cookie(
            self._guard.cookie, cookie, max_age=seconds, path="/", secure=self._secure, httponly=True, samesite="strict"
        )
