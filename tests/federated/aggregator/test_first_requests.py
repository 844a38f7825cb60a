"""Of a job's first request a leader writes its reports' ids, and makes the same bytes again after it was ended."""

import numpy as np
import pytest
from tests.federated.aggregator.two_servers import PRECISION, TwoServers

from hazemap.federated.aggregator import task_services
from hazemap.federated.aggregator.hpke_key_ring import DecryptionKeyRing
from hazemap.federated.aggregator.task_services import LEASE, RequestKind
from hazemap.federated.protocols.dap.aggregation_messages import AggregationJobInitReq
from hazemap.federated.protocols.dap.basic_types import DapRole
from hazemap.federated.protocols.dap.leader_jobs import LeaderJobs
from hazemap.federated.protocols.dap.problem_types import DapProblem, ProblemType
from hazemap.federated.protocols.dap.task import BatchMode
from hazemap.federated.protocols.dap.vdaf_configuration import Poplar1Configuration
from hazemap.federated.service.store import Write
from hazemap.vdaf.poplar1 import Poplar1
from hazemap.vdaf.poplar1_evaluation import Poplar1Parameter

LEVEL = Poplar1Parameter(1, np.array([0b00, 0b10, 0b11], dtype=np.uint64)).to_bytes()
KINDS = {
    "times": (TwoServers, b"", (1, 0, 1, 1), (3,)),
    "batches": (lambda: TwoServers(mode=BatchMode.LEADER_SELECTED), b"", (1, 0, 1, 1), (3,)),
    "trees": (
        lambda: TwoServers(measured=Poplar1Configuration(3), vdaf=Poplar1(3)),
        LEVEL,
        (0b001, 0b101, 0b110, 0b111),
        (1, 1, 2),
    ),
}


@pytest.fixture(params=KINDS)
def begun(request):
    """Two servers, the leader's first request, what the collector asked, and the sums that it should have."""
    make, agg_param, measurements, sums = KINDS[request.param]
    two = make()
    two.upload(*(two.report(each) for each in measurements))
    by_time = request.param != "batches"
    asked = two.ask(two.now // PRECISION if by_time else None, agg_param=agg_param)
    [sent] = two.leader.service.requests(two.rings[DapRole.LEADER], two.now)
    assert sent.kind is RequestKind.INIT_JOB
    yield two, sent, asked, sums
    two.close()


def ids(body):
    return [each.report_share.metadata.report_id for each in AggregationJobInitReq.from_bytes(body).verify_inits]


def sent_again(two):
    two.leader.start()
    return two.leader.service.requests(two.rings[DapRole.LEADER], two.now)


def test_the_ids_are_written_and_the_same_bytes_are_sent_again(begun):
    two, sent, asked, sums = begun
    assert two.leader.store.read("SELECT request FROM jobs") == [(b"".join(ids(sent.body)),)]
    for _ in range(2):
        [again] = sent_again(two)
        assert (again.kind, again.job_id, again.body) == (sent.kind, sent.job_id, sent.body)
    peer, answer = two.at_helper(sent)
    two.leader.service.answered(again, peer, answer, two.rings[DapRole.LEADER])
    two.run()
    assert two.result(*asked).sums == sums


@pytest.mark.parametrize("spoilt", ["digest", "reports", "keys"])
def test_a_request_that_does_not_come_out_as_it_was_is_given_up_and_nobody_is_counted(begun, spoilt, caplog):
    two, _, (job, request), _ = begun
    if spoilt == "digest":
        two.leader.store.write_now(Write("UPDATE jobs SET digest = ?", (bytes(32),)))
    elif spoilt == "reports":
        two.leader.store.write_now(Write("UPDATE reports SET body = NULL", ()))
    else:
        two.rings[DapRole.LEADER] = DecryptionKeyRing.of([])
    assert sent_again(two) == []
    assert "an aggregation job was abandoned" in caplog.text
    assert two.leader.store.read("SELECT count(*) FROM jobs WHERE request IS NOT NULL") == [(0,)]
    for _ in range(3):
        two.exchange()
    assert two.result(job, request) is None
    assert two.leader.store.read("SELECT count(*) FROM shards") == [(0,)]


def test_a_damaged_report_ends_its_own_job_and_keeps_no_other_from_being_sent(monkeypatch, caplog):
    monkeypatch.setattr(task_services, "JOB", 1)
    two = TwoServers()
    ring = two.rings[DapRole.LEADER]
    two.upload(*(two.report(1) for _ in range(3)))
    sent = {each.job_id for each in two.leader.service.requests(ring, two.now)}
    damaged = "UPDATE reports SET body = ? WHERE report IN (SELECT report FROM claims WHERE job = ?)"
    two.leader.store.write_now(Write(damaged, (b"\x00", max(sent))))
    assert {each.job_id for each in sent_again(two)} == sent - {max(sent)}
    assert "an aggregation job was abandoned" in caplog.text
    two.close()


@pytest.mark.parametrize("worst", ["first", "last"])
def test_a_fault_in_one_job_keeps_no_other_from_being_sent(monkeypatch, worst):
    monkeypatch.setattr(task_services, "JOB", 1)
    two = TwoServers()
    ring = two.rings[DapRole.LEADER]
    two.upload(*(two.report(1) for _ in range(3)))
    sent = sorted(each.job_id for each in two.leader.service.requests(ring, two.now))
    bad = sent[0 if worst == "first" else -1]
    begun_again = LeaderJobs.begun_again

    def faulty(jobs, job_id):
        if job_id == bad:
            raise MemoryError
        return begun_again(jobs, job_id)

    monkeypatch.setattr(LeaderJobs, "begun_again", faulty)
    two.leader.start()
    found, errors = set(), 0
    for _ in range(4):
        try:
            found |= {each.job_id for each in two.leader.service.requests(ring, two.now)}
        except MemoryError:
            errors += 1
    assert found == {*sent} - {bad} and errors == 1
    two.close()


@pytest.mark.parametrize("how", ["answered", "refused"])
@pytest.mark.parametrize("later", [LEASE, -1])
def test_a_request_that_two_workers_sent_does_no_harm(later, how):
    two = KINDS["trees"][0]()
    ring, leader = two.rings[DapRole.LEADER], two.leader.service
    two.upload(*(two.report(each) for each in KINDS["trees"][2]))
    asked = two.ask(two.now // PRECISION, agg_param=LEVEL)
    [one] = leader.requests(ring, two.now)
    [other] = leader.requests(ring, two.now + later)  # a lease that is over, or a clock that was read before it began
    first, second = two.at_helper(one), two.at_helper(other)
    leader.answered(one, *first, ring)
    if how == "answered":
        leader.answered(other, *second, ring)
    else:
        leader.refused(other, DapProblem(ProblemType.INVALID_MESSAGE, "late").document(), ring)
    two.run()
    assert two.result(*asked).sums == KINDS["trees"][3]
    two.close()
