"""Verdicts on bytes from outside: what a device says of tasks, announcements, messages, policies and logs, and why.

`python -m tests.device.verdicts` writes `tests/vectors/device/verdicts.json`: the one list of rules, and a case or more
of each. A test compares it with what the code says, and the device in TypeScript has to say the same. A slow test, and
`research/device_verdicts.py` for longer, let both judge the same mutations of what is valid (`mutated`).

A verdict is *accept*, with everything that follows from the bytes; *malformed*, where they are nothing that a server
may write; *refused*, by a rule. The other device may also say *unknown*: a kind that it does not answer (`ELSEWHERE`).
"""

import base64
import copy
import json
import random
import subprocess
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from hazemap.codec import parsed
from hazemap.device.allowed_policy import allowed
from hazemap.device.carried_answers import carried_task
from hazemap.device.carried_policy import carried_refusal
from hazemap.device.consent_policy import Policy
from hazemap.device.public_recipe_log import PublicRecipeLog
from hazemap.device.query_sandbox import QuerySandbox
from hazemap.device.recipe_account import reasons_against
from hazemap.device.recipe_check import admit, sum_price
from hazemap.device.report_request import ReportRequest
from hazemap.device.server_task import ReadTasks, ServerTask
from hazemap.engines.memory import MemoryTable
from hazemap.errors import CodecError, HazemapError, InputError, Refused
from hazemap.protocols.secure_aggregation.messages import Invitation, decode
from hazemap.protocols.secure_aggregation.session_parameters import SessionParameters
from hazemap.recipes.policy_document import LIMITS, canonical, from_signed
from hazemap.recipes.recipe_bins import matches
from hazemap.recipes.recipe_log_format import FORMAT
from hazemap.recipes.signed_policy import SignedPolicy
from hazemap.trust.carried_tasks import CarriedTask
from hazemap.trust.checked_contribution import contribution
from hazemap.trust.device_tasks import Task, parameters_for
from hazemap.trust.two_server_tasks import round_tasks

VECTORS = Path(__file__).parents[1] / "vectors"
FILE = VECTORS / "device" / "verdicts.json"

OWN: tuple[dict[str, Any], ...] = (
    {"longest": 65_536},
    {"people": 2, "survivors": 1, "corrupt": "0", "campaign": "1000000000000", "period": "1000000000000",
     "longest": 65_536, "finest": 0, "modes": ["malicious", "semi-honest"], "local": "20",
     "aggregators": ["https://one.example/", "https://two.example:8443/dap/"]},
    {"people": 150, "survivors": 120, "corrupt": "1/20", "finest": 300, "longest": 64, "times": False,
     "aggregators": ["https://one.example/"]},
)  # fmt: skip
"""Rules of three people: as they are by default, as loose as they may be, and strict."""

ROWS: tuple[list[list[float | None]], ...] = (
    [[13.25 + i / 97, 52.42 + i / 131, 1_777_000_000 + 7_001.5 * i] for i in range(25)],
    [[13.3, 52.5, None]],
    [[180, 0, 0], [-180, 0, -1], [0, 90, 1e300], [0, -90, -1e300], [13.4, 85.06, 1e15], [13.4, 52.5, -62_135_596_801],
     [None, 52.5, 5], [13.4, None, 5], [1e308, 52.5, 5], [13.4, -1e308, 5], [2.3, 48.85, 253_402_300_800], [-0.0, 0, -0.5]],
)  # fmt: skip
"""Somebody's places, somebody's one place, and places that no map has and times that no clock shows."""

WORDS = Path(__file__).parents[1] / "vectors" / "device" / "recipes.json"
TASKS = ReadTasks()


def person(rules: dict[str, Any]) -> Policy:
    """A person's rules from those of the other device, whose file is JSON."""
    exact = {name: Fraction(rules[name]) for name in ("corrupt", "campaign", "period", "local") if name in rules}
    lists = {name: tuple(rules[name]) for name in ("modes", "aggregators") if name in rules}
    return Policy(**{**rules, **exact, **lists})


PEOPLE = tuple(map(person, OWN))


@cache
def recipes() -> dict[str, Any]:
    """The shipped policy of the vectors, and the places."""
    return json.loads(WORDS.read_text())


@cache
def shipped() -> Any:
    """The policy that the device has accepted."""
    return SignedPolicy.from_json(recipes()["policy"][0]["text"]).policy


class _Places:
    """The events of the one stream that has any."""

    def events(self, stream: str, fields: tuple[str, ...]) -> list[list[Any]]:
        known = {"weight": 1.0, "mark": None}
        kept = sorted(recipes()["places"], key=lambda place: (place[2] or 0) // 86_400) if stream == "places" else []
        rows = [
            {**known, "lon": lon, "lat": lat, "time": None if time is None else int(time // 1)}
            for lon, lat, time in kept
        ]
        return [[row[name] for name in fields] for row in rows]


def judged(kind: str, content: bytes, policy: int = 0) -> dict[str, Any]:
    """The verdict of this device, by the rules of one of the people."""
    try:
        return {"verdict": "accept", "answer": _JUDGES[kind](content, PEOPLE[policy])}
    except Refused as error:
        return {"verdict": "refused", "words": str(error)}
    except HazemapError as error:
        return {"verdict": "malformed", "words": str(error)}
    except Exception as error:
        return {"verdict": "fault", "words": f"{type(error).__name__}: {error}"}


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise CodecError("this is not UTF-8") from None


def _work(content: bytes, _: Policy) -> dict[str, Any]:
    found = ServerTask.from_json(content)
    task = None if found.task is None else sha256(found.task.encode()).hexdigest()
    until = int(found.until * 1_000 // 1)
    return {"session": found.session.hex(), "stage": found.stage, "task": task, "message": found.message.hex(), "until": until}


def _task(content: bytes, policy: Policy) -> dict[str, Any]:
    task = TASKS.find(_text(content)).task
    clients = min(task.cohort.shard, task.cohort.people, 10_000)
    try:
        terms = parameters_for(task, bytes(32), clients, bytes(32), bytes(32))
    except InputError as error:
        raise Refused(f"no session of {clients} people can keep what this task promises: {error}") from None
    if reason := policy.refusal(task, terms):
        raise Refused(reason)
    answer = {"digest": task.digest.hex(), "terms": terms.to_bytes().hex(), "size": terms.size}
    return answer | (_sums(task) if task.recipe is None else _recipe(task, terms, policy))


def _sums(task: Task) -> dict[str, Any]:
    key = sha256(bytes(32) + task.campaign.encode()).digest()
    found: list[Any] = []
    for rows in ROWS:
        columns = np.array([[np.nan if each is None else each for each in row] for row in rows], dtype=np.float64).T
        names = {"lon": columns[0], "lat": columns[1], "time": columns[2]}
        more = {"weight": np.ones(len(rows)), "mark": np.full(len(rows), np.nan)}
        table = MemoryTable(np.zeros(len(rows), dtype=np.int64), names | more, key)
        sums, trouble = contribution(task.question.encoder, lambda table=table: table)
        found.append(trouble or [[int(at), int(sums[at])] for at in np.flatnonzero(sums)])
    return {"sums": found}


def _recipe(task: Task, terms: SessionParameters, own: Policy) -> dict[str, Any]:
    policy, recipe = allowed(shipped(), own), task.recipe
    if recipe is None or task.randomiser is None:
        raise Refused("a recipe is answered by reports that are randomised")
    admitted = admit(recipe, policy)
    price = sum_price(recipe, task.randomiser, terms.noise.parties, policy.accounting)
    request = ReportRequest.of(recipe, admitted.touched, price, bytes(32))
    request = ReportRequest(**{**vars(request), "cohort": terms.survivors})
    for reason in reasons_against(request, policy, datetime.now(UTC)):
        raise Refused(reason)
    queries = policy.analysis(recipe.analysis).queries
    outcome = QuerySandbox(tuple(each.schema for each in policy.streams), queries).run(admitted, _Places())
    bins = recipe.bins_of(outcome.rows)
    touched = [str(each) for each in admitted.touched]
    return {"recipe": recipe.digest, "touched": touched, "bins": bins[matches(recipe, bins)].tolist()}


def _announcement(content: bytes, policy: Policy) -> dict[str, Any]:
    carried: CarriedTask = carried_task(_text(content))
    if reason := carried_refusal(policy, carried):
        raise Refused(reason)
    try:
        tasks = round_tasks(carried)
    except HazemapError as error:
        raise Refused(str(error)) from None
    found = {"digest": sha256(content).hexdigest(), "task": tasks[0].id.hex(), "configuration": tasks[0].configuration.hex()}
    return found | _sums(carried.task)


def _message(content: bytes, _: Policy) -> list[Any]:
    found = decode(content)
    kind = type(found).__name__
    return [kind, found.terms.to_bytes().hex(), found.position] if isinstance(found, Invitation) else [kind]


def _policy(content: bytes, _: Policy) -> str:
    text = _text(content)
    found = from_signed(parsed(text, LIMITS))
    return sha256(canonical(found)).hexdigest()


def _log(content: bytes, _: Policy) -> list[Any]:
    log = PublicRecipeLog()
    try:
        lines = [line for line in content.decode("ascii").split("\n") if line]
    except UnicodeDecodeError:
        raise CodecError("it is not written in ASCII") from None
    log.take(lines)
    return [log.head.entries, log.head.digest]


_JUDGES = {"work": _work, "task": _task, "announcement": _announcement, "message": _message, "policy": _policy, "log": _log}

ELSEWHERE = frozenset(
    "Stack Sketch Wavelet Values Sides Grids Cuts Districts Marked Parcels CutDistricts Measured Magnitudes Valued "
    "TimedTree OneVote randomiser RecipeBins ByOneReport ByShuffler Everything Octaves Stretches AllSlots EachSlot "
    "SidesInSlots zone zcdp work".split()
)
"""Kinds that the other device does not answer: it looks no further, and says which."""


def differs(ours: dict[str, Any], theirs: dict[str, Any], content: bytes) -> bool:
    """Whether two devices do not agree. *Unknown* is no verdict, if the kind is one of these and is in the text."""
    if theirs["verdict"] == "unknown":
        kind = theirs["kind"]
        return kind not in ELSEWHERE or not (kind == "work" or kind.encode() in content)
    return {key: ours.get(key) for key in ("verdict", "answer")} != {key: theirs.get(key) for key in ("verdict", "answer")}


def _read(name: str) -> Any:
    return json.loads((VECTORS / name).read_text())


@cache
def valid() -> dict[str, tuple[bytes, ...]]:
    """What each kind of message is made from: valid ones, and sound ones that are refused."""
    tasks = [each["task"] for name in ("tasks", "hexagons", "slots", "recipes") for each in _read(f"device/{name}.json")["tasks"]]
    small = [each for each in tasks if len(each) < 4_000]
    rounds = [each["announcement"] for each in _read("device/reports.json")["reports"]]
    sessions = [_read(f"secure_aggregation/session-{mode}.json") for mode in ("malicious", "semi-honest")]
    messages = {text for session in sessions for text in _texts(session) if text.startswith("01") and len(text) > 68}
    work = [
        {"session": "ab" * 32, "stage": stage, "task": task, "message": base64.b64encode(bytes(size)).decode(), "until": until}
        for stage, task, size, until in (
            (1, small[0], 300, "2026-05-01T12:00:00+00:00"),
            (4, None, 0, "2026-05-01T12:00:00.123456Z"),
            (0, rounds[0], 0, "2026-05-01T23:59:59-09:30"),
        )
    ]
    policy = json.loads(recipes()["policy"][0]["text"])["policy"]
    return {
        "task": tuple(each.encode() for each in (*small, *tasks[::9])),
        "announcement": tuple(each.encode() for each in rounds),
        "work": tuple(json.dumps(each).encode() for each in work),
        "message": tuple(bytes.fromhex(each) for each in sorted(messages)),
        "policy": (json.dumps(policy, sort_keys=True, separators=(",", ":")).encode(),),
        "log": ("\n".join(recipes()["log"]).encode(),),
    }


def _texts(found: Any) -> Iterator[str]:
    if isinstance(found, str):
        if len(found) < 20_000 and all(each in "0123456789abcdef" for each in found) and len(found) % 2 == 0:
            yield found
    elif isinstance(found, dict | list):
        for each in found.values() if isinstance(found, dict) else found:
            yield from _texts(each)


SHARES = {"task": 50, "announcement": 14, "policy": 12, "log": 8, "work": 8, "message": 8}
"""Of a hundred cases, how many are of each kind."""

_LETTERS = "aZ09 .-_/:#*é\u00a0\u0301\u200b\u2028\ufeff\u0000\n\t\u00ad\u3000\U0001f30d\u0130\u00df\ud7ff\ufffd\uffff\U0010ffff'\"\\"
_NUMBERS = (
    *(0, 1, -1, 2, 3, 7, 15, 16, 24, 25, 64, 100, 120, 10_000, 10_001, (1 << 31) - 1, 1 << 31, (1 << 40) + 1, (1 << 53) - 1),
    *((1 << 53) + 1, 1 << 62, 1 << 63, (1 << 64) - 1, 1 << 64, -(1 << 64), (1 << 64) + 1, 10**399, -(10**400), 10**4_299),
    *(0.0, -0.0, 1.0, 0.5, 13.4, 52.5, -180.0, 180.0, 90.0, 2.0**-44, 5e-324, 1e-300, 1e15, 1e16, 1e22, 1e300, 1.7976931348623157e308),
)  # fmt: skip
_FRACTIONS = (
    *("0", "1", "-1", "1/2", "2/4", "1/3", "1/10", "1/20", "9/10", "99/100", "999999/1000000", "3", "20", "1000000000000"),
    *("1/1000000", "1/1048576", "1/1000003", "01", "1/0", "1/01", "+1", "1.5", "1e3", " 1", "1/", "-0", "0/1", "64", "4/3"),
    *("1/" + "9" * 600, "9" * 640, "9" * 641, "9" * 30 + "/" + "7" * 29, "18446744073709551616", "1/18446744073709551615"),
)
_THINGS: tuple[Any, ...] = (
    *(None, True, False, "", [], {}, [0], [[]], "people", "none", "random", "secure sums", "two servers", "malicious"),
    *({"Mode": 1}, {"Mode": 2}, {"Mode": 3}, {"again": 0}, {"array": ["uint64", []]}, {"array": ["uint64", [0, 1]]}, {"fraction": 1}),
    *({"AtMostRows": {"most": 1, "nowhere": False}}, {"AtMostCells": {"most": 3, "nowhere": "people"}}, {"OneVote": {"scale": 60, "nowhere": True}}),
    *({"Weekdays": {"zone": "Europe/Berlin"}}, {"Clock": {"edges": [0, 43_200], "zone": "UTC"}}, {"Always": {}}),
    *({"PureDP": {"epsilon": {"fraction": "1"}}}, {"ZCDP": {"rho": {"fraction": "1"}}}, {"NoMatch": "none"}, {"Carrier": "two servers"}),
    *({"ApproxDP": {"delta": {"fraction": "1/1000000"}, "epsilon": {"fraction": "1"}}}, {"Sampling": "a fresh sample each round"}),
    *({"Quadtree": {"depth": 5, "left": 0.5, "side": 0.25, "top": 0.25}}, {"Asymmetric": {"epsilon": {"fraction": "3"}}}),
    *({"Hexagons": {"box": {"Box": {"east": 13.6, "north": 52.6, "south": 52.4, "west": 13.2}}, "coarsest": 6, "finest": 8}}),
    *({"Everything": {"tree": {"Quadtree": {"depth": 3, "left": 0, "side": 1, "top": 0}}}}, "http://one.example/", "https://two.example/"),
    *("SELECT lon FROM places", "SELECT lat, lon FROM places", "Europe/Berlin", "europe/berlin", "UTC", "Nowhere/Town", "places.lon"),
)
_KEYS = ("again", "x", "randomiser", "__proto__", "constructor", "toString", "cells", "tree", "fraction", "digest", "é", "\U0001f30d")


def mutated(rng: random.Random, kind: str) -> bytes:
    """A message of a kind with something changed: in its values, in its bytes, in both, or in nothing that matters."""
    found = rng.choice(valid()[kind])
    if kind == "message" or rng.random() < 0.12:
        return _other_bytes(rng, found)
    if kind == "log":
        return _other_log(rng, found)
    values = json.loads(found)
    if kind in ("task", "announcement"):
        _vary(rng, values["Task"] if kind == "task" else values["CarriedTask"]["task"]["Task"])
    for _ in range(rng.choice((0, 0, 0, 0, 0, 1, 1, 1, 2))):
        values = _other_values(rng, values)
    if rng.random() < 0.7:
        _set_price(values)
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    if rng.random() < 0.06:
        text = _other_text(rng, values, text)
    content = text.encode(errors="surrogatepass")
    return _other_bytes(rng, content) if rng.random() < 0.05 else content


def _vary(rng: random.Random, task: Any) -> None:
    """Ask another round that is as sound as this one, or nearly."""
    query, cohort = task["question"]["Query"], task["cohort"]["Cohort"]
    [encoder] = query["encoder"].values()
    recipe = encoder["recipe"]["Recipe"] if "recipe" in encoder else None
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        match rng.randrange(9):
            case 0:
                word = "".join(rng.choices(_LETTERS if rng.random() < 0.4 else "aZ09 .-é\U0001f30d", k=rng.choice((1, 5, 199, 200, 201))))
                task["campaign"] = word
            case 1:
                task["purpose"] = _other_word(rng, task["purpose"])
                if recipe:
                    recipe["purpose"] = task["purpose"]
            case 2:
                cohort["people"] = int(2 * 10_000 ** rng.random())
                cohort["shard"] = rng.choice((cohort["people"], int(2 * 6_000 ** rng.random())))
            case 3:
                cohort[rng.choice(("corrupt", "dropout"))] = {"fraction": rng.choice(_FRACTIONS[:12])}
            case 4:
                cohort["mode"] = {"Mode": rng.choice((1, 2))}
            case 5 if not recipe:
                task["budget"] = {"PureDP": {"epsilon": {"fraction": rng.choice(_FRACTIONS)}}}
                query["share"] = {"fraction": rng.choice(("1", "1/2", "1/20", "1/1000003"))}
            case 5 | 6 if recipe:
                name = rng.choice(("epsilon", "delta", "local_epsilon"))
                recipe[name] = {"fraction": rng.choice(("1", "3/4", "2", "3", "4", "1/1000000", "1/2000000", "0"))}
                epsilon, delta = recipe["epsilon"], recipe["delta"]
                pure = delta == {"fraction": "0"}
                task["price"] = {"PureDP": {"epsilon": epsilon}} if pure else {"ApproxDP": {"delta": delta, "epsilon": epsilon}}
                task["randomiser"] = {"Asymmetric": {"epsilon": recipe["local_epsilon"]}}
            case 6 | 7:
                _vary_cells(rng, encoder)
            case _ if not recipe:
                encoder["bounding"] = {rng.choice(("AtMostRows", "AtMostCells")): {"most": rng.choice((1, 1, 2, 7, 1_000)), "nowhere": rng.choice((False, True, "people"))}}


def _vary_cells(rng: random.Random, found: Any) -> None:
    """Change trees, boxes, slots and lists of cells somewhere below, as others might be."""
    for name, at in found.items() if isinstance(found, dict) else enumerate(found if isinstance(found, list) else ()):
        if name == "array" and at[1]:
            match rng.randrange(4):
                case 0:
                    rng.shuffle(at[1])
                case 1:
                    del at[1][rng.randrange(len(at[1])) :]
                case 2:
                    at[1].append(rng.choice((4 * at[1][-1], at[1][-1] // 4, 0, 1, at[1][-1] + 1)))
        elif name == "edges" and at:
            at[-1] += rng.choice((0, 1, 3_600, 0.5))
        elif name in ("depth", "coarsest", "finest") and rng.random() < 0.5:
            found[name] = max(0, at + rng.choice((-1, 1, 2, 8)))
        elif name == "zone":
            found[name] = rng.choice(("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Etc/GMT+5", "europe/berlin"))
        elif name in ("left", "top", "side", "west", "south", "east", "north") and rng.random() < 0.3:
            found[name] = rng.choice((at * 0.75, at + 0.01, at / 3, int(at), at * 2.0**-18))
        else:
            _vary_cells(rng, at)


def _set_price(values: Any) -> None:
    """Let a task of a map cost its share of its budget again, where it can."""
    try:
        task = values.get("CarriedTask", values).get("task", values)["Task"]
        share, budget = (Fraction(each["fraction"]) for each in (task["question"]["Query"]["share"], task["budget"]["PureDP"]["epsilon"]))
        if "RecipeBins" not in task["question"]["Query"]["encoder"]:
            task["price"] = {"PureDP": {"epsilon": {"fraction": str(share * budget)}}}
    except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError):
        return


def _other_values(rng: random.Random, values: Any) -> Any:
    """The same with one value changed somewhere below."""
    at, path = values, []
    while isinstance(at, dict | list) and at and (len(path) < 2 or rng.random() < 0.9):
        key = rng.choice(sorted(at) if isinstance(at, dict) else range(min(len(at), 6)))
        path.append((at, key))
        at = at[key]
    if not path:
        return copy.deepcopy(rng.choice(_THINGS))
    holder, key = path[-1]
    match rng.randrange(9):
        case 0 if isinstance(holder, dict):
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[rng.choice(_KEYS)] = holder[key] if rng.random() < 0.5 else rng.choice(_THINGS)
        case 2 if isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        case 3 if isinstance(holder, list):
            del holder[key]
        case 4 | 5 if isinstance(at, int | float) and not isinstance(at, bool):
            holder[key] = at + rng.choice((1, -1, 0.5, 0.0, at, 1e-9, -at))
        case 4 | 5 | 6 if isinstance(at, str):
            holder[key] = _other_word(rng, at)
        case 7:
            holder[key] = rng.choice(_NUMBERS)
        case _:
            holder[key] = copy.deepcopy(rng.choice(_THINGS))
    return values


def _other_word(rng: random.Random, word: str) -> str:
    if rng.random() < 0.4 and word[:1].isdigit():
        return rng.choice(_FRACTIONS)
    place, letter = rng.randrange(len(word) + 1), rng.choice(_LETTERS)
    return rng.choice(
        (
            word[:place] + letter + word[place:],
            word[:place] + word[place + 1 :],
            word[:place] + letter + word[place + 1 :],
            word.swapcase(),
            word + letter * rng.choice((1, 100, 199, 200, 1_001, 2_001)),
            word * rng.choice((2, 40)),
            letter,
            rng.choice(_FRACTIONS),
        )
    )


def _other_text(rng: random.Random, values: Any, text: str) -> str:
    """The same values, or nearly, written in another way."""
    place = rng.randrange(len(text) + 1)
    return rng.choice(
        (
            json.dumps(values, sort_keys=True),
            json.dumps(values, separators=(",", ":")),
            json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False),
            text.replace("/", "\\/", 1),
            text.replace("e", "\\u0065", 1),
            text.replace('"fraction"', '"fraction":"1","fraction"', 1),
            text.replace("1", "1.0", 1),
            text.replace("1", "1e0", 1),
            text.replace("0", "-0", 1),
            "\ufeff" + text,
            text + rng.choice((" ", "\n", "\u00a0", "x", "\x00")),
            text[:place] + rng.choice(("[" * 70, "[" * 9_000, "9" * 400, "9" * 5_000, "\\ud800", "\\ud83c\\udf0d", "1e999", "NaN")) + text[place:],
        )
    )


def _other_bytes(rng: random.Random, content: bytes) -> bytes:
    found = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        start = rng.randrange(len(found) + 1)
        end = min(len(found), start + rng.choice((1, 1, 2, 4, 32)))
        match rng.randrange(7):
            case 0 if start < len(found):
                found[start] ^= 1 << rng.randrange(8)
            case 1:
                del found[start:end]
            case 2:
                found[start:start] = found[start:end]
            case 3:
                found[start:end] = rng.randbytes(end - start)
            case 4:
                found[start:end] = rng.choice((b"\xff" * 4, b"\x00" * 4, b"\x80\x00\x00\x00", b"9" * 400, b'"', b"{", b"\xed\xa0\x80", b"\xc2\xa0"))
            case 5 if rng.random() < 0.3:
                del found[start:]
            case _ if start < len(found):
                found[start] = (found[start] + rng.choice((1, -1))) % 256
    return bytes(found)


def _other_log(rng: random.Random, content: bytes) -> bytes:
    """A log with entries changed, moved, gone or more, chained anew or not."""
    lines = [json.loads(line) for line in content.decode().split("\n")]
    for _ in range(rng.choice((0, 1, 1, 2))):
        place = rng.randrange(len(lines))
        match rng.randrange(5):
            case 0:
                lines.insert(place, copy.deepcopy(lines[place]))
            case 1 if len(lines) > 1:
                del lines[place]
            case _ if lines[place]:
                name = rng.choice(sorted(lines[place]))
                value = lines[place][name]
                lines[place][name] = _other_word(rng, value) if isinstance(value, str) and rng.random() < 0.6 else rng.choice((*_NUMBERS, *_THINGS))
                if rng.random() < 0.1:
                    del lines[place][name]
    if rng.random() < 0.7:
        lines = _chained(lines)
    separators = rng.choice(((",", ":"),) * 8 + ((", ", ": "),))
    texts = [json.dumps(each, separators=separators) for each in lines]
    return (rng.choice(("\n",) * 8 + ("\n\n", "\r\n", " \n")).join(texts) + rng.choice(("", "\n"))).encode()


def _chained(lines: list[Any]) -> list[Any]:
    """The same entries, as a log that follows from its beginning."""
    found, previous = [], bytes(32).hex()
    for seq, entry in enumerate(lines, 1):
        fields = {key: value for key, value in entry.items() if key not in ("previous", "digest")}
        if type(fields.get("seq")) is int and fields["seq"] < 100:
            fields["seq"] = seq
        fields["previous"] = previous
        try:
            previous = FORMAT.digest(FORMAT.text(fields)).hex()
        except (ValueError, UnicodeError):
            return lines
        found.append({**fields, "digest": previous})
    return found


def cases(seed: int, number: int) -> Iterator[tuple[str, bytes, int]]:
    """Messages without end, each with the person that judges it; the same for the same seed."""
    rng = random.Random(seed)
    kinds, weights = list(SHARES), list(SHARES.values())
    for _ in range(number):
        [kind] = rng.choices(kinds, weights)
        yield kind, mutated(rng, kind), rng.randrange(len(OWN)) if kind in ("task", "announcement") else 0


class OtherDevice:
    """The device in TypeScript, built already: one process that judges many cases from a pipe."""

    def __init__(self, program: Path) -> None:
        self._process = subprocess.Popen(["node", str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def judged(self, asked: Sequence[tuple[str, bytes, int]]) -> list[dict[str, Any]]:
        """Its verdicts, in order."""
        sent, answers = self._process.stdin, self._process.stdout
        assert sent is not None
        assert answers is not None
        for kind, content, policy in asked:
            case = {"kind": kind, "content": base64.b64encode(content).decode(), "policy": policy}
            sent.write(json.dumps(case) + "\n")
        sent.flush()
        return [json.loads(answers.readline()) for _ in asked]

    def close(self) -> None:
        """End it."""
        self._process.communicate()


def disagreements(other: OtherDevice, seed: int, number: int) -> Iterator[tuple[str, bytes, dict[str, Any], dict[str, Any]]]:
    """Every case of so many with both verdicts: of those on which the devices agree, the content is left out."""
    for some in batched(cases(seed, number), 256):
        for (kind, content, policy), theirs in zip(some, other.judged(some), strict=True):
            ours = judged(kind, content, policy)
            yield kind, content if differs(ours, theirs, content) else b"", ours, theirs


def batched(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    """Lists of so many items."""
    while some := list(islice(items, size)):
        yield some
