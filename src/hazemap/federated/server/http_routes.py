"""The coordinator as an ASGI application: enrolment, status, campaigns, studies, recipes and administration."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from hazemap import __version__
from hazemap.codec import Limits, parsed
from hazemap.errors import CodecError, InputError
from hazemap.federated.protocols.secure_aggregation.enrolment_proof import VERSION
from hazemap.federated.recipes.policy_document import LIMITS, SignedPolicy
from hazemap.federated.server.campaign_spec import campaign_from
from hazemap.federated.server.campaign_status import plain
from hazemap.federated.server.coordinator import Coordinator
from hazemap.federated.server.device_endpoints import DeviceEndpoints
from hazemap.federated.server.role_guard import RoleGuard
from hazemap.federated.server.roles import OperatorRole, Principal, TokenRequest
from hazemap.federated.server.studies import number_of, round_answer, study_release, study_status
from hazemap.federated.server.study_spec import ORDER, RECIPE, recipe_from, study_from
from hazemap.federated.service.http_limits import HttpLimits
from hazemap.federated.service.prometheus_text import CONTENT_TYPE
from hazemap.federated.service.route_guard import Receive, Row, Scope, Send, TooOften, body_of
from hazemap.federated.service.served_address import PageAccess

FOR_DEVICES = re.compile("/v1/(?:challenge|enrol|recipes|tasks(?:/.*)?)")
"""What a device in a browser's tab asks."""
CAMPAIGN = 64 << 20
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
        campaign = await asyncio.to_thread(campaign_from, await body_of(request, CAMPAIGN))
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


DIGEST = 64


def study_routes(coordinator: Coordinator, guard: RoleGuard) -> list[Row]:
    """Every route; what changes something is on the audit log before it is done."""
    audit, studies, store = coordinator.audit, coordinator.studies, coordinator.store
    operator, analyst, auditor = OperatorRole.OPERATOR, OperatorRole.ANALYST, OperatorRole.AUDITOR

    async def accept(request: Request, who: Principal) -> Response:
        signed = await asyncio.to_thread(SignedPolicy.from_json, await body_of(request, LIMITS.length))
        async with audit.recorded(who, "policy accept", f"{signed.policy.name} {signed.policy.version}"):
            digest = await studies.accept(signed)
        return JSONResponse({"digest": digest}, 201)

    async def begin(request: Request, who: Principal) -> Response:
        spec = await asyncio.to_thread(study_from, await body_of(request, ORDER.length))
        async with audit.recorded(who, "study begin", spec.name):
            await studies.begin(spec, who)
        return JSONResponse({"name": spec.name}, 201)

    async def every(_: Request, __: Principal) -> Response:
        return JSONResponse({"studies": await asyncio.to_thread(studies.all)})

    async def one(request: Request, _: Principal) -> Response:
        return JSONResponse(await asyncio.to_thread(study_status, studies, store, request.path_params["name"]))

    async def ask(request: Request, who: Principal) -> Response:
        name = request.path_params["name"]
        recipe = await asyncio.to_thread(recipe_from, await body_of(request, RECIPE.length))
        async with audit.recorded(who, "study ask", f"{name} {recipe.id} {recipe.digest}"):
            round_ = await studies.ask(name, recipe, who)
        return JSONResponse({"round": round_, "digest": recipe.digest}, 201)

    async def answer(request: Request, who: Principal) -> Response:
        name, round_ = request.path_params["name"], number_of(request.path_params["round"])
        found = await asyncio.to_thread(round_answer, studies, store, name, round_)
        if found["answer"] is not None:
            await audit.record(who, "study read", f"{name} {round_}", "done")
        return JSONResponse(found)

    async def release(request: Request, who: Principal) -> Response:
        name, asked = request.path_params["name"], request.query_params.get("round")
        round_ = None if asked is None else number_of(asked)
        found = await asyncio.to_thread(study_release, studies, store, name, round_)
        await audit.record(who, "study release", f"{name} {asked or 'all'}", "done")
        return JSONResponse(found)

    async def stop(request: Request, who: Principal) -> Response:
        name = request.path_params["name"]
        async with audit.recorded(who, "study stop", name):
            await studies.end(name, who)
        return Response(status_code=204)

    async def log(request: Request) -> Response:
        return await log_lines(request, studies.log.lines)

    async def text(request: Request) -> Response:
        found = await asyncio.to_thread(studies.log.text, request.path_params["digest"][: DIGEST + 1])
        return Response(found, media_type="application/json")

    return [
        ("/v1/policies", guard.only(accept, operator), "POST"),
        ("/v1/studies", guard.only(begin, operator, analyst), "POST"),
        ("/v1/studies", guard.only(every, operator, analyst, auditor), "GET"),
        ("/v1/studies/{name}", guard.only(one, operator, analyst, auditor), "GET"),
        ("/v1/studies/{name}/rounds", guard.only(ask, operator, analyst), "POST"),
        ("/v1/studies/{name}/rounds/{round}", guard.only(answer, operator, analyst), "GET"),
        ("/v1/studies/{name}/release", guard.only(release, operator, analyst), "GET"),
        ("/v1/studies/{name}/stop", guard.only(stop, operator, analyst), "POST"),
        ("/v1/recipes", guard.published(log), "GET"),
        ("/v1/recipes/{digest}", guard.published(text), "GET"),
    ]


SHORT = 4_096
_SHORT_OBJECT = Limits(length=SHORT, items=32, work=0, depth=1)


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
    data = parsed(text, _SHORT_OBJECT)
    if not isinstance(data, dict):
        raise CodecError("this is asked for with an object of JSON")
    return data
