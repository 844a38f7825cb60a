"""Who may ask a studio for anything: its own page, by its own name, signed in, in few bytes."""

import json

import pytest
from starlette.testclient import TestClient
from tests.federated.service.test_http_limits import awaited, connected, said, send, serving

from hazemap.errors import InputError
from hazemap.federated.service.served_address import ServedAddress
from hazemap.studio.request_guard import FORM, LASTS, TICKET, TICKETS, Fetched, Sessions
from hazemap.studio.stewards import ALONE, Stewards
from hazemap.studio.studio_process import LIMITS, Studio

from .scene import HERE, PAGE, Browser, Scene

ASKED = {"folder": ""}


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8475", "127.0.0.1", "127.0.0.1:9", "127.0.0.1.evil.example:8475", ""]
)
def test_a_name_that_is_not_its_own_gets_nothing_not_even_the_page(tmp_path, host):
    browser = Scene(tmp_path).browser()
    for method, path in (("GET", "/"), ("POST", "/v1/files"), ("POST", "/v1/session")):
        found = browser.client.request(method, path, headers=browser.headers(host=host), json=ASKED)
        assert found.status_code == 421, (path, found.text)
    assert browser.post("/v1/files", ASKED, host="localhost:8475", origin="http://localhost:8475").status_code == 200


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, True),
        ({"origin": "http://evil.example"}, False),
        ({"origin": "http://127.0.0.1:9999"}, False),  # another server of this machine
        ({"origin": "https://127.0.0.1:8475"}, False),
        ({"origin": "null"}, False),
        ({"origin": None}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "same-site"}, False),
        ({"sec-fetch-site": None}, True),  # a browser that does not say: the origin decides
        ({"x-hazemap-key": ""}, False),
        ({"x-hazemap-key": "guessed"}, False),
    ],
)
def test_only_the_studios_own_page_is_answered_and_only_with_its_key(tmp_path, headers, allowed):
    found = Scene(tmp_path).browser().post("/v1/files", ASKED, **headers)
    assert found.status_code == 200 if allowed else found.status_code in (401, 403)
    assert allowed or "entries" not in found.text


def test_a_cookie_alone_opens_nothing_because_other_ports_of_this_machine_see_it(tmp_path):
    scene = Scene(tmp_path)
    browser = scene.browser()
    other = TestClient(scene.application, base_url=HERE, cookies=dict(browser.client.cookies))
    for path in ("/v1/runs", "/v1/session"):
        assert other.get(path).status_code == 401
    key = Browser(scene)
    key.key = browser.key
    assert key.get("/v1/runs").status_code == 401
    assert browser.get("/v1/runs").status_code == 200


def test_the_cookie_is_for_no_script_and_no_other_site(tmp_path):
    scene = Scene(tmp_path)
    said = Browser(scene).sign_in(link=scene.sessions.link(ALONE)).headers["set-cookie"].lower()
    assert "httponly" in said and "samesite=strict" in said and "path=/" in said and "domain" not in said
    assert said.startswith("hazemap-studio-8475=")


def test_a_link_works_once_and_a_session_ends(tmp_path):
    now = [0.0]
    scene = Scene(tmp_path, clock=lambda: now[0])
    link = scene.sessions.link(ALONE)
    one, two = Browser(scene), Browser(scene)
    assert one.sign_in(link=link).status_code == 201
    assert two.sign_in(link=link).status_code == 401
    assert one.get("/v1/session").json()["name"] == ALONE
    now[0] = LASTS + 1
    assert one.get("/v1/session").status_code == 401
    again = scene.browser()
    assert again.client.delete("/v1/session", headers=again.headers()).status_code == 204
    assert again.get("/v1/session").status_code == 401


def test_another_link_is_printed_where_only_the_owner_of_the_terminal_sees_it(tmp_path, capsys):
    scene = Scene(tmp_path)
    stranger = Browser(scene)
    found = stranger.post("/v1/link")
    assert (found.status_code, found.content) == (204, b"")
    link = capsys.readouterr().err.partition("#link=")[2].split()[0]
    assert stranger.sign_in(link=link).status_code == 201


def test_whoever_guesses_is_made_to_wait_and_keeps_nobody_out_who_has_the_link(tmp_path, capsys):
    """All programs of a machine have one address: thirty wrong guesses had locked out its owner."""
    scene = Scene(tmp_path)
    link, browser = scene.sessions.link(ALONE), Browser(scene)
    codes = [browser.sign_in(link=f"guess {i}").status_code for i in range(40)]
    assert set(codes) == {401, 429} and codes[-1] == 429
    asked = [browser.post("/v1/link").status_code for _ in range(40)]
    assert asked[-1] == 429 and "#link=" not in capsys.readouterr().err
    assert Browser(scene).sign_in(link=link).status_code == 201
    assert Browser(scene).sign_in(link=link).status_code == 429
    assert Browser(Scene(tmp_path)).sign_in(token="").status_code == 422


def test_slow_requests_of_other_programs_keep_no_owner_out(tmp_path):
    """All have the address of this machine: those that keep the studio waiting make room."""
    scene = Scene(tmp_path, chosen={"per_address": 8, "connections": 12})
    limits, link = scene.studio.address.limits(**LIMITS), scene.sessions.link(ALONE)
    head = f"POST /v1/session HTTP/1.1\r\nHost: {HERE[7:]}\r\nOrigin: {HERE}\r\nContent-Type: application/json\r\n"
    with serving(limits, application=scene.application) as (port, metrics):
        slow = [connected(port) for _ in range(20)]
        for line in slow:
            send(line, f"{head}Content-Length: 100\r\n\r\n".encode() + b"{")
        awaited(lambda: metrics.rejected["connections_per_address"] >= 12)
        secret = json.dumps({"link": link})
        entered = said(port, f"{head}Connection: close\r\nContent-Length: {len(secret)}\r\n\r\n{secret}".encode())
        for line in slow:
            line.close()
    assert entered.startswith(b"HTTP/1.1 201")


def test_links_that_others_ask_for_leave_the_owners_link_good(tmp_path, capsys):
    scene = Scene(tmp_path)
    link = scene.sessions.link(ALONE)
    assert [Browser(scene).post("/v1/link").status_code for _ in range(10)] == [204] * 10
    assert capsys.readouterr().err.count(f"#link={link}") == 10, "the same one, until it is used"
    assert Browser(scene).sign_in(link=link).status_code == 201
    assert scene.sessions.link(ALONE) != link


def test_every_answer_says_that_nothing_else_may_run_frame_or_keep_it(tmp_path):
    browser = Scene(tmp_path).browser()
    answers = [browser.get("/"), browser.get("/app.js"), browser.get("/v1/nothing"), browser.post("/v1/files", ASKED)]
    answers += [browser.post("/v1/files", ASKED, host="evil.example")]
    for found in answers:
        policy = found.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self';" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy and "*" not in policy and "http" not in policy
        assert found.headers["cache-control"] == "no-store" and found.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("content", "kind", "code"),
    [
        (b"{}" + b" " * FORM, "application/json", 413),
        (b'{"folder": ""}', "text/plain", 415),
        (b"folder=", "application/x-www-form-urlencoded", 415),
        (b"[]", "application/json", 422),
        (b"{", "application/json", 422),
        (b"", "application/json", 422),
        (b'{"folder": NaN}', "application/json", 422),
        (b'{"folder": "", "folder": "a"}', "application/json", 422),
        (b"[" * 1000, "application/json", 422),
        (b'{"folder": "\xff"}', "application/json", 422),
        (b'{"folder": 7}', "application/json", 422),
        (b'{"folder": "\\ud800"}', "application/json", 422),
    ],
)
def test_a_body_that_is_no_form_is_refused_before_it_is_understood(tmp_path, content, kind, code):
    browser = Scene(tmp_path).browser()
    found = browser.client.post("/v1/files", content=content, headers=browser.headers(**{"content-type": kind}))
    assert found.status_code == code and set(found.json()["error"]) == {"type", "message", "said"}


def test_a_body_without_an_end_is_not_read_to_it(tmp_path):
    browser, sent = Scene(tmp_path).browser(), [0]

    def parts():
        for _ in range(10_000):
            sent[0] += 1
            yield b" " * 1024

    headers = browser.headers(**{"content-type": "application/json"})
    assert browser.client.post("/v1/files", content=parts(), headers=headers).status_code == 413


def test_a_ticket_is_fetched_once_in_time_by_whose_it_is_and_runs_apart(tmp_path):
    now = [0.0]
    scene = Scene(tmp_path, clock=lambda: now[0])
    browser, page = scene.browser(), Fetched(b"<script>1</script>", "text/html; charset=utf-8")
    ticket = scene.sessions.ticket(ALONE, page)
    found = browser.client.get(f"/v1/tickets/{ticket}", headers={"sec-fetch-site": "same-origin"})
    assert found.content == page.content
    assert found.headers["content-security-policy"].startswith("sandbox allow-scripts;")
    assert "allow-same-origin" not in found.headers["content-security-policy"]
    assert browser.client.get(f"/v1/tickets/{ticket}").status_code == 422
    late, others = scene.sessions.ticket(ALONE, page), scene.sessions.ticket("bob", page)
    assert browser.client.get(f"/v1/tickets/{others}").status_code == 422
    now[0] = TICKET + 1
    assert browser.client.get(f"/v1/tickets/{late}").status_code == 422
    assert Browser(scene).client.get(f"/v1/tickets/{scene.sessions.ticket(ALONE, page)}").status_code == 401


def test_secrets_that_are_out_are_few():
    sessions = Sessions()
    tickets = [sessions.ticket(ALONE, Fetched(b"", "text/html")) for _ in range(TICKETS + 6)]
    assert [sessions.fetched(ALONE, each) is None for each in tickets] == [True] * 6 + [False] * TICKETS
    assert len({sessions.link(ALONE) for _ in range(10)}) == 1


def test_another_address_needs_tls_users_and_a_name(tmp_path):
    pem = tmp_path / "a.pem"
    pem.write_text("")
    (tmp_path / "data").mkdir()
    alone = Stewards.alone(tmp_path / "data", tmp_path / "ledger.sqlite")
    with pytest.raises(InputError, match="unprotected"):
        Studio(alone, ServedAddress("192.0.2.1", 8475))
    with pytest.raises(InputError, match="--users"):
        Studio(alone, ServedAddress("192.0.2.1", 8475, pem, pem))
    with pytest.raises(InputError, match="leave --name out"):
        Studio(alone, ServedAddress("127.0.0.1", 8475), ("studio.example",))
    with pytest.raises(InputError, match="--name"):
        Studio(Stewards({}), ServedAddress("0.0.0.0", 8475, pem, pem))
    served = Studio(Stewards({}), ServedAddress("0.0.0.0", 443, pem, pem), ("studio.example",))
    assert served.origins.origins >= {"https://studio.example", "https://studio.example:443"}
    application = served.application(Sessions(), None, PAGE)
    found = TestClient(application, base_url="https://studio.example").get("/")
    assert found.status_code == 200 and "max-age" in found.headers["strict-transport-security"]
