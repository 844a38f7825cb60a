"""What an operator does in the studio: devices, campaigns, refusals, the map so far, the release."""

import asyncio
import json
import shlex
import threading
import time

import httpx
import pytest

from hazemap.cli.main import main
from hazemap.errors import FileError, InputError
from hazemap.federated.service.prometheus_text import labels, series
from hazemap.privacy.ledger import Ledger
from hazemap.studio import server_answers
from hazemap.studio.coordinator_access import ANSWER, CoordinatorAccess, StrangeAnswer
from hazemap.studio.operator_routes import THREADS
from hazemap.studio.stewards import Stewards

from .coordinator_scene import SECRET, coordinator, hostile, operating, people, token_in
from .scene import BOX, HERE, Browser, Scene

WORDS = {"name": "commuters", "purpose": "where people live", "people": 12, "dropout": "0.25", "corrupt": "0"}
MAP = {"epsilon": "10", "box": BOX, "dataset": "town", "method": "flat:4"}
ROUTES = [
    ("GET", "/v1/campaigns", None),
    ("GET", "/v1/devices", None),
    ("POST", "/v1/campaign", {"name": "commuters"}),
    ("POST", "/v1/campaign/map", {"name": "commuters"}),
    ("POST", "/v1/campaign/act", {"name": "commuters", "act": "stop"}),
    ("POST", "/v1/campaign/fetch", {"name": "commuters", "file": "commuters.parquet"}),
    ("POST", "/v1/campaign/order", {"order": WORDS, "map": MAP}),
]
ASKED = [*ROUTES, ("GET", "/v1/aggregators", None), ("POST", "/v1/campaign/review", {"order": WORDS, "map": MAP})]


def form(**changes):
    return {"order": {**WORDS, "stage": 600, "wait": 600, **changes}, "map": MAP}


def asked(browser, method, path, data):
    return browser.get(path) if method == "GET" else browser.post(path, data)


def awaited(browser, state, name="commuters", seconds=600):
    until = time.monotonic() + seconds
    while True:
        found = browser.post("/v1/campaign", {"name": name}).json()
        if found["state"] in state:
            return found
        assert time.monotonic() < until, found
        time.sleep(0.05)


@pytest.fixture
def served(tmp_path):
    with coordinator(tmp_path / "coordinator") as url:
        yield operating(tmp_path, url), url


def test_a_campaign_is_reviewed_in_words_before_anything_is_sent(served):
    scene, url = served
    browser = scene.browser()
    found = browser.post("/v1/campaign/review", form()).json()
    assert (found["price"], found["people"], found["shards"], found["dataset"]) == ("ε = 10", 12, 1, "town")
    assert any("devices refuse a secure sum over fewer than 100" in each for each in found["cautions"])
    assert found["assumed"] and all(isinstance(each, str) for each in found["assumed"])
    assert browser.get("/v1/campaigns").json()["campaigns"] == []
    assert browser.get("/v1/session").json()["server"] == url


def test_what_is_shown_as_a_command_and_as_python_orders_the_same_campaign(served, capsys):
    scene, _ = served
    browser = scene.browser()
    same = browser.post("/v1/campaign/review", form()).json()["same_as"]
    exec(compile(same["python"], "shown", "exec"), {})
    of_python = browser.post("/v1/campaign", {"name": "commuters"}).json()
    other = browser.post("/v1/campaign/review", form(name="again")).json()["same_as"]
    assert main(shlex.split(other["command"])[1:]) == 0, capsys.readouterr().err
    of_command = browser.post("/v1/campaign", {"name": "again"}).json()
    third = form(name="third")
    assert browser.post("/v1/campaign/order", third).status_code == 201
    of_studio = browser.post("/v1/campaign", {"name": "third"}).json()
    own = ("name", "created", "same_as", "state", "reason", "ended", "running", "rounds", "missing", "asking")
    rests = [{k: v for k, v in each.items() if k not in own} for each in (of_python, of_command, of_studio)]
    assert rests[0] == rests[1] == rests[2]
    assert browser.post("/v1/campaign/order", third).status_code == 422  # a name is used once
    listed = browser.get("/v1/campaigns").json()
    assert {each["name"] for each in listed["campaigns"]} == {"commuters", "again", "third"}
    assert main(shlex.split(listed["same_as"]["command"])[1:]) == 0
    exec(compile(listed["same_as"]["python"], "shown", "exec"), {})
    said = capsys.readouterr().out
    assert "commuters" in said and "third" in said
    assert browser.post("/v1/campaign/act", {"name": "third", "act": "stop"}).status_code == 204
    assert browser.post("/v1/campaign", {"name": "third"}).json()["state"] == "stopped"


def test_a_campaign_that_cannot_be_is_refused_in_words_and_nothing_is_sent(served):
    scene, _ = served
    browser = scene.browser()
    for changed in (
        {"people": 1},
        {"people": "12"},
        {"people": True},
        {"stage": "soon"},
        {"name": "../x"},
        {"name": "UP"},
        {"trust": "nobody"},
        {"trust": "two-servers"},
        {"shard": 1},
        {"dropout": "2"},
        {"wait": 1e308},
        {"token": "x"},
        {"purpose": "<script>" * 100},
        {"mode": "evil"},
    ):
        for path in ("/v1/campaign/review", "/v1/campaign/order"):
            found = browser.post(path, form(**changed))
            assert found.status_code == 422, (changed, found.text)
    for map_ in (
        {"prior": "/etc/passwd"},
        {"source": "visits.csv"},
        {"output": "x"},
        {"cells": "hexagons:/etc/passwd"},
    ):
        assert browser.post("/v1/campaign/order", {"order": WORDS, "map": {**MAP, **map_}}).status_code == 422
    for data in ({}, {"order": WORDS}, {"order": [], "map": MAP}, {"order": WORDS, "map": MAP, "more": 1}):
        assert browser.post("/v1/campaign/order", data).status_code == 422
    assert browser.get("/v1/campaigns").json()["campaigns"] == []


@pytest.mark.slow
def test_a_campaign_is_ordered_watched_and_fetched_into_the_folder(served):
    scene, url = served
    browser = scene.browser()
    with people(url, 14, declining=1):
        until = time.monotonic() + 600
        while browser.get("/v1/campaigns").json()["devices"]["recent"] < 14:
            assert time.monotonic() < until
            time.sleep(0.1)
        assert len(browser.get("/v1/devices").json()["devices"]) == 14
        assert browser.post("/v1/campaign/order", form()).status_code == 201
        found = awaited(browser, ("done", "failed"))
    assert found["state"] == "done", found
    assert found["rounds"][-1]["answered"] and found["spent"] == 1
    refusals = [each for one in found["rounds"] for each in one["refusals"]]
    assert all(each["said"] == "<b>not</b> me" for each in refusals)
    assert browser.post("/v1/campaign/map", {"name": "commuters"}).content.startswith(b"\x89PNG")
    fetched = browser.post("/v1/campaign/fetch", {"name": "commuters", "file": "commuters.parquet"})
    assert fetched.status_code == 201, fetched.text
    assert browser.post("/v1/map", {"file": "commuters.parquet"}).json()["dataset"] == "town"
    again = browser.post("/v1/campaign/fetch", {"name": "commuters", "file": "commuters.parquet"})
    assert again.status_code == 422 and "there already" in again.text
    content = (scene.root / "commuters.parquet").read_bytes()
    (scene.root / "commuters.parquet").unlink()
    exec(compile(fetched.json()["same_as"]["python"], "shown", "exec"), {})
    assert (scene.root / "commuters.parquet").read_bytes() == content


@pytest.mark.parametrize("file", ["../map.parquet", "/tmp/map.parquet", "map.csv", "away/map.parquet", "", 7, None])
def test_a_release_is_fetched_into_the_folder_alone(tmp_path, file):
    with hostile({"/v1/campaigns/commuters/release": (200, {}, b"PAR1 no release")}) as (url, _):
        scene = operating(tmp_path, url, SECRET)
        (scene.root / "away").symlink_to(tmp_path)
        found = scene.browser().post("/v1/campaign/fetch", {"name": "commuters", "file": file})
        assert found.status_code == 422, found.text
        assert {each.name for each in scene.root.iterdir()} == {"visits.csv", "away"}


def test_what_is_no_release_does_not_come_into_the_folder(tmp_path):
    with hostile({"/v1/campaigns/commuters/release": (200, {}, b"PAR1 no release")}) as (url, _):
        scene = operating(tmp_path, url, SECRET)
        found = scene.browser().post("/v1/campaign/fetch", {"name": "commuters", "file": "a.parquet"})
        assert found.status_code in (422, 502), found.text
        assert {each.name for each in scene.root.iterdir()} == {"visits.csv"}


LISTED = {"name": "commuters", "state": "running", "reason": "", "created": "2026", "ended": None}
FINE = {"campaigns": [LISTED], "devices": {"enrolled": 3, "recent": 2}}
STRANGE = [
    b"",
    b"null",
    b"[]",
    b"<html><script>alert(1)</script>",
    b'{"campaigns": [], "campaigns": []}',
    b"[" * 100_000,
    b"\xff\xfe",
    b'{"campaigns": NaN}',
    *(
        json.dumps(each).encode()
        for each in (
            {**FINE, "campaigns": {}},
            {**FINE, "campaigns": ["commuters"]},
            {**FINE, "devices": None},
            {**FINE, "devices": {"enrolled": "3", "recent": 2}},
            {**FINE, "devices": {"enrolled": True, "recent": 2}},
            {**FINE, "devices": {"enrolled": 10**30, "recent": 2}},
            {**FINE, "devices": {"enrolled": -1, "recent": 2}},
            {"campaigns": [{**LISTED, "name": "../../v1/tokens"}], "devices": FINE["devices"]},
            {"campaigns": [{**LISTED, "name": "<img src=x>"}], "devices": FINE["devices"]},
            {"campaigns": [{**LISTED, "state": 7}], "devices": FINE["devices"]},
            {"campaigns": [{**LISTED, "reason": ["x"]}], "devices": FINE["devices"]},
            {"campaigns": [{}], "devices": FINE["devices"]},
        )
    ),
]


@pytest.mark.parametrize("content", STRANGE, ids=range(len(STRANGE)))
def test_an_answer_of_another_form_is_refused_as_such(tmp_path, content):
    with hostile({"/v1/campaigns": (200, {}, content)}) as (url, _):
        found = operating(tmp_path, url, SECRET).browser().get("/v1/campaigns")
        assert found.status_code == 502, found.text
        assert len(found.text) < 1_000 and "<script" not in found.text


def test_words_of_a_server_are_one_short_line_and_few(tmp_path):
    listed = [{**LISTED, "name": f"c{i}", "reason": "<b>\u202e\x1b[31m\n" * 1_000} for i in range(3_000)]
    content = json.dumps({**FINE, "campaigns": listed}).encode()
    assert len(content) > 1 << 24  # more than any answer
    with hostile({"/v1/campaigns": (200, {}, content)}) as (url, _):
        assert operating(tmp_path, url, SECRET).browser().get("/v1/campaigns").status_code == 502
    few = json.dumps({**FINE, "campaigns": listed[:10]}).encode()
    with hostile({"/v1/campaigns": (200, {}, few)}) as (url, _):
        found = operating(tmp_path, url, SECRET).browser().get("/v1/campaigns").json()
    reason = found["campaigns"][0]["reason"]
    assert len(reason) <= server_answers.WORDS + 1 and reason.isprintable() and reason.startswith("<b> ")


def test_an_answer_without_an_end_is_not_read_to_it(tmp_path):
    sent = [0]

    def endless():
        while True:
            sent[0] += 1
            yield b" " * (1 << 16)

    with hostile({"/v1/campaigns": (200, {}, endless)}) as (url, _):
        found = operating(tmp_path, url, SECRET).browser().get("/v1/campaigns")
    assert found.status_code == 502 and sent[0] < 3 * (ANSWER.length >> 16)


def test_a_coordinator_that_keeps_everybody_waiting_keeps_the_studio_working(tmp_path):
    enough, waiting = threading.Event(), []

    def slow():
        waiting.append(1)
        enough.wait(600)
        yield b"{}"

    async def worked(scene, browser):
        transport = httpx.ASGITransport(scene.application)
        async with httpx.AsyncClient(transport=transport, base_url=HERE, cookies=browser.client.cookies) as http:
            asking = [asyncio.create_task(http.get("/v1/campaigns", headers=browser.headers())) for _ in range(40)]
            while len(waiting) < THREADS:
                await asyncio.sleep(0.01)
            found = await http.post("/v1/files", json={"folder": ""}, headers=browser.headers())
            asked = sum(waiting)
            enough.set()
            return found, asked, await asyncio.gather(*asking)

    with hostile({"/v1/campaigns": (200, {}, slow)}) as (url, _):
        scene = operating(tmp_path, url, SECRET)
        found, asked, replies = asyncio.run(worked(scene, scene.browser()))
    assert found.status_code == 200 and asked == THREADS
    assert {reply.status_code for reply in replies} == {502}


def test_a_compressed_answer_is_not_unpacked(tmp_path):
    import gzip

    bomb = gzip.compress(bytes(1 << 24))
    with hostile({"/v1/campaigns": (200, {"Content-Encoding": "gzip"}, bomb)}) as (url, _):
        assert operating(tmp_path, url, SECRET).browser().get("/v1/campaigns").status_code == 502


def test_the_token_goes_to_its_server_alone_and_never_to_the_browser(tmp_path, capsys, caplog):
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in SECRET)
    told = json.dumps({"error": f"wrong: Bearer {SECRET} <script>" + "x" * 5_000}).encode()
    with hostile({}) as (elsewhere, other):
        for answer in (
            (200, {}, json.dumps({**FINE, "campaigns": [{**LISTED, "reason": SECRET}]}).encode()),
            (200, {}, json.dumps({**FINE, "more": "x"}).replace('"x"', f'"{escaped}"').encode()),
            (401, {}, told),
            (500, {}, told),
            (402, {}, told),
            (307, {"Location": f"{elsewhere}/steal"}, b""),
            (200, {"Location": SECRET}, b"{" + SECRET.encode()),
        ):
            paths = ["/v1/campaigns", "/v1/devices"]
            named = [f"/v1/campaigns/commuters{end}" for end in ("", "/map", "/stop", "/release")]
            with hostile(dict.fromkeys(paths + named, answer)) as (url, known):
                browser = operating(tmp_path, url, SECRET).browser()
                for each in ASKED:
                    found = asked(browser, *each)
                    assert SECRET not in found.text and escaped not in found.text, (answer, each)
                    assert SECRET not in str(found.headers)
                    assert found.status_code != 401  # which would mean that the steward is not signed in
                    assert len(found.text) < 10_000
                assert all(headers.get("Authorization") == f"Bearer {SECRET}" for _, _, headers in known)
                assert all(SECRET not in path for _, path, _ in known)
        assert other == []
    said = capsys.readouterr()
    assert SECRET not in said.out + said.err + caplog.text


def test_a_server_that_is_not_there_is_said_so_without_a_secret(tmp_path):
    with hostile({}) as (url, _):
        pass
    browser = operating(tmp_path, url, SECRET).browser()
    for each in ROUTES:
        found = asked(browser, *each)
        assert found.status_code == 502 and "did not answer" in found.text and SECRET not in found.text


@pytest.mark.parametrize("token", ["två ord på svenska", "one\ntwo lines of it", "\x00" * 20])
def test_a_token_that_is_none_is_refused_without_being_told(tmp_path, token):
    file = tmp_path / "operator.token"
    file.write_text(token)
    with pytest.raises(FileError) as refused:
        CoordinatorAccess.at("https://maps.example", file)
    assert token not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://maps.example",
        "ftp://maps.example",
        "https://ann:secret@maps.example",
        "https://maps.example/?token=x",
        "maps.example",
        "https://maps.example/#x",
    ],
)
def test_an_address_is_https_or_this_machine_and_holds_no_secret(tmp_path, url):
    with pytest.raises(InputError):
        CoordinatorAccess.at(url, token_in(tmp_path, SECRET))


def test_nothing_of_an_operator_is_there_without_a_server_or_a_session(tmp_path):
    scene = Scene(tmp_path)
    browser, stranger = scene.browser(), Browser(scene)
    for each in ASKED:
        assert asked(browser, *each).status_code == 422
        assert asked(stranger, *each).status_code == 401
    assert browser.get("/v1/session").json()["server"] is None


@pytest.mark.parametrize("headers", [{"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}])
def test_another_site_orders_and_reads_nothing(tmp_path, headers):
    with hostile({}) as (url, known):
        browser = operating(tmp_path, url, SECRET).browser()
        for method, path, data in ASKED:
            found = browser.get(path, **headers) if method == "GET" else browser.post(path, data, **headers)
            assert found.status_code == 403
        browser.key = "guessed"
        for each in ASKED:
            assert asked(browser, *each).status_code == 401
        assert known == []


@pytest.mark.parametrize("name", ["../tokens", "a/b", "", "A", "x" * 65, 7, None, "a?b", "a%2fb"])
def test_no_name_reaches_another_address_of_the_server(tmp_path, name):
    with hostile({}) as (url, known):
        browser = operating(tmp_path, url, SECRET).browser()
        for path in ("/v1/campaign", "/v1/campaign/map", "/v1/campaign/act", "/v1/campaign/fetch"):
            data = {"name": name, "act": "stop", "file": "a.parquet"}
            assert browser.post(path, data).status_code == 422
        assert browser.post("/v1/campaign/act", {"name": "a", "act": "../release"}).status_code == 422
        assert known == []


def test_a_picture_is_a_picture(tmp_path):
    with hostile({"/v1/campaigns/commuters/map": (200, {}, b"<svg onload=alert(1)>")}) as (url, _):
        found = operating(tmp_path, url, SECRET).browser().post("/v1/campaign/map", {"name": "commuters"})
        assert found.status_code == 502


def test_the_health_of_aggregators_is_told_without_showing_them_a_token(tmp_path):
    from hazemap.federated.protocols.dap.vdaf_configuration import HpkeConfig, HpkeConfigList

    keys = HpkeConfigList((HpkeConfig(7, 0x20, 1, 1, bytes(32)),)).to_bytes()
    with hostile({"/dap/hpke_config": (200, {}, keys), "/hpke_config": (200, {}, b"<html>" * 50_000)}) as (url, known):
        scene = operating(tmp_path, url, SECRET, aggregators=[f"{url}/dap/", url, "http://127.0.0.1:1"])
        found = scene.browser().get("/v1/aggregators").json()["aggregators"]
    assert [each["well"] for each in found] == [True, False, False]
    assert all("authorization" not in {name.lower() for name in headers} for _, _, headers in known)


def test_an_aggregator_tells_its_tasks_to_the_token_of_its_own_operator(tmp_path):
    from hazemap.federated.protocols.dap.vdaf_configuration import HpkeConfig, HpkeConfigList

    keys = HpkeConfigList((HpkeConfig(7, 0x20, 1, 1, bytes(32)),)).to_bytes()
    own = tmp_path / "one.token"
    own.write_text("the token of this aggregator\n")
    lines = series("reports_waiting", "gauge", "Waiting.", [(labels(task="abcd1234"), 5)])
    lines += series("reports_rejected_total", "counter", "No.", [(labels(task="abcd1234", reason=r), 2) for r in "ab"])
    lines += ['hazemap_reports_waiting{task="<b>"} 1e999', "hazemap_jobs_open -1", "polls 3"]
    numbers = "\n".join(lines).encode()
    answers = {f"/{name}/hpke_config": (200, {}, keys) for name in ("good", "odd", "long")}
    answers |= {"/good/metrics": (200, {}, numbers), "/odd/metrics": (200, {}, own.read_bytes())}
    with hostile({**answers, "/long/metrics": (200, {}, b"x" * (2 << 20))}) as (url, known):
        asked = [f"{url}/{name}/,{own}" for name in ("good", "odd", "long")]
        scene = operating(tmp_path, url, SECRET, aggregators=asked)
        text = scene.browser().get("/v1/aggregators").text
    good, odd, long = json.loads(text)["aggregators"]
    assert good["tasks"] == [
        {"task": "abcd1234", "waiting": 5, "jobs": 0, "batches": 0, "counted": 0, "rejected": 4},
    ]
    assert (odd["sentence"], odd["tasks"]) == ("numbersRefused", None) and not long["well"]
    assert own.read_text().strip() not in text
    shown = {path: {k.lower(): v for k, v in headers.items()}.get("authorization") for _, path, headers in known}
    assert {path for path, token in shown.items() if token} == {f"/{name}/metrics" for name in ("good", "odd", "long")}
    assert SECRET not in str(known)
    with pytest.raises(InputError, match="holds no token"):
        operating(tmp_path, url, SECRET, aggregators=[f"{url},{tmp_path / 'nothing'}"])


def test_two_users_have_a_server_and_a_token_each(tmp_path):
    for name in ("ann", "bob"):
        (tmp_path / name).mkdir()
    token_in(tmp_path, SECRET)
    lines = "[{0}]\nfolder = '{0}'\nledger = '{0}.sqlite'\nserver = 'https://maps.example'\nserver_token = '{1}'\n"

    def written(*tokens):
        file = tmp_path / "users.toml"
        file.write_text("".join(lines.format(name, token) for name, token in zip(("ann", "bob"), tokens, strict=True)))
        return file

    (tmp_path / "other.token").write_text(SECRET[::-1])
    known = Stewards.of_file(written("operator.token", "other.token")).by_name
    assert known["ann"].server.token != known["bob"].server.token
    with pytest.raises(InputError, match="share a server's token"):
        Stewards.of_file(written("operator.token", "operator.token"))
    (tmp_path / "ann" / "inside.token").write_text(SECRET)
    with pytest.raises(InputError, match="among their files"):
        Stewards.of_file(written("ann/inside.token", "other.token"))
    file = written("operator.token", "other.token")
    file.write_text(file.read_text().replace("server_token = 'operator.token'\n", ""))
    with pytest.raises(InputError, match="both a server"):
        Stewards.of_file(file)


def test_a_steward_with_a_server_keeps_their_own_ledger(served):
    scene, _ = served
    assert scene.browser().post("/v1/campaign/order", form()).status_code == 201
    assert Ledger(scene.book.path).status("town", "full") is None


def test_a_round_is_read_strictly():
    turnout = {"survivors": 1, "shards": {"opened": 1}, "attempts": 1, "lost": [], "dropped": {}, "culprits": {}}
    found = server_answers.turnout(server_answers.fields({**turnout, "refusals": {"b": 1, "a": 1, "c": 2}}))
    assert [each["said"] for each in found["refusals"]] == ["c", "a", "b"]
    for wrong in ({"refusals": [1]}, {"refusals": {"a": 0.5}}, {"refusals": {"a": 1}, "lost": [7]}, {}):
        with pytest.raises(StrangeAnswer):
            server_answers.turnout(server_answers.fields({**turnout, **wrong}))
