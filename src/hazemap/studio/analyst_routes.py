"""Routes of the analyst: studies over the API of a coordinator, and recipes with their explanation and price."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hazemap.codec import dumps
from hazemap.errors import FileError, InputError
from hazemap.execution.output_lock import lock_output
from hazemap.federated.device.recipes.recipe_check import check_lines, check_recipe, recipe_explanation
from hazemap.federated.recipes.policy_document import read_policy
from hazemap.federated.recipes.recipe import Recipe, RecipePrice
from hazemap.federated.recipes.recipe_file import EXAMPLE, recipe_from_json, recipe_from_toml
from hazemap.federated.server.studies import StudyOrder
from hazemap.federated.server.study_statement import assumed
from hazemap.federated.service.route_guard import Row
from hazemap.federated.study.http_study import HttpStudy
from hazemap.federated.study.study import check_columns
from hazemap.files.atomic_write import whole
from hazemap.files.text_files import read_text
from hazemap.studio import server_answers
from hazemap.studio.command_text import SameAs, ServerCommands, line
from hazemap.studio.coordinator_access import CoordinatorLine, StrangeAnswer
from hazemap.studio.operator_routes import CoordinatorThreads, access_of, named
from hazemap.studio.refusals import refused
from hazemap.studio.request_guard import StewardGuard, form
from hazemap.studio.server_answers import fields
from hazemap.studio.server_answers import whole as whole_number
from hazemap.studio.stewards import RootFolder, Steward, free

ENDINGS: Final = (".toml", ".json")
LONGEST: Final = 60_000
"""Letters of a recipe in the form; longer ones, of large maps, are for the command line."""


def recipe_of(text: Any) -> Recipe:
    """The recipe in a text, TOML or JSON by its first sign; `InputError` says what is wrong with it."""
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST:
        raise refused(InputError, "recipeTooLong", most=LONGEST)
    found = recipe_from_json(text) if text.lstrip()[:1] == "{" else recipe_from_toml(text)
    check_columns(found)
    return found


def recipe_file(root: RootFolder, name: Any) -> Path:
    """Where a recipe or a policy is in the folder, by a name that ends as one does."""
    if not isinstance(name, str) or not name.lower().endswith(ENDINGS):
        raise refused(FileError, "recipeEnding")
    return root.inside(name)


def read(root: RootFolder, name: Any) -> str:
    """The text of a recipe in the folder."""
    path = recipe_file(root, name)
    try:
        long = path.stat().st_size > 4 * LONGEST
        content = "" if long else read_text(path, "the recipe", 4 * LONGEST)
    except (OSError, FileError):
        raise refused(FileError, "recipeUnread", name=name) from None
    if long or len(content) > LONGEST:
        raise FileError(f"the recipe {name!r:.200} is longer than {LONGEST:,} letters: it is for the command line")
    return content


def checked(data: Mapping[str, Any], root: RootFolder) -> dict[str, Any]:
    """What a recipe asks, costs and finds, and what a device would be told. No data is read, nobody is asked.

    With the name of a `policy` in the folder, also which fields it reads, and whether devices would answer.
    """
    recipe = recipe_of(data.get("text"))
    policy, people = data.get("policy") or None, data.get("people") or recipe.minimum_cohort
    if type(people) is not int or not 0 < people < 1 << 40:
        raise refused(InputError, "oddPeople")
    judged = None
    if policy is not None:
        path = recipe_file(root, policy)
        if not path.is_file():
            raise refused(FileError, "noSuchPolicy", name=policy)
        judged = check_recipe(recipe, read_policy(path), recipe.minimum_cohort)
    price = RecipePrice.of(recipe)
    touched = judged.admitted.touched if judged and judged.admitted else None
    return {
        "id": recipe.id,
        "version": recipe.version,
        "digest": recipe.digest,
        "analysis": recipe.analysis,
        "price": f"ε = {float(recipe.epsilon):.6g}, δ = {float(recipe.delta):.3g}",
        "kept": price.kept,
        "bins": recipe.bins,
        "lines": check_lines(recipe, price, judged, people),
        "words": recipe_explanation(recipe, touched, judged.reasons if judged else ()),
        "answered": None if judged is None else judged.answered,
        "same_as": _same(root, named_file(root, data), policy).to_json(),
    }


def named_file(root: RootFolder, data: Mapping[str, Any]) -> str:
    """The whole path of the file in which a form says that its recipe is, or would be."""
    return str(recipe_file(root, data.get("file") or "recipe.toml"))


def _same(root: RootFolder, where: str, policy: str | None) -> SameAs:
    rest = [] if policy is None else ["--policy", str(root.path / policy)]
    command = f"{line(['recipe', 'check', where, *rest])}\n{line(['device', 'explain', where, *rest])}"
    python = (
        "from pathlib import Path\nfrom hazemap.federated.device.recipes.recipe_check import explain_recipe\n"
        "from hazemap.federated.recipes.recipe_file import read_recipe\n"
        "from hazemap.federated.recipes.recipe import RecipePrice\n\n"
        f"recipe = read_recipe(Path({where!r}))\nprint(RecipePrice.of(recipe))\n"
        "print(*explain_recipe(recipe, None), sep='\\n')"
    )
    return SameAs(command, python)


LAST_ROUND: Final = 1_000_000


class AnalystRoutes:
    """The routes of analysts."""

    def __init__(self, guard: StewardGuard, threads: CoordinatorThreads) -> None:
        self._guard, self._threads = guard, threads
        self._checking = asyncio.Semaphore(1)

    def routes(self) -> list[Row]:
        """All of them."""
        steward = self._guard.steward
        return [
            ("/v1/recipe", steward(self.example), "GET"),
            ("/v1/recipe/open", steward(self.open), "POST"),
            ("/v1/recipe/save", steward(self.save), "POST"),
            ("/v1/recipe/check", steward(self.check), "POST"),
            ("/v1/studies", steward(self.studies), "GET"),
            ("/v1/study", steward(self.study), "POST"),
            ("/v1/study/review", steward(self.review), "POST"),
            ("/v1/study/begin", steward(self.begin), "POST"),
            ("/v1/study/ask", steward(self.ask), "POST"),
            ("/v1/study/answer", steward(self.answer), "POST"),
            ("/v1/study/release", steward(self.release), "POST"),
            ("/v1/study/stop", steward(self.stop), "POST"),
        ]

    async def example(self, _: Request, __: Steward) -> Response:
        """A recipe to begin with."""
        return JSONResponse({"text": EXAMPLE})

    async def open(self, request: Request, who: Steward) -> Response:
        """The text of a recipe in the folder."""
        data = await form(request)
        return JSONResponse({"text": await asyncio.to_thread(read, who.root, data.get("file"))})

    async def save(self, request: Request, who: Steward) -> Response:
        """Write a recipe to the folder as it was typed, where it is one."""
        data = await form(request)
        text, goal = data.get("text"), recipe_file(who.root, data.get("file"))

        def written() -> None:
            recipe_of(text)
            with lock_output(goal):
                free(goal)
                with whole(goal) as part:
                    part.write_text(str(text), encoding="utf-8")

        await asyncio.to_thread(written)
        return JSONResponse({"file": data["file"]}, 201)

    async def check(self, request: Request, who: Steward) -> Response:
        """What a recipe asks and costs, and what a device would be told of it; nobody is asked."""
        data = await form(request)
        async with self._checking:
            return JSONResponse(await asyncio.to_thread(checked, data, who.root))

    async def studies(self, _: Request, who: Steward) -> Response:
        """The names of all studies."""
        found = await self._threads.asked(who, lambda line: server_answers.studies(line.get("/v1/studies")))
        return JSONResponse({"server": access_of(who).url, "studies": found})

    async def study(self, request: Request, who: Steward) -> Response:
        """What a study has asked, what became of it, and what is left."""
        name = named(await form(request))
        found = await self._threads.asked(who, lambda line: _study(line, name))
        commands = ServerCommands(access_of(who))
        acts = {what: commands.study(what, name).to_json() for what in ("status", "stop")}
        return JSONResponse({**found, "same_as": acts})

    async def review(self, request: Request, who: Steward) -> Response:
        """What all rounds of a study may cost, whom it asks and what it assumes; nothing is sent."""
        data = _filled(await form(request))
        spec = await asyncio.to_thread(lambda: StudyOrder.from_json(data).study())
        facts = {"name": spec.name, "analysis": spec.analysis, "people": spec.cohort.people, "reports": spec.reports}
        same = ServerCommands(access_of(who)).begin_study(data).to_json()
        words = {"price": str(spec.budget), "assumed": list(assumed(spec))}
        return JSONResponse({**facts, **words, "same_as": same})

    async def begin(self, request: Request, who: Steward) -> Response:
        """Begin a study, which costs nothing before its first round."""
        data = _filled(await form(request))
        spec = await asyncio.to_thread(lambda: StudyOrder.from_json(data).study())
        await self._threads.asked(who, lambda line: line.post("/v1/studies", dumps(spec).encode()))
        return JSONResponse({"name": spec.name}, 201)

    async def ask(self, request: Request, who: Steward) -> Response:
        """Ask a recipe: this spends, unless the same recipe was asked before."""
        data = await form(request)
        name, recipe = named(data), await asyncio.to_thread(recipe_of, data.get("text"))
        content = dumps(recipe).encode()

        def asked(line: CoordinatorLine) -> int:
            return whole_number(fields(line.order(f"/v1/studies/{name}/rounds", content))["round"])

        same = ServerCommands(access_of(who)).ask(name, named_file(who.root, data)).to_json()
        return JSONResponse({"round": await self._threads.asked(who, asked), "same_as": same}, 201)

    async def answer(self, request: Request, who: Steward) -> Response:
        """How far a round is, or its answer with intervals."""
        data = await form(request)
        name, round_, confidence = named(data), _round(data), data.get("confidence", 0.95)
        if type(confidence) is not float or not 0 < confidence < 1:
            raise InputError("how often an interval holds is a number between 0 and 1, such as 0.95")

        def found(line: CoordinatorLine) -> dict[str, Any]:
            told = line.get(f"/v1/studies/{name}/rounds/{round_}")
            made = server_answers.round_of(told)
            if made["round"] != round_:
                raise StrangeAnswer("the server answers for another round than it was asked for")
            known = server_answers.answered(told)
            if known is None:
                return {**made, "table": None, "left": None}
            study = _study(line, name)
            shown = server_answers.table(*known, tuple(study["assumptions"]), confidence)
            return {**made, "table": shown, "left": study["left"]}

        same = ServerCommands(access_of(who)).results(name, round_, confidence).to_json()
        return JSONResponse({**await self._threads.asked(who, found), "same_as": same})

    async def release(self, request: Request, who: Steward) -> Response:
        """Write all answers of a study, with recipes, price and statement, to one file in the folder. It is free."""
        data = await form(request)
        name, file = named(data), data.get("file")
        if not isinstance(file, str) or not file.lower().endswith(".parquet"):
            raise refused(FileError, "answersAreParquet")
        goal = who.root.inside(file)
        free(goal)

        def released(line: CoordinatorLine) -> None:
            with line.told():
                made = HttpStudy(line.line.http, name).release()
            with lock_output(goal):
                free(goal)
                made.save(goal)

        await self._threads.asked(who, released)
        same = ServerCommands(access_of(who)).answers(name, str(goal)).to_json()
        return JSONResponse({"file": file, "same_as": same}, 201)

    async def stop(self, request: Request, who: Steward) -> Response:
        """Let no further question through."""
        name = named(await form(request))
        await self._threads.asked(who, lambda line: line.post(f"/v1/studies/{name}/stop"))
        return Response(status_code=204)


def _study(line: CoordinatorLine, name: str) -> dict[str, Any]:
    found = server_answers.study(line.get(f"/v1/studies/{name}"))
    if found["name"] != name:
        raise StrangeAnswer("the server answers for another study than it was asked for")
    return found


def _filled(data: Mapping[str, Any]) -> dict[str, Any]:
    """A form without what was left blank."""
    return {name: value for name, value in data.items() if value not in ("", None)}


def _round(data: Mapping[str, Any]) -> int:
    found = data.get("round")
    if type(found) is not int or not 1 <= found <= LAST_ROUND:
        raise InputError("rounds are numbered from 1")
    return found
