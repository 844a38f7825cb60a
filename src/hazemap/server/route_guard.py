"""Before each route: who asks, whether they may, and whether they ask too often; and errors as JSON."""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from hazemap.errors import CodecError, Refused
from hazemap.server.coordinator import Coordinator, Taken, Unknown
from hazemap.server.device_endpoints import Send, complain
from hazemap.server.enrolment_challenges import OtherServer, Stale
from hazemap.server.enrolment_codes import InUse
from hazemap.server.roles import Principal, Role, RoleTokens
from hazemap.server.studies import StudyTaken, UnknownStudy
from hazemap.service.http_limits import HttpLimits
from hazemap.service.rate_limit import RateLimit
from hazemap.service.route_guard import (
    Codes,
    Endpoint,
    Guesses,
    TooOften,
    Unauthorized,
    bearer,
    in_words,
    place_from,
    recognise,
    safe,
)

log = logging.getLogger("hazemap.server")

GuardedEndpoint = Callable[[Request, Principal], Awaitable[Response]]


class OlderDevice(CodecError):
    """A device that enrols as version 1 did: without a challenge."""


class OtherRole(Refused):
    """A token that is good, but for other routes."""


_CODES: Final[Codes] = (
    (OlderDevice, 426),
    (Unknown, 404),
    (Taken, 409),
    (UnknownStudy, 404),
    (StudyTaken, 409),
    (Stale, 409),
    (InUse, 409),
    (OtherServer, 421),
)


class Guard:
    """Stands before the routes of a server."""

    def __init__(self, coordinator: Coordinator, first: str, limits: HttpLimits) -> None:
        self.tokens = RoleTokens(coordinator.store, first)
        self._audit, self._rejected = coordinator.audit, coordinator.metrics.rejected
        self._enrolments, self._guesses = RateLimit(limits.enrolments), Guesses(limits.guesses)
        self._most = limits.per_address
        self._here: Counter[str] = Counter()

    def anybody(self, endpoint: Endpoint) -> Endpoint:
        """A route that needs no token; every error of hazemap's as JSON, with a code that says whose fault it is."""
        return safe(endpoint, self._failed)

    def only(self, endpoint: GuardedEndpoint, *roles: Role) -> Endpoint:
        """A route for those who have a token of one of these roles."""

        async def checked(request: Request) -> Response:
            who = self.tokens.holder(bearer(request.scope))
            if who is None:
                raise Unauthorized(
                    "only the operator may, and analysts and auditors with a token of their own: show one"
                )
            if who.role not in roles:
                await self._audit.record(who, f"{request.method} {request.url.path}"[:100], "", "refused: role")
                may = " or ".join(role.value for role in roles)
                raise OtherRole(f"your token is an {who.role.value}'s; this is for {may} alone")
            recognise(request.scope)
            return await endpoint(request, who)

        return self.anybody(wraps(endpoint)(checked))

    def enrols(self, request: Request) -> None:
        """Count an enrolment; `TooOften` where an address has had its share."""
        wait = self._enrolments.taken(place_from(request.scope))
        if wait is not None:
            self._rejected["enrolments"] += 1
            raise TooOften("too many devices enrol from this address: try again later", wait)

    def _failed(self, request: Request, error: Exception) -> Response:
        """The answer to an error: that it is too often, where an address has been wrong before."""
        judged = self._guesses.judge(request.scope, error)
        self._rejected["guesses"] += judged is not error
        return in_words(request, judged, log, _CODES)

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
