"""The two servers over HTTP: resources, who may use them, and what is said of a request that is refused."""

import asyncio
import json
import logging
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import numpy as np
import pytest
from starlette.requests import Request
from tests.federated.aggregator.two_servers import PRECISION, TwoServers, last_lease

from hazemap.errors import Refused
from hazemap.federated.aggregator.aggregator_routes import AggregatorRoutes, DapGuard, ServedTask
from hazemap.federated.aggregator.hpke_key_ring import PENDING, HpkeKeyStore
from hazemap.federated.aggregator.leader_driver import LeaderDriver
from hazemap.federated.protocols.dap.aggregation_messages import AggregationJobInitReq
from hazemap.federated.protocols.dap.basic_types import DAP_09, ReportError, TimeInterval
from hazemap.federated.protocols.dap.client import DapClient
from hazemap.federated.protocols.dap.collection_messages import CollectionJobReq, CollectionJobResp
from hazemap.federated.protocols.dap.problem_types import PREFIX, DapProblem, ProblemType
from hazemap.federated.protocols.dap.resource_paths import PROBLEM, aggregation_jobs, collection_jobs, reports
from hazemap.federated.protocols.dap.upload_messages import Report09, UploadErrors, UploadRequest
from hazemap.federated.protocols.dap.vdaf_configuration import HpkeConfigList, Poplar1Configuration
from hazemap.federated.service.access_tokens import kept
from hazemap.federated.service.http_limits import HttpLimits
from hazemap.federated.service.route_guard import Unauthorized
from hazemap.vdaf.poplar1 import Poplar1
from hazemap.vdaf.poplar1_evaluation import Poplar1Parameter

LEADERS, COLLECTORS = "leader's token", "collector's token"


class Served:
    """Two servers whose applications speak HTTP to each other, without a socket."""

    def __init__(self, operator="", **options):
        self.two = TwoServers(**options)
        self.keys, apps = {}, {}
        for name, server, token in (("leader", self.two.leader, COLLECTORS), ("helper", self.two.helper, LEADERS)):
            self.keys[name] = HpkeKeyStore(server.store, bytes(32))
            server.store.write_now(*self.keys[name].made(self.two.now, bytes([len(name)]) * 63 + name[:1].encode()))
            self.keys[name].reload()
            tasks = {self.two.task.id: ServedTask(server.service, kept(token))}
            routes = AggregatorRoutes(
                server.store, self.keys[name], tasks, lambda: self.two.now, operator=kept(operator)
            )
            apps[name] = routes.application("/")
        self.leader, self.helper = (
            httpx.AsyncClient(transport=httpx.ASGITransport(apps[name]), base_url=f"https://{name}.example/")
            for name in ("leader", "helper")
        )
        line = httpx.AsyncClient(transport=httpx.ASGITransport(apps["helper"]))
        self.driver = LeaderDriver(self.two.leader.service, self.keys["leader"], line, LEADERS, lambda: self.two.now)

    async def client(self):
        found = [
            HpkeConfigList.from_bytes((await line.get("hpke_config")).content) for line in (self.leader, self.helper)
        ]
        return DapClient(self.two.task, self.two.vdaf, *(each.preferred() for each in found))

    async def post(self, line, path, message, token=None, kind=None):
        headers = {"Content-Type": kind or type(message).media_type()}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return await line.post(
            path, content=message if isinstance(message, bytes) else message.to_bytes(), headers=headers
        )


@asynccontextmanager
async def served(**options):
    made = Served(**options)
    try:
        yield made
    finally:
        made.two.close()


def test_devices_upload_and_a_collector_collects_over_http():
    async def story():
        async with served() as net:
            two, task_id = net.two, net.two.task.id
            client, hour = await net.client(), net.two.now // PRECISION
            made = [client.report(m, two.now, two.random.randbytes(client.randomness_bytes)) for m in (1, 1, 0, 1)]
            for report in (*made, made[0]):
                reply = await net.post(net.leader, reports(task_id), UploadRequest((report,)))
                assert reply.status_code == 200
            assert UploadErrors.from_bytes(reply.content).statuses[0].error is ReportError.REPORT_REPLAYED
            asked = two.collector.request(TimeInterval(hour, 1))
            refused = await net.post(net.leader, collection_jobs(task_id), asked, "wrong")
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
            reply = await net.post(net.leader, collection_jobs(task_id), asked, COLLECTORS)
            place = reply.headers["location"]
            assert (reply.status_code, reply.content) == (201, b"")
            while await net.driver.turn():
                pass
            headers = {"Authorization": f"Bearer {COLLECTORS}"}
            reply = await net.leader.get(f"https://leader.example{place}", headers=headers)
            found = two.collector.result(asked, CollectionJobResp.from_bytes(reply.content))
            assert (found.count, found.sums) == (4, (3,))
            again = await net.post(net.leader, collection_jobs(task_id), asked, COLLECTORS)
            assert (again.headers["location"], again.content) == (place, reply.content)
            other = two.collector.request(TimeInterval(hour, 2))
            overlap = await net.post(net.leader, collection_jobs(task_id), other, COLLECTORS)
            assert json.loads(overlap.content)["type"] == PREFIX + "batchOverlap"
            late = client.report(1, two.now, two.random.randbytes(client.randomness_bytes))
            reply = await net.post(net.leader, reports(task_id), UploadRequest((late,)))
            assert UploadErrors.from_bytes(reply.content).statuses[0].error is ReportError.REPORT_REPLAYED

    asyncio.run(story())


def test_what_is_no_report_is_refused_by_its_head_or_its_lengths_and_never_stored():
    """40 uploads of 60 MB that never ended took 2.4 GB, and a report of 30 MB was stored."""
    read = []

    async def parts():
        read.append(True)
        yield bytes(1_000)

    async def story():
        async with served() as net:
            client, task_id = await net.client(), net.two.task.id
            kind = {"Content-Type": UploadRequest.media_type(), "Content-Length": "60000000"}
            reply = await net.leader.post(reports(task_id), content=parts(), headers=kind)
            assert (reply.status_code, reply.headers["content-type"], read) == (413, PROBLEM, [])
            good = client.report(1, net.two.now, net.two.random.randbytes(client.randomness_bytes))
            long = replace(good, helper_share=replace(good.helper_share, payload=bytes(500_000)))
            reply = await net.post(net.leader, reports(task_id), UploadRequest((long, good)))
            assert [each.error for each in UploadErrors.from_bytes(reply.content).statuses] == [
                ReportError.INVALID_MESSAGE
            ]
            assert net.two.leader.store.read("SELECT count(*) FROM reports") == [(1,)]

    asyncio.run(story())


def test_wrong_tokens_of_an_address_are_counted_and_refused_reports_are_not():
    guard = DapGuard(logging.getLogger("hazemap.federated.aggregator"), HttpLimits(guesses=2))
    request = Request({"type": "http", "headers": [], "client": ("192.0.2.1", 1), "path": "/", "method": "POST"})
    for error, codes in (
        (Refused("sealed for another key"), [403] * 4),
        (Unauthorized("show it"), [401, 401, 429, 429]),
    ):
        assert [guard.failed(request, error).status_code for _ in codes] == codes


def test_an_address_stores_so_many_reports_a_minute_and_others_go_on():
    """160,000 that were made up were stored in 47 seconds."""

    async def story():
        async with served() as net:
            two, (client, task_id) = net.two, (await net.client(), net.two.task.id)
            tasks = {task_id: ServedTask(two.leader.service, kept(COLLECTORS))}
            routes = AggregatorRoutes(
                two.leader.store, net.keys["leader"], tasks, lambda: two.now, limits=HttpLimits(uploads=20)
            )
            application = routes.application("/")
            codes = []
            for address in ("192.0.2.1", "192.0.2.2"):
                transport = httpx.ASGITransport(application, client=(address, 1))
                async with httpx.AsyncClient(transport=transport, base_url="https://leader.example/") as line:
                    for _ in range(3):
                        made = [
                            client.report(1, two.now, two.random.randbytes(client.randomness_bytes)) for _ in range(16)
                        ]
                        reply = await net.post(line, reports(task_id), UploadRequest(tuple(made)))
                        codes.append(reply.status_code)
                    assert int(reply.headers["retry-after"]) > 0
            assert codes == [200, 200, 429] * 2
            assert two.leader.store.read("SELECT count(*) FROM reports") == [(64,)]

    asyncio.run(story())


@pytest.mark.parametrize(
    ("path", "message", "token", "type_"),
    [
        (reports(bytes(32)), UploadRequest(()), None, "unrecognizedTask"),
        ("tasks/short/reports", UploadRequest(()), None, "invalidMessage"),
        (reports(bytes(range(32))), b"\0" * 9, None, "invalidMessage"),
        (aggregation_jobs(bytes(range(32))), b"", LEADERS, "unrecognizedTask"),
        (collection_jobs(bytes(range(32))), b"\1", COLLECTORS, "invalidMessage"),
    ],
)
def test_what_the_leader_cannot_read_is_refused_with_the_standards_type(path, message, token, type_):
    async def story():
        async with served() as net:
            kinds = {"reports": UploadRequest, "aggregation_jobs": AggregationJobInitReq}
            kind = kinds.get(path.rpartition("/")[2], CollectionJobReq).media_type()
            reply = await net.post(net.leader, path, message, token, kind)
            assert reply.status_code == 400
            assert reply.headers["content-type"] == "application/problem+json"
            assert json.loads(reply.content)["type"] == PREFIX + type_

    asyncio.run(story())


def test_a_report_of_draft_09_is_taken_and_counts():
    async def story():
        async with served(options={"version": DAP_09}, least=1) as net:
            two = net.two
            client = await net.client()
            made = client.report(1, two.now + 7, two.random.randbytes(client.randomness_bytes))
            assert isinstance(made, Report09)
            path, kind = reports(two.task.id), {"Content-Type": Report09.media_type()}
            for _ in range(2):
                reply = await net.leader.put(path, content=made.to_bytes(), headers=kind)
                assert reply.status_code == 201
            listed = await net.leader.get("hpke_config?task_id=x")
            assert listed.headers["content-type"] == "application/dap-hpke-config-list"
            early = client.report(1, two.now + 7 * PRECISION, two.random.randbytes(client.randomness_bytes))
            reply = await net.leader.put(path, content=early.to_bytes(), headers=kind)
            assert json.loads(reply.content)["type"] == PREFIX + "reportTooEarly"
            job, request = two.ask(two.now // PRECISION)
            while await net.driver.turn():
                pass
            assert two.result(job, request).sums == (1,)

    asyncio.run(story())


def test_keys_are_announced_once_they_are_active_and_open_until_they_are_forgotten():
    two = TwoServers()
    store = HpkeKeyStore(two.leader.store, bytes(32))
    two.leader.store.write_now(*store.made(0, bytes(range(64))))
    store.reload()
    [first] = store.announced(0).configs
    assert store.made(PENDING, bytes(64)) == []
    later = 12 * 7 * 86_400 + 1
    two.leader.store.write_now(*store.made(later, bytes(64)))
    store.reload()
    assert store.announced(later).configs == (first,)
    [second] = store.announced(later + PENDING).configs
    assert second != first
    reopened = HpkeKeyStore(two.leader.store, bytes(32)).announced(later).configs
    assert reopened == (first,)
    end = PENDING + 13 * 7 * 86_400
    assert store.forgotten(end - 1) == []
    two.leader.store.write_now(*store.forgotten(end))
    assert store.ring().knows(first.id)
    store.reload()
    assert (store.ring().knows(first.id), store.ring().knows(second.id)) == (False, True)
    with pytest.raises(Exception, match="another folder"):
        HpkeKeyStore(two.leader.store, bytes(31) + b"\1")
    two.close()


def test_a_helper_that_has_not_been_given_the_task_yet_loses_no_report():
    async def story():
        async with served() as net:
            two = net.two
            client = await net.client()
            made = [client.report(1, two.now, two.random.randbytes(client.randomness_bytes)) for _ in range(3)]
            await net.post(net.leader, reports(two.task.id), UploadRequest(tuple(made)))
            strangers = AggregatorRoutes(two.helper.store, net.keys["helper"], {}, lambda: two.now).application("/")
            line = httpx.AsyncClient(transport=httpx.ASGITransport(strangers))
            await LeaderDriver(two.leader.service, net.keys["leader"], line, LEADERS, lambda: two.now).turn()
            two.now += 60
            await net.driver.turn()
            assert two.leader.store.read("SELECT sum(count) FROM shards") == [(3,)]

    asyncio.run(story())


def test_numbers_are_for_the_operator_and_count_what_came_and_what_was_not_taken():
    async def story():
        async with served(operator="operator's token") as net:
            two, task_id = net.two, net.two.task.id
            client = await net.client()

            def report(seconds):
                return client.report(1, seconds, two.random.randbytes(client.randomness_bytes))

            made = [report(two.now), report(two.now), report(two.now - 2 * PRECISION), report(two.now + 9 * PRECISION)]
            await net.post(net.leader, reports(task_id), UploadRequest((*made, made[0])))
            refused = await net.leader.get("metrics", headers={"Authorization": f"Bearer {COLLECTORS}"})
            assert refused.status_code == 401
            assert (await net.leader.get("metrics")).status_code == 401
            await net.post(
                net.leader, collection_jobs(task_id), two.collector.request(TimeInterval(1_000, 1)), COLLECTORS
            )
            while await net.driver.turn():
                pass
            headers = {"Authorization": "Bearer operator's token"}
            own, theirs = [await line.get("metrics", headers=headers) for line in (net.leader, net.helper)]
            assert own.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
            task = 'task="AAECAwQF"'
            for line in (
                f'hazemap_reports_rejected_total{{{task},reason="report_replayed"}} 1',
                f'hazemap_reports_rejected_total{{{task},reason="report_too_early"}} 1',
                f"hazemap_reports_counted_total{{{task}}} 3",
                'hazemap_requests_total{resource="reports",status="200"} 1',
                'hazemap_requests_total{resource="metrics",status="401"} 2',
                f'hazemap_report_age_seconds_bucket{{{task},le="-3600"}} 1',
                f'hazemap_report_age_seconds_bucket{{{task},le="0"}} 4',
                f'hazemap_report_age_seconds_bucket{{{task},le="3600"}} 4',
                f'hazemap_report_age_seconds_bucket{{{task},le="86400"}} 5',
                f"hazemap_report_age_seconds_count{{{task}}} 5",
            ):
                assert line in own.text.splitlines(), line
            assert "report_age" not in "".join(line for line in theirs.text.splitlines() if line[0] != "#")
            assert f"hazemap_reports_counted_total{{{task}}} 3" in theirs.text.splitlines()
            for each in (own, theirs):
                assert f'hazemap_reports_admitted{{{task},issuer="none"}} 100000' in each.text.splitlines()

    asyncio.run(story())


def test_a_helper_that_is_away_for_a_moment_is_asked_again_soon_however_many_requests_met_that():
    async def story():
        async with served() as net:
            two = net.two
            client = await net.client()

            def away(_):
                raise httpx.ConnectError("away")

            line = httpx.AsyncClient(transport=httpx.MockTransport(away))
            driver = LeaderDriver(two.leader.service, net.keys["leader"], line, LEADERS, lambda: two.now)

            async def jobs_fail(number):
                for _ in range(number):
                    report = client.report(1, two.now, two.random.randbytes(client.randomness_bytes))
                    await net.post(net.leader, reports(two.task.id), UploadRequest((report,)))
                    assert await driver.turn()
                return last_lease(two.leader.service._leases) - two.now

            assert 1 <= await jobs_fail(3) <= 2
            two.now += 100
            assert 50 <= await jobs_fail(1) <= 102, "it waits about as long again"

    asyncio.run(story())


@pytest.mark.parametrize("refuses", [False, True])
def test_a_helper_is_told_of_a_job_that_its_leader_gives_up(refuses):
    async def story():
        async with served(least=1, measured=Poplar1Configuration(4), vdaf=Poplar1(4)) as net:
            two = net.two
            client = await net.client()
            made = client.report(5, two.now, two.random.randbytes(client.randomness_bytes))
            await net.post(net.leader, reports(two.task.id), UploadRequest((made,)))
            two.ask(two.now // PRECISION, 1, Poplar1Parameter(0, np.array([0, 1], dtype=np.uint64)).to_bytes())
            true = net.driver._http._transport

            class Spoiling(httpx.AsyncBaseTransport):
                async def handle_async_request(self, request):
                    later = not request.url.path.endswith("aggregation_jobs")
                    if refuses and request.method == "POST" and later:
                        problem = DapProblem(ProblemType.STEP_MISMATCH, "no", two.task.id).document()
                        return httpx.Response(400, headers={"Content-Type": PROBLEM}, content=problem.to_json())
                    reply = await true.handle_async_request(request)
                    content = await reply.aread()
                    spoilt = content if refuses else content[:-1]
                    return httpx.Response(reply.status_code, headers={"Location": reply.headers.get("location", "")},
                                          content=spoilt)  # fmt: skip

            net.driver._http = httpx.AsyncClient(transport=Spoiling())
            while await net.driver.turn():
                pass
            for server in (two.leader, two.helper):
                assert server.store.read("SELECT count(*), count(request) FROM jobs") == [(1, 0)]

    asyncio.run(story())
