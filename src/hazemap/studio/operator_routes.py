"""What an operator's browser asks for: campaigns among devices, over the HTTP API of a coordinator.

The studio holds nothing of it. A coordinator that is slow keeps threads of its own steward busy and nobody else's.
"""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hazemap.codec import dumps
from hazemap.errors import InputError
from hazemap.execution.output_lock import lock_output
from hazemap.federated.device.policy.consent_policy import caution_about_small_sums
from hazemap.federated.server.campaign_spec import MAP, Campaign, CampaignOrder
from hazemap.federated.server.privacy_statement import assumed
from hazemap.federated.server.study_spec import NAME
from hazemap.federated.service.operator_line import MOST
from hazemap.federated.service.route_guard import Row
from hazemap.files.atomic_write import whole
from hazemap.releases import open_release
from hazemap.specs.parsing import warning_about
from hazemap.studio import server_answers
from hazemap.studio.command_text import ServerCommands
from hazemap.studio.coordinator_access import PICTURE, CoordinatorAccess, CoordinatorLine, StrangeAnswer, aggregators
from hazemap.studio.order_form import order_of
from hazemap.studio.refusals import refused
from hazemap.studio.request_guard import StewardGuard, form
from hazemap.studio.stewards import Steward, free

Made = TypeVar("Made")

ACTS: Final = {"stop": "stop", "resume": "resume", "release-partial": "partial"}
"""What can be done with a campaign: as the command line calls it, and as the server does."""
THREADS: Final = 3
"""Requests to the coordinator of one steward at a time."""
PNG: Final = b"\x89PNG\r\n\x1a\n"


class CoordinatorThreads:
    """Threads in which coordinators are asked: a few of each steward's own."""

    def __init__(self) -> None:
        self._of: dict[str, ThreadPoolExecutor] = {}

    async def asked(self, who: Steward, ask: Callable[[CoordinatorLine], Made]) -> Made:
        """What one request or several give."""
        access = access_of(who)

        def work() -> Made:
            with access.line() as line:
                return ask(line)

        return await self.worked(who, work)

    async def worked(self, who: Steward, work: Callable[[], Made]) -> Made:
        """Something that waits for other servers."""
        own = self._of.setdefault(who.name, ThreadPoolExecutor(THREADS, thread_name_prefix="coordinator"))
        return await asyncio.get_running_loop().run_in_executor(own, work)


def access_of(who: Steward) -> CoordinatorAccess:
    """The coordinator of a steward; `InputError` where they have none."""
    if who.server is None:
        raise refused(InputError, "noServer")
    return who.server


def named(data: dict[str, Any], field: str = "name") -> str:
    """The name of a campaign or a study, which stands in an address."""
    name = data.get(field)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise refused(InputError, "oddCampaignName")
    return name


class OperatorRoutes:
    """The routes of operators."""

    def __init__(self, guard: StewardGuard, threads: CoordinatorThreads) -> None:
        self._guard, self._threads = guard, threads

    def routes(self) -> list[Row]:
        """All of them."""
        steward = self._guard.steward
        return [
            ("/v1/campaigns", steward(self.campaigns), "GET"),
            ("/v1/devices", steward(self.devices), "GET"),
            ("/v1/aggregators", steward(self.aggregators), "GET"),
            ("/v1/campaign", steward(self.campaign), "POST"),
            ("/v1/campaign/map", steward(self.map), "POST"),
            ("/v1/campaign/review", steward(self.review), "POST"),
            ("/v1/campaign/order", steward(self.order), "POST"),
            ("/v1/campaign/act", steward(self.act), "POST"),
            ("/v1/campaign/fetch", steward(self.fetch), "POST"),
        ]

    async def campaigns(self, _: Request, who: Steward) -> Response:
        """Every campaign, and how many devices there are."""
        found = await self._threads.asked(who, lambda line: server_answers.campaigns(line.get("/v1/campaigns")))
        access = access_of(who)
        same = ServerCommands(access).campaigns().to_json()
        return JSONResponse({"server": access.url, **found, "same_as": same})

    async def devices(self, _: Request, who: Steward) -> Response:
        """Every device that was ever enrolled."""
        found = await self._threads.asked(who, lambda line: server_answers.devices(line.get("/v1/devices")))
        return JSONResponse({"devices": found, "same_as": ServerCommands(access_of(who)).devices().to_json()})

    async def aggregators(self, _: Request, who: Steward) -> Response:
        """The health of the aggregators that were named when the studio was started."""
        access = access_of(who)
        return JSONResponse({"aggregators": await self._threads.worked(who, lambda: aggregators(access))})

    async def campaign(self, request: Request, who: Steward) -> Response:
        """All about one campaign, and what can be done with it."""
        name = named(await form(request))
        found = await self._threads.asked(who, lambda line: server_answers.campaign(line.get(f"/v1/campaigns/{name}")))
        if found["name"] != name:
            raise StrangeAnswer("the server answers for another campaign than it was asked for")
        commands = ServerCommands(access_of(who))
        acts = {what: commands.campaign(what, name).to_json() for what in ("watch", *ACTS)}
        return JSONResponse({**found, "same_as": acts})

    async def map(self, request: Request, who: Steward) -> Response:
        """The map so far, as a PNG; it is made of answers that are paid for."""
        name = named(await form(request))
        path = f"/v1/campaigns/{name}/map?format=png"
        content = await self._threads.asked(who, lambda line: line.content(path, PICTURE))
        if not content.startswith(PNG):
            raise StrangeAnswer("the server sends something else where a picture is meant")
        return Response(content, media_type="image/png")

    async def review(self, request: Request, who: Steward) -> Response:
        """What a campaign costs, whom it asks and what it assumes; nothing is sent."""
        data, commands = await form(request), ServerCommands(access_of(who))
        return JSONResponse(await asyncio.to_thread(review, data, commands))

    async def order(self, request: Request, who: Steward) -> Response:
        """Send it: this spends, and a name is used once."""
        data = await form(request)
        campaign = await asyncio.to_thread(ordered, data)
        await self._threads.asked(who, lambda line: line.post("/v1/campaigns", dumps(campaign).encode()))
        return JSONResponse({"name": campaign.name}, 201)

    async def act(self, request: Request, who: Steward) -> Response:
        """Stop a campaign, go on with it, or release it in part."""
        data = await form(request)
        name, what = named(data), data.get("act")
        if not isinstance(what, str) or what not in ACTS:
            raise InputError(f"a campaign can be told to {', '.join(ACTS)}")
        await self._threads.asked(who, lambda line: line.post(f"/v1/campaigns/{name}/{ACTS[what]}"))
        return Response(status_code=204)

    async def fetch(self, request: Request, who: Steward) -> Response:
        """Fetch the release of a campaign into the steward's folder."""
        data = await form(request)
        name, file = named(data), data.get("file")
        if not isinstance(file, str) or not file.lower().endswith(".parquet"):
            raise refused(InputError, "campaignIsParquet")
        goal = who.root.inside(file)

        def fetched(line: CoordinatorLine) -> None:
            with lock_output(goal):
                free(goal)
                content = line.content(f"/v1/campaigns/{name}/release", MOST)
                with whole(goal) as part:
                    part.write_bytes(content)
                    open_release(part)

        free(goal)
        await self._threads.asked(who, fetched)
        same = ServerCommands(access_of(who)).fetch(name, str(goal)).to_json()
        return JSONResponse({"file": file, "same_as": same}, 201)


FIELDS = frozenset(MAP) - {"prior", "prior_is_public"}
"""What a form says of the map. First cells, which are read from a file, are for the command line."""


def ordered(data: Mapping[str, Any]) -> Campaign:
    """The campaign of a form; `InputError` says what of it cannot be."""
    order, map_ = _parts(data)
    return CampaignOrder.from_json(order).campaign(CampaignOrder.from_json(order).map_of(map_))


def review(data: Mapping[str, Any], commands: ServerCommands) -> dict[str, Any]:
    """What a campaign costs, whom it asks and what its promise assumes, in words, before it is sent."""
    order, map_ = _parts(data)
    campaign = ordered(data)
    cohort = campaign.cohort
    smallest = cohort.people if campaign.carrier else cohort.smallest
    cautions = (warning_about(campaign.budget), caution_about_small_sums(smallest))
    return {
        "name": campaign.name,
        "purpose": campaign.purpose,
        "dataset": campaign.dataset,
        "price": str(campaign.budget),
        "people": cohort.people,
        "shards": 0 if campaign.carrier else len(cohort.shards),
        "assumed": list(assumed(campaign)),
        "cautions": [each for each in cautions if each],
        "same_as": commands.order(order, map_).to_json(),
    }


def _parts(data: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is said of the campaign, and of its map; what is left blank is left out."""
    order, map_ = data.get("order"), data.get("map")
    if set(data) != {"order", "map"} or not isinstance(order, dict) or not isinstance(map_, dict):
        raise InputError("a campaign is ordered by an order and a map")
    return {name: value for name, value in order.items() if value not in ("", None)}, dict(order_of(map_, FIELDS))
