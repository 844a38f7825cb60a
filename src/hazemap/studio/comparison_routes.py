"""What a researcher's browser asks for: methods side by side on maps of which the truth is known."""

import asyncio
import json
from dataclasses import replace
from typing import Any, Final
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hazemap.errors import FileError, HazemapError, InputError
from hazemap.execution.output_lock import only_writer
from hazemap.execution.run import Progress
from hazemap.federated.service.route_guard import Row, TooLong, body_of
from hazemap.files.atomic_write import whole
from hazemap.lab.compare.datasets import own_map
from hazemap.lab.compare.presets import Catalogue
from hazemap.lab.compare.run_comparison import compared
from hazemap.machine_code.parallel_map import processors
from hazemap.studio import comparison_views
from hazemap.studio.refusals import refused, saying
from hazemap.studio.request_guard import StewardGuard, form
from hazemap.studio.root_folder import free
from hazemap.studio.running_releases import RunningReleases
from hazemap.studio.stewards import Steward

UPLOAD: Final = 32 << 20
"""Bytes of a map that is dropped on the page."""


class ComparisonRoutes:
    """The routes of researchers."""

    def __init__(self, guard: StewardGuard, runs: RunningReleases) -> None:
        self._guard, self._runs = guard, runs

    def routes(self) -> list[Row]:
        """All of them."""
        steward = self._guard.steward
        return [
            ("/v1/comparisons", steward(self.known), "GET"),
            ("/v1/comparison/run", steward(self.run), "POST"),
            ("/v1/comparison/figures", steward(self.figures), "POST"),
            ("/v1/comparison/map", steward(self.own), "POST"),
        ]

    async def known(self, _: Request, __: Steward) -> Response:
        """Maps and methods that there are."""
        return JSONResponse(await asyncio.to_thread(comparison_views.known))

    async def run(self, request: Request, who: Steward) -> Response:
        """Measure; the same again goes on where it stopped. Nothing is spent: the maps are public."""
        data = await form(request)
        order, goal = await asyncio.to_thread(comparison_views.ordered, data, who.root)
        same = comparison_views.same_as(order, goal).to_json()

        def work(tell: Progress) -> dict[str, Any]:
            known = Catalogue()
            atlas, trials = replace(known.datasets, own=order.own), list(order.preset(known).trials())
            found = compared(trials, atlas, goal, jobs=processors(), tell=tell)
            if not found.rows:
                error = HazemapError(f"none of the {len(trials):,} trials could be measured: {found.failures[0]:.300}")
                raise saying(error, "nothingMeasured", {"count": len(trials)}, more=True)
            return {"folder": data["folder"], "failures": [each[:300] for each in found.failures[:5]]}

        key = f"{who.name}\ncomparison {json.dumps(data, sort_keys=True)}"
        page = f"{who.name}\ncomparison"
        run = self._runs.begin(who.name, key, page, str(data["folder"]), work)
        return JSONResponse({**run.to_json(), "same_as": same}, 201)

    async def figures(self, request: Request, who: Steward) -> Response:
        """The results in a folder, as points."""
        name = (await form(request)).get("folder")
        if not isinstance(name, str):
            raise InputError("folder is a text")
        folder = who.root.inside(name)
        if not who.root.holds(folder / "results.parquet"):
            raise refused(FileError, "leadsOut", name=name)
        return JSONResponse({"folder": name, **await asyncio.to_thread(comparison_views.figures, folder)})

    async def own(self, request: Request, who: Steward) -> Response:
        """Keep a map that was dropped on the page as a new file of the folder, where it is one."""
        name = unquote(request.headers.get("x-hazemap-name", ""))
        if not name.lower().endswith(comparison_views.OWN_ENDINGS) or "/" in name:
            raise refused(InputError, "ownMapEnding", endings=", ".join(comparison_views.OWN_ENDINGS))
        goal = who.root.inside(name)
        try:
            content = await body_of(request, UPLOAD)
        except TooLong:
            raise refused(TooLong, "ownMapTooLarge", most=UPLOAD >> 20) from None

        def kept() -> int:
            with only_writer(goal):
                free(goal)
                with whole(goal) as file:
                    file.write_bytes(content)
                    return own_map("own", file).people

        return JSONResponse({"file": name, "people": await asyncio.to_thread(kept)}, 201)
