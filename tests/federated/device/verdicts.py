"""Verdicts on bytes from outside: what a device says of tasks, announcements, messages, policies and logs, and why.

`python -m tests.federated.device.verdicts` writes `tests/vectors/device/verdicts.json`: the one list of rules, and a
case or more of each. A test compares it with what the code says, and the device in TypeScript has to say the same. A
slow test, and `research/device_verdicts.py` for longer, let both judge the same hostile bytes
(`tests.federated.device.hostile_bytes`).

A verdict is *accept*, with everything that follows from the bytes; *malformed*, where they are nothing that a server
may write; *refused*, by a rule. The other device may also say *unknown*: a kind that it does not answer (`ELSEWHERE`).
"""

import base64
import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from tests.federated.device.hostile_bytes import VECTORS, cases, recipes, valid

from hazemap.codec import parsed
from hazemap.engines.memory import MemoryTable
from hazemap.errors import CodecError, HazemapError, InputError, Refused
from hazemap.federated.device.account.charges import ReportRequest
from hazemap.federated.device.account.recipe_account import refusal_reasons
from hazemap.federated.device.policy.consent_policy import Policy, carried_refusal, restrict_policy
from hazemap.federated.device.recipes.public_recipe_log import PublicRecipeLog
from hazemap.federated.device.recipes.query_sandbox import QuerySandbox
from hazemap.federated.device.recipes.recipe_check import admit, sum_price
from hazemap.federated.device.reports.report_sender import read_announcement
from hazemap.federated.device.server_task import ParsedTaskCache, ServerTask
from hazemap.federated.protocols.secure_aggregation.messages import Invitation, decode
from hazemap.federated.protocols.secure_aggregation.session_parameters import SessionParameters
from hazemap.federated.recipes.policy_document import LIMITS, SignedPolicy, canonical_json, from_signed
from hazemap.federated.recipes.recipe_bins import matches
from hazemap.federated.trust.checked_contribution import contribution
from hazemap.federated.trust.device_tasks import Task, parameters_for
from hazemap.federated.trust.report_carriers import CarriedTask
from hazemap.federated.trust.two_server_tasks import round_tasks
from hazemap.privacy.distributed_noise import NoAddedNoise

FILE = VECTORS / "device" / "verdicts.json"

OWN: tuple[dict[str, Any], ...] = (
    {"longest": 65_536},
    {"people": 2, "survivors": 1, "corrupt": "0", "campaign": "1000000000000", "period": "1000000000000", "least": "0",
     "longest": 65_536, "finest": 0, "modes": ["malicious", "semi-honest"], "local": "20",
     "aggregators": ["https://one.example/", "https://two.example:8443/dap/"]},
    {"people": 150, "survivors": 120, "corrupt": "1/20", "finest": 300, "longest": 64, "times": False,
     "aggregators": ["https://one.example/"]},
    {"people": 50, "survivors": 40, "corrupt": "1/20", "finest": 0, "longest": 65_536, "campaign": "100",
     "period": "100", "modes": ["malicious", "semi-honest"], "local": "20", "rules": ["rows"], "keep": 30,
     "campaigns": ["h[!x-z]*", "stud?", "*[a-zé]"], "no_campaigns": ["*-*"], "purposes": ["?*?"],
     "no_purposes": ["*[0-9]", "[]*]*"], "no_fields": ["places.t*", "notes.?*"], "carriers": ["secure sums"],
     "aggregators": ["https://one.example/", "https://two.example:8443/dap/"]},
)  # fmt: skip
"""Rules of four people: as they are by default, as loose as they may be, strict, and choosy by name."""

ROWS: tuple[list[list[float | None]], ...] = (
    [[13.25 + i / 97, 52.42 + i / 131, 1_777_000_000 + 7_001.5 * i] for i in range(25)],
    [[13.3, 52.5, None]],
    [[180, 0, 0], [-180, 0, -1], [0, 90, 1e300], [0, -90, -1e300], [13.4, 85.06, 1e15], [13.4, 52.5, -62_135_596_801],
     [None, 52.5, 5], [13.4, None, 5], [1e308, 52.5, 5], [13.4, -1e308, 5], [2.3, 48.85, 1e12], [-0.0, 0, -0.5]],
)  # fmt: skip
"""Somebody's places, somebody's one place, and places that no map has and times that no clock shows."""

RULES: dict[str, tuple[str, ...]] = {
    "length": ("letters, its purpose",),
    "letters": ("characters that cannot be printed",),
    "least": ("but on this device a round costs",),
    "campaign": ("but one campaign may cost",),
    "welcome": ("this device does not answer the",),
    "corrupt": ("of the others work with the server, but this device assumes",),
    "mode": ("this client takes part in",),
    "people": ("is too small: at least", "people are asked together, but"),
    "largest": ("is too large: at most",),
    "survivors": ("a sum over", "reports would be opened, but"),
    "longest": ("is too long: at most", "numbers, but at most"),
    "weak": ("of the clients work with the server", "nothing is known of the safety"),
    "exact": ("no noise is to be added",),
    "noise": ("the noise is complete with",),
    "rule": ("is not one of:",),
    "unknown size": ("cannot tell how large these cells are",),
    "finest": ("wide, but cells must be at least",),
    "times": ("does not reveal when its rows were",),
    "shard": ("people was formed",),
    "terms": ("does not follow from its task", "do not follow from its task"),
    "session": ("can keep what this task promises",),
    "by two servers": ("this device does not report to two servers",),
    "servers": ("reports only to servers that its",),
    "one vote": ("a report proves a single 1",),
    "drawn": ("its noise cannot be drawn",),
    "written": ("cannot be written into a task", "is a fraction of 64-bit numbers"),
    "no place": ("the largest weight must be", "a report needs one place"),
    "analysis": ("this device knows no analysis", "this policy knows no analysis"),
    "approved purpose": ("was approved for another purpose",),
    "approved people": ("are over at least",),
    "approved cohort": ("is no approved cohort field",),
    "carrier": ("are carried by",),
    "listed": ("this query is not on the list", "made from none of the templates"),
    "parameter": ("the parameter",),
    "function": ("do not use the function",),
    "field": ("does not let queries", "may not read", "has no budget on this device"),
    "stream": ("this device has no stream",),
    "query": ("this query cannot run", "queries here only read events"),
    "no field": ("reads no field of any stream",),
    "columns": ("columns, but the features of",),
    "local": ("one report that reads",),
    "account": ("nothing left to spend", "days; with this", "this would be one more"),
}
"""The rules by which a message is refused, and the words by which both devices' sentences name each."""

ISSUER = bytes(range(32))
"""The public key of the coordinator that announces rounds."""

TASKS = ParsedTaskCache()


def person(rules: dict[str, Any]) -> Policy:
    """A person's rules from those of the other device, whose file is JSON."""
    exact = {
        name: Fraction(rules[name]) for name in ("corrupt", "campaign", "period", "local", "least") if name in rules
    }
    lists = {name: tuple(value) for name, value in rules.items() if isinstance(value, list)}
    return Policy(**{**rules, **exact, **lists})


PEOPLE = tuple(map(person, OWN))


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
    except Exception as error:  # a fault of the device, which no message may cause
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
    return {
        "session": found.session.hex(),
        "stage": found.stage,
        "task": task,
        "message": found.message.hex(),
        "until": until,
        "head": found.head.hex(),
    }


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
    policy, recipe = restrict_policy(shipped(), own), task.recipe
    if recipe is None or task.randomiser is None:
        raise Refused("a recipe is answered by reports that are randomised")
    admitted = admit(recipe, policy)
    price = sum_price(recipe, task.randomiser, terms.noise.parties, policy.accounting)
    request = ReportRequest.of(recipe, admitted.touched, price, bytes(32))
    request = ReportRequest(**{**vars(request), "cohort": terms.survivors})
    for reason in refusal_reasons(request, policy, datetime.now(UTC)):
        raise Refused(reason)
    queries = policy.analysis(recipe.analysis).queries
    outcome = QuerySandbox(tuple(each.schema for each in policy.streams), queries).run(admitted, _Places())
    bins = recipe.bins_of(outcome.rows)
    touched = [str(each) for each in admitted.touched]
    return {"recipe": recipe.digest, "touched": touched, "bins": bins[matches(recipe, bins)].tolist()}


def _announcement(content: bytes, policy: Policy) -> dict[str, Any]:
    carried: CarriedTask = read_announcement(_text(content))
    if reason := carried_refusal(policy, carried):
        raise Refused(reason)
    try:
        tasks = round_tasks(carried, ISSUER)
    except HazemapError as error:
        raise Refused(str(error)) from None
    found = {
        "digest": sha256(content).hexdigest(),
        "task": tasks[0].id.hex(),
        "configuration": tasks[0].configuration.hex(),
    }
    return found | _sums(carried.task)


def _message(content: bytes, _: Policy) -> list[Any]:
    found = decode(content)
    kind = type(found).__name__
    return [kind, found.terms.to_bytes().hex(), found.position] if isinstance(found, Invitation) else [kind]


def _policy(content: bytes, _: Policy) -> str:
    text = _text(content)
    found = from_signed(parsed(text, LIMITS))
    return sha256(canonical_json(found)).hexdigest()


def _log(content: bytes, _: Policy) -> list[Any]:
    log = PublicRecipeLog()
    try:
        lines = [line for line in content.decode("ascii").split("\n") if line]
    except UnicodeDecodeError:
        raise CodecError("it is not written in ASCII") from None
    log.take(lines)
    return [log.head.entries, log.head.digest]


def _invitation(content: bytes, policy: Policy) -> str:
    terms, _, text = _text(content).partition(" ")
    found = SessionParameters.from_bytes(bytes.fromhex(terms))
    if reason := policy.refusal(TASKS.find(text).task, found):
        raise Refused(reason)
    return found.session.hex()


_JUDGES = {
    "invitation": _invitation,
    "work": _work,
    "task": _task,
    "announcement": _announcement,
    "message": _message,
    "policy": _policy,
    "log": _log,
}

ELSEWHERE = frozenset(
    [
        "Stack",
        "Sketch",
        "Wavelet",
        "Values",
        "Sides",
        "Grids",
        "Cuts",
        "Districts",
        "Marked",
        "Parcels",
        "CutDistricts",
        "Measured",
        "Magnitudes",
        "Valued",
        "TimedTree",
        "OneVote",
        "randomiser",
        "RecipeBins",
        "ByOneReport",
        "ByShuffler",
        "Everything",
        "Octaves",
        "Stretches",
        "AllSlots",
        "EachSlot",
        "SidesInSlots",
        "zone",
        "zcdp",
        "work",
    ]
)
"""Kinds that the other device does not answer: it looks no further, and says which."""


def rule(found: dict[str, Any]) -> str | None:
    """The rule by which a message was refused; None where it was not."""
    if found["verdict"] != "refused":
        return None
    return next((name for name, words in RULES.items() if any(each in found["words"] for each in words)), "?")


def differs(ours: dict[str, Any], theirs: dict[str, Any], content: bytes) -> bool:
    """Whether two devices do not agree. *Unknown* is no verdict, if the kind is one of these and is in the text."""
    if theirs["verdict"] == "unknown":
        kind = theirs["kind"]
        return kind not in ELSEWHERE or not (kind == "work" or kind.encode() in content)
    both = [(found["verdict"], found.get("answer"), rule(found)) for found in (ours, theirs)]
    return both[0] != both[1] or both[0][0] == "fault" or both[0][2] == "?"


class OtherDevice:
    """The device in TypeScript, built already: one process that judges many cases from a pipe."""

    def __init__(self, program: Path) -> None:
        self._process = subprocess.Popen(
            ["node", str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

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


def compared(other: OtherDevice, seed: int, number: int) -> Iterator[tuple[str, bytes, dict[str, Any], dict[str, Any]]]:
    """Every case of so many with both verdicts: of those on which the devices agree, the content is left out."""
    for some in batched(cases(seed, number, len(OWN)), 256):
        for (kind, content, policy), theirs in zip(some, other.judged(some), strict=True):
            ours = judged(kind, content, policy)
            yield kind, content if differs(ours, theirs, content) else b"", ours, theirs


def batched(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    """Lists of so many items."""
    while some := list(islice(items, size)):
        yield some


PLAIN = (
    b'{"Task":{"budget":{"PureDP":{"epsilon":{"fraction":"1"}}},"campaign":"homes","cohort":{"Cohort":{"corrupt":'
    b'{"fraction":"1/10"},"dropout":{"fraction":"1/10"},"mode":{"Mode":2},"people":1000,"sampling":{"Sampling":'
    b'"a fresh sample each round"},"shard":1000}},"price":{"PureDP":{"epsilon":{"fraction":"1/2"}}},"purpose":"a map",'
    b'"question":{"Query":{"cohort":null,"encoder":{"Counts":{"bounding":{"AtMostRows":{"most":1,"nowhere":false}},'
    b'"cells":{"Leaves":{"cells":{"array":["uint64",[16,17,18]]},"tree":{"Quadtree":{"depth":5,"left":0.5,"side":0.25,'
    b'"top":0.25}}}}}},"share":{"fraction":"1/2"}}},"round":1}}'
)
CHANGES: tuple[tuple[bytes, bytes], ...] = (
    (b'"homes"', b'"ho\\u00a0mes"'),
    (b'"homes"', b'"' + b"\\ud83c\\udf0d" * 200 + b'"'),
    (b'"homes"', b'"' + b"x" * 201 + b'"'),
    (b'"homes"', b'"\\ud83c"'),
    (b'"homes"', b'"hom\xc3\xa9s"'),
    (b'{"Task":', b'{ "Task":'),
    (b'"budget"', b'"\\u0062udget"'),
    (b'"depth":5,"left":0.5,"side":0.25', b'"depth":24,"left":0.5,"side":0.00024'),
    (b"[16,17,18]", b"[16,17,18,1125899906842624]"),
    (b'"left":0.5', b'"left":' + b"9" * 400),
    (b'"left":0.5', b'"left":1e999'),
    (b'"left":0.5', b'"left":5e-1'),
    (b'"round":1', b'"round":2147483648'),
    (b'"round":1', b'"round":' + b"9" * 5_000),
    (b'"cohort":null', b'"cohort":3'),
    (b'"shard":1000', b'"shard":1099511627777'),
    (b'"most":1', b'"most":2147483649'),
    (b'"share":{"fraction":"1/2"}', b'"share":{"fraction":"2"}'),
    (b'{"fraction":"1/2"}', b'{"fraction":"1/1001"}'),
    (b'{"Mode":2},"people":1000', b'{"Mode":1},"people":1000'),
    (b'{"Quadtree":{"depth":5,"left":0.5,"side":0.25,"top":0.25}}', b'{"Cuts":{}}'),
    (b'{"Quadtree":{"depth":5,"left":0.5,"side":0.25,"top":0.25}}', b'{"PlaneQuadtree":{}}'),
    (b'"AtMostRows"', b'"OneVote"'),
    (b'"round":1', b'"round":1,"round":1'),
)
"""What TypeScript did not look at, or looked at in another way, and what only just fits."""
ZONES = (
    *("Asia/Kathmandu", "Asia/Katmandu", "US/Pacific", "Etc/GMT+5", "GMT0", "EST5EDT", "UTC", "Zulu"),
    *("Asia/KathMandu", "Asia/katmandu", "us/Pacific", "Etc/Gmt+5", "gmt0", "est5edt", "utc", "ZULU"),
    *("posix/UTC", "right/UTC", "localtime", "posixrules", "Factory", "Etc/Unknown", "PST", "SystemV/EST5", "+01:00"),
    *("Europe/Atlantis", "UTC ", "./UTC", "Asia//Kathmandu", ""),
)
"""Zones and aliases in their spelling, in another, and what a system or another language takes for a zone."""


def vectors() -> list[dict[str, Any]]:
    """The cases of the file: the short ones first found of each verdict, and those that were written for it."""
    found: dict[tuple[Any, ...], tuple[str, bytes, int]] = {}
    for kind, content, policy in cases(1, 12_000, len(OWN)):
        if len(content) < 2_600:
            verdict = judged(kind, content, policy)
            key = (kind, verdict["verdict"], rule(verdict), policy if verdict["verdict"] == "accept" else 0)
            found[key] = min(
                found.get(key, (kind, content, policy)), (kind, content, policy), key=lambda each: len(each[1])
            )
    written = [("task", PLAIN.replace(one, other), policy) for one, other in CHANGES for policy in (0, 1)]
    plain = found["invitation", "accept", None, 1][1].partition(b" ")
    terms = SessionParameters.from_bytes(bytes.fromhex(plain[0].decode()))
    exact = replace(terms, noise=NoAddedNoise(terms.noise.parties)).to_bytes().hex().encode()
    round_ = valid()["announcement"][0]
    cheap = [round_.replace(b'"1/20"', price) for price in (b'"1000003/36893488147419103233"', b'"1/1125899906842625"')]
    few = next(each["task"] for each in recipes()["tasks"] if each["about"].startswith("fewer than the analysis"))
    more = [("invitation", exact + b" " + plain[2], 1), *(("announcement", each, 1) for each in cheap)]
    hexagons = next(
        each for each in valid()["task"] if b"AtMostCells" in each and b"Hexagons" in each and len(each) < 2_600
    )
    cell = re.search(rb'"uint64",\[([0-9]+)', hexagons)[1]
    more += [("task", hexagons.replace(cell, str(int(cell) | 7 << 42).encode()), 3)]  # no cell of H3, and by no rule
    whole = f"[{cell.decode()}".encode(), b"[%d" % (int(cell) - 1)  # a digit that is not used is not 7
    more += [
        ("task", hexagons.replace(*whole), 1),
        ("task", hexagons.replace(whole[0], b"[%d" % (int(cell) | 1 << 56)), 1),
    ]
    handed = next(each["task"] for each in recipes()["tasks"] if '< :n"' in each["task"])
    unbound = (r":n\ud83c\udf0d", ":n(n)", ":n::n")  # one token of SQLite each
    more += [("task", handed.replace('< :n"', f'< {each}"').encode(), 0) for each in unbound]
    work = valid()["work"][1]
    heads = (
        b'"AB"',
        b'""',
        b"7",
        b"{}",
        b"null",
        b'"%s"' % (b"AB" * 24),
        b'"%s"' % (b"ab" * 23),
        b'"%s "' % (b"ab" * 24),
    )
    more += [("work", re.sub(rb'"0123456789abcdef[^"]*"', head, work), 0) for head in heads]  # no heads, and no fault
    more += [("work", work, 0), ("work", work.replace(b'"head"', b'"had"'), 0)]
    more += [("task", few.replace('{"fraction":"3"}', '{"fraction":"1"}').encode(), 0)]  # of a local ε that costs less
    days = next(each for each in valid()["task"] if b'{"Weekdays":{"zone":"Asia/Kathmandu"}}' in each)
    more += [("task", days.replace(b"Asia/Kathmandu", zone.encode()), 0) for zone in ZONES]
    return [
        _case(*each) for each in (("task", PLAIN, 0), *written, *more, *(found[key] for key in sorted(found, key=str)))
    ]


def _case(kind: str, content: bytes, policy: int) -> dict[str, Any]:
    """A case as it is kept: the content as text, where it is one."""
    verdict = judged(kind, content, policy)
    try:
        kept = {"text": content.decode()}
    except UnicodeDecodeError:
        kept = {"base64": base64.b64encode(content).decode()}
    said = {"verdict": verdict["verdict"], "rule": rule(verdict), "answer": verdict.get("answer")}
    return {"kind": kind, "policy": policy, **kept, **said}


def content_of(case: dict[str, Any]) -> bytes:
    """What is judged."""
    return base64.b64decode(case["base64"]) if "base64" in case else case["text"].encode()


def text(made: list[dict[str, Any]]) -> str:
    """The file: the list of rules, the people, and the cases."""
    head = {"rules": RULES, "elsewhere": sorted(ELSEWHERE), "policies": OWN, "rows": ROWS}
    parts = [f' "{name}": {json.dumps(part)}' for name, part in head.items()]
    lines = ",\n".join(f"  {json.dumps(case)}" for case in made)
    return "{\n" + ",\n".join(parts) + f',\n "cases": [\n{lines}\n ]\n}}\n'


if __name__ == "__main__":
    FILE.write_text(text(vectors()), encoding="utf-8")
