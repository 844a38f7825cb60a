"""The other server may be anybody's: neither a leader nor a collector reads an answer without end."""

import asyncio
from types import SimpleNamespace

import httpx
import pytest
from tests.federated.aggregator.test_collector_client import Line
from tests.federated.aggregator.two_servers import TwoServers
from tests.federated.service.test_bounded_answer import PART, WithoutEnd

from hazemap.errors import Refused
from hazemap.federated.aggregator.leader_driver import LeaderDriver
from hazemap.federated.protocols.dap.basic_types import DapRole
from hazemap.federated.protocols.dap.resource_paths import id_text


@pytest.fixture
def two():
    made = TwoServers()
    made.upload(*(made.report(1) for _ in range(4)))
    yield made
    made.close()


def test_a_leader_waits_and_keeps_nothing_where_a_helper_sends_without_end(two, caplog):
    stream, now = WithoutEnd(), [float(two.now)]
    keys = SimpleNamespace(ring=lambda: two.rings[DapRole.LEADER])

    async def turn(answered):
        async with httpx.AsyncClient(transport=httpx.MockTransport(answered)) as http:
            return await LeaderDriver(two.leader.service, keys, http, "token", lambda: now[0]).turn()

    bodies = []

    def endless(request):
        bodies.append(request.content)
        return httpx.Response(201, stream=stream)

    assert asyncio.run(turn(endless)) == 1
    assert 0 < stream.taken * len(PART) <= 2 * len(bodies[0]) + (1 << 16) + len(PART)
    assert "more than the" in caplog.text and "bytes that its answer can have; again in" in caplog.text

    assert asyncio.run(turn(pytest.fail)) == 0  # it is left alone for a moment
    now[0] += 10

    def helped(request):
        outcome = two.helper.service.init_job(request.content, two.rings[DapRole.HELPER], two.now)
        return httpx.Response(201, headers={"Location": f"/x/{id_text(outcome.resource)}"}, content=outcome.message)

    assert asyncio.run(turn(helped)) == 1  # the same request, and nothing was lost
    assert two.leader.store.read("SELECT sum(count) FROM shards") == [(4,)]


@pytest.mark.parametrize("after", [0, 1])
def test_a_collector_says_so_where_a_leader_sends_without_end(two, after):
    line, stream = Line(two, set()), WithoutEnd()
    honest = line.answered

    def answered(request):
        if line.requests == after:
            return httpx.Response(200, headers={"Location": f"/x/{id_text(bytes(16))}"}, stream=stream)
        return honest(request)

    line.client._http = httpx.Client(transport=httpx.MockTransport(answered))
    with pytest.raises(Refused, match=r"the answer of the leader https://leader.example/ is not read: it sends more"):
        line.collect()
    assert stream.taken * len(PART) <= (1 << 18) + len(PART)
