"""The real protocol and its simulation give answers of one law.

Two-sample chi-square tests; each fails by chance with probability 1e-7, and has a twin that must fail.
"""

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from hazemap.algorithms import Flat
from hazemap.cells import Leaves
from hazemap.encoders import Concatenation, Counts
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError, NotOpened, Unanswerable
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.federated.trust.in_memory_secure_aggregation import SecureAggregation, SimulatedSecureAggregation
from hazemap.privacy.budget import ZCDP, PureDP
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.queries.noisy_queries import Query
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, OneVote

TREE = Quadtree(0.25, 0.25, 0.25, 4)
COUNTS = Counts(Leaves.at_level(TREE, 4), AtMostRows(1))
COHORT = Cohort(12, 6, dropout=Fraction(1, 3), corrupt=Fraction(1, 6), mode=Mode.SEMI_HONEST)
SILENT = PureDP(10_000)
ERROR = 1e-7


def corner(people, rows=1):
    """Everybody in the first of four quarters."""
    rng = np.random.default_rng(2)
    west, south, east, north = (float(edge[0]) for edge in TREE.bounds(TREE.children(TREE.root)[:1]))
    lon, lat = rng.uniform(west, east, people * rows), rng.uniform(south, north, people * rows)
    return MemoryTable(np.repeat(np.arange(people), rows), {"lon": lon, "lat": lat})


TOWN = corner(30)
EMPTY = COUNTS.total(TOWN) == 0


def alike(one, other):
    """The p-value of two samples of whole numbers having one law; rare numbers are put together."""
    counts, others = Counter(one), Counter(other)
    kinds = sorted({*counts, *others})
    rows, open_ = [], np.zeros(2)
    for kind in kinds:
        open_ += counts[kind], others[kind]
        if open_.min() >= 10:
            rows.append(open_)
            open_ = np.zeros(2)
    rows[-1] = rows[-1] + open_
    return chi2_contingency(np.array(rows).T).pvalue


def answers(trust, price, times):
    """As many answers; None where every shard was lost."""
    found = []
    for _ in range(times):
        try:
            found.append(trust.answer(Query(COUNTS, 1), price))
        except NotOpened:
            found.append(None)
    return found


def noise(trust, times):
    return [n for answer in answers(trust, PureDP("0.5"), times) for n in answer.sums[EMPTY].tolist()]


@pytest.mark.slow
@pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.name)
def test_the_noise_has_one_law(mode):
    cohort = replace(COHORT, mode=mode, dropout=Fraction(1, 6))
    real = noise(SecureAggregation(TOWN, cohort), 40)
    assert alike(real, noise(SimulatedSecureAggregation(TOWN, cohort), 400)) > ERROR
    # The twin makes shares as if all survivors were certain to be honest.
    wrong = replace(cohort, corrupt=Fraction(0), mode=Mode.SEMI_HONEST)
    assert wrong.honest(6) > cohort.honest(6)
    assert alike(real, noise(SimulatedSecureAggregation(TOWN, wrong), 400)) < ERROR


@pytest.mark.slow
def test_who_answers_has_one_law():
    dropping = Fraction(1, 4)
    real = answers(SecureAggregation(TOWN, COHORT, dropping=dropping), SILENT, 80)
    simulated = answers(SimulatedSecureAggregation(TOWN, COHORT, dropping=dropping), SILENT, 1_000)
    twin = answers(SimulatedSecureAggregation(TOWN, COHORT, dropping=Fraction(1, 10)), SILENT, 1_000)

    def people(found):
        return [answer.people if answer else 0 for answer in found]

    def crowd(found):
        return [int(answer.sums[:128].sum()) if answer else 0 for answer in found]

    for what in (people, crowd):
        assert alike(what(real), what(simulated)) > ERROR
    assert alike(people(real), people(twin)) < ERROR
    for answer in [answer for answer in (*real, *simulated) if answer]:
        assert answer.sums.sum() == answer.people


@pytest.mark.parametrize("rule", [AtMostRows(3), OneVote(64)], ids=str)
def test_people_with_several_rows_bring_what_their_tables_hold(rule):
    table = corner(6, rows=4)
    stack = Concatenation((Counts(COUNTS.cells, rule), Counts(Leaves(TREE, TREE.root), rule)), (1, 2))
    trust = SecureAggregation(table, Cohort(6, 6, Fraction(0), Fraction(1, 6)))
    assert np.array_equal(trust.answer(Query(stack, 1), PureDP(10**6)).sums, stack.total(table))


def test_one_sample_is_asked_again_and_a_fresh_one_is_not():
    for sampling in Sampling:
        trust = SecureAggregation(TOWN, replace(COHORT, people=6, sampling=sampling))
        found = [trust.answer(Query(COUNTS, 1), SILENT).sums for _ in range(3)]
        assert all(np.array_equal(found[0], other) for other in found[1:]) == (sampling is Sampling.ONE)


def test_a_method_runs_on_real_secure_sums():
    trust = SecureAggregation(TOWN, Cohort(30, 15, Fraction(1, 5), Fraction(1, 10)), dropping=Fraction(1, 20))
    made = run(Flat(TREE, 1), trust, PureDP(8), Unrecorded()).value
    assert made.unbiased.argmax() == 0


def reported(trust, budget, times):
    """Two numbers of so many answers: the cell of everybody, and one of nobody."""
    answers = []
    while len(answers) < times:
        with suppress(NotOpened):
            answers.append(trust.answer(Query(CORNERS, 1), budget))
    crowd = [int(answer.sums[0]) for answer in answers]
    return crowd, [number for answer in answers for number in answer.sums[1:].tolist()]


CORNERS = Counts(Leaves.at_level(TREE, 1), AtMostRows(1))


@pytest.mark.slow
@pytest.mark.parametrize("budget", [PureDP("0.5"), ZCDP("0.4")], ids=str)
def test_reports_have_one_law(budget):
    cohort = replace(COHORT, dropout=Fraction(1, 6))
    local = {"dropping": Fraction(1, 20), "local_epsilon": Fraction(3)}
    real = reported(SecureAggregation(TOWN, cohort, **local), budget, 120)
    simulated = reported(SimulatedSecureAggregation(TOWN, cohort, **local), budget, 2_000)
    # The twin's reports have a local ε of a third.
    twin = reported(
        SimulatedSecureAggregation(TOWN, cohort, **local | {"local_epsilon": Fraction(1, 3)}), budget, 2_000
    )
    for mine, theirs, others in zip(real, simulated, twin, strict=True):
        assert alike(mine, theirs) > ERROR > alike(mine, others)


def test_a_method_runs_on_reports_in_real_secure_sums():
    trust = SecureAggregation(TOWN, Cohort(30, 15, Fraction(1, 5), Fraction(1, 10)), local_epsilon=Fraction(16))
    made = run(Flat(TREE, 1), trust, PureDP(8), Unrecorded()).value
    assert made.unbiased.argmax() == 0
    assert made.unbiased.sum() == pytest.approx(30, abs=3)


def test_what_a_secure_sum_cannot_do_is_refused():
    with pytest.raises(InputError, match="only 30"):
        SecureAggregation(TOWN, Cohort(31, 31))
    trust = SecureAggregation(TOWN, COHORT)
    with pytest.raises(InputError, match="give epsilon alone"):
        trust.prices(ZCDP(1))
    with pytest.raises(Unanswerable, match="cohort=None"):
        trust.answer(Query(COUNTS, 1, cohort=1), PureDP(1))
