"""The same records on PostgreSQL."""

from fractions import Fraction

import pytest
from tests.federated.aggregator import two_servers
from tests.federated.aggregator.test_refusals import at_helper, upload_errors
from tests.federated.aggregator.test_report_expiry import ANOTHER, counted_and_forgotten
from tests.federated.aggregator.test_two_servers import PRECISION, check, schedule
from tests.federated.aggregator.test_walk_questions import (
    ALL,
    FINE,
    HOUR,
    PATHS,
    QUARTERS,
    asked,
    part,
    truth,
    walkers,
    without_noise,
)
from tests.federated.aggregator.test_whole_tree import refusal
from tests.federated.aggregator.two_servers import NOISE, TwoServers
from tests.federated.server.postgres import cluster

from hazemap.federated.aggregator.task_records import TaskRecords
from hazemap.federated.protocols.dap.basic_types import DapRole, ReportError, TimeInterval
from hazemap.federated.protocols.dap.batches import Batch
from hazemap.federated.protocols.dap.prefix_question import PrefixQuestion
from hazemap.federated.protocols.dap.problem_types import ProblemType
from hazemap.federated.service.databases import Postgres
from hazemap.federated.service.housekeeping import is_steady
from hazemap.federated.service.store import Write


@pytest.fixture
def urls():
    with cluster() as leader, cluster() as helper:
        yield leader, helper


@pytest.fixture
def on_postgres(urls, monkeypatch):
    """Servers that are made from here on keep their records there."""
    places = iter(urls)
    kept = two_servers.Server.start

    def start(server):
        if isinstance(server.database, two_servers.MemoryDatabase):
            server.database = Postgres(next(places))
        kept(server)

    monkeypatch.setattr(two_servers.Server, "start", start)


@pytest.mark.slow
def test_histories_with_machines_that_die_end_as_they_do_on_sqlite(on_postgres):
    two = TwoServers(3, least=2, privacy=NOISE)
    check(two, *schedule(two, turns=30))
    hour = two.now // PRECISION + 5
    two.now = hour * PRECISION
    two.upload(*(two.report(1) for _ in range(4)))
    assert two.collect(hour).count == 4
    assert all(two.noise[role] for role in (DapRole.LEADER, DapRole.HELPER))
    for server in (two.leader, two.helper):
        server.store.close()


@pytest.mark.slow
def test_questions_about_one_report_are_answered_and_paid_as_on_sqlite(on_postgres):
    two = walkers()
    two.upload(*(two.report(path) for path in PATHS))
    quarter = Fraction(1, 4)
    for place, (level, candidates, cells) in enumerate([(1, ALL, QUARTERS), (3, FINE, part("1010", "0"))]):
        found = two.collect(HOUR, 1, asked(level, candidates, cells, share=quarter, number=place))
        assert without_noise(two, place, found.sums) == truth(cells)
    above, deep = (PrefixQuestion.from_bytes(asked(*level, QUARTERS)).parameter for level in ((1, ALL), (3, FINE)))
    batch = Batch.of(TimeInterval(HOUR, 1))
    forgotten = "UPDATE claims SET counted = 0 WHERE level = 2 AND report IN (SELECT report FROM claims LIMIT 1)"
    for server in (two.leader, two.helper):
        records = TaskRecords(server.store.read, 1)
        assert records.strays(batch, deep, above) == records.strays(batch, above, deep) == 0
        server.store.write_now(Write(forgotten))
        assert (records.strays(batch, deep, above), records.strays(batch, above, deep)) == (1, 0)
    assert refusal(two.ask, HOUR, 1, asked(3, FINE, part("1010"), share=Fraction(3, 4))) is ProblemType.BATCH_OVERLAP
    for server in (two.leader, two.helper):
        assert server.store.read("SELECT count(*) FROM questions") == [(2,)]
        server.store.close()


@pytest.mark.slow
def test_what_is_forgotten_by_clocks_that_were_ahead_is_counted_once_as_on_sqlite(on_postgres):
    two, report = counted_and_forgotten()
    assert upload_errors(two, report) == [ReportError.REPORT_DROPPED]
    assert at_helper(two, report, extensions=ANOTHER) == [ReportError.REPORT_DROPPED]
    for server in (two.leader, two.helper):
        times = [two.now + hours * PRECISION for hours in (0, 0, 2_000, 2_000, 2_024)]
        assert [is_steady(server.store, now) for now in times] == [True, True, False, False, True]
        server.store.close()
