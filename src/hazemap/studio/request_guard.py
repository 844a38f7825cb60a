"""Before each route: that the browser means this server, that its own page asks, who asks, and how much they send.

* Host: a name that resolves to this machine for a moment (DNS rebinding) is not one of ours.
* Origin and Sec-Fetch-Site: another site, or another port of this machine, asks for nothing here.
* Cookie and key: see `hazemap.studio.sessions`.
* Headers of every answer: no script but the studio's own files, no frame around it, nothing kept by the browser.
"""

import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hazemap.codec import Limits, parsed
from hazemap.errors import CodecError, ConversationError, HazemapError
from hazemap.federated.service.http_limits import HttpLimits
from hazemap.federated.service.route_guard import (
    Application,
    Codes,
    Endpoint,
    Guard,
    Receive,
    Scope,
    Send,
    TooOften,
    body_of,
    recognise,
)
from hazemap.studio.coordinator_access import StrangeAnswer
from hazemap.studio.refusals import refused, told_of
from hazemap.studio.running_releases import Busy, UnknownRun
from hazemap.studio.sessions import Session, Sessions
from hazemap.studio.stewards import Steward, Stewards

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

    def who(self, session: Session | None) -> Steward:
        """The steward of a session, as long as their token is what it was."""
        steward = None if session is None else self.stewards.by_name.get(session.name)
        if steward is None or session is None or self.stewards.fingerprint(steward.name) != session.token:
            raise refused(NotSignedIn, "signedOut")
        return steward

    def _recognised(self, request: Request, session: Session | None) -> Steward:
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
