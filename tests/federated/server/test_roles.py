"""Operators, analysts and auditors: what each may do, and what is noted of it."""

import asyncio
import json
from fractions import Fraction

import pytest
from tests.federated.server.fleet import AS_OPERATOR, OPERATOR, crowd
from tests.federated.server.test_campaign_spec import campaign
from tests.federated.server.test_http_routes import told

from hazemap.codec import dumps
from hazemap.errors import CodecError, InputError
from hazemap.federated.protocols.chained_log import LogHead
from hazemap.federated.server import roles
from hazemap.federated.server.roles import TokenRequest, checked
from hazemap.privacy.budget import PureDP

ANNA = {"name": "anna", "role": "analyst", "days": 90, "epsilon": "3", "campaigns": 1}
BEN = {"name": "ben", "role": "auditor", "days": 90}
CARL = {"name": "carl", "role": "operator", "days": 1}


async def token(town, asked):
    made = await town.http.post("/v1/tokens", json=asked, headers=AS_OPERATOR)
    assert made.status_code == 201, made.text
    return {"Authorization": f"Bearer {made.json()['token']}"}


ROUTES = {
    ("GET", "/v1/campaigns"): {"operator", "analyst", "auditor"},
    ("GET", "/v1/campaigns/berlin"): {"operator", "analyst", "auditor"},
    ("GET", "/v1/campaigns/berlin/map"): {"operator", "analyst"},
    ("GET", "/v1/campaigns/berlin/release"): {"operator", "analyst"},
    ("POST", "/v1/campaigns"): {"operator", "analyst"},
    ("POST", "/v1/campaigns/berlin/stop"): {"operator"},
    ("POST", "/v1/campaigns/berlin/resume"): {"operator"},
    ("POST", "/v1/campaigns/berlin/partial"): {"operator"},
    ("POST", "/v1/policies"): {"operator"},
    ("GET", "/v1/studies"): {"operator", "analyst", "auditor"},
    ("POST", "/v1/studies"): {"operator", "analyst"},
    ("GET", "/v1/studies/berlin"): {"operator", "analyst", "auditor"},
    ("POST", "/v1/studies/berlin/rounds"): {"operator", "analyst"},
    ("GET", "/v1/studies/berlin/rounds/1"): {"operator", "analyst"},
    ("GET", "/v1/studies/berlin/release"): {"operator", "analyst"},
    ("POST", "/v1/studies/berlin/stop"): {"operator", "analyst"},
    ("GET", "/v1/devices"): {"operator"},
    ("POST", "/v1/devices/nobody/revoke"): {"operator"},
    ("POST", "/v1/codes"): {"operator"},
    ("GET", "/v1/tokens"): {"operator"},
    ("POST", "/v1/tokens"): {"operator"},
    ("POST", "/v1/tokens/nobody/revoke"): {"operator"},
    ("GET", "/v1/audit"): {"operator", "auditor"},
    ("GET", "/metrics"): {"operator", "auditor"},
}


def test_each_role_may_do_what_is_its_own_and_nothing_else(tmp_path):
    async def play(town):
        held = {asked["role"]: await token(town, asked) for asked in (ANNA, BEN, CARL)}
        held["nobody"] = {}
        held["device"] = town.devices[0].headers
        may = {}
        for method, path in ROUTES:
            found = {who: (await town.http.request(method, path, headers=as_)).status_code for who, as_ in held.items()}
            assert (found.pop("nobody"), found.pop("device")) == (401, 401), path
            may[method, path] = {who for who, code in found.items() if code != 403}
        return may, {route.path for route in town.http._transport.app.routes}

    may, paths = told(tmp_path, crowd(1), play)
    assert may == ROUTES
    named = {
        path.replace("berlin", "{name}").replace("nobody", "{name}").replace("rounds/1", "rounds/{round}")
        for _, path in ROUTES
    }
    assert paths - named == {
        "/v1/challenge",
        "/v1/enrol",
        "/v1/status",
        "/v1/recipes",
        "/v1/recipes/{digest}",
    }, "every route is in this table"


def test_an_analyst_stays_within_epsilon_and_campaigns(tmp_path):
    async def play(town):
        anna = await token(town, ANNA)

        async def begin(name, epsilon):
            order = dumps(campaign(name=name, budget=PureDP(epsilon))).encode()
            done = await town.http.post("/v1/campaigns", headers=anna, content=order)
            return done.status_code, done.json().get("error", "")

        found = [await begin("a", 4), await begin("b", 2), await begin("c", 1)]
        await town.http.post("/v1/campaigns/b/stop", headers=AS_OPERATOR)
        at_once = await asyncio.gather(*(begin(name, 1) for name in "defg"))
        found.append(await begin("h", Fraction(1, 1000)))
        return found, sorted(code for code, _ in at_once)

    (dear, good, busy, over), at_once = told(tmp_path, [], play)
    assert (dear[0], "may cost 3 more" in dear[1]) == (402, True)
    assert (good[0], busy[0], "at a time" in busy[1]) == (201, 409, True)
    assert at_once == [201, 402, 402, 402]
    assert (over[0], "may cost 0 more" in over[1]) == (402, True)


def test_tokens_end_are_rotated_and_revoked_and_only_hashes_are_stored(tmp_path, monkeypatch):
    async def play(town):
        async def look(as_):
            return (await town.http.get("/v1/campaigns", headers=as_)).status_code

        first = await token(town, BEN)
        second = await token(town, BEN)
        found = [await look(first), await look(second)]
        await town.restart()
        found.append(await look(second))
        with monkeypatch.context() as later:
            later.setattr(roles, "instant", lambda *_: "2999-01-01T00:00:00Z")
            found.append(await look(second))
        await town.http.post("/v1/tokens/ben/revoke", headers=AS_OPERATOR)
        found.append(await look(second))
        other = await town.http.post("/v1/tokens", json={**CARL, "name": "ben"}, headers=AS_OPERATOR)
        first_one = await town.http.post("/v1/tokens/operator/revoke", headers=AS_OPERATOR)
        return found, second, other, first_one

    found, second, other, first_one = told(tmp_path, [], play)
    assert found == [401, 200, 200, 401, 401]
    assert (other.status_code, "keeps its role" in other.json()["error"]) == (422, True)
    assert (first_one.status_code, "operator.token" in first_one.json()["error"]) == (422, True)
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("server.sqlite*"))
    assert second["Authorization"].split()[1].encode() not in stored
    assert OPERATOR.encode() not in stored


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "anna\nope did it"}, "a name has"),
        ({"name": "operator"}, "a name has"),
        ({"name": 7}, "a name has"),
        ({"role": "king"}, "a role is"),
        ({"days": True}, "days"),
        ({"days": 10**9}, "days"),
        ({"epsilon": None}, "have a limit"),
        ({"epsilon": "1/0"}, "zero"),
        ({"epsilon": "1e9"}, "have a limit"),
        ({"campaigns": 0}, "at a time"),
        ({"role": "auditor"}, "no such limits"),
        ({"other": 1}, "is asked for with"),
    ],
)
def test_a_token_that_cannot_be_is_refused_in_words(change, words):
    with pytest.raises(InputError, match=words):
        TokenRequest.read({**ANNA, **change})


def test_who_did_what_is_on_a_log_that_shows_every_change(tmp_path):
    async def play(town):
        anna, ben = await token(town, ANNA), await token(town, BEN)
        await town.http.post("/v1/campaigns/a%0ab/stop", headers=AS_OPERATOR)
        await town.http.post("/v1/codes", json={"number": 2, "days": 1}, headers=anna)
        made = await town.http.post("/v1/codes", json={"number": 2, "days": 1}, headers=AS_OPERATOR)
        await town.restart()
        await town.http.get("/v1/devices", headers=AS_OPERATOR)
        text = (await town.http.get("/v1/audit", headers=ben)).text
        rest = (await town.http.get("/v1/audit?after=9", headers=ben)).text
        wrong = await town.http.get("/v1/audit?after=-1", headers=ben)
        return text, rest, wrong.status_code, made.json()["codes"]

    text, rest, wrong, made = told(tmp_path, [], play)
    lines = text.splitlines()
    entries = [json.loads(line) for line in lines]
    assert [(each["who"], each["act"], each["outcome"]) for each in entries] == [
        ("operator", "token issue", "asked"),
        ("operator", "token issue", "done"),
        ("operator", "token issue", "asked"),
        ("operator", "token issue", "done"),
        ("operator", "campaign stop", "asked"),
        ("operator", "campaign stop", "refused: Unknown"),
        ("anna", "POST /v1/codes", "refused: role"),
        ("operator", "codes make", "asked"),
        ("operator", "codes make", "done"),
        ("operator", "devices read", "done"),
    ]
    assert entries[4]["object"] == "a\nb" and len(lines) == 10, "a name with a newline is one line"
    assert (rest.splitlines(), wrong) == (lines[9:], 422)
    assert not any(code in text for code in made)
    assert checked(lines) == LogHead(10, entries[-1]["digest"])
    swapped = [lines[1], lines[0], *lines[2:]]
    changed = [line.replace("anna", "otto") for line in lines]
    for broken in (swapped, changed, lines[1:], lines[:3] + lines[4:], [*lines, lines[-1]], [*lines, "{}"], ["[" * 99]):
        with pytest.raises(CodecError, match="broken at entry"):
            checked(broken)


def test_metrics_are_prometheus_text_and_name_nobody(tmp_path):
    async def play(town):
        town.devices[0].declines = "my budget is spent, says anna@example"
        await town.begin(campaign())
        await town.live("berlin")
        return await town.http.get("/metrics", headers=AS_OPERATOR), [device.name for device in town.devices]

    answer, names = told(tmp_path, crowd(12), play)
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = {}
    for line in answer.text.splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            found[name] = float(value)
    assert found["hazemap_devices_enrolled"] == found["hazemap_devices_recent"] == 12
    assert found["hazemap_polls_total"] >= 12
    assert found['hazemap_sums_total{outcome="opened",reason=""}'] == 1
    assert found['hazemap_refusals_total{reason="budget"}'] >= 1
    assert found['hazemap_enrolments_total{outcome="new"}'] == 12
    assert found['hazemap_store_commit_seconds_bucket{le="+Inf"}'] == found["hazemap_store_commit_seconds_count"] > 0
    assert not [name for name in (*names, "anna", "berlin", "127.0.0.1") if name in answer.text]
