"""Reports that expire while they are verified: the others of their job count as if nothing had happened."""

import pytest

from hazemap.aggregator.report_expiry import expiry_writes
from hazemap.protocols.dap.basic_types import Role
from hazemap.protocols.dap.vdaf_configuration import Poplar1Configuration
from hazemap.protocols.vdaf.poplar1 import Poplar1

from .test_whole_tree import BITS, HOUR, asked
from .two_servers import PRECISION, TwoServers

KEPT = 5
LAST_BIT = asked(BITS - 1, 0, 1)


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
@pytest.mark.parametrize(("one_round", "role"), [(True, Role.LEADER), (False, Role.LEADER), (False, Role.HELPER)])
def test_a_report_that_expires_under_way_takes_no_other_with_it(one_round, role, restarted):
    two, job, request = begun(one_round)
    ring, server = two.rings[Role.LEADER], two.leader if role is Role.LEADER else two.helper
    [sent] = two.leader.service.requests(ring, two.now)
    answer = two.at_helper(sent)
    if not one_round:
        two.leader.service.answered(sent, *answer, ring)
        [sent] = two.leader.service.requests(ring, two.now)
        answer = two.at_helper(sent) if role is Role.LEADER else None
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
    [sent] = two.leader.service.requests(two.rings[Role.LEADER], two.now)
    two.now += PRECISION
    for server in (two.leader, two.helper):
        forget(two, server)
    two.leader.service.answered(sent, *two.at_helper(sent), two.rings[Role.LEADER])
    two.run()
    assert two.result(job, request).count == 3
    assert two.rejections(two.helper) == {"report_dropped": 1}
    two.close()
