"""What a steward's browser asks for, as routes."""

import asyncio
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from hazemap import publish
from hazemap.errors import InputError
from hazemap.execution import crash_recovery
from hazemap.execution.run import Progress
from hazemap.federated.service.route_guard import Row
from hazemap.privacy.privacy_unit import FULL
from hazemap.readers.csv_files import CsvDialect
from hazemap.releases import Release, Statistics
from hazemap.specs.statistics_spec import StatisticsSpec
from hazemap.specs.table_spec import DIALECT
from hazemap.studio import release_review
from hazemap.studio.command_text import StewardCommands
from hazemap.studio.order_form import TABLE, Order, order_of, plan_of
from hazemap.studio.refusals import refused
from hazemap.studio.release_review import SpendingKeys, ledger_view, to_recover
from hazemap.studio.request_guard import Fetched, StewardGuard, form
from hazemap.studio.running_releases import RunningReleases
from hazemap.studio.stewards import Steward, previewed

if TYPE_CHECKING:
    from hazemap.planning.statistics_plan import StatsPlan

Made = TypeVar("Made")


class StewardRoutes:
    """The routes of stewards. `rows` says whether the first rows of tables may be shown: on this machine alone."""

    def __init__(self, guard: StewardGuard, runs: RunningReleases, rows: bool) -> None:
        self._guard, self._runs, self._rows = guard, runs, rows
        self._keys = SpendingKeys()
        self._planning = asyncio.Semaphore(1)

    def routes(self) -> list[Row]:
        """All of them."""
        steward = self._guard.steward
        return [
            ("/v1/files", steward(self.files), "POST"),
            ("/v1/table", steward(self.table), "POST"),
            ("/v1/plan", steward(self.plan), "POST"),
            ("/v1/plan/picture", steward(self.plan_picture), "POST"),
            ("/v1/review", steward(self.review), "POST"),
            ("/v1/releases", steward(self.release), "POST"),
            ("/v1/runs", steward(self.every_run), "GET"),
            ("/v1/runs/{run}", steward(self.run), "GET"),
            ("/v1/runs/{run}/stop", steward(self.stop), "POST"),
            ("/v1/ledger", steward(self.ledger), "POST"),
            ("/v1/recover", steward(self.recover), "POST"),
            ("/v1/map", steward(self.map), "POST"),
            ("/v1/map/picture", steward(self.map_picture), "POST"),
            ("/v1/map/page", steward(self.map_page), "POST"),
            ("/v1/map/export", steward(self.map_export), "POST"),
            ("/v1/compare", steward(self.compare), "POST"),
            ("/v1/difference", steward(self.difference), "POST"),
        ]

    async def files(self, request: Request, who: Steward) -> Response:
        """What is in a folder."""
        name = _text(await form(request), "folder", "")
        entries = await asyncio.to_thread(who.root.entries, name)
        shown = [{"name": each.name, "kind": each.kind, "size": each.size} for each in entries]
        return JSONResponse({"root": str(who.root.path), "folder": name, "entries": shown})

    async def table(self, request: Request, who: Steward) -> Response:
        """The columns of a table, and its first rows."""
        order = order_of(await form(request), frozenset(TABLE))
        path = await asyncio.to_thread(who.root.table, str(order.get("source", "")))
        found = await asyncio.to_thread(previewed, path, _dialect(order), self._rows)
        facts = {
            "columns": [{"name": name, "kind": kind} for name, kind in found.columns],
            "more": found.more,
            "rows_in_all": found.rows_in_all,
            "geometry": found.geometry,
            "guessed": found.guessed,
            "rows": [list(row) for row in found.rows],
            "rows_shown": self._rows,
        }
        return JSONResponse(facts)

    async def plan(self, request: Request, who: Steward) -> Response:
        """What to expect of a map or of statistics, in figures; no table is opened."""
        from hazemap.planning import release_plan, statistics_plan

        data = await form(request)
        order, people, spec = await asyncio.to_thread(plan_of, data, who.root)
        same = self._commands(who).plan(order, people).to_json()
        if isinstance(spec, StatisticsSpec):
            reached = await self._planned(request, statistics_plan.planned, spec)
            return JSONResponse({**_reached(reached), "same_as": same})
        made = await self._planned(request, release_plan.planned, spec, people)
        words = {"heading": made.heading, "advice": release_plan.advice(made, spec.method)}
        return JSONResponse({**release_plan.facts(made, spec.method), **words, "same_as": same})

    async def plan_picture(self, request: Request, who: Steward) -> Response:
        """What a map would look like, of a city that does not exist; no table is opened."""
        data = await form(request)
        _, people, spec = await asyncio.to_thread(plan_of, data, who.root)
        if isinstance(spec, StatisticsSpec):
            raise InputError("the made-up city has people and no values: statistics are planned in figures")

        def drawn() -> dict[str, Any]:
            from hazemap.draw import draw_grids
            from hazemap.planning.release_plan import simulated

            made = simulated(spec, people)
            truth, shown = draw_grids([made.truth, made.shown], *made.scale)
            return {"truth": _image(truth), "shown": _image(shown), "cells": made.cells, "price": str(spec.budget)}

        return JSONResponse(await self._planned(request, drawn))

    async def _planned(self, request: Request, make: Callable[..., Made], *of: Any) -> Made:
        """One plan at a time; none for a browser that has moved on, as it does while its slider moves."""
        async with self._planning:
            if await request.is_disconnected():
                raise ClientDisconnect
            return await asyncio.to_thread(make, *of)

    async def review(self, request: Request, who: Steward) -> Response:
        """What a release would cost and leave; the key to say yes with."""
        order = order_of(await form(request))
        review = await asyncio.to_thread(self._keys.reviewed, who, order)
        same = self._commands(who).release(order).to_json()
        return JSONResponse({**review.to_json(), "same_as": same})

    async def release(self, request: Request, who: Steward) -> Response:
        """Carry an order out, once for each key: this spends."""
        data = await form(request)
        key, order = _text(data, "key"), order_of(data.get("order"))
        known = self._runs.of_key(who.name, key)
        if known is not None:
            return JSONResponse(known.to_json(), 200)
        review = await asyncio.to_thread(self._keys.reviewed, who, order)
        review.only_for(key)
        run = self._runs.begin(
            who.name,
            key,
            f"{who.name}\n{review.dataset}",
            Path(str(order["output"])).name,
            lambda tell: self._released(who, order, key, tell),
        )
        return JSONResponse(run.to_json(), 201)

    def _released(self, who: Steward, order: Order, key: str, tell: Progress) -> dict[str, Any]:
        review = self._keys.reviewed(who, order)  # once more, now that no other run of the studio can charge this page
        review.only_for(key)
        made: Release | Statistics
        if isinstance(review.spec, StatisticsSpec):
            made = publish.run_stats(review.spec, ledger=who.ledger, progress=tell)
        else:
            made = publish.run_release(review.spec, ledger=who.ledger, progress=tell)
        return self._made(who, review.spec.output, review.dataset, made.statement.line())

    def _made(self, who: Steward, output: str | None, dataset: str, line: str) -> dict[str, Any]:
        """What is said of a run that is done."""
        status = who.ledger.status(dataset, FULL)
        left = None if status is None else status.remaining
        return {"file": output and who.root.name_of(output), "line": line, "left": left and str(left)}

    async def every_run(self, _: Request, who: Steward) -> Response:
        """The steward's runs, the newest first."""
        return JSONResponse({"runs": [run.to_json() for run in self._runs.of(who.name)]})

    async def run(self, request: Request, who: Steward) -> Response:
        """How far one is."""
        return JSONResponse(self._runs.find(who.name, request.path_params["run"]).to_json())

    async def stop(self, request: Request, who: Steward) -> Response:
        """Tell one to stop: before its charge at no price; after it, what it has stays to be recovered."""
        return JSONResponse(self._runs.stop(who.name, request.path_params["run"]).to_json())

    async def ledger(self, request: Request, who: Steward) -> Response:
        """Every page, every charge, and what can be recovered; or those of one data set."""
        dataset = _text(await form(request), "dataset", "") or None
        return JSONResponse(await asyncio.to_thread(ledger_view, who, dataset, self._commands(who)))

    async def recover(self, request: Request, who: Steward) -> Response:
        """Make the file of a charge that was paid for; `go_on` after a look, which pays the rest once."""
        data = await form(request)
        charge, go_on = data.get("charge"), data.get("go_on", False)
        if type(charge) is not int or type(go_on) is not bool:
            raise refused(InputError, "whichCharge")
        each = await asyncio.to_thread(to_recover, who, charge)

        def work(tell: Progress) -> dict[str, Any]:
            made = crash_recovery.recover(charge, ledger=who.ledger, progress=tell, go_on=go_on)
            return self._made(who, each.output, each.record.charge.dataset, made.statement.line())

        page = f"{who.name}\n{each.record.charge.dataset}"
        key = f"recover {charge} {go_on}"
        run = self._runs.begin(who.name, f"{who.name}\n{key}", page, Path(each.output or "").name, work, paid=True)
        return JSONResponse(run.to_json(), 201)

    async def map(self, request: Request, who: Steward) -> Response:
        """What is said of a release."""
        name, path = await self._file(request, who)
        facts = await asyncio.to_thread(release_review.facts, path)
        return JSONResponse({"file": name, **facts, "same_as": self._commands(who).show(name).to_json()})

    async def map_picture(self, request: Request, who: Steward) -> Response:
        """A release as a PNG."""
        _, path = await self._file(request, who)
        return Response(await asyncio.to_thread(release_review.picture, path), media_type="image/png")

    async def map_page(self, request: Request, who: Steward) -> Response:
        """A ticket for the page of a release, to be framed."""
        _, path = await self._file(request, who)
        content = await asyncio.to_thread(release_review.page, path)
        ticket = self._guard.sessions.ticket(who.name, Fetched(content, "text/html; charset=utf-8"))
        return JSONResponse({"url": f"/v1/tickets/{ticket}"})

    async def map_export(self, request: Request, who: Steward) -> Response:
        """A ticket for the numbers of a release, as a file for other tools."""
        data = await form(request)
        name, ending = _text(data, "file"), _text(data, "ending")
        path = who.root.file(name)
        content = await asyncio.to_thread(release_review.exported, path, ending)
        goal = f"{path.stem}{ending}"
        ticket = self._guard.sessions.ticket(who.name, Fetched(content, "application/octet-stream", goal))
        same = self._commands(who).export(name, str(Path(name).with_suffix(ending))).to_json()
        return JSONResponse({"url": f"/v1/tickets/{ticket}", "name": goal, "same_as": same})

    async def compare(self, request: Request, who: Steward) -> Response:
        """Two releases side by side, and what is said of each."""
        data = await form(request)
        names = [_text(data, name) for name in ("first", "second")]
        one, two = (who.root.file(name) for name in names)

        def compared() -> dict[str, Any]:
            facts = [release_review.facts(path) for path in (one, two)]
            return {"maps": facts, "picture": _image(release_review.side_by_side((one, two)))}

        same = self._commands(who).compare(names).to_json()
        return JSONResponse({**await asyncio.to_thread(compared), "files": names, "same_as": same})

    async def difference(self, request: Request, who: Steward) -> Response:
        """A ticket for the page of what changed from one release to another, to be framed."""
        data = await form(request)
        names = [_text(data, name) for name in ("first", "second")]
        before, after = (who.root.file(name) for name in names)
        content, summary = await asyncio.to_thread(release_review.difference, before, after)
        ticket = self._guard.sessions.ticket(who.name, Fetched(content, "text/html; charset=utf-8"))
        same = self._commands(who).difference(names[0], names[1]).to_json()
        return JSONResponse({"url": f"/v1/tickets/{ticket}", "summary": summary, "same_as": same})

    async def _file(self, request: Request, who: Steward) -> tuple[str, Path]:
        name = _text(await form(request), "file")
        return name, who.root.file(name)

    def _commands(self, who: Steward) -> StewardCommands:
        return StewardCommands(who.root.path, who.ledger if self._guard.stewards.named_ledger else None)


def _text(data: Mapping[str, Any], name: str, usual: str | None = None) -> str:
    value = data.get(name, usual)
    if not isinstance(value, str):
        raise InputError(f"{name} is a text")
    return value


def _reached(made: "StatsPlan") -> dict[str, Any]:
    """A plan of statistics: for each cap on places a person, how many a place needs, and how sure its mean is then."""
    from hazemap.planning.statistics_plan import PEOPLE

    return {
        "cells": made.cells,
        "slots": made.slots,
        "places": made.places,
        "price": str(made.budget),
        "people": list(PEOPLE),
        "cap": made.max_cells_per_person,
        "of_range": made.bounds is None,
        "reaches": [asdict(each) for each in made.reaches],
    }


def _dialect(order: Order) -> CsvDialect:
    """How the form says that CSV files are written."""
    given: dict[str, Any] = {name: order[name] for name in DIALECT if name in order}
    return CsvDialect(**given)


def _image(content: bytes) -> str:
    return f"data:image/png;base64,{b64encode(content).decode()}"
