"""One report, many questions: both servers walk the same tree, pay for themselves, and draw noise once a question."""

from dataclasses import replace
from fractions import Fraction
from itertools import count
from random import Random

import numpy as np
import pytest
from tests.federated.aggregator.test_whole_tree import refusal
from tests.federated.aggregator.two_servers import NOISE, PRECISION, Crash, DyingStore, TwoServers, a_task

from hazemap.errors import InputError, Refused
from hazemap.federated.aggregator.task_services import RequestKind, expiry_writes
from hazemap.federated.protocols.dap import leader_jobs
from hazemap.federated.protocols.dap.basic_types import DapRole
from hazemap.federated.protocols.dap.collection_messages import AggregateShareReq
from hazemap.federated.protocols.dap.prefix_question import PrefixCells, PrefixQuestion
from hazemap.federated.protocols.dap.privacy_parameters import Nowhere, WalkTerms
from hazemap.federated.protocols.dap.problem_types import DapProblem, ProblemType
from hazemap.federated.protocols.dap.task import BatchMode
from hazemap.federated.protocols.dap.vdaf_configuration import CountConfiguration, Poplar1Configuration
from hazemap.federated.service.store import Write
from hazemap.privacy.budget import PureDP
from hazemap.privacy.mechanisms import DiscreteLaplace
from hazemap.privacy.parallel_composition import Steps
from hazemap.vdaf.poplar1 import Poplar1
from hazemap.vdaf.poplar1_evaluation import Poplar1Parameter

BITS, HOUR = 7, 1_000
PATHS = (0b101010, 0b101011, 0b101010, 0b000001, 0b110011)
"""Of people who are somewhere: a 0 goes before each, and before every cell here."""
TERMS = WalkTerms.of(PureDP(Fraction(1, 5)), levels=3)
HALF = Fraction(1, 2)


def walkers(seed=0, least=3, terms=TERMS, info=b"test", **more):
    vdaf, options = Poplar1(BITS, terms.candidates), {"walk": terms, "info": info}
    return TwoServers(seed, least, None, measured=Poplar1Configuration(BITS), vdaf=vdaf, options=options, **more)


@pytest.fixture
def two():
    made = walkers()
    yield made
    made.close()


def part(*prefixes, weight=1, first="0"):
    """Cells of people who are somewhere; with `first` 1 of whoever is nowhere."""
    numbers = np.array([int(first + p, 2) for p in prefixes], dtype=np.uint64)
    return PrefixCells.of(numbers, [1 + len(p) for p in prefixes], weight)


def asked(level, candidates, *parts, share=HALF, number=0):
    parameter = Poplar1Parameter(level + 1, np.array(candidates, dtype=np.uint64))
    return PrefixQuestion.of(number, parameter.to_bytes(), share, parts).to_bytes()


def truth(*parts, paths=PATHS):
    """The sums of parts whose cells do not lie in each other."""
    strings = [f"{path:0{BITS}b}" for path in paths]
    found = []
    for each in parts:
        for begin, length in zip(each.begins.tolist(), each.lengths, strict=True):
            prefix = f"{begin:064b}"[:length]
            found.append(each.weight * sum(string.startswith(prefix) for string in strings))
    return found


def without_noise(two, place, sums):
    noise = [two.noise[role][place] for role in (DapRole.LEADER, DapRole.HELPER)]
    return [value - int(own) - int(other) for value, own, other in zip(sums, *noise, strict=True)]


ALL, FINE = (0b00, 0b01, 0b10, 0b11), (0b1000, 0b1001, 0b1010, 0b1011)
QUARTERS = part("00", "01", "10", "11")


def test_questions_about_unions_of_what_was_verified_need_no_new_level(two):
    two.upload(*(two.report(path) for path in PATHS))
    walk = [
        (asked(1, ALL, QUARTERS, share=Fraction(1, 4)), truth(QUARTERS)),
        (asked(1, ALL, part("0", "1"), QUARTERS, share=Fraction(1, 8)), truth(part("0", "1"), QUARTERS)),
        (asked(3, FINE, part("1010", "1011"), share=Fraction(1, 8)), truth(part("1010", "1011"))),
        (asked(3, FINE, part("00", "101", weight=3), share=Fraction(1, 8)), truth(part("00", "101", weight=3))),
        (asked(1, ALL, part("1", "1010", "10"), share=Fraction(1, 8)), [1, 3, 0]),
    ]
    for place, (question, sums) in enumerate(walk):
        found = two.collect(HOUR, 1, question)
        assert found.count == len(PATHS)
        assert without_noise(two, place, found.sums) == sums
    assert [len(two.noise[role]) for role in two.noise] == [5, 5]
    levels = "SELECT count(*), count(DISTINCT level) FROM claims WHERE counted = 1"
    assert two.leader.store.read(levels) == two.helper.store.read(levels) == [(2 * len(PATHS), 2)]


def test_each_server_draws_the_noise_that_the_share_buys():
    drawn = []

    def draw(law, size):
        drawn.append(law)
        return np.zeros(size, dtype=np.int64)

    two = walkers()
    for server in (two.leader, two.helper):
        server.task = replace(server.task, draw_noise=draw)
        server.start()
    two.upload(*(two.report(path) for path in PATHS))
    parts = (part("0", "1", weight=2), part("10"))
    assert list(two.collect(HOUR, 1, asked(1, ALL, *parts, share=Fraction(1, 4))).sums) == truth(*parts)
    assert drawn == [DiscreteLaplace(Fraction(3) / (Fraction(1, 5) / 4))] * 2
    two.close()


def test_a_question_again_is_answered_by_the_same_bytes_and_not_paid_twice(two):
    two.upload(*(two.report(path) for path in PATHS))
    question = asked(1, ALL, QUARTERS)
    first = two.collect(HOUR, 1, question)
    assert [two.collect(HOUR, 1, question) for _ in range(3)] == [first] * 3
    assert [len(two.noise[role]) for role in two.noise] == [1, 1]
    for server in (two.leader, two.helper):
        assert server.store.read("SELECT count(*) FROM questions") == [(1,)]
    again = two.collect(HOUR, 1, asked(1, ALL, QUARTERS, number=1))  # with a number of its own it is another question
    assert again.sums != first.sums
    assert refusal(two.ask, HOUR, 1, asked(1, ALL, QUARTERS, number=2)) is ProblemType.BATCH_OVERLAP


def test_a_collector_gets_nothing_beyond_the_budget_the_levels_and_the_walk(two):
    two.upload(*(two.report(path) for path in PATHS))
    two.collect(HOUR, 1, asked(1, ALL, QUARTERS, share=Fraction(2, 3)))
    wrong = {
        ProblemType.BATCH_OVERLAP: [
            asked(1, ALL, part("0"), share=HALF),  # to subtract a union from its parts costs as much as anything
            asked(3, FINE, part("1010"), share=HALF),
        ],
        ProblemType.INVALID_AGGREGATION_PARAMETER: [
            asked(2, (0b000, 0b111), part("000"), share=Fraction(1, 4))[:-1],
            asked(0, (0, 1), part("0"), share=Fraction(1, 4)),  # upwards
            asked(1, (0b00,), part("00"), share=Fraction(1, 4)),  # the same level with others
            asked(BITS - 2, (0b101010,), part("101010"), share=Fraction(1, 4)),  # the last bit
            asked(1, ALL, part("101"), share=Fraction(1, 4)),  # deeper than what was verified
            Poplar1Parameter(2, np.array(ALL, dtype=np.uint64)).to_bytes(),
        ],
    }
    for kind, questions in wrong.items():
        for question in questions:
            assert refusal(two.ask, HOUR, 1, question) is kind
    assert refusal(two.ask, HOUR - 1, 2, asked(1, ALL, QUARTERS, share=Fraction(1, 9))) is ProblemType.BATCH_OVERLAP
    assert two.upload(two.report(0b111111)) != b""  # too late for this batch
    for level, candidates in ((2, (0b101,)), (3, (0b1010,))):
        cells = part(f"{candidates[0]:0{level + 1}b}")
        assert two.collect(HOUR, 1, asked(level, candidates, cells, share=Fraction(1, 9))).count == 5
    four = asked(4, (0b10101,), part("10101"), share=Fraction(1, 99))
    assert refusal(two.ask, HOUR, 1, four) is ProblemType.BATCH_OVERLAP


@pytest.mark.parametrize("info", [b"hazemap " + bytes(32), b"made by hand"])
def test_nobody_is_asked_who_is_nowhere_unless_it_is_paid(info):
    """`test_prefix_questions`: a device's rows, there or not, would move two counts at the price of one."""
    two = walkers(info=info)
    two.upload(*(two.report(path) for path in PATHS))
    for cells in (part("", first="1"), part("0", first="1"), part("1", first="1")):
        wrong = asked(1, ALL, part("0"), cells, share=Fraction(1, 9))
        assert refusal(two.ask, HOUR, 1, wrong) is ProblemType.INVALID_AGGREGATION_PARAMETER
    cells = part("0")
    assert without_noise(two, 0, two.collect(HOUR, 1, asked(1, ALL, cells)).sums) == truth(cells)
    [sent] = two.left_helper
    request = AggregateShareReq.from_bytes(sent)
    other = replace(
        request.collection_job_req, agg_param=asked(1, ALL, part("1", first="1"), share=Fraction(1, 9), number=1)
    )
    lying = replace(request, collection_job_req=other).to_bytes()
    answered = refusal(lambda: two.helper.service.aggregate_share(lying, two.rings[DapRole.HELPER]))
    assert answered is ProblemType.INVALID_AGGREGATION_PARAMETER
    two.close()


def test_where_who_is_nowhere_may_be_counted_every_question_has_noise_for_two_paths():
    drawn = []

    def draw(law, size):
        drawn.append(law)
        return np.zeros(size, dtype=np.int64)

    two = walkers(terms=replace(TERMS, nowhere=Nowhere.PAID))
    for server in (two.leader, two.helper):
        server.task = replace(server.task, draw_noise=draw)
        server.start()
    two.upload(*(two.report(path) for path in (*PATHS, 1 << (BITS - 1), 1 << (BITS - 1))))
    nowhere = part("", first="1")
    questions = ((part("0", "1", weight=2), nowhere), (QUARTERS,))
    for number, parts in enumerate(questions):
        question = asked(1, (*ALL, 0b100), *parts, share=Fraction(1, 4), number=number)
        found = two.collect(HOUR, 1, question)
        assert list(found.sums) == truth(*parts, paths=(*PATHS, 1 << (BITS - 1), 1 << (BITS - 1)))
    scales = [2 * Fraction(sum(each.weight for each in parts)) / (Fraction(1, 5) / 4) for parts in questions]
    assert drawn == [DiscreteLaplace(scale) for scale in scales for _ in range(2)]
    two.close()


def test_rows_there_or_not_cost_no_more_than_the_budget_in_any_questions_that_are_answered():
    """Whatever the account lets through, a path and that of nowhere differ by a loss of 1 in shares, at most.

    All paths; the twin has noise for one path, as where nobody is asked who is nowhere.
    """
    rng, nowhere, terms, twin = Random(3), 1 << (BITS - 1), replace(TERMS, nowhere=Nowhere.PAID), 0
    every = [f"{cell:0{size}b}" for size in (1, 2, 3) for cell in range(1 << size) if f"{cell:0{size}b}" <= "100"]
    for _ in range(25):
        steps, questions = Steps.level(Fraction(0)), []
        for _ in range(12):
            parts = tuple(
                part(*(cell[1:] for cell in cells), weight=rng.randint(1, 3), first=cells[0][0])
                for cells in (
                    [c for c in rng.sample(every, 3) if c[0] == first] for first in rng.choice(["0", "01", "1"])
                )
                if cells
            )
            if not parts:
                continue
            question = PrefixQuestion.of(0, b"x", Fraction(rng.randint(1, 3), 6), parts)
            if steps.most(*question.stretches) + question.share <= 1:
                steps = steps.raised(*question.stretches, question.share)
                questions.append(question)
        losses = []
        for path in range(nowhere):
            loss = [0, 0]
            for each in questions:
                move = sum(
                    abs(a - b)
                    for cells in each.parts
                    for a, b in zip(own_cells(cells, path), own_cells(cells, nowhere), strict=True)
                )
                for place, most in enumerate((terms.moved(each.sensitivity).l1, each.sensitivity.l1)):
                    loss[place] += each.share * move / most
            losses.append(loss)
        assert max(loss for loss, _ in losses) <= 1
        twin += max(loss for _, loss in losses) > 1
    assert twin > 3


def own_cells(cells, path):
    """What a path adds to the sums of a part: to the deepest cell that holds it."""
    string = f"{path:0{BITS}b}".ljust(64, "0")
    holding = [
        (length, place)
        for place, (begin, length) in enumerate(zip(cells.begins.tolist(), cells.lengths, strict=True))
        if string.startswith(f"{begin:064b}"[:length])
    ]
    return [cells.weight * (bool(holding) and place == max(holding)[1]) for place in range(cells.size)]


def test_no_level_is_verified_with_more_prefixes_than_devices_were_told():
    two = walkers(terms=replace(TERMS, prefixes=3))
    two.upload(*(two.report(path) for path in PATHS))
    four, five = (0b00, 0b01, 0b10, 0b100), (0b00, 0b01, 0b10, 0b11, 0b100)
    assert refusal(two.ask, HOUR, 1, asked(1, five, part("0"))) is ProblemType.INVALID_AGGREGATION_PARAMETER
    ring, twin = two.rings[DapRole.LEADER], walkers()
    twin.upload(*(twin.report(path) for path in PATHS))
    twin.leader.service._make_jobs(Poplar1Parameter(2, np.array(five, dtype=np.uint64)).to_bytes(), None, ring, two.now)
    [sent] = twin.leader.service.requests(ring, two.now)  # of a leader that does not care
    assert sent.kind is RequestKind.INIT_JOB
    assert refusal(two.at_helper, sent) is ProblemType.INVALID_AGGREGATION_PARAMETER
    assert two.helper.store.read("SELECT count(*) FROM claims") == [(0,)]
    found = two.collect(HOUR, 1, asked(1, four, part("0")))  # three, and that of nowhere
    assert without_noise(two, 0, found.sums) == truth(part("0"))
    two.close()
    twin.close()


def test_people_pay_only_for_questions_about_where_they_are(two):
    two.upload(*(two.report(path) for path in PATHS))
    one = Fraction(1)
    for number, cells in enumerate((part("00"), part("01"), part("11"))):
        assert two.collect(HOUR, 1, asked(1, ALL, cells, share=one, number=number))
    assert refusal(two.ask, HOUR, 1, asked(1, ALL, part("0"), share=Fraction(1, 99))) is ProblemType.BATCH_OVERLAP
    assert two.collect(HOUR, 1, asked(3, FINE, part("1010"), share=HALF, number=3))
    assert two.collect(HOUR, 1, asked(3, FINE, part("1011"), share=one, number=4))
    assert refusal(two.ask, HOUR, 1, asked(3, FINE, part("10"), share=HALF, number=5)) is ProblemType.BATCH_OVERLAP


def test_a_helper_keeps_the_account_for_itself_whatever_the_leader_says(two):
    """A leader that forgets what was asked, asks other reports, or verifies a level before the one above."""
    two.upload(*(two.report(path) for path in PATHS))
    question = asked(1, ALL, QUARTERS, share=Fraction(2, 3))
    two.collect(HOUR, 1, question)
    [sent] = two.left_helper
    request = AggregateShareReq.from_bytes(sent)

    def helper(**changed):
        body = replace(request, **changed).to_bytes()
        return two.helper.service.aggregate_share(body, two.rings[DapRole.HELPER])

    def about(agg_param):
        return replace(request.collection_job_req, agg_param=agg_param)

    assert helper().message in two.left_helper[sent]
    further = asked(1, ALL, part("0"), share=HALF)
    assert refusal(lambda: helper(collection_job_req=about(further))) is ProblemType.BATCH_OVERLAP
    paid = about(asked(1, ALL, part("0"), share=Fraction(1, 4)))
    assert refusal(lambda: helper(collection_job_req=paid, report_count=4)) is ProblemType.BATCH_MISMATCH
    assert refusal(lambda: helper(collection_job_req=paid, checksum=bytes(32))) is ProblemType.BATCH_MISMATCH
    assert len(two.noise[DapRole.HELPER]) == 1
    assert helper(collection_job_req=paid).message != helper().message
    assert len(two.noise[DapRole.HELPER]) == 2


def test_reports_of_a_deep_level_that_do_not_count_above_are_not_summed(two):
    """A leader may verify a deep level first, of more reports than it later counts above: the helper finds strays."""
    two.upload(*(two.report(path) for path in PATHS))
    ring = two.rings[DapRole.LEADER]
    deep, above = asked(3, FINE, part("10", "1010")), asked(1, ALL, QUARTERS)
    leader = two.leader.service
    leader._make_jobs(PrefixQuestion.from_bytes(deep).parameter, None, ring, two.now)
    for _ in range(3):
        two.exchange()
    late = "UPDATE claims SET counted = 0 WHERE level = 2 AND report = (SELECT min(report) FROM claims)"
    leader._make_jobs(PrefixQuestion.from_bytes(above).parameter, None, ring, two.now)
    for _ in range(3):
        two.exchange()
    job, request = two.ask(HOUR, 1, above)
    two.run()
    assert two.result(job, request).count == 5
    for server in (two.leader, two.helper):
        server.store.write_now(Write(late))
    job, request = two.ask(HOUR, 1, deep)
    two.run()
    assert refusal(two.result, job, request) is ProblemType.BATCH_MISMATCH
    assert [len(two.noise[role]) for role in two.noise] == [1, 1]


def test_questions_that_are_asked_together_are_answered_in_one_order_by_both_servers(two):
    """The helper answered a deep one first, from its level alone; the leader from the one above: no sums came out."""
    two.upload(*(two.report(path) for path in PATHS))
    first, second = asked(1, ALL, QUARTERS), asked(3, FINE, part("10", "1010"), share=Fraction(1, 4))
    jobs = [two.ask(HOUR, 1, question) for question in (first, second)]
    lost, answered = [], two.at_helper

    def losing(request):
        if request.kind is RequestKind.AGGREGATE_SHARE and len(lost) < 3:
            lost.append(request.job_id)
            raise Crash
        return answered(request)

    two.at_helper = losing
    two.run()
    assert len(lost) == 3 and len(set(lost)) == 1, "one after the other"
    for place, (job, cells) in enumerate(zip(jobs, (QUARTERS, part("10", "1010")), strict=True)):
        found = two.result(*job)
        if place:
            assert sum(without_noise(two, place, found.sums)) == sum(truth(part("10")))
        else:
            assert without_noise(two, place, found.sums) == truth(cells)


def refused_once(two, question):
    """The problem of a question that the helper refuses for good, after the leader has closed its level."""
    answers = two.at_helper

    def at_helper(request):
        if request.kind is RequestKind.AGGREGATE_SHARE:
            raise DapProblem(ProblemType.BATCH_MISMATCH, "other reports")
        return answers(request)

    two.at_helper = at_helper
    job, request = two.ask(HOUR, 1, question)
    two.run()
    two.at_helper = answers
    return refusal(two.result, job, request)


def after_a_refusal(two):
    """Cells of a level that the helper has refused, from a deeper one, without noise."""
    two.upload(*(two.report(path) for path in PATHS))
    assert refused_once(two, asked(1, ALL, QUARTERS)) is ProblemType.BATCH_MISMATCH
    found = two.collect(HOUR, 1, asked(3, FINE, part("10", "1010"), number=1))
    drawn = int(two.noise[DapRole.LEADER][1][0]) + int(two.noise[DapRole.HELPER][0][0])
    return [value - drawn for value in found.sums]


def test_a_question_that_the_helper_refuses_leaves_no_trace_at_the_leader(two):
    """Both keep one account: what the leader had closed alone, it counted at a level that the helper did not have."""
    assert after_a_refusal(two) == [0, 3]
    again = two.collect(HOUR, 1, asked(3, FINE, part("1010"), number=2))
    assert again.count == len(PATHS), "the refused question was not paid for"
    for server in (two.leader, two.helper):
        assert server.store.read("SELECT count(*) FROM questions") == [(2,)]
        assert server.store.read("SELECT count(*) FROM collected") == [(1,)]


def test_a_level_that_one_server_alone_has_closed_ends_in_sums_of_nothing(two, monkeypatch):
    monkeypatch.setattr(leader_jobs, "withdrawn_question", lambda *_: ())
    with pytest.raises(Refused, match="do not add up"):
        after_a_refusal(two)


def test_a_refused_question_about_a_level_that_was_answered_before_leaves_the_level_closed(two):
    two.upload(*(two.report(path) for path in PATHS))
    two.collect(HOUR, 1, asked(1, ALL, QUARTERS, share=Fraction(1, 4)))
    assert refused_once(two, asked(1, ALL, part("0"), share=Fraction(1, 4))) is ProblemType.BATCH_MISMATCH
    two.collect(HOUR, 1, asked(3, FINE, part("1010"), share=Fraction(3, 4)))
    for server in (two.leader, two.helper):
        assert server.store.read("SELECT count(*) FROM questions") == [(2,)]
        assert server.store.read("SELECT count(*) FROM collected") == [(2,)]


def test_reports_are_kept_until_the_last_level_is_answered_by_both_servers():
    two = walkers(terms=replace(TERMS, levels=1))
    two.upload(*(two.report(path) for path in PATHS))
    assert refused_once(two, asked(1, ALL, QUARTERS)) is ProblemType.BATCH_MISMATCH
    found = two.collect(HOUR, 1, asked(3, FINE, part("1010"), number=1))
    assert found.count == len(PATHS)
    assert two.leader.store.read("SELECT count(*) FROM reports WHERE body IS NOT NULL") == [(0,)]
    two.close()


def test_a_collector_that_forgets_a_question_on_its_way_leaves_one_account_at_both_servers(two):
    two.upload(*(two.report(path) for path in PATHS))
    answers = two.at_helper

    def at_helper(request):
        if request.kind is RequestKind.AGGREGATE_SHARE:
            two.leader.service.drop_collection(request.job_id)
        return answers(request)

    two.at_helper = at_helper
    job, request = two.ask(HOUR, 1, asked(1, ALL, QUARTERS))
    two.run()
    assert two.result(job, request).count == len(PATHS)
    two.leader.service.drop_collection(job)
    assert refusal(two.leader.service.poll_collection, job) is ProblemType.INVALID_MESSAGE
    accounts = [server.store.read("SELECT question FROM questions") for server in (two.leader, two.helper)]
    assert accounts[0] == accounts[1] and len(accounts[0]) == 1


def test_a_batch_below_the_minimum_answers_no_question(two):
    two.upload(*(two.report(path) for path in PATHS[:2]))
    job, request = two.ask(HOUR, 1, asked(1, ALL, QUARTERS))
    two.run()
    assert two.result(job, request) is None
    two.now += 2 * PRECISION
    two.run()
    assert refusal(two.result, job, request) is ProblemType.INVALID_BATCH_SIZE
    assert two.noise == {DapRole.LEADER: [], DapRole.HELPER: []}


def test_neither_noise_nor_a_noisy_sum_that_a_server_can_read_is_stored(two):
    two.upload(*(two.report(path) for path in PATHS))
    two.collect(HOUR, 1, asked(1, ALL, QUARTERS))
    for server in (two.leader, two.helper):
        shares = [bytes(share) for (share,) in server.store.read("SELECT share FROM shards")]
        assert shares  # each alone is random: sums of a field
        dump = b"".join(
            bytes(value)
            for (table,) in server.store.read("SELECT name FROM sqlite_master WHERE type = 'table'")
            for row in server.store.read(f"SELECT * FROM {table}")
            for value in row
            if isinstance(value, bytes)
        )
        counts = [int.from_bytes(shares[0][at : at + 8], "little") for at in range(0, 32, 8)]
        noise = int(two.noise[server.role][0][0])
        noised = b"".join(((each + noise) % (2**64 - 2**32 + 1)).to_bytes(8, "little") for each in counts)
        assert shares[0] in dump
        assert noised not in dump


def test_what_has_expired_is_forgotten_and_answers_nothing():
    two = walkers(report_expiry=10 * PRECISION)
    two.upload(*(two.report(path) for path in PATHS))
    two.collect(HOUR, 1, asked(1, ALL, QUARTERS))
    two.now += 12 * PRECISION
    for server in (two.leader, two.helper):
        server.store.write_now(*expiry_writes(1, server.task, two.now))
        assert server.store.read("SELECT count(*) FROM shards WHERE share IS NOT NULL") == [(0,)]
    job, request = two.ask(HOUR, 1, asked(1, ALL, part("0"), share=Fraction(1, 4)))
    two.run()
    assert refusal(two.result, job, request) is ProblemType.BATCH_INVALID
    two.close()


def test_tasks_of_questions_are_of_paths_of_times_and_name_one_price():
    for wrong in (
        {"measured": CountConfiguration()},
        {"measured": Poplar1Configuration(3)},
        {"measured": Poplar1Configuration(BITS), "privacy": NOISE},
        {"measured": Poplar1Configuration(BITS), "mode": BatchMode.LEADER_SELECTED},
    ):
        with pytest.raises(InputError):
            a_task(walk=TERMS, **wrong)
    task = a_task(measured=Poplar1Configuration(BITS), walk=TERMS)
    assert type(task).read(task.id, task.configuration).walk.budget == PureDP(Fraction(1, 5))


def history(seed):
    """Questions down a tree, of which anything may be lost, and at every write of which anybody may die."""
    two = walkers(seed, least=2)
    try:
        paths = [two.random.randrange(1 << BITS) for _ in range(4)]
        two.upload(*(two.report(path) for path in paths))
        cells = [QUARTERS, part("0", "1"), part("0101", "1010"), part("01", "1010")]
        levels = [(1, ALL), (1, ALL), (3, range(16)), (3, range(16))]
        numbers = count()
        for (level, candidates), each in zip(levels, cells, strict=True):
            question = asked(level, tuple(candidates), each, share=Fraction(1, 4), number=next(numbers))
            job, request = _lossy_ask(two, question)
            for _ in range(two.random.randrange(8)):
                two.exchange(lossy=0.25, deadly=0.25)
            for _ in range(8):
                two.run()
                found = two.result(job, request)
                if found:
                    break
            assert found.count == len(paths)
            noise = [value - true for value, true in zip(found.sums, truth(each, paths=paths), strict=True)]
            drawn = {role: {int(d[0]) for d in two.noise[role]} for role in two.noise}
            assert len(set(noise)) == 1
            assert any(noise[0] - own in drawn[DapRole.HELPER] for own in drawn[DapRole.LEADER])
            assert two.result(job, request) == found
        assert all(len(answers) == 1 for answers in two.left_helper.values())
        assert len(two.left_helper) == 4
        for server in (two.leader, two.helper):
            assert server.store.read("SELECT count(*) FROM questions") == [(4,)]
            assert server.store.read("SELECT count(*) FROM claims WHERE counted = 1") == [(8,)]
        with pytest.raises(DapProblem):
            two.ask(HOUR, 1, asked(3, tuple(range(16)), part("0"), share=Fraction(1, 99), number=9))
    finally:
        two.close()


def _lossy_ask(two, agg_param):
    while True:
        two._may_die(two.leader, 0.3)
        try:
            return two.ask(HOUR, 1, agg_param)
        except Crash:
            two.leader.start()
        finally:
            two.leader.store.dies = None


@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(100, 150), marks=pytest.mark.slow)])
def test_every_question_is_paid_once_and_answered_by_one_noise_whatever_is_lost(seeds):
    for seed in seeds:
        history(seed)


@pytest.mark.parametrize("role", [DapRole.LEADER, DapRole.HELPER])
@pytest.mark.parametrize("dies", ["before", "after"])
def test_a_server_that_dies_between_drawing_and_sending_has_stored_all_of_it_or_nothing(two, role, dies):
    two.upload(*(two.report(path) for path in PATHS))
    two.collect(HOUR, 1, asked(1, ALL, QUARTERS, share=Fraction(1, 4)))
    job, request = two.ask(HOUR, 1, asked(1, ALL, part("0", "1"), share=Fraction(1, 4)))
    ring = two.rings
    if role is DapRole.LEADER:
        two.leader.store.dies = dies
        with pytest.raises(Crash):
            two.leader.service.requests(ring[role], two.now)
        two.leader.start()
    else:
        [sent] = two.leader.service.requests(ring[DapRole.LEADER], two.now)
        assert sent.kind is RequestKind.AGGREGATE_SHARE
        two.helper.store.dies = dies
        with pytest.raises(Crash):
            two.at_helper(sent)
        two.helper.start()
        two.leader.start()
    two.run()
    found = two.result(job, request)
    assert isinstance(two.leader.store, DyingStore)
    assert len(two.noise[role]) == (3 if dies == "before" else 2)  # what was drawn and not stored is gone
    own, other = (two.noise[each][-1] for each in (DapRole.LEADER, DapRole.HELPER))
    assert [value - int(a) - int(b) for value, a, b in zip(found.sums, own, other, strict=True)] == truth(
        part("0", "1")
    )
    for server in (two.leader, two.helper):
        assert server.store.read("SELECT count(*) FROM questions") == [(2,)]
