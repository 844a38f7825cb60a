"""Reports that expire: whatever the clocks do, each counts once, and takes no other of its job with it."""

import pytest
from tests.federated.aggregator.test_refusals import at_helper, upload_errors
from tests.federated.aggregator.test_whole_tree import BITS, HOUR, asked
from tests.federated.aggregator.two_servers import PRECISION, TwoServers

from hazemap.federated.aggregator.task_services import expiry_writes
from hazemap.federated.protocols.dap.aggregation_messages import LEADER_SELECTED_BATCH_ID
from hazemap.federated.protocols.dap.basic_types import BATCH_ID, DapRole, ReportError
from hazemap.federated.protocols.dap.task import BatchMode
from hazemap.federated.protocols.dap.vdaf_configuration import Extension, Poplar1Configuration
from hazemap.federated.service.store import Contradiction, Write
from hazemap.vdaf.poplar1 import Poplar1

KEPT = 5
ANOTHER = (Extension(LEADER_SELECTED_BATCH_ID, b"another batch".ljust(BATCH_ID)),)
LAST_BIT = asked(BITS - 1, 0, 1)
OPEN = ("jobs WHERE request IS NOT NULL",)


def forget(two, server):
    server.store.write_now(*expiry_writes(1, server.task, two.now))


def begun(one_round):
    """Servers with reports of now and one that is about to expire, and a collection that is asked for."""
    options = {} if one_round else {"measured": Poplar1Configuration(BITS), "vdaf": Poplar1(BITS)}
    two = TwoServers(least=2, report_expiry=KEPT * PRECISION, **options)
    two.upload(two.report(1, two.now - KEPT * PRECISION), *(two.report(1) for _ in range(3)))
    job, request = two.ask(HOUR - KEPT, KEPT + 1, b"" if one_round else LAST_BIT)
    return two, job, request


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize(
    ("one_round", "role"), [(True, DapRole.LEADER), (False, DapRole.LEADER), (False, DapRole.HELPER)]
)
def test_a_report_that_expires_under_way_takes_no_other_with_it(one_round, role, restarted):
    two, job, request = begun(one_round)
    ring, server = two.rings[DapRole.LEADER], two.leader if role is DapRole.LEADER else two.helper
    [sent] = two.leader.service.requests(ring, two.now)
    answer = two.at_helper(sent)
    if not one_round:
        two.leader.service.answered(sent, *answer, ring)
        [sent] = two.leader.service.requests(ring, two.now)
        answer = two.at_helper(sent) if role is DapRole.LEADER else None
    two.now += PRECISION
    forget(two, server)
    if restarted:
        server.start()
    two.leader.service.answered(sent, *(answer or two.at_helper(sent)), ring)
    two.run()
    found = two.result(job, request)
    assert (found.count, sum(found.sums)) == (4, 4)
    assert not two.leader.store.read("SELECT 1 FROM jobs WHERE request IS NOT NULL")
    two.close()


@pytest.mark.parametrize("one_round", [True, False])
def test_once_a_job_is_done_what_has_expired_is_forgotten(one_round):
    two, job, request = begun(one_round)
    two.run()
    assert two.result(job, request).count == 4
    two.now += PRECISION
    for server, reports in ((two.leader, 3), (two.helper, 0)):
        forget(two, server)
        assert server.store.read("SELECT count(*) FROM claims") == [(3,)]
        assert server.store.read("SELECT count(*) FROM reports") == [(reports,)]
    two.close()


def test_a_report_that_expires_before_the_helper_is_asked_is_refused_alone():
    two, job, request = begun(one_round=False)
    [sent] = two.leader.service.requests(two.rings[DapRole.LEADER], two.now)
    two.now += PRECISION
    for server in (two.leader, two.helper):
        forget(two, server)
    two.leader.service.answered(sent, *two.at_helper(sent), two.rings[DapRole.LEADER])
    two.run()
    assert two.result(job, request).count == 3
    assert two.rejections(two.helper) == {"report_dropped": 1}
    two.close()


def counted_and_forgotten():
    """A report that both servers have counted in a batch of the leader's, and forgotten by clocks that were ahead."""
    two = TwoServers(least=1, mode=BatchMode.LEADER_SELECTED, report_expiry=KEPT * PRECISION)
    report = two.report(1)
    two.upload(report)
    two.run()
    two.now += (KEPT + 1) * PRECISION
    for server in (two.leader, two.helper):
        forget(two, server)
        assert server.store.read("SELECT count(*) FROM claims") == [(0,)]
    two.now -= (KEPT + 1) * PRECISION
    for server in (two.leader, two.helper):
        forget(two, server)  # by the clock that is right again
    return two, report


def sums(server):
    return server.store.read("SELECT coalesce(sum(count), 0) FROM shards")[0][0]


def test_a_report_counts_once_though_clocks_were_ahead_and_are_put_right():
    two, report = counted_and_forgotten()
    assert upload_errors(two, report) == [ReportError.REPORT_DROPPED]
    assert at_helper(two, report, extensions=ANOTHER) == [
        ReportError.REPORT_DROPPED
    ]  # as a leader that lies would send it
    two.run()
    assert [sums(server) for server in (two.leader, two.helper)] == [1, 1]
    new = two.report(1, two.now + PRECISION)
    two.now += PRECISION
    assert upload_errors(two, new) == []
    two.run()
    assert [sums(server) for server in (two.leader, two.helper)] == [2, 2]
    two.close()


def test_servers_that_do_not_keep_until_when_they_forgot_would_count_it_twice():
    two, report = counted_and_forgotten()
    for server in (two.leader, two.helper):
        server.store.write_now(Write("DELETE FROM forgotten"))
    assert upload_errors(two, report) == []
    two.run()
    assert [sums(server) for server in (two.leader, two.helper)] == [2, 2]
    two.close()


@pytest.mark.parametrize("role", [DapRole.LEADER, DapRole.HELPER])
def test_reports_that_are_forgotten_while_a_job_of_them_begins_are_claimed_by_none(role, monkeypatch):
    """The database refuses what was read before the others were deleted."""
    two, report = counted_and_forgotten()
    server = two.leader if role is DapRole.LEADER else two.helper
    records, said = server.service._records, [0, 0]
    true = records.forgotten_before
    monkeypatch.setattr(records, "forgotten_before", lambda: said.pop() if said else true())
    if role is DapRole.HELPER:
        said.pop()
        assert at_helper(two, report, extensions=ANOTHER) == [ReportError.REPORT_DROPPED]
    else:
        assert upload_errors(two, report) == []
        with pytest.raises(Contradiction):
            two.leader.service.requests(two.rings[DapRole.LEADER], two.now)
        assert not two.leader.service.requests(two.rings[DapRole.LEADER], two.now)
        assert two.rejections(two.leader) == {"report_dropped": 1}
    assert not said and sums(server) == 1
    two.close()


def test_a_helper_keeps_a_job_that_was_given_up_no_longer_than_its_reports():
    two, _, _ = begun(one_round=False)
    [sent] = two.leader.service.requests(two.rings[DapRole.LEADER], two.now)
    two.at_helper(sent)

    def held():
        forget(two, two.helper)
        return [two.helper.store.read(f"SELECT count(*) FROM {each}")[0][0] for each in ("claims", *OPEN)]

    two.now += PRECISION
    assert held() == [4, 1]  # one of its reports has expired, the others have not
    two.now += KEPT * PRECISION
    assert held() == [0, 0]
    two.close()
