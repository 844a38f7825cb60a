"""The route by which coordinators give an aggregator tasks: `POST hazemap/tasks`, a task file as its body."""

import asyncio
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hazemap.errors import CodecError, InputError
from hazemap.federated.aggregator.task_file import TaskFile
from hazemap.federated.aggregator.task_shelf import TaskShelf
from hazemap.federated.protocols.dap.resource_paths import PROVISIONING
from hazemap.federated.service.access_tokens import kept
from hazemap.federated.service.http_limits import BODY
from hazemap.federated.service.route_guard import Row, authorize, body_of


def provisioning_route(token: str, shelf: TaskShelf, begin: Callable[[TaskFile], None]) -> Row:
    """The route. A task that is there already is taken again, for nothing: a coordinator may repeat itself."""
    accepted = kept(token)

    async def take(request: Request) -> Response:
        authorize(request.scope, accepted)
        body = await body_of(request, BODY)
        try:
            new = await asyncio.to_thread(shelf.take, body, begin)
        except (InputError, CodecError) as error:
            return JSONResponse({"error": str(error)}, 422)
        return Response(status_code=201 if new else 200)

    return f"/{PROVISIONING}", take, "POST"
