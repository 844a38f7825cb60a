"""What a coordinator answers of studies, read as strictly as what it answers of campaigns."""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from hazemap.codec import loads
from hazemap.errors import CodecError, InputError
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.server.study_spec import recipe_from
from hazemap.federated.study.study import tabled
from hazemap.federated.study.study_answers import StudyBudget
from hazemap.queries.noisy_queries import Answer
from hazemap.studio.coordinator_access import StrangeAnswer
from hazemap.studio.server_answers import fields, items, maybe, name, text, turnout, whole

_EXACT = re.compile(r"[0-9]{1,60}(/[0-9]{1,60})?")
SHOWN: Final = 200
"""Lines of an answer, the largest counts, that a browser is given; a file holds all."""
ASSUMED: Final = 100


def studies(data: Any) -> list[str]:
    """The names of all studies."""
    return [name(each) for each in items(fields(data)["studies"])]


def study(data: Any) -> dict[str, Any]:
    """All about one study, but the answers."""
    found = fields(data)
    return {
        "name": name(found["name"]),
        "analysis": text(found["analysis"], 200),
        "state": text(found["state"], 80),
        "reason": text(found["reason"] or ""),
        "created": text(found["created"], 80),
        "stopped": maybe(lambda value: text(value, 80), found["stopped"]),
        "budget": budget_facts(budget(found["budget"])),
        "left": budget_facts(budget(found["left"])),
        "people": whole(found["people"]),
        "trust": text(found["trust"], 80),
        "assumptions": [text(each) for each in items(found["assumptions"], ASSUMED)],
        "rounds": [round_of(each) for each in items(found["rounds"])],
    }


def budget(data: Any) -> StudyBudget:
    """ε, δ and reports."""
    found = fields(data)
    return StudyBudget(exactly(found["epsilon"]), exactly(found["delta"]), whole(found["reports"]))


def budget_facts(found: StudyBudget) -> dict[str, Any]:
    """What a study may ask for or has left, for the browser."""
    return {"price": _price(found.epsilon, found.delta), "reports": found.reports}


def _price(epsilon: Fraction, delta: Fraction) -> str:
    return f"ε = {float(epsilon):.6g}, δ = {float(delta):.3g}"


def round_of(data: Any) -> dict[str, Any]:
    """One round: what it cost, what became of it, and why."""
    each = fields(data)
    return {
        "round": whole(each["round"]),
        "recipe": text(each["recipe"], 64),
        "price": _price(exactly(each["epsilon"]), exactly(each["delta"])),
        "state": text(each["state"], 80),
        "reason": text(each["reason"]),
        "created": text(each["created"], 80),
        "ended": maybe(lambda value: text(value, 80), each["ended"]),
        **(turnout(each) if "survivors" in each else {"survivors": 0, "refusals": [], "lost": []}),
    }


def exactly(value: Any) -> Fraction:
    """A fraction, written as such."""
    if not isinstance(value, str) or not _EXACT.fullmatch(value) or value.endswith("/0"):
        raise StrangeAnswer("the server says something else where a fraction is meant")
    try:
        found = Fraction(value)
    except ZeroDivisionError:
        raise StrangeAnswer("the server says something else where a fraction is meant") from None
    if found > 10**12:
        raise StrangeAnswer("the server names a budget that there is none of")
    return found


def answered(data: Any) -> tuple[Recipe, Answer] | None:
    """The recipe of a round and the answer to it; None before there is one."""
    found: Mapping[str, Any] = fields(data)
    if found["answer"] is None:
        return None
    try:
        recipe = recipe_from(found["text"])
        answer: Answer = loads(found["answer"], (), Answer)
    except (CodecError, InputError, TypeError) as error:
        raise StrangeAnswer(f"the server's answer is not read: {error!s:.200}") from None
    if recipe.digest != found["recipe"] or answer.sums.shape != (recipe.size,):
        raise StrangeAnswer("the server's answer is one to another recipe")
    return recipe, answer


def table(recipe: Recipe, answer: Answer, assumptions: tuple[str, ...], confidence: float) -> dict[str, Any]:
    """The largest counts of an answer with intervals, who is not in them, and what each person is promised."""
    frame = tabled(recipe, answer, assumptions, confidence)
    labels = [each.name for each in recipe.features]
    numbers = ("count", "standard_error", "low", "high")
    largest = frame.nlargest(SHOWN, "count")
    return {
        "features": labels,
        "lines": [
            {"labels": [text(str(row[each]), 200) for each in labels], **{each: float(row[each]) for each in numbers}}
            for _, row in largest.iterrows()
        ],
        "more": len(frame) - len(largest),
        "people": frame.attrs["people"],
        "confidence": confidence,
        "none": frame.attrs.get("none"),
        "promise": list(frame.attrs["promise"]),
    }
