"""What a page of another origin may ask of an aggregator: keys and uploads, where the operator declared it."""

import asyncio
import re

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from hazemap.errors import InputError
from hazemap.federated.aggregator.aggregator_process import AggregatorProcess
from hazemap.federated.aggregator.aggregator_routes import FOR_DEVICES as ASKED
from hazemap.federated.service.served_address import PageAccess
from hazemap.federated.service.state_folder import StateFolder

TAB, STRANGER = "https://tab.example", "https://stranger.example"
ALLOW = "access-control-allow-origin"
TASK = "A" * 43
FOR_DEVICES = ("/dap/hpke_config", f"/dap/tasks/{TASK}/reports")
FOR_OTHERS = (
    "/dap/metrics",
    "/dap/hazemap/tasks",
    f"/dap/tasks/{TASK}/collection_jobs",
    f"/dap/tasks/{TASK}/reports/x",
)


def asked(*requests):
    async def answer(_):
        return Response("keys", headers={"retry-after": "3"})

    async def play():
        inner = Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST", "DELETE"])])
        transport = httpx.ASGITransport(PageAccess(inner, re.compile("/dap" + ASKED), frozenset({TAB})))
        async with httpx.AsyncClient(transport=transport, base_url="https://one.example") as http:
            return [await http.request(method, path, headers=headers) for method, path, headers in requests]

    return asyncio.run(play())


def preflight(path, page, method="POST", headers="content-type"):
    wanted = {"access-control-request-method": method, "access-control-request-headers": headers}
    return ("OPTIONS", path, {"origin": page, **wanted})


def test_a_declared_page_may_read_keys_and_upload_and_learns_when_to_come_again():
    for path in FOR_DEVICES:
        before, answer = asked(preflight(path, TAB), ("POST", path, {"origin": TAB}))
        assert before.status_code == 204 and before.headers[ALLOW] == answer.headers[ALLOW] == TAB
        assert answer.headers["access-control-expose-headers"] == "retry-after"
        assert "access-control-allow-credentials" not in answer.headers


def test_no_other_page_may_and_a_declared_one_may_nothing_else():
    for path in FOR_DEVICES:
        for request in (
            preflight(path, STRANGER),
            ("GET", path, {"origin": STRANGER}),
            ("GET", path, {"origin": "null"}),
        ):
            assert ALLOW not in asked(request)[0].headers
        [answer] = asked(preflight(path, TAB, method="DELETE", headers="authorization"))
        assert answer.headers["access-control-allow-methods"] == "GET, POST"
        assert answer.headers["access-control-allow-headers"] == "content-type"
    for path in FOR_OTHERS:
        assert all(ALLOW not in each.headers for each in asked(preflight(path, TAB), ("POST", path, {"origin": TAB})))


def test_an_aggregator_names_no_page_of_its_own_nor_one_that_can_be_changed_on_its_way(tmp_path):
    at = "https://one.example/"
    for page, said in (
        ("https://one.example", "itself"),
        ("http://tab.example", "changed on its way"),
        ("https://tab.example/", "is written as"),
    ):
        with pytest.raises(InputError, match=said):
            AggregatorProcess("leader", StateFolder(tmp_path), (), take_tasks_at=at, page_origins=(page,))
    AggregatorProcess(
        "leader", StateFolder(tmp_path), (), take_tasks_at=at, page_origins=(TAB, "http://127.0.0.1:9000")
    )
