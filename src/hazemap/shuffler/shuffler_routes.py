"""A shuffler as an ASGI application: people send to `/v1/batches/…/messages`, an analyser does all the rest.

An analyser fetches what is handed on, with a token, and sees no batch of another; nothing is pushed to it. So a
shuffler opens no connection, knows no address of an analyser and stores no token of somebody else's, and who was cut
off while fetching fetches again.
"""

import asyncio
import json
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from hmac import compare_digest
from math import inf
from typing import Final, NoReturn

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hazemap.errors import CodecError, HazemapError, InputError, NotOpened, Refused, StoreError, Unreachable
from hazemap.protocols.shuffle.batch_terms import BatchTerms
from hazemap.protocols.shuffle.submission import submission_bytes
from hazemap.service.access_tokens import kept
from hazemap.service.http_limits import HttpLimits
from hazemap.service.prometheus_text import CONTENT_TYPE
from hazemap.service.rate_limit import RateLimit, place_of
from hazemap.service.store import Contradiction, Store
from hazemap.shuffler.analyser_tokens import Tokens, named
from hazemap.shuffler.body_room import SHARES, BodyRoom
from hazemap.shuffler.shuffler_metrics import ShufflerMetrics
from hazemap.shuffler.shuffler_service import BatchOver, BatchState, ShufflerService, UnknownBatch

log = logging.getLogger("hazemap.shuffler")

TERMS: Final = 1_024
"""Bytes of a batch's terms, more than they ever have."""
TRIES: Final = 8
"""How often a submission is looked at anew because another one was faster."""
BYTES = "application/octet-stream"

Endpoint = Callable[[Request], Awaitable[Response]]


class Unauthorized(HazemapError):
    """A request without a token that it needs."""


class TooLong(HazemapError):
    """A body that is longer than anything that may be sent here."""


class TooMany(HazemapError):
    """Wrong tokens or credentials, too often from one address."""


_CODES: tuple[tuple[type[HazemapError], int], ...] = (
    (Unauthorized, 401),
    (TooMany, 429),
    (TooLong, 413),
    (UnknownBatch, 404),
    (BatchOver, 410),
    (NotOpened, 409),
    (Unreachable, 503),
    (Refused, 403),
    (StoreError, 503),
    (CodecError, 422),
    (InputError, 422),
)


class ShufflerRoutes:
    """The routes of one shuffler. `tokens` are its analysers', `operator` the hash of who may read its numbers."""

    def __init__(
        self,
        service: ShufflerService,
        tokens: Tokens,
        limits: HttpLimits | None = None,
        clock: Callable[[], float] = time.time,
        metrics: ShufflerMetrics | None = None,
        operator: bytes = b"",
        room: BodyRoom | None = None,
    ) -> None:
        self._service, self._tokens, self._clock = service, tokens, clock
        self._metrics, self._operator = metrics or ShufflerMetrics(), operator
        limits = limits or HttpLimits.here()
        self._guesses = RateLimit(limits.guesses)
        self._room = room or BodyRoom(shares=inf if limits.per_address == inf else SHARES)

    @property
    def store(self) -> Store:
        """Where everything is."""
        return self._service.store

    def application(self, alive: Callable[[], AsyncIterator[None]] | None = None) -> Starlette:
        """The application; `alive` runs as long as it does."""
        batch = "/v1/batches/{batch}"
        routes = [
            ("/metrics", self._numbers, "GET"),
            ("/v1/shuffler", self._about, "GET"),
            (batch, self._announce, "PUT"),
            (batch, self._state, "GET"),
            (batch, self._forget, "DELETE"),
            (f"{batch}/messages", self._take, "POST"),
            (f"{batch}/messages", self._hand_on, "GET"),
            (f"{batch}/permutation", self._permute, "POST"),
        ]
        lifespan = None if alive is None else asynccontextmanager(lambda _: alive())
        return Starlette(
            routes=[
                Route(path, self._counted(path, self._safe(endpoint)), methods=[method])
                for path, endpoint, method in routes
            ],
            lifespan=lifespan,
        )

    def _counted(self, path: str, endpoint: Endpoint) -> Endpoint:
        name = path.rpartition("/")[2].strip("{}")

        async def answered(request: Request) -> Response:
            response = await endpoint(request)
            who = getattr(request.state, "analyser", "people")
            self._metrics.requests[name, who, response.status_code] += 1
            return response

        return answered

    async def _numbers(self, request: Request) -> Response:
        if not self._operator or not compare_digest(kept(_token(request)), self._operator):
            self._wrong(request, "this is for the operator alone: show the token in operator.token of the folder")
        text = await asyncio.to_thread(self._metrics.text, self.store)
        return Response(text, media_type=CONTENT_TYPE)

    async def _about(self, _: Request) -> Response:
        if self.store.trouble is not None:
            raise self.store.trouble
        return JSONResponse({"version": 1, "key": self._service.key.public.hex(), "least": self._service.limits.least})

    async def _take(self, request: Request) -> Response:
        batch = _batch(request)
        self._patient(request)
        terms = (await asyncio.to_thread(self._service.state, batch)).terms
        with self._room.taken(_place(request), submission_bytes(terms)):
            return await self._taken(batch, await _body(request, submission_bytes(terms)))

    async def _taken(self, batch: bytes, content: bytes) -> Response:
        for _ in range(TRIES):
            writes = await asyncio.to_thread(self._service.taking, batch, content, self._clock())
            if not writes:
                return Response(status_code=204)
            try:
                await self.store.write(*writes)
            except Contradiction:
                continue
            return Response(status_code=204)
        raise Unreachable("this batch is asked for by too many at once: try again", 1)

    async def _announce(self, request: Request) -> Response:
        analyser = self._authorize(request)
        terms = BatchTerms.from_bytes(await _body(request, TERMS))
        if terms.digest != _batch(request):
            raise CodecError("a batch is announced under the digest of its terms")
        await asyncio.to_thread(self._service.announce, terms, self._clock(), analyser)
        return Response(status_code=201)

    async def _state(self, request: Request) -> Response:
        return _told(await asyncio.to_thread(self._service.state, await self._own(request)))

    async def _permute(self, request: Request) -> Response:
        return _told(await asyncio.to_thread(self._service.permute, await self._own(request)))

    async def _hand_on(self, request: Request) -> Response:
        batch = await self._own(request)
        number = request.query_params.get("piece", "")
        if not re.fullmatch(r"[0-9]{1,9}", number):
            raise CodecError("say which piece: ?piece=0")
        piece = await asyncio.to_thread(self._service.piece, batch, int(number))
        return Response(piece, media_type=BYTES)

    async def _forget(self, request: Request) -> Response:
        await asyncio.to_thread(self._service.forget, await self._own(request))
        return Response(status_code=204)

    async def _own(self, request: Request) -> bytes:
        """The batch of a request by the analyser who announced it."""
        analyser = self._authorize(request)
        await asyncio.to_thread(self._service.check_own, batch := _batch(request), analyser)
        return batch

    def _authorize(self, request: Request) -> str:
        """The name of the analyser whose token is shown."""
        analyser = named(self._tokens(), _token(request))
        if analyser is None:
            self._wrong(request, "this is for the analyser alone: show its token (Authorization: Bearer …)")
        request.state.analyser = analyser
        return analyser

    def _wrong(self, request: Request, words: str) -> NoReturn:
        self._patient(request)
        self._guesses.taken(_place(request))
        raise Unauthorized(words)

    def _patient(self, request: Request) -> None:
        if self._guesses.wait(_place(request)) is not None:
            raise TooMany("too many wrong tokens or messages came from this address: try again later")

    def _safe(self, endpoint: Endpoint) -> Endpoint:
        """An endpoint whose errors are JSON."""

        @wraps(endpoint)
        async def answered(request: Request) -> Response:
            try:
                return await endpoint(request)
            except ClientDisconnect:
                return Response(status_code=400)
            except HazemapError as error:
                if isinstance(error, Refused):
                    self._guesses.taken(_place(request))
                return _failed(error)
            except Exception:
                log.exception("a request that the shuffler cannot deal with: %s", ascii(request.url.path)[:200])
                return _complaint(500, "the shuffler could not deal with this request; its log says why", {})

        return answered


def _failed(error: HazemapError) -> Response:
    status = next((code for kind, code in _CODES if isinstance(error, kind)), 500)
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    if isinstance(error, StoreError):
        log.warning("a request was not answered: %s", error)
        return _complaint(status, "try again later", {"Retry-After": "30"})
    if isinstance(error, Unreachable | TooMany):
        headers["Retry-After"] = str(int(getattr(error, "wait", None) or 10))
    return _complaint(status, str(error), headers)


def _complaint(status: int, words: str, headers: dict[str, str]) -> Response:
    return Response(json.dumps({"error": words}), status, headers, "application/json")


def _told(found: BatchState) -> Response:
    digest = None if found.digest is None else found.digest.hex()
    return JSONResponse({"state": found.state, "people": found.people, "pieces": found.pieces, "sha256": digest})


def _batch(request: Request) -> bytes:
    name = request.path_params["batch"]
    if not re.fullmatch(r"[0-9a-f]{64}", name):
        raise UnknownBatch("a batch is named by the 64 hexadecimal digits of its terms' digest")
    return bytes.fromhex(name)


def _place(request: Request) -> str:
    return place_of(request.client.host if request.client else None)


def _token(request: Request) -> str:
    """The token that a request shows, or nothing."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


async def _body(request: Request, most: int) -> bytes:
    """The body of a request, which has `most` bytes at most."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise TooLong(f"at most {most:,} bytes are sent here")
        parts.append(part)
    return b"".join(parts)
