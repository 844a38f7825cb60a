"""Answers of a coordinator on campaigns, devices and studies, read strictly: exact types, short plain texts.

A browser is handed what these functions return and nothing else, so it meets neither a type that it does not expect nor
megabytes of words.
"""

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final, TypeVar

from hazemap.codec import loads
from hazemap.errors import CodecError, InputError
from hazemap.federated.device.http_client import one_line
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.server.study_spec import NAME, recipe_from
from hazemap.federated.study.study import answer_table
from hazemap.federated.study.study_answers import StudyBudget
from hazemap.queries.noisy_queries import Answer
from hazemap.studio.coordinator_access import StrangeAnswer

T = TypeVar("T")

WORDS: Final = 600
"""Letters of a text that is shown; the rest is cut off."""
MANY: Final = 2_000
"""So many campaigns, rounds or devices are shown."""
REASONS: Final = 50
"""So many different reasons of one round."""


def text(value: Any, most: int = WORDS) -> str:
    """One line of plain letters."""
    if not isinstance(value, str):
        raise StrangeAnswer(f"the server says {type(value).__name__} where a text is meant")
    return one_line(value, most)


def name(value: Any) -> str:
    """The name of a campaign or a study, as it may stand in an address."""
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise StrangeAnswer("the server calls something by a name that is none")
    return value


def whole(value: Any) -> int:
    """A whole number from 0, exact in a browser."""
    if type(value) is not int or not 0 <= value < 1 << 53:
        raise StrangeAnswer("the server says something else where a whole number is meant")
    return value


def number(value: Any) -> float:
    """A finite number."""
    if type(value) not in (int, float) or abs(value) > 1e300 or not math.isfinite(value):
        raise StrangeAnswer("the server says something else where a number is meant")
    return float(value)


def truth(value: Any) -> bool:
    """Yes or no."""
    if type(value) is not bool:
        raise StrangeAnswer("the server says something else where yes or no is meant")
    return value


def maybe(kind: Callable[[Any], T], value: Any) -> T | None:
    """The same, or nothing."""
    return None if value is None else kind(value)


def fields(value: Any) -> Mapping[str, Any]:
    """An object, of which a name that is missing is `StrangeAnswer`."""
    if not isinstance(value, dict):
        raise StrangeAnswer("the server says something else where an object is meant")
    return _Fields(value)


def items(value: Any, most: int = MANY) -> list[Any]:
    """A list; of a longer one the last."""
    if not isinstance(value, list):
        raise StrangeAnswer("the server says something else where a list is meant")
    return value[-most:]


def counts(value: Any) -> list[dict[str, Any]]:
    """Words and how many said them, the most frequent first."""
    found = sorted((-whole(how_many), text(each)) for each, how_many in fields(value).items())
    return [{"said": said, "number": -negative} for negative, said in found[:REASONS]]


def campaigns(data: Any) -> dict[str, Any]:
    """Every campaign, and how many devices there are."""
    found = fields(data)
    return {
        "campaigns": [_campaign(fields(each)) for each in items(found["campaigns"])],
        "devices": devices_here(found["devices"]),
    }


def devices_here(data: Any) -> dict[str, int]:
    """How many are enrolled, and how many were heard of lately."""
    found = fields(data)
    return {each: whole(found[each]) for each in ("enrolled", "recent")}


def devices(data: Any) -> list[dict[str, Any]]:
    """Every device that was ever enrolled, the last ones of very many."""
    return [
        {
            "device": text(each["device"], 80),
            "enrolled": text(each["enrolled"], 80),
            "expires": maybe(lambda value: text(value, 80), each["expires"]),
            "revoked": maybe(lambda value: text(value, 80), each["revoked"]),
            "silent": maybe(number, each["silent"]),
        }
        for each in map(fields, items(fields(data)["devices"]))
    ]


def campaign(data: Any) -> dict[str, Any]:
    """All about one campaign."""
    found = fields(data)
    cohort, budget = fields(found["cohort"]), fields(found["budget"])
    return {
        **_campaign(found),
        "purpose": text(found["purpose"]),
        "dataset": text(found["dataset"]),
        "method": text(found["method"], 80),
        "trust": text(found["trust"], 80),
        "price": text(budget["text"], 80),
        "spent": number(found["spent"]),
        "people": whole(cohort["people"]),
        "shards": whole(cohort["shards"]),
        "sampling": text(cohort["sampling"], 80),
        "mode": text(cohort["mode"], 80),
        "missing": whole(found["missing"]),
        "asking": maybe(whole, found["asking"]),
        "rounds": [_round(fields(each)) for each in items(found["rounds"])],
        "running": [_running(fields(each)) for each in items(found["running"])],
        "devices": devices_here(found["devices"]),
    }


def turnout(each: Mapping[str, Any]) -> dict[str, Any]:
    """Who answered a round of a campaign or a study, and who did not."""
    return {
        "survivors": whole(each["survivors"]),
        "shards": counts(each["shards"]),
        "attempts": whole(each["attempts"]),
        "lost": [text(reason) for reason in items(each["lost"], REASONS)],
        "dropped": counts(each["dropped"]),
        "refusals": counts(each["refusals"]),
        "culprits": len(fields(each["culprits"])),
    }


def _campaign(found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name(found["name"]),
        "state": text(found["state"], 80),
        "reason": text(found["reason"]),
        "created": text(found["created"], 80),
        "ended": maybe(lambda value: text(value, 80), found["ended"]),
    }


def _round(each: Mapping[str, Any]) -> dict[str, Any]:
    answered = truth(each["answered"])
    known: dict[str, Any] = {"cells": None, "price": None, "stddev": None}
    if answered:
        known = {"cells": whole(each["cells"]), "price": text(each["price"], 80), "stddev": number(each["stddev"])}
    return {"round": whole(each["round"]), "answered": answered, **known, **turnout(each)}


def _running(each: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{name: whole(each[name]) for name in ("round", "shard", "attempt", "clients", "waiting")},
        "stage": text(each["stage"], 80),
        "until": text(each["until"], 80),
    }


class _Fields(dict[str, Any]):
    def __missing__(self, key: str) -> Any:
        raise StrangeAnswer(f"the server's answer lacks {key}")


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
    frame = answer_table(recipe, answer, assumptions, confidence)
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
