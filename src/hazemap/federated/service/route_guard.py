"""What every route of every server does before it understands a request: who asks, from where, and how much is sent.

A body is refused by its head where that says that it is longer than the route takes, and is not read any further than
that. Whoever shows a token that is good is marked in the scope: `OpenConnections` lets them wait longest.
"""

import json
import logging
from asyncio import to_thread
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from functools import wraps
from hmac import compare_digest
from math import ceil
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from hazemap.errors import (
    BudgetError,
    ConversationError,
    HazemapError,
    InputError,
    LedgerError,
    NotOpened,
    Refused,
    StoreError,
    Unreachable,
)
from hazemap.federated.service.access_tokens import kept
from hazemap.federated.service.http_limits import HttpLimits
from hazemap.federated.service.prometheus_text import CONTENT_TYPE, ServerMetrics
from hazemap.federated.service.rate_limit import RateLimit, place_of

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Endpoint = Callable[[Request], Awaitable[Response]]
Row = tuple[str, Endpoint, str]
"""A path, what answers there, and the method."""
Codes = Sequence[tuple[type[Exception], int]]

AGAIN: Final = 30
"""Seconds after which it is asked again where the database cannot be written."""


class Unauthorized(HazemapError):
    """A request without the token that it needs."""


class TooLong(HazemapError):
    """A body that is longer than anything that is taken here."""


class TooOften(HazemapError):
    """More from one address than it may ask for; `wait` is in seconds."""

    def __init__(self, message: str, wait: float = 10) -> None:
        super().__init__(message)
        self.wait = wait


CODES: Final[Codes] = (
    (Unauthorized, 401),
    (TooOften, 429),
    (TooLong, 413),
    (BudgetError, 402),
    (NotOpened, 409),
    (Unreachable, 503),
    (Refused, 403),
    (ConversationError, 422),
    (InputError, 422),
    (StoreError, 503),
    (LedgerError, 503),
)
"""Whose fault an error is, where a server has no other code for it."""


def header(scope: Scope, name: bytes) -> str:
    """The first header of this (lower-case) name, or nothing."""
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


def bearer(scope: Scope) -> str:
    """The ticket or token that a request shows (RFC 6750), or nothing."""
    kind, _, secret = header(scope, b"authorization").partition(" ")
    return secret.strip() if kind.lower() == "bearer" else ""


def recognise(scope: Scope) -> None:
    """Note that who asks has shown a token that is good."""
    scope["hazemap.known"] = True


def authorize(scope: Scope, accepted: bytes) -> None:
    """`Unauthorized` unless a request shows the token of which this is the hash."""
    if not accepted or not compare_digest(kept(bearer(scope)), accepted):
        raise Unauthorized("this is not for everybody: show the token that it needs (Authorization: Bearer …)")
    recognise(scope)


def place_from(scope: Scope) -> str:
    """The address that a request comes from, as it counts for limits; behind a trusted proxy, the one it names."""
    client = scope.get("client")
    return place_of(client[0] if client else None)


def announced_size(scope: Scope) -> int | None:
    """The bytes of a body, by its head; None where that does not say."""
    said = header(scope, b"content-length")
    return int(said) if said.isascii() and said.isdigit() and len(said) < 20 else None


async def body(scope: Scope, receive: Receive, most: int) -> bytes:
    """A request's body: `TooLong` at once where its head says so, `ClientDisconnect` if the other side has gone."""
    parts, size = [], announced_size(scope) or 0
    if size > most:
        raise TooLong(f"a body has at most {most:,} bytes here; {size:,} are announced")
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part, more = message.get("body", b""), message.get("more_body", False)
        size += len(part)
        if size > most:
            raise TooLong(f"a body has at most {most:,} bytes here, and more were sent")
        parts.append(part)
    return b"".join(parts)


def body_of(request: Request, most: int) -> Awaitable[bytes]:
    """`body`, of a request."""
    return body(request.scope, request.receive, most)


class TokenGuesses:
    """Wrong tokens and codes, of which so many a minute are answered; one that is right is taken however many were."""

    def __init__(self, most: float) -> None:
        self._limit = RateLimit(most)

    def count(self, scope: Scope) -> None:
        """One more that was wrong; `TooOften` where an address has made too many."""
        wait = self._limit.taken(place_from(scope))
        if wait is not None:
            raise TooOften("too many wrong tokens or codes came from this address: try again later", wait)


class Guard:
    """Stands before the routes of a server: errors are answers, and an address that asks too much is told to wait.

    `codes` are the statuses of errors that only this server has; `log` holds what nobody should meet.
    """

    wrong: tuple[type[Exception], ...] = (Refused, Unauthorized)
    """Errors that count as guesses."""

    def __init__(
        self,
        log: logging.Logger,
        limits: HttpLimits | None = None,
        metrics: ServerMetrics | None = None,
        codes: Codes = (),
    ) -> None:
        limits = limits or HttpLimits.here()
        self.log, self.metrics, self.codes = log, metrics or ServerMetrics(), codes
        self.guesses, self._most = TokenGuesses(limits.guesses), limits.per_address
        self._here: Counter[str] = Counter()

    def anybody(self, endpoint: Endpoint) -> Endpoint:
        """A route that needs no token; every error is an answer, with a status that says whose fault it is."""

        @wraps(endpoint)
        async def answered(request: Request) -> Response:
            try:
                return await endpoint(request)
            except ClientDisconnect:
                return Response(status_code=400)
            except Exception as error:
                return self.failed(request, error)

        return answered

    def routes(self, rows: Iterable[Row], prefix: str = "") -> list[Route]:
        """The routes of these paths, endpoints and methods, under a path. Each answer is counted by its resource."""

        def counted(path: str, endpoint: Endpoint) -> Endpoint:
            name = [part for part in path.split("/") if "{" not in part][-1]

            async def answered(request: Request) -> Response:
                response = await self.anybody(endpoint)(request)
                who = getattr(request.state, "who", "")
                self.metrics.requests[name, who, response.status_code] += 1
                return response

            return answered

        base = prefix.rstrip("/")
        return [Route(base + path, counted(path, endpoint), methods=[method]) for path, endpoint, method in rows]

    def numbers(self, accepted: bytes, text: Callable[[], str]) -> Row:
        """`/metrics`, for whoever has the token of which this is the hash; `text` may take its time."""

        async def numbers(request: Request) -> Response:
            authorize(request.scope, accepted)
            return Response(await to_thread(text), media_type=CONTENT_TYPE)

        return "/metrics", numbers, "GET"

    def failed(self, request: Request, error: Exception) -> Response:
        """The answer to an error: that it is too often, where an address has been wrong before."""
        if isinstance(error, self.wrong):
            try:
                self.guesses.count(request.scope)
            except TooOften as often:
                self.metrics.rejected["guesses"] += 1
                error = often
        if isinstance(error, StoreError):
            self.log.warning("a request was not answered: %s", error)
        code = code_of(error, self.codes)
        if not isinstance(error, HazemapError):
            place = ascii(request.url.path)[:200]
            self.log.error("a request that the server cannot deal with: %s", place, exc_info=error)
            error = self.bug()
        return self.answer(error, code)

    def bug(self) -> HazemapError:
        """What is said of an error that the server should have dealt with."""
        return HazemapError("the server could not deal with this request; its log says why")

    def answer(self, error: Exception, code: int) -> Response:
        """An error as JSON."""
        return Response(json.dumps({"error": str(error)}), code, headers_of(error, code), "application/json")

    def before(self, inner: Application) -> Application:
        """An application of which one address has only so many requests under way. What it sends is counted."""

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await inner(scope, receive, send)
                return

            async def counted(message: MutableMapping[str, Any]) -> None:
                self.metrics.sent += len(message.get("body", b""))
                await send(message)

            place, answer = place_from(scope), inner
            self._here[place] += 1
            try:
                if self._here[place] > self._most:
                    self.metrics.rejected["requests_per_address"] += 1
                    often = TooOften("too many requests of this address are under way")
                    answer = self.failed(Request(scope), often)
                await answer(scope, receive, counted)
            finally:
                self._here[place] -= 1
                if not self._here[place]:
                    del self._here[place]

        return guarded


def code_of(error: Exception, own: Codes = ()) -> int:
    """The status of an error: this server's own, or else everybody's.

    >>> code_of(TooLong("")), code_of(ValueError()), code_of(ValueError(), [(ValueError, 426)])
    (413, 500, 426)
    """
    return next((code for kind, code in (*own, *CODES) if isinstance(error, kind)), 500)


def headers_of(error: Exception, code: int) -> dict[str, str]:
    """What is said beside an error: how to show a token, and when to ask again."""
    if code == 401:
        return {"WWW-Authenticate": "Bearer"}
    wait = AGAIN if isinstance(error, StoreError) else getattr(error, "wait", 10 if code == 503 else None)
    return {} if wait is None else {"Retry-After": str(ceil(wait))}
