"""The same records on PostgreSQL."""

import pytest
from tests.server.postgres import cluster

from hazemap.protocols.dap.basic_types import Role
from hazemap.service.databases import Postgres

from . import two_servers
from .test_two_servers import PRECISION, check, schedule
from .two_servers import NOISE, TwoServers


@pytest.fixture
def urls():
    with cluster() as leader, cluster() as helper:
        yield leader, helper


@pytest.mark.slow
def test_histories_with_machines_that_die_end_as_they_do_on_sqlite(urls, monkeypatch):
    places = iter(urls)
    kept = two_servers.Server.start

    def start(server):
        if isinstance(server.database, two_servers.MemoryDatabase):
            server.database = Postgres(next(places))
        kept(server)

    monkeypatch.setattr(two_servers.Server, "start", start)
    two = TwoServers(3, least=2, privacy=NOISE)
    check(two, *schedule(two, turns=30))
    hour = two.now // PRECISION + 5
    two.now = hour * PRECISION
    two.upload(*(two.report(1) for _ in range(4)))
    assert two.collect(hour).count == 4
    assert all(two.noise[role] for role in (Role.LEADER, Role.HELPER))
    for server in (two.leader, two.helper):
        server.store.close()
