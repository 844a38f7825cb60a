"""A session's questions through collector, leader and helper: the law and the sums are those of `OneReport`."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from tests.federated.aggregator.two_servers import TwoServers
from tests.federated.trust.test_in_memory_one_report import TREES, town
from tests.privacy.polya_law import fit, laplace_law, polya_law
from tests.test_one_voice import BOX, ONE, cells_of
from tests.test_trust_matrix import REFUSED, SUMS

from hazemap.algorithms import Adaptive
from hazemap.cells import NOWHERE, Leaves, WholeDomain
from hazemap.encoders import Concatenation, Counts
from hazemap.errors import InputError, Refused, Unanswerable
from hazemap.federated.protocols.dap.basic_types import DapRole
from hazemap.federated.protocols.dap.privacy_parameters import Nowhere, WalkTerms
from hazemap.federated.protocols.dap.problem_types import DapProblem
from hazemap.federated.protocols.dap.vdaf_configuration import Poplar1Configuration
from hazemap.federated.server.collected_map import OUTSIDE, collected_map
from hazemap.federated.server.networked_one_report import CollectedOneReport
from hazemap.federated.trust.one_report import OneReportTrust
from hazemap.federated.trust.prefix_walk import CellStrings
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.privacy.budget import ApproxDP, PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, replay, run
from hazemap.queries.noisy_queries import Query
from hazemap.releases import Release
from hazemap.spatial.quadtree import Quadtree
from hazemap.specs.method_from_name import method_from_name
from hazemap.tables.contribution_bounding import AtMostRows, Outside
from hazemap.vdaf.poplar1 import Poplar1

PEOPLE, HOUR = 30, 1_000
TOWN = town(PEOPLE)
SILENT = PureDP(10**6)
LEVEL = 1e-6
HALF = Fraction(1, 2)
RULE, MAPPED = AtMostRows(1, Outside.PEOPLE), AtMostRows(1, Outside.DROP)


def terms(budget, levels, rule=RULE):
    """Those of a task for methods of a rule: people outside are paid for where they are counted."""
    return WalkTerms.of(budget, levels, nowhere=Nowhere.PAID if rule.outside.asked else Nowhere.REFUSED)


def counts(tree, *cells):
    return Counts(Leaves(tree, np.concatenate(cells)), RULE)


@cache
def uploads(bits, terms, strings):
    """Reports of these people for a task that all servers of this test have."""
    two = servers(bits, terms)
    made = [two.report(string) for string in strings]
    two.close()
    return made


def servers(bits, terms, **more):
    vdaf = Poplar1(bits, terms.candidates)
    return TwoServers(0, PEOPLE, None, measured=Poplar1Configuration(bits), vdaf=vdaf, options={"walk": terms}, **more)


class Line:
    """A collector's line to servers in this process."""

    def __init__(self, tree, terms, draw):
        bits = CellStrings(tree).bits
        self.two = servers(bits, terms)
        self.collector = self.two.collector
        self.asked = []
        for server in (self.two.leader, self.two.helper):
            server.task = replace(server.task, draw_noise=draw)
            server.start()
        strings = CellStrings(tree).of_people(tree.cell_at(TOWN.columns, tree.depth)).tolist()
        self.two.upload(*uploads(bits, terms, tuple(strings)))

    def collect(self, interval, agg_param, wait):
        self.asked.append(agg_param)
        try:
            return self.two.collect(interval.start, interval.duration, agg_param)
        except DapProblem as problem:
            raise Refused(str(problem)) from problem


def silent(law, size):
    return np.zeros(size, dtype=np.int64)


@pytest.fixture
def trust():
    made = []

    def make(tree, terms, draw=silent):
        from hazemap.federated.protocols.dap.basic_types import TimeInterval

        line = Line(tree, terms, draw)
        made.append(line)
        return CollectedOneReport(line, TimeInterval(HOUR, 1))

    yield make
    for line in made:
        line.two.close()


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_without_noise_the_servers_answer_every_question_with_its_exact_sums(tree, trust):
    asked = trust(tree, terms(SILENT, 3))
    one = Leaves.at_level(tree, 1).cells
    fine = tree.children(tree.children(one[1:3]))
    questions = [
        counts(tree, one, [NOWHERE]),
        counts(tree, one[:1], one[3:], fine, [NOWHERE]),
        counts(tree, one, fine[2:5]),  # a cell counts who is in none of those inside it
        counts(tree, tree.root),
        counts(tree, tree.children(one[1:2])),
        Counts(WholeDomain(tree), RULE),
        Concatenation((counts(tree, one), counts(tree, tree.root)), (1, 3)),
    ]
    for question in questions:
        answer = asked.answer(Query(question, Fraction(1, 8)), SILENT.part(Fraction(1, 8)))
        assert np.array_equal(answer.sums, question.total(TOWN))
        assert answer.people == PEOPLE
    assert [depth for depth, _ in asked.walk.candidates] == [1, 3]


@pytest.mark.parametrize("budget", [PureDP("0.5"), ApproxDP(1, "1e-6")])
def test_answers_have_the_error_bars_of_the_simulated_trust_model(budget, trust):
    tree, share = TREES["squares"], Fraction(1, 3)
    stacked = Concatenation((counts(tree, Leaves.at_level(tree, 2).cells), counts(tree, tree.root)), (1, 2))
    laws = []
    real = trust(tree, terms(budget, 2), lambda law, size: laws.append(law) or silent(law, size))
    simulated = OneReportTrust(TOWN, ReportBatch(PEOPLE, PEOPLE), 2, Stream.fixed(b"bars"))
    one, other = (each.answer(Query(stacked, share), budget.part(share)) for each in (real, simulated))
    assert (one.stddev, one.kurtosis, one.people) == (other.stddev, other.kurtosis, other.people)
    assert laws[0] == laws[1]
    assert laws[0].stddev * 2**0.5 == pytest.approx(one.stddev[0])
    assert real.prices(budget).stddev(stacked, share) == one.stddev[0]


@pytest.mark.slow
def test_the_noise_of_a_question_is_that_of_both_servers_as_it_is_simulated(trust):
    """Chi-square, 1e-6, on fixed streams, of both; the twin takes a curator's noise for it."""
    tree = TREES["squares"]
    asked, budget = Counts(Leaves.at_level(tree, 3), MAPPED), PureDP(30)
    exact, stream = asked.total(TOWN), Stream.fixed(b"question")
    share = Fraction(1, 60)  # ε = 1/2
    real = trust(tree, terms(budget, 1, MAPPED), lambda law, size: law.draw(stream, size))
    simulated = OneReportTrust(TOWN, ReportBatch(PEOPLE, PEOPLE), 1, Stream.fixed(b"simulated"))
    for each in (real, simulated):
        answers = [each.answer(Query(asked, share), budget.part(share)).sums - exact for _ in range(60)]
        assert fit(np.concatenate(answers), polya_law(Fraction(2), Fraction(2))) > LEVEL
        assert fit(np.concatenate(answers), laplace_law(Fraction(2))) < LEVEL
    with pytest.raises(Refused, match="budget"):
        real.answer(Query(asked, share), budget.part(share))


@pytest.mark.parametrize(
    "name", [each if each in ("adaptive", "flat:3") else pytest.param(each, marks=pytest.mark.slow) for each in SUMS]
)
def test_methods_run_unchanged_or_are_refused_as_by_the_simulated_trust_model(name, trust):
    method = method_from_name(name, cells_of(name), BOX, ONE)
    if isinstance(method, Adaptive):
        method = Adaptive.for_one_report(method.tree, method.bounding)
    if name in REFUSED["one report"]:
        try:
            levels = min(12, CellStrings(method.tree).bits - 1)
            made = trust(method.tree, terms(SILENT, levels, method.bounding))
        except Unanswerable:
            return  # no path is of this tree
        with pytest.raises((Unanswerable, InputError), match=r"ask|choose|bound"):
            run(method, made, SILENT, Unrecorded())
        return
    levels = min(12, CellStrings(method.tree).bits - 1)
    made = trust(method.tree, terms(SILENT, levels, method.bounding))
    result = run(method, made, SILENT, Unrecorded())
    for question, answer in result.transcript:
        assert np.array_equal(answer.sums, question.encoder.total(TOWN))
    again = replay(method, made.prices(SILENT), SILENT, result.transcript)
    assert np.array_equal(result.value.values, again.value.values)


def test_a_run_that_is_begun_again_asks_the_same_and_gets_the_same(trust, tmp_path):
    tree, budget, stream = TREES["squares"], PureDP(2), Stream.fixed(b"again")
    asking = trust(tree, terms(budget, 5), lambda law, size: law.draw(stream, size))
    line, interval = asking._client, asking._interval
    method = Adaptive.for_one_report(tree, RULE)
    first = collected_map(asking, method, "town")
    second = collected_map(CollectedOneReport(line, interval), method, "town")
    asked = len(line.asked) // 2
    assert line.asked[:asked] == line.asked[asked:]
    assert [len(each.answer.sums) for each in first.transcript] == [len(each.answer.sums) for each in second.transcript]
    for one, other in zip(first.transcript, second.transcript, strict=True):
        assert np.array_equal(one.answer.sums, other.answer.sums)
    for server in (line.two.leader, line.two.helper):
        assert server.store.read("SELECT count(*) FROM questions") == [(asked,)]
    middle = CollectedOneReport(line, interval)
    middle.walked(question for question, _ in first.transcript[:2])
    third = middle.answer(first.transcript[2].question, budget.part(first.transcript[2].question.share))
    assert np.array_equal(third.sums, first.transcript[2].answer.sums)
    first.save(tmp_path / "town.parquet")
    found = Release.open(tmp_path / "town.parquet")
    assert found.statement == first.statement
    assert found.total().unbiased == first.total().unbiased
    said = str(first.statement)
    assert "https://leader.example/" in said
    assert "5 levels" in said
    assert " ".join(OUTSIDE.split()) in " ".join(said.split())


def test_a_method_counts_people_outside_where_that_was_paid_and_only_there(trust):
    """Twice the noise where they are counted, by servers, prices and error bars alike."""
    tree, budget, laws = TREES["squares"], PureDP(2), []
    cells = Leaves.at_level(tree, 1)
    for rule, other in ((RULE, MAPPED), (MAPPED, RULE)):
        made = trust(tree, terms(budget, 2, rule), lambda law, size: laws.append(law) or silent(law, size))
        with pytest.raises(InputError, match="outside"):
            trust(tree, terms(budget, 2, rule)).answer(Query(Counts(cells, other), HALF), budget.part(HALF))
        answer = made.answer(Query(Counts(cells, rule), HALF), budget.part(HALF))
        assert answer.stddev[0] == made.prices(budget).stddev(Counts(cells, rule), HALF)
        assert answer.stddev[0] == pytest.approx(laws[-1].stddev * 2**0.5)
    assert [law.scale for law in laws] == [2, 2, 1, 1]
    said = " ".join(
        str(collected_map(trust(tree, terms(budget, 5)), Adaptive.for_one_report(tree, RULE), "t").statement).split()
    )
    assert OUTSIDE in said


def test_a_walk_stays_within_the_prefixes_that_devices_were_told(trust):
    tree = TREES["squares"]
    made = trust(tree, replace(terms(SILENT, 2, MAPPED), prefixes=15))
    with pytest.raises(Unanswerable, match="15 are allowed"):
        made.answer(Query(Counts(Leaves.at_level(tree, 2), MAPPED), HALF), SILENT.part(HALF))
    asked = Counts(Leaves(tree, Leaves.at_level(tree, 2).cells[:15]), MAPPED)
    assert np.array_equal(made.answer(Query(asked, HALF), SILENT.part(HALF)).sums, asked.total(TOWN))


def test_a_run_spends_what_people_paid_and_walks_in_the_tree_that_they_were_told(trust):
    tree, budget = TREES["squares"], PureDP(2)
    asking = trust(tree, terms(budget, 5))
    with pytest.raises(InputError, match="were made for"):
        asking.prices(PureDP(1))
    other = Quadtree.around(BOX, 5)
    with pytest.raises(InputError, match="the task's have"):
        asking.answer(Query(counts(other, other.root), 1), budget)
    line = asking._client
    no_walk = type("Collector", (), {"task": replace(line.collector.task, walk=None)})
    with pytest.raises(InputError, match="--questions"):
        CollectedOneReport(type("DapClient", (), {"collector": no_walk}), asking._interval)
    assert asking.answers(Query)
    assert line.two.noise == {DapRole.LEADER: [], DapRole.HELPER: []}
