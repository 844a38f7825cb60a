"""Tasks with recipes that a hostile server might send, and what a device does about each: a part of `hostile_tasks`."""

import json
import random
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from hazemap import codec
from hazemap.errors import Refused
from hazemap.federated.device.account.charges import ReportRequest
from hazemap.federated.device.account.recipe_account import refusal_reasons
from hazemap.federated.device.recipes.query_sandbox import Event
from hazemap.federated.device.recipes.recipe_answer import reported_bin
from hazemap.federated.device.recipes.recipe_check import admit, sum_price
from hazemap.federated.protocols.secure_aggregation.session_parameters import SessionParameters
from hazemap.federated.recipes.event_stream import EventValue
from hazemap.federated.recipes.policy import Carrier, DeviceLimit
from hazemap.federated.recipes.policy_document import example
from hazemap.federated.recipes.query_class import AnyQueryOverFields, StreamFieldName
from hazemap.federated.recipes.recipe_file import EXAMPLE, recipe_from_toml
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.device_tasks import Task
from hazemap.privacy.random_stream import Stream

MOST = Fraction(1_000)
POLICY = example()
POLICY = replace(
    POLICY,
    limits=(DeviceLimit(30, MOST, Fraction(1), 1_000),),
    fields=tuple(
        replace(each, local_epsilon=Fraction(64), epsilon=MOST, delta=Fraction(1, 2)) for each in POLICY.fields
    ),
    analyses=tuple(
        replace(
            each,
            epsilon=MOST,
            delta=Fraction(1, 2),
            minimum_cohort=1,
            carriers=tuple(Carrier),
            queries=AnyQueryOverFields(tuple(field.field for field in POLICY.fields)),
        )
        for each in POLICY.analyses
    ),
)
"""A policy that refuses as little as it can, so that much is tried."""

RECIPE = recipe_from_toml(EXAMPLE)
TEMPLATE = json.loads(codec.dumps(Task.asking(RECIPE, "study", 1, Cohort(20_000, 20_000 // 2))))
NOW = datetime(2026, 3, 1, tzinfo=UTC)

QUERIES = (
    "SELECT age, ngram FROM keyboard, profile",
    "SELECT profile.age, keyboard.ngram FROM keyboard, profile WHERE keyboard.ngram >= :first",
    "SELECT max(age), max(ngram) FROM keyboard, profile",
    "SELECT abs(min(length(a.ngram), 0) - 9223372036854775807 - 1), b.ngram FROM keyboard a, keyboard b",
    "SELECT count(*), a.ngram FROM keyboard a, keyboard b, keyboard c, keyboard d, keyboard e",
    "SELECT ngram, ngram FROM keyboard UNION ALL SELECT age, ngram FROM profile, keyboard",
    "SELECT locale, locale FROM profile",
    "SELECT random(), ngram FROM keyboard",
    "SELECT age FROM profile",
    "SELECT 1, 2",
    "DROP TABLE keyboard",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, i FROM n",
    "SELECT " + "(" * 500 + "age" + ")" * 500 + ", ngram FROM profile, keyboard",
    "SELECT age, ngram FROM profile, keyboard ORDER BY ngram" + ", ngram" * 60,
)
COINS = (("3/5", "2/5"), ("1/2", "1/10"), ("1/2", "1/4"), ("1/2", "4611686018427387903/9223372036854775808"))
NUMBERS = ("1/2", "1", "2", "4", "19", "20", "21", "1/1048576", "1/1000003", "0", "-1", "1/" + "9" * 30)
DELTAS = ("0", "1/1000", "1/1000000", "1/999999999999999999", "1/2", "1")


@dataclass(frozen=True)
class OnePerson:
    """Somebody's events, in memory."""

    streams: dict[str, dict[str, list[EventValue]]]

    def events(self, stream: str, fields: tuple[str, ...]) -> Iterable[Event]:
        """The values of these fields."""
        own = self.streams.get(stream, {})
        return list(zip(*(own.get(each, []) for each in fields), strict=True))

    def latest(self, name: StreamFieldName) -> EventValue:
        """The last of them."""
        return (self.streams.get(name.stream, {}).get(name.field) or [None])[-1]


TYPING = OnePerson(
    {
        "keyboard": {"ngram": ["hello world today", "i got it"] * 40, "perplexity": [1.5] * 80, "at": [1] * 80},
        "profile": {"age": [33], "locale": ["en_GB"]},
    }
)
NOTHING = OnePerson({})


def task(rng: random.Random) -> dict[str, Any]:
    """A task that asks a recipe and mostly hangs together."""
    found = deepcopy(TEMPLATE)
    fields = found["Task"]
    recipe = fields["question"]["Query"]["encoder"]["RecipeBins"]["recipe"]["Recipe"]
    recipe["query"]["SqlQuery"]["text"] = rng.choice(QUERIES)
    if ":first" not in recipe["query"]["SqlQuery"]["text"]:
        recipe["query"]["SqlQuery"]["parameters"] = []
    people = int(20 * 500 ** rng.random())
    cohort = fields["cohort"]["Cohort"]
    cohort |= {"people": people, "shard": people, "mode": {"Mode": rng.choice((1, 2))}}
    recipe["minimum_cohort"] = rng.choice((1, 1, people // 2 + 1, 10_000))
    local = rng.choice(NUMBERS[:6])
    epsilon, delta = rng.choice((local, local, rng.choice(NUMBERS))), rng.choice(DELTAS[1:4] * 4 + DELTAS)
    recipe |= {name: {"fraction": text} for name, text in zip(PRICES, (local, epsilon, delta), strict=True)}
    recipe["no_match"] = {"NoMatch": rng.choice(("none", "random"))}
    recipe["analysis"] = rng.choice(("next_word", "next_word", "next_word", "adverts"))
    price = {"epsilon": {"fraction": epsilon}}
    both = {"PureDP": price} if delta == "0" else {"ApproxDP": price | {"delta": {"fraction": delta}}}
    fields |= {"price": both, "budget": both, "randomiser": randomiser(rng, local)}
    if fields["randomiser"] is None and rng.random() < 0.5:
        del fields["randomiser"]
    return found


PRICES = ("local_epsilon", "epsilon", "delta")


def randomiser(rng: random.Random, local: str) -> dict[str, Any] | None:
    """One that hides as much as is said, more, less, or nothing."""
    kind = rng.choice((*["Asymmetric"] * 12, "Symmetric", "UnaryEncoding", None))
    if kind is None:
        return None
    if kind == "UnaryEncoding":
        keep, turn_on = rng.choice(
            (("3/5", "2/5"), ("1/2", "1/10"), ("1/2", "4611686018427387903/9223372036854775808"))
        )
        return {kind: {"keep": {"fraction": keep}, "turn_on": {"fraction": turn_on}}}
    return {kind: {"epsilon": {"fraction": rng.choice((*[local] * 9, rng.choice(NUMBERS)))}}}


def answered(found: Task, terms: SessionParameters, person: OnePerson) -> tuple[str, int]:
    """What a device whose person this is says to a recipe, once its owner's rules let it: all that others see."""
    recipe, law = found.recipe, found.randomiser
    if recipe is None or law is None:
        raise Refused("this task asks no recipe")
    admitted = admit(recipe, POLICY)
    price = sum_price(recipe, law, terms.noise.parties, POLICY.accounting)
    request = replace(ReportRequest.of(recipe, admitted.touched, price, terms.session), cohort=terms.survivors)
    for reason in refusal_reasons(request, POLICY, NOW):
        return f"refused: {reason}", 0
    place = reported_bin(recipe, admitted, POLICY, person, Stream.from_os())
    bits = law.report(Stream.from_os(), place, recipe.size)
    return f"answered a recipe: {bits.dtype}", len(bits)
