"""Vectors of recipes: which a device answers, what their queries touch, and into which bins somebody's places fall.

`python -m tests.federated.device.recipe_vectors` writes `tests/vectors/device/recipes.json`; a test compares it with
what the code says. A slow test makes many more from another seed: recipes that a hostile server might send, and
queries.
"""

import copy
import json
import random
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from tests.federated.device.sql_grammar import ALLOWED, FIELDS, Grammar

from hazemap.cells import Leaves
from hazemap.codec import dumps
from hazemap.errors import HazemapError
from hazemap.federated.device.account.charges import ReportRequest
from hazemap.federated.device.account.recipe_account import refusal_reasons
from hazemap.federated.device.policy.consent_policy import Policy, restrict_policy
from hazemap.federated.device.recipes.query_sandbox import QuerySandbox
from hazemap.federated.device.recipes.recipe_check import admit, sum_price
from hazemap.federated.device.server_task import parse_task
from hazemap.federated.recipes.event_stream import EventField, EventStream, EventType
from hazemap.federated.recipes.features import Categories, Feature, MapCells, NumericEdges, PrefixTree, StringPrefixes
from hazemap.federated.recipes.policy import (
    AnalysisBudget,
    ApprovedCohortField,
    Carrier,
    DeviceLimit,
    FieldBudget,
    ShippedPolicy,
)
from hazemap.federated.recipes.policy_document import SignedPolicy
from hazemap.federated.recipes.query_class import (
    AnyQueryOverFields,
    ListedQueries,
    ParameterRange,
    QueryTemplate,
    QueryTemplates,
    StreamFieldName,
    StreamSchema,
)
from hazemap.federated.recipes.query_class import FieldType as OfParameter
from hazemap.federated.recipes.recipe import RECIPE_LOG_FORMAT, CohortField, NoMatch, Recipe
from hazemap.federated.recipes.recipe_bins import matches
from hazemap.federated.recipes.sql_query import Parameter, SqlQuery
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.device_tasks import Task, parameters_for
from hazemap.federated.trust.recipe_terms import price_of_sum
from hazemap.privacy.budget import ApproxDP
from hazemap.privacy.local_randomisers import Asymmetric, Symmetric, UnaryEncoding
from hazemap.privacy.signing_identities import Identity
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree

FILE = Path(__file__).parents[2] / "vectors" / "device" / "recipes.json"
BOX = Box(13.2, 52.4, 13.6, 52.6)
TINY = Fraction(1, 10**6)
PURPOSE = "where people are"
SINCE = 1_777_000_000
"""Some days before the other program's tests are, in seconds since 1970."""
LON, LAT, TIME, WORD = (
    StreamFieldName.parse(each) for each in ("places.lon", "places.lat", "places.time", "notes.word")
)
OWN = Policy(people=100, survivors=50, longest=1 << 16)
"""Rules of the device that is compared; the other program has the same by default."""
LISTED = SqlQuery("SELECT lon FROM places WHERE lat > :south", (Parameter("south", 52.5),))
TEMPLATE = QueryTemplate(
    "SELECT count(*), max(lat) FROM places WHERE lon < :east AND lat < :north",
    (
        ParameterRange("east", OfParameter.REAL, 13.0, 14.0),
        ParameterRange("north", OfParameter.REAL, choices=(52.5, 52.6)),
    ),
)


def _analysis(name: str, queries: Any, **changes: Any) -> AnalysisBudget:
    plain = {"purpose": PURPOSE, "epsilon": Fraction(1), "delta": 5 * TINY, "reports": 4, "minimum_cohort": 200}
    told = (ApprovedCohortField("locale", StreamFieldName("notes", "locale")),)
    made = {**plain, "carriers": (Carrier.SECURE_SUMS, Carrier.TWO_SERVERS), "cohort_fields": told, **changes}
    return AnalysisBudget(name=name, queries=queries, **made)


POLICY = ShippedPolicy(
    name="town",
    version=3,
    days=30,
    limits=(DeviceLimit(30, Fraction(5, 2), Fraction(1, 10**5), 20),),
    streams=(
        EventStream(
            "places",
            (
                EventField("time", EventType.TIME, optional=True),
                *(EventField(name, EventType.REAL) for name in ("lon", "lat", "weight")),
                EventField("mark", EventType.REAL, optional=True),
            ),
            keep=90,
        ),
        EventStream(
            "notes",
            (EventField("word", EventType.TEXT), EventField("locale", EventType.CATEGORY, ("en", "dé"))),
            keep=30,
        ),
    ),
    fields=tuple(FieldBudget(each, Fraction(4), Fraction(2), 8 * TINY, 5) for each in (LON, LAT, TIME, WORD)),
    analyses=(
        _analysis("town", AnyQueryOverFields((LON, LAT, TIME, WORD))),
        _analysis("listed", ListedQueries((LISTED,), (LON, LAT))),
        _analysis("templates", QueryTemplates((TEMPLATE,), (LON, LAT), ("count", "max", "glob"))),
    ),
)
PLACES = [
    [lon, lat, None if number % 5 == 0 else time]
    for number, (lon, lat, time) in enumerate(
        zip(
            np.random.default_rng(3).uniform(13.1, 13.7, 25).round(5).tolist(),
            np.random.default_rng(4).uniform(52.35, 52.65, 25).round(5).tolist(),
            np.random.default_rng(5).uniform(SINCE, SINCE + 5 * 86_400, 25).round(2).tolist(),
            strict=True,
        )
    )
]


class _Places:
    """The events of the one stream that has any."""

    def events(self, stream: str, fields: tuple[str, ...]) -> list[list[Any]]:
        known = {"weight": 1.0, "mark": None}
        kept = sorted(PLACES, key=lambda place: (place[2] or 0) // 86_400) if stream == "places" else []
        rows = [
            {**known, "lon": lon, "lat": lat, "time": None if time is None else int(time // 1)}
            for lon, lat, time in kept
        ]
        return [[row[name] for name in fields] for row in rows]


def recipe(sql: str, *features: Feature, **changes: Any) -> Recipe:
    """One that the policy lets ask, with these changes."""
    query = SqlQuery(sql, changes.pop("parameters", ()))
    plain = {"id": "here", "version": 1, "analysis": "town", "purpose": PURPOSE, "query": query, "cohort": ()}
    prices = {"local_epsilon": Fraction(3), "epsilon": Fraction(3, 4), "delta": TINY, "minimum_cohort": 500}
    return Recipe(**{**plain, "features": features, **prices, **changes})


def recipes() -> Iterator[tuple[str, Recipe, dict[str, Any]]]:
    """What each is about, the recipe, and how its round differs."""
    tree, hexagons = Quadtree.around(BOX, 5), Hexagons(BOX, 6, 8)
    squares = Feature("place", MapCells(Leaves(tree, np.append(tree.grid(2).ravel(), tree.grid(3)[:2, :3].ravel()))))
    cells = Feature("cell", MapCells(Leaves(hexagons, hexagons.root)))
    lons = Feature("lon", NumericEdges((13.2, 13.3, 13.4, 13.5)))
    both, counted = "SELECT lon, lat FROM places", Feature("n", Categories((0, 1, 25, 1 << 40)))
    words = Feature("word", PrefixTree(("",), ("so", "bé")))
    letters = Feature("word", StringPrefixes(("so", "b"), "abé", 2))
    yield "squares", recipe(both, squares), {}
    yield "hexagons", recipe(both, cells), {}
    yield "hexagons, a random bin for none", recipe(both, cells, no_match=NoMatch.RANDOM), {}
    yield "two features", recipe("SELECT lon, lat, lon FROM places", squares, lons), {}
    yield "counts", recipe("SELECT count(*) FROM places", counted), {}
    yield "a window", recipe("SELECT ntile(4) OVER (ORDER BY lon) FROM places WHERE lat > 52.5", counted), {}
    yield "with", recipe("WITH a(x) AS (SELECT max(lon) FROM places GROUP BY round(lat, 1)) SELECT x FROM a", lons), {}
    hours = Feature("hour", NumericEdges((0, 6, 12, 18, 24)))
    yield "hours", recipe("SELECT time % 86400 / 3600, typeof(time) = 'integer' FROM places", hours, counted), {}
    yield "the last hour", recipe("SELECT max(time) % 86400 / 3600 FROM places WHERE time < 1e12", hours), {}
    yield "words of nobody", recipe("SELECT word FROM notes", words), {}
    yield "letters", recipe("SELECT 'so' || substr('bé', 1, 1) || typeof(lon) FROM places", letters), {}
    yield "texts", recipe("SELECT word, lon FROM notes, places", words, lons), {}
    yield "parameters", recipe("SELECT lon FROM places WHERE lat < :n", lons, parameters=(Parameter("n", 52.55),)), {}
    yield "listed", recipe(LISTED.text, lons, analysis="listed", parameters=LISTED.parameters), {}
    yield "not listed", recipe(LISTED.text + " ", lons, analysis="listed", parameters=LISTED.parameters), {}
    yield (
        "listed, of another type",
        recipe(LISTED.text, lons, analysis="listed", parameters=(Parameter("south", 52),)),
        {},
    )
    made = {"analysis": "templates", "parameters": (Parameter("east", 13.4), Parameter("north", 52.6))}
    yield "a template", recipe(TEMPLATE.text, counted, lons, **made), {}
    outside = {**made, "parameters": (Parameter("east", 14.5), Parameter("north", 52.6))}
    yield "a template, outside", recipe(TEMPLATE.text, counted, lons, **outside), {}
    asked = (CohortField("locale", ("en", "dé")),)
    yield "a cohort", recipe(both, squares, cohort=asked), {}
    yield "an unknown cohort", recipe(both, squares, cohort=(CohortField("town", ("x",)),)), {}
    yield (
        "coins",
        recipe(both, squares, randomiser=UnaryEncoding(Fraction(3, 5), Fraction(1, 10)), local_epsilon=Fraction(4)),
        {},
    )
    yield "symmetric", recipe(both, squares), {"randomiser": Symmetric(Fraction(3, 2))}
    yield "quieter", recipe(both, squares), {"randomiser": Asymmetric(Fraction(2))}
    yield "an unknown analysis", recipe(both, squares, analysis="country"), {}
    yield "another purpose", recipe(both, squares, purpose="to see"), {}
    yield "two servers", recipe(both, squares, carrier=Carrier.TWO_SERVERS), {}
    yield "too cheap", recipe(both, squares, epsilon=Fraction(1, 10)), {}
    yield "too few people", recipe(both, squares), {"people": 300}
    yield (
        "fewer than the analysis lets be summed",
        recipe(both, squares, minimum_cohort=100, epsilon=Fraction(1)),
        {"people": 180},
    )
    yield "too loud", recipe(both, squares, local_epsilon=Fraction(9, 2), epsilon=Fraction(1)), {}
    yield "dearer than the analysis", recipe(both, squares, epsilon=Fraction(3, 2)), {}
    yield "a larger δ", recipe(both, squares, delta=6 * TINY), {}
    yield "a field without a budget", recipe("SELECT mark FROM places", lons), {}
    yield "another function", recipe("SELECT hex(lon) FROM places", lons), {}
    yield "a table of SQLite", recipe("SELECT lon FROM places, sqlite_master", lons), {}
    yield "no field", recipe("SELECT 1", counted), {}
    yield "too many columns", recipe("SELECT lon, lat FROM places", lons), {}
    yield "no SQL", recipe("SELECT lon FROM FROM places", lons), {}


def task_text(asked: Recipe, people: int = 1_000, **changes: Any) -> str:
    """The task of a round that asks a recipe."""
    return dumps(Task.asking(asked, "study", 1, Cohort(people, people), budget=ApproxDP(2, 10 * TINY), **changes))


def verdict(text: str) -> dict[str, Any] | None:
    """What a device with `POLICY` and its own rules says of a task; None where it refuses."""
    try:
        task = parse_task(text)
        if task.recipe is None or task.randomiser is None:
            return None
        terms = parameters_for(task, bytes(32), task.cohort.shard, bytes(32), bytes(32))
        if OWN.refusal(task, terms):
            return None
        policy = restrict_policy(POLICY, OWN)
        admitted = admit(task.recipe, policy)
        price = sum_price(task.recipe, task.randomiser, terms.noise.parties, policy.accounting)
        request = ReportRequest.of(task.recipe, admitted.touched, price, bytes(32))
        request = ReportRequest(**{**vars(request), "cohort": terms.survivors})
        if any(refusal_reasons(request, policy, datetime.now(UTC))):
            return None
    except HazemapError:
        return None
    except Exception:  # what a device cannot deal with, it refuses
        return None
    analysis = policy.analysis(task.recipe.analysis)
    outcome = QuerySandbox(tuple(each.schema for each in policy.streams), analysis.queries).run(admitted, _Places())
    bins = task.recipe.bins_of(outcome.rows)
    return {
        "recipe": task.recipe.digest,
        "size": task.recipe.size,
        "touched": [str(each) for each in admitted.touched],
        "terms": terms.to_bytes().hex(),
        "bins": bins[matches(task.recipe, bins)].tolist(),
    }


def tasks() -> list[dict[str, Any]]:
    """Rounds that a device answers, and others that it refuses."""
    found = [(about, task_text(asked, **changes)) for about, asked, changes in recipes()]
    return [{"about": about, "task": text, "answer": verdict(text)} for about, text in found]


HOSTILE: tuple[Any, ...] = (
    *(0, 1, -1, 2, 52, 1.0, -0.0, 13.5, 1e300, 1 << 63, 1 << 70, None, True, [], {}, [1]),
    *("", " ", "x", "SELECT", "é", "\u0301", "\x00", "a\u200bb", "13.5", "places.lon", "lower", "(other)", "rowid"),
    *("SELECT lon FROM places", "SELECT lat, lon FROM places -- x"),
    *({"fraction": each} for each in ("1/2", "2/4", "0", "-1", "1/1000000")),
    *({"NoMatch": "none"}, {"Carrier": "secure sums"}, {"Mode": 1}, {"Asymmetric": {"epsilon": {"fraction": "3"}}}),
)


def hostile(seed: int, number: int) -> list[dict[str, Any]]:
    """Tasks of recipes in which something was changed, by somebody who means no good."""
    chance = random.Random(seed)
    sound = [json.loads(task_text(asked, **changes)) for _, asked, changes in recipes() if "people" not in changes]
    found = []
    while len(found) < number:
        task = copy.deepcopy(chance.choice(sound))
        for _ in range(chance.choice((1, 1, 1, 2))):
            _change(task, chance)
        text = json.dumps(task, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        found.append({"about": f"hostile {seed} {len(found)}", "task": text, "answer": verdict(text)})
    return found


def _change(task: Any, chance: random.Random) -> None:
    """Change one value somewhere below."""
    at, path = task, []
    while isinstance(at, dict | list) and at and (len(path) < 3 or chance.random() < 0.85):
        key = chance.choice([*at] if isinstance(at, dict) else range(len(at)))
        path.append((at, key))
        at = at[key]
    holder, key = path[-1]
    match chance.randrange(5):
        case 0 if isinstance(holder, dict):
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[chance.choice(("again", "x", "randomiser", "__proto__"))] = holder[key]
        case 2 if isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        case 3 if isinstance(at, int | float) and not isinstance(at, bool):
            holder[key] = at + chance.choice((1, -1, 0.5))
        case _:
            holder[key] = copy.deepcopy(chance.choice(HOSTILE))


ASKED = (
    "SELECT ngram FROM keyboard",
    "select KEYBOARD.ngram from Keyboard",
    "SELECT count(*) FROM keyboard",
    "SELECT 1",
    "SELECT secret FROM keyboard",
    "SELECT * FROM keyboard",
    "SELECT rowid FROM keyboard",
    "SELECT pin FROM vault",
    "SELECT count(*) FROM vault",
    "SELECT age FROM profile, vault",
    "SELECT age FROM profile WHERE city = 'x'",
    "SELECT age FROM profile NATURAL JOIN keyboard",
    "SELECT age FROM profile JOIN keyboard USING (time)",
    "SELECT p.age, k.speed FROM profile p JOIN keyboard k ON p.age = k.time",
    "SELECT age FROM profile -- all",
    "SELECT age FROM profile /* all */",
    "SELECT age FROM profile; SELECT 1",
    'SELECT "age" FROM profile',
    "SELECT [age] FROM profile",
    "SELECT `age` FROM profile",
    "SELECT 'age' FROM profile",
    "SELECT age FROM profile'",
    "SELECT random() FROM profile",
    "SELECT age, current_date FROM profile",
    "SELECT age FROM profile, sqlite_master",
    "SELECT age FROM profile, pragma_table_list",
    "SELECT value FROM profile, json_each('[1]')",
    "VALUES (1)",
    "WITH a AS (SELECT age FROM profile) SELECT a.age FROM a, a b",
    "WITH vault AS (SELECT age FROM profile) SELECT * FROM vault",
    "WITH RECURSIVE a(x) AS (SELECT age FROM profile UNION SELECT x + 1 FROM a) SELECT x FROM a",
    "SELECT lower(ngram), rank() OVER (ORDER BY speed) FROM keyboard GROUP BY ngram HAVING count(*) > 1 LIMIT 3",
    "SELECT (SELECT max(time) FROM keyboard) - age FROM profile WHERE EXISTS (SELECT 1 FROM keyboard)",
    "SELECT ngram FROM keyboard WHERE ngram LIKE 'a%'",
    "SELECT ngram FROM keyboard WHERE ngram GLOB 'a*' OR length(ngram) > :least",
    "SELECT age FROM profile UNION SELECT time FROM keyboard ORDER BY 1",
    "SELECT age FROM main.profile INDEXED BY sqlite_autoindex",
)
"""Queries over the streams of the grammar that every SQLite takes alike."""


def queries(texts: Iterable[str]) -> list[dict[str, Any]]:
    """What queries touch in the streams of the grammar; null where they are refused."""
    found = []
    for text in texts:
        try:
            touched = [str(name) for name in SANDBOX.admit(SqlQuery(text)).touched]
        except HazemapError:
            touched = None
        found.append({"text": text, "touched": touched})
    return found


_KINDS = {"time": "integer", "age": "integer", "speed": "real"}
STREAMS = tuple(
    StreamSchema.of(name, **{field: _KINDS.get(field, "text") for field in fields}) for name, fields in FIELDS.items()
)
SANDBOX = QuerySandbox(STREAMS, AnyQueryOverFields(tuple(map(StreamFieldName.parse, ALLOWED))))


def prices() -> list[dict[str, str | int]]:
    """What sums tell, by the exact law of the sum."""
    laws = (Asymmetric(Fraction(3)), Symmetric(Fraction(3, 2)), UnaryEncoding(Fraction(3, 5), Fraction(1, 10)))
    found = []
    for law, task in zip(laws, ("Asymmetric", "Symmetric", "UnaryEncoding"), strict=True):
        for honest in (60, 700, 5_000):
            price = price_of_sum(law, honest, TINY)
            fields = json.loads(dumps(law))
            found.append(
                {"law": fields, "kind": task, "honest": honest, "delta": str(TINY), "epsilon": str(price.epsilon)}
            )
    return found


def log_lines(text: str) -> list[str]:
    """A public log of three entries, of which the second is a round of this task."""
    task, lines, previous = parse_task(text), [], bytes(32).hex()
    asked = task.recipe
    about = {
        "name": asked.id,
        "version": asked.version,
        "sha256": asked.digest,
        "study": task.campaign,
        "round": task.round,
    }
    for seq, kind in enumerate(("policy", "recipe", "stop"), 1):
        fields = {"seq": seq, "time": "2026-05-01T12:00:00+00:00", "kind": kind, **about}
        fields |= {
            "people": task.cohort.people,
            "task": task.digest.hex() if kind == "recipe" else "",
            "previous": previous,
        }
        fields |= {"study": "éther"} if kind == "stop" else {}
        previous = RECIPE_LOG_FORMAT.digest(RECIPE_LOG_FORMAT.text(fields)).hex()
        lines.append(json.dumps({**fields, "digest": previous}, separators=(",", ":")))
    return lines


def grown(seed: int, number: int) -> list[str]:
    """Queries of the grammar."""
    return [Grammar(each).query() for each in range(seed, seed + number)]


def cases(tasks_: list[dict[str, Any]], texts: Iterable[str]) -> dict[str, list[Any]]:
    """Everything that the other program is compared by."""
    signed = SignedPolicy.sign(POLICY, Identity.from_bytes(bytes(range(32))))
    first = tasks_[0]["task"]
    return {
        "policy": [{"text": signed.to_json(), "key": signed.key.hex()}],
        "places": PLACES,
        "tasks": tasks_,
        "queries": queries(texts),
        "prices": prices(),
        "streams": [
            {"name": each.name, "fields": [[one.name, one.type.value] for one in each.fields]} for each in STREAMS
        ],
        "allowed": list(ALLOWED),
        "log": log_lines(first),
    }


def text() -> str:
    """The file."""
    lists = {
        name: ",\n".join(f"  {json.dumps(case)}" for case in found) for name, found in cases(tasks(), ASKED).items()
    }
    return "{\n" + ",\n".join(f' "{name}": [\n{lines}\n ]' for name, lines in lists.items()) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
