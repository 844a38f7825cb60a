"""Routes of the researcher: comparisons in a steward's folder, and their results as points to draw."""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hazemap.errors import FileError, HazemapError, InputError
from hazemap.execution.output_lock import lock_output
from hazemap.execution.run import Progress
from hazemap.federated.service.route_guard import Row, TooLong, body_of
from hazemap.files.atomic_write import whole
from hazemap.lab.compare.datasets import Datasets, own_map
from hazemap.lab.compare.map_scores import MEASURES, MetricLabel
from hazemap.lab.compare.presets import Catalogue, ComparisonOrder
from hazemap.lab.compare.results import ResultMean, Results
from hazemap.lab.compare.run_comparison import RESULTS, compared
from hazemap.machine_code.parallel_map import processors
from hazemap.studio.command_text import SameAs, line
from hazemap.studio.refusals import refused, saying
from hazemap.studio.request_guard import StewardGuard, form
from hazemap.studio.running_releases import RunningReleases
from hazemap.studio.stewards import RootFolder, Steward, free

MOST: Final = 12
"""Maps, methods or prices of one comparison; larger ones are for the command line."""
REPETITIONS: Final = 20
ROWS: Final = 200_000
LARGEST: Final = 64 << 20
"""Bytes of results that are drawn in a browser."""
_MAP = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}(/[0-9]{1,5})?(@[0-9]{1,9})?")
_OWN = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,39}")
OWN_ENDINGS: Final = (".npy", ".tif", ".tiff", ".csv", ".parquet", ".geojson", ".gpkg")


def known() -> dict[str, Any]:
    """Maps and methods that there are."""
    from hazemap.lab.compare.practices import METHODS

    maps = [{"name": each.name, "what": each.what} for each in Datasets().known.values() if each.kind == "maps"]
    return {"maps": maps, "methods": [each.name for each in METHODS]}


def ordered(data: Mapping[str, Any], root: RootFolder) -> tuple[ComparisonOrder, Path]:
    """The comparison of a form, and the folder of its results; everything is looked at before anything is measured.

    `InputError` and `FileError` say what cannot be; maps of somebody's own are files of the folder.
    """
    folder = data.get("folder")
    if not isinstance(folder, str) or not folder.strip():
        raise refused(InputError, "nameAFolder")
    goal = root.inside(folder)
    if goal == root.path or (goal.exists() and not (goal / RESULTS).exists() and any(goal.iterdir())):
        raise refused(FileError, "folderHasOthers", name=folder)
    own = []
    for each in _list(data, "own"):
        path = root.table(each)
        name = re.sub(r"[^A-Za-z0-9-]+", "-", path.stem).strip("-")
        if not path.is_file() or not path.name.lower().endswith(OWN_ENDINGS) or not _OWN.fullmatch(name):
            raise refused(InputError, "ownMapEnding", endings=", ".join(OWN_ENDINGS))
        own.append(f"{name}={path}")
    maps = [*_list(data, "maps"), *own]
    for each in _list(data, "maps"):
        if not _MAP.fullmatch(each):
            raise refused(InputError, "noSuchMap", name=each)
    repetitions = data.get("repetitions")
    if type(repetitions) is not int or not 1 <= repetitions <= REPETITIONS:
        raise refused(InputError, "oddRepetitions", most=REPETITIONS)
    methods, epsilons = _list(data, "methods"), _list(data, "epsilons")
    for sentence, given in (("chooseMaps", maps), ("chooseMethods", methods), ("choosePrices", epsilons)):
        if not given:
            raise refused(InputError, sentence)
    order = ComparisonOrder("quick", tuple(maps), tuple(methods), (), tuple(epsilons), repetitions)
    preset = order.preset(Catalogue())
    unknown = {name.partition("@")[0].partition("/")[0] for name in preset.maps} - set(Datasets().known)
    if missing := unknown - {name for name, _ in order.own}:
        raise refused(InputError, "noSuchMap", name=min(missing))
    return order, goal


def same_as(order: ComparisonOrder, goal: Path) -> SameAs:
    """The command and the Python that measure the same."""
    words = ["compare", order.comparison, "-o", str(goal), "--repetitions", str(order.repetitions)]
    for flag, values in (("--map", order.maps), ("--method", order.methods), ("--epsilon", order.epsilons)):
        for each in values:
            words += [flag, each]
    python = (
        "from dataclasses import replace\nfrom pathlib import Path\n"
        "from hazemap.lab.compare.presets import ComparisonOrder\n"
        "from hazemap.lab.compare.presets import Catalogue\n"
        "from hazemap.lab.compare.run_comparison import compared\n\n"
        "if __name__ == '__main__':  # in a file: its processes begin with it\n"
        f"    order = ComparisonOrder({order.comparison!r}, {order.maps!r}, {order.methods!r}, (), {order.epsilons!r}, "
        f"{order.repetitions})\n    known = Catalogue()\n    maps = replace(known.datasets, own=order.own)\n"
        f"    compared(list(order.preset(known).trials()), maps, Path({str(goal)!r}), jobs=1)"
    )
    return SameAs(line(words), python)


def figures(folder: Path) -> dict[str, Any]:
    """For each map and score the mean of each method at each ε, with its interval, in numbers and in words."""
    from pyarrow import parquet

    path = folder / RESULTS
    try:
        too_many = path.stat().st_size > LARGEST or parquet.read_metadata(path).num_rows > ROWS
    except (OSError, ValueError):
        raise refused(FileError, "noResults", name=folder.name) from None
    if too_many:
        raise refused(InputError, "tooManyResults")
    results = Results.read(path)
    if not {"map", "method", "epsilon"} <= set(results.frame.columns):
        raise refused(FileError, "noResults", name=folder.name)
    try:
        return {"maps": [_of_map(results.where(map=name), str(name)) for name in results.named("map")[:MOST]]}
    except (ValueError, TypeError):  # columns of other types
        raise refused(FileError, "noResults", name=folder.name) from None


def _of_map(results: Results, name: str) -> dict[str, Any]:
    found = [_of_score(results, MEASURES[score]) for score in ("mre", "l1", "seconds") if score in results.frame]
    return {"map": name, "scores": [each for each in found if each["methods"]]}


def _of_score(results: Results, measure: MetricLabel) -> dict[str, Any]:
    methods = []
    for name in results.named("method"):
        along = results.where(method=name).along("epsilon", measure.score)
        points = [
            _point(epsilon, mean, measure) for epsilon, mean in along if isfinite(epsilon) and isfinite(mean.mean)
        ]
        if points:
            methods.append({"name": str(name), "points": points})
    return {"score": measure.score, "words": measure.words, "short": measure.short, "methods": methods}


def _point(epsilon: float, mean: ResultMean, measure: MetricLabel) -> dict[str, Any]:
    low, high = (value if isfinite(value) else mean.mean for value in (mean.low, mean.high))
    numbers = {"mean": mean.mean, "low": low, "high": high}
    written = {f"{name}_said": measure.written(value) for name, value in numbers.items()}
    scaled = {name: value * measure.factor for name, value in numbers.items()}
    return {"epsilon": epsilon, **scaled, **written, "number": mean.number}


def _list(data: Mapping[str, Any], name: str) -> Sequence[str]:
    found = data.get(name, [])
    if not isinstance(found, list) or len(found) > MOST or not all(isinstance(each, str) for each in found):
        raise InputError(f"{name} are up to {MOST} texts")
    given = [each.strip() for each in found if each.strip()]
    if any(len(each) > 200 for each in given):
        raise InputError(f"{name} are short texts")
    return given


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
        return JSONResponse(await asyncio.to_thread(known))

    async def run(self, request: Request, who: Steward) -> Response:
        """Measure; the same again goes on where it stopped. Nothing is spent: the maps are public."""
        data = await form(request)
        order, goal = await asyncio.to_thread(ordered, data, who.root)
        same = same_as(order, goal).to_json()

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
        return JSONResponse({"folder": name, **await asyncio.to_thread(figures, folder)})

    async def own(self, request: Request, who: Steward) -> Response:
        """Keep a map that was dropped on the page as a new file of the folder, where it is one."""
        name = unquote(request.headers.get("x-hazemap-name", ""))
        if not name.lower().endswith(OWN_ENDINGS) or "/" in name:
            raise refused(InputError, "ownMapEnding", endings=", ".join(OWN_ENDINGS))
        goal = who.root.inside(name)
        try:
            content = await body_of(request, UPLOAD)
        except TooLong:
            raise refused(TooLong, "ownMapTooLarge", most=UPLOAD >> 20) from None

        def kept() -> int:
            with lock_output(goal):
                free(goal)
                with whole(goal) as file:
                    file.write_bytes(content)
                    return own_map("own", file).people

        return JSONResponse({"file": name, "people": await asyncio.to_thread(kept)}, 201)
