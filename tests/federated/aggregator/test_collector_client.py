"""A collector's line to a leader that may be away."""

import os
from dataclasses import replace

import httpx
import pytest
from tests.federated.aggregator.two_servers import PRECISION, TwoServers

from hazemap.errors import NotOpened, Unreachable
from hazemap.federated.aggregator.collector_client import CollectorClient
from hazemap.federated.aggregator.task_file import new_task_files
from hazemap.federated.protocols.dap.basic_types import TimeInterval
from hazemap.federated.protocols.dap.resource_paths import id_text


class Line:
    """A leader's answers to one collector, whose nth request meets nobody if n is among `away`."""

    def __init__(self, two, away):
        self.two, self.away, self.requests, self.now = two, away, 0, 0.0
        file = replace(
            new_task_files(two.task, os.urandom, open_reports=9)["collector"],
            collector=two.collector_config,
            collector_key=two.collector.key.private,
        )
        http = httpx.Client(transport=httpx.MockTransport(self.answered))
        self.client = CollectorClient(file, http, lambda: self.now, self.slept)

    def slept(self, seconds):
        self.now += seconds

    def answered(self, request):
        number, self.requests = self.requests, self.requests + 1
        if number in self.away:
            raise httpx.ConnectError("away")
        if request.method == "POST":
            self.job = self.two.leader.service.collect(request.content).resource
            return httpx.Response(201, headers={"Location": f"/collection_jobs/{id_text(self.job)}"})
        if number > max(self.away, default=0):
            self.two.run()
        return httpx.Response(200, content=self.two.leader.service.poll_collection(self.job).message)

    def collect(self):
        return self.client.collect(TimeInterval(self.two.now // PRECISION, 1), wait=60)


@pytest.fixture
def two():
    made = TwoServers()
    made.upload(*(made.report(1) for _ in range(4)))
    yield made
    made.close()


def test_a_leader_that_is_started_again_is_waited_for(two):
    line = Line(two, {2, 3})
    assert line.collect().sums == (4,)
    assert line.requests == 5


def test_a_leader_that_stays_away_is_said_to_be_away(two):
    with pytest.raises(Unreachable, match="does not answer"):
        Line(two, {0}).collect()
    line = Line(two, set(range(1, 1_000)))
    with pytest.raises(Unreachable, match="does not answer"):
        line.collect()
    assert 30 < line.now <= 60


def test_a_batch_that_is_too_small_is_waited_for_and_then_given_up():
    two = TwoServers(least=9)
    try:
        with pytest.raises(NotOpened, match="not ready after 60 s"):
            Line(two, set()).collect()
    finally:
        two.close()
