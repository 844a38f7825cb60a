"""One report, whole tree: a batch is collected level after level, each with its noise, from the same reports."""

from fractions import Fraction

import numpy as np
import pytest
from tests.federated.aggregator.two_servers import PRECISION, Crash, TwoServers

from hazemap.federated.aggregator.task_records import TaskRecords
from hazemap.federated.protocols.dap.basic_types import DapRole, TimeInterval
from hazemap.federated.protocols.dap.batches import Batch
from hazemap.federated.protocols.dap.privacy_parameters import PrivacyParameters
from hazemap.federated.protocols.dap.problem_types import DapProblem, ProblemType
from hazemap.federated.protocols.dap.vdaf_configuration import Poplar1Configuration
from hazemap.federated.service.store import Write
from hazemap.privacy.mechanisms import DiscreteLaplace
from hazemap.vdaf.poplar1 import Poplar1
from hazemap.vdaf.poplar1_evaluation import Poplar1Parameter

BITS, HOUR = 6, 1_000
PATHS = (0b101010, 0b101011, 0b101010, 0b000001, 0b110011)


def tree(seed=0, levels=3, least=3):
    privacy = PrivacyParameters.of(DiscreteLaplace(Fraction(20)), levels=levels, epsilon=Fraction(levels, 20))
    return TwoServers(seed, least, privacy, measured=Poplar1Configuration(BITS), vdaf=Poplar1(BITS))


@pytest.fixture
def two():
    made = tree()
    yield made
    made.close()


def asked(level, *prefixes):
    return Poplar1Parameter(level, np.array(prefixes, dtype=np.uint64)).to_bytes()


def truth(level, prefixes, paths=PATHS):
    return [sum(path >> (BITS - 1 - level) == prefix for path in paths) for prefix in prefixes]


def without_noise(two, level, sums):
    """What the sums were before the noise that was drawn `level`-th (from 0) by each server."""
    noise = [two.noise[role][level] for role in (DapRole.LEADER, DapRole.HELPER)]
    return [value - int(own) - int(other) for value, own, other in zip(sums, *noise, strict=True)]


def refusal(of, *arguments):
    with pytest.raises(DapProblem) as problem:
        of(*arguments)
    return problem.value.type


def test_a_report_is_counted_level_after_level_and_each_level_has_its_own_noise(two):
    two.upload(*(two.report(path) for path in PATHS))
    walk = [(0, (0, 1)), (2, (0b000, 0b101, 0b110)), (5, (0b101010, 0b101011))]
    for place, (level, prefixes) in enumerate(walk):
        found = two.collect(HOUR, 1, asked(level, *prefixes))
        assert found.count == len(PATHS)
        assert without_noise(two, place, found.sums) == truth(level, prefixes)
    assert [len(two.noise[role]) for role in two.noise] == [3, 3]
    assert two.leader.store.read("SELECT count(*) FROM reports WHERE body IS NOT NULL") == [(0,)]


def test_a_walk_goes_down_over_the_same_reports_and_no_further_than_its_price(two):
    two.upload(*(two.report(path) for path in PATHS))
    assert two.collect(HOUR, 1, asked(1, 0b10, 0b11)).count == 5
    late = two.report(0b111111)
    assert two.upload(late) != b""
    for wrong in (asked(1, 0b00), asked(0, 0b1), asked(2, 0b001), asked(2, 0b101, 0b100)):
        assert refusal(two.ask, HOUR, 1, wrong) is ProblemType.INVALID_AGGREGATION_PARAMETER
    assert refusal(two.ask, HOUR - 1, 2, asked(2, 0b101)) is ProblemType.BATCH_OVERLAP
    for level, prefix in ((2, 0b101), (3, 0b1010)):
        assert two.collect(HOUR, 1, asked(level, prefix)).count == 5
    assert refusal(two.ask, HOUR, 1, asked(4, 0b10101)) is ProblemType.BATCH_OVERLAP


def test_a_level_that_was_verified_is_not_verified_again_by_other_prefixes(two):
    two.upload(*(two.report(path) for path in PATHS))
    two.ask(HOUR, 1, asked(1, 0b00))
    two.leader.service.requests(two.rings[DapRole.LEADER], two.now)  # its reports are claimed at this level
    job, request = two.ask(HOUR, 1, asked(1, 0b10))
    two.run()
    two.now += PRECISION
    two.run()
    assert refusal(two.result, job, request) is ProblemType.INVALID_AGGREGATION_PARAMETER


def history(seed):
    """Reports, turns and collections down a tree, in which anything may be lost and anybody may die."""
    two = tree(seed, levels=2, least=2)
    try:
        paths = [two.random.randrange(1 << BITS) for _ in range(4)]
        two.upload(*(two.report(path) for path in paths))
        levels = [(1, tuple(range(4))), (3, tuple(range(16)))]
        for level, prefixes in levels:
            job, request = _lossy_ask(two, asked(level, *prefixes))
            for _ in range(two.random.randrange(8)):
                two.exchange(lossy=0.25, deadly=0.2)
            for _ in range(8):
                two.run()
                found = two.result(job, request)
                if found:
                    break
            assert found.count == len(paths)
            noise = [value - true for value, true in zip(found.sums, truth(level, prefixes, paths), strict=True)]
            drawn = {role: {int(d[0]) for d in two.noise[role]} for role in two.noise}
            assert len(set(noise)) == 1
            assert any(noise[0] - own in drawn[DapRole.HELPER] for own in drawn[DapRole.LEADER])
            assert two.result(job, request) == found
        assert all(len(answers) == 1 for answers in two.left_helper.values())
        counted = "SELECT count(*), count(DISTINCT report) FROM claims WHERE counted = 1"
        assert two.helper.store.read(counted) == two.leader.store.read(counted) == [(8, 4)]
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


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(100, 250), marks=pytest.mark.slow)])
def test_every_level_counts_every_report_once_whatever_is_lost(seeds):
    for seed in seeds:
        history(seed)


def test_reports_that_come_while_others_are_verified_are_counted_with_them(two):
    """Also of those whose ids were looked up together, while jobs claim some, and one is gone."""
    keys = two.rings[DapRole.LEADER]
    two.upload(*(two.report(path) for path in PATHS))
    job, request = two.ask(HOUR, 1, asked(0, 0, 1))
    begun = two.leader.service.requests(keys, two.now)
    two.upload(two.report(0), two.report(1 << 5))
    assert not two.leader.service.requests(keys, two.now)  # looked for when those under way are done
    for sent in begun:
        two.leader.service.answered(sent, *two.at_helper(sent), keys)
    two.run()
    found = two.result(job, request)
    assert found.count == 7
    assert without_noise(two, 0, found.sums) == truth(0, (0, 1), (*PATHS, 0, 1 << 5))
    records, batch = TaskRecords(two.leader.store.read, 1), Batch.of(TimeInterval(HOUR, 1))
    first, *rest = (each.metadata.report_id for each in records.waiting(3, batch, 10))
    assert len(rest) == 6
    assert [each.metadata.report_id for each in records.waiting(3, batch, 1)] == [first]
    claim = Write("INSERT INTO claims VALUES (1, 3, ?, ?, ?, 0)", (first, bytes(16), HOUR))
    two.leader.store.write_now(claim, Write("UPDATE reports SET body = NULL WHERE report = ?", (rest[1],)))
    assert not two.upload(two.report(3, two.now - PRECISION))
    assert [each.metadata.report_id for each in records.waiting(3, batch, 2)] == [rest[0]]
    assert {each.metadata.report_id for each in records.waiting(3, batch, 10)} == {*rest} - {rest[1]}
    assert len(records.waiting(3, None, 10)) == 6
    two.leader.store.write_now(*(claim._replace(values=(each, bytes(16), HOUR)) for each in rest))
    assert records.waiting(3, batch, 10) == []
