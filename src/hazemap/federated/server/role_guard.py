"""The guard of a coordinator: it knows whose token is shown, and whether they may."""

import logging
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from hazemap.errors import Refused
from hazemap.federated.server.coordinator import Coordinator, Taken, Unknown
from hazemap.federated.server.device_enrolment import CodeInUse, OtherServer, Stale
from hazemap.federated.server.roles import OperatorRole, Principal, RoleTokens
from hazemap.federated.server.studies import StudyTaken, UnknownStudy
from hazemap.federated.service.http_limits import HttpLimits
from hazemap.federated.service.rate_limit import RateLimit
from hazemap.federated.service.route_guard import (
    Codes,
    Endpoint,
    Guard,
    TooOften,
    Unauthorized,
    bearer,
    place_from,
    recognise,
)

GuardedEndpoint = Callable[[Request, Principal], Awaitable[Response]]


READ: Final = 32_768
"""Bytes of an answer to everybody, or of a device's work, that count as one more read."""


class OtherRole(Refused):
    """A token that is good, but for other routes."""


_CODES: Final[Codes] = (
    (Unknown, 404),
    (Taken, 409),
    (UnknownStudy, 404),
    (StudyTaken, 409),
    (Stale, 409),
    (CodeInUse, 409),
    (OtherServer, 421),
)


class RoleGuard(Guard):
    """Stands before the routes of a coordinator; `first` is the token of its first operator."""

    def __init__(self, coordinator: Coordinator, first: str, limits: HttpLimits) -> None:
        super().__init__(logging.getLogger("hazemap.federated.server"), limits, coordinator.metrics, _CODES)
        self.tokens, self._audit = RoleTokens(coordinator.store, first), coordinator.audit
        self._enrolments, self._reads = RateLimit(limits.enrolments), RateLimit(limits.reads)

    def only(self, endpoint: GuardedEndpoint, *roles: OperatorRole) -> Endpoint:
        """A route for those who have a token of one of these roles."""

        @wraps(endpoint)
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

        return checked

    def acts(self, what: str, act: Callable[[str], Awaitable[None]], *roles: OperatorRole) -> Endpoint:
        """A route for an act on what the path names, which is on the audit log under `what` before it is done."""

        async def acted(request: Request, who: Principal) -> Response:
            name = request.path_params["name"]
            async with self._audit.recorded(who, what, name):
                await act(name)
            return Response(status_code=204)

        return self.only(acted, *roles)

    def published(self, endpoint: Endpoint) -> Endpoint:
        """A route for everybody, which an address asks so often a minute; a long answer counts as several."""

        @wraps(endpoint)
        async def limited(request: Request) -> Response:
            place = place_from(request.scope)
            wait = self._reads.taken(place)
            if wait is not None:
                self.metrics.rejected["reads"] += 1
                raise TooOften("too much of what is published was read from this address: go on later", wait)
            response = await endpoint(request)
            self._reads.owe(place, len(response.body) // READ)
            return response

        return limited

    def enrols(self, request: Request) -> None:
        """Count an enrolment; `TooOften` where an address has had its share."""
        wait = self._enrolments.taken(place_from(request.scope))
        if wait is not None:
            self.metrics.rejected["enrolments"] += 1
            raise TooOften("too many devices enrol from this address: try again later", wait)
