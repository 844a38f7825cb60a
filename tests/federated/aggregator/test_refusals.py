"""What clients, leaders and collectors do wrong is refused with the standard's type, by the server that must notice."""

from dataclasses import replace

import pytest
from tests.federated.aggregator.two_servers import PRECISION, TwoServers

from hazemap.errors import Refused
from hazemap.federated.aggregator.task_services import expiry_writes
from hazemap.federated.protocols.dap.aggregation_messages import (
    AggregationJobInitReq,
    AggregationJobResp,
    DapReportShare,
    VerifyInit,
)
from hazemap.federated.protocols.dap.basic_types import DapRole, ReportError, TimeInterval
from hazemap.federated.protocols.dap.client import DapClient
from hazemap.federated.protocols.dap.collection_messages import (
    AggregateShareReq,
    BatchQuery,
    BatchSelector,
    CollectionJobReq,
    CollectionJobResp,
)
from hazemap.federated.protocols.dap.problem_types import DapProblem, ProblemType
from hazemap.federated.protocols.dap.task import BatchMode, DapTask
from hazemap.federated.protocols.dap.upload_messages import (
    DapReport,
    InputShareAad,
    PlaintextInputShare,
    ReportMetadata,
    UploadErrors,
    UploadRequest,
)
from hazemap.federated.protocols.dap.vdaf_configuration import Extension, HistogramConfiguration
from hazemap.vdaf import ping_pong
from hazemap.vdaf.prio3 import prio3_histogram

HOUR = 1_000


@pytest.fixture
def two():
    made = TwoServers()
    yield made
    made.close()


@pytest.fixture
def cells():
    made = TwoServers(measured=HistogramConfiguration(4, 2), vdaf=prio3_histogram(4, 2))
    yield made
    made.close()


def refusal(of, *arguments):
    with pytest.raises(DapProblem) as problem:
        of(*arguments)
    return problem.value.type


def upload_errors(two, *reports):
    answer = two.upload(*reports)
    return [each.error for each in UploadErrors.from_bytes(answer).statuses] if answer else []


def untouched(public, shares):
    return public, shares


def forged(two, public=(), private=((), ()), time=None, spoil=untouched, swap=False):
    """A report by whoever holds the real keys and task, and does something else with them."""
    rng, task = two.random, two.task
    metadata = ReportMetadata(rng.randbytes(16), HOUR if time is None else time, public)
    rand = rng.randbytes(two.vdaf.RAND_SIZE)
    public_share, shares = spoil(*two.vdaf.shard(task.context, 1, metadata.report_id, rand))
    aad = InputShareAad(task.id, task.configuration, metadata, public_share).to_bytes()
    roles = (DapRole.HELPER, DapRole.LEADER) if swap else (DapRole.LEADER, DapRole.HELPER)
    plain = [PlaintextInputShare(own, share).to_bytes() for own, share in zip(private, shares, strict=True)]
    keys = (two.client.leader, two.client.helper)
    sealed = [
        key.seal(task.version.input_share_info(role), aad, each, rng.randbytes(32))
        for key, role, each in zip(keys, roles, plain, strict=True)
    ]
    return DapReport(metadata, public_share, *sealed)


def at_helper(two, *reports, extensions=(), payloads=None):
    """What the helper says of each report that a leader sends in one job; the leader's verifier shares are honest."""
    inits = []
    for place, report in enumerate(reports):
        payload = None if payloads is None else payloads[place]
        inits.append(
            VerifyInit(
                DapReportShare(report.metadata, report.public_share, report.helper_share),
                payload or verifier(two, report),
            )
        )
    body = AggregationJobInitReq(0, b"", extensions, tuple(inits)).to_bytes()
    outcome = two.helper.service.init_job(body, two.rings[DapRole.HELPER], two.now)
    return [each.error for each in AggregationJobResp.from_bytes(outcome.message).verify_resps]


def verifier(two, report):
    """The leader's first message about a report, or something of its form where it has none."""
    task = two.task
    try:
        aad = InputShareAad(task.id, task.configuration, report.metadata, report.public_share).to_bytes()
        plain = two.rings[DapRole.LEADER].open(report.leader_share, task.version.input_share_info(DapRole.LEADER), aad)
        share = PlaintextInputShare.from_bytes(plain).payload
    except Refused:
        return ping_pong.PingPongMessage(ping_pong.MessageType.INITIALIZE, b"", bytes(32)).to_bytes()
    opened = ping_pong.ReportShare(report.metadata.report_id, report.public_share, share)
    [state] = ping_pong.leader_init(two.vdaf, bytes(32), task.context, b"", [opened])
    if isinstance(state, ping_pong.Rejected):
        return ping_pong.PingPongMessage(ping_pong.MessageType.INITIALIZE, b"", bytes(32)).to_bytes()
    return state.outbound


def test_replayed_reports_count_once_at_both_servers(two):
    report = two.report(1)
    assert upload_errors(two, report, report) == [ReportError.REPORT_REPLAYED]
    assert upload_errors(two, report) == [ReportError.REPORT_REPLAYED]
    assert at_helper(two, report) == [None]
    assert at_helper(two, report, two.report(1)) == [ReportError.REPORT_REPLAYED, None]


def test_reports_for_collected_batches_are_refused_by_both_servers(two):
    two.upload(*(two.report(1) for _ in range(3)))
    assert two.collect(HOUR).count == 3
    assert upload_errors(two, two.report(1)) == [ReportError.REPORT_REPLAYED]
    assert at_helper(two, two.report(1), two.report(1, two.now + PRECISION - 1)) == [ReportError.BATCH_COLLECTED] * 2


def test_early_late_and_expired_reports_are_refused_by_both_servers():
    two = TwoServers(options={"interval": TimeInterval(HOUR - 5, 7)}, report_expiry=3 * PRECISION)
    before, early, after, old = (forged(two, time=HOUR + hours) for hours in (-6, 1, 2, -4))
    assert upload_errors(two, before, early, old) == [
        ReportError.REPORT_DROPPED,
        ReportError.REPORT_TOO_EARLY,
        ReportError.REPORT_DROPPED,
    ]
    two.helper.store.write_now(*expiry_writes(1, two.helper.task, two.now))
    assert at_helper(two, before, early, old) == [
        ReportError.TASK_NOT_STARTED,
        ReportError.REPORT_TOO_EARLY,
        ReportError.REPORT_DROPPED,
    ]
    two.now += 2 * PRECISION
    assert upload_errors(two, after) == [ReportError.REPORT_DROPPED]
    assert at_helper(two, after) == [ReportError.TASK_EXPIRED]
    two.now -= PRECISION + 1
    assert upload_errors(two, early) == []  # a clock that is a second ahead
    two.close()


def test_shares_bound_to_something_else_do_not_open(two):
    first, report, third = (two.report(1) for _ in range(3))
    moved = replace(first, metadata=replace(first.metadata, time=HOUR - 1))
    renamed = replace(report, metadata=replace(report.metadata, report_id=bytes(16)))
    swapped = forged(two, swap=True)
    exchanged = replace(third, leader_share=third.helper_share, helper_share=third.leader_share)
    urls = two.task.leader, two.task.helper
    terms = DapTask.created(two.task.id, b"other", *urls, PRECISION, 1, BatchMode.TIME_INTERVAL, two.task.measured)
    elsewhere = DapClient(terms, two.vdaf, two.client.leader, two.client.helper).report(
        1, two.now, two.random.randbytes(two.client.randomness_bytes)
    )
    wrong = [moved, renamed, swapped, exchanged, elsewhere]
    assert at_helper(two, *wrong) == [ReportError.HPKE_DECRYPT_ERROR] * 5
    assert upload_errors(two, exchanged) == [ReportError.OUTDATED_CONFIG]
    two.upload(moved, renamed, swapped, elsewhere)
    two.run()
    assert two.rejections(two.leader) == {"hpke_decrypt_error": 4, "outdated_config": 1}
    assert two.leader.store.read("SELECT count(*) FROM shards") == [(0,)]


def test_extensions_are_known_sorted_and_named_once_or_the_report_is_refused(two):
    nine, ten = Extension(9, b""), Extension(10, b"")
    assert refusal(two.upload, forged(two, public=(nine,))) is ProblemType.UNSUPPORTED_EXTENSION
    assert refusal(two.upload, forged(two, public=(ten, nine))) is ProblemType.INVALID_MESSAGE
    with pytest.raises(DapProblem) as problem:
        two.upload(forged(two, public=(nine, ten)))
    assert problem.value.unsupported_extensions == (9, 10)
    private = [forged(two, private=((), own)) for own in ((nine,), (ten, nine), (nine, nine))]
    assert at_helper(two, *private, forged(two, public=(nine,))) == [ReportError.INVALID_MESSAGE] * 4
    two.upload(forged(two, private=((nine,), ())))
    two.run()
    assert two.rejections(two.leader) == {"invalid_message": 1}


def test_jobs_and_collections_with_unknown_or_unsorted_extensions_are_refused(two):
    nine, ten = Extension(9, b""), Extension(10, b"")
    job = AggregationJobInitReq(0, b"", (nine,), (VerifyInit(DapReportShare(*_parts(two.report(1))), b"x"),))
    ring = two.rings[DapRole.HELPER]
    assert refusal(two.helper.service.init_job, job.to_bytes(), ring, two.now) is ProblemType.UNSUPPORTED_EXTENSION
    unsorted = replace(job, extensions=(ten, nine)).to_bytes()
    assert refusal(two.helper.service.init_job, unsorted, ring, two.now) is ProblemType.INVALID_MESSAGE
    wrong = ((nine,), ProblemType.UNSUPPORTED_EXTENSION), ((ten, nine), ProblemType.INVALID_EXTENSION)
    for extensions, kind in wrong:
        asked = CollectionJobReq(BatchQuery.of_interval(TimeInterval(HOUR, 1)), b"", extensions)
        assert refusal(two.leader.service.collect, asked.to_bytes()) is kind
        share = AggregateShareReq(asked, BatchSelector.of_interval(TimeInterval(HOUR, 1)), 3, bytes(32))
        assert refusal(two.helper.service.aggregate_share, share.to_bytes(), ring) is kind


def _parts(report):
    return report.metadata, report.public_share, report.helper_share


def test_shares_outside_of_the_field_or_of_no_valid_measurement_are_refused(cells):
    def outside(public, shares):
        return public, [b"\xff" * len(shares[0]), shares[1]]

    def cheat(public, shares):
        return public, [bytes([shares[0][0] ^ 1]) + shares[0][1:], shares[1]]

    def other_randomness(public, shares):
        return bytes([public[0] ^ 1]) + public[1:], shares

    def short(public, shares):
        return public, [shares[0], shares[1][:-1]]

    assert at_helper(cells, *(forged(cells, spoil=spoil) for spoil in (cheat, other_randomness, short))) == [
        ReportError.VDAF_VERIFY_ERROR,
        ReportError.VDAF_VERIFY_ERROR,
        ReportError.INVALID_MESSAGE,
    ]
    bad = [forged(cells, spoil=spoil) for spoil in (outside, cheat, other_randomness, short)]
    cells.upload(*bad, *(cells.report(cell) for cell in (0, 1, 1)))
    assert cells.collect(HOUR).sums == (1, 2, 0, 0)
    assert sum(cells.rejections(cells.leader).values()) == 4


def test_a_leader_that_lies_about_a_batch_learns_nothing(two):
    reports = [two.report(1) for _ in range(4)]
    two.upload(*reports)
    two.run()
    interval, ring = TimeInterval(HOUR, 1), two.rings[DapRole.HELPER]
    [total] = two.helper.store.read("SELECT count, checksum FROM shards")

    def ask(interval=interval, count=total[0], digest=total[1], query=None, agg_param=b""):
        asked = CollectionJobReq(query or BatchQuery.of_interval(interval), agg_param)
        body = AggregateShareReq(asked, BatchSelector.of_interval(interval), count, digest).to_bytes()
        return two.helper.service.aggregate_share(body, ring)

    assert refusal(ask, interval, 3) is ProblemType.BATCH_MISMATCH
    assert refusal(ask, interval, 4, bytes(32)) is ProblemType.BATCH_MISMATCH
    assert refusal(ask, TimeInterval(HOUR + 1, 1), 4) is ProblemType.INVALID_BATCH_SIZE
    assert (
        refusal(ask, interval, 4, total[1], BatchQuery.of_interval(TimeInterval(HOUR + 1, 1)))
        is ProblemType.BATCH_INVALID
    )
    assert refusal(ask, interval, 4, total[1], None, b"x") is ProblemType.INVALID_AGGREGATION_PARAMETER
    assert two.helper.store.read("SELECT count(*) FROM collected") == [(0,)]
    first = ask().message
    assert ask().message == first
    assert refusal(ask, TimeInterval(HOUR, 2)) is ProblemType.BATCH_OVERLAP
    assert refusal(ask, interval, 4, bytes(32)) is ProblemType.BATCH_OVERLAP


def test_a_leader_that_counts_other_reports_than_the_helper_makes_no_result(two):
    two.upload(*(two.report(1) for _ in range(3)))
    two.run()
    at_helper(two, two.report(1))  # the helper alone counts it
    job, request = two.ask(HOUR)
    two.run()
    assert refusal(two.result, job, request) is ProblemType.BATCH_MISMATCH


def test_requests_that_cannot_be_are_refused_before_anything_is_done(two):
    ring, helper, leader = two.rings[DapRole.HELPER], two.helper.service, two.leader.service
    report = two.report(1)
    twice = AggregationJobInitReq(0, b"", (), (VerifyInit(DapReportShare(*_parts(report)), b"x"),) * 2).to_bytes()
    other = AggregationJobInitReq(0, b"p", (), (VerifyInit(DapReportShare(*_parts(report)), b"x"),)).to_bytes()
    assert refusal(helper.init_job, twice, ring, two.now) is ProblemType.INVALID_MESSAGE
    assert refusal(helper.init_job, b"", ring, two.now) is ProblemType.INVALID_MESSAGE
    assert refusal(helper.init_job, other, ring, two.now) is ProblemType.INVALID_AGGREGATION_PARAMETER
    assert refusal(helper.continue_job, bytes(16), b"", ring) is ProblemType.UNRECOGNIZED_AGGREGATION_JOB
    assert refusal(leader.upload, UploadRequest(()).to_bytes(), ring, two.now) is ProblemType.INVALID_MESSAGE
    for query, agg_param, kind in (
        (BatchQuery.next_batch(), b"", ProblemType.INVALID_MESSAGE),
        (BatchQuery.of_interval(TimeInterval(HOUR, 1)), b"p", ProblemType.INVALID_AGGREGATION_PARAMETER),
        (BatchQuery(BatchMode.TIME_INTERVAL, b"x"), b"", ProblemType.BATCH_INVALID),
        (BatchQuery.of_interval(TimeInterval(HOUR, 0)), b"", ProblemType.BATCH_INVALID),
        (BatchQuery.of_interval(TimeInterval(2**64 - 1, 2**64 - 1)), b"", ProblemType.BATCH_INVALID),
        (BatchQuery.of_interval(TimeInterval(0, 1 << 40)), b"", ProblemType.BATCH_INVALID),
    ):
        assert refusal(leader.collect, CollectionJobReq(query, agg_param).to_bytes()) is kind


def test_a_collector_opens_nothing_that_is_not_for_it(two):
    two.upload(*(two.report(1) for _ in range(3)))
    job, request = two.ask(HOUR)
    two.run()
    answer = CollectionJobResp.from_bytes(two.leader.service.poll_collection(job).message)
    others = replace(answer.leader_share, config_id=8)
    for wrong in (
        replace(answer, leader_share=others),
        replace(answer, leader_share=answer.helper_share, helper_share=answer.leader_share),
        replace(answer, report_count=1),
        replace(answer, interval=TimeInterval(HOUR, 2)),
    ):
        with pytest.raises(Refused):
            two.collector.result(request, wrong)
    with pytest.raises(Refused):
        two.collector.result(replace(request, query=BatchQuery.of_interval(TimeInterval(HOUR, 2))), answer)
    assert two.collector.result(request, answer).sums == (3,)
