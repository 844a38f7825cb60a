"""Browsers: which pages may speak for a device, and which may not."""

import asyncio
from functools import partial

import pytest
from tests.federated.server.fleet import AS_OPERATOR, FakeDevice, Town

from hazemap.errors import InputError
from hazemap.federated.server.server_process import ServerProcess
from hazemap.federated.service.served_address import ServedAddress, checked_origins
from hazemap.federated.service.state_folder import StateFolder

TAB, STRANGER = "https://tab.example", "https://stranger.example"
SESSION = f"/v1/tasks/{'0' * 64}"
PATHS = ("/v1/challenge", "/v1/enrol", "/v1/recipes", "/v1/tasks", SESSION, f"{SESSION}/refusal")
CORS = "access-control-allow-origin"


def told(folder, pages, play):
    async def scene():
        async with Town(folder, [FakeDevice(13.3, 52.5)], pages=pages) as town:
            return await play(town)

    return asyncio.run(scene())


def preflight(town, path, at):
    asked = {"origin": at, "access-control-request-method": "POST", "access-control-request-headers": "authorization"}
    return town.http.options(path, headers=asked)


def test_a_declared_page_may_do_what_devices_do_and_a_browser_lets_it_read_when_to_come_again(tmp_path):
    async def play(town):
        [device] = town.devices
        before = [await preflight(town, path, TAB) for path in PATHS]
        poll = await town.http.get("/v1/tasks", headers={**device.headers, "origin": TAB})
        unknown = await town.http.get("/v1/tasks", headers={"origin": TAB})
        wrong = await town.http.post("/v1/enrol", content=b"x", headers={"origin": TAB})
        return before, poll, unknown, wrong

    before, poll, unknown, wrong = told(tmp_path, checked_origins([TAB]), play)
    for each in before:
        assert each.status_code == 204 and each.headers[CORS] == TAB
        assert each.headers["access-control-allow-headers"] == "authorization, content-type"
    assert (poll.status_code, unknown.status_code, wrong.status_code) == (204, 401, 422)
    for each in (poll, unknown, wrong):
        assert each.headers[CORS] == TAB and each.headers["vary"] == "origin"
        assert each.headers["access-control-expose-headers"] == "retry-after"
        assert "access-control-allow-credentials" not in each.headers


@pytest.mark.parametrize(
    ("pages", "at"), [(frozenset(), TAB), (checked_origins([TAB]), STRANGER), (checked_origins([TAB]), "null")]
)
def test_no_other_page_is_answered_by_default_none(tmp_path, pages, at):
    async def play(town):
        [device] = town.devices
        return [
            *[await preflight(town, path, at) for path in PATHS],
            await town.http.get("/v1/tasks", headers={**device.headers, "origin": at}),
        ]

    found = told(tmp_path, pages, play)
    assert [each for each in found if CORS in each.headers] == []
    assert all(each.status_code >= 400 for each in found[:-1])


def test_not_even_a_declared_page_may_give_orders_or_look(tmp_path):
    async def play(town):
        paths = ("/v1/recipes/0", "/v1/campaigns", "/v1/codes", "/v1/tokens", "/v1/audit", "/v1/status", "/v1/tasksx")
        asked = [await preflight(town, path, TAB) for path in paths]
        read = [await town.http.get(path, headers={**AS_OPERATOR, "origin": TAB}) for path in paths]
        return asked + read

    assert [each for each in told(tmp_path, checked_origins([TAB]), play) if CORS in each.headers] == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("https://maps.example", "is this server itself"),
        ("https://tab.example/page", "is written as https://tab.example"),
        ("HTTPS://tab.example", "is written as"),
        ("http://tab.example", "could be read and changed"),
        ("*", "is such as"),
        ("null", "is such as"),
    ],
)
def test_a_page_has_an_https_origin_of_its_own_which_is_not_the_servers(tmp_path, wrong, words):
    process = partial(ServerProcess, StateFolder(tmp_path))
    with pytest.raises(InputError, match=words):
        process(ServedAddress("0.0.0.0", 8470, behind_proxy=True), ("https://maps.example",), page_origins=(TAB, wrong))
    process(page_origins=("http://127.0.0.1:8471",))
    with pytest.raises(InputError, match="this server itself"):
        process(ServedAddress("127.0.0.1", 8471), page_origins=("http://127.0.0.1:8471",))
