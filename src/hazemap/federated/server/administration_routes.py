"""Routes for those who run the server: devices, codes, tokens, the audit log and metrics."""

import asyncio
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hazemap.codec import Limits, parsed
from hazemap.errors import CodecError, InputError
from hazemap.federated.server.coordinator import Coordinator
from hazemap.federated.server.role_guard import RoleGuard
from hazemap.federated.server.roles import OperatorRole, Principal, TokenRequest
from hazemap.federated.service.prometheus_text import CONTENT_TYPE
from hazemap.federated.service.route_guard import Row, body_of

SHORT = 4_096
FEW_FIELDS = Limits(length=SHORT, items=32, work=0, depth=1)


def administration_routes(coordinator: Coordinator, guard: RoleGuard) -> list[Row]:
    """Every route of administration; what changes something is on the audit log before it is done."""
    audit, enrolled = coordinator.audit, coordinator.enrolled

    async def devices(_: Request, who: Principal) -> Response:
        await audit.record(who, "devices read", "", "done")
        return JSONResponse({"devices": await enrolled.all()})

    async def make_codes(request: Request, who: Principal) -> Response:
        data = _object(await body_of(request, SHORT))
        number, days = data.get("number"), data.get("days")
        if set(data) != {"number", "days"} or type(number) is not int or type(days) is not int:
            raise InputError('codes are asked for with {"number": how many, "days": how long they last}')
        async with audit.recorded(who, "codes make", f"{number} codes of {days} days"):
            codes = await enrolled.codes.make(number, days)
        return JSONResponse({"codes": codes}, 201)

    async def tokens(_: Request, __: Principal) -> Response:
        return JSONResponse({"tokens": await guard.tokens.all()})

    async def issue(request: Request, who: Principal) -> Response:
        asked = TokenRequest.read(_object(await body_of(request, SHORT)))
        async with audit.recorded(who, "token issue", f"{asked.name} ({asked.role.value}, {asked.days} days)"):
            secret = await guard.tokens.issue(asked)
        return JSONResponse({"token": secret}, 201)

    async def log(request: Request, _: Principal) -> Response:
        return await log_lines(request, audit.lines)

    async def metrics(_: Request, __: Principal) -> Response:
        text = coordinator.metrics.text(coordinator.gauges(), coordinator.store.commit_seconds)
        return Response(text, headers={"content-type": CONTENT_TYPE})

    operator, auditor = OperatorRole.OPERATOR, OperatorRole.AUDITOR
    return [
        ("/v1/devices", guard.only(devices, operator), "GET"),
        ("/v1/devices/{name}/revoke", guard.acts("device revoke", enrolled.revoke, operator), "POST"),
        ("/v1/codes", guard.only(make_codes, operator), "POST"),
        ("/v1/tokens", guard.only(tokens, operator), "GET"),
        ("/v1/tokens", guard.only(issue, operator), "POST"),
        ("/v1/tokens/{name}/revoke", guard.acts("token revoke", guard.tokens.revoke, operator), "POST"),
        ("/v1/audit", guard.only(log, operator, auditor), "GET"),
        ("/metrics", guard.only(metrics, operator, auditor), "GET"),
    ]


async def log_lines(request: Request, lines: Callable[[int], list[str]]) -> Response:
    """What a log holds after the entry that is asked about, an entry a line."""
    after = request.query_params.get("after", "0")
    if not after.isascii() or not after.isdigit() or len(after) > 15:
        raise InputError("the log is asked for with after=N, the number of the last entry that is known")
    found = await asyncio.to_thread(lines, int(after))
    return Response("".join(f"{line}\n" for line in found), media_type="application/x-ndjson")


def _object(text: bytes) -> dict[str, Any]:
    data = parsed(text, FEW_FIELDS)
    if not isinstance(data, dict):
        raise CodecError("this is asked for with an object of JSON")
    return data
