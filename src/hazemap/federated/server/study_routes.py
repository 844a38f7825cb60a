"""Routes of studies, for those who have a token; and the log of recipes, for everybody."""

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hazemap.federated.recipes.policy_document import LIMITS, SignedPolicy
from hazemap.federated.server.administration_routes import log_lines
from hazemap.federated.server.coordinator import Coordinator
from hazemap.federated.server.role_guard import RoleGuard
from hazemap.federated.server.roles import OperatorRole, Principal
from hazemap.federated.server.studies import number_of, round_answer, study_release, study_status
from hazemap.federated.server.study_spec import ORDER, RECIPE, recipe_from, study_from
from hazemap.federated.service.route_guard import Row, body_of

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
