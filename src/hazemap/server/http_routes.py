"""The server as an ASGI application, and its routes: enrolment, the operator's orders, and how things stand."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from hazemap import __version__
from hazemap.codec import Limits, parsed
from hazemap.errors import BudgetError, CodecError, HazemapError, InputError, NotOpened, Refused, StoreError
from hazemap.server.access_tokens import same
from hazemap.server.campaign_spec import campaign_from
from hazemap.server.campaign_status import plain
from hazemap.server.coordinator import Coordinator, Taken, Unknown
from hazemap.server.device_endpoints import DeviceEndpoints, Receive, Scope, Send, TooLong, bearer, body

logger = logging.getLogger("hazemap.server")

ORDER = 64 << 20
"""Bytes of a campaign: it may hold a prior map."""
ENROLMENT = 16 << 10
FEW_FIELDS = Limits(length=ENROLMENT, items=64, work=0, depth=1)
"""An object of plain fields."""

_CODES: tuple[tuple[type[HazemapError], int], ...] = (
    (TooLong, 413),
    (Unknown, 404),
    (Taken, 409),
    (BudgetError, 402),
    (Refused, 403),
    (CodecError, 422),
    (InputError, 422),
    (NotOpened, 409),
    (StoreError, 503),
)

Endpoint = Callable[[Request], Awaitable[Response]]


def routes(coordinator: Coordinator, operator: str) -> list[Route]:
    """Every route but those of devices at work."""

    def guarded(endpoint: Endpoint) -> Endpoint:
        """For the operator alone."""

        @wraps(endpoint)
        async def checked(request: Request) -> Response:
            if not same(bearer(request.scope), operator):
                return _error(401, "only the operator may: show the token in the server's file operator.token")
            return await endpoint(request)

        return answered(checked)

    async def enrol(request: Request) -> Response:
        identity, token, signature = _enrolment(await _body(request, ENROLMENT))
        device, ticket = await coordinator.enrolled.enrol(identity, token, signature)
        return JSONResponse({"device": device.name, "ticket": ticket}, 201)

    async def begin(request: Request) -> Response:
        campaign = await asyncio.to_thread(campaign_from, await _body(request, ORDER))
        await coordinator.begin(campaign)
        return JSONResponse({"name": campaign.name}, 201)

    async def every(_: Request) -> Response:
        campaigns = await asyncio.to_thread(coordinator.all)
        return JSONResponse({"campaigns": campaigns, "devices": coordinator.devices()})

    async def one(request: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(coordinator.status, request.path_params["name"]))

    async def map_(request: Request) -> Response:
        cellmap = await asyncio.to_thread(coordinator.map, request.path_params["name"])
        if request.query_params.get("format", "json") == "png":
            return Response(await asyncio.to_thread(_picture, cellmap), media_type="image/png")
        return JSONResponse(await asyncio.to_thread(plain, cellmap))

    async def release(request: Request) -> Response:
        file = await asyncio.to_thread(coordinator.release, request.path_params["name"])
        return FileResponse(file, filename=file.name, media_type="application/vnd.apache.parquet")

    async def stop(request: Request) -> Response:
        await coordinator.end(request.path_params["name"])
        return Response(status_code=204)

    async def resume(request: Request) -> Response:
        await coordinator.resume(request.path_params["name"])
        return Response(status_code=204)

    async def release_partial(request: Request) -> Response:
        await coordinator.release_in_part(request.path_params["name"])
        return Response(status_code=204)

    async def counts(_: Request) -> Response:
        facts = {"version": __version__, "devices": len(coordinator.enrolled), "campaigns": coordinator.asking}
        return JSONResponse(facts)

    return [
        Route("/v1/enrol", answered(enrol), methods=["POST"]),
        Route("/v1/campaigns", guarded(begin), methods=["POST"]),
        Route("/v1/campaigns", guarded(every), methods=["GET"]),
        Route("/v1/campaigns/{name}", guarded(one), methods=["GET"]),
        Route("/v1/campaigns/{name}/map", guarded(map_), methods=["GET"]),
        Route("/v1/campaigns/{name}/release", guarded(release), methods=["GET"]),
        Route("/v1/campaigns/{name}/stop", guarded(stop), methods=["POST"]),
        Route("/v1/campaigns/{name}/resume", guarded(resume), methods=["POST"]),
        Route("/v1/campaigns/{name}/partial", guarded(release_partial), methods=["POST"]),
        Route("/v1/status", answered(counts), methods=["GET"]),
    ]


def answered(endpoint: Endpoint) -> Endpoint:
    """Every error of hazemap's as JSON, with a code that says whose fault it is."""

    @wraps(endpoint)
    async def safe(request: Request) -> Response:
        try:
            return await endpoint(request)
        except ClientDisconnect:
            return Response(status_code=400)
        except HazemapError as error:
            code = next((code for kind, code in _CODES if isinstance(error, kind)), 500)
            return _error(code, str(error))
        except Exception:
            logger.exception("a request that the server cannot deal with: %s", request.url.path)
            return _error(500, "the server could not deal with this request; its log says why")

    return safe


def _error(code: int, message: str) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if code == 401 else None
    return JSONResponse({"error": message}, code, headers)


async def _body(request: Request, limit: int) -> bytes:
    content = await body(request.receive, limit)
    if content is None:
        raise ClientDisconnect
    return content


def _enrolment(text: bytes) -> tuple[bytes, str, bytes]:
    wanted = 'an enrolment is JSON: {"identity": 64 hexadecimal digits, "token": text, "signature": 128 of them}'
    try:
        data: Any = parsed(text, FEW_FIELDS)
        identity, token, signature = (data[name] for name in ("identity", "token", "signature"))
        if not all(isinstance(each, str) for each in (identity, token, signature)):
            raise CodecError(wanted)
        token.encode()
        return bytes.fromhex(identity), token, bytes.fromhex(signature)
    except (CodecError, ValueError, KeyError, TypeError) as error:
        raise CodecError(wanted) from error


def _picture(cellmap: Any) -> bytes:
    from hazemap.draw import MapPanel, draw_map, encode

    return encode(draw_map(cellmap, panels=(MapPanel.DENSITY,)))


class Application:
    """HTTP for a coordinator; it starts and stops with the application."""

    def __init__(self, coordinator: Coordinator, operator: str) -> None:
        @asynccontextmanager
        async def alive(_: Starlette) -> AsyncIterator[None]:
            await coordinator.start()
            yield
            await coordinator.stop()

        self._working = DeviceEndpoints(coordinator)
        self._rest = Starlette(routes=routes(coordinator, operator), lifespan=alive)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the application's own beginning and end."""
        if scope["type"] == "http" and scope["path"].startswith("/v1/tasks"):
            await self._working(scope, receive, send)
        else:
            await self._rest(scope, receive, send)
