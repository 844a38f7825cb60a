"""The server as an ASGI application: enrolment, campaigns, and how things stand."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from hazemap import __version__
from hazemap.codec import Limits, parsed
from hazemap.errors import CodecError
from hazemap.federated.protocols.secure_aggregation.enrolment_proof import VERSION
from hazemap.federated.server.administration_routes import administration_routes
from hazemap.federated.server.campaign_spec import campaign_from
from hazemap.federated.server.campaign_status import plain
from hazemap.federated.server.coordinator import Coordinator
from hazemap.federated.server.device_endpoints import DeviceEndpoints
from hazemap.federated.server.role_guard import RoleGuard
from hazemap.federated.server.roles import OperatorRole, Principal
from hazemap.federated.server.study_routes import study_routes
from hazemap.federated.service.http_limits import HttpLimits
from hazemap.federated.service.route_guard import Receive, Row, Scope, Send, TooOften, body_of
from hazemap.federated.service.served_address import PageAccess

FOR_DEVICES = re.compile("/v1/(?:challenge|enrol|recipes|tasks(?:/.*)?)")
"""What a device in a browser's tab asks."""
ORDER = 64 << 20
"""Bytes of a campaign: it may hold a prior map."""
ENROLMENT = 16 << 10
FEW_FIELDS = Limits(length=ENROLMENT, items=64, work=0, depth=1)
"""An object of plain fields."""
TEXT, TOKEN = 300, 8_192
"""Letters of an origin, and of a token: an attestation may be a few kilobytes."""


def open_routes(coordinator: Coordinator, guard: RoleGuard) -> list[Row]:
    """The routes that need no token: those of devices that enrol, and the status."""

    async def challenge(request: Request) -> Response:
        fields = _fields(await body_of(request, ENROLMENT), _CHALLENGE)
        at, identity = fields["origin"], bytes.fromhex(fields["identity"])
        given = coordinator.challenges.given(at, identity)
        known = {"server": given.server.hex(), "challenge": given.nonce.hex(), "signature": given.signature.hex()}
        return JSONResponse({"version": VERSION, **known})

    async def enrol(request: Request) -> Response:
        outcome = "refused"
        try:
            guard.enrols(request)
            fields = _fields(await body_of(request, ENROLMENT), _ENROLMENT)
            device, ticket, outcome = await coordinator.enrol(fields)
        except TooOften:
            outcome = "too_often"
            raise
        finally:
            coordinator.metrics.enrolments[outcome] += 1
        return JSONResponse({"device": device.name, "ticket": ticket}, 201)

    async def counts(_: Request) -> Response:
        if coordinator.store.trouble is not None:
            raise coordinator.store.trouble
        facts = {"version": __version__, "devices": len(coordinator.enrolled), "campaigns": coordinator.asking}
        return JSONResponse(facts)

    return [
        ("/v1/challenge", challenge, "POST"),
        ("/v1/enrol", enrol, "POST"),
        ("/v1/status", counts, "GET"),
    ]


def campaign_routes(coordinator: Coordinator, guard: RoleGuard) -> list[Row]:
    """The routes of campaigns, for those who have a token."""
    operator, analyst, auditor = OperatorRole.OPERATOR, OperatorRole.ANALYST, OperatorRole.AUDITOR
    audit = coordinator.audit
    seen: set[tuple[str, str]] = set()

    async def begin(request: Request, who: Principal) -> Response:
        campaign = await asyncio.to_thread(campaign_from, await body_of(request, ORDER))
        async with audit.recorded(who, "campaign begin", campaign.name):
            await coordinator.begin(campaign, who)
        return JSONResponse({"name": campaign.name}, 201)

    async def every(_: Request, __: Principal) -> Response:
        campaigns = await asyncio.to_thread(coordinator.all)
        return JSONResponse({"campaigns": campaigns, "devices": coordinator.devices()})

    async def one(request: Request, _: Principal) -> Response:
        return JSONResponse(await asyncio.to_thread(coordinator.status, request.path_params["name"]))

    async def map_(request: Request, who: Principal) -> Response:
        name = request.path_params["name"]
        cellmap = await asyncio.to_thread(coordinator.map, name)
        if (who.name, name) not in seen:  # who watches asks every second: once is enough
            seen.add((who.name, name))
            await audit.record(who, "map read", name, "done")
        if request.query_params.get("format", "json") == "png":
            return Response(await asyncio.to_thread(_picture, cellmap), media_type="image/png")
        return JSONResponse(await asyncio.to_thread(plain, cellmap))

    async def release(request: Request, who: Principal) -> Response:
        name = request.path_params["name"]
        file = await asyncio.to_thread(coordinator.release, name)
        await audit.record(who, "release read", name, "done")
        return FileResponse(file, filename=file.name, media_type="application/vnd.apache.parquet")

    return [
        ("/v1/campaigns", guard.only(begin, operator, analyst), "POST"),
        ("/v1/campaigns", guard.only(every, operator, analyst, auditor), "GET"),
        ("/v1/campaigns/{name}", guard.only(one, operator, analyst, auditor), "GET"),
        ("/v1/campaigns/{name}/map", guard.only(map_, operator, analyst), "GET"),
        ("/v1/campaigns/{name}/release", guard.only(release, operator, analyst), "GET"),
        ("/v1/campaigns/{name}/stop", guard.acts("campaign stop", coordinator.end, operator), "POST"),
        ("/v1/campaigns/{name}/resume", guard.acts("campaign resume", coordinator.resume, operator), "POST"),
        (
            "/v1/campaigns/{name}/partial",
            guard.acts("campaign release in part", coordinator.release_in_part, operator),
            "POST",
        ),
    ]


_CHALLENGE = {"identity": 64, "origin": TEXT}
_ENROLMENT = {"identity": 64, "origin": TEXT, "token": TOKEN, "challenge": 112, "signature": 128}
_HEX = ("identity", "challenge", "signature")


def _fields(text: bytes, wanted: dict[str, int]) -> dict[str, str]:
    """An object of these texts, each of at most so many letters; those of bytes are so many hexadecimal digits."""
    words = "this message is JSON of version 2: " + ", ".join(
        f'"{name}": {size} hexadecimal digits' if name in _HEX else f'"{name}": text' for name, size in wanted.items()
    )
    try:
        data: Any = parsed(text, FEW_FIELDS)
        if data["version"] != VERSION:
            raise CodecError(words)
        fields = {name: data[name] for name in wanted}
        for name, value in fields.items():
            if not isinstance(value, str) or len(value) > wanted[name]:
                raise CodecError(words)
            if name in _HEX and len(bytes.fromhex(value)) * 2 != wanted[name]:
                raise CodecError(words)
            value.encode()
        return fields
    except (CodecError, ValueError, KeyError, TypeError) as error:
        raise CodecError(words) from error


def _picture(cellmap: Any) -> bytes:
    from hazemap.draw import MapPanel, draw_map, encode

    return encode(draw_map(cellmap, panels=(MapPanel.DENSITY,)))


class Application:
    """HTTP for a coordinator; it starts and stops with the application. `operator` is the first operator's token."""

    def __init__(
        self,
        coordinator: Coordinator,
        operator: str,
        limits: HttpLimits | None = None,
        pages: frozenset[str] = frozenset(),
    ) -> None:
        @asynccontextmanager
        async def alive(_: Starlette) -> AsyncIterator[None]:
            await coordinator.start()
            yield
            await coordinator.stop()

        limits = limits or HttpLimits.here()
        guard = RoleGuard(coordinator, operator, limits)
        makers = (open_routes, campaign_routes, study_routes, administration_routes)
        self.routes = guard.routes(row for make in makers for row in make(coordinator, guard))
        self._working, self._rest = DeviceEndpoints(coordinator, limits), Starlette(routes=self.routes, lifespan=alive)
        self._guarded = PageAccess(guard.before(self._either), FOR_DEVICES, pages, b"authorization, content-type")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the application's own beginning and end."""
        await self._guarded(scope, receive, send)

    async def _either(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The endpoints of devices, or all others."""
        devices = scope["type"] == "http" and scope["path"].startswith("/v1/tasks")
        await (self._working if devices else self._rest)(scope, receive, send)
