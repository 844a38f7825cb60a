"""A study on a server, as an analyst with a token reaches it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hazemap.codec import dumps, loads
from hazemap.errors import BudgetError, HazemapError, InputError, NotOpened, Refused
from hazemap.federated.recipes.recipe import KNOWN as OF_RECIPES
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.service.operator_line import MOST, asked
from hazemap.federated.study.study_answers import RoundAnswer, StudyAnswers, StudyBudget
from hazemap.privacy.statement import Statement
from hazemap.queries.noisy_queries import Answer

if TYPE_CHECKING:
    import httpx

PATIENCE = 60.0
"""Seconds that a server is given for one answer."""

LOOK = 0.5
"""Seconds between two looks at a round."""

MOST_REASONS = 5


@dataclass
class HttpStudy:
    """One study of one server. `wait` is how many seconds a round is waited for; it goes on without anybody waiting.

    `tell` is called with the round as the server describes it, at every look.
    """

    http: "httpx.Client"
    name: str
    wait: float = 24 * 3600.0
    tell: Callable[[dict[str, Any]], None] = lambda _: None

    @classmethod
    def to(cls, server: str, name: str, token: str) -> "HttpStudy":
        """A line to a server, by its address."""
        import httpx

        headers = {"Authorization": f"Bearer {token.strip()}"}
        return cls(httpx.Client(base_url=server, headers=headers, timeout=PATIENCE), name)

    @property
    def analysis(self) -> str:
        """What its recipes are about."""
        return str(self.status()["analysis"])

    def status(self) -> dict[str, Any]:
        """The study as the server describes it."""
        found: dict[str, Any] = self._asked("GET", f"/v1/studies/{self.name}")
        return found

    def assumptions(self) -> tuple[str, ...]:
        """What the promise to its people assumes."""
        return tuple(str(each) for each in self.status()["assumptions"])

    def left(self) -> StudyBudget:
        """What it may still spend."""
        left = self.status()["left"]
        return StudyBudget(Fraction(left["epsilon"]), Fraction(left["delta"]), int(left["reports"]))

    def ask(self, recipe: Recipe) -> Answer:
        """The answer to a recipe, once there is one; `NotOpened` where too few answered, with the devices' reasons."""
        return self.answer(self.begin(recipe))

    def begin(self, recipe: Recipe) -> int:
        """Begin the round of a recipe, or find the one that asked it: its number."""
        return int(self._asked("POST", f"/v1/studies/{self.name}/rounds", dumps(recipe).encode())["round"])

    def answer(self, round_: int) -> Answer:
        """What a round ended in."""
        until = time.monotonic() + self.wait
        while (found := self.round(round_))["state"] == "running":
            self.tell(found)
            if found["reason"]:
                raise HazemapError(f"round {round_} of {self.name} {found['reason']}; then ask the same recipe again")
            if time.monotonic() > until:
                raise HazemapError(
                    f"round {round_} of {self.name} still runs after {self.wait:g} s: ask the same recipe again later, "
                    "which costs nothing"
                )
            time.sleep(LOOK)
        if found["state"] != "done":
            raise NotOpened(f"{found['reason']}{_refusals(found.get('refusals', {}))}")
        answer: Answer = loads(found["answer"])
        return answer

    def release(self, recipe: Recipe | None = None, round_: int | None = None) -> StudyAnswers:
        """The answers of all rounds, of one, or to one recipe, with the server's statement; `InputError` for none."""
        if recipe is not None:
            done = {each["recipe"]: int(each["round"]) for each in self.status()["rounds"] if each["state"] == "done"}
            if recipe.digest not in done:
                raise InputError(f"the study {self.name} has no answer to the recipe {recipe.id}: ask it first")
            round_ = done[recipe.digest]
        which = "" if round_ is None else f"?round={round_}"
        made: dict[str, Any] = self._asked("GET", f"/v1/studies/{self.name}/release{which}")
        rounds = tuple(
            RoundAnswer(int(number), loads(asked, OF_RECIPES, Recipe), loads(answer, (), Answer))
            for number, asked, answer in (map(each.get, ("round", "recipe", "answer")) for each in made["rounds"])
        )
        return StudyAnswers(str(made["study"]), rounds, Statement.from_json(made["statement"]))

    def stop(self) -> None:
        """Let no further question through; what was paid stays paid."""
        self._asked("POST", f"/v1/studies/{self.name}/stop")

    def round(self, round_: int) -> dict[str, Any]:
        """A round as the server describes it."""
        found: dict[str, Any] = self._asked("GET", f"/v1/studies/{self.name}/rounds/{round_}")
        return found

    def _asked(self, method: str, path: str, content: bytes = b"") -> Any:
        import httpx

        try:
            reply = asked(self.http, method, path, MOST, content=content)
        except Refused as error:
            raise HazemapError(f"the server {self.http.base_url} is not read: {error}") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise HazemapError(
                f"the server {self.http.base_url} did not answer ({type(error).__name__}): see that it runs, then ask "
                "again; what was begun goes on"
            ) from error
        if reply.is_success:
            return reply.json() if reply.content else None
        try:
            message = str(reply.json()["error"])
        except (ValueError, KeyError, TypeError):
            message = f"the server answered {reply.status_code}: is {self.http.base_url} a hazemap server?"
        raise {402: BudgetError}.get(reply.status_code, InputError if reply.status_code < 500 else HazemapError)(
            message
        )


def _refusals(counted: dict[str, int]) -> str:
    """What devices said, the most frequent first.

    >>> _refusals({"too dear": 2, "not me": 3})
    '. Devices refused: 3 because not me; 2 because too dear'
    """
    if not counted:
        return ""
    first = sorted(counted.items(), key=lambda each: (-each[1], each[0]))
    said = [f"{number:,} because {reason}" for reason, number in first[:MOST_REASONS]]
    more = sum(number for _, number in first[MOST_REASONS:])
    return f". Devices refused: {'; '.join(said)}{f'; {more:,} for other reasons' if more else ''}"
