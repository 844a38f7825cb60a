"""The curator: exact sums plus exactly the noise that was paid for."""

from fractions import Fraction
from itertools import permutations
from math import sqrt

import numpy as np
import pytest
from scipy.stats import chisquare

from hazemap.cells import Leaves
from hazemap.encoders import Concatenation, Counts, MedianSplitScores, QuantileScores
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError, Unanswerable
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, noise_for, refuse_too_wide
from hazemap.privacy.random_stream import Stream
from hazemap.queries.noisy_queries import Choice, Growth, Query
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_trees import BinaryPartition
from hazemap.tables.contribution_bounding import AtMostRows, OneVote
from hazemap.trust.curator import Curator, epsilon_of, telling

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
    for encoder in (counts, Concatenation((counts, Counts(Leaves(TREE, TREE.root), rule)), (1, 3))):
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
    asked = QuantileScores(LEVEL, (Fraction(1, 10), Fraction(1, 2)))
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
            asked, reached = QuantileScores(small, (rank,), rule), 0
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


def test_under_rho_noise_is_for_the_square_of_how_far_a_person_moves_the_whole_vector(table):
    """Two rows in each of two parts of weights 1 and 3: L1 is 2 + 6, but L2² is 4 + 36, which is not L1²."""
    counts = Counts(LEVEL, AtMostRows(2))
    stack = Concatenation((counts, counts), (1, 3))
    for price, law in ((ZCDP("0.1"), DiscreteGaussian(Fraction(200))), (PureDP("0.1"), DiscreteLaplace(Fraction(80)))):
        answer = Curator(table, Stream.fixed(b"square")).answer(Query(stack, 1), price)
        assert np.array_equal(answer.sums - stack.total(table), law.draw(Stream.fixed(b"square"), stack.size))
        assert answer.stddev[0] == law.stddev
        noise = (answer.sums - stack.total(table)) / law.stddev
        assert abs((noise**2).mean() - 1) < 5 * sqrt((law.kurtosis + 2) / stack.size)  # by chance in 1 of a million


def by_all_orders(scores: np.ndarray, sensitivity: int, epsilon: float) -> np.ndarray:
    """The law of permute-and-flip (McKenna and Sheldon 2020), over every order of the candidates."""
    heads = np.exp(-epsilon * (scores.max() - scores) / (2 * sensitivity))
    law, orders = np.zeros(len(scores)), list(permutations(range(len(scores))))
    for order in orders:
        reached = 1.0
        for candidate in order:
            law[candidate] += reached * heads[candidate] / len(orders)
            reached *= 1 - heads[candidate]
    return law


def test_where_so_little_is_paid_that_noise_does_not_fit_nothing_of_the_rows_is_answered(table):
    """No answer fails for it: sums, choices and trees are then drawn as if there were no rows, from the same law."""
    empty = MemoryTable(table.person[:0], {name: column[:0] for name, column in table.columns.items()})
    cells = BinaryPartition.uncut(TREE)
    asked = (
        Query(Counts(LEVEL, OneVote(1024)), 1),
        Choice(QuantileScores(LEVEL, (Fraction(1, 2), Fraction(1, 3))), 1),
        Choice(MedianSplitScores(Leaves(cells, cells.root), np.array([0])), 1),
        Growth(TREE, AtMostRows(1), 1),
    )
    for price in (PureDP("1e-18"), ZCDP("1e-36")):
        for question in asked:
            one, other = (Curator(each, Stream.fixed(b"wide")).answer(question, price) for each in (table, empty))
            assert one == other and np.isfinite(one.stddev).all()
    wide = Curator(table).answer(asked[0], PureDP("1e-18"))
    assert wide.stddev[0] == pytest.approx(sqrt(2) * 1024e18) and abs(wide.sums).max() > 1 << 40


@pytest.mark.parametrize("rule", [AtMostRows(1), AtMostRows(1000), OneVote(), OneVote(1 << 16)], ids=repr)
def test_what_buys_too_wide_noise_is_refused_from_its_price_alone(rule):
    for little, enough in ((PureDP("1e-18"), PureDP("0.01")), (ZCDP("1e-36"), ZCDP("0.01"))):
        with pytest.raises(InputError, match="would not fit 64 bits"):
            refuse_too_wide(little, rule.sensitivity)
        refuse_too_wide(enough, rule.sensitivity)
    least = Fraction(rule.sensitivity.l1, 1 << 28)
    refuse_too_wide(PureDP(least), rule.sensitivity)
    with pytest.raises(InputError, match="would not fit 64 bits"):
        refuse_too_wide(PureDP(least * Fraction(999, 1000)), rule.sensitivity)


def test_choices_of_several_ranks_share_the_price_and_have_their_law():
    """Chi-square of the pairs at 1e-6; each rank with all of the price is found out."""
    place = {"lon": np.array([-40.0] * 2 + [40.0] * 3), "lat": np.array([60.0, 60.0, 60.0, -60.0, -60.0])}
    rows = MemoryTable(np.arange(5), place)
    world = Leaves.at_level(Quadtree.world(depth=1), 1)
    asked = QuantileScores(world, (Fraction(1, 3), Fraction(1, 2)))
    curator, n = Curator(rows, Stream.fixed(b"two ranks")), 600
    found = np.array([curator.answer(Choice(asked, 1), PureDP(4)).sums for _ in range(n)])
    pairs = np.bincount(found[:, 0] * 5 + found[:, 1], minlength=25)
    before = np.array([0, 2, 3, 3, 5])  # north-west, north-east, south-west, south-east
    scores = [-np.abs(3 * before - 5), -np.abs(2 * before - 5)]

    def law(epsilon: float) -> np.ndarray:
        first, second = (by_all_orders(s, by, epsilon) for s, by in zip(scores, (2, 1), strict=True))
        return np.outer(first, second).ravel() * n

    assert chisquare(pairs, law(2.0)).pvalue > 1e-6
    assert chisquare(pairs, law(4.0)).pvalue < 1e-6


def test_fault_12_every_rank_of_a_choice_pays_an_equal_part_of_the_price(table, monkeypatch):
    paid = []

    def noted(_stream: object, _scores: object, by: int, epsilon: Fraction) -> int:
        paid.append((by, epsilon))
        return 0

    monkeypatch.setattr("hazemap.trust.curator.permute_and_flip", noted)
    ranks = (Fraction(0), Fraction(1, 2), Fraction(1, 3))
    asked = QuantileScores(LEVEL, ranks, AtMostRows(4))
    Curator(table).answer(Choice(asked, 1), PureDP("0.6"))
    assert paid == [(4, Fraction(1, 5)), (4, Fraction(1, 5)), (8, Fraction(1, 5))]
    paid.clear()
    Curator(table).answer(Choice(asked, 1), ZCDP("1.5"))
    assert [epsilon for _, epsilon in paid] == [
        Fraction(1)
    ] * 3  # √(2 · 1.5/3): in ρ, three ε's of √3 would be too dear


@pytest.mark.parametrize(
    "rho", ["0.5", "2", "0.1", "1e-9", "3", "1e-3", "7e-30", "1e9", "123456.789", "0.333333333333"]
)
def test_fault_12_rho_buys_an_epsilon_that_is_never_rounded_up(rho):
    """ε-DP implies ε²/2-zCDP: ε² ≤ 2ρ exactly, and one 2⁻²⁰ more would be too much."""
    epsilon, twice = epsilon_of(ZCDP(rho)), 2 * Fraction(rho)
    assert epsilon**2 <= twice < (epsilon + Fraction(1, 2**20)) ** 2
    assert epsilon**2 <= twice < (epsilon * (1 + Fraction(1, 2**18))) ** 2, "however little it is"
    assert epsilon_of(PureDP(rho)) == Fraction(rho)
    assert epsilon_of(ApproxDP(1, "1e-6")) ** 2 <= 2 * ApproxDP(1, "1e-6").rho


@pytest.mark.parametrize("sensitivity", [1, 2, 3, 7, 1 << 20])
def test_a_choice_is_made_from_zeros_where_its_noise_would_be_wider_than_64_bits_hold(sensitivity):
    """Noise of a choice has the scale 2Δ/ε: 2⁵⁰ is the widest that is drawn."""
    scores, least = np.array([3, -1, 8]), Fraction(2 * sensitivity, 1 << 50)
    for epsilon in (least, 2 * least, Fraction(5)):
        found = telling(scores, sensitivity, epsilon)
        assert found[0] is scores and found[1:] == (sensitivity, epsilon)
    found, by, epsilon = telling(scores, sensitivity, least * Fraction(999, 1000))
    assert (found.tolist(), by, epsilon) == ([0, 0, 0], sensitivity, least) and 2 * by / epsilon == 1 << 50


def test_a_choice_and_a_grown_tree_are_exact_answers_without_an_error_bar(table):
    cells = BinaryPartition.uncut(TREE)
    asked = (
        Choice(QuantileScores(LEVEL, (Fraction(1, 2),)), 1),
        Choice(MedianSplitScores(Leaves(cells, cells.root), np.array([0])), 1),
        Growth(TREE, AtMostRows(1), 1),
    )
    for question in asked:
        assert Curator(table).answer(question, PureDP(1)).stddev.tolist() == [0.0]
