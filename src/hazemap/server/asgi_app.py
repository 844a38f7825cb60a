"""The server as an ASGI application: devices on the fast way, everything else by routes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette

from hazemap.server.coordinator import Coordinator
from hazemap.server.device_endpoints import DeviceEndpoints
from hazemap.server.http_parsing import Receive, Scope, Send
from hazemap.server.http_routes import routes


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
