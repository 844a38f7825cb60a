"""Leader, helper and collector together: what comes out is right, once, whatever is lost and whoever dies."""

import os
from dataclasses import replace

import pytest
from tests.federated.aggregator.two_servers import NOISE, PRECISION, Crash, TwoServers

from hazemap.federated.aggregator.task_services import LEASE, HelperService
from hazemap.federated.protocols.dap.aggregator_changes import AddAggregateShare, CloseBatch
from hazemap.federated.protocols.dap.basic_types import DapRole
from hazemap.federated.protocols.dap.problem_types import DapProblem, ProblemType
from hazemap.federated.protocols.dap.task import BatchMode

HISTORIES = int(os.environ.get("DAP_HISTORIES", "1000"))


@pytest.fixture
def world():
    made = []

    def make(*arguments, **options):
        made.append(TwoServers(*arguments, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_reports_are_summed_by_both_servers_and_seen_by_the_collector_alone(world):
    two = world()
    hour = two.now // PRECISION
    assert two.upload(*(two.report(m) for m in (1, 0, 1, 1))) == b""
    found = two.collect(hour)
    assert (found.count, found.sums) == (4, (3,))
    assert (found.interval.start, found.interval.duration) == (hour, 1)
    assert two.leader.store.read("SELECT count(*) FROM reports WHERE body IS NOT NULL") == [(0,)]
    for server in (two.leader, two.helper):
        assert server.store.read("SELECT count(*) FROM shards WHERE share IS NOT NULL") == [(0,)]


def test_the_leader_chooses_batches_of_at_least_the_minimum(world):
    two = world(mode=BatchMode.LEADER_SELECTED)
    two.upload(two.report(1), two.report(1))
    assert two.collect() is None
    two.upload(two.report(1), two.report(0))
    two.run()
    found = two.collect()
    assert (found.count, found.sums) == (4, (3,))


def test_a_batch_that_has_enough_is_collected_though_there_is_always_a_job_under_way(world):
    two = world(least=3, mode=BatchMode.LEADER_SELECTED)
    (job, request), ring, under_way = two.ask(), two.rings[DapRole.LEADER], []
    for _ in range(6):
        two.upload(*(two.report(1) for _ in range(3)))
        under_way += two.leader.service.requests(ring, two.now)
        if len(under_way) > 1:
            sent = under_way.pop(0)
            two.leader.service.answered(sent, *two.at_helper(sent), ring)
    assert two.result(job, request).count >= 3


def test_a_request_is_sent_again_when_a_clock_that_was_ahead_is_put_right(world):
    two = world(least=3)
    ring, leader = two.rings[DapRole.LEADER], two.leader.service
    two.upload(*(two.report(1) for _ in range(3)))
    [sent] = leader.requests(ring, two.now + 86_400)
    assert [each.body for each in leader.requests(ring, two.now)] == [sent.body]
    assert not leader.requests(ring, two.now)
    [sent] = leader.requests(ring, two.now + LEASE)
    leader.failed(sent, two.now + LEASE + 300)
    assert not leader.requests(ring, two.now + LEASE + 299)
    assert leader.requests(ring, two.now + LEASE + 300)


def test_noise_is_in_both_shares_and_drawn_once(world):
    two = world(privacy=NOISE)
    two.upload(*(two.report(1) for _ in range(5)))
    hour = two.now // PRECISION
    job, request = two.ask(hour)
    two.run()
    first = two.result(job, request)
    two.leader.start()
    two.helper.start()
    assert two.result(job, request) == first
    assert two.ask(hour)[0] == job
    assert [len(two.noise[role]) for role in (DapRole.LEADER, DapRole.HELPER)] == [1, 1]
    assert first.sums == (5 + 1 + 1_000,)


def test_two_processes_that_answer_one_request_at_once_give_one_answer(world):
    two = world(privacy=NOISE)
    two.upload(*(two.report(1) for _ in range(5)))
    job, request = two.ask(two.now // PRECISION)
    other, answers = HelperService(two.helper.store, 1, two.helper.task, two.random.randbytes), []
    records, ring = two.helper.service._records, two.rings[DapRole.HELPER]

    class ReadsTooEarly:
        """What the one process has read before the other one wrote."""

        def __getattr__(self, name):
            return getattr(records, name)

        def aggregate_share(self, share_id):
            found = records.aggregate_share(share_id)
            if not answers:
                [[body]] = two.leader.store.read("SELECT helper_request FROM collections WHERE state = 'closed'")
                answers.append(other.aggregate_share(bytes(body), ring).message)
            return found

    two.helper.service._records = ReadsTooEarly()
    two.run()
    assert list(two.left_helper.values()) == [set(answers)] and len(two.noise[DapRole.HELPER]) == 1
    assert two.result(job, request).sums == (5 + 1 + 1_000,)


def test_a_batch_below_the_minimum_is_not_collected_and_may_be_later(world):
    two = world(least=4)
    hour = two.now // PRECISION
    two.upload(*(two.report(1) for _ in range(3)))
    job, request = two.ask(hour)
    two.run()
    assert two.result(job, request) is None
    two.now += PRECISION
    two.exchange()
    with pytest.raises(DapProblem) as problem:
        two.result(job, request)
    assert problem.value.type is ProblemType.INVALID_BATCH_SIZE
    two.upload(two.report(1, two.now - PRECISION))
    assert two.collect(hour).sums == (4,)


def schedule(two, turns=14):
    """A random history: uploads, some of them twice, turns of the leader, collections; then the network heals."""
    rng, hours = two.random, (two.now // PRECISION, two.now // PRECISION + 1)
    acknowledged, sent, jobs = {}, [], []
    for _ in range(turns):
        action = rng.random()
        if action < 0.45:
            if sent and rng.random() < 0.3:
                report, measurement = rng.choice(sent)
            else:
                measurement = rng.randrange(2)
                report = two.report(measurement, PRECISION * rng.choice(hours))
                sent.append((report, measurement))
            two._may_die(two.leader, 0.1)
            try:
                if two.upload(report) == b"":
                    acknowledged[report.metadata.report_id] = (report.metadata.time, measurement)
            except Crash:
                two.leader.start()
            two.leader.store.dies = None
        elif action < 0.9:
            two.exchange(lossy=0.25, deadly=0.15)
        else:
            try:
                jobs.append(two.ask(rng.choice(hours)))
            except DapProblem as problem:
                if problem.type not in {ProblemType.BATCH_OVERLAP, ProblemType.INVALID_BATCH_SIZE}:
                    raise
    two.run()
    return hours, {r.metadata.report_id: (r.metadata.time, m) for r, m in sent}, acknowledged, jobs


def check(two, hours, sent, acknowledged, jobs):
    """Everything that must hold after any history."""
    results = {}
    for job, request in jobs:
        try:
            found = two.result(job, request)
        except DapProblem:
            continue
        if found is not None:
            results.setdefault(request.query.interval().start, set()).add(found)
    for hour in hours:
        if hour not in results:
            try:
                found = two.collect(hour)
            except DapProblem:
                found = None
            if found is not None:
                results[hour] = {found}
    for server in (two.leader, two.helper):
        assert server.store.read("SELECT count(*) FROM shards WHERE share IS NOT NULL AND count <= 0") == [(0,)]
    for hour, found in results.items():
        assert len(found) == 1, "two results of one batch were seen"
        [result] = found
        assert result.count >= two.task.min_batch_size
        counted = two.leader.store.read("SELECT report FROM claims WHERE counted = 1 AND time = ?", hour)
        theirs = two.helper.store.read("SELECT report FROM claims WHERE counted = 1 AND time = ?", hour)
        assert {bytes(r) for (r,) in counted} == {bytes(r) for (r,) in theirs}
        mine = [sent[bytes(report)] for (report,) in counted]
        assert all(time == hour for time, _ in mine)
        assert {report for report, (time, _) in acknowledged.items() if time == hour} <= {bytes(r) for (r,) in counted}
        assert result.count == len(mine)
        noise = result.sums[0] - sum(measurement for _, measurement in mine)
        drawn = {role: {int(d[0]) for d in two.noise[role]} for role in two.noise}
        assert any(noise - own in drawn[DapRole.HELPER] for own in drawn[DapRole.LEADER]), (
            "noise that was never drawn once"
        )
    for hour in set(hours) - results.keys():
        waiting = [time for time, _ in acknowledged.values() if time == hour]
        closed = two.leader.store.read("SELECT count(*) FROM collected")
        assert len(waiting) < two.task.min_batch_size or closed
    assert all(len(answers) == 1 for answers in two.left_helper.values()), "the helper answered a request in two ways"
    for (body,) in two.leader.store.read("SELECT helper_request FROM collections WHERE helper_request IS NOT NULL"):
        assert len(two.left_helper.get(bytes(body), {b""})) == 1


def histories(seeds):
    outcomes = []
    for seed in seeds:
        two = TwoServers(seed, least=2, privacy=NOISE)
        try:
            check(two, *schedule(two))
            outcomes.append(len(two.left_helper))
        except AssertionError as error:
            raise AssertionError(f"schedule {seed}: {error}") from error
        finally:
            two.close()
    return outcomes


def test_a_report_counts_at_most_once_and_noise_is_drawn_once_in_any_history():
    outcomes = histories(range(60))
    assert sum(outcomes) > 30, "most histories come to a result"


def test_a_helper_that_forgets_what_it_answered_is_found_out(monkeypatch):
    kept = HelperService._writes
    forgets = (CloseBatch, AddAggregateShare)

    def writes(helper, outcome):
        changes = tuple(each for each in outcome.changes if not isinstance(each, forgets))
        return kept(helper, replace(outcome, changes=changes))

    monkeypatch.setattr(HelperService, "_writes", writes)
    with pytest.raises(AssertionError, match="in two ways"):
        histories(range(60))


@pytest.mark.slow
def test_thousands_of_histories():
    assert sum(histories(range(1_000, 1_000 + HISTORIES))) > HISTORIES // 2
