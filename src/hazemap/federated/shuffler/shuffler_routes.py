"""A shuffler as an ASGI application: people send to `/v1/batches/…/messages`, an analyser does all the rest.

An analyser fetches what is handed on, with a token, and sees no batch of another; nothing is pushed to it. So a
shuffler opens no connection, knows no address of an analyser and stores no token of another party, and an analyser that
was cut off while fetching fetches again. No label of a metric names a person, an address or a batch: analysers are
named as their operator has named them.
"""

import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hazemap.errors import CodecError, Unreachable
from hazemap.federated.protocols.shuffle.shuffle_parameters import BatchTerms
from hazemap.federated.protocols.shuffle.submission import submission_bytes
from hazemap.federated.service.access_tokens import named
from hazemap.federated.service.http_limits import HttpLimits
from hazemap.federated.service.prometheus_text import ServerMetrics, labels, series
from hazemap.federated.service.route_guard import Application, Codes, Guard, Unauthorized, bearer, body_of, recognise
from hazemap.federated.service.store import Contradiction, Store
from hazemap.federated.shuffler.analyser_client import Tokens
from hazemap.federated.shuffler.shuffler_service import BatchOver, BatchState, ShufflerService, UnknownBatch

_STATES: Final = ("open", "permuted", "forgotten")


@dataclass(eq=False)
class ShufflerMetrics(ServerMetrics):
    """What a shuffler counts of itself since it was started; `expired` are batches that nobody collected in time.

    >>> metrics = ShufflerMetrics()
    >>> metrics.requests["messages", "people", 204] += 1
    """

    expired: int = 0

    def text(self, store: Store) -> str:
        """Everything in the text format 0.0.4. O(batches)."""
        over = series("batches_expired_total", "counter", "Batches that nobody collected.", [("", self.expired)])
        return self.written([*over, *_stored(store)], store.commit_seconds)


def _stored(store: Store) -> list[str]:
    """What the store has of each analyser's batches."""
    batches, people, promised = Counter[tuple[str, str]](), Counter[str](), Counter[str]()
    for analyser, state, came, terms in store.read("SELECT analyser, state, people, terms FROM batches"):
        batches[analyser, state] += 1
        if state == "open":
            people[analyser] += came
        if state != "forgotten":
            promised[analyser] += BatchTerms.from_bytes(bytes(terms)).most_bytes
    known = sorted({analyser for analyser, _ in batches})
    rows = [(labels(analyser=each, state=state), batches[each, state]) for each in known for state in _STATES]
    lines = series("batches", "gauge", "Batches, by how they stand.", rows)
    each_one = [(labels(analyser=each), people[each]) for each in known]
    lines += series("people_waiting", "gauge", "People whose messages are in open batches.", each_one)
    held = [(labels(analyser=each), promised[each]) for each in known]
    return lines + series("promised_bytes", "gauge", "Bytes that batches may need, at most.", held)


log = logging.getLogger("hazemap.federated.shuffler")

TERMS: Final = 1_024
"""Bytes of a batch's terms, more than they ever have."""
TRIES: Final = 8
"""How often a submission is looked at anew because another one was faster."""
BYTES = "application/octet-stream"
_CODES: Final[Codes] = ((UnknownBatch, 404), (BatchOver, 410))


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
    ) -> None:
        self._service, self._tokens, self._clock = service, tokens, clock
        self._metrics, self._operator = metrics or ShufflerMetrics(), operator
        self._guard = Guard(log, limits, self._metrics, _CODES)

    @property
    def store(self) -> Store:
        """Where everything is."""
        return self._service.store

    def application(self, alive: Callable[[], AsyncIterator[None]] | None = None) -> Application:
        """The application; `alive` runs as long as it does."""
        batch = "/v1/batches/{batch}"
        rows = [
            self._guard.numbers(self._operator, lambda: self._metrics.text(self.store)),
            ("/v1/shuffler", self._about, "GET"),
            (batch, self._announce, "PUT"),
            (batch, self._state, "GET"),
            (batch, self._forget, "DELETE"),
            (f"{batch}/messages", self._take, "POST"),
            (f"{batch}/messages", self._hand_on, "GET"),
            (f"{batch}/permutation", self._permute, "POST"),
        ]
        lifespan = None if alive is None else asynccontextmanager(lambda _: alive())
        return self._guard.before(Starlette(routes=self._guard.routes(rows), lifespan=lifespan))

    async def _about(self, _: Request) -> Response:
        if self.store.trouble is not None:
            raise self.store.trouble
        return JSONResponse({"version": 1, "key": self._service.key.public.hex(), "least": self._service.limits.least})

    async def _take(self, request: Request) -> Response:
        batch = _batch(request)
        terms = (await asyncio.to_thread(self._service.state, batch)).terms
        content = await body_of(request, submission_bytes(terms))
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
        terms = BatchTerms.from_bytes(await body_of(request, TERMS))
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
        analyser = named(self._tokens(), bearer(request.scope))
        if analyser is None:
            raise Unauthorized("this is for the analyser alone: show its token (Authorization: Bearer …)")
        request.state.who = analyser
        recognise(request.scope)
        return analyser


def _told(found: BatchState) -> Response:
    digest = None if found.digest is None else found.digest.hex()
    return JSONResponse({"state": found.state, "people": found.people, "pieces": found.pieces, "sha256": digest})


def _batch(request: Request) -> bytes:
    name = request.path_params["batch"]
    if not re.fullmatch(r"[0-9a-f]{64}", name):
        raise UnknownBatch("a batch is named by the 64 hexadecimal digits of its terms' digest")
    return bytes.fromhex(name)
