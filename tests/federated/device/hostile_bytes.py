"""Hostile messages: what is valid, with something changed in its values or in its bytes, without end.

Both devices judge them (`tests.federated.device.verdicts`). The same seed gives the same messages.
"""

import base64
import copy
import json
import random
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from hazemap.federated.recipes.recipe import RECIPE_LOG_FORMAT

VECTORS = Path(__file__).parents[2] / "vectors"


@cache
def recipes() -> dict[str, Any]:
    """The shipped policy of the vectors, and the places."""
    return json.loads((VECTORS / "device" / "recipes.json").read_text())


def _read(name: str) -> Any:
    return json.loads((VECTORS / name).read_text())


@cache
def valid() -> dict[str, tuple[bytes, ...]]:
    """What each kind of message is made from: valid ones, and sound ones that are refused."""
    tasks = [
        each["task"]
        for name in ("tasks", "hexagons", "slots", "recipes")
        for each in _read(f"device/{name}.json")["tasks"]
    ]
    small = [each for each in tasks if len(each) < 4_000]
    rounds = [each["announcement"] for each in _read("device/reports.json")["reports"]]
    sessions = [_read(f"secure_aggregation/session-{mode}.json") for mode in ("malicious", "semi-honest")]
    messages = {text for session in sessions for text in _texts(session) if text.startswith("01") and len(text) > 68}
    work = [
        {
            "session": "ab" * 32,
            "stage": stage,
            "task": task,
            "message": base64.b64encode(bytes(size)).decode(),
            "until": until,
            "head": head,
        }
        for stage, task, size, until, head in (
            (1, small[0], 300, "2026-05-01T12:00:00+00:00", None),
            (4, None, 0, "2026-05-01T12:00:00.123456Z", "0123456789abcdef" * 3),
            (0, rounds[0], 0, "2026-05-01T23:59:59-09:30", "ab" * 24),
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
        "invitation": tuple(
            f"{each['terms']} {each['task']}".encode()
            for each in _read("device/tasks.json")["tasks"]
            if len(each["task"]) < 4_000
        ),
    }


def _texts(found: Any) -> Iterator[str]:
    if isinstance(found, str):
        if len(found) < 20_000 and all(each in "0123456789abcdef" for each in found) and len(found) % 2 == 0:
            yield found
    elif isinstance(found, dict | list):
        for each in found.values() if isinstance(found, dict) else found:
            yield from _texts(each)


SHARES = {"task": 44, "invitation": 6, "announcement": 14, "policy": 12, "log": 8, "work": 8, "message": 8}
"""Of a hundred cases, how many are of each kind."""

OF_PEOPLE = ("task", "announcement", "invitation")
"""Kinds of which a person's own rules decide."""

_PLAIN = "aZ09 .-é\U0001f30d"
_LETTERS = (
    _PLAIN + "_/:#*\u00a0\u0301\u200b\u2028\ufeff\u0000\n\t\u00ad\u3000\u0130\u00df\ud7ff\ufffd\uffff\U0010ffff'\"\\"
)
_NUMBERS = (
    *(0, 1, -1, 2, 3, 7, 15, 16, 24, 25, 64, 100, 120, 10_000, 10_001, (1 << 31) - 1, 1 << 31, (1 << 40) + 1),
    *((1 << 53) - 1, (1 << 53) + 1),
    *(1 << 62, 1 << 63, (1 << 64) - 1, 1 << 64, -(1 << 64), (1 << 64) + 1, 10**399, -(10**400), 10**4_299),
    *(0.0, -0.0, 1.0, 0.5, 13.4, 52.5, -180.0, 180.0, 90.0, 2.0**-44, 5e-324, 1e-300, 1e15, 1e16, 1e22, 1e300),
)  # fmt: skip
_FRACTIONS = (
    *(
        "0",
        "1",
        "-1",
        "1/2",
        "2/4",
        "1/3",
        "1/10",
        "1/20",
        "9/10",
        "99/100",
        "999999/1000000",
        "3",
        "20",
        "1000000000000",
    ),
    *(
        "1/1000000",
        "1/1048576",
        "1/1000003",
        "01",
        "1/0",
        "1/01",
        "+1",
        "1.5",
        "1e3",
        " 1",
        "1/",
        "-0",
        "0/1",
        "64",
        "4/3",
    ),
    *(
        "1/" + "9" * 600,
        "9" * 640,
        "9" * 641,
        "9" * 30 + "/" + "7" * 29,
        "18446744073709551616",
        "1/18446744073709551615",
    ),
)
_THINGS: tuple[Any, ...] = (
    *(None, True, False, "", [], {}, [0], [[]], "people", "none", "random", "secure sums", "two servers", "malicious"),
    *(
        {"Mode": 1},
        {"Mode": 2},
        {"Mode": 3},
        {"again": 0},
        {"array": ["uint64", []]},
        {"array": ["uint64", [0, 1]]},
        {"fraction": 1},
    ),
    *(
        {"AtMostRows": {"most": 1, "nowhere": False}},
        {"AtMostCells": {"most": 3, "nowhere": "people"}},
        {"OneVote": {"scale": 60, "nowhere": True}},
    ),
    *({"Weekdays": {"zone": "Europe/Berlin"}}, {"Clock": {"edges": [0, 43_200], "zone": "UTC"}}, {"Always": {}}),
    *(
        {"PureDP": {"epsilon": {"fraction": "1"}}},
        {"ZCDP": {"rho": {"fraction": "1"}}},
        {"NoMatch": "none"},
        {"Carrier": "two servers"},
    ),
    *(
        {"ApproxDP": {"delta": {"fraction": "1/1000000"}, "epsilon": {"fraction": "1"}}},
        {"Sampling": "a fresh sample each round"},
    ),
    *(
        {"Quadtree": {"depth": 5, "left": 0.5, "side": 0.25, "top": 0.25}},
        {"Asymmetric": {"epsilon": {"fraction": "3"}}},
    ),
    *(
        {
            "Hexagons": {
                "box": {"Box": {"east": 13.6, "north": 52.6, "south": 52.4, "west": 13.2}},
                "coarsest": 6,
                "finest": 8,
            }
        }
    ),
    *(
        {"Everything": {"tree": {"Quadtree": {"depth": 3, "left": 0, "side": 1, "top": 0}}}},
        "http://one.example/",
        "https://two.example/",
    ),
    *(
        "SELECT lon FROM places",
        "SELECT lat, lon FROM places",
        "Europe/Berlin",
        "europe/berlin",
        "UTC",
        "Nowhere/Town",
        "places.lon",
    ),
)
_KEYS = (
    "again",
    "x",
    "randomiser",
    "__proto__",
    "constructor",
    "toString",
    "cells",
    "tree",
    "fraction",
    "digest",
    "é",
    "\U0001f30d",
)


def mutated(rng: random.Random, kind: str) -> bytes:
    """A message of a kind with something changed: in its values, in its bytes, in both, or in nothing that matters."""
    found = rng.choice(valid()[kind])
    if kind == "invitation":
        terms, _, text = found.partition(b" ")
        changed = bytearray.fromhex(terms.decode())
        for _ in range(rng.choice((0, 1, 1, 1, 2))):
            place = rng.choice((0, *range(65, len(changed) - 64), rng.randrange(len(changed))))
            changed[place] = (changed[place] + rng.choice((1, -1, 1, -1, 2, 128, 255))) % 256
        return changed.hex().encode() + b" " + text
    if kind == "message" or rng.random() < 0.12:
        return _other_bytes(rng, found)
    if kind == "log":
        return _other_log(rng, found)
    values = json.loads(found)
    if kind in ("task", "announcement"):
        _vary(rng, values["Task"] if kind == "task" else values["CarriedTask"]["task"]["Task"])
    for _ in range(rng.choice((0, 0, 0, 0, 0, 1, 1, 1, 2))):
        values = with_other_values(rng, values)
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
                word = "".join(
                    rng.choices(_LETTERS if rng.random() < 0.4 else _PLAIN, k=rng.choice((1, 5, 199, 200, 201)))
                )
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
                task["price"] = (
                    {"PureDP": {"epsilon": epsilon}} if pure else {"ApproxDP": {"delta": delta, "epsilon": epsilon}}
                )
                task["randomiser"] = {"Asymmetric": {"epsilon": recipe["local_epsilon"]}}
            case 6 | 7:
                _vary_cells(rng, encoder)
            case _ if not recipe:
                encoder["bounding"] = {
                    rng.choice(("AtMostRows", "AtMostCells")): {
                        "most": rng.choice((1, 1, 2, 7, 1_000)),
                        "nowhere": rng.choice((False, True, "people")),
                    }
                }


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
            found[name] = rng.choice(
                (
                    "UTC",
                    "Europe/Berlin",
                    "America/New_York",
                    "Asia/Kathmandu",
                    "Australia/Lord_Howe",
                    "Etc/GMT+5",
                    "europe/berlin",
                )
            )
        elif name in ("left", "top", "side", "west", "south", "east", "north") and rng.random() < 0.3:
            found[name] = rng.choice((at * 0.75, at + 0.01, at / 3, int(at), at * 2.0**-18))
        else:
            _vary_cells(rng, at)


def _set_price(values: Any) -> None:
    """Let a task of a map cost its share of its budget again, where it can."""
    try:
        task = values.get("CarriedTask", values).get("task", values)["Task"]
        share, budget = (
            Fraction(each["fraction"])
            for each in (task["question"]["Query"]["share"], task["budget"]["PureDP"]["epsilon"])
        )
        if "RecipeBins" not in task["question"]["Query"]["encoder"]:
            task["price"] = {"PureDP": {"epsilon": {"fraction": str(share * budget)}}}
    except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError):
        return


def with_other_values(rng: random.Random, values: Any) -> Any:
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
            thing = holder[key] if rng.random() < 0.5 else rng.choice(_THINGS)
            holder[rng.choice(_KEYS)] = copy.deepcopy(thing)
        case 2 if isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        case 3 if isinstance(holder, list):
            del holder[key]
        case 4 | 5 if isinstance(at, int | float) and not isinstance(at, bool) and abs(at) < 10**300:
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
            text[:place]
            + rng.choice(("[" * 70, "[" * 9_000, "9" * 400, "9" * 5_000, "\\ud800", "\\ud83c\\udf0d", "1e999", "NaN"))
            + text[place:],
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
                found[start:end] = rng.choice(
                    (
                        b"\xff" * 4,
                        b"\x00" * 4,
                        b"\x80\x00\x00\x00",
                        b"9" * 400,
                        b'"',
                        b"{",
                        b"\xed\xa0\x80",
                        b"\xc2\xa0",
                    )
                )
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
                lines[place][name] = (
                    _other_word(rng, value)
                    if isinstance(value, str) and rng.random() < 0.6
                    else rng.choice((*_NUMBERS, *_THINGS))
                )
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
            previous = RECIPE_LOG_FORMAT.digest(RECIPE_LOG_FORMAT.text(fields)).hex()
        except (ValueError, UnicodeError):
            return lines
        found.append({**fields, "digest": previous})
    return found


def cases(seed: int, number: int, people: int) -> Iterator[tuple[str, bytes, int]]:
    """So many messages, each with the person that judges it: the number of one of the `people`."""
    rng = random.Random(seed)
    kinds, weights = list(SHARES), list(SHARES.values())
    for _ in range(number):
        [kind] = rng.choices(kinds, weights)
        yield kind, mutated(rng, kind), rng.randrange(people) if kind in OF_PEOPLE else 0
