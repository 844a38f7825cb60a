"""Devices by their law: samples, dropouts, lost shards, noise. Statistical tests fail by chance with 1e-7."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2, hypergeom

from hazemap.algorithms import Adaptive
from hazemap.cells import Leaves
from hazemap.encoders import Concatenation, Counts, QuantileScores
from hazemap.engines.memory import MemoryTable
from hazemap.errors import HazemapWarning, InputError, NotOpened, Unanswerable
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling, SecureSumPrices
from hazemap.federated.trust.in_memory_secure_aggregation import SimulatedSecureAggregation
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.queries.algorithm_session import Unrecorded, replay, run
from hazemap.queries.noisy_queries import Choice, Query
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, OneVote, RowIsPerson
from hazemap.tables.votes import Votes

TREE = Quadtree(0.25, 0.25, 0.25, 6)
COUNTS = Counts(Leaves.at_level(TREE, 3), AtMostRows(1))
SILENT = PureDP(10_000)  # noise of scale 1/10,000 is 0
ERROR = 1e-7
ALL = Cohort(1_000, 250, dropout=Fraction(0), corrupt=Fraction(0))


def town(people, rows=1):
    rng = np.random.default_rng(4)
    west, south, east, north = (float(edge[0]) for edge in TREE.bounds(TREE.root))
    lon, lat = rng.uniform(west, east, people * rows), rng.uniform(south, north, people * rows)
    return MemoryTable(np.repeat(np.arange(people) * 7 + 3, rows), {"lon": lon, "lat": lat})


class Engine:
    """Votes without people, as engines have them."""

    def __init__(self, table):
        self.table = table

    def votes(self, tree, bounding) -> Votes:
        return self.table.votes(tree, bounding)


TOWN = town(3_000)
TABLES = {"memory": TOWN, "engine": Engine(TOWN)}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_as_many_people_answer_as_were_asked(table):
    answer = SimulatedSecureAggregation(table, ALL).answer(Query(COUNTS, 1), SILENT)
    assert answer.people == answer.sums.sum() == 1_000
    assert (answer.sums <= COUNTS.total(TOWN)).all()


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_one_sample_is_asked_again_and_a_fresh_one_is_not(table):
    for sampling in Sampling:
        trust = SimulatedSecureAggregation(table, replace(ALL, sampling=sampling))
        one, other = (trust.answer(Query(COUNTS, 1), SILENT).sums for _ in range(2))
        assert np.array_equal(one, other) == (sampling is Sampling.ONE)


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_people_are_drawn_without_replacement(table):
    half = Counts(Leaves(TREE, TREE.children(TREE.root)[:1]), AtMostRows(1))
    inside, times = int(half.total(TOWN)[0]), 1_500
    trust = SimulatedSecureAggregation(table, ALL)
    drawn = np.array([trust.answer(Query(half, 1), SILENT).sums[0] for _ in range(times)])
    law = hypergeom(3_000, inside, 1_000)
    assert abs(drawn.mean() - law.mean()) < 5.4 * law.std() / times**0.5
    energy = ((drawn - law.mean()) ** 2).sum()
    assert chi2.cdf(energy / law.var(), times) > ERROR / 2
    assert chi2.sf(energy / law.var(), times) > ERROR / 2
    with_replacement = 1_000 * (inside / 3_000) * (1 - inside / 3_000)  # the twin's variance
    assert chi2.cdf(energy / with_replacement, times) < ERROR / 2


def measured(answer, exact, stddev):
    """How likely noise of this standard deviation has at most, and at least, the energy of an answer's noise."""
    energy = float(((answer.sums - exact) ** 2).sum()) / stddev**2
    # The energy of a number of kurtosis κ has variance 2 + κ: as if there were fewer Gaussian ones.
    free = 2 * len(exact) / (2 + answer.kurtosis)
    return chi2.cdf(energy * free / len(exact), free), chi2.sf(energy * free / len(exact), free)


@pytest.mark.parametrize("corrupt", [Fraction(0), Fraction(3, 10)], ids=str)
def test_prices_are_the_noise_of_the_answers(corrupt):
    cohort = Cohort(3_000, 500, dropout=Fraction(0), corrupt=corrupt)
    fine = Counts(Leaves.at_level(TREE, 6), AtMostRows(1))
    trust = SimulatedSecureAggregation(TOWN, cohort)
    budget, share = PureDP(2), Fraction(1, 8)
    price = trust.prices(budget).stddev(fine, share)
    answer = trust.answer(Query(fine, share), budget.part(share))
    assert answer.stddev[0] == pytest.approx(price, rel=1e-12)
    assert min(measured(answer, fine.total(TOWN), price)) > ERROR
    assert price == pytest.approx(6**0.5 * DistributedNoise(Fraction(4), cohort.honest(500)).stddev(500))
    # The twin believes that every share was made for 1.3 times as many people as it was.
    assert min(measured(answer, fine.total(TOWN), price / 1.3**0.5)) < ERROR


def test_noise_is_of_those_who_answered():
    cohort = Cohort(3_000, 500, dropout=Fraction(1, 3), corrupt=Fraction(0), mode=Mode.SEMI_HONEST)
    trust = SimulatedSecureAggregation(TOWN, cohort, dropping=Fraction(1, 5))
    answer = trust.answer(Query(COUNTS, 1), PureDP(1))
    [turnout] = trust.turnouts
    assert answer.people == sum(turnout.answered) < 3_000
    assert answer.stddev[0] == pytest.approx(DistributedNoise(Fraction(1), 334).stddev(answer.people))
    assert answer.kurtosis == pytest.approx(DistributedNoise(Fraction(1), 334).kurtosis(answer.people))
    assert abs(int(answer.sums.sum()) - answer.people) < 40 * answer.stddev[0] * 8


def test_a_share_buys_what_it_is_said_to():
    prices = SecureSumPrices(PureDP(3), Cohort(10_001, 1_000))
    for stddev in (0.5, 3.0, 77.7, 1e4):
        share = prices.share(COUNTS, stddev)
        assert prices.stddev(COUNTS, share) <= stddev < prices.stddev(COUNTS, share * Fraction(9999, 10_000) / 1)


def test_a_shard_with_too_few_left_is_lost_and_nobody_in_it_counts():
    cohort = Cohort(1_000, 50, dropout=Fraction(1, 10), corrupt=Fraction(0))
    trust = SimulatedSecureAggregation(TOWN, cohort, dropping=Fraction(1, 10))
    answers = [trust.answer(Query(COUNTS, 1), SILENT) for _ in range(5)]
    assert sum(turnout.lost for turnout in trust.turnouts) > 0
    for answer, turnout in zip(answers, trust.turnouts, strict=True):
        assert answer.people == answer.sums.sum() == sum(n for n in turnout.answered if n >= 45)
        assert turnout.opened + turnout.lost == 20


def test_where_all_shards_are_lost_nothing_is_opened():
    trust = SimulatedSecureAggregation(TOWN, ALL, dropping=Fraction(1, 2))
    with pytest.raises(NotOpened, match="none of 4 shards"):
        trust.answer(Query(COUNTS, 1), SILENT)
    assert trust.turnouts[0].opened == 0


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_where_fewer_are_there_than_asked_all_are_asked(table):
    trust = SimulatedSecureAggregation(table, Cohort(5_000, 2_000, Fraction(0), Fraction(0)))
    with pytest.warns(HazemapWarning, match="3,000 are there"):
        answer = trust.answer(Query(COUNTS, 1), SILENT)
    assert np.array_equal(answer.sums, COUNTS.total(TOWN))
    assert trust.turnouts[0].answered == (1_500, 1_500)


@pytest.mark.parametrize("rule", [AtMostRows(3), OneVote(64)], ids=str)
def test_a_person_with_several_rows_brings_all_of_them(rule):
    table = town(500, rows=4)
    everybody = Cohort(500, 100, dropout=Fraction(0), corrupt=Fraction(0))
    counts = Counts(COUNTS.cells, rule)
    stack = Concatenation((counts, Counts(Leaves(TREE, TREE.root), rule)), (1, 2))
    answer = SimulatedSecureAggregation(table, everybody).answer(Query(stack, 1), PureDP(10**6))
    assert np.array_equal(answer.sums, stack.total(table))
    some = SimulatedSecureAggregation(table, replace(everybody, people=200)).answer(Query(stack, 1), PureDP(10**6))
    assert some.sums.sum() == 200 * rule.sensitivity.l1 * 3


def test_where_only_votes_are_known_people_need_one_each():
    trust = SimulatedSecureAggregation(Engine(town(500, rows=4)), replace(ALL, people=100))
    with pytest.raises(Unanswerable, match="one vote"):
        trust.answer(Query(Counts(COUNTS.cells, AtMostRows(2)), 1), PureDP(1))


def test_where_only_votes_are_known_a_sample_is_of_one_tree():
    trust = SimulatedSecureAggregation(Engine(TOWN), replace(ALL, sampling=Sampling.ONE))
    trust.answer(Query(COUNTS, 1), PureDP(1))
    other = Counts(Leaves.at_level(Quadtree.world(depth=2), 2), AtMostRows(1))
    with pytest.raises(Unanswerable, match="same people"):
        trust.answer(Query(other, 1), PureDP(1))


def test_rows_that_are_people_are_drawn_one_by_one():
    table = town(500, rows=4)
    answer = SimulatedSecureAggregation(table, ALL).answer(Query(Counts(COUNTS.cells, RowIsPerson()), 1), SILENT)
    assert answer.sums.sum() == 1_000


@pytest.mark.parametrize("budget", [ZCDP("0.5"), ApproxDP(1, "1e-6")], ids=str)
def test_only_pure_epsilon_buys_anything(budget):
    trust = SimulatedSecureAggregation(TOWN, ALL)
    with pytest.raises(InputError, match="give epsilon alone"):
        trust.prices(budget)
    with pytest.raises(InputError, match="give epsilon alone"):
        trust.answer(Query(COUNTS, 1), budget)


def test_what_is_not_a_sum_over_everybody_is_refused():
    trust = SimulatedSecureAggregation(TOWN, ALL)
    assert trust.answers(Query) and not trust.answers(Choice)
    with pytest.raises(Unanswerable, match="queries for sums"):
        trust.answer(Choice(QuantileScores(COUNTS.cells, (Fraction(1, 2),)), 1), PureDP(1))
    with pytest.raises(Unanswerable, match="cohort=None"):
        trust.answer(Query(COUNTS, 1, cohort=0), PureDP(1))


@pytest.mark.parametrize("sampling", Sampling, ids=lambda sampling: sampling.name)
def test_a_campaign_is_rebuilt_from_its_answers(sampling):
    method = Adaptive(TREE, AtMostRows(1))
    trust = SimulatedSecureAggregation(TOWN, replace(ALL, sampling=sampling), dropping=Fraction(0))
    result = run(method, trust, PureDP(5), Unrecorded())
    again = replay(method, trust.prices(PureDP(5)), PureDP(5), result.transcript)
    assert np.array_equal(again.value.values, result.value.values)
    assert np.array_equal(again.value.cells.cells, result.value.cells.cells)
