"""The curator: exact sums plus exactly the noise that was paid for."""

from fractions import Fraction

import numpy as np
import pytest

from hazemap.cells import Leaves
from hazemap.domains import Quadtree
from hazemap.encoders import Counts, Quantiles, Stack
from hazemap.errors import Unanswerable
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.privacy.mechanisms import noise_for
from hazemap.privacy.stream import Stream
from hazemap.rounds import Choice, Query
from hazemap.tables import AtMostRows, MemoryTable, OneVote
from hazemap.trust import Curator

TREE = Quadtree(0.25, 0.25, 0.25, 6)
LEVEL = Leaves.at_level(TREE, 3)


@pytest.fixture
def table():
    rng = np.random.default_rng(4)
    west, south, east, north = (float(edge[0]) for edge in TREE.bounds(TREE.root))
    return MemoryTable(
        rng.integers(0, 300, 2_000), {"lon": rng.uniform(west, east, 2_000), "lat": rng.uniform(south, north, 2_000)}
    )


@pytest.mark.parametrize("budget", [PureDP("0.5"), ZCDP("0.1"), ApproxDP(1, "1e-6")], ids=str)
@pytest.mark.parametrize("rule", [AtMostRows(3), OneVote(64)], ids=str)
def test_an_answer_is_the_exact_sums_and_the_noise_that_was_paid_for(table, budget, rule):
    counts = Counts(LEVEL, rule)
    for encoder in (counts, Stack((counts, Counts(Leaves(TREE, TREE.root), rule)), (1, 3))):
        answer = Curator(table, Stream.fixed(b"a test")).answer(Query(encoder, 1), budget)
        noise = noise_for(budget, encoder.sensitivity)
        assert np.array_equal(answer.sums - encoder.total(table), noise.draw(Stream.fixed(b"a test"), encoder.size))
        assert answer.stddev.tolist() == [noise.stddev]
        assert answer.kurtosis == noise.kurtosis


def test_two_answers_have_noises_of_their_own(table):
    curator = Curator(table)
    one, other = (curator.answer(Query(Counts(LEVEL), 1), PureDP("0.01")) for _ in range(2))
    assert not np.array_equal(one.sums, other.sums)


@pytest.mark.parametrize("budget", [PureDP(2), ZCDP(1), ApproxDP(3, "1e-9")], ids=str)
def test_prices_are_what_answers_cost(table, budget):
    curator, encoder = Curator(table), Counts(LEVEL, AtMostRows(2))
    prices = curator.prices(budget)
    share = Fraction(1, 7)
    assert curator.answer(Query(encoder, share), budget.part(share)).stddev[0] == prices.stddev(encoder, share)
    wanted = prices.stddev(encoder, share)
    assert prices.share(encoder, wanted) <= share + Fraction(1, 2**20)
    assert prices.stddev(encoder, prices.share(encoder, wanted)) <= wanted


@pytest.mark.parametrize("budget", [PureDP(20), ZCDP(200)], ids=str)
def test_a_choice_is_near_the_quantile_that_was_asked_for(table, budget):
    asked = Quantiles(LEVEL, (Fraction(1, 10), Fraction(1, 2)))
    chosen = Curator(table).answer(Choice(asked, 1), budget).sums
    before = np.concatenate([[0], np.cumsum(Counts(LEVEL).total(table))])
    assert abs(before[chosen] - np.array([30, 150])).max() < 20


@pytest.mark.slow
def test_the_sensitivity_of_a_score_holds_for_every_person_who_leaves():
    rng = np.random.default_rng(8)
    small = Leaves.at_level(TREE, 1)
    west, south, east, north = (float(edge[0]) for edge in TREE.bounds(TREE.root))
    for rule in (AtMostRows(1), AtMostRows(2), OneVote(8)):
        for rank in (Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(2, 3), Fraction(1)):
            asked, reached = Quantiles(small, (rank,), rule), 0
            for _ in range(40):
                lon, lat = rng.uniform(west, east, 8), rng.uniform(south, north, 8)
                whole = MemoryTable(rng.integers(0, 4, 8), {"lon": lon, "lat": lat})
                for person in range(4):
                    left = whole.person != person
                    rest = MemoryTable(whole.person[left], {"lon": lon[left], "lat": lat[left]})
                    moved = np.abs(asked.scores(whole, rank) - asked.scores(rest, rank)).max()
                    assert moved <= asked.sensitivity(rank)
                    reached = max(reached, moved)
            assert reached == asked.sensitivity(rank)  # the bound is tight


def test_cohorts_are_for_devices(table):
    with pytest.raises(Unanswerable, match="cohorts are for devices"):
        Curator(table).answer(Query(Counts(LEVEL), 1, cohort=2), PureDP(1))
