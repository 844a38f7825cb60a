"""What every route of every server does before it understands a request: who asks, from where, and how much is sent.

A body is refused by its head where that says that it is longer than the route takes, and is not read any further than
that. Whoever shows a token that is good is marked in the scope: `open_connections` lets them wait longest.
"""

import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from functools import wraps
from hmac import compare_digest
from math import ceil
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

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
from hazemap.service.access_tokens import kept
from hazemap.service.rate_limit import RateLimit, place_of

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Endpoint = Callable[[Request], Awaitable[Response]]
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


async def body(scope: Scope, receive: Receive, most: int) -> bytes:
    """A request's body: `TooLong` at once where its head says so, `ClientDisconnect` if the other side has gone."""
    said = header(scope, b"content-length")
    parts, size = [], int(said) if said.isascii() and said.isdigit() and len(said) < 20 else 0
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


class Guesses:
    """Wrong tokens and codes, of which so many a minute are answered; one that is right is taken however many were."""

    def __init__(self, most: float) -> None:
        self._limit = RateLimit(most)

    def count(self, scope: Scope) -> None:
        """One more that was wrong; `TooOften` where an address has made too many."""
        wait = self._limit.taken(place_from(scope))
        if wait is not None:
            raise TooOften("too many wrong tokens or codes came from this address: try again later", wait)

    def judge(self, scope: Scope, error: Exception) -> Exception:
        """This error; where it was a wrong token or code, and one too many of its address, that it was."""
        if isinstance(error, Refused | Unauthorized):
            try:
                self.count(scope)
            except TooOften as often:
                return often
        return error


def safe(endpoint: Endpoint, failed: Callable[[Request, Exception], Response]) -> Endpoint:
    """An endpoint whose errors are answers."""

    @wraps(endpoint)
    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:
            return failed(request, error)

    return answered


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


def in_words(request: Request, error: Exception, log: logging.Logger, own: Codes = ()) -> Response:
    """An error as JSON. What no server should meet is in its log alone."""
    code, words = code_of(error, own), str(error)
    if not isinstance(error, HazemapError):
        log.error("a request that the server cannot deal with: %s", ascii(request.url.path)[:200], exc_info=error)
        words = "the server could not deal with this request; its log says why"
    return Response(json.dumps({"error": words}), code, headers_of(error, code), "application/json")
