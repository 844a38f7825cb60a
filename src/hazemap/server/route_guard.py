"""Before each route: who asks, whether they may, and whether they ask too often; and errors as JSON."""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from math import ceil

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from hazemap.errors import BudgetError, CodecError, HazemapError, InputError, NotOpened, Refused, StoreError
from hazemap.server.coordinator import Coordinator, Taken, Unknown
from hazemap.server.device_endpoints import Scope, Send, TooLong, bearer, body, complain
from hazemap.server.enrolment_challenges import OtherServer, Stale
from hazemap.server.enrolment_codes import InUse
from hazemap.server.roles import Principal, Role, RoleTokens
from hazemap.server.studies import StudyTaken, UnknownStudy
from hazemap.service.http_limits import HttpLimits
from hazemap.service.rate_limit import RateLimit, place_of

log = logging.getLogger("hazemap.server")

Endpoint = Callable[[Request], Awaitable[Response]]
GuardedEndpoint = Callable[[Request, Principal], Awaitable[Response]]


class TooOften(HazemapError):
    """More from one address than it may ask for; `wait` is in seconds."""

    def __init__(self, message: str, wait: float) -> None:
        super().__init__(message)
        self.wait = wait


class OlderDevice(CodecError):
    """A device that enrols as version 1 did: without a challenge."""


_CODES: tuple[tuple[type[HazemapError], int], ...] = (
    (OlderDevice, 426),
    (TooOften, 429),
    (TooLong, 413),
    (Unknown, 404),
    (Taken, 409),
    (UnknownStudy, 404),
    (StudyTaken, 409),
    (Stale, 409),
    (InUse, 409),
    (OtherServer, 421),
    (BudgetError, 402),
    (Refused, 403),
    (CodecError, 422),
    (InputError, 422),
    (NotOpened, 409),
    (StoreError, 503),
)


class Guard:
    """Stands before the routes of a server."""

    def __init__(self, coordinator: Coordinator, first: str, limits: HttpLimits) -> None:
        self.tokens = RoleTokens(coordinator.store, first)
        self._audit, self._rejected = coordinator.audit, coordinator.metrics.rejected
        self._enrolments, self._guesses = RateLimit(limits.enrolments), RateLimit(limits.guesses)
        self._most = limits.per_address
        self._here: Counter[str] = Counter()

    def anybody(self, endpoint: Endpoint) -> Endpoint:
        """A route that needs no token; every error of hazemap's as JSON, with a code that says whose fault it is."""

        @wraps(endpoint)
        async def safe(request: Request) -> Response:
            try:
                return await endpoint(request)
            except ClientDisconnect:
                return Response(status_code=400)
            except HazemapError as error:
                if isinstance(error, Refused):
                    self._wrong(request)
                code = next((code for kind, code in _CODES if isinstance(error, kind)), 500)
                wait = error.wait if isinstance(error, TooOften) else 30 if isinstance(error, StoreError) else None
                return failed(code, str(error), wait)
            except Exception:
                log.exception("a request that the server cannot deal with: %s", ascii(request.url.path)[:200])
                return failed(500, "the server could not deal with this request; its log says why")

        return safe

    def only(self, endpoint: GuardedEndpoint, *roles: Role) -> Endpoint:
        """A route for those who have a token of one of these roles."""

        async def checked(request: Request) -> Response:
            who = self.tokens.holder(bearer(request.scope))
            if who is None:  # whoever has a token is not kept waiting by those who guess from the same address
                self._patient(request)
                self._wrong(request)
                return failed(
                    401, "only the operator may, and analysts and auditors with a token of their own: show one"
                )
            if who.role not in roles:
                self._wrong(request)
                await self._audit.record(who, f"{request.method} {request.url.path}"[:100], "", "refused: role")
                may = " or ".join(role.value for role in roles)
                return failed(403, f"your token is an {who.role.value}'s; this is for {may} alone")
            return await endpoint(request, who)

        return self.anybody(wraps(endpoint)(checked))

    def enrols(self, request: Request) -> None:
        """Count an enrolment; `TooOften` where an address has had its share, or has guessed wrong too often."""
        self._patient(request)
        wait = self._enrolments.taken(place_from(request.scope))
        if wait is not None:
            self._rejected["enrolments"] += 1
            raise TooOften("too many devices enrol from this address: try again later", wait)

    def _patient(self, request: Request) -> None:
        wait = self._guesses.wait(place_from(request.scope))
        if wait is not None:
            self._rejected["guesses"] += 1
            raise TooOften("too many wrong tokens or codes came from this address: try again later", wait)

    def _wrong(self, request: Request) -> None:
        self._guesses.taken(place_from(request.scope))

    @contextmanager
    def under_way(self, place: str) -> Iterator[bool]:
        """Whether another request of this address may be answered now."""
        self._here[place] += 1
        try:
            yield self._here[place] <= self._most
        finally:
            self._here[place] -= 1
            if not self._here[place]:
                del self._here[place]

    async def too_many(self, send: Send) -> None:
        """The answer to one that may not."""
        self._rejected["requests_per_address"] += 1
        await complain(send, 429, "too many requests of this address are under way", [(b"retry-after", b"10")])


def place_from(scope: Scope) -> str:
    """The address that a request comes from, as it counts for limits; behind a trusted proxy, the one it names."""
    client = scope.get("client")
    return place_of(client[0] if client else None)


def failed(code: int, message: str, wait: float | None = None) -> Response:
    """An error as JSON."""
    headers = {"WWW-Authenticate": "Bearer"} if code == 401 else {}
    if wait is not None:
        headers["Retry-After"] = str(ceil(wait))
    return JSONResponse({"error": message}, code, headers)


async def body_of(request: Request, limit: int) -> bytes:
    """The body of a request, within a limit."""
    content = await body(request.receive, limit)
    if content is None:
        raise ClientDisconnect
    return content
